//! PersistentVolumeClaims of OSDs, with what Kubernetes does not show.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::domain::osd::pvc::PerPvc;
use crate::domain::osd::{NodeName, OsdFsid, OsdId};

/// Device set of all PVCs of an example.
pub(super) const SET: &str = "set1";

/// PVCs of OSDs, with what Kubernetes does not show.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Pvcs {
    /// PVCs of each OSD that is on some, as its Deployment names them.
    pub of: BTreeMap<OsdId, PerPvc<String>>,
    /// Disk behind each PVC.
    pub disks: BTreeMap<String, String>,
    /// Number of the key in the Secret of each PVC that has one.
    pub keys: BTreeMap<String, u32>,
    /// Stores in LUKS, with the number of the key that their header was formatted with.
    pub stores: BTreeMap<OsdFsid, u32>,
    /// Disks with an open mapping.
    pub open: BTreeSet<String>,
    /// Disks that are volumes of a CSI driver: they can be attached to any node, each time under another
    /// name.
    pub attachable: BTreeSet<String>,
}

/// Change of a PVC, its key or its device set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PvcChange {
    /// A person deletes a PVC and recreates it under its name: it is bound to another disk.
    Recreated(String, String),
    /// A person deletes the Secret with the key of a PVC.
    KeyDeleted(String),
    /// The owner edits `encrypted` of the device set.
    SetEdited(bool),
    /// Rook starts to rotate the key of an OSD, whose pod exists.
    RotationStarts(OsdId),
    /// The rotation ends.
    RotationEnds(OsdId),
    /// The pod of a portable OSD is evicted, and starts on another node.
    PodMoves(OsdId, NodeName),
}

impl fmt::Display for PvcChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Recreated(pvc, disk) => {
                write!(f, "a person deletes PVC {pvc} and recreates it; it is bound to {disk}")
            }
            Self::KeyDeleted(pvc) => write!(f, "a person deletes the key of PVC {pvc}"),
            Self::SetEdited(true) => f.write_str("the owner declares the device set encrypted"),
            Self::SetEdited(false) => f.write_str("the owner declares the device set unencrypted"),
            Self::RotationStarts(osd) => write!(f, "Rook starts to rotate the key of {osd}"),
            Self::PodMoves(osd, node) => write!(f, "the pod of {osd} moves to {node}"),
            Self::RotationEnds(osd) => write!(f, "Rook has rotated the key of {osd}"),
        }
    }
}
