//! Mon's view of an OSD: what each command of osd-migrate or ceph-volume does to the osdmap, CRUSH and keys.
//!
//! All of it was observed on 16.2.15, and is checked again at each run of the lab:
//! `tests/suite/fixtures/fidelity`.

use crate::domain::observation::{Slot, SlotState};
use crate::domain::osd::{CrushItem, Epoch, OsdFsid, OsdId, Upmap, Weight};
use crate::sim::world::World;

/// Refusal of a command by the mon: the errno's name and a text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MonError {
    /// `EBUSY`
    #[error("EBUSY: {0} is up")]
    Up(OsdId),
    /// `EINVAL`: the id has another uuid.
    #[error("EINVAL: {0} is in use")]
    OtherUuid(OsdId),
    /// `EEXIST`: another id has the uuid, or the id and the uuid agree and the key does not.
    #[error("EEXIST: {0} is in use")]
    InUse(OsdId),
    /// `EPERM`: `purge-new` of an OSD that is not new.
    #[error("EPERM: {0} is not new")]
    NotNew(OsdId),
    /// `ENOTEMPTY`: a bucket with items.
    #[error("ENOTEMPTY: {0} has items")]
    NotEmpty(String),
}

impl World {
    pub(super) fn next_epoch(&mut self) -> Epoch {
        self.ceph.epoch.0 += 1;
        self.ceph.epoch
    }

    pub(super) fn has_key(&self, osd: OsdId) -> bool {
        self.ceph.auth.get(&osd).copied().unwrap_or(false)
    }

    /// Does `osd destroy-actual`, which refuses an OSD that is up (`EBUSY`) and checks nothing else, not even
    /// degraded PGs.
    ///
    /// The id, the CRUSH item, `in`, reweight, affinity, per-OSD flags, upmaps and the mark `new` stay; uuid
    /// and key are deleted. Repeating it, or an absent id, succeeds.
    pub fn osd_destroy(&mut self, osd: OsdId) -> Result<(), MonError> {
        let Some(slot) = self.ceph.slots.get_mut(&osd) else { return Ok(()) };
        if slot.up {
            return Err(MonError::Up(osd));
        }
        let held = slot.fsid;
        (slot.state, slot.fsid, slot.dmcrypt_key) = (SlotState::Destroyed, None, false);
        self.ceph.auth.insert(osd, false);
        self.forget_key(held);
        self.next_epoch();
        Ok(())
    }

    /// Deletes the dm-crypt key of an encrypted store together with its slot; nothing can read the store any
    /// more (`config-key` of the mons, 16.2.15).
    fn forget_key(&mut self, held: Option<OsdFsid>) {
        let Some(fsid) = held else { return };
        if let Some(key) = self.dmcrypt.get_mut(&fsid) {
            *key = false;
            self.forget_store(fsid);
        }
    }

    /// Does `osd new UUID ID`, with or without a key.
    ///
    /// It uses a destroyed id (everything except the uuid is kept) or an absent one (created from nothing: no
    /// CRUSH item, reweight and affinity 1.0, no flags). The same uuid and id again succeed, even while the
    /// OSD is up, unless the command brings a key and the slot has none. Anything else is refused.
    pub fn osd_new(&mut self, fsid: OsdFsid, osd: OsdId, with_key: bool) -> Result<(), MonError> {
        if self.ceph.slots.iter().any(|(id, slot)| *id != osd && slot.fsid == Some(fsid)) {
            return Err(MonError::InUse(osd));
        }
        let has_key = self.has_key(osd);
        match self.ceph.slots.get_mut(&osd) {
            Some(slot) if slot.state == SlotState::Destroyed => {
                (slot.state, slot.fsid) = (SlotState::New, Some(fsid));
            }
            Some(slot) if slot.fsid == Some(fsid) && with_key && !has_key => {
                return Err(MonError::InUse(osd));
            }
            Some(slot) if slot.fsid == Some(fsid) => return Ok(()),
            Some(_) => return Err(MonError::OtherUuid(osd)),
            None => {
                self.ceph.slots.insert(osd, fresh_slot(fsid));
            }
        }
        self.ceph.auth.insert(osd, with_key);
        self.marked_new.insert(osd);
        self.next_epoch();
        Ok(())
    }

