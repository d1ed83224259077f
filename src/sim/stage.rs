//! A node agent's stages, from its start to its report.

use crate::domain::inspection::{Content, NodeProblem, NodeRequest};
use crate::domain::osd::{OsdFsid, OsdId};

/// Process of an agent.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Agent {
    /// Request of the runner.
    pub request: NodeRequest,
    /// Progress.
    pub stage: Stage,
}

/// Progress of an agent: what it has done.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stage {
    /// The pod is not started.
    Waiting,
    /// The agent has the lock and has read the disk, which may be rebuilt.
    Inspected {
        /// Disk that was found.
        disk: String,
        /// Content of the disk.
        content: Content,
    },
    /// The agent has opened the disk exclusively, and has proven it again afterwards.
    Proven {
        /// Disk.
        disk: String,
    },
    /// The tombstone is written. For a rebuild the rest is wiped, and the disk closed: ceph-volume starts.
    ///
    /// A disk that is only wiped is still open.
    Buried {
        /// Disk.
        disk: String,
    },
    /// `osd new` succeeded.
    Registered {
        /// Disk.
        disk: String,
        /// New fsid.
        fsid: OsdFsid,
        /// Id that Ceph returned.
        id: OsdId,
    },
    /// mkfs has written the label, and is not done.
    Labelled {
        /// Disk.
        disk: String,
        /// New fsid.
        fsid: OsdFsid,
        /// Id in the label.
        id: OsdId,
    },
    /// The agent only reads and reports from now on.
    Reporting {
        /// Reason why the task was not done.
        problem: Option<NodeProblem>,
    },
}

impl Agent {
    pub(super) fn new(request: NodeRequest) -> Self {
        Self { request, stage: Stage::Waiting }
    }

    pub(super) fn has_lock(&self) -> bool {
        self.stage != Stage::Waiting
    }
}
