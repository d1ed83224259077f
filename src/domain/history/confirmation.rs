//! Confirmation of a run.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// How a run was confirmed, and by whom, as far as Kubernetes knows.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Confirmation {
    /// Name of the run's Job.
    pub job: String,
    /// Whether the schedule created the Job, and not a person.
    #[serde(default, skip_serializing_if = "is_false")]
    pub scheduled: bool,
    /// How the run was confirmed.
    pub by: ConfirmedBy,
    /// User that confirmed, or program that wrote the field or the Job (its field manager).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// When the field or the Job was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<DateTime<Utc>>,
}

/// How a run was confirmed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConfirmedBy {
    /// The flag `--confirm`.
    Flag,
    /// A field of the CephCluster.
    #[default]
    CephCluster,
    /// A plan that a person read: its hash.
    Plan(String),
}

impl ConfirmedBy {
    /// Returns the way in words.
    pub fn words(&self) -> String {
        match self {
            Self::Flag => "--confirm".to_owned(),
            Self::CephCluster => "CephCluster".to_owned(),
            Self::Plan(hash) => format!("plan {hash}"),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}
