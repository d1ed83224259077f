//! Facts from an observation: the observed state of one record's OSD.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use super::{DaemonFact, DataFact, DiskFact, Facts, SlotFact};
use crate::domain::expect;
use crate::domain::gate;
use crate::domain::guard::{Guard, is_out, passes};
use crate::domain::inspection::{Content, Evidence, Inspection, NodeReport, NodeTask, Proof};
use crate::domain::ledger::{Record, Strategy};
use crate::domain::observation::{Daemon, Metadata, Observation, Pg, Slot, SlotState};
use crate::domain::osd::{
    ClusterFsid, DeviceIdentity, Epoch, Mode, OsdFsid, OsdId, PgId, Role, Upmap, Weight,
};

/// Returns whether the OSD is committed: it was to be stopped, and is now stopped by osd-migrate or no longer
/// the old OSD.
///
/// An OSD that only has an intent, or that serves again, is not committed.
pub fn is_committed(record: &Record, seen: &Observation) -> bool {
    record.stop_intended_at.is_some() && !facts(record, true, seen).before_stop()
}

/// Returns whether the Deployment is stopped for this record.
pub fn is_stopped(record: &Record, daemon: Option<&Daemon>) -> bool {
    daemon.is_some_and(|daemon| {
        let by_osd_migrate = daemon.stopped_by.as_ref() == Some(&record.id);
        by_osd_migrate || (daemon.replicas == 0 && is_out(Guard::StoppedByUs))
    })
}

/// Returns what an observation says of one record's OSD.
pub fn facts(record: &Record, wanted: bool, seen: &Observation) -> Facts {
    let slot = seen.ceph.slots.get(&record.osd);
    let daemon = seen.kube.daemons.get(&record.osd);
    let issued = issued_of(record, seen);
    let report = last_inspection(record, seen);
    let disk = report.map_or(DiskFact::Unseen, |report| disk_fact(record, report, seen.ceph.fsid));
    let disk = if is_untouched(record, &issued, seen) { DiskFact::Blank } else { disk };
    // The disk of a dead OSD is not read: nothing is done with it.
    let disk = if record.is_of_dead() { DiskFact::Old } else { disk };
    let slot_fsid = slot.and_then(|slot| slot.fsid);
    Facts {
        new: record.is_new(),
        directory: record.is_in_directory(),
        removal: record.is_removal(),
        dead: record.is_of_dead(),
        busy: !is_out(Guard::OneAgent) && seen.kube.has_agent_at_work(&record.id),
        slot: slot_fact(record, slot, |fsid| issued.contains(&fsid)),
        up: slot.is_some_and(|slot| slot.up),
        stopped: is_stopped(record, daemon),
        pod: !is_out(Guard::AtRest) && daemon.is_some_and(|daemon| !daemon.pods.is_empty()),
        disk,
        data: data_fact(record, slot, seen),
        agrees: slot_fsid.is_some() && report.and_then(label_fsid) == slot_fsid,
        proven: passes(Guard::ProvenFirst, record.evidence.is_some() || record.is_of_dead()),
        wanted: passes(Guard::StillWanted, wanted),
        // A new OSD adds itself to CRUSH at its first boot. A slot that is reused keeps its place.
        placed: record.is_new()
            || slot.is_some_and(|slot| expect::is_placed(&record.crush, slot.crush.as_ref())),
        authed: seen.ceph.auth.get(&record.osd).copied().unwrap_or(false),
        daemon: daemon_fact(record, daemon, slot_fsid, &issued),
        issued: !issued.is_empty(),
        // The owner decides whether a new OSD is marked in by itself (`mon_osd_auto_mark_new_in`).
        clean: slot.is_some_and(|slot| {
            (record.is_new() || !is_marked_out_externally(record, slot)) && is_settled(record, slot, seen)
        }),
        conforms: passes(Guard::ConformsAtTheEnd, slot.is_some_and(|slot| conforms(record, slot, daemon))),
    }
}

