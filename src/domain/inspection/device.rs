//! What an agent saw of an OSD's device, and what of it proves whose it is.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::RecordId;
use crate::domain::osd::{
    ClusterFsid, DeviceIdentity, Kind, Layout, Mode, ObjectStore, OsdFsid, OsdId, Role,
};

/// One look at an OSD's device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Inspection {
    /// What the device carries.
    pub content: Content,
    /// Proof and identity, where `content` is the old OSD.
    pub evidence: Option<Evidence>,
    /// What the node's image can do.
    pub capability: Capability,
    /// Where the new OSD lies, where it lies on logical volumes.
    #[serde(default)]
    pub volume: Option<Volume>,
    /// The disk as its kernel shows it now.
    #[serde(default)]
    pub kernel: Option<KernelDisk>,
}

/// A disk as its kernel shows it: nothing by which it is recognised.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KernelDisk {
    /// `/dev/sdb`
    pub node: String,
    /// `hdd`, `ssd` or `nvme` (`osd::device_type`).
    pub device_type: String,
}

/// Logical volumes of a finished OSD, as its Deployment activates them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Volume {
    /// `/dev/VG/LV`
    pub block_path: String,
    /// The same of its database, where it has one of its own.
    pub db_path: Option<String>,
    /// The same of its write-ahead log.
    #[serde(default)]
    pub wal_path: Option<String>,
}

/// What a device carries, as read from it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Content {
    /// A BlueStore label at offset 0 (`ceph-bluestore-tool show-label`).
    Bluestore {
        /// `osd_uuid`
        osd_fsid: OsdFsid,
        /// `whoami`, where it is written already
        whoami: Option<OsdId>,
        /// `ceph_fsid`, where it is written already
        cluster: Option<ClusterFsid>,
        /// mkfs came to its end: `ready` is `ready`, and `mkfs_done`, where the release writes it, `yes`.
        finished: bool,
        /// The label holds `osd_key`: ceph-volume can activate it. Not so for one made by hand with a keyring file.
        activatable: bool,
    },
    /// An OSD that does not begin with a BlueStore label: on partitions, on volumes, encrypted, or in a directory.
    Osd {
        /// in which way it was made
        made: Kind,
        /// who it is, by what its kind has of it: files, tags, label
        osd_fsid: OsdFsid,
        /// its id
        whoami: OsdId,
        /// its cluster
        cluster: ClusterFsid,
    },
    /// Ours: written before the first wiping write.
    Tombstone {
        /// cluster it belongs to
        cluster: ClusterFsid,
        /// OSD it is kept for
        osd: OsdId,
        /// fsid of the OSD that was wiped
        old: OsdFsid,
        /// record it was written for
        record: RecordId,
    },
    /// No signature, no partition table, first and last MiB zero.
    Blank,
    /// Anything else, described for a person.
    Other {
        /// what it looks like
        what: String,
    },
    /// No device of the node carries this OSD.
    NotFound {
        /// what was looked at
        inspected: String,
    },
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bluestore { osd_fsid, whoami, finished, .. } => {
                let how = if *finished { "a BlueStore" } else { "an unfinished BlueStore" };
                write!(f, "{how} of OSD {osd_fsid}")?;
                whoami.map_or(Ok(()), |id| write!(f, " ({id})"))
            }
            Self::Osd { made, osd_fsid, whoami, .. } => {
                write!(f, "{made} of OSD {osd_fsid} ({whoami})")
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

/// What proves that a device holds the recorded OSD; read again right before the first destructive write.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Evidence {
    /// The disk that will carry the new OSD: the whole disk, also where the old OSD lies on partitions of it.
    pub device: DeviceIdentity,
    /// What is read on it.
    pub proof: Proof,
    /// Bytes that the new OSD may use.
    pub usable_bytes: u64,
    /// Parts of the old OSD on other devices: cleared when its data is, their neighbours untouched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub auxiliary: Vec<Piece>,
}

impl Evidence {
    /// Whether the new OSD has such a volume again: one that is made on volumes keeps database and log where they were, in the
    /// same volume group and as large. A raw one has all on its device.
    pub fn has_again(&self, wanted: Role, target: &Layout) -> bool {
        target.mode == Mode::Lvm
            && matches!(wanted, Role::Db | Role::Wal)
            && self
                .auxiliary
                .iter()
                .any(|piece| piece.role == wanted && matches!(piece.place, PieceLocation::Volume { .. }))
    }
}

/// A part of an OSD on a device that is not the one that is made anew.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Piece {
    /// What it is for.
    pub role: Role,
    /// Where it is.
    pub place: PieceLocation,
}

