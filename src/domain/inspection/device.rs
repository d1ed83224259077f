//! Results of an agent's inspection of an OSD's device, and the proof of whose device it is.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::RecordId;
use crate::domain::osd::{
    ClusterFsid, DeviceIdentity, Kind, Layout, Mode, ObjectStore, OsdFsid, OsdId, Role,
};

/// Result of one inspection of an OSD's device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Inspection {
    /// Contents of the device.
    pub content: Content,
    /// Proof and identity, if `content` is the old OSD.
    pub evidence: Option<Evidence>,
    /// Capabilities of the node's image.
    pub capability: Capability,
    /// Logical volumes of the new OSD, if it is on logical volumes.
    #[serde(default)]
    pub volume: Option<Volume>,
    /// Disk as its kernel shows it now.
    #[serde(default)]
    pub kernel: Option<KernelDisk>,
}

/// Properties of a disk as its kernel shows it.
///
/// The disk is not recognised by them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KernelDisk {
    /// `/dev/sdb`
    pub node: String,
    /// `hdd`, `ssd` or `nvme` (`osd::device_type`).
    pub device_type: String,
    /// Paths under `/dev/disk` that lead to the disk, as an owner may name it.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub links: BTreeSet<String>,
}

/// Logical volumes of a finished OSD, as its Deployment activates them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Volume {
    /// `/dev/VG/LV`
    pub block_path: String,
    /// `/dev/VG/LV` of its database, if the database has a volume of its own.
    pub db_path: Option<String>,
    /// `/dev/VG/LV` of its write-ahead log, if the log has a volume of its own.
    #[serde(default)]
    pub wal_path: Option<String>,
}

/// Contents of a device, as read from it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Content {
    /// BlueStore label at offset 0 (`ceph-bluestore-tool show-label`).
    Bluestore {
        /// `osd_uuid`
        osd_fsid: OsdFsid,
        /// `whoami`, if it is written already
        whoami: Option<OsdId>,
        /// `ceph_fsid`, if it is written already
        cluster: Option<ClusterFsid>,
        /// Whether mkfs finished: `ready` is `ready`, and `mkfs_done`, if the release writes it, is `yes`.
        finished: bool,
        /// Whether the label contains `osd_key`, so that ceph-volume can activate it.
        ///
        /// A label that was created by hand with a keyring file does not.
        activatable: bool,
    },
    /// OSD that does not start with a BlueStore label: on partitions, on volumes, encrypted, or in a
    /// directory.
    Osd {
        /// kind of the OSD
        format: Kind,
        /// fsid of the OSD, by the sources of its kind: files, tags, label
        osd_fsid: OsdFsid,
        /// id of the OSD
        whoami: OsdId,
        /// cluster of the OSD
        cluster: ClusterFsid,
    },
    /// Tombstone of osd-migrate, written before the first wiping write.
    Tombstone {
        /// cluster it belongs to
        cluster: ClusterFsid,
        /// OSD that it is reserved for
        osd: OsdId,
        /// fsid of the OSD that was wiped
        old: OsdFsid,
        /// record it was written for
        record: RecordId,
    },
    /// Blank device: no signature, no partition table, first and last MiB zero.
    Blank,
    /// Anything else, described for a person.
    Other {
        /// description of the contents
        what: String,
    },
    /// No device of the node carries this OSD.
    NotFound {
        /// devices that were inspected
        inspected: String,
    },
}

impl Content {
    /// Returns the OSD, the old fsid and the record of a tombstone of this cluster.
    pub fn tombstone_of(&self, of: ClusterFsid) -> Option<(OsdId, OsdFsid, RecordId)> {
        match self {
            Self::Tombstone { cluster, osd, old, record } if *cluster == of => {
                Some((*osd, *old, record.clone()))
            }
            Self::Tombstone { .. }
            | Self::Blank
            | Self::Bluestore { .. }
            | Self::Osd { .. }
            | Self::Other { .. }
            | Self::NotFound { .. } => None,
        }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bluestore { osd_fsid, whoami, finished, .. } => {
                let how = if *finished { "a BlueStore" } else { "an unfinished BlueStore" };
                write!(f, "{how} of OSD {osd_fsid}")?;
                whoami.map_or(Ok(()), |id| write!(f, " ({id})"))
            }
            Self::Osd { format, osd_fsid, whoami, .. } => {
                write!(f, "{format} of OSD {osd_fsid} ({whoami})")
            }
            Self::Tombstone { osd, old, record, .. } => {
                write!(f, "a tombstone for {osd}, old OSD {old}, record {record}")
            }
            Self::Blank => f.write_str("a blank disk"),
            Self::Other { what } => f.write_str(what),
            Self::NotFound { inspected } => write!(f, "no such disk: {inspected}"),
        }
    }
}

