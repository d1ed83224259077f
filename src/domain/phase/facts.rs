//! Facts about one record's OSD, on which its phase depends.

/// State of the OSD's slot, relative to its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotFact {
    /// Slot with the fsid recorded before Stop.
    Old,
    /// Slot with the fsid of osd-migrate's new OSD, or with an issued fsid.
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

/// Contents of the device, by the last inspection that is recent enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DiskFact {
    /// No such inspection.
    Unseen,
    /// The old OSD, by its proof.
    ///
    /// For an OSD in a directory: the directory contains it, and the disk that it goes to is available.
    Old,
    /// Tombstone of osd-migrate; or a blank device, if an issued fsid shows that the tombstone was there
    /// before.
    Tombstone,
    /// Label with an issued fsid, not finished.
    Unfinished,
    /// Label with an issued fsid, finished, with this id.
    Finished,
    /// Label with an issued fsid, finished, with another id.
    Misplaced,
    /// Nothing to lose, if the record is of an available disk, or of an OSD that goes to one.
    Blank,
    /// Anything else.
    Other,
}

/// Data of an OSD before its stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DataFact {
    /// The OSD is stopped with its data.
    Stays,
    /// The OSD is to be emptied, and a PG may still need it.
    ToMove,
    /// The OSD is out, and no PG needs it.
    Moved,
}

/// State of the OSD's Deployment, relative to its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DaemonFact {
    /// No Deployment.
    Gone,
    /// Deployment that starts the old OSD, or does not say which.
    Old,
    /// Deployment that starts the new OSD.
    New,
    /// Deployment that starts another OSD.
    Other,
}

/// All facts that the phase depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Facts {
    /// The record is of an available disk that becomes an OSD.
    pub new: bool,
    /// The record is of an OSD in a directory.
    ///
    /// The device is then the available disk on which its id is recreated, without the directory.
    pub directory: bool,
    /// The record removes an OSD.
    pub removal: bool,
    /// The OSD that is removed was down when it was recorded.
    pub dead: bool,
    /// A node Job of this record has not ended.
    pub busy: bool,
    /// State of the slot.
    pub slot: SlotFact,
    /// The daemon is up.
    pub up: bool,
    /// The Deployment has osd-migrate's annotation with this record.
    pub stopped: bool,
    /// The OSD has a pod that is not terminal.
    pub pod: bool,
    /// Contents of the device.
    pub disk: DiskFact,
    /// Data before the stop.
    pub data: DataFact,
    /// Device and slot name the same fsid.
    pub agrees: bool,
    /// Proof and capability are in the record.
    pub proven: bool,
    /// Confirmation, selection, class and target are as recorded.
    pub wanted: bool,
    /// The OSD's CRUSH item exists.
    pub placed: bool,
    /// The mons have a key for the OSD.
    pub authed: bool,
    /// State of the Deployment.
    pub daemon: DaemonFact,
    /// At least one fsid was issued for the id.
    pub issued: bool,
    /// The OSD is in, if it was before, and each of its PGs is clean with it acting, as of its last boot.
    pub clean: bool,
    /// The OSD's metadata is as the record wants.
    pub conforms: bool,
}
