//! The promises for an OSD that is removed by a request, or by a switch of the run (P13).

use std::collections::BTreeSet;
use std::path::Path;

use osd_migrate_core::domain::act::{Act, NodeAct};
use osd_migrate_core::domain::inspection::{Content, NodeTask};
use osd_migrate_core::domain::ledger::Record;
use osd_migrate_core::domain::next::Next;
use osd_migrate_core::domain::observation::{Emptiable, Slot, SlotState};
use osd_migrate_core::domain::osd::{NodeName, OsdId, PgId, Weight};
use osd_migrate_core::domain::policy::Policy;
use osd_migrate_core::domain::provision;
use osd_migrate_core::domain::removal::{Cause, DiskAfter};
use osd_migrate_core::sim::{Disk, World, kernel_disk};

use super::super::state::{Done, State};
use super::{Broken, down_by_osd_migrate, in_place};

/// Returns the record of an OSD, if the record removes it.
pub(super) fn record_of(state: &State, osd: OsdId) -> Option<&Record> {
    state.ledger.records.get(&osd).filter(|record| record.is_removal())
}

fn disk_after(record: &Record) -> DiskAfter {
    record.removal().map_or_else(DiskAfter::default, |removal| removal.disk)
}

/// Returns a PG without all of its replicas on other OSDs.
fn lacks_elsewhere(world: &World, osd: OsdId) -> Option<&PgId> {
    let has_all = |pg: &PgId, size: usize| {
        world.complete_set(pg).into_iter().filter(|other| *other != osd).count() >= size
    };
    world.placements.iter().find(|(pg, placement)| !has_all(pg, placement.home.len())).map(|(pg, _)| pg)
}

/// Returns whether Rook would create an OSD again on what is left of this one: on a disk that the CephCluster
/// selects, or in a directory that it declares.
fn is_used_again(world: &World, record: &Record) -> bool {
    if let Some(path) = record.removed_directory() {
        let declared = &world.kube.declaration.storage.directories;
        return declared.iter().any(|declared| Path::new(path).starts_with(declared));
    }
    let seen = world.observe(|_| osd_migrate_core::domain::plan::Questions::default());
    let is_selected = |(name, disk): (&String, &Disk)| {
        provision::selects(&record.node, &kernel_disk(name, disk), &seen).is_some()
    };
    disk_after(record) != DiskAfter::Mark && world.disk_of(record.old).is_some_and(is_selected)
}

/// Checks an OSD whose CRUSH weight was set to 0: a person wants that, nobody undoes it, and its disk does
/// not become an OSD again.
///
/// (A runner that slept decided it when that was so.)
pub(super) fn dropped(before: &State, record: &Record) -> Option<Broken> {
    let (world, osd) = (&before.world, record.osd);
    let found = world.ceph.slots.get(&osd)?.crush.as_ref().map(|item| item.weight);
    if found != Some(record.crush.weight) {
        return Some(format!(
            "P9: the CRUSH weight of {osd} was set to 0, and {found:?} is not in the ledger"
        ));
    }
    let resets = world.kube.declaration.resets_weights && world.kube.running_operator().is_some();
    let why = [
        (!is_wanted(before, record), "and nobody wants its removal"),
        (resets, "and Rook resets it"),
        (is_used_again(world, record), "and its place would get an OSD again"),
    ];
    let why = why.iter().find(|(is_so, _)| *is_so && !before.thaws);
    why.map(|(_, why)| format!("P13: the CRUSH weight of {osd} was set to 0, {why}"))
}

fn is_requested(world: &World, record: &Record) -> bool {
    world.kube.requests.of(record.osd, record.old).is_some()
}

/// Returns whether the removal is requested, or what a switch of the run asks for is true.
fn is_wanted(state: &State, record: &Record) -> bool {
    let world = &state.world;
    let by_switch = match record.removal().map(|removal| removal.cause) {
        Some(Cause::Directory) => {
            let is_confirmed = state.by_flag || world.kube.declaration.confirmed;
            is_confirmed && !has_a_disk(world, &record.node)
        }
        Some(Cause::Out) => is_out(world, record.osd),
        Some(Cause::Request) | None => false,
    };
    is_requested(world, record) || by_switch
}

/// Returns whether a node has a blank disk.
fn has_a_disk(world: &World, node: &NodeName) -> bool {
    world.disks.values().any(|disk| disk.node == *node && disk.content == Content::Blank)
}

