//! Table of the phases: for which facts each row applies.

use super::{DaemonFact, DataFact, DiskFact, Facts, Phase, SlotFact};

/// Row of the table: a phase and its condition.
///
/// `Foreign` is the phase if no row applies.
pub type Row = (Phase, fn(&Facts) -> bool);

/// Returns the phase that the facts show.
pub fn phase(facts: &Facts) -> Phase {
    if facts.busy {
        return Phase::Busy;
    }
    ROWS.iter().find(|(_, passes)| passes(facts)).map_or(Phase::Foreign, |(phase, _)| *phase)
}

/// Rows of the table.
///
/// Every row except `Busy` requires `!busy`, which `phase` checks once.
pub const ROWS: &[Row] = &[
    (Phase::Withdrawn, |f| (f.before_stop() && !f.wanted) || f.given_up() || f.lost_its_disk()),
    (Phase::NotOurStop, |f| f.before_stop() && f.wanted && !f.up && !f.dead),
    (Phase::Unproven, |f| match f.slot {
        SlotFact::Old if !f.stopped => f.wanted && f.up && f.unproven(),
        SlotFact::Old => f.at_rest() && f.unproven(),
        SlotFact::Ours { .. } => f.disk == DiskFact::Unseen && !f.runs(),
        SlotFact::Destroyed | SlotFact::Absent | SlotFact::Other => {
            (f.disk == DiskFact::Unseen && !f.given_up() && !f.is_gone_for_removal()) || f.unproven_new()
        }
    }),
    (Phase::Emptying, |f| f.serves() && f.data == DataFact::ToMove),
    (Phase::Serving, |f| f.serves() && f.data != DataFact::ToMove),
    (Phase::Stopping, |f| f.slot == SlotFact::Old && f.stopped && (f.up || f.pod)),
    (Phase::Stopped, |f| f.at_rest() && f.disk == DiskFact::Old && f.proven),
    (Phase::Removing, |f| f.removal && f.slot == SlotFact::Destroyed),
    (Phase::Removed, |f| f.removal && f.slot == SlotFact::Absent),
    (Phase::Destroyed, |f| {
        !f.removal
            && f.slot_waits()
            && f.placed
            && match f.disk {
                DiskFact::Old => f.slot == SlotFact::Destroyed,
                DiskFact::Tombstone | DiskFact::Unfinished => true,
                DiskFact::Blank => f.directory || (f.new && (f.wanted || f.issued) && !f.unproven_new()),
                DiskFact::Unseen | DiskFact::Finished | DiskFact::Misplaced | DiskFact::Other => false,
            }
    }),
    (Phase::Undone, |f| {
        !f.removal && f.slot == SlotFact::Destroyed && f.placed && f.disk == DiskFact::Finished
    }),
    (Phase::Misplaced, |f| {
        let waits = f.slot == SlotFact::Destroyed || (f.new && f.slot == SlotFact::Absent);
        !f.removal && waits && f.placed && f.disk == DiskFact::Misplaced
    }),
    (Phase::Unplaced, |f| {
        !f.placed
            && !f.new
            && !f.removal
            && match f.slot {
                SlotFact::Destroyed => f.known(),
                // An OSD that never booted is destroyed first: restoring its place would clear its `new`
                // mark.
                SlotFact::Ours { never_booted } if f.up || !never_booted => {
                    (f.known() && f.disk != DiskFact::Misplaced) || (f.runs() && f.disk == DiskFact::Unseen)
                }
                SlotFact::Ours { .. } | SlotFact::Old | SlotFact::Absent | SlotFact::Other => false,
            }
    }),
    (Phase::Purged, |f| {
        !f.removal && f.slot == SlotFact::Absent && f.issued && f.known() && f.disk != DiskFact::Misplaced
    }),
    (Phase::Gone, |f| {
        f.slot == SlotFact::Absent
            && !(f.issued || f.new || f.removal)
            && f.known()
            && f.disk != DiskFact::Misplaced
    }),
    (Phase::Registered, |f| {
        f.slot == (SlotFact::Ours { never_booted: true })
            && !f.up
            && f.known()
            && f.disk != DiskFact::Misplaced
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

impl Facts {
    /// Returns whether the OSD serves, or is dead and to be removed, and everything is known that its stop
    /// needs.
    fn serves(&self) -> bool {
        self.before_stop()
            && self.wanted
            && (self.up || self.dead)
            && self.disk == DiskFact::Old
            && self.proven
            && self.daemon == DaemonFact::Old
    }

    /// Returns whether Stop is still ahead: until then everything can be left as it is.
    pub fn before_stop(&self) -> bool {
        self.slot == SlotFact::Old && !self.stopped
    }

    /// Returns whether nothing was started with an available disk: no fsid was issued for it, and nothing was
    /// written to it.
    pub fn before_new(&self) -> bool {
        // The first inspection of PVCs only reads.
        let is_unwritten = match self.disk {
            DiskFact::Blank => true,
            DiskFact::Unseen => !self.proven,
            DiskFact::Old
            | DiskFact::Tombstone
            | DiskFact::Unfinished
            | DiskFact::Finished
            | DiskFact::Misplaced
            | DiskFact::Other => false,
        };
        self.new
            && is_unwritten
            && !self.issued
            && matches!(self.slot, SlotFact::Absent | SlotFact::Destroyed | SlotFact::Other)
    }

    /// Returns whether an available disk is given up for this id: it is no longer wanted, it is not available
    /// after all, or the id was given to another OSD.
    ///
    /// The slot has nothing of osd-migrate, and no issued fsid can get there: at most a tombstone was left.
    fn given_up(&self) -> bool {
        let is_theirs = match self.slot {
            SlotFact::Other => true,
            SlotFact::Absent | SlotFact::Destroyed => false,
            SlotFact::Old | SlotFact::Ours { .. } => return false,
        };
        self.new
            && match self.disk {
                DiskFact::Blank => is_theirs || (!self.issued && !self.wanted),
                DiskFact::Tombstone => is_theirs,
                DiskFact::Other => !self.issued,
                DiskFact::Unseen => !self.proven && !self.issued && (is_theirs || !self.wanted),
                DiskFact::Old | DiskFact::Unfinished | DiskFact::Finished | DiskFact::Misplaced => false,
            }
    }

    /// Returns whether the devices of PVCs that are to become an OSD are blank, and that is not saved yet.
    fn unproven_new(&self) -> bool {
        let waits = matches!(self.slot, SlotFact::Destroyed | SlotFact::Absent);
        self.new && waits && self.disk == DiskFact::Blank && !self.proven && self.wanted && !self.issued
    }

    /// Returns whether an OSD that is removed was destroyed or purged: its disk no longer decides anything.
    fn is_gone_for_removal(&self) -> bool {
        self.removal && matches!(self.slot, SlotFact::Destroyed | SlotFact::Absent)
    }

    /// Returns whether an OSD in a directory, before its stop, lost the disk that it was to go to.
    ///
    /// The OSD may get another disk.
    pub fn lost_its_disk(&self) -> bool {
        self.directory
            && self.before_stop()
            && self.wanted
            && self.up
            && match self.disk {
                DiskFact::Tombstone
                | DiskFact::Unfinished
                | DiskFact::Finished
                | DiskFact::Misplaced
                | DiskFact::Other => true,
                DiskFact::Unseen | DiskFact::Old | DiskFact::Blank => false,
            }
    }

    /// Returns whether the id waits for its OSD: its slot is destroyed, or it was never created.
    fn slot_waits(&self) -> bool {
        self.slot == SlotFact::Destroyed || (self.new && self.slot == SlotFact::Absent && !self.issued)
    }

    fn ours(&self) -> bool {
        matches!(self.slot, SlotFact::Ours { .. })
    }

    /// Returns whether the new OSD is up and its Deployment is the one that osd-migrate created.
    ///
    /// Its daemon has the device open, so no inspection is needed.
    fn runs(&self) -> bool {
        self.ours() && self.up && self.daemon == DaemonFact::New
    }

    /// Returns whether the device was inspected and carries nothing foreign.
    fn known(&self) -> bool {
        match self.disk {
            DiskFact::Unseen | DiskFact::Other => false,
            DiskFact::Blank => self.new || self.directory,
            DiskFact::Old
            | DiskFact::Tombstone
            | DiskFact::Unfinished
            | DiskFact::Finished
            | DiskFact::Misplaced => true,
        }
    }

    /// Returns whether the old OSD's device was not inspected, or its proof is not in the record.
    fn unproven(&self) -> bool {
        self.disk == DiskFact::Unseen || (self.disk == DiskFact::Old && !self.proven)
    }

    /// Returns whether the device carries the finished OSD that the slot names.
    fn finished(&self) -> bool {
        self.disk == DiskFact::Finished && self.agrees
    }

    fn at_rest(&self) -> bool {
        self.slot == SlotFact::Old && self.stopped && !self.up && !self.pod
    }

    /// Returns whether the slot is osd-migrate's and in its place, and the device agrees or needs no
    /// inspection.
    fn settles(&self) -> bool {
        self.runs() && self.placed && (self.disk == DiskFact::Unseen || self.finished())
    }
}
