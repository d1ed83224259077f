//! What each OSD is, measured against what its owner declared.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::inspection::Proof;
use super::observation::{Daemon, Metadata, Observation, Slot, SlotState};
use super::osd::{Layout, Mode, OsdId};
use super::policy::Declaration;

/// What an OSD is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "class", content = "why", rename_all = "kebab-case")]
pub enum Class {
    /// As wanted.
    Conforming,
    /// Made in a way that is no longer made.
    Legacy(Legacy),
    /// No OSD yet: a free disk that is to become one.
    Vacant,
    /// Left alone, with the reason.
    Refused(Refusal),
}

/// Kinds of legacy OSDs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Legacy {
    /// Filestore on ceph-disk's partitions: data and journal.
    FilestorePartition,
    /// BlueStore on a whole device, made without ceph-volume.
    BluestoreByHand,
}

/// Why an OSD is left alone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", content = "what", rename_all = "kebab-case")]
pub enum Refusal {
    /// A kind or target that this version does not migrate yet.
    NotBuiltYet(String),
    /// The OSD's own release is too old to take an id over (`raw prepare --osd-id`).
    TooOld(String),
    /// The osdmap has the slot `destroyed` or `new`, and no record of ours speaks of it.
    Orphan,
    /// It never booted, or the mons lost its metadata.
    NoMetadata,
    /// No Deployment runs it.
    NoDeployment,
    /// Its node is not in the cluster.
    NoNode(String),
    /// It has no place in CRUSH.
    NoCrushItem,
    /// Somebody else works on it.
    HeldByOthers(String),
    /// bluestore-rdr does not go back to bluestore (seed 001).
    NoWayBack,
}

impl fmt::Display for Legacy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FilestorePartition => "Filestore on ceph-disk partitions",
            Self::BluestoreByHand => "BlueStore made by hand",
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBuiltYet(what) => write!(f, "{what}: not migrated by this version"),
            Self::TooOld(version) => {
                write!(f, "{version}: ids can be kept from 16.2.15, 17.2.7, 18.2.1 on; upgrade Ceph first")
            }
            Self::Orphan => f.write_str(
                "its slot is destroyed or new and no record of ours speaks of it; see `ceph osd tree`",
            ),
            Self::NoMetadata => f.write_str("it never booted: `ceph osd metadata` knows nothing of it"),
            Self::NoDeployment => {
                f.write_str("no Deployment runs it; see `kubectl get deployments -l app=rook-ceph-osd`")
            }
            Self::NoNode(name) => write!(f, "its node {name} is not in the cluster; see `kubectl get nodes`"),
            Self::NoCrushItem => f.write_str("it has no place in CRUSH; see `ceph osd tree`"),
            Self::HeldByOthers(what) => write!(f, "held by others: {what}"),
            Self::NoWayBack => f.write_str("bluestore-rdr can't be taken back to bluestore"),
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conforming => f.write_str("as wanted"),
            Self::Legacy(kind) => kind.fmt(f),
            Self::Vacant => f.write_str("a free disk"),
            Self::Refused(why) => why.fmt(f),
        }
    }
}

impl Class {
    /// One word for the table.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Conforming => "Conforming",
            Self::Legacy(_) => "Legacy",
            Self::Vacant => "Vacant",
            Self::Refused(_) => "Refused",
        }
    }
}

/// The layout that the owner wants of an OSD on a whole device.
///
/// Raw is what Rook itself chooses from 1.4 on for a whole disk without encryption, db, wal or several OSDs
/// (`design.md` section 3); the rest needs lvm.
pub fn target(declaration: &Declaration) -> Result<Layout, Refusal> {
    if declaration.encrypted {
        return Err(Refusal::NotBuiltYet("a target with encryption".to_owned()));
    }
    if let Some(what) = declaration.unsupported.first() {
        return Err(Refusal::NotBuiltYet(format!("a target with {what}")));
    }
    Ok(Layout { store: declaration.store.clone(), mode: Mode::Raw, encrypted: false })
}

/// The class of every OSD in the osdmap.
pub fn classify(seen: &Observation) -> BTreeMap<OsdId, Class> {
    seen.ceph.slots.iter().map(|(osd, slot)| (*osd, class_of(*osd, slot, seen))).collect()
}

/// The class of one OSD.
pub fn class_of(osd: OsdId, slot: &Slot, seen: &Observation) -> Class {
    match facts_of(osd, slot, seen) {
        Ok((metadata, daemon)) => class_of_running(metadata, daemon, &seen.kube.declaration),
        Err(refusal) => Class::Refused(refusal),
    }
}

/// What must be known before an OSD can be judged at all.
fn facts_of<'a>(
    osd: OsdId,
    slot: &'a Slot,
    seen: &'a Observation,
) -> Result<(&'a Metadata, &'a Daemon), Refusal> {
    match slot.state {
        SlotState::Exists => {}
        SlotState::New | SlotState::Destroyed => return Err(Refusal::Orphan),
    }
    let metadata = slot.metadata.as_ref().ok_or(Refusal::NoMetadata)?;
    let daemon = seen.kube.daemons.get(&osd).ok_or(Refusal::NoDeployment)?;
    if slot.crush.is_none() {
        return Err(Refusal::NoCrushItem);
    }
    match &daemon.node {
        Some(node) if seen.kube.nodes.contains_key(node) => {}
        Some(node) => return Err(Refusal::NoNode(node.to_string())),
        None => return Err(Refusal::NoNode("(unknown)".to_owned())),
    }
    Ok((metadata, daemon))
}

