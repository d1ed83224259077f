//! Inventory of a node's disks and of the OSDs on them, read by an agent that changes none of them.
//!
//! Plain data, the contract between agent and runner. It travels in a ConfigMap.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::inspection::{Capability, RecordId};
use super::osd::{ClusterFsid, DeviceIdentity, Mode, NodeName, ObjectStore, OsdFsid, OsdId};

/// Request to an inventory agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct InventoryRequest {
    /// uid of the requesting run's Job. The inventory of another run is never trusted.
    pub run: String,
    /// Saved number of the inventory, which the report repeats.
    pub number: u32,
    /// Node that is to be inspected. An agent on another node refuses.
    pub node: NodeName,
    /// Fsid of the cluster, which distinguishes its own labels from foreign ones.
    pub cluster: ClusterFsid,
    /// `TEST_ENVIRONMENT_OSD_STORE_ON_FILE` is set: only the file of this node is inspected, no disk.
    pub on_file: bool,
}

/// Report of an inventory agent, and the last thing that the agent writes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct InventoryReport {
    /// Run, as in the request.
    pub run: String,
    /// Number, as in the request.
    pub number: u32,
    /// Node, as in the request.
    pub node: NodeName,
    /// Time when the agent began.
    pub began_at: DateTime<Utc>,
    /// Time when the agent ended.
    pub ended_at: DateTime<Utc>,
    /// Wall time by step, in tenths of a second, in the order of the steps.
    pub steps: Vec<(String, u32)>,
    /// Inventory found. None if the disks could not be inspected.
    pub inventory: Option<NodeInventory>,
    /// Why the disks could not be inspected.
    pub problem: Option<String>,
}

/// The disks of a node and the OSDs on them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeInventory {
    /// Capabilities of the node's image.
    pub capability: Capability,
    /// Whole disks and partitions, by kernel name.
    pub disks: Vec<DiskSeen>,
    /// OSDs of any cluster, by `ceph-volume raw list` and `lvm list`.
    pub osds: Vec<OsdSeen>,
    /// Available MiB of each disk whose volume group is for databases of this cluster, by kernel name.
    ///
    /// The group may be empty, or have databases of OSDs that are gone.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub database_groups: BTreeMap<String, u64>,
    /// Sentences for people about parts that could not be inspected or were left out.
    pub notes: Vec<String>,
}

/// A whole disk or a partition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DiskSeen {
    /// Present kernel name (`sdb`, `sdb1`), as used by `deviceFilter` and `devices[].name`. Not an identity.
    pub name: String,
    /// Disk that the partition belongs to.
    pub parent: Option<String>,
    /// All links under `/dev` that lead to the disk, with full paths: `/dev/disk/by-id/...`,
    /// `/dev/disk/by-path/...`.
    pub links: BTreeSet<String>,
    /// Identity of the device. A partition has its own names and size.
    pub identity: DeviceIdentity,
    /// `queue/rotational`
    pub rotational: bool,
    /// Disk finding.
    pub state: DiskState,
}

/// Finding of an inspected disk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum DiskState {
    /// The disk is empty: no signature, no partition, no copy of a label, first and last MiB zero, and
    /// nothing uses it.
    Available,
    /// The disk has osd-migrate's tombstone: it was proven and is being wiped, or its new OSD was never
    /// created.
    Tombstone {
        /// OSD that the disk is reserved for
        osd: OsdId,
        /// fsid of the OSD that was wiped
        old: OsdFsid,
        /// record that the tombstone was written for
        record: RecordId,
        /// signature next to the tombstone: a remainder of the old OSD, or newer than the tombstone
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// The disk has an OSD of this cluster, or a part of one.
    Ours {
        /// fsid of the OSD
        fsid: OsdFsid,
        /// id of the OSD, if it is already written
        osd: Option<OsdId>,
    },
    /// The disk has anything else: it is never touched.
    Rejected {
        /// reason of the rejection
        why: Rejection,
    },
}

