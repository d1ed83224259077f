//! Acts on Ceph that need more than one command of `mon`.

use crate::domain::expect;
use crate::domain::expect::Lost;
use crate::domain::guard::{Guard, is_out};
use crate::domain::observation::SlotState;
use crate::domain::osd::{CrushItem, Epoch, OsdFsid, OsdId, Upmap, Weight};
use crate::domain::recovery::RecoveryOptions;
use crate::domain::scrub::ScrubFlags;
use crate::sim::acts::{Done, refuse};
use crate::sim::world::{Effect, World};

impl World {
    pub(super) fn set_osd_flags(
        &mut self,
        osd: OsdId,
        expected: (Option<OsdFsid>, bool),
        flags: (bool, bool),
    ) -> Done {
        if !expect::to_set_flags(self.ceph.slots.get(&osd), expected.0, expected.1) {
            return refuse("the slot has another OSD");
        }
        self.osd_flags(osd, flags.0.then_some(true), flags.1.then_some(true));
        Ok(vec![Effect::Small(osd)])
    }

    /// Sets or unsets flags of the cluster with one write for each.
    pub(super) fn scrub_flags(&mut self, flags: ScrubFlags, is_set: bool, writes: usize) -> Vec<Effect> {
        for flag in flags.names().take(writes) {
            self.osd_set(flag, is_set);
        }
        Vec::new()
    }

    /// Sets or removes options of the config database that are as expected, with one write for each.
    pub(super) fn recovery_options(
        &mut self,
        options: &RecoveryOptions,
        is_set: bool,
        writes: usize,
    ) -> Vec<Effect> {
        let Some(config) = &mut self.ceph.recovery else { return Vec::new() };
        let expected = options.that(|option, value| {
            if is_set {
                expect::to_set_option(config, option)
            } else {
                expect::to_remove_option(config, option, value)
            }
        });
        for (option, value) in expected.0.into_iter().take(writes) {
            if is_set {
                config.values.0.insert(option, value);
            } else {
                config.values.0.remove(&option);
            }
        }
        Vec::new()
    }

    pub(super) fn mark_out(&mut self, osd: OsdId, fsid: OsdFsid, up_from: Epoch) -> Done {
        if !expect::to_mark_out(self.ceph.slots.get(&osd), fsid, up_from) {
            return refuse("it is not up and in with that fsid");
        }
        self.osd_out(osd);
        Ok(vec![Effect::MarkedOut(osd)])
    }

    pub(super) fn drop_weight(&mut self, osd: OsdId, fsid: OsdFsid, up_from: Epoch, weight: Weight) -> Done {
        if !expect::to_drop_weight(self.ceph.slots.get(&osd), fsid, up_from, weight) {
            return refuse("it is not up with that fsid and CRUSH weight");
        }
        self.crush_reweight(osd, Weight(0));
        Ok(vec![Effect::MarkedOut(osd)])
    }

    pub(super) fn purge(&mut self, osd: OsdId) -> Done {
        let Some(slot) = self.ceph.slots.get(&osd) else { return Ok(Vec::new()) };
        if !expect::to_purge(slot) {
            return refuse("the slot is not destroyed");
        }
        self.osd_purge(osd).map_err(|error| error.to_string())?;
        Ok(vec![Effect::Purged(osd)])
    }

    /// Removes an empty CRUSH host.
    pub(super) fn remove_host(&mut self, osd: OsdId, host: &str) -> Done {
        self.crush_rm(host).map_err(|error| error.to_string())?;
        Ok(vec![Effect::Small(osd)])
    }

