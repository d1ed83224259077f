//! Format of an OSD: store, mode, kind, encryption.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Name of an object store, as in `osd_objectstore` of `ceph osd metadata`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ObjectStore(pub String);

impl ObjectStore {
    /// Returns the default store since Luminous.
    pub fn bluestore() -> Self {
        Self("bluestore".to_owned())
    }
    /// Returns whether the store is files in a local file system; removed in Ceph 18 (Reef).
    pub fn is_filestore(&self) -> bool {
        self.0 == "filestore"
    }
}

impl fmt::Display for ObjectStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// ceph-volume's mode of an OSD on its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// `ceph-volume raw`: the device itself carries the store.
    Raw,
    /// `ceph-volume lvm`: a logical volume carries the store.
    Lvm,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Raw => "raw",
            Self::Lvm => "lvm",
        })
    }
}

/// Kind of an OSD: the format in which it was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Filestore in a directory of the host's file system (Rook 1.2's `directories`).
    FilestoreDirectory,
    /// Filestore on a partition: ceph-disk's data and journal, or Rook 1.2's `ROOK-OSD<id>-FS-DATA`.
    FilestorePartition,
    /// Filestore on a logical volume (`ceph-volume lvm prepare --filestore`).
    FilestoreLvm,
    /// BlueStore in files of a directory (Rook 1.2's `directories`).
    BluestoreDirectory,
    /// BlueStore on ceph-disk's partitions, or on Rook 1.2's (`ROOK-OSD<id>-BLOCK`).
    BluestorePartition,
    /// BlueStore on a whole device or partition, created without ceph-volume.
    BluestoreByHand,
    /// `ceph-volume raw`
    Raw,
    /// `ceph-volume raw --dmcrypt`: supported as a source, never created, because no mon keeps its key.
    RawCrypt,
    /// `ceph-volume lvm`
    Lvm,
    /// `ceph-volume lvm --dmcrypt`
    LvmCrypt,
}

impl Kind {
    /// Returns whether the format is no longer supported: such an OSD is migrated whatever is declared.
    pub fn is_legacy(self) -> bool {
        match self {
            Self::FilestoreDirectory
            | Self::FilestorePartition
            | Self::FilestoreLvm
            | Self::BluestoreDirectory
            | Self::BluestorePartition
            | Self::BluestoreByHand => true,
            Self::Raw | Self::RawCrypt | Self::Lvm | Self::LvmCrypt => false,
        }
    }

    /// Returns whether the OSD has no device of its own: its id is recreated on another device.
    pub fn in_directory(self) -> bool {
        matches!(self, Self::FilestoreDirectory | Self::BluestoreDirectory)
    }

    /// Returns whether the data is encrypted at rest.
    pub fn is_encrypted(self) -> bool {
        matches!(self, Self::RawCrypt | Self::LvmCrypt)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FilestoreDirectory => "Filestore in a directory",
            Self::FilestorePartition => "Filestore on partitions",
            Self::FilestoreLvm => "Filestore on LVM",
            Self::BluestoreDirectory => "BlueStore in a directory",
            Self::BluestorePartition => "BlueStore on partitions of ceph-disk or Rook 1.2",
            Self::BluestoreByHand => "BlueStore made by hand",
            Self::Raw => "BlueStore raw",
            Self::RawCrypt => "BlueStore raw, encrypted",
            Self::Lvm => "BlueStore on LVM",
            Self::LvmCrypt => "BlueStore on LVM, encrypted",
        })
    }
}

/// Role of a part of an OSD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Filestore's files, or the small file system alongside BlueStore that identifies the OSD.
    Data,
    /// BlueStore's main device.
    Block,
    /// BlueStore's database.
    Db,
    /// BlueStore's write-ahead log.
    Wal,
    /// Filestore's journal.
    Journal,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Data => "data",
            Self::Block => "block",
            Self::Db => "block.db",
            Self::Wal => "block.wal",
            Self::Journal => "journal",
        })
    }
}

/// Existing or wanted layout of an OSD on its devices.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Layout {
    /// Object store.
    pub store: ObjectStore,
    /// ceph-volume's mode.
    pub mode: Mode,
    /// Data encrypted at rest by dm-crypt.
    pub encrypted: bool,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.store, self.mode, if self.encrypted { ", encrypted" } else { "" })
    }
}