    /// Does `osd new UUID` without an id: it uses the lowest absent id, never a destroyed one.
    ///
    /// Repeating it returns the same id.
    pub fn osd_new_anywhere(&mut self, fsid: OsdFsid) -> OsdId {
        if let Some((osd, _)) = self.ceph.slots.iter().find(|(_, slot)| slot.fsid == Some(fsid)) {
            return *osd;
        }
        let osd =
            (0..=u32::MAX).map(OsdId).find(|id| !self.ceph.slots.contains_key(id)).unwrap_or(OsdId(u32::MAX));
        self.ceph.slots.insert(osd, fresh_slot(fsid));
        self.ceph.auth.insert(osd, true);
        self.marked_new.insert(osd);
        self.next_epoch();
        osd
    }

    /// Does `osd purge-new` for an id that is marked `new` and down, even if it is destroyed or was up before
    /// (under `noin`).
    ///
    /// Slot, CRUSH item, key, flags and upmaps are deleted.
    pub fn osd_purge_new(&mut self, osd: OsdId) -> Result<(), MonError> {
        let Some(slot) = self.ceph.slots.get(&osd) else { return Ok(()) };
        if slot.up {
            return Err(MonError::Up(osd));
        }
        if !self.marked_new.contains(&osd) {
            return Err(MonError::NotNew(osd));
        }
        self.osd_purge(osd)
    }

    /// Does `osd purge`: the same as `osd purge-new`, for any OSD that is down.
    pub fn osd_purge(&mut self, osd: OsdId) -> Result<(), MonError> {
        match self.ceph.slots.get(&osd) {
            None => return Ok(()),
            Some(slot) if slot.up => return Err(MonError::Up(osd)),
            Some(_) => {}
        }
        let removed = self.ceph.slots.remove(&osd);
        self.note_empty_host(removed.as_ref());
        self.forget_key(removed.and_then(|slot| slot.fsid));
        self.ceph.auth.remove(&osd);
        self.marked_new.remove(&osd);
        self.out_from.remove(&osd);
        self.ceph.upmaps.retain(|upmap| !upmap.mappings.iter().any(|(from, to)| *from == osd || *to == osd));
        self.next_epoch();
        self.repeer(osd);
        Ok(())
    }

    /// Notes that the CRUSH host of a purged OSD has no items any more.
    fn note_empty_host(&mut self, removed: Option<&Slot>) {
        if let Some(host) = removed.and_then(host_of)
            && !self.has_items(host)
        {
            self.ceph.empty_hosts.insert(host.to_owned());
        }
    }

    fn has_items(&self, host: &str) -> bool {
        self.ceph.slots.values().any(|slot| host_of(slot) == Some(host))
    }

    /// Does `osd crush rm` of a host.
    ///
    /// An absent one is answered with success.
    pub fn crush_rm(&mut self, host: &str) -> Result<(), MonError> {
        if self.has_items(host) {
            return Err(MonError::NotEmpty(host.to_owned()));
        }
        if self.ceph.empty_hosts.remove(host) {
            self.next_epoch();
        }
        Ok(())
    }

    /// Does `osd set-group` and `osd unset-group` for one OSD. An id that does not exist is answered with
    /// success.
    pub fn osd_flags(&mut self, osd: OsdId, noout: Option<bool>, noin: Option<bool>) {
        if let Some(slot) = self.ceph.slots.get_mut(&osd) {
            slot.noout = noout.unwrap_or(slot.noout);
            slot.noin = noin.unwrap_or(slot.noin);
            self.next_epoch();
        }
    }

    /// Does `osd set-group nodown` and `osd unset-group nodown` for one OSD.
    pub fn osd_nodown(&mut self, osd: OsdId, is_set: bool) {
        if let Some(slot) = self.ceph.slots.get_mut(&osd) {
            slot.nodown = is_set.then(|| osd.to_string());
            self.next_epoch();
        }
    }

