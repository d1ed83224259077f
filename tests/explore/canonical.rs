//! The canonical projection of a state makes states that behave alike count as one.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

use chrono::{DateTime, Utc};

use osd_migrate_core::domain::gate;
use osd_migrate_core::domain::ledger::Run;
use osd_migrate_core::domain::next::Next;
use osd_migrate_core::domain::observation::{Daemon, Pg, Slot};
use osd_migrate_core::domain::osd::{Epoch, OsdId};
use osd_migrate_core::domain::shared::Shared;
use osd_migrate_core::sim::{Placement, World};

use super::hashed::{hash_jobs, hash_ledger, passed};
use super::state::State;

/// Bytes that a value feeds to a hasher, hashed in one go: half of a search's time went into small writes.
#[derive(Default)]
struct Bytes(Vec<u8>);

thread_local! {
    /// Bytes of the last state, whose memory the next one uses.
    static BYTES: RefCell<Bytes> = RefCell::default();
}

impl Hasher for Bytes {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        unreachable!("128 bits are asked for")
    }
}

impl State {
    /// Returns a value that is equal for states that behave alike: epochs as ranks, times as deadlines
    /// passed, history dropped.
    ///
    /// The largest parts are read in place, because to clone and flatten them took most of the time of a
    /// search.
    pub(crate) fn canonical(&self) -> u128 {
        let now = self.world.at;
        let mut run = self.ledger.run.clone();
        let mut rest = self.clone();
        rest.flatten_versions(&mut run);
        flatten_run(&mut run, now);
        let frozen = rest.frozen.take();
        rest.drop_hashed();
        BYTES.with_borrow_mut(|bytes| {
            bytes.0.clear();
            Ranks::of(&self.world).hash(&self.world, bytes);
            self.kept.is_some().hash(bytes);
            self.hash_kept(bytes);
            let daemons = &self.world.kube.daemons;
            daemons.iter().for_each(|daemon| hash_daemon(daemon, self.frozen.is_some(), bytes));
            run.hash(bytes);
            hash_ledger(&self.ledger, now, Some(&self.world), bytes);
            hash_jobs(&self.world.kube, now, bytes);
            frozen.is_some().hash(bytes);
            if let Some((next, version, read)) = frozen {
                // It only matters whether the version is the present one.
                (version == self.version, read).hash(bytes);
                hash_frozen(&next, now, bytes);
            }
            rest.hash(bytes);
            twox_hash::XxHash3_128::oneshot(&bytes.0)
        })
    }

    /// Drops the parts that are hashed in place, and those that do not matter.
    fn drop_hashed(&mut self) {
        let World { at, ceph, kube, placements, .. } = &mut self.world;
        // A running Rook updates the status, and an old status says no more than none.
        let is_stopped = kube.running_operator().is_none();
        let recent = kube.rook_checked.filter(|checked| is_stopped && !gate::is_old_status(*checked, *at));
        kube.rook_checked = recent.map(|checked| passed(*at, checked));
        (ceph.slots, ceph.pgs, ceph.epoch) = (Shared::default(), Shared::default(), Epoch(0));
        (kube.daemons, *placements) = (Shared::default(), Shared::default());
        (kube.node_jobs, kube.reports, kube.inventories) =
            (Shared::default(), Shared::default(), Shared::default());
        (self.kept, self.ledger, self.version, *at) = (None, Shared::default(), 1, DateTime::UNIX_EPOCH);
    }

