//! Requests to a node agent, and its reports.

use super::Evidence;
use super::Inspection;
use super::RecordId;
use std::collections::BTreeSet;
use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::domain::osd::pvc::PerPvc;
use crate::domain::osd::{ClusterFsid, DbDevice, DeviceIdentity, Layout, NodeName, OsdFsid, OsdId, Role};
use crate::domain::removal::DiskAfter;

/// Task of a node Job.
///
/// The Job's name contains kind and attempt, so that a repeated create is `AlreadyExists`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum NodeTask {
    /// Read-only: finds the OSD's device, proves it, reports the capabilities of the node's tools.
    Inspect,
    /// Creates the new OSD on the proven device.
    ///
    /// Convergent: a device that carries the new OSD already is not changed.
    Rebuild,
    /// Restores the slot of a finished OSD that was destroyed while the disk carried it: `osd new` with that
    /// fsid and the disk's own key.
    RestoreSlot,
    /// Removes the old directory, after another proof. The OSD was recreated on another device and is clean,
    /// or it is removed, and its slot is destroyed.
    Clear,
    /// Wipes the proven device of an OSD that is removed, and marks it if that is requested.
    ///
    /// Convergent: a device that is wiped already, by its tombstone, is only finished.
    Wipe,
}

impl NodeTask {
    /// Returns the code, for the history and the names of Jobs.
    pub fn code(self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for NodeTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code())
    }
}

/// Mount point in the agent's pod of the folder that contains an OSD's directory.
pub const PARENT_MOUNT: &str = "/mnt/osd-migrate-directory";

/// Mount point in the agent's pod of Rook's `dataDirHostPath` during a rebuild.
pub const ROOK_MOUNT: &str = "/mnt/osd-migrate-rook";

/// Mount point in the agent's pod of the folder with the device node of the OSD's PVC.
pub const PVC_MOUNT: &str = "/mnt/osd-migrate-pvc";

/// Returns the name of the device node in that folder, by what the OSD has on the PVC.
pub fn pvc_node(role: Role) -> &'static str {
    match role {
        Role::Db => "db",
        Role::Wal => "wal",
        Role::Block | Role::Data | Role::Journal => "data",
    }
}

/// Mount point in the agent's pod of the Secret with the OSD's key (`osd::pvc::key_secret`).
pub const KEY_MOUNT: &str = "/mnt/osd-migrate-key";

/// Request to a node agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeRequest {
    /// Record of the migration.
    pub record: RecordId,
    /// Number of the saved attempt, which the report repeats.
    pub attempt: u32,
    /// Task of the agent.
    pub task: NodeTask,
    /// Node of the OSD. An agent on another node refuses.
    pub node: NodeName,
    /// Cluster of the OSD.
    pub cluster: ClusterFsid,
    /// OSD of the record.
    pub osd: OsdId,
    /// fsid recorded before Stop.
    pub old: OsdFsid,
    /// fsids that were issued for the record, as far as agents reported them.
    ///
    /// The node has its own list, which is lost if its system is installed again.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub issued: BTreeSet<OsdFsid>,
    /// `mon_host` as Ceph takes it, for ceph-volume's own calls.
    pub mon_host: String,
    /// Evidence from before Stop; none at the first inspection.
    pub evidence: Option<Evidence>,
    /// Layout that the device is to get.
    pub target: Layout,
    /// CRUSH device class to keep.
    pub device_class: Option<String>,
    /// Whether the disk is the node's file for tests (`TEST_ENVIRONMENT_OSD_STORE_ON_FILE`).
    #[serde(default)]
    pub on_file: bool,
    /// Device of the OSD's database, if it is another device.
    #[serde(default)]
    pub db: Option<DbDevice>,
    /// State that the device of a removed OSD gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<DiskAfter>,
    /// Directory of the old OSD on the host, if the OSD is in a directory.
    #[serde(default)]
    pub directory: Option<Directory>,
    /// PVCs of the OSD, if it is on PVCs. The agent's pod has their devices, and the agent searches no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pvcs: Option<PerPvc<String>>,
    /// Whether the PVCs are available ones that become an OSD.
    ///
    /// The first inspection then looks for blank devices, not for an OSD.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub on_new_pvcs: bool,
    /// Whether the old OSD is encrypted: then it has a key, and none is created.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_encrypted: bool,
}

