//! Removal of OSDs, which a person requests for one OSD by its fsid.
//!
//! See `docs/development/adr/0035-removal.md`.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::osd::{NodeName, OsdFsid, OsdId};

/// State that the disk of a removed OSD gets.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum DiskAfter {
    /// The disk is wiped, and blank.
    #[default]
    Wipe,
    /// The disk is wiped, and gets an empty partition table: neither Rook nor osd-migrate uses it by itself.
    Mark,
    /// The disk keeps its content.
    Leave,
}

impl DiskAfter {
    /// Returns the word for it, as a person writes it.
    pub fn code(self) -> &'static str {
        self.into()
    }
}

/// Request of a person to remove an OSD.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RemovalRequest {
    /// The fsid of the OSD: another OSD under the id is not removed.
    pub fsid: OsdFsid,
    /// State that its disk gets.
    #[serde(default)]
    pub disk: DiskAfter,
    /// The id is kept for a new disk: its slot stays destroyed. Only of an OSD that is dead.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_id: bool,
    /// Node whose OSDs are all removed: they are emptied at the same time, and its CRUSH host is removed with
    /// the last of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeName>,
    /// When it was requested.
    pub since: Option<DateTime<Utc>>,
}

impl RemovalRequest {
    /// Returns the request to remove the OSD with this fsid, and to wipe its disk.
    pub fn of(fsid: OsdFsid) -> Self {
        Self { fsid, disk: DiskAfter::default(), keep_id: false, node: None, since: None }
    }
}

/// Reason for which an OSD is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// A person requested it.
    #[default]
    Request,
    /// The OSD has been down and out for a long time, and the run removes such OSDs.
    Out,
    /// The OSD is in a directory of a node without an available disk, and the run removes such OSDs.
    Directory,
}

impl Cause {
    /// Returns the value of the chart that removes the OSD; `None` if a person requested it.
    pub fn switch(self) -> Option<&'static str> {
        match self {
            Self::Request => None,
            Self::Out => Some("run.removeOut"),
            Self::Directory => Some("run.dropDirectories"),
        }
    }
}

/// Removal of an OSD, as its record stores it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Removal {
    /// Reason for which it is removed.
    pub cause: Cause,
    /// State that its disk gets.
    pub disk: DiskAfter,
    /// The OSD was down, and its data elsewhere, when it was recorded: its disk is left as it is.
    pub dead: bool,
    /// The id is kept for a new disk: its slot stays destroyed.
    pub keep_id: bool,
    /// All OSDs of its node are removed, and the CRUSH host with the last of them.
    pub whole_node: bool,
    /// Directory of its node that the OSD is in; `None` if it is on a disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Why its disk was left as it is, if it could not be wiped.
    pub left: Option<String>,
}

impl Removal {
    /// Returns the removal that the request asks for.
    pub fn by(request: &RemovalRequest) -> Self {
        let whole_node = request.node.is_some();
        Self { disk: request.disk, keep_id: request.keep_id, whole_node, ..Self::default() }
    }

    /// Returns the state that its disk gets, or has: that of a dead OSD, for example, is left as it is.
    pub fn disk_after(&self) -> DiskAfter {
        if self.left.is_some() { DiskAfter::Leave } else { self.disk }
    }

    /// Returns whether the request asks for this removal.
    pub fn is_as_in(&self, request: &RemovalRequest) -> bool {
        let asked = (request.disk, request.keep_id, request.node.is_some());
        (self.disk, self.keep_id, self.whole_node) == asked
    }
}

/// Requests as they are stored.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Requests {
    /// Requests by OSD.
    pub removals: BTreeMap<OsdId, RemovalRequest>,
    /// Keys that can't be read: these alone are ignored, and reported.
    pub unreadable: BTreeSet<String>,
}

impl Requests {
    /// Returns the request to remove the OSD with this fsid.
    pub fn of(&self, osd: OsdId, fsid: OsdFsid) -> Option<&RemovalRequest> {
        self.removals.get(&osd).filter(|request| request.fsid == fsid)
    }
}
