//! The state machine of one OSD: the phase table (docs/concepts/how-it-works.md), as data.
//!
//! A phase is *seen*, never remembered: `facts` reduces observation and record to a handful of facts, and each row of
//! `ROWS` says for which facts it holds. Rows exclude each other; `tests/suite/phases.rs` goes through the whole product
//! of the facts and fails where two rows hold, or where a row is never reached.

mod rows;
mod seen;

pub use rows::ROWS;
pub use seen::{
    STATISTICS_SECONDS, attempt_report, facts, is_committed, is_created, is_marked_out_externally, issued_of,
    label_fsid, label_id, last_inspection,
};

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
    Registered,
    /// The id is gone, and we have a claim on it.
    Purged,
    /// The slot is ours and its place in CRUSH is gone.
    Unplaced,
    /// The id is gone.
    Gone,
    /// The device carries a finished OSD of another id, made for us by mistake.
    Misplaced,
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
    /// The old OSD, by its proof. Of one in a directory: the directory holds it, and the disk that it goes to is free.
    Old,
    /// Our tombstone; or nothing at all, where a claim shows that it was there before.
    Tombstone,
    /// A claim's label, not finished.
    Unfinished,
    /// A claim's label, finished, with this id.
    Finished,
    /// A claim's label, finished, with another id.
    Misplaced,
    /// Nothing to lose, where the record is of a free disk, or of an OSD that goes to one.
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
    /// The record is of an OSD in a directory. The device is the free disk that its id is made anew on: what is there, the directory
    /// apart.
    pub directory: bool,
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
    pub issued: bool,
    /// It is in, if it was, and every PG it is to hold is clean with it acting, as of its last boot.
    pub clean: bool,
    /// Its metadata is what the record wants.
    pub conforms: bool,
}

/// A row: holds or not. `Foreign` is what no row claims.
pub type Row = (Phase, fn(&Facts) -> bool);

/// The phase that the facts show.
pub fn phase(facts: &Facts) -> Phase {
    if facts.busy {
        return Phase::Busy;
    }
    ROWS.iter().find(|(_, passes)| passes(facts)).map_or(Phase::Foreign, |(phase, _)| *phase)
}
