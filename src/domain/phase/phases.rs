//! Phases of an OSD's migration.

/// Progress of an OSD's migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// A node agent of this record is at work.
    Busy,
    /// Before Stop, and no longer wanted as recorded.
    Withdrawn,
    /// Unknown contents of the device.
    Unproven,
    /// Proven, up, to be emptied before it is stopped.
    Emptying,
    /// Proven, up, to be stopped.
    Serving,
    /// Down, but osd-migrate did not stop it.
    NotOurStop,
    /// Stopped by osd-migrate, not down yet.
    Stopping,
    /// Stopped by osd-migrate and down.
    Stopped,
    /// The OSD is to be removed: its slot is destroyed, and its disk may still carry it.
    Removing,
    /// The OSD is to be removed: its id is purged.
    Removed,
    /// The slot waits for the new OSD.
    Destroyed,
    /// The slot has an issued fsid of a new OSD that was not finished.
    Registered,
    /// The id is gone, and an fsid was issued for it.
    Purged,
    /// The slot is osd-migrate's, and its place in CRUSH is gone.
    Unplaced,
    /// The id is gone.
    Gone,
    /// The device carries a finished OSD of another id, which was created for osd-migrate by mistake.
    Misplaced,
    /// The device carries the new OSD, whose slot was destroyed afterwards.
    Undone,
    /// The new OSD has no key with the mons.
    Unauthed,
    /// The new OSD is finished, and nothing starts it.
    Prepared,
    /// The new OSD is being started.
    Starting,
    /// The new OSD is up and backfilling.
    Settling,
    /// The new OSD is up and clean, but not as wanted.
    Nonconforming,
    /// The new OSD is up, clean and as wanted.
    Settled,
    /// Foreign objects that osd-migrate did not create.
    Foreign,
}
