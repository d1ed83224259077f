//! Reasons why an OSD on a PersistentVolumeClaim is not migrated.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::domain::osd::OsdId;

/// Number of characters that the name of an encrypted PVC may have.
///
/// Each start of the OSD sets the label `pvc_name=PVC` in the LUKS2 header of the PVC
/// (pkg/operator/ceph/cluster/osd/spec.go, `openEncryptedBlock`, v1.20.6). A label has at most 47 characters.
/// From 2.8.2 on, cryptsetup fails if it is longer (lib/luks2/luks2_json_metadata.c, `LUKS2_hdr_labels`).
/// Before, it cut the label.
pub(super) const NAME_CHARS: usize = 47 - "pvc_name=".len();

/// Reason why an OSD on a PersistentVolumeClaim is not migrated.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum PvcRefusal {
    /// OSD on a PVC whose device set is unknown, or is not declared.
    NoSet {
        /// name of the set, if a label names it
        set: Option<String>,
        /// PVC of the OSD
        pvc: String,
    },
    /// Device set, or a template of it, that the CephCluster declares twice.
    SetUnclear {
        /// what is declared twice
        what: String,
    },
    /// PVC that is not bound.
    PvcNotBound {
        /// PVC of the OSD
        pvc: String,
        /// its phase, or `missing`, or `being deleted`
        phase: String,
    },
    /// PVC with a file system.
    PvcNoBlock {
        /// PVC of the OSD
        pvc: String,
    },
    /// PVC that only the OSD's pod can use.
    PvcOnePod {
        /// PVC of the OSD
        pvc: String,
    },
    /// OSD on a volume of LVM on its PVC that is encrypted, or has its database or log elsewhere.
    ///
    /// Rook 1.3 and older created OSDs on LVM on a PVC if the release of Ceph had no `ceph-volume raw`
    /// (before 14.2.8; pkg/daemon/ceph/osd/volume.go, v1.3.11). Newer releases still start them (spec.go,
    /// `CVMode == "lvm"`, v1.20.6). Rook never encrypted one.
    LvmOnPvc {
        /// PVC of the OSD
        pvc: String,
    },
    /// OSD that is to get a PVC of its device set for its database or log, and there is no usable one.
    NoDatabasePvc {
        /// device set of the OSD
        set: String,
        /// index of the OSD in its device set, if a label names it
        index: Option<String>,
        /// template of the PVC: `metadata` or `wal`
        template: String,
        /// why there is no usable PVC
        why: String,
    },
    /// OSD on a PVC that is to be encrypted, or stay so, with a key in a key management service.
    KeyInKms {
        /// provider
        kms: String,
        /// device set of the OSD
        set: String,
    },
    /// Encrypted OSD that is to get a database or a log, and whose key a CronJob rotates without that device.
    OldRotation {
        /// OSD
        osd: OsdId,
    },
    /// PVC that is to be encrypted, whose name is too long for the label in its LUKS2 header.
    PvcNameTooLong {
        /// PVC of the OSD
        pvc: String,
        /// device set of the OSD
        set: String,
    },
}

impl fmt::Display for PvcRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSet { set, pvc } => {
                let Some(set) = set else {
                    return write!(
                        f,
                        "no label names the device set of its PVC {pvc}. See: kubectl -n NAMESPACE describe pvc \
                         {pvc}"
                    );
                };
                write!(
                    f,
                    "the CephCluster does not declare its device set `{set}` (PVC {pvc}). Declare it: kubectl -n \
                     NAMESPACE edit cephcluster CEPHCLUSTER"
                )
            }
            Self::SetUnclear { what } => write!(
                f,
                "the CephCluster declares {what} twice. Rename one: kubectl -n NAMESPACE edit cephcluster \
                 CEPHCLUSTER"
            ),
            Self::PvcNotBound { pvc, phase } => {
                write!(f, "its PVC {pvc} is {phase}. Check it: kubectl -n NAMESPACE get pvc {pvc}")
            }
            Self::PvcNoBlock { pvc } => write!(
                f,
                "its PVC {pvc} has volumeMode Filesystem, and an OSD is recreated on volumeMode Block only. \
                 Replace the OSD by a new one"
            ),
            Self::PvcOnePod { pvc } => write!(
                f,
                "its PVC {pvc} has accessMode ReadWriteOncePod: no other pod can check its device while the OSD \
                 is running. Replace the OSD by a new one"
            ),
            Self::LvmOnPvc { pvc } => write!(
                f,
                "it is on a volume of LVM on its PVC {pvc} (Rook 1.3 and older), and is encrypted or has its \
                 database or log on another device. osd-migrate does not recreate such an OSD. Replace it by a new \
                 one"
            ),
            Self::NoDatabasePvc { set, index: Some(index), template, why } => write!(
                f,
                "device set `{set}` has no usable PVC of the template `{template}` for its index {index}: {why}. \
                 See: kubectl -n NAMESPACE get pvc -l \
                 ceph.rook.io/DeviceSet={set},ceph.rook.io/setIndex={index}"
            ),
            Self::NoDatabasePvc { set, index: None, template, .. } => write!(
                f,
                "no label names its index in device set `{set}`, so its PVC of the template `{template}` is \
                 unknown. See: kubectl -n NAMESPACE get pvc -l ceph.rook.io/DeviceSet={set} --show-labels"
            ),
            Self::KeyInKms { kms, set } => write!(
                f,
                "the key of an encrypted OSD of device set `{set}` is in {kms}, where only Rook stores keys. Leave \
                 `{set}` to Rook's own migration (spec.storage.migration), or declare `encrypted: false`: kubectl \
                 -n NAMESPACE edit cephcluster CEPHCLUSTER"
            ),
            Self::OldRotation { osd } => old_rotation(*osd, f),
            Self::PvcNameTooLong { pvc, set } => name_too_long(pvc, set, f),
        }
    }
}

fn name_too_long(pvc: &str, set: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(
        f,
        "the name of its PVC {pvc} has more than {NAME_CHARS} characters: if it was encrypted, the OSD would not start \
         with cryptsetup 2.8.2 and later. Declare a device set with a shorter name, whose OSDs replace those of \
         `{set}`: kubectl -n NAMESPACE edit cephcluster CEPHCLUSTER"
    )
}

fn old_rotation(OsdId(id): OsdId, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(
        f,
        "Rook's CronJob rook-ceph-osd-key-rotation-{id} rotates the encryption key without the database or log that \
         the OSD is to get: after it, no key would open that device. Delete it, and Rook creates another one when it \
         reconciles: kubectl -n NAMESPACE delete cronjob rook-ceph-osd-key-rotation-{id}"
    )
}
