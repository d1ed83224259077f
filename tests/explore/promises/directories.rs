//! The promises for an OSD in a directory, whose id is recreated on an available disk.

use osd_migrate_core::domain::act::{Act, CephAct, NodeAct};
use osd_migrate_core::domain::inspection::{Content, NodeTask, RecordId};
use osd_migrate_core::domain::ledger::Record;
use osd_migrate_core::domain::next::Next;
use osd_migrate_core::domain::osd::OsdId;
use osd_migrate_core::sim::{Effect, World, example, fsid_on};

use super::super::state::{Done, State};
use super::Broken;

/// Returns the open record of an OSD in a directory, by the record's name.
pub(super) fn record_of<'a>(state: &'a State, id: &RecordId) -> Option<&'a Record> {
    state.ledger.records.values().find(|record| record.id == *id && record.is_in_directory())
}

/// Checks P3 for a disk that is written over.
///
/// The disk is the recorded one, and never the disk that a directory is on. The disk carries nothing except
/// what osd-migrate wrote, and the slot is given up.
pub(super) fn taken(before: &State, disk: &str, was: &Content, record: &Record) -> Option<Broken> {
    let (world, osd) = (&before.world, record.osd);
    let found = &world.disks[disk];
    let slot = |fsid| world.ceph.slots.values().any(|slot| slot.fsid == Some(fsid));
    let issued = world.issued.get(&(osd, record.id.clone()));
    let is_fine = match was {
        Content::Blank => true,
        Content::Tombstone { osd: of, old, .. } => (*of, *old) == (osd, record.old),
        Content::Bluestore { osd_fsid, finished, .. } => {
            issued.is_some_and(|issued| issued.contains(osd_fsid)) && !(*finished && slot(*osd_fsid))
        }
        Content::Osd { .. } | Content::Other { .. } | Content::NotFound { .. } => false,
    };
    let is_it = record.device().is_some_and(|device| device.is_same_as(&found.identity));
    let why = [
        (!is_it || found.node != record.node, "although it is not the disk of the record"),
        (found.directory().is_some(), "although it contains a directory"),
        (!is_fine, "although it contains something else"),
        (slot(record.old), "while a slot has the old OSD"),
        (world.is_run(found), "while a daemon uses it"),
    ];
    let why = why.iter().find(|(passes, _)| *passes).map(|(_, why)| why);
    why.map(|why| format!("P3: {disk} was overwritten for {osd} {why}: {was}"))
}

/// Checks P3 for a directory that is removed.
///
/// The directory is that of the record's OSD, which no longer serves from it. Each step checks what is left
/// of the OSD's data without the directory. When the agent is created, it is checked that the new OSD has all
/// the data.
pub(super) fn cleared(before: &State, was: &Content, osd: OsdId) -> Option<Broken> {
    let fsid = fsid_on(was);
    if fsid != Some(example::fsid(osd, 0)) {
        return Some(format!("P3: a directory was removed for {osd} that contains something else: {was}"));
    }
    let holds_it = before.world.ceph.slots.values().any(|slot| slot.fsid == fsid);
    holds_it.then(|| format!("P3: the directory of {osd} was removed while a slot has its OSD"))
}

/// Checks P7: the last inspection of the destination disk allows the move.
pub(super) fn nowhere_to_go(before: &State, record: &Record) -> Option<Broken> {
    if !record.is_in_directory() {
        return None;
    }
    let reports = before.world.kube.reports.values().filter(|report| report.record == record.id);
    let inspections =
        reports.filter_map(|report| Some((report.attempt, &report.inspection.as_ref()?.content)));
    let (_, content) = inspections.max_by_key(|(attempt, _)| *attempt)?;
    let broken = || format!("P7: {} was stopped, but its destination disk contains {content}", record.osd);
    (*content != Content::Blank).then(broken)
}

/// Checks what a runner did: no directory is given up before the new OSD has its data, and no external weight
/// is overwritten.
pub(super) fn allowed(before: &State, next: &Next, done: &Done, after: &State) -> Option<Broken> {
    let Next::Do(act) = next else { return None };
    match act {
        Act::Node(NodeAct::Agent { request, .. })
            if request.task == NodeTask::Clear && request.after.is_none() =>
        {
            let is_created = done.effects.iter().any(|effect| matches!(effect, Effect::AgentCreated(_)));
            let there = before.world.kube.node_jobs.iter().any(|job| {
                job.record == request.record && job.attempt == request.attempt && job.task == request.task
            });
            let why = lacks_data(&before.world, request.osd).filter(|_| is_created && !there)?;
            Some(format!("P2: the directory of {} is to be removed, but the new OSD {why}", request.osd))
        }
        Act::Ceph(CephAct::RestoreCrush { osd, .. }) => {
            let weight = |state: &State| Some(state.world.ceph.slots.get(osd)?.crush.as_ref()?.weight);
            let theirs = Some(example::THEIR_WEIGHT);
            let was_recorded =
                before.ledger.records.get(osd).is_some_and(|record| record.former_weight == theirs);
            let is_lost = weight(before) == theirs && weight(after) != theirs && !was_recorded;
            is_lost.then(|| format!("P6: the weight that another client set for {osd} was overwritten"))
        }
        _ => None,
    }
}

fn lacks_data(world: &World, osd: OsdId) -> Option<String> {
    let slot = world.ceph.slots.get(&osd)?;
    if !slot.up || slot.fsid == Some(example::fsid(osd, 0)) {
        return Some("is not up".to_owned());
    }
    let mut pgs = world.placements.keys();
    let lacking = pgs.find(|pg| world.up_set(pg).contains(&osd) && !world.complete_set(pg).contains(&osd));
    lacking.map(|pg| format!("lacks PG {pg}"))
}

/// Checks at the end that a directory whose OSD was recreated is gone, or is reported.
pub(super) fn left(state: &State) -> Option<Broken> {
    let (world, ledger) = (&state.world, &state.ledger);
    let is_created = |osd: OsdId| {
        let fsid = world.ceph.slots.get(&osd).and_then(|slot| slot.fsid);
        let is_ours =
            |fsid| world.issued.iter().any(|((of, _), issued)| *of == osd && issued.contains(&fsid));
        fsid.is_some_and(is_ours) && !ledger.records.contains_key(&osd)
    };
    let of_path = |path: &str| path.trim_start_matches("/var/lib/rook/osd").parse().map(OsdId).ok();
    world.disks.values().find_map(|disk| {
        let path = disk.directory()?;
        let is_reported =
            ledger.nodes.get(&disk.node).is_some_and(|work| work.directories.contains_key(path));
        let is_left = of_path(path).is_some_and(is_created) && !is_reported;
        is_left.then(|| format!("P9: {path} is left behind and is not reported"))
    })
}
