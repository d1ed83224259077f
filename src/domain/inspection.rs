//! What the runner asks a node agent to do, and what the agent reports: plain data, the contract between the two processes.
//!
//! The request travels in the environment of the node Job, the report in a ConfigMap. Neither holds a secret: labels of
//! devices hold keys, so only the fields named here leave the node.

use std::collections::BTreeSet;
use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::osd::{ClusterFsid, DbDevice, DeviceIdentity, Layout, NodeName, OsdFsid, OsdId};

/// Names one migration of one OSD, in the ledger, on the Deployment and on everything made for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecordId(pub String);

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a node Job is for. Its name carries kind and attempt, so that a repeated create is `AlreadyExists`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeTask {
    /// Read only: find the OSD's device, prove it, say what the node's tools can do.
    Inspect,
    /// Make the proven device carry the new OSD. Convergent: on a device that does already, it changes nothing.
    Rebuild,
    /// The disk carries a finished OSD whose slot was destroyed behind it: `osd new` with that fsid and the disk's own key.
    GiveBack,
}

impl fmt::Display for NodeTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inspect => "inspect",
            Self::Rebuild => "rebuild",
            Self::GiveBack => "give-back",
        })
    }
}

/// What the agent is asked to do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeRequest {
    /// The record this is done for.
    pub record: RecordId,
    /// The saved attempt; the report names it again.
    pub attempt: u32,
    /// What to do.
    pub task: NodeTask,
    /// The node it is meant for; an agent elsewhere refuses.
    pub node: NodeName,
    /// The cluster.
    pub cluster: ClusterFsid,
    /// The OSD.
    pub osd: OsdId,
    /// The fsid recorded before Stop.
    pub old: OsdFsid,
    /// `mon_host` as Ceph takes it, for ceph-volume's own calls.
    pub mon_host: String,
    /// What was proven before Stop; none at the first inspection.
    pub evidence: Option<Evidence>,
    /// What the device is to become.
    pub target: Layout,
    /// CRUSH device class to keep.
    pub device_class: Option<String>,
    /// The disk is the node's file for tests (`TEST_ENVIRONMENT_OSD_STORE_ON_FILE`).
    #[serde(default)]
    pub on_file: bool,
    /// The device that its database goes to, where it is another.
    #[serde(default)]
    pub db: Option<DbDevice>,
}

/// What an agent found and did. The last thing it writes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeReport {
    /// As in the request.
    pub record: RecordId,
    /// As in the request.
    pub attempt: u32,
    /// As in the request.
    pub osd: OsdId,
    /// As in the request.
    pub task: NodeTask,
    /// When the agent began.
    pub began_at: DateTime<Utc>,
    /// When it ended.
    pub ended_at: DateTime<Utc>,
    /// Seconds of wall time by step (`prove`, `wipe`, `prepare`, ...), in tenths, in the order done.
    pub steps: Vec<(String, u32)>,
    /// Every fsid that an agent let through to `osd new` for this OSD and record, read from the node's lock folder.
    pub claims: BTreeSet<OsdFsid>,
    /// What the device carried when the agent looked last, under the lock, with nothing more to do.
    pub inspection: Option<Inspection>,
    /// Why the task was not done.
    pub problem: Option<NodeProblem>,
}

/// Why an agent did not do its task.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", content = "message", rename_all = "kebab-case")]
pub enum NodeProblem {
    /// Another agent holds this OSD's lock on the node. No attempt is counted.
    Busy(String),
    /// What is on the device, or the node itself, is not what was recorded. Nothing was touched.
    Refused(String),
    /// Something failed; it may be tried again.
    Failed(String),
}

impl NodeProblem {
    /// The sentence for people.
    pub fn message(&self) -> &str {
        match self {
            Self::Busy(message) | Self::Refused(message) | Self::Failed(message) => message,
        }
    }
}

/// One look at an OSD's device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Inspection {
    /// What the device carries.
    pub content: Content,
    /// Proof and identity, where `content` is the old OSD.
    pub evidence: Option<Evidence>,
    /// What the node's image can do.
    pub capability: Capability,
    /// Where the new OSD lies, where it lies on logical volumes.
    #[serde(default)]
    pub volume: Option<Volume>,
}

/// Logical volumes of a finished OSD, as its Deployment activates them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Volume {
    /// `/dev/VG/LV`
    pub block_path: String,
    /// The same of its database, where it has one of its own.
    pub db_path: Option<String>,
}

