//! Class, target and kind of an OSD, compared with what its owner declares.

use super::class::{Class, Mismatch, Refusal, listed};
use super::differences::differences;
use super::kind;
use super::obstacles::{is_no_way_back, obstacle};
use super::on_pvc;
use super::pvcs::PvcIndex;
use super::target::{Target, declared, target};
use crate::domain::observation::{Daemon, Metadata, Observation, Slot, SlotState};
use crate::domain::osd::{Kind, Layout, Mode, OsdId};
use crate::domain::provision::DatabaseAsked;
use std::collections::BTreeMap;

/// Returns the class of every OSD in the osdmap.
pub fn classify(seen: &Observation) -> BTreeMap<OsdId, Class> {
    classes(seen.ceph.slots.iter(), seen).collect()
}

/// Returns the classes of several OSDs, each when it is asked for.
pub fn classes<'a>(
    slots: impl Iterator<Item = (&'a OsdId, &'a Slot)>,
    seen: &'a Observation,
) -> impl Iterator<Item = (OsdId, Class)> {
    let index = PvcIndex::of(seen);
    slots.map(move |(osd, slot)| (*osd, class_among((*osd, slot), &index)))
}

/// Returns the class of one OSD.
pub fn class_of(osd: OsdId, slot: &Slot, seen: &Observation) -> Class {
    class_among((osd, slot), &PvcIndex::of(seen))
}

fn class_among((osd, slot): (OsdId, &Slot), index: &PvcIndex<'_>) -> Class {
    match facts_of(osd, slot, index.seen) {
        Ok((metadata, daemon)) => class_of_running((osd, slot), metadata, daemon, index),
        Err(refusal) => Class::Refused(refusal),
    }
}

/// Returns the layout that an OSD is to get, if it can be determined.
pub fn target_of(osd: OsdId, seen: &Observation) -> Option<Layout> {
    let slot = seen.ceph.slots.get(&osd)?;
    let (metadata, daemon) = facts_of(osd, slot, seen).ok()?;
    if let Some(on) = &daemon.on_pvcs {
        return on_pvc::layout_of(on, seen);
    }
    target(slot, metadata, daemon, seen).ok().map(|target| target.layout)
}

/// Returns the database that is to be created for an OSD on another device when it is recreated.
///
/// A database that is on a volume already is created there again in the same size (`Evidence::has_again`).
pub fn database_of(osd: OsdId, seen: &Observation) -> Option<DatabaseAsked> {
    let slot = seen.ceph.slots.get(&osd)?;
    let (metadata, daemon) = facts_of(osd, slot, seen).ok()?;
    let asked = target(slot, metadata, daemon, seen).ok()?.database?;
    let kind = kind::of(slot, metadata, daemon)?;
    let has_its_own = metadata.dedicated_db && matches!(kind, Kind::Lvm | Kind::LvmCrypt);
    (!has_its_own).then_some(asked)
}

/// Returns whether a database on another device is declared for an OSD, whether the OSD has one or not.
pub(super) fn declares_database(osd: OsdId, seen: &Observation) -> bool {
    let asked = |slot: &Slot| {
        let (metadata, daemon) = facts_of(osd, slot, seen).ok()?;
        target(slot, metadata, daemon, seen).ok()?.database
    };
    seen.ceph.slots.get(&osd).and_then(asked).is_some()
}

/// Returns the kind of an OSD by its metadata and its Deployment, whether it is migrated or not; `None` if
/// its object store is unknown.
pub fn kind_of(osd: OsdId, slot: &Slot, seen: &Observation) -> Result<Option<Kind>, Refusal> {
    let (metadata, daemon) = facts_of(osd, slot, seen)?;
    Ok(kind::of(slot, metadata, daemon))
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
        None => return Err(Refusal::NoPod(osd)),
    }
    Ok((metadata, daemon))
}

fn class_of_running(
    (osd, slot): (OsdId, &Slot),
    metadata: &Metadata,
    daemon: &Daemon,
    index: &PvcIndex<'_>,
) -> Class {
    let seen = index.seen;
    let not_yet = |what: &str| Class::Refused(Refusal::NotBuiltYet(what.to_owned()));
    let Some(kind) = kind::of(slot, metadata, daemon) else {
        return not_yet("an object store other than BlueStore and Filestore");
    };
    if let Some(on) = &daemon.on_pvcs {
        return on_pvc::class_of((osd, on), kind, metadata, daemon, index).unwrap_or_else(Class::Refused);
    }
    if kind.in_directory() && daemon.data_dir.is_none() {
        return not_yet(
            "an OSD in a directory that its Deployment does not name (--osd-data, in a folder of the host)",
        );
    }
    let wanted = declared(slot, metadata, daemon, seen);
    if !kind.is_legacy() {
        match wanted.as_ref().map(|target| differences(kind, metadata, target)) {
            Ok(differs) if differs.is_empty() => return Class::Conforming,
            Ok(differs) if kind::is_host_device(slot, metadata, daemon) => {
                return Class::Refused(Refusal::HostDevice(listed(&differs)));
            }
            Ok(_) | Err(_) => {}
        }
    }
    // From here on: obstacles to a migration. An OSD that conforms already has nothing to refuse.
    let wanted = wanted.and_then(Target::alone_on_its_device);
    if let Some(why) = obstacle(metadata, daemon) {
        return Class::Refused(why);
    }
    if let Some(what) = not_taken_yet(kind, metadata, wanted.as_ref().ok()) {
        return not_yet(what);
    }
    match wanted {
        Ok(target) if is_no_way_back(metadata, &target.layout.store) => Class::Refused(Refusal::NoWayBack),
        Ok(_) if kind.is_legacy() => Class::Legacy(kind),
        Ok(target) => {
            Class::Mismatched(Mismatch { format: kind, differs: differences(kind, metadata, &target) })
        }
        Err(refusal) => Class::Refused(refusal),
    }
}

/// Returns the combination that the agent can't remove yet, or can't create from an existing OSD.
fn not_taken_yet(kind: Kind, metadata: &Metadata, wanted: Option<&Target>) -> Option<&'static str> {
    if kind == Kind::RawCrypt && (metadata.dedicated_db || metadata.dedicated_wal) {
        return Some("an encrypted raw OSD with its database or log on another device");
    }
    let to_lvm = wanted.is_some_and(|target| target.layout.mode == Mode::Lvm);
    // An OSD of another kind may get the whole disk: its partition table decides (`excludes`).
    let on_partition = kind == Kind::Raw && metadata.on_partition;
    (on_partition && to_lvm).then_some(
        "a raw OSD on a partition that is to be encrypted, or to have its database elsewhere (only on whole disks)",
    )
}
