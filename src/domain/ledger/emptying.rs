//! Emptying of an OSD before its stop: its data moves to other OSDs while it serves.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::domain::osd::PgId;

/// Emptying of an OSD whose pools can't lose one of its replicas, or that the owner wants emptied.
///
/// The OSD is marked out, and stays up until no PG needs it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Emptying {
    /// PGs that the OSD held when it was to be marked out.
    pub pgs: BTreeSet<PgId>,
    /// Bytes that these PGs had on the OSD.
    pub bytes: u64,
    /// When it was to be marked out: saved before the command is sent.
    pub intended_at: Option<DateTime<Utc>>,
    /// When it was first observed as marked out.
    pub out_since: Option<DateTime<Utc>>,
    /// Least bytes that PGs still had on it, and when that was first observed.
    pub least: Option<(u64, DateTime<Utc>)>,
    /// Fewest PGs that were still on it by then. None in data of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_pgs: Option<u64>,
    /// When it was first observed without any PG. None again if a PG is on it later.
    pub emptied_at: Option<DateTime<Utc>>,
    /// When it was first observed as down before its stop; none while it is up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub went_down_at: Option<DateTime<Utc>>,
}

impl Emptying {
    /// Returns whether osd-migrate may have marked the OSD out.
    pub fn is_intended(&self) -> bool {
        self.intended_at.is_some()
    }
}
