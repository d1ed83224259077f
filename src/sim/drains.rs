//! PodDisruptionBudgets of the OSDs: Rook's, as written by its drain controller and by osd-migrate, and that
//! of osd-migrate.

use std::collections::BTreeSet;

use crate::domain::expect;
use crate::domain::inspection::RecordId;
use crate::domain::observation::OsdPdb;
use crate::domain::osd::OsdId;
use crate::sim::acts::{Done, refuse};
use crate::sim::world::{Effect, World};

impl World {
    /// Returns how many OSDs Rook lets a drain evict; none if Rook has no such PodDisruptionBudget.
    ///
    /// Rook deletes it while an OSD is down, by its Deployment, and PGs are not clean. Rook recreates it when
    /// the PGs are clean again (1.20.6, `reconcilePDBsForOSDs`).
    pub(super) fn pdb_of_rook(&self) -> Option<u32> {
        let is_up = |osd: &OsdId| self.ceph.slots.get(osd).is_some_and(|slot| slot.up);
        let down = !self.kube.daemons.keys().all(is_up);
        match (down, self.is_whole()) {
            (true, false) => None,
            (false, false) => self.kube.osd_pdb.as_ref().map(|_| 1),
            (_, true) => Some(1),
        }
    }

    /// Reconciles Rook's PodDisruptionBudget.
    ///
    /// If it is absent, Rook reconciles again soon.
    pub(super) fn rook_reconciles_pdb(&mut self) {
        let generation = self.kube.osd_pdb.as_ref().map_or(0, |pdb| pdb.generation);
        match self.pdb_of_rook() {
            Some(max_unavailable) => self.write_pdb(max_unavailable, generation + 1),
            None => self.kube.osd_pdb = None,
        }
        self.drains_due = self.kube.osd_pdb.is_none();
    }

    /// Writes the OSDs' PodDisruptionBudget, or creates it with a uid that none had before.
    pub(super) fn write_pdb(&mut self, max_unavailable: u32, generation: i64) {
        let left_out = BTreeSet::new();
        let found = self.kube.osd_pdb.as_ref().map(|pdb| pdb.uid.clone());
        self.pdbs += u32::from(found.is_none());
        let uid = found.unwrap_or_else(|| format!("rooks-{}", self.pdbs));
        self.kube.osd_pdb = Some(OsdPdb { max_unavailable, left_out, uid, generation });
    }

    pub(super) fn limit_drains(&mut self, expected: (&str, i64), max_unavailable: u32) -> Done {
        let Some(pdb) = &self.kube.osd_pdb else { return refuse("there is no PodDisruptionBudget") };
        if !expect::unchanged_operator((&pdb.uid, pdb.generation), expected) {
            return refuse("the PodDisruptionBudget changed since it was observed");
        }
        let generation = pdb.generation + i64::from(pdb.max_unavailable != max_unavailable);
        self.write_pdb(max_unavailable, generation);
        // The PodDisruptionBudget allows an eviction, and its old status allows none: Rook's controller waits
        // for that.
        self.drains_due |= max_unavailable == 1 && self.kube.running_operator().is_some();
        Ok(vec![Effect::Pdb(max_unavailable)])
    }

    pub(super) fn create_pdb(&mut self, osd: OsdId, record: &RecordId) -> Done {
        self.expect_open(osd, record)?;
        if self.rejects_pdbs {
            self.kube.pdb_rejected = Some("by a policy".to_owned());
            return refuse("a policy forbids it");
        }
        if self.kube.own_pdb.is_none() {
            self.pdbs += 1;
            self.kube.own_pdb = Some(self.pdbs.to_string());
        }
        Ok(vec![Effect::Small(osd)])
    }

    pub(super) fn delete_pdb(&mut self, uid: &str) -> Done {
        if self.kube.own_pdb.as_deref().is_some_and(|found| found != uid) {
            return refuse("the PodDisruptionBudget was recreated");
        }
        self.kube.own_pdb = None;
        Ok(Vec::new())
    }
}
