//! PersistentVolumeClaims of OSDs.

use std::collections::BTreeSet;

/// Where an OSD on PersistentVolumeClaims has its data, by its Deployment.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct OnPvcs {
    /// PVC of the data: label `ceph.rook.io/pvc`, else the only PVC of the pods. None if neither names one.
    pub data: Option<String>,
    /// PVC of the database, if it has one: the volume of the init container `blkdevmapper-metadata`.
    pub db: Option<String>,
    /// PVC of the write-ahead log, if it has one: the volume of the init container `blkdevmapper-wal`.
    pub wal: Option<String>,
    /// Device set: label `ceph.rook.io/DeviceSet`. None if the Deployment does not name it.
    pub set: Option<String>,
    /// The pods read their key from a key management service: init container `encryption-kms-get-kek`.
    pub key_in_kms: bool,
}

impl OnPvcs {
    /// Returns the names of the PVCs: of the data, the database and the log.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        [&self.data, &self.db, &self.wal].into_iter().flatten().map(String::as_str)
    }
}

/// A PersistentVolumeClaim.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pvc {
    /// uid, which a recreated PVC does not keep.
    pub uid: String,
    /// PersistentVolume that the PVC is bound to.
    pub volume: Option<BoundVolume>,
    /// Device set: label `ceph.rook.io/DeviceSet`.
    pub set: Option<String>,
    /// Index in the device set: label `ceph.rook.io/setIndex`.
    pub index: Option<String>,
    /// Template of the device set: the part of the label `ceph.rook.io/DeviceSetPVCId` between set and index;
    /// `None` if it has none (Rook 1.3 and older).
    pub template: Option<String>,
    /// `status.phase`: `Pending`, `Bound` or `Lost`.
    pub phase: String,
    /// The PVC is being deleted: it is gone as soon as no pod uses it.
    pub is_deleted: bool,
    /// `volumeMode` is Block: a container gets the volume as a device.
    pub is_block: bool,
    /// `accessModes` is `ReadWriteOncePod` alone: no second pod can use the PVC, not even on the same node.
    pub is_for_one_pod: bool,
}

/// A PersistentVolume that a PVC is bound to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BoundVolume {
    /// Name.
    pub name: String,
    /// uid; `None` if there is no such PersistentVolume.
    pub uid: Option<String>,
    /// Nodes that it can be used on, by their names or host names; `None` if it names none.
    pub nodes: Option<BTreeSet<String>>,
}

/// Devices whose key a CronJob of Rook rotates, in addition to that of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rotation {
    /// The database.
    pub db: bool,
    /// The log.
    pub wal: bool,
}
