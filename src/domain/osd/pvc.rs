//! Names of what belongs to an OSD on a PersistentVolumeClaim. The agent and the OSD's Deployment share them.

/// Returns the name of the device-mapper device that decrypts the data of an OSD on that PVC.
///
/// Rook opens it under this name (pkg/operator/ceph/cluster/osd/spec.go, `EncryptionDMName`, v1.20.6).
pub fn mapping_name(pvc: &str) -> String {
    format!("{pvc}-block-dmcrypt")
}

/// Returns the path of that device.
pub fn mapping_path(pvc: &str) -> String {
    format!("/dev/mapper/{}", mapping_name(pvc))
}

/// Returns the path of the data as Rook's containers see it, which Rook reads back from the Deployment.
///
/// Source: pkg/operator/ceph/cluster/osd/create.go and volumes.go, v1.20.6: the PVC's device below `/mnt`, or
/// its mapping.
pub fn block_path(pvc: &str, is_encrypted: bool) -> String {
    if is_encrypted { mapping_path(pvc) } else { format!("/mnt/{pvc}") }
}

/// Returns the name of the Secret with the key of an encrypted OSD on that PVC.
///
/// Source: pkg/operator/ceph/cluster/osd/config/config.go, Rook v1.20.6.
pub fn key_secret(pvc: &str) -> String {
    format!("rook-ceph-osd-encryption-key-{pvc}")
}

/// Key of that Secret (the same file): 128 random bytes in base64.
pub const KEY_IN_SECRET: &str = "dmcrypt-key";