/// Evidence that a device carries the recorded OSD.
///
/// The agent reads it again right before the first destructive write.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Evidence {
    /// Disk that will carry the new OSD: the whole disk, even if the old OSD is on partitions of it.
    pub device: DeviceIdentity,
    /// Proof that is read on the disk.
    pub proof: Proof,
    /// Bytes that the new OSD may use.
    pub usable_bytes: u64,
    /// Parts of the old OSD on auxiliary devices.
    ///
    /// They are cleared when its data is; other contents of these devices stay untouched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub auxiliary: Vec<Piece>,
}

impl Evidence {
    /// Returns whether the new OSD gets such a volume again.
    ///
    /// An OSD that is created on volumes keeps database and log on the same physical volume and in the same
    /// size. A raw OSD has everything on its device.
    pub fn has_again(&self, wanted: Role, target: &Layout) -> bool {
        target.mode == Mode::Lvm
            && matches!(wanted, Role::Db | Role::Wal)
            && self
                .auxiliary
                .iter()
                .any(|piece| piece.role == wanted && matches!(piece.place, PieceLocation::Volume { .. }))
    }
}

/// Part of an OSD on a device other than the one that is rebuilt.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Piece {
    /// Role of the part.
    pub role: Role,
    /// Location of the part.
    pub place: PieceLocation,
}

/// Location of a part of an OSD.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PieceLocation {
    /// Whole disk, or a partition (`DeviceIdentity::is_partition`).
    Device(DeviceIdentity),
    /// Logical volume.
    Volume {
        /// `VG/LV`, for people and commands
        name: String,
        /// uuid of the volume, which identifies it
        uuid: String,
        /// uuid of its volume group: a database that is wanted again is created there again
        group: String,
        /// size of the volume, which the new one gets again
        size_bytes: u64,
        /// uuid of the physical volume that it is on, on which the new one is created too; none if it is on
        /// several, or was recorded by an earlier version
        #[serde(default, skip_serializing_if = "Option::is_none")]
        physical: Option<String>,
    },
    /// Device of a PVC of the OSD. The new OSD gets it again.
    Pvc {
        /// name of the PVC, for people
        name: String,
        /// device behind the PVC
        device: DeviceIdentity,
        /// uuid of the LUKS header on it, if it is encrypted; recorded while its label could be read
        #[serde(default, skip_serializing_if = "Option::is_none")]
        luks: Option<String>,
    },
}