    /// Reduces the CephCluster's versions to the compared facts.
    ///
    /// The facts are whether the version is the one that the fence was set for, and whether Rook has skipped
    /// a later one.
    fn flatten_versions(&mut self, run: &mut Run) {
        let kube = &mut self.world.kube;
        let (present, skipped, after) = (kube.cluster_revision(), kube.skipped, run.fence_after);
        kube.skipped = (skipped < present).then_some(0);
        let is_fenced = kube.fence.is_some();
        kube.fenced_at = kube.fenced_at.and_then(|at| {
            // Without a fence, it only matters whether one was set after the save.
            let was_set = after.is_some_and(|after| at >= after);
            let acknowledged = skipped.is_some_and(|skipped| skipped > at);
            let of_this = u64::from(after.is_none_or(|after| at >= after)) + 2 * u64::from(acknowledged);
            if is_fenced { Some(of_this) } else { was_set.then_some(0) }
        });
        run.fence_after = after.map(|_| 0);
        if let Some((_, _, read)) = &mut self.frozen {
            // A runner that is not frozen late reads it when it resumes.
            let read_later = self.world.read();
            *read = if self.freezes_late { read.clone() } else { read_later };
            read.flatten(&self.world.kube.cluster_version);
        }
        let kube = &mut self.world.kube;
        kube.cluster_version.clear();
        if run.operator.is_some() {
            run.last_operator = None; // it is not asked then
        }
        let was = run.operator.as_mut().or(run.last_operator.as_mut());
        let was = was.map(|was| std::mem::take(&mut was.generation));
        let is_frozen = self.frozen.is_some();
        let kube = &mut self.world.kube;
        if let Some(operator) = &mut kube.operator {
            // Unchanged, scaled by osd-migrate, or changed externally since.
            operator.generation = was.map_or(0, |was| (operator.generation - was).min(2));
        }
        if !is_frozen {
            // The next decision reads it again; only a frozen runner remembers one.
            self.flatten_pdb(run);
        }
    }

    /// Reduces the PodDisruptionBudget's generation to three cases.
    ///
    /// Either osd-migrate limited it and it was not written since, or it is not limited yet, or it was
    /// written externally since.
    fn flatten_pdb(&mut self, run: &mut Run) {
        if run.pdb.is_some() {
            run.last_pdb = None; // it is not asked then
        }
        let was = run.pdb.as_mut().or(run.last_pdb.as_mut());
        let (uid, was) = was.map_or((None, None), |was| {
            (was.uid.replace("saved".to_owned()), was.generation.as_mut().map(std::mem::take))
        });
        self.world.pdbs = 0;
        if let Some(pdb) = &mut self.world.kube.osd_pdb {
            // The PodDisruptionBudget that was saved, or another one.
            let is_it = uid.is_none_or(|uid| uid == pdb.uid);
            let which = if is_it { "saved" } else { "another" };
            which.clone_into(&mut pdb.uid);
            pdb.generation = was.map_or(0, |was| (pdb.generation - was).clamp(-1, 2));
        }
        if let Some(uid) = &mut self.world.kube.own_pdb {
            uid.clear();
        }
    }
}

/// Hashes what a frozen runner has decided.
fn hash_frozen(next: &Next, now: DateTime<Utc>, bytes: &mut Bytes) {
    let Next::Save { ledger, osd, why } = next else {
        next.hash(bytes);
        return;
    };
    let mut run = ledger.run.clone();
    flatten_run(&mut run, now);
    ("Save", run, osd, why).hash(bytes);
    hash_ledger(ledger, now, None, bytes);
}

/// Epochs of slots, PGs and placements by their order, in which alone they matter.
struct Ranks(BTreeMap<Epoch, u64>);

impl Ranks {
    fn of(world: &World) -> Self {
        let mut epochs: BTreeSet<Epoch> = BTreeSet::new();
        epochs.extend(world.ceph.slots.values().flat_map(|slot| [slot.up_from, slot.down_at]));
        epochs.extend(world.ceph.pgs.values().map(|pg| pg.reported_epoch));
        epochs.extend(world.placements.values().map(|placement| placement.changed));
        // 0 stays 0: an id that was never up.
        epochs.remove(&Epoch(0));
        Self(epochs.into_iter().zip(1..).collect())
    }

    fn rank(&self, epoch: Epoch) -> u64 {
        self.0.get(&epoch).copied().unwrap_or(0)
    }

