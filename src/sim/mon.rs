//! The mon's side of an OSD: what each command that we send, or that ceph-volume sends, does to the osdmap, CRUSH and keys.
//!
//! All of it was seen on 16.2.15 (`reference` of the project's first days, and again by `tests/lab/fidelity`).

use super::World;
use crate::domain::observation::{Slot, SlotState};
use crate::domain::osd::{CrushItem, Epoch, OsdFsid, OsdId, Weight};

/// A command that the mon refuses: its errno's name and words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MonError {
    /// `EBUSY`
    #[error("EBUSY: {0} is up")]
    Up(OsdId),
    /// `EEXIST` or `EINVAL`: the id or the uuid is in use.
    #[error("EEXIST: {0} is in use")]
    InUse(OsdId),
    /// `ENOENT`
    #[error("ENOENT: no {0}")]
    NoSuch(OsdId),
    /// `EPERM`: `purge-new` of an OSD that is not new.
    #[error("EPERM: {0} is not new")]
    NotNew(OsdId),
}

impl World {
    pub(super) fn next_epoch(&mut self) -> Epoch {
        self.ceph.epoch.0 += 1;
        self.ceph.epoch
    }

    pub(super) fn has_key(&self, osd: OsdId) -> bool {
        self.ceph.auth.get(&osd).copied().unwrap_or(false)
    }

    /// `osd destroy-actual`: refuses an OSD that is up (`EBUSY`) and checks nothing else, degraded PGs included. The id, the
    /// CRUSH item, `in`, reweight, affinity, per-OSD flags and upmaps stay; uuid and key go. Again: success.
    pub fn osd_destroy(&mut self, osd: OsdId) -> Result<(), MonError> {
        let slot = self.ceph.slots.get_mut(&osd).ok_or(MonError::NoSuch(osd))?;
        if slot.up {
            return Err(MonError::Up(osd));
        }
        (slot.state, slot.fsid) = (SlotState::Destroyed, None);
        self.ceph.auth.insert(osd, false);
        self.next_epoch();
        Ok(())
    }

    /// `osd new UUID ID`: takes a destroyed id (everything but the uuid is kept) or an absent one (from nothing: no CRUSH item,
    /// reweight and affinity 1.0, no flags); the same uuid and id again is success; anything else is refused. With a key.
    pub fn osd_new(&mut self, fsid: OsdFsid, osd: OsdId, with_key: bool) -> Result<(), MonError> {
        if self.ceph.slots.iter().any(|(id, slot)| *id != osd && slot.fsid == Some(fsid)) {
            return Err(MonError::InUse(osd));
        }
        match self.ceph.slots.get_mut(&osd) {
            Some(slot) if slot.state == SlotState::Destroyed => {
                (slot.state, slot.fsid) = (SlotState::New, Some(fsid));
            }
            Some(slot) if slot.state == SlotState::New && slot.fsid == Some(fsid) => {}
            Some(_) => return Err(MonError::InUse(osd)),
            None => {
                self.ceph.slots.insert(osd, fresh_slot(fsid));
            }
        }
        if with_key || !self.has_key(osd) {
            self.ceph.auth.insert(osd, with_key);
        }
        self.next_epoch();
        Ok(())
    }

    /// `osd new UUID` without an id: the lowest id that is absent; a destroyed one is not taken.
    pub fn osd_new_anywhere(&mut self, fsid: OsdFsid) -> OsdId {
        let osd = (0..).map(OsdId).find(|id| !self.ceph.slots.contains_key(id)).unwrap_or(OsdId(u32::MAX));
        self.ceph.slots.insert(osd, fresh_slot(fsid));
        self.ceph.auth.insert(osd, true);
        self.next_epoch();
        osd
    }

    /// `osd purge-new`: of an id that is new (or destroyed) and down. Slot, CRUSH item, key, flags and upmaps go.
    pub fn osd_purge_new(&mut self, osd: OsdId) -> Result<(), MonError> {
        let Some(slot) = self.ceph.slots.get(&osd) else { return Ok(()) };
        if slot.up {
            return Err(MonError::Up(osd));
        }
        if slot.state == SlotState::Exists {
            return Err(MonError::NotNew(osd));
        }
        self.osd_purge(osd)
    }

    /// `osd purge`: the same for any OSD that is down.
    pub fn osd_purge(&mut self, osd: OsdId) -> Result<(), MonError> {
        match self.ceph.slots.get(&osd) {
            None => return Ok(()),
            Some(slot) if slot.up => return Err(MonError::Up(osd)),
            Some(_) => {}
        }
        self.ceph.slots.remove(&osd);
        self.ceph.auth.remove(&osd);
        self.marked_new.remove(&osd);
        self.ceph.upmaps.retain(|upmap| !upmap.mappings.iter().any(|(from, to)| *from == osd || *to == osd));
        self.next_epoch();
        self.repeer(osd);
        Ok(())
    }