/// Proof, by the kind of the OSD.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Proof {
    /// BlueStore label that names OSD, id and cluster.
    BluestoreLabel {
        /// `osd_uuid`
        osd_fsid: OsdFsid,
        /// `whoami`
        whoami: OsdId,
        /// `ceph_fsid`
        cluster: ClusterFsid,
        /// Whether the label contains the OSD's key.
        ///
        /// If it does, ceph-volume created the OSD; otherwise the OSD was created by hand.
        activatable: bool,
    },
    /// Partitions, which are everything on the disk.
    ///
    /// The proof is the file system on the partition for `data` with its files, or the label on the partition
    /// for `block`.
    Partitions {
        /// kind of the OSD
        format: Kind,
        /// unique partition guids on this disk, by role
        parts: BTreeMap<Role, String>,
        /// uuid of the file system on the data partition, if there is one
        fs_uuid: Option<String>,
        /// file `fsid`, label `osd_uuid`
        osd_fsid: OsdFsid,
        /// file or label `whoami`
        whoami: OsdId,
        /// file or label `ceph_fsid`
        cluster: ClusterFsid,
    },
    /// Logical volume, by its tags (`ceph-volume lvm`).
    Volume {
        /// kind of the OSD
        format: Kind,
        /// uuid of the volume group
        group: String,
        /// uuid of the volume
        volume: String,
        /// `VG/LV`
        name: String,
        /// Whether nothing else is in the group, and the group is on this disk alone.
        ///
        /// Then the disk can be rebuilt; otherwise only the volume.
        alone: bool,
        /// uuid of the LUKS header in the volume, if it is encrypted; recorded while its label can be read
        luks: Option<String>,
        /// tag `ceph.osd_fsid`
        osd_fsid: OsdFsid,
        /// tag `ceph.osd_id`
        whoami: OsdId,
        /// tag `ceph.cluster_fsid`
        cluster: ClusterFsid,
    },
    /// LUKS header of `ceph-volume raw --dmcrypt`, recorded while the mapping was open and the label could be
    /// read.
    Luks {
        /// uuid of the header
        header: String,
        /// label `osd_uuid`
        osd_fsid: OsdFsid,
        /// label `whoami`
        whoami: OsdId,
        /// label `ceph_fsid`
        cluster: ClusterFsid,
    },
    /// Directory of the host.
    ///
    /// `device` is another, available device on which the id is recreated. The directory is removed when the
    /// new OSD is clean.
    Directory {
        /// kind of the OSD
        format: Kind,
        /// canonical path on the host
        path: String,
        /// file `fsid`
        osd_fsid: OsdFsid,
        /// file `whoami`
        whoami: OsdId,
        /// file `ceph_fsid`
        cluster: ClusterFsid,
    },
    /// Available disk with nothing to lose, by the whole proof that an inventory requires.
    ///
    /// A tombstone of osd-migrate is accepted only if the inventory saw the same one.
    Available {
        /// tombstone that the inventory saw: (OSD, old fsid, record)
        tombstone: Option<(OsdId, OsdFsid, RecordId)>,
    },
}

impl Proof {
    /// Returns the OSD that the proof names: fsid, id and cluster; `None` if the disk was available.
    pub fn names(&self) -> Option<(OsdFsid, OsdId, ClusterFsid)> {
        match self {
            Self::BluestoreLabel { osd_fsid, whoami, cluster, .. }
            | Self::Partitions { osd_fsid, whoami, cluster, .. }
            | Self::Volume { osd_fsid, whoami, cluster, .. }
            | Self::Luks { osd_fsid, whoami, cluster, .. }
            | Self::Directory { osd_fsid, whoami, cluster, .. } => Some((*osd_fsid, *whoami, *cluster)),
            Self::Available { .. } => None,
        }
    }

    /// Returns the kind of the OSD that the proof names; `None` if the disk was available.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Self::BluestoreLabel { activatable: true, .. } => Some(Kind::Raw),
            Self::BluestoreLabel { activatable: false, .. } => Some(Kind::BluestoreByHand),
            Self::Partitions { format, .. }
            | Self::Volume { format, .. }
            | Self::Directory { format, .. } => Some(*format),
            Self::Luks { .. } => Some(Kind::RawCrypt),
            Self::Available { .. } => None,
        }
    }
}

/// Capabilities of the node's image, determined before anything is stopped (`--help`, `--version`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Capability {
    /// `ceph --version` of the image, as printed.
    pub ceph_version: String,
    /// Whether `ceph-volume raw prepare` knows `--osd-id` (16.2.15, 17.2.7, 18.2.1, 19.2.1 and later).
    pub raw_osd_id: bool,
    /// Object stores that `ceph-volume raw prepare` and `lvm prepare` can create: each a flag
    /// (`--bluestore`), or a choice of `--objectstore`.
    #[serde(default)]
    pub stores: BTreeSet<ObjectStore>,
    /// Tools that the rebuild needs and that are missing in the image.
    pub missing_tools: BTreeSet<String>,
    /// Whether the mons accepted the bootstrap-osd key.
    pub key_accepted: bool,
    /// Error of `ceph osd tree`, if the key was not accepted.
    #[serde(default)]
    pub key_trouble: Option<String>,
    /// Error of `ceph-volume raw prepare --help`, if it failed: then `raw_osd_id` and `stores` say nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_trouble: Option<String>,
}