    /// Returns whether the mons do not mark an OSD down (`OSDMonitor::can_mark_down`, 16.2.15).
    pub(super) fn is_nodown(&self, osd: OsdId) -> bool {
        let slot = self.ceph.slots.get(&osd);
        self.ceph.flags.contains("nodown") || slot.is_some_and(|slot| slot.nodown.is_some())
    }

    /// Does `osd set` or `osd unset` for one flag of the whole cluster.
    pub fn osd_set(&mut self, flag: &str, is_set: bool) {
        if is_set {
            self.ceph.flags.insert(flag.to_owned());
        } else {
            self.ceph.flags.remove(flag);
        }
        self.next_epoch();
    }

    /// Does `osd reweight`, which also clears the mark `new`, whether the OSD is up or down.
    pub fn osd_reweight(&mut self, osd: OsdId, reweight: Weight) {
        if let Some(slot) = self.ceph.slots.get_mut(&osd) {
            slot.reweight = reweight;
            slot.is_in = reweight > Weight(0);
            self.unmark(osd);
            self.next_epoch();
        }
    }

    /// Clears the mark `new`.
    ///
    /// A slot that was up before is then like any other.
    fn unmark(&mut self, osd: OsdId) {
        self.marked_new.remove(&osd);
        if let Some(slot) = self.ceph.slots.get_mut(&osd)
            && slot.state == SlotState::New
            && slot.up_from > Epoch(0)
        {
            slot.state = SlotState::Exists;
        }
    }

    /// Does `osd out`, by a person or by the mons after `mon_osd_down_out_interval`.
    ///
    /// Upmaps onto the OSD are dropped, and `osd in` does not restore them.
    pub fn osd_out(&mut self, osd: OsdId) {
        if let Some(slot) = self.ceph.slots.get_mut(&osd) {
            if slot.is_in {
                self.out_from.insert(osd, slot.reweight);
            }
            (slot.is_in, slot.reweight) = (false, Weight(0));
            self.ceph.upmaps.retain(|upmap| !upmap.mappings.iter().any(|(_, to)| *to == osd));
            self.next_epoch();
            self.repeer(osd);
        }
    }

    /// Does `osd in` with the reweight before `osd out`.
    ///
    /// Clears the mark `new`.
    pub fn osd_in(&mut self, osd: OsdId) {
        let reweight = self.out_from.remove(&osd).unwrap_or(Weight::ONE);
        if let Some(slot) = self.ceph.slots.get_mut(&osd).filter(|slot| !slot.is_in) {
            (slot.is_in, slot.reweight) = (true, reweight);
            self.unmark(osd);
            self.next_epoch();
            self.repeer(osd);
        }
    }

    /// Does `osd crush add` and `osd crush set-device-class`.
    pub fn crush_add(&mut self, osd: OsdId, item: &CrushItem) {
        if let Some(slot) = self.ceph.slots.get_mut(&osd) {
            slot.crush = Some(item.clone());
            if let Some(host) = item.host() {
                self.ceph.empty_hosts.remove(host);
            }
            self.next_epoch();
            self.repeer(osd);
        }
    }

    /// Does `osd crush reweight`.
    pub fn crush_reweight(&mut self, osd: OsdId, weight: Weight) {
        if let Some(item) = self.ceph.slots.get_mut(&osd).and_then(|slot| slot.crush.as_mut()) {
            item.weight = weight;
            if weight == Weight(0) {
                let names =
                    |upmap: &Upmap| upmap.mappings.iter().any(|(from, to)| *from == osd || *to == osd);
                self.ceph.upmaps.retain(|upmap| !names(upmap));
            }
            self.next_epoch();
            self.repeer(osd);
        }
    }