impl NodeRequest {
    /// Returns the PVC of the OSD's data.
    pub fn data_pvc(&self) -> Option<&str> {
        self.pvcs.as_ref().map(|pvcs| pvcs.data.as_str())
    }

    /// Returns whether this is the first inspection of PVCs that are to become an OSD.
    pub fn looks_for_blank(&self) -> bool {
        self.on_new_pvcs && self.pvcs.is_some() && self.evidence.is_none()
    }

    /// Returns the PVC whose key the agent gets: that of the data of an OSD that is to be encrypted.
    ///
    /// Without encryption as its target, an OSD is identified by its recorded LUKS header, and its key is not
    /// needed.
    pub fn pvc_with_key(&self) -> Option<&str> {
        self.data_pvc().filter(|_| self.target.encrypted)
    }

    /// Returns the PVC for which a key is created, if it has none: the old OSD is unencrypted.
    ///
    /// A key that an encrypted OSD has lost is not replaced by another one: the OSD could not be started
    /// again after a stop, and nothing would show that its key is missing.
    pub fn pvc_for_new_key(&self) -> Option<&str> {
        self.pvc_with_key().filter(|_| !self.is_encrypted)
    }
}

/// Directory of an OSD, and the available device on which its id is recreated.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Directory {
    /// Path on the host, as its Deployment mounts it.
    pub path: String,
    /// Device for the recreated OSD; `None` if the OSD is removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub onto: Option<DeviceIdentity>,
}

impl Directory {
    /// Returns the parent of the OSD's directory, and the directory's name there; `None` if the path is not
    /// plain and absolute, or is directly below the root.
    ///
    /// The agent gets the parent mounted, and that is never the whole host.
    pub fn parent_and_name(&self) -> Option<(&str, &str)> {
        let (parent, name) = self.path.rsplit_once('/')?;
        let is_plain = |part: &str| !matches!(part, "" | "." | "..");
        let mut parents = parent.strip_prefix('/')?.split('/');
        (parents.all(is_plain) && is_plain(name)).then_some((parent, name))
    }
}

/// Report of an agent: findings and results.
///
/// The agent writes it last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct NodeReport {
    /// Record of the request.
    pub record: RecordId,
    /// Attempt of the request.
    pub attempt: u32,
    /// OSD of the request.
    pub osd: OsdId,
    /// Task of the request.
    pub task: NodeTask,
    /// Start of the agent.
    pub began_at: DateTime<Utc>,
    /// End of the agent.
    pub ended_at: DateTime<Utc>,
    /// Seconds of wall time by step (`prove`, `wipe`, `prepare`, ...), in tenths, in the order done.
    pub steps: Vec<(String, u32)>,
    /// Every fsid that an agent let through to `osd new` for this OSD and record, read from the node's lock
    /// folder.
    pub issued: BTreeSet<OsdFsid>,
    /// Contents of the device at the agent's last inspection, under the lock, with nothing more to do.
    pub inspection: Option<Inspection>,
    /// Folders of the old OSD that stay on the host, with the reason: they contain more than Rook puts there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<String>,
    /// Reason why the task was not done.
    pub problem: Option<NodeProblem>,
}

/// Reason why an agent did not do its task.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", content = "message", rename_all = "kebab-case")]
pub enum NodeProblem {
    /// Another agent has this OSD's lock on the node. No attempt is counted.
    Busy(String),
    /// Device or node are not as recorded. Nothing was touched.
    Refused(String),
    /// A device that the new OSD is to get carries data of another owner. Nothing was touched, and no further
    /// inspection changes that.
    Foreign(String),
    /// A failure that may be retried.
    Failed(String),
}

impl NodeProblem {
    /// Returns the sentence for people.
    pub fn message(&self) -> &str {
        match self {
            Self::Busy(message) | Self::Refused(message) | Self::Foreign(message) | Self::Failed(message) => {
                message
            }
        }
    }
}
