//! The table itself: for which facts each row holds.

use super::{DaemonFact, DiskFact, Facts, Phase, Row, SlotFact};

/// The table. Every row but `Busy` wants `!busy`, which `phase` checks once.
pub const ROWS: &[Row] = &[
    (Phase::Withdrawn, |f| (f.before_stop() && !f.wanted) || f.given_up() || f.lost_its_disk()),
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
                DiskFact::Blank => f.directory || (f.new && (f.wanted || f.issued)),
                DiskFact::Unseen | DiskFact::Finished | DiskFact::Misplaced | DiskFact::Other => false,
            }
    }),
    (Phase::Undone, |f| f.slot == SlotFact::Destroyed && f.placed && f.disk == DiskFact::Finished),
    (Phase::Misplaced, |f| {
        let waits = f.slot == SlotFact::Destroyed || (f.new && f.slot == SlotFact::Absent);
        waits && f.placed && f.disk == DiskFact::Misplaced
    }),
    (Phase::Unplaced, |f| {
        !f.placed
            && !f.new
            && match f.slot {
                SlotFact::Destroyed => f.known(),
                // One that never booted is destroyed first: what is restored would take the mark off it.
                SlotFact::Ours { never_booted } if f.up || !never_booted => {
                    (f.known() && f.disk != DiskFact::Misplaced) || (f.runs() && f.disk == DiskFact::Unseen)
                }
                SlotFact::Ours { .. } | SlotFact::Old | SlotFact::Absent | SlotFact::Other => false,
            }
    }),
    (Phase::Purged, |f| f.slot == SlotFact::Absent && f.issued && f.known() && f.disk != DiskFact::Misplaced),
    (Phase::Gone, |f| {
        f.slot == SlotFact::Absent && !f.issued && !f.new && f.known() && f.disk != DiskFact::Misplaced
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
    /// Not past Stop: the point up to which everything can be left as it is.
    pub fn before_stop(&self) -> bool {
        self.slot == SlotFact::Old && !self.stopped
    }

    /// A free disk with which nothing was begun: no id is claimed for it, nothing was written to it.
    pub fn before_new(&self) -> bool {
        self.new
            && self.disk == DiskFact::Blank
            && !self.issued
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
                DiskFact::Blank => is_theirs || (!self.issued && !self.wanted),
                DiskFact::Tombstone => is_theirs,
                DiskFact::Other => !self.issued,
                DiskFact::Unseen
                | DiskFact::Old
                | DiskFact::Unfinished
                | DiskFact::Finished
                | DiskFact::Misplaced => false,
            }
    }

    /// An OSD in a directory, not begun with, and the disk that it was to go to is not free after all: it may get another.
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

    /// The id waits for its OSD: its slot is destroyed, or it was never made.
    fn slot_waits(&self) -> bool {
        self.slot == SlotFact::Destroyed || (self.new && self.slot == SlotFact::Absent && !self.issued)
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
            DiskFact::Blank => self.new || self.directory,
            DiskFact::Old
            | DiskFact::Tombstone
            | DiskFact::Unfinished
            | DiskFact::Finished
            | DiskFact::Misplaced => true,
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
