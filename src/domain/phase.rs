//! The state machine of one OSD: the phase table of `design.md` section 5, as data.
//!
//! A phase is *seen*, never remembered: `facts` reduces observation and record to a handful of facts, and each row of
//! `ROWS` says for which facts it holds. Rows exclude each other; `tests/suite/phases.rs` goes through the whole product
//! of the facts and fails where two rows hold, or where a row is never reached.

use chrono::{DateTime, Utc};

use super::expect;
use super::guard::{Guard, holds, is_out};
use super::inspection::{Content, NodeReport, NodeTask, Proof};
use super::ledger::{Door, Record};
use super::observation::{JobState, Observation, Pg, Slot, SlotState};
use super::osd::{ClusterFsid, DeviceIdentity, Epoch, Mode, OsdFsid, OsdId, Role, Weight};

/// Where an OSD's migration stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// A node agent of this record is at work.
    Busy,
    /// Not past Stop, and no longer wanted as recorded.
    Withdrawn,
    /// Nobody knows what the device carries now.
    Unproven,
    /// Proven, up, to be stopped.
    Serving,
    /// Down, and not by us.
    NotOurStop,
    /// Stopped by us, not down yet.
    Stopping,
    /// Stopped by us and down.
    Stopped,
    /// The slot waits for the new OSD.
    Destroyed,
    /// The slot was claimed for a new OSD that was not finished.
    Claimed,
    /// The id is gone, and we have a claim on it.
    Purged,
    /// The slot is ours and its place in CRUSH is gone.
    Unplaced,
    /// The id is gone.
    Gone,
    /// The device carries a finished OSD of another id, made for us by mistake.
    Strayed,
    /// The device carries the new OSD, its slot was destroyed behind it.
    Undone,
    /// The new OSD has no key with the mons.
    Unauthed,
    /// The new OSD is finished, nothing starts it.
    Prepared,
    /// It is being started.
    Starting,
    /// It is up, its data is coming.
    Settling,
    /// It is up and clean, and not what was wanted.
    Nonconforming,
    /// It is up, clean and as wanted.
    Settled,
    /// Something is there that we did not make.
    Foreign,
}

/// The OSD's slot, with regard to its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotFact {
    /// It has the fsid recorded before Stop.
    Old,
    /// It has the fsid of our new OSD, or of a claim.
    Ours {
        /// `exists,new`: never booted, or under `noin`.
        never_booted: bool,
    },
    /// `destroyed`
    Destroyed,
    /// The id is not in the osdmap.
    Absent,
    /// Any other fsid.
    Other,
}

/// The device, as the last inspection saw it that is young enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DiskFact {
    /// No such inspection.
    Unseen,
    /// The old OSD, by its proof.
    Old,
    /// Our tombstone.
    Tombstone,
    /// A claim's label, not finished.
    Unfinished,
    /// A claim's label, finished, with this id.
    Finished,
    /// A claim's label, finished, with another id.
    Strayed,
    /// Nothing to lose, where the record is of a free disk.
    Blank,
    /// Anything else.
    Other,
}

/// The OSD's Deployment, with regard to its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DaemonFact {
    /// There is none.
    Gone,
    /// It starts the old OSD, or does not say which.
    Old,
    /// It starts the new OSD.
    New,
    /// It starts another one.
    Other,
}

/// All that the phase depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Facts {
    /// The record is of a free disk that becomes an OSD.
    pub new: bool,
    /// A node Job of this record has not ended.
    pub busy: bool,
    /// The slot.
    pub slot: SlotFact,
    /// The daemon is up.
    pub up: bool,
    /// The Deployment carries our annotation with this record.
    pub stopped: bool,
    /// A pod of the OSD is there that is not terminal.
    pub pod: bool,
    /// The device.
    pub disk: DiskFact,
    /// Device and slot name the same fsid.
    pub agrees: bool,
    /// Proof and capability are in the record.
    pub proven: bool,
    /// Confirmation, selection, class and target are as recorded.
    pub wanted: bool,
    /// Its CRUSH item is there.
    pub placed: bool,
    /// The mons have a key for it.
    pub authed: bool,
    /// The Deployment.
    pub daemon: DaemonFact,
    /// We have claims on the id.
    pub claims: bool,
    /// It is in, if it was, and every PG it is to hold is clean with it acting, as of its last boot.
    pub clean: bool,
    /// Its metadata is what the record wants.
    pub conforms: bool,
}

impl Facts {
    /// Not past Stop: the point up to which everything can be left as it is.
    pub fn before_stop(&self) -> bool {
        self.slot == SlotFact::Old && !self.stopped
    }

