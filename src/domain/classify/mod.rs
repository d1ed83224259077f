//! Classes of the OSDs, compared with what their owner declares.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use super::inspection::{Evidence, Proof};
use super::observation::{Daemon, Metadata, Observation, Slot, SlotState};
use super::osd::{Kind, Layout, Mode, ObjectStore, OsdId};
use super::provision::DatabaseAsked;

mod database;
mod kind;
mod target;

pub use database::{databases_by_node, databases_on};
use target::{Target, target};

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
    pub made: Kind,
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
}

/// Reason why an OSD is not migrated.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", content = "what", rename_all = "kebab-case")]
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
    /// OSD without a place in CRUSH.
    NoCrushItem,
    /// OSD that another client manages.
    ManagedExternally(String),
    /// OSD on a device-mapper device of the host that differs from the declaration: the differences.
    HostDevice(String),
    /// bluestore-rdr can't be converted back to bluestore.
    NoWayBack,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Store(from, to) => write!(f, "store {from}, wanted {to}"),
            Self::ToBeEncrypted => f.write_str("not encrypted, wanted encrypted"),
            Self::ToBePlain => f.write_str("encrypted, wanted plain"),
            Self::DatabaseElsewhere(device) => {
                write!(f, "its database with its data, wanted on {device} (metadataDevice)")
            }
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.made, listed(&self.differs))
    }
}

fn listed(differs: &BTreeSet<Difference>) -> String {
    differs.iter().map(Difference::to_string).collect::<Vec<_>>().join("; ")
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
            Self::ManagedExternally(what) => write!(f, "held by others: {what}"),
            Self::HostDevice(differs) => write!(
                f,
                "{differs}; its device is the host's own mapping (multipath, or LUKS that the host opens), which is not rebuilt"
            ),
            Self::NoWayBack => f.write_str("bluestore-rdr can't be taken back to bluestore"),
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conforming => f.write_str("as wanted"),
            Self::Legacy(kind) => kind.fmt(f),
            Self::Mismatched(mismatch) => mismatch.fmt(f),
            Self::Available => f.write_str("a free disk"),
            Self::Refused(why) => why.fmt(f),
        }
    }
}

impl Class {
    /// Returns the kind of an OSD that is to be migrated; `None` if it is not.
    pub fn migrates(&self) -> Option<Kind> {
        match self {
            Self::Legacy(made) | Self::Mismatched(Mismatch { made, .. }) => Some(*made),
            Self::Conforming | Self::Available | Self::Refused(_) => None,
        }
    }

    /// Returns one word for the table.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Conforming => "Conforming",
            Self::Legacy(_) => "Legacy",
            Self::Mismatched(_) => "Mismatched",
            Self::Available => "Vacant",
            Self::Refused(_) => "Refused",
        }
    }
}

/// Returns the class of every OSD in the osdmap.
pub fn classify(seen: &Observation) -> BTreeMap<OsdId, Class> {
    seen.ceph.slots.iter().map(|(osd, slot)| (*osd, class_of(*osd, slot, seen))).collect()
}

/// Returns the class of one OSD.
pub fn class_of(osd: OsdId, slot: &Slot, seen: &Observation) -> Class {
    match facts_of(osd, slot, seen) {
        Ok((metadata, daemon)) => class_of_running(slot, metadata, daemon, seen),
        Err(refusal) => Class::Refused(refusal),
    }
}

/// Returns the layout that an OSD is to get, if it can be determined.
pub fn target_of(osd: OsdId, seen: &Observation) -> Option<Layout> {
    let slot = seen.ceph.slots.get(&osd)?;
    let (metadata, daemon) = facts_of(osd, slot, seen).ok()?;
    target(slot, metadata, daemon, seen).ok().map(|target| target.layout)
}

/// Returns the database that is to be created for an OSD on another device when it is recreated.
///
/// A database that is on a volume already is created there again in the same size (`Evidence::has_again`).
pub fn database_of(osd: OsdId, seen: &Observation) -> Option<DatabaseAsked> {
    let slot = seen.ceph.slots.get(&osd)?;
    let (metadata, daemon) = facts_of(osd, slot, seen).ok()?;
    let asked = target(slot, metadata, daemon, seen).ok()?.database?;
    let made = kind::of(slot, metadata, daemon)?;
    let has_its_own = metadata.dedicated_db && matches!(made, Kind::Lvm | Kind::LvmCrypt);
    (!has_its_own).then_some(asked)
}

/// Returns the kind of an OSD by its metadata and its Deployment, whether it is migrated or not; `None` if it
/// is on a PersistentVolumeClaim, or its object store is unknown.
pub fn made(osd: OsdId, slot: &Slot, seen: &Observation) -> Result<Option<Kind>, Refusal> {
    let (metadata, daemon) = facts_of(osd, slot, seen)?;
    Ok(if daemon.pvc_backed { None } else { kind::of(slot, metadata, daemon) })
}

/// Returns the facts without which an OSD can't be classified.
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