    /// `osd set-group` and `osd unset-group` of one OSD. An id that does not exist is answered with success.
    pub fn osd_flags(&mut self, osd: OsdId, noout: Option<bool>, noin: Option<bool>) {
        if let Some(slot) = self.ceph.slots.get_mut(&osd) {
            slot.noout = noout.unwrap_or(slot.noout);
            slot.noin = noin.unwrap_or(slot.noin);
            self.next_epoch();
        }
    }

    /// `osd reweight`: also takes the mark `new` off, of an OSD that is up and of one that is not.
    pub fn osd_reweight(&mut self, osd: OsdId, reweight: Weight) {
        if let Some(slot) = self.ceph.slots.get_mut(&osd) {
            slot.reweight = reweight;
            slot.is_in = reweight > Weight(0);
            if slot.state == SlotState::New {
                slot.state = SlotState::Exists;
            }
            self.marked_new.remove(&osd);
            self.next_epoch();
        }
    }

    /// `osd out`, by a person or by the mons after `mon_osd_down_out_interval`: upmaps onto it are dropped, and `osd in` does
    /// not bring them back (peers.md B).
    pub fn osd_out(&mut self, osd: OsdId) {
        if let Some(slot) = self.ceph.slots.get_mut(&osd) {
            (slot.is_in, slot.reweight) = (false, Weight(0));
            self.ceph.upmaps.retain(|upmap| !upmap.mappings.iter().any(|(_, to)| *to == osd));
            self.next_epoch();
            self.repeer(osd);
        }
    }

    /// `osd in`: with weight 1.0, whatever it was before.
    pub fn osd_in(&mut self, osd: OsdId) {
        if let Some(slot) = self.ceph.slots.get_mut(&osd) {
            (slot.is_in, slot.reweight) = (true, Weight::ONE);
            self.next_epoch();
            self.repeer(osd);
        }
    }

    /// `osd crush add` and `osd crush set-device-class`.
    pub fn crush_add(&mut self, osd: OsdId, item: &CrushItem) {
        if let Some(slot) = self.ceph.slots.get_mut(&osd) {
            slot.crush = Some(item.clone());
            self.next_epoch();
            self.repeer(osd);
        }
    }

    /// `osd primary-affinity`
    pub fn primary_affinity(&mut self, osd: OsdId, affinity: Weight) {
        if let Some(slot) = self.ceph.slots.get_mut(&osd) {
            slot.primary_affinity = affinity;
            self.next_epoch();
        }
    }

    /// The mons mark it down: its daemon ended, or nobody hears of it.
    pub fn osd_down(&mut self, osd: OsdId) {
        let epoch = self.next_epoch();
        let is_new = self.marked_new.contains(&osd);
        if let Some(slot) = self.ceph.slots.get_mut(&osd).filter(|slot| slot.up) {
            (slot.up, slot.down_at) = (false, epoch);
            if is_new {
                slot.state = SlotState::New;
            }
            self.repeer(osd);
        }
    }

    /// A daemon of this fsid asks to be marked up. Refused where the slot holds another uuid, is destroyed, or it has no key.
    /// The first boot of a `new` OSD marks it in at 1.0, its reweight lost; with `noin` set it stays as it is, and stays
    /// marked new, so that its next boot without `noin` does it.
    pub fn osd_boot(&mut self, osd: OsdId, fsid: OsdFsid) -> bool {
        let has_key = self.has_key(osd);
        let was_new = self.marked_new.contains(&osd);
        let epoch = Epoch(self.ceph.epoch.0 + 1);
        let Some(slot) = self.ceph.slots.get_mut(&osd) else { return false };
        if slot.fsid != Some(fsid) || slot.up || !has_key || slot.state == SlotState::Destroyed {
            return false;
        }
        let is_new = slot.state == SlotState::New || was_new;
        if is_new && !slot.noin {
            (slot.is_in, slot.reweight) = (true, Weight::ONE);
        }
        let stays_new = is_new && slot.noin;
        (slot.state, slot.up, slot.up_from) = (SlotState::Exists, true, epoch);
        if stays_new {
            self.marked_new.insert(osd);
        } else {
            self.marked_new.remove(&osd);
        }
        self.next_epoch();
        self.repeer(osd);
        true
    }
}

/// What `osd new` makes of an absent id.
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
        noout: false,
        noin: false,
        crush: None,
        metadata: None,
        used_bytes: None,
    }
}
