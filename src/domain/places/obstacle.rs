//! Why a place of a device set gets no OSD, with what to do.

use std::fmt;

use super::LetRook;
use crate::domain::classify::PvcRefusal;

/// Why a place of a device set gets no OSD.
#[derive(Debug, Clone, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "place-")]
pub enum Obstacle {
    /// The CephCluster declares the set, or a template of it, twice.
    Unclear {
        /// what is declared twice
        what: String,
    },
    /// The CephCluster declares no number of OSDs for the set.
    NoCount,
    /// OSDs of the set may change their node.
    Portable(LetRook),
    /// The key of an OSD of the set is kept in a key management service.
    Kms {
        /// provider
        kms: String,
        /// how Rook creates the OSD
        rook: LetRook,
    },
    /// This version creates no OSD with the declared store.
    Store(String),
    /// No OSD of the set has a Deployment from which that of a new OSD can be made.
    NoSource(LetRook),
    /// The index has no PVC for the data.
    NoPvc(LetRook),
    /// The index has several PVCs for the data.
    SeveralPvcs {
        /// name of the set
        set: String,
        /// the index
        index: u32,
        /// the PVCs
        pvcs: Vec<String>,
    },
    /// The PVC has no PersistentVolume yet, and therefore no node.
    Pending {
        /// PVC of the data
        pvc: String,
        /// how Rook has it bound
        rook: LetRook,
    },
    /// A PVC of the index can't be used.
    Pvc(PvcRefusal),
    /// The node of the PersistentVolume is unknown, or is not one.
    NoNode {
        /// PVC of the data
        pvc: String,
        /// its PersistentVolume
        volume: String,
        /// nodes of the cluster that the PersistentVolume names
        nodes: Vec<String>,
    },
    /// The node is not Ready, or is cordoned.
    Node {
        /// PVC of the data
        pvc: String,
        /// sentence about the node
        why: String,
    },
    /// The set has as many OSDs as it declares.
    Surplus {
        /// PVC of the data
        pvc: String,
        /// OSDs that the set declares
        count: u32,
    },
    /// This run has given up an OSD on the PVC.
    Left {
        /// PVC of the data
        pvc: String,
        /// why: its device is not blank, or the Deployment of its OSD is refused
        found: String,
    },
    /// The plan that a person approved does not have the PVC.
    NotInPlan {
        /// PVC of the data
        pvc: String,
    },
}

impl Obstacle {
    /// Returns the code: the anchor of the obstacle in the reference of messages.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unclear { what } => write!(
                f,
                "the CephCluster declares {what} twice, so no OSD is created for it. Rename one: kubectl -n NAMESPACE \
                 edit cephcluster CEPHCLUSTER"
            ),
            Self::NoCount => f.write_str(
                "its `count` is missing or is not a whole number, so no OSD is created for it. Correct it: kubectl -n \
                 NAMESPACE edit cephcluster CEPHCLUSTER",
            ),
            Self::Portable(rook) => {
                write!(f, "it is portable, and osd-migrate creates no OSD that may change its node. {rook}")
            }
            Self::Kms { kms, rook } => {
                write!(f, "the key of its OSD would have to be stored in {kms}, which only Rook does. {rook}")
            }
            Self::Store(store) => {
                write!(f, "the declared store is {store}, but this version creates only bluestore")
            }
            Self::NoSource(rook) => write!(
                f,
                "no OSD of the set is up and as the set declares, so there is no Deployment from which that of a new \
                 OSD could be made. {rook}"
            ),
            Self::NoPvc(rook) => write!(f, "the PVC is missing. {rook}"),
            Self::SeveralPvcs { set, index, pvcs } => write!(
                f,
                "several PVCs have this index ({}), and none of them is used. See: kubectl -n NAMESPACE get pvc -l \
                 ceph.rook.io/DeviceSet={set},ceph.rook.io/setIndex={index}",
                pvcs.join(", ")
            ),
            Self::Pending { pvc, rook } => write!(
                f,
                "PVC {pvc} is Pending: it has no PersistentVolume, so the node of its OSD is unknown. With \
                 volumeBindingMode WaitForFirstConsumer it is bound as soon as Rook prepares its OSD. {rook}. To see \
                 the PVC: kubectl -n NAMESPACE describe pvc {pvc}"
            ),
            Self::Pvc(refusal) => pvc(refusal, f),
            Self::NoNode { pvc, volume, nodes } => no_node(pvc, volume, nodes, f),
            Self::Node { pvc, why } => write!(f, "PVC {pvc} is not used for now: {why}"),
            Self::Surplus { pvc, count } => write!(
                f,
                "PVC {pvc} is not used, because the set declares count {count} and has as many OSDs. To use it, raise \
                 the count: kubectl -n NAMESPACE edit cephcluster CEPHCLUSTER"
            ),
            Self::Left { pvc, found } => write!(
                f,
                "PVC {pvc} is left unchanged in this run: {found}. See: kubectl -n NAMESPACE describe pvc {pvc}"
            ),
            Self::NotInPlan { pvc } => {
                write!(f, "PVC {pvc} is not in the plan that was approved. See: osd-migrate -n NAMESPACE plan")
            }
        }
    }
}

/// Writes why a PVC can't be used for a new OSD.
fn pvc(refusal: &PvcRefusal, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match refusal {
        PvcRefusal::PvcNotBound { pvc, phase } => {
            write!(f, "PVC {pvc} is {phase}. Check it: kubectl -n NAMESPACE get pvc {pvc}")
        }
        PvcRefusal::PvcNoBlock { pvc } => write!(
            f,
            "PVC {pvc} has volumeMode Filesystem, and osd-migrate creates OSDs on volumeMode Block only. See: kubectl \
             -n NAMESPACE describe pvc {pvc}"
        ),
        PvcRefusal::PvcOnePod { pvc } => write!(
            f,
            "PVC {pvc} has accessMode ReadWriteOncePod: no other pod can check its device while its OSD is running. \
             See: kubectl -n NAMESPACE describe pvc {pvc}"
        ),
        refusal @ (PvcRefusal::NoSet { .. }
        | PvcRefusal::SetUnclear { .. }
        | PvcRefusal::NoDatabasePvc { .. }
        | PvcRefusal::LvmOnPvc { .. }
        | PvcRefusal::KeyInKms { .. }
        | PvcRefusal::OldRotation { .. }
        | PvcRefusal::PvcNameTooLong { .. }) => write!(f, "{refusal}"),
    }
}

fn no_node(pvc: &str, volume: &str, nodes: &[String], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match nodes {
        [] => write!(
            f,
            "PersistentVolume {volume} of PVC {pvc} names no node of this cluster, so the node of its OSD is unknown. \
             See: kubectl describe pv {volume}"
        ),
        several => write!(
            f,
            "PersistentVolume {volume} of PVC {pvc} can be used on several nodes ({}), and osd-migrate chooses none. \
             See: kubectl describe pv {volume}",
            several.join(", ")
        ),
    }
}