/// Returns whether the OSD is to be emptied before its stop, and whether it is.
///
/// Statistics from before the OSD was out, or had CRUSH weight 0, do not count.
fn data_fact(record: &Record, slot: Option<&Slot>, seen: &Observation) -> DataFact {
    let Some(empty) = &record.empty else { return DataFact::Stays };
    let is_dropped = slot.is_some_and(|slot| record.is_dropped(slot)) && empty.is_intended();
    let is_reported = |since: DateTime<Utc>| (seen.at - since).num_seconds() >= STATISTICS_SECONDS;
    let is_empty = || gate::emptied(record.osd, &seen.ceph) == gate::Gate::Open;
    let has_moved = is_dropped && empty.emptied_at.is_some();
    if has_moved && empty.out_since.is_some_and(is_reported) && is_empty() {
        DataFact::Moved
    } else {
        DataFact::ToMove
    }
}

/// Returns which OSD the Deployment starts.
///
/// If its issued fsid was replaced by a later one, it starts an OSD that is gone.
fn daemon_fact(
    record: &Record,
    daemon: Option<&Daemon>,
    in_slot: Option<OsdFsid>,
    issued: &BTreeSet<OsdFsid>,
) -> DaemonFact {
    let Some(daemon) = daemon else { return DaemonFact::Gone };
    let Some(starts) = daemon.fsid.filter(|fsid| *fsid != record.old) else { return DaemonFact::Old };
    let is_recreated = in_slot.is_some_and(|fsid| fsid != starts && issued.contains(&fsid));
    if is_recreated && issued.contains(&starts) {
        return DaemonFact::Old;
    }
    if record.new == Some(starts) { DaemonFact::New } else { DaemonFact::Other }
}

/// Returns whether no agent was created yet for an available disk, so that it is as its node's inventory
/// found it.
///
/// The agent proves that again before it writes.
fn is_untouched(record: &Record, issued: &BTreeSet<OsdFsid>, seen: &Observation) -> bool {
    let is_known = record.is_new() && record.evidence.is_some();
    is_known && record.attempt.number <= 1 && issued.is_empty() && !is_created(record, seen)
}

/// Returns the issued fsids in the record and in all its reports; none if the OSD is removed.
pub fn issued_of(record: &Record, seen: &Observation) -> BTreeSet<OsdFsid> {
    if record.is_removal() {
        return BTreeSet::new();
    }
    let reported = seen.kube.reports.values().filter(|report| report.record == record.id);
    let mut issued = record.issued.clone();
    issued.extend(reported.flat_map(|report| report.issued.iter().copied()));
    issued
}

fn slot_fact(record: &Record, slot: Option<&Slot>, is_claim: impl Fn(OsdFsid) -> bool) -> SlotFact {
    let Some(slot) = slot else { return SlotFact::Absent };
    let never_booted = match slot.state {
        // Another client gave the old OSD a new key and started it (a Rook without the fence does, seen on
        // 20.2.4): its disk is in use.
        SlotState::Destroyed if slot.up => return SlotFact::Other,
        SlotState::Destroyed => return SlotFact::Destroyed,
        SlotState::New => true,
        SlotState::Exists => false,
    };
    match slot.fsid {
        Some(fsid) if !record.is_new() && passes(Guard::SlotIsOld, fsid == record.old) => SlotFact::Old,
        Some(fsid) if passes(Guard::SlotIsOurs, record.new == Some(fsid) || is_claim(fsid)) => {
            SlotFact::Ours { never_booted }
        }
        Some(_) | None => SlotFact::Other,
    }
}

/// Returns the report of the saved attempt, if it says what the device carries.
///
/// Attempts follow each other: no Job is created while another of the record has not ended. So the report of
/// the last saved attempt is the latest inspection. An agent's own last inspection counts too: it is the
/// agent's last act under the lock (ADR 0007).
///
/// A rebuild or restore-slot that was saved but not yet created changes nothing. Until its Job exists, the
/// inspection before it stays valid, as long as the slot is still in the state that followed that inspection.
pub fn last_inspection<'a>(record: &Record, seen: &'a Observation) -> Option<&'a NodeReport> {
    if let Some(report) = inspection_of(record, record.attempt.number, seen) {
        return Some(report);
    }
    let awaits = record.attempt.task != NodeTask::Inspect
        && match seen.ceph.slots.get(&record.osd) {
            Some(slot) => slot.state == SlotState::Destroyed,
            None => record.is_new(),
        };
    if awaits && !is_created(record, seen) {
        return inspection_before(record, seen);
    }
    None
}

