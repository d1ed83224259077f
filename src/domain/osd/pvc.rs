//! PersistentVolumeClaims of an OSD, and names of what belongs to them, which the agent and the OSD's
//! Deployment share.

use serde::{Deserialize, Serialize};

use super::Role;

/// Something for each PVC of an OSD: its name, its record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PerPvc<T> {
    /// For the data.
    pub data: T,
    /// For the database, if it is on a PVC of its own (template `metadata`).
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub db: Option<T>,
    /// For the write-ahead log, if it is on a PVC of its own (template `wal`).
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub wal: Option<T>,
}

impl<T> PerPvc<T> {
    /// Returns the value of an OSD that has everything on one PVC.
    pub fn of_data(data: T) -> Self {
        Self { data, db: None, wal: None }
    }

    /// Returns the values with the roles of their PVCs, the data (`Role::Block`) first.
    pub fn iter(&self) -> impl Iterator<Item = (Role, &T)> {
        let db = self.db.as_ref().map(|db| (Role::Db, db));
        let wal = self.wal.as_ref().map(|wal| (Role::Wal, wal));
        [Some((Role::Block, &self.data)), db, wal].into_iter().flatten()
    }

    /// Returns the values of database and log.
    pub fn others(&self) -> impl Iterator<Item = (Role, &T)> {
        self.iter().filter(|(role, _)| *role != Role::Block)
    }

    /// Returns another value for each PVC.
    pub fn map<U>(&self, to: impl Fn(&T) -> U) -> PerPvc<U> {
        PerPvc { data: to(&self.data), db: self.db.as_ref().map(&to), wal: self.wal.as_ref().map(&to) }
    }
}

/// Returns the name of the device-mapper device that decrypts a PVC, by what the OSD has on the PVC.
///
/// Rook opens it under this name (pkg/operator/ceph/cluster/osd/spec.go, `EncryptionDMName`, v1.20.6). The
/// name begins with the PVC of the part itself, not with the PVC of the data.
pub fn mapping_name(pvc: &str, role: Role) -> String {
    let part = match role {
        Role::Db => "db",
        Role::Wal => "wal",
        Role::Block | Role::Data | Role::Journal => "block",
    };
    format!("{pvc}-{part}-dmcrypt")
}

/// Returns the path of that device.
pub fn mapping_path(pvc: &str, role: Role) -> String {
    format!("/dev/mapper/{}", mapping_name(pvc, role))
}

/// Returns the path of the data as Rook's containers see it, which Rook reads back from the Deployment.
///
/// Source: pkg/operator/ceph/cluster/osd/create.go and volumes.go, v1.20.6: the PVC's device below `/mnt`, or
/// its mapping.
pub fn block_path(pvc: &str, is_encrypted: bool) -> String {
    if is_encrypted { mapping_path(pvc, Role::Block) } else { format!("/mnt/{pvc}") }
}

/// Returns the name of the Secret with the key of an encrypted OSD, by the PVC of its data.
///
/// Database and log have the same key.
///
/// Source: pkg/operator/ceph/cluster/osd/config/config.go, Rook v1.20.6.
pub fn key_secret(pvc: &str) -> String {
    format!("rook-ceph-osd-encryption-key-{pvc}")
}

/// Key of that Secret (the same file): 128 random bytes in base64.
pub const KEY_IN_SECRET: &str = "dmcrypt-key";