/// Where a part of an OSD lies.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PieceLocation {
    /// A whole disk, or a partition (`DeviceIdentity::is_partition`).
    Device(DeviceIdentity),
    /// A logical volume.
    Volume {
        /// `VG/LV`, for people and commands
        name: String,
        /// uuid of the volume, which counts
        uuid: String,
        /// uuid of its volume group: a database that is wanted again is made there again
        group: String,
        /// its size, which it gets again
        size_bytes: u64,
    },
}

/// The proof by kind of OSD.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Proof {
    /// The label names OSD, id and cluster.
    BluestoreLabel {
        /// `osd_uuid`
        osd_fsid: OsdFsid,
        /// `whoami`
        whoami: OsdId,
        /// `ceph_fsid`
        cluster: ClusterFsid,
        /// The label holds the OSD's key, so ceph-volume made it; made by hand where it does not.
        activatable: bool,
    },
    /// Partitions that are all there is on the disk; the file system on the one for `data`, and the files in it, or the label
    /// on the one for `block`.
    Partitions {
        /// in which way it was made
        made: Kind,
        /// unique partition guids on this disk, by what they are for
        parts: BTreeMap<Role, String>,
        /// uuid of the file system on the data partition, where there is one
        fs_uuid: Option<String>,
        /// file `fsid`, label `osd_uuid`
        osd_fsid: OsdFsid,
        /// file or label `whoami`
        whoami: OsdId,
        /// file or label `ceph_fsid`
        cluster: ClusterFsid,
    },
    /// A logical volume, by its tags (`ceph-volume lvm`).
    Volume {
        /// in which way it was made
        made: Kind,
        /// uuid of the volume group
        group: String,
        /// uuid of the volume
        volume: String,
        /// `VG/LV`
        name: String,
        /// Nothing else is in the group, and the group is on this disk alone: the disk can be made anew. Else only the volume.
        alone: bool,
        /// uuid of the LUKS header in the volume, where it is encrypted; recorded while its label can be read
        luks: Option<String>,
        /// tag `ceph.osd_fsid`
        osd_fsid: OsdFsid,
        /// tag `ceph.osd_id`
        whoami: OsdId,
        /// tag `ceph.cluster_fsid`
        cluster: ClusterFsid,
    },
    /// `ceph-volume raw --dmcrypt`: the header, recorded while the mapping was open and the label could be read.
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
    /// A directory of the host: `device` is another one, free, that its id is made anew on. The directory is removed when the
    /// new OSD is clean.
    Directory {
        /// in which way it was made
        made: Kind,
        /// canonical path on the host
        path: String,
        /// file `fsid`
        osd_fsid: OsdFsid,
        /// file `whoami`
        whoami: OsdId,
        /// file `ceph_fsid`
        cluster: ClusterFsid,
    },
    /// There is nothing to lose: the disk is free, by the whole proof that an inventory asks of one. A tombstone of ours
    /// counts where the inventory saw that very one.
    Available {
        /// the tombstone that the inventory saw: (OSD, old fsid, record)
        tombstone: Option<(OsdId, OsdFsid, RecordId)>,
    },
}

impl Proof {
    /// The OSD that it proves to be there: its fsid, its id, its cluster; none where the disk was free.
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

    /// In which way the OSD was made that it proves to be there.
    pub fn made(&self) -> Option<Kind> {
        match self {
            Self::BluestoreLabel { activatable: true, .. } => Some(Kind::Raw),
            Self::BluestoreLabel { activatable: false, .. } => Some(Kind::BluestoreByHand),
            Self::Partitions { made, .. } | Self::Volume { made, .. } | Self::Directory { made, .. } => {
                Some(*made)
            }
            Self::Luks { .. } => Some(Kind::RawCrypt),
            Self::Available { .. } => None,
        }
    }
}

/// What the node's image can do, asked before anything is stopped (`--help`, `--version`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Capability {
    /// `ceph --version` of the image, as printed.
    pub ceph_version: String,
    /// `ceph-volume raw prepare` knows `--osd-id` (16.2.15, 17.2.7, 18.2.1 and later).
    pub raw_osd_id: bool,
    /// Object stores that `ceph-volume raw prepare` and `lvm prepare` can make: each a flag (`--bluestore`), or a choice of
    /// `--objectstore`.
    #[serde(default)]
    pub stores: BTreeSet<ObjectStore>,
    /// Tools that the rebuild needs and the image lacks.
    pub missing_tools: BTreeSet<String>,
    /// The bootstrap-osd key was accepted by the mons.
    pub key_accepted: bool,
    /// Why not, as `ceph osd tree` told it.
    #[serde(default)]
    pub key_trouble: Option<String>,
}