fn class_of_running(slot: &Slot, metadata: &Metadata, daemon: &Daemon, seen: &Observation) -> Class {
    let not_yet = |what: &str| Class::Refused(Refusal::NotBuiltYet(what.to_owned()));
    if daemon.pvc_backed {
        return not_yet("an OSD on a PersistentVolumeClaim");
    }
    let Some(made) = kind::of(slot, metadata, daemon) else {
        return not_yet("an object store other than BlueStore and Filestore");
    };
    if made.in_directory() && daemon.data_dir.is_none() {
        return not_yet(
            "an OSD in a directory that its Deployment does not name (--osd-data, in a folder of the host)",
        );
    }
    let wanted = target(slot, metadata, daemon, seen);
    if !made.is_legacy() {
        match wanted.as_ref().map(|target| differences(made, metadata, target)) {
            Ok(differs) if differs.is_empty() => return Class::Conforming,
            Ok(differs) if kind::is_host_device(slot, metadata, daemon) => {
                return Class::Refused(Refusal::HostDevice(listed(&differs)));
            }
            Ok(_) | Err(_) => {}
        }
    }
    // From here on: obstacles to a migration. An OSD that conforms already has nothing to refuse.
    if let Some(what) = &daemon.managed_externally {
        return Class::Refused(Refusal::ManagedExternally(what.clone()));
    }
    if !keeps_ids(&metadata.ceph_version) {
        return Class::Refused(Refusal::TooOld(metadata.ceph_version.clone()));
    }
    if let Some(what) = not_taken_yet(made, metadata, wanted.as_ref().ok()) {
        return not_yet(what);
    }
    match wanted {
        Ok(target) if metadata.store.0 == "bluestore-rdr" && target.layout.store.0 == "bluestore" => {
            Class::Refused(Refusal::NoWayBack)
        }
        Ok(_) if made.is_legacy() => Class::Legacy(made),
        Ok(target) => Class::Mismatched(Mismatch { made, differs: differences(made, metadata, &target) }),
        Err(refusal) => Class::Refused(refusal),
    }
}

/// Returns the combination that the agent can't remove yet, or can't create from an existing OSD.
fn not_taken_yet(made: Kind, metadata: &Metadata, wanted: Option<&Target>) -> Option<&'static str> {
    if made == Kind::RawCrypt && (metadata.dedicated_db || metadata.dedicated_wal) {
        return Some("an encrypted raw OSD with its database or log on another device");
    }
    let to_lvm = wanted.is_some_and(|target| target.layout.mode == Mode::Lvm);
    // An OSD of another kind may get the whole disk: its partition table decides (`excludes`).
    let on_partition = made == Kind::Raw && metadata.on_partition;
    (on_partition && to_lvm).then_some(
        "a raw OSD on a partition that is to be encrypted, or to have its database elsewhere (only on whole disks)",
    )
}

/// Returns the differences of an OSD in a supported format from its declaration.
///
/// Raw or LVM makes no difference, and neither do place and size of a database that is on another device
/// already. Rook starts all of them, and no data is moved for that.
fn differences(made: Kind, metadata: &Metadata, wanted: &Target) -> BTreeSet<Difference> {
    let layout = &wanted.layout;
    let store = (metadata.store != layout.store)
        .then(|| Difference::Store(metadata.store.clone(), layout.store.clone()));
    let encryption = match (made.is_encrypted(), layout.encrypted) {
        (false, true) => Some(Difference::ToBeEncrypted),
        (true, false) => Some(Difference::ToBePlain),
        (true, true) | (false, false) => None,
    };
    let asked = wanted.database.as_ref().filter(|_| !metadata.dedicated_db);
    let database = asked.map(|asked| Difference::DatabaseElsewhere(asked.device.clone()));
    store.into_iter().chain(encryption).chain(database).collect()
}

/// Returns whether the contents of the device contradict the class that daemon and Deployment suggested.
///
/// Labels are hints, the device decides.
pub fn contradicts(class: &Class, proof: &Proof) -> Option<String> {
    let (Some(taken_for), Some(found)) = (class.migrates(), proof.made()) else {
        return Some("there is nothing to migrate".to_owned());
    };
    match (taken_for, found) {
        (taken_for, found) if taken_for == found => None,
        // Only the partition table shows whether ceph-disk or a person created a partition.
        (Kind::BluestorePartition, Kind::BluestoreByHand) | (Kind::BluestoreByHand, Kind::BluestorePartition) => None,
        (Kind::BluestoreByHand, Kind::Raw) => Some(
            "its Deployment looks as if made by hand, but ceph-volume made its device: it needs a new Deployment, not a new store"
                .to_owned(),
        ),
        (taken_for, found) => Some(format!("it was taken for {taken_for}, its device says {found}")),
    }
}

/// Returns why the device can't get the wanted layout, although its class can.
pub fn excludes(evidence: &Evidence, wanted: &Layout) -> Option<String> {
    match (&evidence.proof, wanted.mode) {
        (Proof::Volume { alone: false, name, .. }, Mode::Raw) => Some(format!(
            "its volume {name} shares its disk or volume group with others, which need the disk: it can be made anew on a \
             volume (encrypted), not raw; see `lvs` and `pvs` on its node"
        )),
        (Proof::Volume { alone: false, .. }, Mode::Lvm) => None,
        (_, Mode::Lvm) if evidence.device.is_partition() => Some(format!(
            "{wanted} on a partition, {}, is not made: only on whole disks",
            evidence.device.stable_name()
        )),
        (_, Mode::Raw | Mode::Lvm) => None,
    }
}

/// Returns whether a release has `ceph-volume raw prepare --osd-id`: 16.2.15, 17.2.7, 18.2.1 (ceph/ceph PR
/// 52422 and its backports).
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
