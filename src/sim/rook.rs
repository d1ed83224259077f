//! Rook's operator, if one is running: what its reconcile does to OSDs (1.20), and when.

use std::fmt;

use chrono::{DateTime, Utc};

use crate::domain::inspection::Content;
use crate::domain::observation::{Operator, Slot, SlotState};
use crate::domain::osd::{OsdFsid, OsdId, Weight};
use crate::sim::kube::after;
use crate::sim::world::World;

/// Action of Rook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rook {
    /// Rook, without a fence, scales an OSD's Deployment to 1.
    Starts(OsdId),
    /// Rook, without a fence, creates the Deployment of an OSD that its prepare Job finds on a disk and that
    /// has none.
    Hydrates(OsdId),
    /// Rook, without a fence, migrates an OSD itself, if the CephCluster confirms it and all PGs are clean.
    Migrates(OsdId),
    /// Rook, without a fence, resets the CRUSH weight of an OSD that has weight 0
    /// (`allowOsdCrushWeightUpdate`, `ResizeOsdCrushWeight`).
    ResetsWeight(OsdId),
    /// Rook reads a CephCluster with a fence, skips it and reports that.
    Skips,
    /// Rook's drain controller, which knows no fence, reads the state of the OSDs and adjusts its
    /// PodDisruptionBudget.
    Pdbs,
}

impl fmt::Display for Rook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starts(osd) => write!(f, "Rook scales the Deployment of {osd} to 1"),
            Self::Hydrates(osd) => write!(f, "Rook finds {osd} on its disk and creates its Deployment"),
            Self::Migrates(osd) => write!(f, "Rook migrates {osd} itself"),
            Self::ResetsWeight(osd) => write!(f, "Rook resets the CRUSH weight of {osd}"),
            Self::Skips => f.write_str("Rook skips the fenced CephCluster"),
            Self::Pdbs => f.write_str("Rook updates its PodDisruptionBudgets"),
        }
    }
}

impl World {
    /// Returns what Rook can do now.
    pub(super) fn rook_can(&self) -> Vec<Rook> {
        let mut found = Vec::new();
        if self.can_skip() {
            found.push(Rook::Skips);
        }
        let pdb = self.kube.osd_pdb.as_ref().map(|pdb| pdb.max_unavailable);
        if self.drains_due && self.kube.running_operator().is_some() && self.pdb_of_rook() != pdb {
            found.push(Rook::Pdbs);
        }
        if self.reconciling {
            let stopped = self.kube.daemons.iter().filter(|(_, daemon)| daemon.replicas == 0);
            found.extend(stopped.map(|(osd, _)| Rook::Starts(*osd)));
            found.extend(self.undeployed().map(Rook::Hydrates));
            found.extend(self.rook_would_migrate().map(Rook::Migrates));
            found.extend(self.weightless().map(Rook::ResetsWeight));
        }
        found
    }

    pub(super) fn rook_does(&mut self, what: Rook) {
        match what {
            Rook::Starts(osd) => self.scale_keeping_mark(osd, 1),
            Rook::Hydrates(osd) => self.rook_deploys(osd),
            Rook::Migrates(osd) => self.rook_migrates(osd),
            Rook::ResetsWeight(osd) => self.crush_reweight(osd, Weight::ONE),
            Rook::Skips => self.rook_skips(),
            Rook::Pdbs => self.rook_reconciles_pdb(),
        }
    }

    /// Scales Rook's operator to that many replicas.
    ///
    /// A reconcile in progress of the former operator ends with it.
    pub(super) fn run_operator(&mut self, replicas: u32) {
        self.kube.rook_checked = self.checked_by_rook();
        if let Some(operator) = &mut self.kube.operator {
            (operator.replicas, operator.pods) = (replicas, replicas);
            operator.generation += 1;
        }
        (self.reconciling, self.scaled_by_osd_migrate, self.drains_due) = (false, false, replicas > 0);
        self.rook_wakes();
    }

    /// Returns when Rook last wrote the status of Ceph: now, if it is running (it does so once a minute).
    pub(super) fn checked_by_rook(&self) -> Option<DateTime<Utc>> {
        self.kube.running_operator().map_or(self.kube.rook_checked, |_| Some(self.at))
    }

    /// Lets a running Rook start to reconcile, unless there is a fence that it honours.
    pub(super) fn rook_wakes(&mut self) {
        let ignores = |operator: &Operator| self.kube.fence.is_none() || !operator.honours_fence;
        if self.kube.running_operator().is_some_and(ignores) {
            self.reconciling = true;
        }
    }