    /// A free disk with which nothing was begun: no id is claimed for it, nothing was written to it.
    pub fn before_new(&self) -> bool {
        self.new
            && self.disk == DiskFact::Blank
            && !self.claims
            && matches!(self.slot, SlotFact::Absent | SlotFact::Destroyed | SlotFact::Other)
    }

    /// A free disk of which nothing comes under this id: it is not wanted any more, it is not free after all, or the id was
    /// given to another. Nothing of ours is in its slot, and no claim of ours can be: what was begun left a tombstone at most.
    fn given_up(&self) -> bool {
        let is_theirs = match self.slot {
            SlotFact::Other => true,
            SlotFact::Absent | SlotFact::Destroyed => false,
            SlotFact::Old | SlotFact::Ours { .. } => return false,
        };
        self.new
            && match self.disk {
                DiskFact::Blank => is_theirs || (!self.claims && !self.wanted),
                DiskFact::Tombstone => is_theirs,
                DiskFact::Other => !self.claims,
                DiskFact::Unseen
                | DiskFact::Old
                | DiskFact::Unfinished
                | DiskFact::Finished
                | DiskFact::Strayed => false,
            }
    }

    /// The id waits for its OSD: its slot is destroyed, or it was never made.
    fn slot_waits(&self) -> bool {
        self.slot == SlotFact::Destroyed || (self.new && self.slot == SlotFact::Absent && !self.claims)
    }

    fn ours(&self) -> bool {
        matches!(self.slot, SlotFact::Ours { .. })
    }

    /// The new OSD is up and its Deployment is the one we made: its daemon holds the device, which needs no look.
    fn runs(&self) -> bool {
        self.ours() && self.up && self.daemon == DaemonFact::New
    }

    /// The device was looked at, and carries nothing foreign.
    fn known(&self) -> bool {
        match self.disk {
            DiskFact::Unseen | DiskFact::Other => false,
            DiskFact::Blank => self.new,
            DiskFact::Old
            | DiskFact::Tombstone
            | DiskFact::Unfinished
            | DiskFact::Finished
            | DiskFact::Strayed => true,
        }
    }

    /// The old OSD's device was not looked at, or what proves it is not in the record.
    fn unproven(&self) -> bool {
        self.disk == DiskFact::Unseen || (self.disk == DiskFact::Old && !self.proven)
    }

    /// The device carries the finished OSD that the slot names.
    fn finished(&self) -> bool {
        self.disk == DiskFact::Finished && self.agrees
    }

    fn at_rest(&self) -> bool {
        self.slot == SlotFact::Old && self.stopped && !self.up && !self.pod
    }

    /// The slot is ours and in its place, and the device agrees or needs no look.
    fn settles(&self) -> bool {
        self.runs() && self.placed && (self.disk == DiskFact::Unseen || self.finished())
    }
}

/// A row: holds or not. `Foreign` is what no row claims.
pub type Row = (Phase, fn(&Facts) -> bool);

