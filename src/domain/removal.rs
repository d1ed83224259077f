//! Removal of OSDs, which a person requests for one OSD by its fsid.
//!
//! See `docs/development/adr/0035-removal.md`.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::osd::{OsdFsid, OsdId};

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
    /// When it was requested.
    pub since: Option<DateTime<Utc>>,
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