    /// Ends the reconcile in progress: Rook sees the fence and reports that.
    ///
    /// This is the effect of `Rook::Skips`.
    fn rook_skips(&mut self) {
        self.reconciling = false;
        self.kube.skipped = self.kube.cluster_revision();
    }

    pub(super) fn is_whole(&self) -> bool {
        let is_whole =
            |pg| self.complete_set(pg).len() == self.placements.get(pg).map_or(0, |p| p.home.len());
        self.placements.keys().all(is_whole)
    }

    /// Returns the OSDs of this cluster that are complete on a disk, whose slot belongs to them and is not
    /// destroyed, and that have no Deployment (1.20.6: ids that `osd tree` shows as destroyed are omitted).
    fn undeployed(&self) -> impl Iterator<Item = OsdId> {
        let is_found = |slot: &Slot| {
            let disk = slot.fsid.and_then(|fsid| self.disk_of(fsid)).map(|(_, disk)| &disk.content);
            matches!(disk, Some(Content::Bluestore { finished: true, .. }))
        };
        let is_registered = |slot: &Slot| slot.state != SlotState::Destroyed;
        let bare = self.ceph.slots.iter().filter(|(osd, _)| !self.kube.daemons.contains_key(osd));
        bare.filter(move |(_, slot)| is_registered(slot) && is_found(slot)).map(|(osd, _)| *osd)
    }

    /// Returns the OSDs whose CRUSH weight Rook would reset.
    ///
    /// Any weight differs from 0 by more than its limit.
    fn weightless(&self) -> impl Iterator<Item = OsdId> {
        let resets = self.kube.declaration.resets_weights;
        let has_none = |slot: &Slot| slot.crush.is_some() && !slot.has_weight();
        let exists = |slot: &Slot| slot.state == SlotState::Exists;
        let slots = self.ceph.slots.iter().filter(move |_| resets);
        slots.filter(move |(_, slot)| exists(slot) && has_none(slot)).map(|(osd, _)| *osd)
    }

    fn rook_deploys(&mut self, osd: OsdId) {
        let fsid = self.ceph.slots.get(&osd).and_then(|slot| slot.fsid);
        let node = fsid.and_then(|fsid| self.disk_of(fsid)).map(|(_, disk)| disk.node.clone());
        if let Some(node) = node {
            self.write_deployment(osd, fsid, &node, true);
        }
    }

    /// Returns whether Rook honours the present fence, and has not reported that yet.
    fn can_skip(&self) -> bool {
        self.kube.fenceable_operator().is_some()
            && self.kube.fence.is_some()
            && self.kube.skipped < self.kube.cluster_revision()
    }

    /// Returns the OSD that Rook's own migration takes next: any that is up and encrypted, while all data is
    /// in its place (1.20.6, `startOSDMigration`: `waitForHealthyPGs`, then one of a Go map;
    /// `migrateForEncryption`).
    fn rook_would_migrate(&self) -> Option<OsdId> {
        let confirmed = self.kube.declaration.confirmed && self.kube.fenceable_operator().is_some();
        if !confirmed || !self.is_whole() {
            return None;
        }
        let differs = |fsid: &OsdFsid| self.dmcrypt.contains_key(fsid);
        let mut up = self.ceph.slots.iter().filter(|(_, slot)| slot.up);
        up.find(|(_, slot)| slot.fsid.is_some_and(|fsid| differs(&fsid))).map(|(osd, _)| *osd)
    }

    /// Migrates an OSD in one step: Deployment deleted, slot destroyed, disk zapped, prepared with the same
    /// id, Deployment created.
    ///
    /// In between no other client can do anything relevant: the OSD is down, and its PGs are not clean.
    fn rook_migrates(&mut self, osd: OsdId) {
        let old = self.ceph.slots.get(&osd).and_then(|slot| slot.fsid);
        let disk =
            old.and_then(|fsid| self.disk_of(fsid)).map(|(name, disk)| (name.clone(), disk.node.clone()));
        let Some((name, node)) = disk else { return };
        let osd_fsid = self.new_fsid(osd);
        self.osd_down(osd);
        self.osd_destroy(osd).ok();
        if let Some(disk) = self.disks.get_mut(&name) {
            let (whoami, cluster) = (Some(osd), Some(self.ceph.fsid));
            disk.content =
                Content::Bluestore { osd_fsid, whoami, cluster, finished: true, activatable: true };
            disk.proof = None;
        }
        if let Some(fsid) = old {
            self.forget_store(fsid);
        }
        self.osd_new(osd_fsid, osd, true).ok();
        self.write_deployment(osd, Some(osd_fsid), &node, true);
        if let Some(daemon) = self.kube.daemons.get_mut(&osd) {
            daemon.uid = after(&daemon.uid);
            daemon.pods.clear();
        }
    }
}