    fn hash(&self, world: &World, bytes: &mut Bytes) {
        let sizes = [world.ceph.slots.len(), world.ceph.pgs.len(), world.placements.len()];
        (sizes, world.kube.daemons.len()).hash(bytes);
        for (osd, slot) in &world.ceph.slots {
            osd.hash(bytes);
            self.hash_slot(slot, world.at, bytes);
        }
        for (id, pg) in &world.ceph.pgs {
            id.hash(bytes);
            self.hash_pg(pg, bytes);
        }
        for (id, placement) in &world.placements {
            id.hash(bytes);
            self.hash_placement(placement, bytes);
        }
    }

    fn hash_slot(&self, slot: &Slot, now: DateTime<Utc>, bytes: &mut Bytes) {
        let Slot {
            state,
            fsid,
            up,
            is_in,
            reweight,
            primary_affinity,
            up_from,
            down_at,
            noout,
            noin,
            nodown,
            noup,
            auto_out,
            down_since,
            crush,
            metadata,
            used_bytes,
            dmcrypt_key,
        } = slot;
        (state, fsid, up, is_in, reweight, primary_affinity).hash(bytes);
        (self.rank(*up_from), self.rank(*down_at)).hash(bytes);
        down_since.filter(|_| !up).map(|at| passed(now, at)).hash(bytes);
        (noout, noin, nodown, noup, auto_out, crush, metadata, used_bytes, dmcrypt_key).hash(bytes);
    }

    fn hash_pg(&self, pg: &Pg, bytes: &mut Bytes) {
        let Pg { pool, state, up, acting, reported_epoch, objects, degraded, misplaced, bytes: size } = pg;
        (pool, state, up, acting, self.rank(*reported_epoch)).hash(bytes);
        (objects, degraded, misplaced, size).hash(bytes);
    }

    fn hash_placement(&self, placement: &Placement, bytes: &mut Bytes) {
        let Placement { pool, home, spare, complete, peered, changed, objects, bytes: size } = placement;
        (pool, home, spare, complete, peered, self.rank(*changed), objects, size).hash(bytes);
    }
}

/// Hashes an OSD's Deployment.
///
/// The generation counts only if a frozen runner remembers one, because the next decision reads it again.
fn hash_daemon((osd, daemon): (&OsdId, &Daemon), is_frozen: bool, bytes: &mut Bytes) {
    let Daemon {
        name,
        uid,
        generation,
        replicas,
        stopped_by,
        fsid,
        node,
        image,
        activates,
        mode,
        mounts_device,
        data_dir,
        on_pvcs,
        opens_encryption,
        encrypted_to_rook,
        managed_externally,
        tolerations,
        rolled_out,
        names_topology,
        replica_failure,
        pods,
    } = daemon;
    (osd, name, uid, is_frozen.then_some(generation), replicas, stopped_by, fsid, node).hash(bytes);
    (image, activates, mode, mounts_device, data_dir, on_pvcs, opens_encryption).hash(bytes);
    (encrypted_to_rook, managed_externally, tolerations, rolled_out, names_topology).hash(bytes);
    (replica_failure, pods).hash(bytes);
}

/// Flattens the times of a run.
fn flatten_run(run: &mut Run, now: DateTime<Utc>) {
    for was in run.operator.iter_mut().chain(&mut run.last_operator) {
        was.since = was.since.map(|at| passed(now, at));
    }
    if let Some(order) = &mut run.fence_order {
        order.since = DateTime::UNIX_EPOCH;
    }
    let waits = [&mut run.skipping, &mut run.waiting_for_node, &mut run.waiting_to_restart];
    for skipping in waits.into_iter().flatten() {
        skipping.since = passed(skipping.held_at.unwrap_or(now), skipping.since);
        skipping.held_at = skipping.held_at.map(|_| DateTime::UNIX_EPOCH);
    }
    if let Some(wait) = &mut run.fence_wait {
        wait.since = passed(wait.removed_at.unwrap_or(now), wait.since);
        wait.removed_at = wait.removed_at.map(|_| DateTime::UNIX_EPOCH);
    }
    if let Some(tried) = &mut run.tried {
        tried.kinds.values_mut().for_each(|at| *at = passed(now, *at));
    }
}
