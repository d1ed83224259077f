//! Halts: why a person is needed, and the commands to type.

use std::fmt;

use crate::domain::commands::{RUN_AGAIN, scale_osd};
use crate::domain::gate::{Reason, retries};
use crate::domain::inspection::RecordId;
use crate::domain::osd::{NodeName, OsdFsid, OsdId};

/// Minutes for which the last inventory of a disk that is not available stays valid after a halt.
///
/// A run that starts later inspects the disk again, because a person may have cleared it.
pub const TAKEN_MINUTES: i64 = 3;

/// Reason why a person is needed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Halt {
    /// An OSD or the CephCluster has the mark of osd-migrate, and the ledger has no record of it.
    LedgerLost {
        /// object with the mark
        place: String,
        /// record named by the mark
        record: RecordId,
    },
    /// The old data could not be wiped safely in time.
    #[strum(serialize = "wipe-blocked-too-long")]
    UnsafeToWipe {
        /// OSD with the old data
        osd: OsdId,
        /// old fsid of the OSD
        old: OsdFsid,
        /// location of the OSD's key
        key: String,
        /// why a wipe is unsafe
        reason: Reason,
    },
    /// The disk chosen for an OSD from a directory is no longer available, and the OSD's slot is destroyed.
    DiskTaken {
        /// OSD to recreate
        osd: OsdId,
        /// old fsid of the OSD
        old: OsdFsid,
        /// location of the OSD's key
        key: String,
        /// node of the disk
        node: NodeName,
        /// disk that was chosen
        disk: String,
        /// what was found on the disk
        found: String,
    },
    /// The id that ceph-volume created by mistake for osd-migrate is in use.
    MisplacedInUse {
        /// OSD that is migrated
        osd: OsdId,
        /// id created by mistake
        misplaced: OsdId,
    },
    /// The run can continue with the other OSDs only when the PGs of the quarantined OSDs are clean again.
    #[strum(serialize = "quarantined-not-clean")]
    Quarantined {
        /// quarantined OSDs with the reason
        quarantined: Vec<(OsdId, String)>,
    },
    /// The pods of this run's Job ended again and again without progress.
    CrashLoop {
        /// uid of the Job
        job: String,
        /// number of failed pods since the last progress
        starts: u32,
    },
    /// More OSDs failed than the failure limit allows.
    #[strum(serialize = "too-many-failures")]
    FailureLimit {
        /// quarantined OSDs with the reason
        quarantined: Vec<(OsdId, String)>,
    },
}

impl Halt {
    /// Returns the code: the anchor of the halt in the reference of messages.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LedgerLost { place, record } => write!(
                f,
                "{place} has the mark of record {record}, but the ledger has no such record: the ledger was lost or deleted. \
                 Nothing was changed. Restore the ConfigMap osd-migrate-ledger in namespace NAMESPACE. Or remove the mark, if the \
                 OSD is to run as it is: {}",
                mark_off(place)
            ),
            Self::UnsafeToWipe { osd, old, key, reason } => {
                write!(f, "{osd} is destroyed, but its old data cannot be wiped safely: {reason}. ")?;
                restore_slot(*osd, *old, key, f)
            }
            Self::DiskTaken { osd, old, key, node, disk, found } => {
                write!(
                    f,
                    "{osd} is destroyed and its data is complete in its directory, but its new disk {disk} on node {node} is no \
                     longer available: {found}. Clear that disk and run again, {TAKEN_MINUTES} minutes from now at the earliest. \
                     Or let the OSD serve from its directory. "
                )?;
                restore_slot(*osd, *old, key, f)
            }
            Self::MisplacedInUse { osd, misplaced } => write!(
                f,
                "the device of {osd} carries {misplaced}, which is in use. See: ceph osd find {}; ceph osd metadata {}",
                misplaced.0, misplaced.0
            ),
            Self::Quarantined { quarantined } => {
                f.write_str("the other OSDs wait until the PGs of the quarantined OSDs are active+clean:")?;
                list_quarantined(quarantined, f)
            }
            Self::CrashLoop { job, starts } => write!(
                f,
                "the last {starts} pods of this Job failed without progress. See: kubectl -n NAMESPACE logs --prefix --tail=20 -l \
                 batch.kubernetes.io/controller-uid={job}. Fix the cause, then run again: {RUN_AGAIN}"
            ),
            Self::FailureLimit { quarantined } => {
                f.write_str("the failure limit is reached:")?;
                list_quarantined(quarantined, f)
            }
        }
    }
}

fn restore_slot(osd: OsdId, old: OsdFsid, key: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(
        f,
        "To restore its slot: ceph osd new {old} {} -i FILE, where FILE contains {{\"cephx_secret\": \"KEY\"}} with {key} (never \
         empty or null); then {}",
        osd.0,
        scale_osd(osd, 1)
    )
}

fn list_quarantined(quarantined: &[(OsdId, String)], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (osd, why) in quarantined {
        write!(f, " {osd}: {why};")?;
    }
    write!(f, " fix them, then: {}", retries(quarantined.iter().map(|(osd, _)| osd)))
}

/// Returns the command that removes the mark from a Deployment or the CephCluster.
///
/// The command for a Deployment also starts its OSD again.
fn mark_off(place: &str) -> String {
    let Some(name) = place.strip_prefix("Deployment ") else {
        return "kubectl -n NAMESPACE label cephcluster CEPHCLUSTER ceph.rook.io/do-not-reconcile-"
            .to_owned();
    };
    format!(
        "kubectl -n NAMESPACE annotate deployment {name} osd-migrate.io/stopped- && kubectl -n NAMESPACE scale deployment \
         {name} --replicas=1"
    )
}