/// What a device carries, as read from it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Content {
    /// A BlueStore label at offset 0 (`ceph-bluestore-tool show-label`).
    Bluestore {
        /// `osd_uuid`
        osd_fsid: OsdFsid,
        /// `whoami`, where it is written already
        whoami: Option<OsdId>,
        /// `ceph_fsid`, where it is written already
        cluster: Option<ClusterFsid>,
        /// mkfs came to its end: `mkfs_done` is `yes` and `ready` is `ready`.
        finished: bool,
        /// The label holds `osd_key`: ceph-volume can activate it. Not so for one made by hand with a keyring file.
        activatable: bool,
    },
    /// ceph-disk's Filestore: a GPT data partition with a file system, a journal partition.
    FilestorePartition {
        /// file `fsid`
        osd_fsid: OsdFsid,
        /// file `whoami`
        whoami: OsdId,
        /// file `ceph_fsid`
        cluster: ClusterFsid,
    },
    /// Ours: written before the first wiping write.
    Tombstone {
        /// cluster it belongs to
        cluster: ClusterFsid,
        /// OSD it is kept for
        osd: OsdId,
        /// fsid of the OSD that was wiped
        old: OsdFsid,
        /// record it was written for
        record: RecordId,
    },
    /// No signature, no partition table, first and last MiB zero.
    Blank,
    /// Anything else, described for a person.
    Other {
        /// what it looks like
        what: String,
    },
    /// No device of the node carries this OSD.
    NotFound {
        /// what was looked at
        looked_at: String,
    },
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bluestore { osd_fsid, whoami, finished, .. } => {
                let how = if *finished { "a BlueStore" } else { "an unfinished BlueStore" };
                write!(f, "{how} of OSD {osd_fsid}")?;
                whoami.map_or(Ok(()), |id| write!(f, " ({id})"))
            }
            Self::FilestorePartition { osd_fsid, whoami, .. } => {
                write!(f, "a Filestore of OSD {osd_fsid} ({whoami})")
            }
            Self::Tombstone { osd, old, record, .. } => {
                write!(f, "a tombstone for {osd}, old OSD {old}, record {record}")
            }
            Self::Blank => f.write_str("a blank disk"),
            Self::Other { what } => f.write_str(what),
            Self::NotFound { looked_at } => write!(f, "no such disk: {looked_at}"),
        }
    }
}

/// What proves that a device holds the recorded OSD; read again right before the first destructive write.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Evidence {
    /// The disk that will carry the new OSD: the whole disk, also where the old OSD lies on partitions of it.
    pub device: DeviceIdentity,
    /// What is read on it.
    pub proof: Proof,
    /// Bytes that the new OSD may use.
    pub usable_bytes: u64,
}

/// The proof by kind of OSD.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Proof {
    /// The label names OSD, id and cluster.
    BluestoreLabel {
        /// `osd_uuid`
        osd_fsid: OsdFsid,
        /// `whoami`
        whoami: OsdId,
        /// `ceph_fsid`
        cluster: ClusterFsid,
        /// The label holds the OSD's key, so ceph-volume made it; made by hand where it does not.
        activatable: bool,
    },
    /// Partition and file system uuids, and the files in it.
    FilestorePartition {
        /// unique partition guid of the data partition
        data_part_uuid: String,
        /// uuid of the file system on it
        fs_uuid: String,
        /// unique partition guid of the journal partition, as the data partition's `journal_uuid` names it
        journal_part_uuid: String,
        /// file `fsid`
        osd_fsid: OsdFsid,
        /// file `whoami`
        whoami: OsdId,
        /// file `ceph_fsid`
        cluster: ClusterFsid,
    },
    /// There is nothing to lose: the disk is free, by the whole proof that an inventory asks of one. A tombstone of ours
    /// counts where the inventory saw that very one.
    Vacant {
        /// the tombstone that the inventory saw: (OSD, old fsid, record)
        tombstone: Option<(OsdId, OsdFsid, RecordId)>,
    },
}

impl Proof {
    /// The OSD that it proves to be there: its fsid, its id, its cluster; none where the disk was free.
    pub fn names(&self) -> Option<(OsdFsid, OsdId, ClusterFsid)> {
        match self {
            Self::BluestoreLabel { osd_fsid, whoami, cluster, .. }
            | Self::FilestorePartition { osd_fsid, whoami, cluster, .. } => {
                Some((*osd_fsid, *whoami, *cluster))
            }
            Self::Vacant { .. } => None,
        }
    }
}

/// What the node's image can do, asked before anything is stopped (`--help`, `--version`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Capability {
    /// `ceph --version` of the image, as printed.
    pub ceph_version: String,
    /// `ceph-volume raw prepare` knows `--osd-id` (16.2.15, 17.2.7, 18.2.1 and later).
    pub raw_osd_id: bool,
    /// Tools that the rebuild needs and the image lacks.
    pub missing_tools: BTreeSet<String>,
    /// The bootstrap-osd key was accepted by the mons.
    pub key_accepted: bool,
}
