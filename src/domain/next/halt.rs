//! Why a person is needed, and what they type.

use std::fmt;

use crate::domain::gate::Reason;
use crate::domain::inspection::RecordId;
use crate::domain::osd::{NodeName, OsdFsid, OsdId};

/// Minutes for which the last look at a disk that is not free holds after a halt: a run that comes later looks again, since a
/// person may have cleared it.
pub const TAKEN_MINUTES: i64 = 3;

/// Why a person is needed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Halt {
    /// An OSD, or the CephCluster, carries our mark, and the ledger knows nothing of it.
    LedgerLost {
        /// where the mark is
        place: String,
        /// the record it names
        record: RecordId,
    },
    /// The id vanished, and not by us.
    PurgedExternally {
        /// which
        osd: OsdId,
        /// its old fsid
        old: OsdFsid,
    },
    /// The old data could not be wiped safely in time.
    UnsafeToWipe {
        /// which
        osd: OsdId,
        /// its old fsid
        old: OsdFsid,
        /// where its key is
        key: String,
        /// why
        reason: Reason,
    },
    /// The disk that an OSD in a directory was to be made anew on is not free any more, and its slot is destroyed.
    DiskTaken {
        /// which
        osd: OsdId,
        /// its old fsid
        old: OsdFsid,
        /// where its key is
        key: String,
        /// where the disk is
        node: NodeName,
        /// the disk
        disk: String,
        /// what is there
        found: String,
    },
    /// The id that was made for us by mistake is in use.
    MisplacedInUse {
        /// ours
        osd: OsdId,
        /// the other
        misplaced: OsdId,
    },
    /// The others could go on only when the PGs of OSDs that were left alone are clean again.
    Quarantined {
        /// which, with the reason
        quarantined: Vec<(OsdId, String)>,
    },
    /// The pods of this run's Job ended again and again, and nothing came of it.
    CrashLoop {
        /// uid of the Job
        job: String,
        /// how often since it got anywhere
        starts: u32,
    },
    /// More OSDs failed than the budget allows.
    FailureLimit {
        /// which, with the reason
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

/// How our mark is taken off a Deployment, which is to start its OSD again, or off the CephCluster.
fn mark_off(place: &str) -> String {
    let Some(name) = place.strip_prefix("Deployment ") else {
        return "kubectl label cephcluster --all ceph.rook.io/do-not-reconcile-".to_owned();
    };
    format!(
        "kubectl annotate deployment {name} osd-migrate.io/stopped- && kubectl scale deployment {name} --replicas=1"
    )
}