fn is_out(world: &World, osd: OsdId) -> bool {
    world.ceph.slots.get(&osd).is_some_and(|slot| !slot.up && !slot.is_in)
}

/// Checks a removal that begins without a request.
pub(super) fn begun(world: &World, record: &Record, policy: &Policy) -> Option<Broken> {
    let osd = record.osd;
    let is_by_switch = match record.removal()?.cause {
        Cause::Request => is_requested(world, record),
        Cause::Directory => {
            let is_confirmed = policy.is_confirmed(&world.kube.declaration);
            policy.drop_directories && is_confirmed && !has_a_disk(world, &record.node)
        }
        Cause::Out => {
            let since = world.ceph.slots.get(&osd).and_then(|slot| slot.down_since);
            let is_long = policy.remove_out.zip(since).is_some_and(|(after, at)| world.at - at >= after);
            is_out(world, osd) && is_long
        }
    };
    (!is_by_switch).then(|| format!("P13: the removal of {osd} begins, and nothing asks for it"))
}

/// Checks the stop of an OSD that is removed: it is requested, and no PG needs the OSD.
///
/// OSDs that leave together are stopped one after the other.
pub(super) fn stopped(before: &State, record: &Record) -> Option<Broken> {
    let osd = record.osd;
    let is_other = |other: &OsdId| *other != osd && record_of(before, *other).is_some();
    if let Some(other) = down_by_osd_migrate(before).into_iter().find(is_other).filter(|_| !before.thaws) {
        return Some(format!("P1: {osd} was stopped while {other} was down, which leaves, too"));
    }
    if !is_wanted(before, record) && !before.thaws {
        return Some(format!("P13: {osd} was stopped, and nobody wants its removal"));
    }
    still_needed(before, osd, "stopped")
}

/// Checks that all PGs have all their replicas without the OSD.
pub(super) fn still_needed(before: &State, osd: OsdId, what: &str) -> Option<Broken> {
    let pg = lacks_elsewhere(&before.world, osd)?;
    Some(format!("P13: {osd} was {what} while PG {pg} lacks a replica elsewhere"))
}

/// Checks a purge: only the destroyed slot of an OSD that is removed, and after its disk.
pub(super) fn purged(before: &State, record: &Record) -> Option<Broken> {
    let (world, osd) = (&before.world, record.osd);
    let slot = world.ceph.slots.get(&osd)?;
    if slot.up || slot.state != SlotState::Destroyed {
        return Some(format!("P4: {osd} was purged, and its slot was not destroyed: {slot:?}"));
    }
    let is_left = record.removal().is_some_and(|removal| removal.left.is_some());
    let is_forgotten =
        disk_after(record) != DiskAfter::Leave && !is_left && world.disk_of(record.old).is_some();
    is_forgotten.then(|| format!("P13: {osd} was purged, and its disk was neither wiped nor reported"))
}

/// Checks what a runner did: no disk is given up that is to be left, or while a replica is missing.
pub(super) fn allowed(before: &State, next: &Next, done: &Done) -> Option<Broken> {
    let Next::Do(Act::Node(NodeAct::Agent { request, .. })) = next else { return None };
    let ends_data =
        request.task == NodeTask::Wipe || (request.task == NodeTask::Clear && request.after.is_some());
    if !ends_data || done.refused.is_some() {
        return None;
    }
    let osd = request.osd;
    let Some(record) = record_of(before, osd) else {
        let is_new = !before.world.kube.node_jobs.iter().any(|job| job.record == request.record);
        return (is_new && !before.thaws)
            .then(|| format!("P5: an agent is to wipe the disk of {osd} without a record"));
    };
    let is_there = |job: &osd_migrate_core::domain::observation::NodeJob| {
        (&job.record, job.attempt, job.task) == (&request.record, request.attempt, request.task)
    };
    if before.world.kube.node_jobs.iter().any(is_there) {
        return None;
    }
    let saved = (record.attempt.number, record.attempt.task);
    if saved != (request.attempt, request.task) && !before.thaws {
        return Some(format!("P5: an agent was created for {osd}, but its attempt is not the saved one"));
    }
    if disk_after(record) == DiskAfter::Leave {
        return Some(format!("P13: the disk of {osd} is to be wiped, but is to be left as it is"));
    }
    in_place::surroundings(before, "wipe", osd).or_else(|| still_needed(before, osd, "wiped"))
}

