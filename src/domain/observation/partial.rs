//! Partial observations: what changes while a run waits is read, and the rest is of an earlier observation.
//!
//! A run may only wait by a partial observation (`Next::stands_by_parts`). Everything else is decided by a
//! complete one.

use std::collections::{BTreeMap, BTreeSet};

use super::{Ambiguity, Ceph, Daemon, Kube, Pg, Slot};
use crate::domain::osd::{OsdId, PgId};
use crate::domain::shared::Shared;

impl Kube {
    /// Returns this partial observation with the rest of an earlier one.
    ///
    /// The OSDs in progress are as just read. Deployments and pods of other OSDs are old. So are nodes,
    /// PersistentVolumeClaims and PersistentVolumes, Jobs of Rook, and what Rook skipped.
    #[must_use]
    pub fn completed_by(self, earlier: Self, in_progress: &BTreeSet<OsdId>) -> Self {
        let kube = self.with_others((earlier.daemons, earlier.ambiguities), in_progress);
        Self {
            nodes: earlier.nodes,
            local_volumes: earlier.local_volumes,
            pvcs: earlier.pvcs,
            rotating: earlier.rotating,
            rotations: earlier.rotations,
            rook_prepares: earlier.rook_prepares,
            skipped: earlier.skipped,
            ..kube
        }
    }

    /// Returns this observation of some OSDs with Deployments and pods of the others from an earlier one.
    ///
    /// `read`: OSDs that this observation has, or that have no Deployment.
    pub(super) fn with_others(self, (mut daemons, mut ambiguities): Daemons, read: &BTreeSet<OsdId>) -> Self {
        for osd in read {
            match (self.daemons.get(osd), daemons.get(osd)) {
                (now, before) if now == before => {}
                (Some(daemon), _) => drop(daemons.insert(*osd, daemon.clone())),
                (None, _) => drop(daemons.remove(osd)),
            }
        }
        let is_read = |one: &Ambiguity| {
            let are_known = !one.osds.is_empty() && one.osds.is_subset(read);
            are_known || one.twice.is_some_and(|osd| read.contains(&osd))
        };
        ambiguities.retain(|one| !is_read(one));
        let new: Vec<_> = self.ambiguities.into_iter().filter(|one| !ambiguities.contains(one)).collect();
        ambiguities.extend(new);
        Self { daemons, ambiguities, ..self }
    }
}

/// Deployments of OSDs with their pods, and ambiguities.
pub(super) type Daemons = (Shared<BTreeMap<OsdId, Daemon>>, Vec<Ambiguity>);

impl Ceph {
    /// Returns this partial observation with the rest of an earlier one; `None` if that does not suffice.
    ///
    /// Metadata, usage and dm-crypt keys of the OSDs and the releases are old. If an OSD came up, or a slot
    /// got another OSD, they are new, and everything has to be read.
    #[must_use]
    pub fn completed_by(mut self, earlier: &Self) -> Option<Self> {
        let boot = |slot: &Slot| (slot.fsid, slot.up_from);
        for (osd, slot) in &mut self.slots {
            let before = earlier.slots.get(osd).filter(|before| boot(before) == boot(slot))?;
            slot.metadata.clone_from(&before.metadata);
            (slot.used_bytes, slot.dmcrypt_key) = (before.used_bytes, before.dmcrypt_key);
        }
        self.releases = earlier.releases;
        self.backfill_full.clone_from(&earlier.backfill_full);
        Some(self)
    }

    /// Returns a partial observation of the same osdmap: health and PGs are as just read.
    ///
    /// The rest is shared with this observation, without the answers to questions.
    #[must_use]
    pub fn with(&self, health: BTreeSet<String>, pgs: Shared<BTreeMap<PgId, Pg>>) -> Self {
        Self { health, pgs, ..self.clone() }.unanswered()
    }
}
