//! Finding on one disk: what it carries, and what that proves.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use crate::domain::inspection::{Content, Piece, Proof};
use crate::domain::osd::{OsdFsid, Role};

/// Finding on one disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskFinding {
    /// Content of the disk.
    pub content: Content,
    /// Proof of the OSD on the disk, if it is complete and of a kind that osd-migrate can wipe.
    pub proof: Option<Proof>,
    /// OSD that the disk belongs to in any way, also if `content` is `Other`.
    pub about: Option<OsdFsid>,
    /// Parts of that OSD on other devices (`node::legacy::pieces`).
    pub auxiliary: Vec<Piece>,
    /// Parts that the disk says are elsewhere: the unique guids of their partitions, if it names them.
    pub elsewhere: BTreeMap<Role, Option<String>>,
    /// Layer that hides the rest from an inspection of the disk alone (`node::volumes::within`).
    pub layer: Option<Layer>,
    /// Bytes that the new OSD may use, if that is not the whole device.
    pub usable_bytes: Option<u64>,
    /// Signature next to a tombstone: a remainder of the old OSD, or newer than the tombstone.
    pub signature: Option<String>,
    /// Data of another owner on a device that the new OSD is to get: no further inspection changes that.
    pub foreign: Option<String>,
}

impl DiskFinding {
    /// Returns a finding without a proof.
    pub fn plain(content: Content, about: Option<OsdFsid>) -> Self {
        Self {
            content,
            proof: None,
            about,
            auxiliary: Vec::new(),
            elsewhere: BTreeMap::new(),
            layer: None,
            usable_bytes: None,
            signature: None,
            foreign: None,
        }
    }

    /// Returns a finding of something that is no OSD, as a text.
    pub fn other(what: impl Into<String>, about: Option<OsdFsid>) -> Self {
        Self::plain(Content::Other { what: what.into() }, about)
    }
}

/// Layer on a disk that hides the OSD on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layer {
    /// A physical volume of LVM, by its uuid.
    Physical(String),
    /// An encrypted disk, by its header.
    Luks(LuksHeader),
}

/// LUKS header of a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LuksHeader {
    /// uuid, which identifies it.
    pub uuid: String,
    /// Label: Rook writes `pvc_name=PVC`, cut to the length of the field.
    pub label: Option<String>,
    /// Subsystem: Rook writes `ceph_fsid=FSID`.
    pub subsystem: Option<String>,
}

impl Display for LuksHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> =
            [&self.label, &self.subsystem].into_iter().flatten().map(String::as_str).collect();
        if names.is_empty() {
            write!(f, "LUKS {}", self.uuid)
        } else {
            write!(f, "a LUKS header of {}", names.join(", "))
        }
    }
}