/// Returns whether the last inspection before the saved attempt found the old OSD: a rebuild would wipe it.
pub fn was_old_before(record: &Record, seen: &Observation) -> bool {
    let before = inspection_before(record, seen);
    before.is_some_and(|report| disk_fact(record, report, seen.ceph.fsid) == DiskFact::Old)
}

fn inspection_before<'a>(record: &Record, seen: &'a Observation) -> Option<&'a NodeReport> {
    (0..record.attempt.number).rev().find_map(|attempt| inspection_of(record, attempt, seen))
}

fn inspection_of<'a>(record: &Record, attempt: u32, seen: &'a Observation) -> Option<&'a NodeReport> {
    let of = |report: &&NodeReport| report.record == record.id && report.attempt == attempt;
    seen.kube.reports.values().filter(of).find(|report| report.inspection.is_some())
}

/// Returns whether the saved attempt has a Job or a report.
pub fn is_created(record: &Record, seen: &Observation) -> bool {
    let job =
        seen.kube.node_jobs.iter().any(|job| job.record == record.id && job.attempt == record.attempt.number);
    job || attempt_report(record, seen).is_some()
}

/// Returns the report of the saved attempt, whatever it says.
pub fn attempt_report<'a>(record: &Record, seen: &'a Observation) -> Option<&'a NodeReport> {
    seen.kube
        .reports
        .values()
        .find(|report| report.record == record.id && report.attempt == record.attempt.number)
}

/// Returns the fsid that the device's label names.
pub fn label_fsid(report: &NodeReport) -> Option<OsdFsid> {
    match &report.inspection.as_ref()?.content {
        Content::Bluestore { osd_fsid, .. } | Content::Osd { osd_fsid, .. } => Some(*osd_fsid),
        Content::Tombstone { .. } | Content::Blank | Content::Other { .. } | Content::NotFound { .. } => None,
    }
}

/// Returns the id that a misplaced label names.
pub fn label_id(report: &NodeReport) -> Option<OsdId> {
    match &report.inspection.as_ref()?.content {
        Content::Bluestore { whoami, .. } => *whoami,
        Content::Osd { whoami, .. } => Some(*whoami),
        Content::Tombstone { .. } | Content::Blank | Content::Other { .. } | Content::NotFound { .. } => None,
    }
}

fn disk_fact(record: &Record, report: &NodeReport, cluster: ClusterFsid) -> DiskFact {
    let Some(inspection) = &report.inspection else {
        return DiskFact::Unseen;
    };
    let is_claim = |fsid: &OsdFsid| {
        record.issued.contains(fsid) || report.issued.contains(fsid) || record.new == Some(*fsid)
    };
    let is_claimed = !(record.issued.is_empty() && report.issued.is_empty());
    if let (Content::Blank, Strategy::Directory { onto, .. }) = (&inspection.content, &record.strategy) {
        let is_there = inspection.evidence.as_ref().is_some_and(|e| has_directory(record, onto, e, cluster));
        return if is_there { DiskFact::Old } else { DiskFact::Blank };
    }
    if record.is_new() && record.evidence.is_none() {
        return first_of_new(inspection);
    }
    match &inspection.content {
        Content::Bluestore { cluster: Some(named), .. }
        | Content::Osd { cluster: named, .. }
        | Content::Tombstone { cluster: named, .. }
            if *named != cluster =>
        {
            DiskFact::Other
        }
        Content::Bluestore { osd_fsid, whoami, finished, .. } if is_claim(osd_fsid) => {
            match (finished, whoami) {
                (true, Some(id)) if *id == record.osd => DiskFact::Finished,
                (true, Some(_)) => DiskFact::Misplaced,
                (true, None) | (false, _) => DiskFact::Unfinished,
            }
        }
        Content::Bluestore { osd_fsid, whoami, .. }
            if *osd_fsid == record.old && *whoami == Some(record.osd) && !record.is_in_directory() =>
        {
            DiskFact::Old
        }
        Content::Osd { osd_fsid, whoami, .. }
            if *osd_fsid == record.old && *whoami == record.osd && !record.is_in_directory() =>
        {
            DiskFact::Old
        }
        Content::Tombstone { osd, old, .. } if *osd == record.osd && *old == record.old => {
            DiskFact::Tombstone
        }
        // An agent came as far as `osd new`, so the old data is gone. Then the disk had other contents, and a
        // person zapped it.
        Content::Blank if is_claimed && !record.gets_others() => DiskFact::Tombstone,
        content if record.is_new() && is_available(record, content) => DiskFact::Blank,
        Content::Blank if record.is_removal() => DiskFact::Blank,
        _ if record.is_in_directory() && is_out(Guard::DiskAvailableFirst) => DiskFact::Old,
        Content::Bluestore { .. }
        | Content::Osd { .. }
        | Content::Tombstone { .. }
        | Content::Blank
        | Content::Other { .. }
        | Content::NotFound { .. } => DiskFact::Other,
    }
}

