//! Which available disks become OSDs, on which nodes, laid out how and placed where. Pure.

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

/// Name of the pseudo disk that stands for the node's file for tests (`TEST_ENVIRONMENT_OSD_STORE_ON_FILE`).
pub const FILE: &str = "osd-on-file";

/// A free, selected disk and what it becomes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AvailableDisk {
    /// The kernel's name today, for people.
    pub name: String,
    /// The name that it keeps: `DeviceIdentity::stable_name`.
    pub stable: String,
    /// Who it is.
    pub device: DeviceIdentity,
    /// Our tombstone is on it: for which OSD, which fsid it wiped, by which record. The caller checks that the record is not open.
    pub tombstone: Option<(OsdId, OsdFsid, RecordId)>,
    /// How the OSD is laid on it.
    pub layout: Layout,
    /// CRUSH device class, where one is declared.
    pub device_class: Option<String>,
    /// CRUSH weight to begin with, where one is declared.
    pub initial_weight: Option<Weight>,
    /// The device that its database goes to, where one is declared.
    pub db: Option<DbDevice>,
    /// It is the node's file for tests.
    pub on_file: bool,
}

/// What is to be done with a disk.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It becomes an OSD.
    New(Box<AvailableDisk>),
    /// It is an OSD of this cluster, or a part of one.
    Ours {
        /// its fsid
        fsid: OsdFsid,
        /// its id, where it is known
        osd: Option<OsdId>,
    },
    /// Nobody asks for it.
    NotSelected,
    /// It is asked for, and can't be taken: why.
    Rejected(String),
}

impl Verdict {
    /// One word for the table.
    pub fn word(&self) -> &'static str {
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

/// The database that is declared for an OSD on another device than its data's (`metadataDevice`, `databaseSizeMB`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatabaseAsked {
    /// The device, as its owner names it.
    pub device: String,
    /// Size of the volume in MiB, where one is declared.
    pub size_mib: Option<u64>,
}

/// The OSDs of a node that are there and need a database made on another device.
pub type DatabasesAsked = BTreeMap<OsdId, DatabaseAsked>;

/// The disks of a node, each with what is to be done with it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Processed {
    /// In the order of the inventory.
    pub disks: Vec<(DiskSeen, Verdict)>,
    /// Where the databases of OSDs that are there are made, or why they can't be.
    pub databases: BTreeMap<OsdId, Result<DbDevice, String>>,
    /// What the owner asked for and does not get: sentences for people that name node and device.
    pub problems: Vec<String>,
}

/// What is declared for an OSD that is there: that of its node, and of its device where it is named. `devices` are the kernel
/// names of its disks, as its owner may name them.
pub fn config_of(node: &NodeName, devices: &[String], seen: &Observation) -> DeviceConfig {
    let wanted = wanted::on(node, seen);
    let named = wanted.named().iter().find(|named| {
        let name = named.name.strip_prefix("/dev/").unwrap_or(&named.name);
        devices.iter().any(|device| device == name)
    });
    wanted::of_device(named, &wanted.config)
}

/// Whether the CephCluster says anything of a node's disks: its nodes are all of them, or it is one that is named.
pub fn is_declared(node: &NodeName, seen: &Observation) -> bool {
    wanted::is_asked_for(node, seen)
}

/// What is declared of a node's disks, in words.
pub fn selected(node: &NodeName, seen: &Observation) -> String {
    wanted::on(node, seen).choice.to_string()
}

/// The database that a config asks for.
pub fn database_asked(config: &DeviceConfig) -> Option<DatabaseAsked> {
    let device = config.metadata_device.clone().filter(|name| !name.is_empty())?;
    Some(DatabaseAsked { device, size_mib: config.database_size_mb.filter(|size| *size > 0) })
}

/// What the disks of a node become; `asked`: what its OSDs that are there need of them.
///
/// With `on_file` everything that is declared is ignored, and only the node's file is looked at.
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