fn class_of_running(metadata: &Metadata, daemon: &Daemon, declaration: &Declaration) -> Class {
    let not_yet = |what: &str| Class::Refused(Refusal::NotBuiltYet(what.to_owned()));
    if daemon.pvc_backed {
        return not_yet("an OSD on a PersistentVolumeClaim");
    }
    let kind = match kind_of(metadata, daemon) {
        Kind::Filestore => Legacy::FilestorePartition,
        Kind::ByHand => Legacy::BluestoreByHand,
        Kind::Raw => return class_of_raw(metadata, declaration),
        Kind::NotBuilt(what) => return not_yet(what),
    };
    // What stands in the way of migrating it; one that conforms already has nothing to refuse.
    if let Some(what) = &daemon.held_by_others {
        return Class::Refused(Refusal::HeldByOthers(what.clone()));
    }
    if !keeps_ids(&metadata.ceph_version) {
        return Class::Refused(Refusal::TooOld(metadata.ceph_version.clone()));
    }
    match target(declaration) {
        Ok(layout) if goes_back(metadata, &layout) => Class::Refused(Refusal::NoWayBack),
        Ok(layout) if layout.store.0 == "bluestore" => Class::Legacy(kind),
        Ok(layout) => not_yet(&format!("a target with store {}", layout.store)),
        Err(refusal) => Class::Refused(refusal),
    }
}

/// How an OSD lies on its devices, by what it said at its last boot and by how it is started.
enum Kind {
    Filestore,
    ByHand,
    Raw,
    NotBuilt(&'static str),
}

fn kind_of(metadata: &Metadata, daemon: &Daemon) -> Kind {
    if metadata.store.is_filestore() {
        return match (metadata.device_mapper, metadata.on_partition) {
            (true, _) => Kind::NotBuilt("Filestore on LVM"),
            (false, true) => Kind::Filestore,
            (false, false) => Kind::NotBuilt("Filestore in a directory"),
        };
    }
    if !matches!(metadata.store.0.as_str(), "bluestore" | "bluestore-rdr") {
        return Kind::NotBuilt("an object store other than BlueStore and Filestore");
    }
    if metadata.device_mapper {
        return Kind::NotBuilt("BlueStore on LVM or dm-crypt");
    }
    if metadata.dedicated_db || metadata.dedicated_wal {
        return Kind::NotBuilt("BlueStore with a db or wal device of its own");
    }
    match (daemon.activates, metadata.on_partition) {
        (true, _) => Kind::Raw,
        (false, false) => Kind::ByHand,
        (false, true) => Kind::NotBuilt("BlueStore on ceph-disk partitions"),
    }
}

fn goes_back(metadata: &Metadata, target: &Layout) -> bool {
    metadata.store.0 == "bluestore-rdr" && target.store.0 == "bluestore"
}

fn class_of_raw(metadata: &Metadata, declaration: &Declaration) -> Class {
    match target(declaration) {
        Ok(layout) if layout.store == metadata.store => Class::Conforming,
        Ok(layout) if goes_back(metadata, &layout) => Class::Refused(Refusal::NoWayBack),
        Ok(layout) => {
            Class::Refused(Refusal::NotBuiltYet(format!("from {} to {}", metadata.store, layout.store)))
        }
        Err(refusal) => Class::Refused(refusal),
    }
}

/// Whether what was read on the device contradicts the class that daemon and Deployment suggested: labels are hints, the
/// device decides.
pub fn contradicts(class: &Class, proof: &Proof) -> Option<String> {
    match (class, proof) {
        (Class::Legacy(Legacy::FilestorePartition), Proof::FilestorePartition { .. })
        | (Class::Legacy(Legacy::BluestoreByHand), Proof::BluestoreLabel { activatable: false, .. }) => None,
        (Class::Legacy(Legacy::BluestoreByHand), Proof::BluestoreLabel { activatable: true, .. }) => Some(
            "its Deployment looks as if made by hand, but ceph-volume made its device: it needs a new Deployment, not a new store"
                .to_owned(),
        ),
        (Class::Legacy(kind), Proof::BluestoreLabel { .. } | Proof::FilestorePartition { .. }) => {
            Some(format!("it was taken for {kind}, its device says otherwise"))
        }
        (Class::Conforming | Class::Vacant | Class::Refused(_), Proof::BluestoreLabel { .. } | Proof::FilestorePartition { .. })
        | (_, Proof::Vacant { .. }) => Some("there is nothing to migrate".to_owned()),
    }
}

/// Whether `ceph-volume raw prepare --osd-id` is in that release: 16.2.15, 17.2.7, 18.2.1 (ceph/ceph PR 52422 and its backports).
fn keeps_ids(ceph_version: &str) -> bool {
    let Some(number) =
        ceph_version.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
    else {
        return false;
    };
    let mut parts = number.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (parts.next().unwrap_or(0), parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    match version.0 {
        16 => version >= (16, 2, 15),
        17 => version >= (17, 2, 7),
        18 => version >= (18, 2, 1),
        major => major > 18,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_that_keep_ids() {
        for (version, keeps) in [
            ("ceph version 16.2.15 (618f440892089921c3e944a991122ddc44e60516) pacific (stable)", true),
            ("ceph version 16.2.14 (238ba602515df21ea7ffc75c88db29f9e5ef12c9) pacific (stable)", false),
            ("ceph version 17.2.7-0 quincy", true),
            ("ceph version 18.2.0 reef", false),
            ("ceph version 20.2.4 tentacle", true),
            ("", false),
        ] {
            assert_eq!(keeps_ids(version), keeps, "{version}");
        }
    }
}
