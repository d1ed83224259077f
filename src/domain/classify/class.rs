//! Class of an OSD, with its sentences for people.

use super::pvc_refusal::PvcRefusal;
use crate::domain::osd::{Kind, ObjectStore, OsdId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Class of an OSD.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "class", content = "why", rename_all = "kebab-case")]
pub enum Class {
    /// As declared.
    Conforming,
    /// Created in a format that is no longer supported.
    Legacy(Kind),
    /// Created in a supported format, but not as its owner declares.
    Mismatched(Mismatch),
    /// No OSD yet: an available disk that is to become one.
    Available,
    /// Not migrated, with the reason.
    Refused(Refusal),
}

/// Kind of an OSD, and its differences from the declaration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Mismatch {
    /// Kind in which the OSD was created.
    pub format: Kind,
    /// Differences to resolve; at least one.
    pub differs: BTreeSet<Difference>,
}

/// Difference between an OSD and its declaration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Difference {
    /// Object store that differs: from, to.
    Store(ObjectStore, ObjectStore),
    /// OSD that is to be encrypted.
    ToBeEncrypted,
    /// Encrypted OSD that is to be unencrypted.
    ToBePlain,
    /// Database that is to be on another device, by the name that the owner writes.
    DatabaseElsewhere(String),
    /// Database that is to be on a PVC of its own, by the name of the device set.
    DatabaseOnPvc(String),
    /// Write-ahead log that is to be on a PVC of its own, by the name of the device set.
    LogOnPvc(String),
    /// Volume of LVM on a PVC: Rook creates OSDs on PVCs in raw mode only.
    OnLvm,
}

/// Reason why an OSD is not migrated.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, strum::IntoStaticStr,
)]
#[serde(tag = "kind", content = "what", rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Refusal {
    /// Kind or target that this version does not migrate yet.
    NotBuiltYet(String),
    /// Release of the OSD that is too old to reuse an id (`raw prepare --osd-id`).
    TooOld(String),
    /// Slot that is `destroyed` or `new` in the osdmap, without a record of osd-migrate.
    Orphan,
    /// OSD that never booted, or whose metadata the mons lost.
    NoMetadata,
    /// OSD that no Deployment runs.
    NoDeployment,
    /// OSD whose node is not in the cluster.
    NoNode(String),
    /// OSD whose Deployment is pinned to no node and has no pod on one.
    NoPod(OsdId),
    /// OSD on a node that no entry of `spec.storage.nodes` names, while another entry may mean the node.
    NodeUnclear {
        /// node of the OSD
        node: String,
        /// entry that names no node
        entry: String,
    },
    /// OSD without a place in CRUSH.
    NoCrushItem,
    /// OSD that another client manages.
    ManagedExternally(String),
    /// OSD on a device-mapper device of the host that differs from the declaration: the differences.
    HostDevice(String),
    /// bluestore-rdr can't be converted back to bluestore.
    NoWayBack,
    /// OSD on a PVC that can't be compared with its device set, or can't be migrated to it.
    OnPvc(PvcRefusal),
}

impl Refusal {
    /// Returns the code: the anchor of the refusal in the reference of messages.
    pub fn code(&self) -> &'static str {
        if let Self::OnPvc(why) = self { why.into() } else { self.into() }
    }
}

impl From<PvcRefusal> for Refusal {
    fn from(why: PvcRefusal) -> Self {
        Self::OnPvc(why)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(from, to) => write!(f, "store {from}, declared {to}"),
            Self::ToBeEncrypted => f.write_str("not encrypted, declared encrypted"),
            Self::ToBePlain => f.write_str("encrypted, declared not encrypted"),
            Self::DatabaseElsewhere(device) => {
                write!(f, "its database is with its data, declared on {device} (metadataDevice)")
            }
            Self::OnLvm => f.write_str("on a volume of LVM on its PVC, which Rook has deprecated"),
            Self::DatabaseOnPvc(set) => {
                write!(f, "its database is with its data, declared on a PVC (template `metadata` of `{set}`)")
            }
            Self::LogOnPvc(set) => {
                write!(f, "it has no log of its own, declared on a PVC (template `wal` of `{set}`)")
            }
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.format, listed(&self.differs))
    }
}

pub(super) fn listed(differs: &BTreeSet<Difference>) -> String {
    differs.iter().map(Difference::to_string).collect::<Vec<_>>().join("; ")
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBuiltYet(what) => write!(f, "{what}: not migrated by this version"),
            Self::TooOld(version) => {
                write!(
                    f,
                    "{version} cannot recreate an OSD with the same id. Upgrade Ceph first, to 16.2.15, \
                     17.2.7, 18.2.1, 19.2.1 or later"
                )
            }
            Self::Orphan => f.write_str(
                "its slot is destroyed or new, and the ledger has no record of it. See: ceph osd tree",
            ),
            Self::NoMetadata => f.write_str(
                "it never booted, or the mons lost its metadata. Start it once. See: ceph osd metadata",
            ),
            Self::NoDeployment => f.write_str(
                "no Deployment runs it. See: kubectl -n NAMESPACE get deployments -l app=rook-ceph-osd",
            ),
            Self::NoNode(name) => write!(f, "its node {name} is not in the cluster. See: kubectl get nodes"),
            Self::NoPod(osd) => write!(
                f,
                "its Deployment is pinned to no node and has no pod on one, so its node is unknown. See: kubectl -n \
                 NAMESPACE get pods -o wide -l ceph-osd-id={}",
                osd.0
            ),
            Self::NodeUnclear { node, entry } => write!(
                f,
                "no entry of spec.storage.nodes names its node {node}, and the entry {entry}, which names no node, may \
                 mean it (ROOK_CUSTOM_HOSTNAME_LABEL of Rook's operator). Give the entry the name of its node, or remove \
                 it: kubectl -n NAMESPACE edit cephcluster CEPHCLUSTER"
            ),
            Self::NoCrushItem => f.write_str("it has no CRUSH location. See: ceph osd tree"),
            Self::ManagedExternally(what) => write!(f, "it is managed externally: {what}"),
            Self::HostDevice(differs) => write!(
                f,
                "{differs}; its device is a mapping of the host (multipath, or LUKS that the host opens), \
                 which is not rebuilt"
            ),
            Self::NoWayBack => f.write_str("bluestore-rdr cannot be converted back to bluestore"),
            Self::OnPvc(why) => why.fmt(f),
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conforming => f.write_str("as declared"),
            Self::Legacy(kind) => kind.fmt(f),
            Self::Mismatched(mismatch) => mismatch.fmt(f),
            Self::Available => f.write_str("an available disk"),
            Self::Refused(why) => why.fmt(f),
        }
    }
}

impl Class {
    /// Returns the kind of an OSD that is to be migrated; `None` if it is not.
    pub fn migrates(&self) -> Option<Kind> {
        match self {
            Self::Legacy(kind) | Self::Mismatched(Mismatch { format: kind, .. }) => Some(*kind),
            Self::Conforming | Self::Available | Self::Refused(_) => None,
        }
    }

    /// Returns one word for the table.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Conforming => "Conforming",
            Self::Legacy(_) => "Legacy",
            Self::Mismatched(_) => "Mismatched",
            Self::Available => "Available",
            Self::Refused(_) => "Refused",
        }
    }
}