/// Returns what the first inspection of PVCs that are to become an OSD says: only evidence of blank devices
/// shows that nothing is lost.
fn first_of_new(inspection: &Inspection) -> DiskFact {
    let proof = inspection.evidence.as_ref().map(|evidence| &evidence.proof);
    let is_blank = matches!(proof, Some(Proof::Available { .. }));
    if is_blank { DiskFact::Blank } else { DiskFact::Other }
}

/// Returns whether the directory contains the record's OSD, and the device inspected with it is the disk that
/// it goes to.
fn has_directory(record: &Record, onto: &DeviceIdentity, found: &Evidence, cluster: ClusterFsid) -> bool {
    let is_directory = matches!(found.proof, Proof::Directory { .. });
    let is_it = found.proof.names() == Some((record.old, record.osd, cluster));
    is_directory && is_it && onto.is_same_as(&found.device)
}

/// Returns whether nothing is to be lost: the disk is blank, or carries exactly the tombstone that its node's
/// inventory saw.
fn is_available(record: &Record, content: &Content) -> bool {
    match (content, record.evidence.as_ref().map(|evidence| &evidence.proof)) {
        (Content::Blank, Some(Proof::Available { .. })) => true,
        (Content::Tombstone { osd, old, record, .. }, Some(Proof::Available { tombstone: Some(stone) })) => {
            (osd, old, record) == (&stone.0, &stone.1, &stone.2)
        }
        (_, _) => false,
    }
}

/// Returns whether the OSD was in when it was recorded, and is out now. osd-migrate never marks an OSD out,
/// and its `noout` keeps Ceph from it.
pub fn is_marked_out_externally(record: &Record, slot: &Slot) -> bool {
    !slot.is_in && record.reweight > Weight(0)
}

/// Returns whether the OSD is up and has all its data, by the mgr's current statistics.
fn is_settled(record: &Record, slot: &Slot, seen: &Observation) -> bool {
    // PGs without enough OSDs, or space on them, do not recover by waiting, but with the next new OSD.
    let is_short =
        |pg: &Pg| record.is_new() && (gate::is_short_of_osds(pg, &seen.ceph) || gate::lacks_space(pg));
    // A PG that a scrub found faulty has its data on the new OSD, and stays so until a person repairs it. An
    // old directory is kept until then: it may have the better replica.
    let is_faulty = |pg: &Pg| !record.is_in_directory() && gate::is_only_faulty(pg, &seen.ceph);
    // A PG that this OSD serves, and that another OSD has no space for, has all its data here, too.
    let is_elsewhere = |pg: &Pg| {
        let is_served = pg.acting.contains(&record.osd) && !record.is_in_directory();
        is_served && gate::only_lacks_space_to_move(pg, &seen.ceph)
    };
    let is_excused = |pg: &Pg| is_short(pg) || is_faulty(pg) || is_elsewhere(pg);
    // What was moved out of a directory must be good where it is now: then the directory is emptied.
    let moves = record.is_in_directory();
    slot.up
        && passes(Guard::ReportedAtTheEnd, was_reported(record, slot, seen))
        && gate::is_filled((record.osd, slot), &still_its(record, seen), moves, is_excused, &seen.ceph)
}