/// Checks a closed record of an OSD that is gone: nothing of it is left.
pub(super) fn closed(record: &Record, state: &State) -> Option<Broken> {
    let (world, osd) = (&state.world, record.osd);
    if world.ceph.slots.contains_key(&osd) {
        return None;
    }
    // Purged by a person before osd-migrate did anything.
    record.stop_intended_at?;
    if world.kube.daemons.contains_key(&osd) {
        return Some(format!("P13: {osd} is removed, and its Deployment is left"));
    }
    is_requested(world, record).then(|| format!("P13: {osd} is removed, and the request for it is left"))
}

/// Checks the end of a run: no OSD has weight 0 because of osd-migrate, and each request was fulfilled.
pub(super) fn at_the_end(state: &State, faults: bool) -> Option<Broken> {
    let is_weightless = |slot: &Slot| slot.crush.as_ref().is_some_and(|item| item.weight == Weight(0));
    let left = state.world.ceph.slots.iter().find(|(_, slot)| slot.up && is_weightless(slot));
    if let Some((osd, _)) = left {
        return Some(format!("P9: {osd} keeps the CRUSH weight 0"));
    }
    if faults {
        return None;
    }
    let request = state.world.kube.requests.removals.keys().next();
    request.map(|osd| format!("nothing went wrong, and {osd} is not removed"))
}

/// Returns the OSDs that are to be removed, were not started, and have their data elsewhere.
pub(super) fn undone(state: &State, policy: &Policy) -> BTreeSet<OsdId> {
    let (world, ledger) = (&state.world, &state.ledger);
    let kube = &world.kube;
    if !policy.removes() || kube.declaration.resets_weights {
        return BTreeSet::new();
    }
    let serves = |osd: &OsdId, fsid| {
        world.ceph.slots.get(osd).is_some_and(|slot| slot.up && slot.fsid == Some(fsid) && slot.has_weight())
            && kube.daemons.get(osd).is_some_and(|daemon| daemon.replicas > 0)
    };
    let requests = kube.requests.removals.iter().filter(|(osd, request)| serves(osd, request.fsid));
    let by_switch = world.ceph.slots.keys().copied().filter(|osd| is_due_by_switch(world, *osd, policy));
    let due = requests.map(|(osd, _)| *osd).chain(by_switch).filter(|osd| policy.names(*osd));
    due.filter(|osd| !ledger.records.contains_key(osd) && ledger.refused(*osd, &policy.run).is_none())
        .filter(|osd| matches!(world.removable(&[*osd].into()), Emptiable::Yes { .. }))
        .chain(dead_in_quarantine(state).filter(|osd| policy.names(*osd)))
        .collect()
}

/// Returns the quarantined OSDs that are out and destroyed, or whose new daemon never comes up, and whose
/// removal is requested.
fn dead_in_quarantine(state: &State) -> impl Iterator<Item = OsdId> {
    let world = &state.world;
    let dead = |record: &Record| match world.ceph.slots.get(&record.osd)? {
        slot if slot.is_in || slot.up => None,
        slot if slot.state == SlotState::Destroyed => Some(record.old),
        slot if world.noise.init_fails.contains(&record.osd) => {
            slot.fsid.filter(|fsid| record.is_registered_as(*fsid))
        }
        _ => None,
    };
    let is_requested = |osd, fsid| world.kube.requests.of(osd, fsid).is_some();
    let due = move |record: &&Record| {
        dead(record).is_some_and(|fsid| is_requested(record.osd, fsid)) && !record.is_removal()
    };
    state.ledger.quarantined().filter(due).map(|record| record.osd)
}

/// Returns whether a switch of the run asks for the removal of an OSD.
fn is_due_by_switch(world: &World, osd: OsdId, policy: &Policy) -> bool {
    let (Some(slot), Some(daemon)) = (world.ceph.slots.get(&osd), world.kube.daemons.get(&osd)) else {
        return false;
    };
    let is_long = || policy.remove_out.zip(slot.down_since).is_some_and(|(after, at)| world.at - at >= after);
    let is_dead = is_out(world, osd) && is_long() && lacks_elsewhere(world, osd).is_none();
    let in_directory = daemon.data_dir.is_some() && slot.up && daemon.replicas > 0;
    let is_confirmed = policy.is_confirmed(&world.kube.declaration);
    let has_disk = daemon.node.as_ref().is_none_or(|node| has_a_disk(world, node));
    is_dead || (policy.drop_directories && is_confirmed && in_directory && !has_disk)
}
