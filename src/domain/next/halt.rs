//! Halts: why a person is needed, and the commands to type.

use std::fmt;

use crate::domain::gate::Reason;
use crate::domain::inspection::RecordId;
use crate::domain::osd::{NodeName, OsdFsid, OsdId};

/// Minutes for which the last inventory of a disk that is not available stays valid after a halt.
///
/// A run that starts later inspects the disk again, because a person may have cleared it.
pub const TAKEN_MINUTES: i64 = 3;

/// Reason why a person is needed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Halt {
    /// An OSD or the CephCluster has the mark of osd-migrate, and the ledger has no record of it.
    LedgerLost {
        /// object with the mark
        place: String,
        /// record named by the mark
        record: RecordId,
    },
    /// The id vanished, and osd-migrate did not purge it.
    PurgedExternally {
        /// vanished OSD
        osd: OsdId,
        /// old fsid of the OSD
        old: OsdFsid,
    },
    /// The old data could not be wiped safely in time.
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
    FailureLimit {
        /// quarantined OSDs with the reason
        quarantined: Vec<(OsdId, String)>,
    },
}

impl fmt::Display for Halt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LedgerLost { place, record } => write!(
                f,
                "{place} carries the mark of our record {record}, which the ledger does not hold: it was lost or deleted. \
                 Nothing was changed. Put the ConfigMap osd-migrate-ledger back; or, if the OSD is to run as it is, take the mark off: \
                 {}",
                mark_off(place)
            ),
            Self::PurgedExternally { osd, old } => write!(
                f,
                "{osd} was purged by somebody else in the middle of its migration. If nobody else is to have its id, take it back, and run \
                 again: ceph osd new {old} {id}; ceph osd destroy {id} --yes-i-really-mean-it. See `ceph osd tree`",
                id = osd.0
            ),
            Self::UnsafeToWipe { osd, old, key, reason } => {
                write!(f, "{osd} is destroyed, but its old data may not be given up: {reason}. ")?;
                restore_slot(*osd, *old, key, f)
            }
            Self::DiskTaken { osd, old, key, node, disk, found } => {
                write!(
                    f,
                    "{osd} is destroyed, its data whole in its directory, but the disk {disk} of node {node}, on which its id was to be \
                     made anew, is not free any more: {found}. Clear that disk and run again, {TAKEN_MINUTES} minutes after this at the earliest; or let \
                     the OSD serve as it was. "
                )?;
                restore_slot(*osd, *old, key, f)
            }
            Self::MisplacedInUse { osd, misplaced } => {
                write!(f, "the device of {osd} carries {misplaced}, which is in use; see `ceph osd tree`")
            }
            Self::Quarantined { quarantined } => {
                f.write_str("the rest can't go on before the PGs of OSDs that were left alone are clean:")?;
                list_quarantined(quarantined, f)
            }
            Self::CrashLoop { job, starts } => write!(
                f,
                "the last {starts} pods of this Job failed, and nothing came of them. See why: kubectl get pods -l \
                 batch.kubernetes.io/controller-uid={job}; kubectl logs POD. Mend it, and run again: kubectl create job \
                 --from=cronjob/osd-migrate NAME"
            ),
            Self::FailureLimit { quarantined } => {
                f.write_str("too many OSDs failed:")?;
                list_quarantined(quarantined, f)
            }
        }
    }
}

fn restore_slot(osd: OsdId, old: OsdFsid, key: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let id = osd.0;
    write!(
        f,
        "To give its slot back: ceph osd new {old} {id} -i FILE, where FILE is {{\"cephx_secret\": \"KEY\"}} with {key}, never \
         empty or null; then kubectl scale deployment rook-ceph-osd-{id} --replicas=1"
    )
}

fn list_quarantined(quarantined: &[(OsdId, String)], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (osd, why) in quarantined {
        write!(f, " {osd}: {why};")?;
    }
    f.write_str(" mend them and type osd-migrate retry osd.N")
}

/// Returns the command that removes the mark from a Deployment or the CephCluster.
///
/// The command for a Deployment also starts its OSD again.
fn mark_off(place: &str) -> String {
    let Some(name) = place.strip_prefix("Deployment ") else {
        return "kubectl label cephcluster --all ceph.rook.io/do-not-reconcile-".to_owned();
    };
    format!(
        "kubectl annotate deployment {name} osd-migrate.io/stopped- && kubectl scale deployment {name} --replicas=1"
    )
}