/// Returns the PGs that the OSD had, without those that an upmap of the balancer or of a person has moved
/// away since.
///
/// Its boot does not affect them, so they need not report after it.
fn still_its(record: &Record, seen: &Observation) -> BTreeSet<PgId> {
    let (osd, before, now) = (record.osd, &record.upmaps, &seen.ceph.upmaps);
    let onto = |upmap: &&Upmap| upmap.mappings.iter().any(|(_, to)| *to == osd);
    let away = |upmap: &&Upmap| upmap.mappings.iter().any(|(from, _)| *from == osd);
    let no_longer_onto = before.iter().filter(onto).filter(|upmap| !now.contains(upmap));
    let away_since = now.iter().filter(away).filter(|upmap| !before.contains(upmap));
    let moved: BTreeSet<&PgId> = no_longer_onto.chain(away_since).map(|upmap| &upmap.pg).collect();
    record.held_pgs().iter().filter(|pg| !moved.contains(pg)).copied().collect()
}

/// Seconds for which the mgr may not know what a new OSD changed: it gets reports every 5 s
/// (`mgr_stats_period`), and reports up to 7 s late were seen.
pub const STATISTICS_SECONDS: i64 = 10;

/// Returns whether the statistics can contain the OSD's new PGs.
///
/// It is unknown beforehand which PGs CRUSH gives to a new OSD, or to an OSD on another disk. Right after its
/// boot the statistics show none on it, so it must be up for longer than they lag. Without any PG there is
/// nothing to report.
///
/// The same is true for PGs that are short of an OSD, and for those that CRUSH moved: a pool that was split
/// or created since the stop, or a change of `pgp_num`, gives an OSD PGs that it did not serve.
fn was_reported(record: &Record, slot: &Slot, seen: &Observation) -> bool {
    let long_ago = |(epoch, at): (Epoch, DateTime<Utc>)| {
        epoch == slot.up_from && (seen.at - at).num_seconds() >= STATISTICS_SECONDS
    };
    let may_come = |(id, pg): (&PgId, &Pg)| {
        let is_silent = !pg.up.contains(&record.osd) && pg.reported_epoch < slot.up_from;
        is_silent && (gate::is_short(pg, &seen.ceph) || record.held_pgs().contains(id))
    };
    let gets_others =
        || record.gets_any_pgs() || !is_out(Guard::ShortPgsReport) && seen.ceph.pgs.iter().any(may_come);
    seen.ceph.pgs.is_empty() || record.up_seen.is_some_and(long_ago) || !gets_others()
}

/// Returns whether the daemon reports of itself what the record wants (P10).
///
/// A PersistentVolume may be any device, so the metadata does not show whether an OSD on a PVC is encrypted.
/// The Deployment does: an OSD that is up was opened as its Deployment says.
fn conforms(record: &Record, slot: &Slot, daemon: Option<&Daemon>) -> bool {
    let target = &record.target;
    if let Some(pvcs) = &record.pvcs {
        let is_as_recorded = |metadata: &Metadata| {
            metadata.store == target.store
                && metadata.dedicated_db == pvcs.db.is_some()
                && metadata.dedicated_wal == pvcs.wal.is_some()
        };
        return slot.metadata.as_ref().is_some_and(is_as_recorded)
            && daemon.is_some_and(|daemon| daemon.opens_encryption == target.encrypted);
    }
    slot.metadata.as_ref().is_some_and(|metadata| {
        let device = record.evidence.as_ref().map(|evidence| &evidence.device);
        let on_partition = device.is_some_and(DeviceIdentity::is_partition);
        let again = |role| record.evidence.as_ref().is_some_and(|e| e.has_again(role, &record.target));
        metadata.store == record.target.store
            && metadata.device_mapper == (record.target.mode == Mode::Lvm)
            && slot.dmcrypt_key == record.target.encrypted
            && metadata.on_partition == on_partition
            && metadata.dedicated_db == (record.db.is_some() || again(Role::Db))
            && metadata.dedicated_wal == again(Role::Wal)
    })
}