/// The table. Every row but `Busy` wants `!busy`, which `phase` checks once.
pub const ROWS: &[Row] = &[
    (Phase::Withdrawn, |f| (f.before_stop() && !f.wanted) || f.given_up()),
    (Phase::NotOurStop, |f| f.before_stop() && f.wanted && !f.up),
    (Phase::Unproven, |f| match f.slot {
        SlotFact::Old if !f.stopped => f.wanted && f.up && f.unproven(),
        SlotFact::Old => f.at_rest() && f.unproven(),
        SlotFact::Ours { .. } => f.disk == DiskFact::Unseen && !f.runs(),
        SlotFact::Destroyed | SlotFact::Absent | SlotFact::Other => f.disk == DiskFact::Unseen,
    }),
    (Phase::Serving, |f| {
        f.before_stop()
            && f.wanted
            && f.up
            && f.disk == DiskFact::Old
            && f.proven
            && f.daemon == DaemonFact::Old
    }),
    (Phase::Stopping, |f| f.slot == SlotFact::Old && f.stopped && (f.up || f.pod)),
    (Phase::Stopped, |f| f.at_rest() && f.disk == DiskFact::Old && f.proven),
    (Phase::Destroyed, |f| {
        f.slot_waits()
            && f.placed
            && match f.disk {
                DiskFact::Old => f.slot == SlotFact::Destroyed,
                DiskFact::Tombstone | DiskFact::Unfinished => true,
                DiskFact::Blank => f.new && (f.wanted || f.claims),
                DiskFact::Unseen | DiskFact::Finished | DiskFact::Strayed | DiskFact::Other => false,
            }
    }),
    (Phase::Undone, |f| f.slot == SlotFact::Destroyed && f.placed && f.disk == DiskFact::Finished),
    (Phase::Strayed, |f| {
        let waits = f.slot == SlotFact::Destroyed || (f.new && f.slot == SlotFact::Absent);
        waits && f.placed && f.disk == DiskFact::Strayed
    }),
    (Phase::Unplaced, |f| {
        !f.placed
            && !f.new
            && match f.slot {
                SlotFact::Destroyed => f.known(),
                // One that never booted is destroyed first: what is restored would take the mark off it.
                SlotFact::Ours { never_booted } if f.up || !never_booted => {
                    (f.known() && f.disk != DiskFact::Strayed) || (f.runs() && f.disk == DiskFact::Unseen)
                }
                SlotFact::Ours { .. } | SlotFact::Old | SlotFact::Absent | SlotFact::Other => false,
            }
    }),
    (Phase::Purged, |f| f.slot == SlotFact::Absent && f.claims && f.known() && f.disk != DiskFact::Strayed),
    (Phase::Gone, |f| {
        f.slot == SlotFact::Absent && !f.claims && !f.new && f.known() && f.disk != DiskFact::Strayed
    }),
    (Phase::Claimed, |f| {
        f.slot == (SlotFact::Ours { never_booted: true })
            && !f.up
            && f.known()
            && f.disk != DiskFact::Strayed
            && !(f.finished() && f.placed)
    }),
    (Phase::Unauthed, |f| f.ours() && !f.up && f.placed && f.finished() && !f.authed),
    (Phase::Prepared, |f| {
        f.ours()
            && f.placed
            && f.finished()
            && (f.authed || f.up)
            && matches!(f.daemon, DaemonFact::Gone | DaemonFact::Old)
    }),
    (Phase::Starting, |f| {
        f.ours() && !f.up && f.placed && f.finished() && f.authed && f.daemon == DaemonFact::New
    }),
    (Phase::Settling, |f| f.settles() && !f.clean),
    (Phase::Nonconforming, |f| f.settles() && f.clean && !f.conforms),
    (Phase::Settled, |f| f.settles() && f.clean && f.conforms),
];

/// The phase that the facts show.
pub fn phase(facts: &Facts) -> Phase {
    if facts.busy {
        return Phase::Busy;
    }
    ROWS.iter().find(|(_, holds)| holds(facts)).map_or(Phase::Foreign, |(phase, _)| *phase)
}

/// What an observation says of one record's OSD.
pub fn facts(record: &Record, wanted: bool, seen: &Observation) -> Facts {
    let slot = seen.ceph.slots.get(&record.osd);
    let daemon = seen.kube.daemons.get(&record.osd);
    let stopped = daemon.is_some_and(|daemon| {
        let by_us = daemon.stopped_by.as_ref() == Some(&record.id);
        by_us || (daemon.replicas == 0 && is_out(Guard::StoppedByUs))
    });
    let claims = claims_of(record, seen);
    let look = last_look(record, seen);
    let disk = look.map_or(DiskFact::Unseen, |report| disk_fact(record, report, seen.ceph.fsid));
    let disk = if is_untouched(record, &claims, seen) { DiskFact::Blank } else { disk };
    let slot_fsid = slot.and_then(|slot| slot.fsid);
    Facts {
        new: record.is_new(),
        busy: !is_out(Guard::OneAgent)
            && seen.kube.node_jobs.iter().any(|job| job.record == record.id && job.state != JobState::Ended),
        slot: slot_fact(record, slot, |fsid| claims.contains(&fsid)),
        up: slot.is_some_and(|slot| slot.up),
        stopped,
        pod: !is_out(Guard::AtRest) && daemon.is_some_and(|daemon| !daemon.pods.is_empty()),
        disk,
        agrees: slot_fsid.is_some() && look.and_then(label_fsid) == slot_fsid,
        proven: holds(Guard::ProvenFirst, record.evidence.is_some()),
        wanted: holds(Guard::StillWanted, wanted),
        // A new OSD puts itself into CRUSH when it boots first; a slot that is filled again keeps what it has.
        placed: record.is_new()
            || slot.is_some_and(|slot| expect::is_placed(&record.crush, slot.crush.as_ref())),
        authed: seen.ceph.auth.get(&record.osd).copied().unwrap_or(false),
        daemon: match daemon {
            None => DaemonFact::Gone,
            Some(daemon) => match daemon.fsid {
                None => DaemonFact::Old,
                Some(fsid) if fsid == record.old => DaemonFact::Old,
                Some(fsid) if record.new == Some(fsid) => DaemonFact::New,
                Some(_) => DaemonFact::Other,
            },
        },
        claims: !claims.is_empty(),
        // Whether a new OSD comes in by itself, the owner decides (`mon_osd_auto_mark_new_in`).
        clean: slot.is_some_and(|slot| {
            (record.is_new() || !is_out_by_others(record, slot)) && is_settled(record, slot, seen)
        }),
        conforms: holds(Guard::ConformsAtTheEnd, slot.is_some_and(|slot| conforms(record, slot))),
    }
}