/// Reason why a disk is not available.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case", prefix = "disk-")]
pub enum Rejection {
    /// The disk is read-only (`ro` is 1).
    ReadOnly,
    /// The disk is smaller than ceph-volume accepts (`ceph-volume inventory`: 5 GB).
    TooSmall {
        /// size of the disk
        bytes: u64,
    },
    /// The disk has partitions, which are inspected themselves.
    Partitioned {
        /// number of partitions
        count: usize,
    },
    /// The disk is mounted.
    Mounted {
        /// mount point
        at: String,
    },
    /// Kernel devices use the disk (LVM, dm-crypt, md).
    InUse {
        /// names of these devices
        by: Vec<String>,
    },
    /// The disk has an OSD of another cluster, or of an unknown one.
    ForeignCeph {
        /// cluster of the OSD, if its label names one
        cluster: Option<ClusterFsid>,
    },
    /// The disk is a physical volume of LVM.
    Lvm,
    /// The disk has a LUKS header.
    Luks,
    /// The disk has a file system or another signature known to libblkid.
    Signature {
        /// name of the signature by libblkid
        kind: String,
    },
    /// The disk has no signature, but bytes that are not zero.
    Data {
        /// location of these bytes
        what: String,
    },
    /// The disk is a PersistentVolume.
    PersistentVolume {
        /// name of the volume
        name: String,
        /// PersistentVolumeClaim that the volume is bound to, `namespace/name`
        claim: Option<String>,
    },
    /// The disk may be a PersistentVolume: the node has one for a device of that size, whose path leads to no
    /// known disk.
    MayBePersistentVolume {
        /// name of the volume
        name: String,
        /// path of the volume on the node
        path: String,
    },
    /// The disk may be a PersistentVolume that a driver has attached to the node.
    ///
    /// The volume has that size, and no pod of an OSD uses its claim.
    MayBeAttached {
        /// name of the volume
        name: String,
        /// PersistentVolumeClaim that the volume is bound to, `namespace/name`
        claim: String,
    },
    /// No link under `/dev/disk/by-id` or `by-path` names the disk, so it can't be found again after a
    /// reboot.
    NoStableName,
    /// The disk could not be read.
    Unreadable {
        /// error of the read
        why: String,
    },
    /// Only `ceph-volume inventory` rejects the disk.
    CephVolume {
        /// messages of ceph-volume
        why: Vec<String>,
    },
}

impl Rejection {
    /// Returns the code: the anchor of the rejection in the reference of messages.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadOnly => f.write_str("read-only"),
            Self::TooSmall { bytes } => {
                write!(f, "too small: {} MiB, but ceph-volume needs at least 5 GB", bytes >> 20)
            }
            Self::Partitioned { count } => write!(f, "has {count} partitions"),
            Self::Mounted { at } => write!(f, "mounted at {at}"),
            Self::InUse { by } => write!(f, "in use by {}", by.join(", ")),
            Self::ForeignCeph { cluster: Some(cluster) } => write!(f, "an OSD of another cluster, {cluster}"),
            Self::ForeignCeph { cluster: None } => f.write_str("an OSD of an unknown cluster"),
            Self::Lvm => f.write_str("a physical volume of LVM"),
            Self::Luks => f.write_str("a LUKS header"),
            Self::Signature { kind } => write!(f, "a signature of {kind}"),
            Self::Data { what } => write!(f, "data without a signature: {what}"),
            Self::PersistentVolume { name, claim: Some(claim) } => {
                write!(f, "PersistentVolume {name}, bound to PersistentVolumeClaim {claim}")
            }
            Self::PersistentVolume { name, claim: None } => write!(f, "PersistentVolume {name}"),
            Self::MayBePersistentVolume { name, path } => write!(
                f,
                "perhaps PersistentVolume {name}: the disk of its path {path} is unknown. See on its node: \
                 readlink -f {path}"
            ),
            Self::MayBeAttached { name, claim } => write!(
                f,
                "perhaps PersistentVolume {name}, bound to PersistentVolumeClaim {claim}, which no pod of an OSD \
                 uses: the disk has its size"
            ),
            Self::NoStableName => f.write_str("no name under /dev/disk/by-id or by-path"),
            Self::Unreadable { why } => write!(f, "cannot be read: {why}"),
            Self::CephVolume { why } => write!(f, "ceph-volume rejects it: {}", why.join(", ")),
        }
    }
}

/// An OSD found on a node's disks, whatever created it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OsdSeen {
    /// Fsid of the OSD.
    pub fsid: OsdFsid,
    /// Id of the OSD.
    pub osd: OsdId,
    /// Fsid of the OSD's cluster.
    pub cluster: ClusterFsid,
    /// Mode of the OSD.
    pub mode: Mode,
    /// Object store of the OSD.
    pub store: ObjectStore,
    /// Whether the OSD is encrypted by dm-crypt.
    pub encrypted: bool,
    /// Path that the Deployment activates: `/dev/disk/by-id/...` or `/dev/VG/LV`.
    pub block_path: String,
    /// mkfs was completed, and the label has all values that activation needs.
    pub activatable: bool,
    /// Path of the db device, if it is separate.
    pub db_path: Option<String>,
    /// Kernel name (`DiskSeen.name`) of the disk with the OSD's db. Only this value distinguishes a disk with
    /// databases of this cluster from a disk with its data: both are `DiskState::Ours`.
    #[serde(default)]
    pub db_disk: Option<String>,
    /// Path of the wal device, if it is separate.
    pub wal_path: Option<String>,
}
