//! Progress of each node with its new OSDs.

use crate::domain::osd::OsdId;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Progress of a node with its new OSDs (Rook's words: `computingDiff`, `orchestrating`, `completed`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NodeWork {
    /// Status of the node.
    pub status: NodeStatus,
    /// Since when the node has this status.
    pub since: DateTime<Utc>,
    /// Message for people.
    pub message: String,
    /// The run that works on the node. Another run makes another inventory.
    pub run: String,
    /// The run that asked for the node's inventory, if it is an earlier one.
    pub inventoried_by: Option<String>,
    /// Since when the run waits for the node, which is not Ready, cordoned, or used by a Job of Rook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub away_since: Option<DateTime<Utc>>,
    /// Number of the inventory, saved before its Job is created.
    pub inventory: u32,
    /// Inventories that failed one after the other.
    pub failures: u32,
    /// Disks that became OSDs in this run after the inventory, by their stable names.
    pub done: BTreeSet<String>,
    /// Disks that this run skips because they were not available after all, by stable name, with the finding.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left: BTreeMap<String, String>,
    /// Directories of OSDs recreated elsewhere that could not be removed in this run: reason by path.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub directories: BTreeMap<String, String>,
    /// OSDs of the node whose database can't be created on the device declared for it, with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub databases: BTreeMap<OsdId, String>,
    /// Obstacles: named devices that are missing or in use, settings that can't be fulfilled.
    pub problems: Vec<String>,
}

impl NodeWork {
    /// Returns the run that asked for the node's inventory.
    pub fn inventory_run(&self) -> &str {
        self.inventoried_by.as_deref().unwrap_or(&self.run)
    }
}

/// Status of a node's new OSDs, see `NodeWork`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "camelCase")]
#[strum(serialize_all = "camelCase")]
pub enum NodeStatus {
    /// An inventory of the node's disks is in progress.
    ComputingDiff,
    /// The new OSDs of the node are being created.
    Orchestrating,
    /// Nothing is left to do.
    Completed,
}

impl NodeStatus {
    /// Returns the status name, which Rook also uses for its nodes.
    pub fn code(self) -> &'static str {
        self.into()
    }
}
