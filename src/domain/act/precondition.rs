//! Preconditions on the data, checked right before an act.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::domain::osd::{OsdFsid, OsdId, PgId};
use crate::domain::policy::{Accepted, Missing};

/// Precondition on the data, checked right before an act.
///
/// The check uses a view that is younger than the decision, because a runner may have been frozen in between
/// (P2, P6).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DataPrecondition {
    /// Every PG allows the OSD to be stopped.
    CleanFor {
        /// The OSD.
        osd: OsdId,
        /// States, in addition to active+clean, that the owner accepts.
        accepted: Accepted,
    },
    /// No PG needs the OSD, and every PG allows a stop.
    Emptied {
        /// The OSD.
        osd: OsdId,
        /// States, in addition to active+clean, that the owner accepts.
        accepted: Accepted,
    },
    /// The stopped OSD is out, and no replica of any PG is missing.
    NoneMissing {
        /// The stopped OSD, which was emptied.
        osd: OsdId,
    },
    /// Every PG is clean, and has reported since its OSDs last changed.
    AllClean,
    /// Every PG that is not clean is one of these PGs, which a stopped OSD served, and only the replica on
    /// that OSD is missing.
    OnlyOursMissing {
        /// The stopped OSD.
        osd: OsdId,
        /// PGs as saved before Stop.
        pgs: BTreeSet<PgId>,
        /// PGs of the other OSDs of its batch that are stopped.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        beside: Missing,
    },
    /// The new OSD is up and has its data. The PGs of the old OSD are clean, wherever they are placed now.
    Backfilled {
        /// The new OSD.
        osd: OsdId,
        /// Fsid of the new OSD.
        fsid: OsdFsid,
        /// PGs as saved before Stop.
        pgs: BTreeSet<PgId>,
    },
}

impl DataPrecondition {
    /// Returns the precondition of the stop of an OSD, which may have to be empty.
    pub fn before_stop(osd: OsdId, accepted: &Accepted, emptied: bool) -> Self {
        let accepted = accepted.clone();
        if emptied { Self::Emptied { osd, accepted } } else { Self::CleanFor { osd, accepted } }
    }
}
