//! What a node's disks are, and which OSDs are on them, as an agent saw them without touching one. Plain data, the contract between agent and runner; it travels in a ConfigMap.

use std::collections::BTreeSet;
use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::inspection::{Capability, RecordId};
use super::osd::{ClusterFsid, DeviceIdentity, Mode, NodeName, ObjectStore, OsdFsid, OsdId};

/// What an agent is asked to look at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct InventoryRequest {
    /// The run that asks: the uid of its Job. A look of another run is never believed.
    pub run: String,
    /// The saved number of the look; the report names it again.
    pub number: u32,
    /// The node it is meant for; an agent elsewhere refuses.
    pub node: NodeName,
    /// The cluster: what makes a label ours or foreign.
    pub cluster: ClusterFsid,
    /// `TEST_ENVIRONMENT_OSD_STORE_ON_FILE` is set: no disk is looked at, but the file of this node.
    pub on_file: bool,
}

/// What an agent saw. The last thing it writes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct InventoryReport {
    /// As in the request.
    pub run: String,
    /// As in the request.
    pub number: u32,
    /// As in the request.
    pub node: NodeName,
    /// When the agent began.
    pub began_at: DateTime<Utc>,
    /// When it ended.
    pub ended_at: DateTime<Utc>,
    /// Seconds of wall time by step, in tenths, in the order done.
    pub steps: Vec<(String, u32)>,
    /// What was seen; none where it could not be looked at.
    pub inventory: Option<NodeInventory>,
    /// Why not.
    pub problem: Option<String>,
}

/// The disks of a node and the OSDs on them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeInventory {
    /// What the node's image can do.
    pub capability: Capability,
    /// Whole disks and partitions, by kernel name.
    pub disks: Vec<DiskSeen>,
    /// OSDs of any cluster, by `ceph-volume raw list` and `lvm list`.
    pub osds: Vec<OsdSeen>,
    /// What could not be looked at, or was left out: sentences for people.
    pub notes: Vec<String>,
}

/// A whole disk or a partition.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DiskSeen {
    /// The kernel's name today (`sdb`, `sdb1`), as `deviceFilter` and `devices[].name` mean it. No identity.
    pub name: String,
    /// The disk that it is a partition of.
    pub parent: Option<String>,
    /// All links under `/dev` that lead to it, in full: `/dev/disk/by-id/...`, `/dev/disk/by-path/...`.
    pub links: BTreeSet<String>,
    /// Who it is; of a partition its own names and size.
    pub identity: DeviceIdentity,
    /// `queue/rotational`
    pub rotational: bool,
    /// What is on it.
    pub state: DiskState,
}

/// What is on a disk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum DiskState {
    /// Nothing: no signature, no partition, no copy of a label, first and last MiB zero, nobody has it.
    Available,
    /// Our tombstone: it was proven and is being wiped, or its new OSD was never made.
    Tombstone {
        /// OSD it is kept for
        osd: OsdId,
        /// fsid of the OSD that was wiped
        old: OsdFsid,
        /// record it was written for
        record: RecordId,
    },
    /// An OSD of this cluster, or a part of one.
    Ours {
        /// its fsid
        fsid: OsdFsid,
        /// its id, where it is written already
        osd: Option<OsdId>,
    },
    /// Anything else: never touched.
    Rejected {
        /// why
        why: Rejection,
    },
}

/// Why a disk is not free.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rejection {
    /// `ro` is 1.
    ReadOnly,
    /// Below what ceph-volume takes (`ceph-volume inventory`: 5 GB).
    TooSmall {
        /// its size
        bytes: u64,
    },
    /// It has partitions: they are looked at themselves.
    Partitioned {
        /// how many
        count: usize,
    },
    /// It is mounted.
    Mounted {
        /// where
        at: String,
    },
    /// Kernel devices lie on it (LVM, dm-crypt, md).
    Held {
        /// which
        by: Vec<String>,
    },
    /// An OSD of another cluster, or of none that is known.
    ForeignCeph {
        /// whose, where its label says
        cluster: Option<ClusterFsid>,
    },
    /// A physical volume of LVM.
    Lvm,
    /// A LUKS header.
    Luks,
    /// A file system or anything else that libblkid knows.
    Signature {
        /// as libblkid names it
        kind: String,
    },
    /// No signature, but bytes that are not zero.
    Data {
        /// where
        what: String,
    },
    /// It is a PersistentVolume.
    PersistentVolume {
        /// its name
        name: String,
        /// the claim that it is bound to, `namespace/name`
        claim: Option<String>,
    },
    /// It may be a PersistentVolume: the path of one of its node, for a device of that size, leads to no disk that is known.
    MayBePersistentVolume {
        /// its name
        name: String,
        /// its path on the node
        path: String,
    },
    /// Nothing under `/dev/disk/by-id` or `by-path` names it, so it can't be found again after a reboot.
    NoStableName,
    /// It could not be read.
    Unreadable {
        /// the error
        why: String,
    },
    /// Only `ceph-volume inventory` rejects it.
    CephVolume {
        /// its words
        why: Vec<String>,
    },
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReadOnly => f.write_str("read-only"),
            Self::TooSmall { bytes } => {
                write!(f, "too small: {} MiB, ceph-volume takes 5 GB at least", bytes >> 20)
            }
            Self::Partitioned { count } => write!(f, "has {count} partitions"),
            Self::Mounted { at } => write!(f, "mounted at {at}"),
            Self::Held { by } => write!(f, "in use: {} on it", by.join(", ")),
            Self::ForeignCeph { cluster: Some(cluster) } => write!(f, "an OSD of another cluster, {cluster}"),
            Self::ForeignCeph { cluster: None } => f.write_str("an OSD of a cluster that is not named"),
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
                "perhaps PersistentVolume {name}: which disk its path {path} leads to can't be seen; see `readlink -f {path}` on its node"
            ),
            Self::NoStableName => f.write_str("no name under /dev/disk/by-id or by-path"),
            Self::Unreadable { why } => write!(f, "can't be read: {why}"),
            Self::CephVolume { why } => write!(f, "ceph-volume rejects it: {}", why.join(", ")),
        }
    }
}

/// An OSD that was found on a node's disks, whoever made it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OsdSeen {
    /// Its fsid.
    pub fsid: OsdFsid,
    /// Its id.
    pub osd: OsdId,
    /// Its cluster.
    pub cluster: ClusterFsid,
    /// How it lies there.
    pub mode: Mode,
    /// Its object store.
    pub store: ObjectStore,
    /// dm-crypt.
    pub encrypted: bool,
    /// What its Deployment activates: `/dev/disk/by-id/...` or `/dev/VG/LV`.
    pub block_path: String,
    /// mkfs came to its end, and its label holds what activation needs.
    pub activatable: bool,
    /// Its db device, where it is another.
    pub db_path: Option<String>,
    /// Kernel name (`DiskSeen.name`) of the disk that its db lies on. Only this tells a disk with databases of this cluster from
    /// one with data of it: both are `DiskState::Ours`.
    #[serde(default)]
    pub db_disk: Option<String>,
    /// Its wal device, where it is another.
    pub wal_path: Option<String>,
}