/// A free disk for which no agent was made yet: it is as its node's look saw it. (The agent proves that again before it writes.)
fn is_untouched(record: &Record, claims: &std::collections::BTreeSet<OsdFsid>, seen: &Observation) -> bool {
    record.is_new() && record.attempt.number <= 1 && claims.is_empty() && !is_made(record, seen)
}

/// Claims in the record and in every report of it.
pub fn claims_of(record: &Record, seen: &Observation) -> std::collections::BTreeSet<OsdFsid> {
    let reported = seen.kube.reports.values().filter(|report| report.record == record.id);
    let mut claims = record.claims.clone();
    claims.extend(reported.flat_map(|report| report.claims.iter().copied()));
    claims
}

fn slot_fact(record: &Record, slot: Option<&Slot>, is_claim: impl Fn(OsdFsid) -> bool) -> SlotFact {
    let Some(slot) = slot else { return SlotFact::Absent };
    let never_booted = match slot.state {
        SlotState::Destroyed => return SlotFact::Destroyed,
        SlotState::New => true,
        SlotState::Exists => false,
    };
    match slot.fsid {
        Some(fsid) if !record.is_new() && holds(Guard::SlotIsOld, fsid == record.old) => SlotFact::Old,
        Some(fsid) if holds(Guard::SlotIsOurs, record.new == Some(fsid) || is_claim(fsid)) => {
            SlotFact::Ours { never_booted }
        }
        Some(_) | None => SlotFact::Other,
    }
}

/// The report of the saved attempt, where it says what the device carries.
///
/// Attempts follow each other (no Job is made while another of the record has not ended), so the report of the last saved
/// attempt is the youngest look there is. An agent's own last look counts as one: it is its last act under the lock (ADR 0007).
/// A rebuild or give-back that was saved but not yet made changes nothing: until its Job is there, the look before it holds,
/// as long as the slot still is what that look was followed by.
pub fn last_look<'a>(record: &Record, seen: &'a Observation) -> Option<&'a NodeReport> {
    let looks = |attempt: u32| {
        let of = |report: &&NodeReport| report.record == record.id && report.attempt == attempt;
        seen.kube.reports.values().filter(of).find(|report| report.inspection.is_some())
    };
    if let Some(report) = looks(record.attempt.number) {
        return Some(report);
    }
    let awaits = record.attempt.task != NodeTask::Inspect
        && match seen.ceph.slots.get(&record.osd) {
            Some(slot) => slot.state == SlotState::Destroyed,
            None => record.is_new(),
        };
    if awaits && !is_made(record, seen) {
        return (0..record.attempt.number).rev().find_map(looks);
    }
    None
}

/// Whether the saved attempt has a Job or a report.
pub fn is_made(record: &Record, seen: &Observation) -> bool {
    let job =
        seen.kube.node_jobs.iter().any(|job| job.record == record.id && job.attempt == record.attempt.number);
    job || attempt_report(record, seen).is_some()
}

/// The report of the saved attempt, whatever it says.
pub fn attempt_report<'a>(record: &Record, seen: &'a Observation) -> Option<&'a NodeReport> {
    seen.kube
        .reports
        .values()
        .find(|report| report.record == record.id && report.attempt == record.attempt.number)
}

/// The fsid that the device's label names.
pub fn label_fsid(report: &NodeReport) -> Option<OsdFsid> {
    match &report.inspection.as_ref()?.content {
        Content::Bluestore { osd_fsid, .. } | Content::Osd { osd_fsid, .. } => Some(*osd_fsid),
        Content::Tombstone { .. } | Content::Blank | Content::Other { .. } | Content::NotFound { .. } => None,
    }
}