    /// Does `osd pg-upmap-items`, which replaces the PG's former upmap.
    ///
    /// The mons immediately drop an upmap from an OSD that CRUSH does not give the PG, or to an OSD that is
    /// gone or out.
    pub fn pg_upmap_items(&mut self, upmap: &Upmap) {
        let Some(placement) = self.placements.get(&upmap.pg) else { return };
        let is_in = |osd: &OsdId| self.ceph.slots.get(osd).is_some_and(Slot::gets_data);
        let fits = upmap.mappings.iter().all(|(from, to)| placement.home.contains(from) && is_in(to));
        self.ceph.upmaps.retain(|found| found.pg != upmap.pg);
        if fits {
            self.ceph.upmaps.push(upmap.clone());
        }
        let epoch = self.next_epoch();
        if let Some(placement) = self.placements.get_mut(&upmap.pg) {
            (placement.peered, placement.changed) = (false, epoch);
        }
    }

    /// Does `osd primary-affinity`.
    pub fn primary_affinity(&mut self, osd: OsdId, affinity: Weight) {
        if let Some(slot) = self.ceph.slots.get_mut(&osd) {
            slot.primary_affinity = affinity;
            self.next_epoch();
        }
    }

    /// Marks an OSD down: its daemon ended, or the mons receive nothing from it.
    ///
    /// Under `nodown` the mons acknowledge an OSD that announces its stop, and change nothing
    /// (`OSDMonitor::preprocess_mark_me_down`, 16.2.15).
    pub fn osd_down(&mut self, osd: OsdId) {
        if self.is_nodown(osd) {
            return;
        }
        let (epoch, at) = (self.next_epoch(), self.at);
        let is_new = self.marked_new.contains(&osd);
        if let Some(slot) = self.ceph.slots.get_mut(&osd).filter(|slot| slot.up) {
            (slot.up, slot.down_at) = (false, epoch);
            // Worlds without the time of earlier downs do not need it: it would only multiply their states.
            slot.down_since = slot.down_since.map(|_| at);
            if is_new {
                slot.state = SlotState::New;
            }
            self.repeer(osd);
        }
    }

    /// Marks an OSD up for a daemon of this fsid.
    ///
    /// The mons refuse if the slot has another uuid, is destroyed, or has no key.
    ///
    /// The first boot of a slot marked `new` marks it in at 1.0 (or at the reweight before it was marked
    /// out), and loses its reweight. With `noin` set the slot stays as it is, and stays marked, so that its
    /// next boot without `noin` does this. A reweight before the boot clears the mark.
    pub fn osd_boot(&mut self, osd: OsdId, fsid: OsdFsid) -> bool {
        let has_key = self.has_key(osd);
        let is_new = self.marked_new.contains(&osd);
        let epoch = Epoch(self.ceph.epoch.0 + 1);
        let out_from = self.out_from.get(&osd).copied();
        let Some(slot) = self.ceph.slots.get_mut(&osd) else { return false };
        if slot.fsid != Some(fsid) || slot.up || !has_key || slot.state == SlotState::Destroyed {
            return false;
        }
        (slot.state, slot.up, slot.up_from) = (SlotState::Exists, true, epoch);
        if is_new && !slot.noin {
            (slot.is_in, slot.reweight) = (true, out_from.unwrap_or(Weight::ONE));
            self.marked_new.remove(&osd);
            self.out_from.remove(&osd);
        }
        self.next_epoch();
        self.repeer(osd);
        true
    }
}

/// Returns the slot that `osd new` creates for an absent id.
fn fresh_slot(fsid: OsdFsid) -> Slot {
    Slot {
        state: SlotState::New,
        fsid: Some(fsid),
        up: false,
        is_in: true,
        reweight: Weight::ONE,
        primary_affinity: Weight::ONE,
        up_from: Epoch(0),
        down_at: Epoch(0),
        down_since: None,
        noout: false,
        noin: false,
        nodown: None,
        noup: None,
        auto_out: false,
        dmcrypt_key: false,
        crush: None,
        metadata: None,
        used_bytes: None,
    }
}

/// Returns the CRUSH host of an OSD.
fn host_of(slot: &Slot) -> Option<&str> {
    slot.crush.as_ref()?.host().map(String::as_str)
}
