//! What the disks of a node become.

use crate::domain::inspection::RecordId;
use crate::domain::inventory::DiskSeen;
use crate::domain::osd::{DbDevice, DeviceIdentity, Layout, OsdFsid, OsdId, Weight};
use std::collections::BTreeMap;
use std::fmt;

/// Name of the pseudo disk for the node's file for tests (`TEST_ENVIRONMENT_OSD_STORE_ON_FILE`).
pub const FILE: &str = "osd-on-file";

/// An available, selected disk and the OSD that it becomes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AvailableDisk {
    /// Current kernel name, for people.
    pub name: String,
    /// Stable name: `DeviceIdentity::stable_name`.
    pub stable: String,
    /// Identity of the disk.
    pub device: DeviceIdentity,
    /// Tombstone of osd-migrate on the disk: its OSD, the wiped fsid, its record.
    ///
    /// The caller checks that the record is not open.
    pub tombstone: Option<(OsdId, OsdFsid, RecordId)>,
    /// Layout of the OSD on the disk.
    pub layout: Layout,
    /// Type of the disk, as Rook calls it: `device_type`.
    pub device_type: &'static str,
    /// CRUSH device class, if declared.
    pub device_class: Option<String>,
    /// Initial CRUSH weight, if declared.
    pub initial_weight: Option<Weight>,
    /// Device of the OSD's database, if declared.
    pub db: Option<DbDevice>,
    /// Whether the disk is the node's file for tests.
    pub on_file: bool,
}

/// Decision about a disk.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The disk becomes an OSD.
    New(Box<AvailableDisk>),
    /// The disk is an OSD of this cluster, or a part of one.
    Ours {
        /// fsid of the OSD
        fsid: OsdFsid,
        /// id of the OSD, if known
        osd: Option<OsdId>,
    },
    /// No declaration selects the disk.
    NotSelected,
    /// The disk is selected, but can't become an OSD: the reason.
    Rejected(String),
}

impl Verdict {
    /// Returns one word for the table.
    pub fn code(&self) -> &'static str {
        match self {
            Self::New(_) => "New",
            Self::Ours { .. } => "Ours",
            Self::NotSelected => "NotSelected",
            Self::Rejected(_) => "Rejected",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New(available) => write!(f, "becomes an OSD, {}", available.layout),
            Self::Ours { osd: Some(osd), .. } => write!(f, "{osd} of this cluster"),
            Self::Ours { fsid, osd: None } => write!(f, "of this cluster: OSD with fsid {fsid}"),
            Self::NotSelected => f.write_str("not selected"),
            Self::Rejected(why) => f.write_str(why),
        }
    }
}

/// Database on a device other than the OSD's data device, as declared (`metadataDevice`, `databaseSizeMB`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatabaseAsked {
    /// Name of the device, as its owner writes it.
    pub device: String,
    /// Size of the volume in MiB, if declared.
    pub size_mib: Option<u64>,
}

/// Existing OSDs of a node that need a database on another device.
pub type DatabasesAsked = BTreeMap<OsdId, DatabaseAsked>;

/// Disks of a node, each with its verdict.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Processed {
    /// Disks and verdicts, in the order of the inventory.
    pub disks: Vec<(DiskSeen, Verdict)>,
    /// Devices for the databases of existing OSDs, or the reasons why there are none.
    pub databases: BTreeMap<OsdId, Result<DbDevice, String>>,
    /// Requests of the owner that can't be met: sentences for people that name node and device.
    pub problems: Vec<String>,
}