/// The id that a stray label names.
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
        record.claims.contains(fsid) || report.claims.contains(fsid) || record.new == Some(*fsid)
    };
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
                (true, Some(_)) => DiskFact::Strayed,
                (true, None) | (false, _) => DiskFact::Unfinished,
            }
        }
        Content::Bluestore { osd_fsid, whoami, .. }
            if *osd_fsid == record.old && *whoami == Some(record.osd) =>
        {
            DiskFact::Old
        }
        Content::Osd { osd_fsid, whoami, .. } if *osd_fsid == record.old && *whoami == record.osd => {
            DiskFact::Old
        }
        Content::Tombstone { osd, old, .. } if *osd == record.osd && *old == record.old => {
            DiskFact::Tombstone
        }
        content if record.is_new() && is_vacant(record, content) => DiskFact::Blank,
        Content::Bluestore { .. }
        | Content::Osd { .. }
        | Content::Tombstone { .. }
        | Content::Blank
        | Content::Other { .. }
        | Content::NotFound { .. } => DiskFact::Other,
    }
}

/// There is nothing to lose: it is blank, or carries the very tombstone that its node's look saw.
fn is_vacant(record: &Record, content: &Content) -> bool {
    match (content, record.evidence.as_ref().map(|evidence| &evidence.proof)) {
        (Content::Blank, Some(Proof::Vacant { .. })) => true,
        (Content::Tombstone { osd, old, record, .. }, Some(Proof::Vacant { tombstone: Some(stone) })) => {
            (osd, old, record) == (&stone.0, &stone.1, &stone.2)
        }
        (_, _) => false,
    }
}

/// It was in when it was recorded, and is out now. We never mark an OSD out, and our `noout` keeps Ceph from it.
pub fn is_out_by_others(record: &Record, slot: &Slot) -> bool {
    !slot.is_in && record.reweight > Weight(0)
}

/// Every PG that is to be on it is clean with it acting, and reported so since it came up.
///
/// Right after the boot the statistics still show the sets from when it was down: no PG names it then. So the PGs that it
/// held before Stop must have reported since as well, whatever sets they have now.
fn is_settled(record: &Record, slot: &Slot, seen: &Observation) -> bool {
    let expected: u64 = seen.ceph.pools.values().map(|pool| u64::from(pool.pg_num)).sum();
    let complete = seen.ceph.pgs.len() as u64 == expected;
    // What lacks OSDs to lie on is not cured by waiting, but by the next new one.
    let starves = |pg: &Pg| record.is_new() && super::gate::lacks_osds(pg, &seen.ceph);
    let settled = |pg: &Pg| (super::gate::is_clean(pg) || starves(pg)) && pg.acting.contains(&record.osd);
    slot.up
        && complete
        && holds(Guard::ReportedAtTheEnd, was_heard_of(record, slot, seen))
        && seen
            .ceph
            .pgs
            .iter()
            .filter(|(id, pg)| pg.up.contains(&record.osd) || record.pgs.contains(*id))
            .all(|(_, pg)| {
                holds(Guard::ReportedAtTheEnd, pg.reported_epoch >= slot.up_from)
                    && holds(Guard::CleanAtTheEnd, settled(pg) || !pg.up.contains(&record.osd))
            })
}

/// How long the mgr may not know what a new OSD changed: it hears once in 5 s (`mgr_stats_period`), up to 7 s late was seen.
pub const HEARD_SECONDS: i64 = 10;

/// Which PGs CRUSH gives to a new OSD nobody can tell beforehand, and right after its boot the statistics show none on it: so
/// it is up for longer than they lag. (Where there is no PG, there is nothing to hear.)
fn was_heard_of(record: &Record, slot: &Slot, seen: &Observation) -> bool {
    let long_ago = |(epoch, at): (Epoch, DateTime<Utc>)| {
        epoch == slot.up_from && (seen.at - at).num_seconds() >= HEARD_SECONDS
    };
    !record.is_new() || seen.ceph.pgs.is_empty() || record.up_seen.is_some_and(long_ago)
}

/// The daemon says of itself what the record wants (P10).
fn conforms(record: &Record, slot: &Slot) -> bool {
    slot.metadata.as_ref().is_some_and(|metadata| {
        let device = record.evidence.as_ref().map(|evidence| &evidence.device);
        let on_partition = device.is_some_and(DeviceIdentity::is_partition);
        let (has_db, has_wal) = match &record.door {
            Door::InPlace | Door::Directory { .. } => {
                let again =
                    |role| record.evidence.as_ref().is_some_and(|e| e.has_again(role, &record.target));
                (again(Role::Db), again(Role::Wal))
            }
            Door::New { db, .. } => (db.is_some(), false),
        };
        metadata.store == record.target.store
            && metadata.device_mapper == (record.target.mode == Mode::Lvm)
            && metadata.on_partition == on_partition
            && metadata.dedicated_db == has_db
            && metadata.dedicated_wal == has_wal
    })
}
