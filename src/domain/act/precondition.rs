//! What must hold of the data right before an act.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::domain::osd::{OsdFsid, OsdId, PgId};
use crate::domain::policy::Accepted;

/// What must hold of the data right before an act, asked on a view that is younger than the decision: a runner may have been
/// frozen in between (P2, P6).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DataPrecondition {
    /// Every PG allows that the OSD is stopped.
    CleanFor {
        /// The OSD.
        osd: OsdId,
        /// States besides active+clean that the owner accepts.
        accepted: Accepted,
    },
    /// Every PG is clean, and has reported since its OSDs last changed.
    AllClean,
    /// Every PG that is not clean is one of these, which the stopped OSD served, and lacks its copy alone.
    OnlyOursMissing {
        /// The stopped OSD.
        osd: OsdId,
        /// PGs as saved at Stop.
        pgs: BTreeSet<PgId>,
    },
    /// The new OSD is up and has its data; what the old one held is clean, wherever it is now.
    Backfilled {
        /// The new OSD.
        osd: OsdId,
        /// Its fsid.
        fsid: OsdFsid,
        /// PGs as saved at Stop.
        pgs: BTreeSet<PgId>,
    },
}
