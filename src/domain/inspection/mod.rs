//! What the runner asks a node agent to do, and what the agent reports: plain data, the contract between the two processes.
//!
//! The request travels in the environment of the node Job, the report in a ConfigMap. Neither holds a secret: labels of
//! devices hold keys, so only the fields named here leave the node.

mod device;

pub use device::{
    Capability, Content, Evidence, Inspection, KernelDisk, Piece, PieceLocation, Proof, Volume,
};

use std::collections::BTreeSet;
use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::domain::osd::{ClusterFsid, DbDevice, DeviceIdentity, Layout, NodeName, OsdFsid, OsdId};

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
    RestoreSlot,
    /// The OSD was made anew on another device and is clean: its old directory goes, proven once more.
    Clear,
}

impl fmt::Display for NodeTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inspect => "inspect",
            Self::Rebuild => "rebuild",
            Self::RestoreSlot => "restore-slot",
            Self::Clear => "clear",
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
    /// The old OSD lies in a directory of the host, and is to be made anew elsewhere.
    #[serde(default)]
    pub directory: Option<Directory>,
}

/// An OSD in a directory, and the free device that its id is made anew on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Directory {
    /// Path on the host, as its Deployment mounts it.
    pub path: String,
    /// The device.
    pub onto: DeviceIdentity,
}

impl Directory {
    /// The directory that it lies in, and its name there; none where the path is no plain absolute one, or lies directly below
    /// the root: what is mounted for the agent is the parent, and that is never the whole host.
    pub fn parent_and_name(&self) -> Option<(&str, &str)> {
        let (parent, name) = self.path.rsplit_once('/')?;
        let is_plain = |part: &str| !matches!(part, "" | "." | "..");
        let mut parents = parent.strip_prefix('/')?.split('/');
        (parents.all(is_plain) && is_plain(name)).then_some((parent, name))
    }
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
    pub issued: BTreeSet<OsdFsid>,
    /// What the device carried when the agent looked last, under the lock, with nothing more to do.
    pub inspection: Option<Inspection>,
    /// Folders of the old OSD that stay on the host, with why: more is in them than Rook puts there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
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
