//! Class of an OSD on PersistentVolumeClaims, compared with what its device set declares.

use std::collections::BTreeSet;

use super::class::{Class, Difference, Mismatch, Refusal};
use super::differences::differences;
use super::obstacles::{is_no_way_back, obstacle};
use super::pvc_refusal::PvcRefusal;
use super::target::Target;
use crate::domain::device_set::DeviceSet;
use crate::domain::observation::{Daemon, Metadata, Observation, OnPvcs};
use crate::domain::osd::{Kind, Layout, Mode};
use crate::domain::policy::Declaration;

/// Returns the declared device set of an OSD: the one that its Deployment names, else the one of its PVC.
pub fn set_of<'a>(on: &OnPvcs, seen: &'a Observation) -> Option<&'a DeviceSet> {
    let name = name_of_set(on, seen)?;
    seen.kube.declaration.storage.sets.iter().find(|set| set.name == name)
}

fn name_of_set<'a>(on: &'a OnPvcs, seen: &'a Observation) -> Option<&'a str> {
    let of_pvc = || seen.kube.pvcs.get(on.data.as_ref()?)?.set.as_deref();
    on.set.as_deref().or_else(of_pvc)
}

/// Returns the class of an OSD on PVCs: as declared, or why it is refused.
pub(super) fn class_of(
    on: &OnPvcs,
    kind: Kind,
    metadata: &Metadata,
    daemon: &Daemon,
    seen: &Observation,
) -> Result<Class, Refusal> {
    let unnamed = || Refusal::NotBuiltYet("an OSD on a PVC that its Deployment does not name".to_owned());
    let pvc = on.data.as_deref().ok_or_else(unnamed)?;
    let set = declared(on, pvc, seen)?;
    let differs = differs(kind, metadata, set, seen);
    let is_on_lvm = matches!(kind, Kind::Lvm | Kind::LvmCrypt);
    if differs.is_empty() && !is_on_lvm {
        return Ok(Class::Conforming);
    }
    if let Some(why) = obstacle(metadata, daemon) {
        return Err(why);
    }
    expect_usable(pvc, seen)?;
    let Declaration { store, kms, .. } = &seen.kube.declaration;
    if is_no_way_back(metadata, store) {
        return Err(Refusal::NoWayBack);
    }
    if let Some(kms) = kms.clone().filter(|_| set.encrypted) {
        return Err(PvcRefusal::KeyInKms { kms, set: set.name.clone() }.into());
    }
    if let Some(what) = not_taken_yet(is_on_lvm, &differs, metadata) {
        return Err(Refusal::NotBuiltYet(format!("an OSD on a PVC: {what}")));
    }
    Ok(Class::Mismatched(Mismatch { format: kind, differs }))
}

/// Returns what is not migrated yet: LVM on a PVC, and OSDs with a PVC for their database or log.
fn not_taken_yet(is_on_lvm: bool, differs: &BTreeSet<Difference>, metadata: &Metadata) -> Option<String> {
    let is_database = |difference: &&Difference| matches!(difference, Difference::DatabaseOnPvc(_));
    if is_on_lvm {
        return Some("LVM on a PVC".to_owned());
    }
    if metadata.dedicated_db || metadata.dedicated_wal {
        return Some("its database or its log is on another PVC".to_owned());
    }
    differs.iter().find(is_database).map(Difference::to_string)
}

/// Returns the layout that the set of an OSD on PVCs declares.
pub(super) fn layout_of(on: &OnPvcs, seen: &Observation) -> Option<Layout> {
    let set = declared(on, on.data.as_deref()?, seen).ok()?;
    Some(layout(set, seen))
}

/// Returns the layout of the OSDs of a set: Rook creates them in raw mode only.
fn layout(set: &DeviceSet, seen: &Observation) -> Layout {
    Layout { store: seen.kube.declaration.store.clone(), mode: Mode::Raw, encrypted: set.encrypted }
}

/// Returns the set of an OSD, if the CephCluster declares it once and clearly.
fn declared<'a>(on: &OnPvcs, pvc: &str, seen: &'a Observation) -> Result<&'a DeviceSet, PvcRefusal> {
    let pvc = pvc.to_owned();
    let Some(name) = name_of_set(on, seen) else { return Err(PvcRefusal::NoSet { set: None, pvc }) };
    let mut found = seen.kube.declaration.storage.sets.iter().filter(|set| set.name == name);
    let (Some(set), another) = (found.next(), found.next()) else {
        return Err(PvcRefusal::NoSet { set: Some(name.to_owned()), pvc });
    };
    let twice = |what: String| Err(PvcRefusal::SetUnclear { what });
    match (another, set.double_template()) {
        (Some(_), _) => twice(format!("device set `{name}`")),
        (None, Some(template)) => twice(format!("template `{template}` of device set `{name}`")),
        (None, None) => Ok(set),
    }
}

/// Returns the differences of an OSD on PVCs from its set.
///
/// A database too many makes no difference (ADR 0022).
fn differs(kind: Kind, metadata: &Metadata, set: &DeviceSet, seen: &Observation) -> BTreeSet<Difference> {
    let target = Target { layout: layout(set, seen), database: None };
    let mut found = differences(kind, metadata, &target);
    if set.has_metadata() && !metadata.dedicated_db {
        found.insert(Difference::DatabaseOnPvc(set.name.clone()));
    }
    found
}

/// Returns why another pod of the node can't use the PVC of an OSD as a device.
fn expect_usable(name: &str, seen: &Observation) -> Result<(), PvcRefusal> {
    let pvc = name.to_owned();
    let phase = match seen.kube.pvcs.get(name) {
        None => "missing",
        Some(found) if found.is_deleted => "being deleted",
        Some(found) if found.phase != "Bound" => found.phase.as_str(),
        Some(found) if found.volume.as_ref().and_then(|volume| volume.uid.as_ref()).is_none() => {
            "bound to a PersistentVolume that does not exist"
        }
        Some(found) if !found.is_block => return Err(PvcRefusal::PvcNoBlock { pvc }),
        Some(found) if found.is_for_one_pod => return Err(PvcRefusal::PvcOnePod { pvc }),
        Some(_) => return Ok(()),
    };
    Err(PvcRefusal::PvcNotBound { pvc, phase: phase.to_owned() })
}
