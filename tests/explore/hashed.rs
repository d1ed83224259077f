//! Parts of a state with many times, hashed where they are.
//!
//! To clone and flatten them took a sixth of the time of a search. Each function names all fields, so that a
//! new field does not compile before someone decides about it.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use chrono::{DateTime, TimeDelta, Utc};

use osd_migrate_core::domain::inspection::NodeReport;
use osd_migrate_core::domain::inventory::InventoryReport;
use osd_migrate_core::domain::ledger::{Emptying, Ledger, LostUpmaps, NodeWork, Quarantine, Record};
use osd_migrate_core::domain::observation::{Inventory, Kube, NodeJob};
use osd_migrate_core::domain::osd::Epoch;
use osd_migrate_core::domain::plan::UNHEALED_MINUTES;
use osd_migrate_core::sim::World;

/// Deadlines in the domain, in minutes: 2 and 8 between attempts of an agent, 15 for `noout` and a start,
/// twice that for a silent agent, 60 for an OSD that does not become empty.
const DEADLINES: [i64; 8] = [1, 2, 3, 8, 10, 15, 30, 60];

/// Returns the number of deadlines that have passed since a time, as a time.
pub(super) fn passed(now: DateTime<Utc>, at: DateTime<Utc>) -> DateTime<Utc> {
    let minutes = (now - at).num_minutes();
    let class: i64 = DEADLINES.iter().map(|deadline| i64::from(minutes >= *deadline)).sum();
    DateTime::UNIX_EPOCH + TimeDelta::seconds(class)
}

/// Hashes the entries of a map, and their number.
fn hash_map<K: Hash, V, H: Hasher>(map: &BTreeMap<K, V>, hasher: &mut H, hash: impl Fn(&V, &mut H)) {
    map.len().hash(hasher);
    for (key, value) in map {
        key.hash(hasher);
        hash(value, hasher);
    }
}

/// Hashes the records of a ledger and its nodes, without its run.
///
/// In the ledger of a world, it only matters whether an epoch is the present one.
pub(super) fn hash_ledger(
    ledger: &Ledger,
    now: DateTime<Utc>,
    world: Option<&World>,
    hasher: &mut impl Hasher,
) {
    let Ledger { run: _, records, nodes } = ledger;
    hash_map(records, hasher, |record, hasher| hash_record(record, now, world, hasher));
    hash_map(nodes, hasher, |work, hasher| hash_work(work, now, hasher));
}

fn hash_record(record: &Record, now: DateTime<Utc>, world: Option<&World>, hasher: &mut impl Hasher) {
    let Record {
        id,
        osd,
        node,
        class,
        strategy,
        target,
        db,
        pvcs,
        old,
        deployment,
        crush,
        former_weight,
        reweight,
        primary_affinity,
        upmaps,
        used_bytes,
        former_flags,
        evidence,
        empty,
        pgs,
        stop_intended_at,
        down_since,
        noout_lifted,
        blocked_since,
        saved_at,
        restarts,
        stop_reverted,
        wipe_blocked_since,
        attempt,
        issued,
        new,
        left_to_rook_since,
        up_seen,
        milestones: _,
        lost_upmaps,
        retried,
        pod_restarts,
        closing,
        quarantine,
    } = record;
    let since = |at: &Option<DateTime<Utc>>| at.map(|at| passed(now, at));
    (id, osd, node, class, strategy, target, db, pvcs, old, deployment, crush).hash(hasher);
    (former_weight, reweight, primary_affinity, upmaps, used_bytes, former_flags).hash(hasher);
    (evidence, pgs, noout_lifted, restarts, stop_reverted).hash(hasher);
    (attempt, issued, new, retried, pod_restarts, closing).hash(hasher);
    [stop_intended_at, down_since, blocked_since, saved_at].map(since).hash(hasher);
    [wipe_blocked_since, left_to_rook_since].map(since).hash(hasher);
    empty.as_ref().map(|empty| hash_emptying(empty, now, hasher)).hash(hasher);
    // Less than a minute counts as none: the first minute passes a deadline of seconds.
    let is_of_slot = |epoch: Epoch| match world {
        Some(world) => u64::from(world.ceph.slots.get(osd).is_some_and(|slot| slot.up_from == epoch)),
        None => epoch.0,
    };
    up_seen.map(|(epoch, at)| (is_of_slot(epoch), passed(now, at))).hash(hasher);
    let tried = lost_upmaps.as_ref().map(|LostUpmaps { tries, epoch }| {
        (tries, world.map_or(epoch.0, |world| u64::from(*epoch == world.ceph.epoch)))
    });
    tried.hash(hasher);
    let is_long_ago = |since: DateTime<Utc>| (now - since).num_minutes() >= UNHEALED_MINUTES;
    quarantine.as_ref().map(|Quarantine { why, since }| (why, is_long_ago(*since))).hash(hasher);
}

fn hash_emptying(empty: &Emptying, now: DateTime<Utc>, hasher: &mut impl Hasher) {
    let Emptying { pgs, bytes, intended_at, out_since, least, least_pgs, emptied_at, went_down_at } = empty;
    (pgs, bytes, least_pgs, least.map(|(bytes, at)| (bytes, passed(now, at)))).hash(hasher);
    [intended_at, out_since, emptied_at, went_down_at].map(|at| at.map(|at| passed(now, at))).hash(hasher);
}

fn hash_work(work: &NodeWork, now: DateTime<Utc>, hasher: &mut impl Hasher) {
    let NodeWork {
        status,
        since: _,
        message,
        run,
        inventoried_by,
        away_since,
        inventory,
        failures,
        done,
        left,
        directories,
        databases,
        problems,
    } = work;
    (status, message, run, inventoried_by, inventory, failures).hash(hasher);
    away_since.map(|at| passed(now, at)).hash(hasher);
    (done, left, directories, databases, problems).hash(hasher);
}

/// Hashes the Jobs of a cluster and their reports.
pub(super) fn hash_jobs(kube: &Kube, now: DateTime<Utc>, hasher: &mut impl Hasher) {
    kube.node_jobs.len().hash(hasher);
    for job in &kube.node_jobs {
        let NodeJob { name, uid, osd, record, attempt, task, state, created_at, heartbeat_at, trouble } = job;
        (name, uid, osd, record, attempt, task, state, trouble).hash(hasher);
        (passed(now, *created_at), heartbeat_at.map(|at| passed(now, at))).hash(hasher);
    }
    hash_map(&kube.reports, hasher, |report, hasher| {
        let NodeReport {
            record,
            attempt,
            osd,
            task,
            began_at: _,
            ended_at,
            steps,
            issued,
            inspection,
            left,
            problem,
        } = report;
        (record, attempt, osd, task, passed(now, *ended_at)).hash(hasher);
        (steps, issued, inspection, left, problem).hash(hasher);
    });
    hash_map(&kube.inventories, hasher, |inventory, hasher| {
        let Inventory { uid, node, run, number, state, created_at, heartbeat_at, trouble, report } =
            inventory;
        (uid, node, run, number, state, heartbeat_at, trouble, passed(now, *created_at)).hash(hasher);
        report.is_some().hash(hasher);
        if let Some(report) = report {
            let InventoryReport { run, number, node, began_at: _, ended_at: _, steps, inventory, problem } =
                report;
            (run, number, node, steps, inventory, problem).hash(hasher);
        }
    });
}
