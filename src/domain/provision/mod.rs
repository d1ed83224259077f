//! Decides which available disks become OSDs, on which nodes, in which layout and at which place in CRUSH.
//!
//! Pure.

mod available;
mod database;
mod location;
mod placement;
mod select;
mod taints;
pub mod volumes;
mod wanted;

use std::collections::BTreeMap;
use std::fmt;

use super::inspection::RecordId;
use super::inventory::{DiskSeen, NodeInventory};
use super::observation::Observation;
use super::osd::{DbDevice, DeviceIdentity, Layout, NodeName, OsdFsid, OsdId, Weight};
use super::storage::DeviceConfig;

pub use location::location;
pub use placement::{Nodes, nodes};
pub use taints::missing_tolerations;

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

/// Returns the config that is declared for an existing OSD: that of its node, and of its device if the device
/// is named.
///
/// `devices` are the kernel names of its disks, as its owner may name them.
pub fn config_of(node: &NodeName, devices: &[String], seen: &Observation) -> DeviceConfig {
    let wanted = wanted::on(node, seen);
    let named = wanted.named().iter().find(|named| {
        let name = named.name.strip_prefix("/dev/").unwrap_or(&named.name);
        devices.iter().any(|device| device == name)
    });
    wanted::of_device(named, &wanted.config)
}

/// Returns whether the CephCluster declares anything for a node's disks: it selects all nodes, or names this
/// node.
pub fn is_declared(node: &NodeName, seen: &Observation) -> bool {
    wanted::is_asked_for(node, seen)
}

/// Describes what is declared for a node's disks.
pub fn selected(node: &NodeName, seen: &Observation) -> String {
    wanted::on(node, seen).choice.to_string()
}

/// Returns the database that a config requests.
pub fn database_asked(config: &DeviceConfig) -> Option<DatabaseAsked> {
    let device = config.metadata_device.clone().filter(|name| !name.is_empty())?;
    Some(DatabaseAsked { device, size_mib: config.database_size_mb.filter(|size| *size > 0) })
}

/// Returns what the disks of a node become; `asked` has the databases that its existing OSDs need on them.
///
/// With `on_file` all declarations are ignored, and only the node's file is considered.
pub fn process(
    node: &NodeName,
    inventory: &NodeInventory,
    asked: &DatabasesAsked,
    seen: &Observation,
    on_file: bool,
) -> Processed {
    if on_file {
        return available::file(inventory);
    }
    let available = volumes::without(inventory, node, seen);
    let mut processed = available::disks(node, &available, asked, seen);
    processed.problems.extend(volumes::problems(inventory, node, seen));
    processed
}