    /// Unsets flags with two writes: the reweight that clears the mark `new`, then the flags.
    pub(super) fn unset_osd_flags(&mut self, osd: OsdId, (noout, noin): (bool, bool), writes: usize) {
        let Some(slot) = self.ceph.slots.get(&osd) else { return };
        let (noout, noin) = (noout && slot.noout, noin && slot.noin);
        let mut left = writes;
        let marked = self.marked_new.contains(&osd);
        let keeps = self.ceph.slots.get(&osd).filter(|slot| marked || slot.state == SlotState::New);
        if let Some(reweight) = keeps.map(|slot| slot.reweight).filter(|_| noin)
            && !is_out(Guard::UnsetFlagsKeepsReweight)
        {
            self.osd_reweight(osd, reweight);
            left = left.saturating_sub(1);
        }
        if left > 0 && (noout || noin) {
            self.osd_flags(osd, noout.then_some(false), noin.then_some(false));
        }
    }

    pub(super) fn destroy(&mut self, osd: OsdId, fsid: OsdFsid) -> Done {
        let Some(slot) = self.ceph.slots.get(&osd) else { return refuse("no such id") };
        if !expect::to_destroy(slot, fsid) {
            return refuse("the slot is up, or has another OSD");
        }
        let held = slot.fsid;
        self.osd_destroy(osd).map_err(|error| error.to_string())?;
        Ok(held.map(|fsid| Effect::Destroyed(osd, fsid)).into_iter().collect())
    }

    pub(super) fn reregister(&mut self, osd: OsdId, issued: OsdFsid) -> Done {
        let slot = self.ceph.slots.get(&osd);
        if slot.is_some_and(|slot| expect::is_reregistered(slot, issued)) {
            return Ok(Vec::new());
        }
        if !expect::to_reregister(slot) {
            return refuse("the id is in use");
        }
        self.osd_new(issued, osd, false).map_err(|error| error.to_string())?;
        Ok(vec![Effect::Registered(osd, issued)])
    }

    pub(super) fn purge_misplaced(&mut self, misplaced: OsdId, fsid: OsdFsid) -> Done {
        let Some(slot) = self.ceph.slots.get(&misplaced) else { return Ok(Vec::new()) };
        if !expect::to_purge_misplaced(slot, fsid) {
            return refuse("the id is in use");
        }
        // `osd purge-new` itself refuses an OSD that is up or not new.
        self.osd_purge(misplaced).map_err(|error| error.to_string())?;
        Ok(vec![Effect::Purged(misplaced)])
    }

    /// Restores CRUSH with up to four writes: the item last, followed only by its class.
    pub(super) fn restore_crush(
        &mut self,
        osd: OsdId,
        (item, former): (&CrushItem, Option<Weight>),
        was: (Weight, Weight),
        writes: usize,
    ) -> Done {
        let Some(slot) = self.ceph.slots.get(&osd) else { return refuse("no slot") };
        let lost = expect::to_restore(item, former, slot.crush.as_ref());
        let whole = match lost.map_err(|_| "the item is at another location now".to_owned())? {
            Lost::Nothing => return Ok(Vec::new()),
            Lost::Weight => {
                self.crush_reweight(osd, item.weight);
                return Ok(vec![Effect::Small(osd)]);
            }
            Lost::Class => true,
            Lost::Item => false,
        };
        for write in 0..writes.min(4) {
            match write {
                0 if !whole => self.osd_reweight(osd, was.0),
                1 if !whole => self.primary_affinity(osd, was.1),
                2 if !whole => self.crush_add(osd, &CrushItem { device_class: None, ..item.clone() }),
                3 => self.crush_add(osd, item),
                _ => {}
            }
        }
        Ok(vec![Effect::Small(osd)])
    }

    /// Restores upmaps with one write for each.
    pub(super) fn restore_upmaps(
        &mut self,
        osd: OsdId,
        fsid: OsdFsid,
        upmaps: &[Upmap],
        writes: usize,
    ) -> Done {
        if !expect::to_restore_upmaps(self.ceph.slots.get(&osd), fsid) {
            return refuse("it is no longer up with that fsid");
        }
        for upmap in
            expect::upmaps_to_restore(upmaps, &self.ceph.upmaps, &self.ceph.slots).iter().take(writes)
        {
            self.pg_upmap_items(upmap);
        }
        Ok(vec![Effect::Small(osd)])
    }
}
