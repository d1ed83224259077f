//! Class of an OSD on PersistentVolumeClaims, compared with what its device set declares.

use std::collections::BTreeSet;

use super::class::{Class, Difference, Mismatch, Refusal};
use super::differences::differences;
use super::obstacles::{is_no_way_back, obstacle};
use super::pvc_refusal::{NAME_CHARS, PvcRefusal};
use super::pvcs::{OfSet, PvcIndex};
use super::target::Target;
use crate::domain::device_set::{DeviceSet, METADATA, WAL};
use crate::domain::observation::{Daemon, Metadata, Observation, OnPvcs};
use crate::domain::osd::pvc::PerPvc;
use crate::domain::osd::{Kind, Layout, Mode, OsdId};

/// Returns the declared device set of an OSD: the one that its Deployment names, else the one of its PVC.
pub fn set_of<'a>(on: &OnPvcs, seen: &'a Observation) -> Option<&'a DeviceSet> {
    let name = name_of_set(on, seen)?;
    seen.kube.declaration.storage.sets.iter().find(|set| set.name == name)
}

fn name_of_set<'a>(on: &'a OnPvcs, seen: &'a Observation) -> Option<&'a str> {
    let of_pvc = || seen.kube.pvcs.get(on.data.as_ref()?)?.set.as_deref();
    on.set.as_deref().or_else(of_pvc)
}

/// Returns the PVCs that an OSD gets when it is recreated.
///
/// `None` if the OSD is on disks of its host, or can't be recreated on PVCs: `class_of` says why.
pub fn pvcs_of(osd: OsdId, seen: &Observation) -> Option<PerPvc<String>> {
    let on = seen.kube.daemons.get(&osd)?.on_pvcs.as_ref()?;
    let data = on.data.as_deref()?;
    let set = declared(on, data, seen).ok()?;
    OfSet { osd, on, set, index: &PvcIndex::of(seen) }.pvcs(data).ok()
}

/// Returns the class of an OSD on PVCs: as declared, or why it is refused.
pub(super) fn class_of(
    (osd, on): (OsdId, &OnPvcs),
    kind: Kind,
    metadata: &Metadata,
    daemon: &Daemon,
    index: &PvcIndex<'_>,
) -> Result<Class, Refusal> {
    let seen = index.seen;
    let not_yet = |what: &str| Err(Refusal::NotBuiltYet(format!("an OSD on a PVC: {what}")));
    let Some(data) = on.data.as_deref() else { return not_yet("its Deployment does not name the PVC") };
    let set = declared(on, data, seen)?;
    let differs = differs(kind, metadata, set, seen);
    if differs.is_empty() {
        return Ok(Class::Conforming);
    }
    if let Some(why) = obstacle(metadata, daemon) {
        return Err(why);
    }
    if differs.contains(&Difference::OnLvm) && (kind.is_encrypted() || has_other_parts(metadata)) {
        return Err(PvcRefusal::LvmOnPvc { pvc: data.to_owned() }.into());
    }
    if let Some(part) = unnamed_part(on, metadata) {
        return not_yet(&format!("its {part} is on a device that its Deployment does not name"));
    }
    let pvcs = OfSet { osd, on, set, index }.pvcs(data)?;
    if is_no_way_back(metadata, &seen.kube.declaration.store) {
        return Err(Refusal::NoWayBack);
    }
    if let Some(kms) = kms_of(on, set, seen) {
        return Err(PvcRefusal::KeyInKms { kms, set: set.name.clone() }.into());
    }
    if kind.is_encrypted() && set.encrypted && is_rotated_without(osd, on, &differs, seen) {
        return Err(PvcRefusal::OldRotation { osd }.into());
    }
    if let Some(pvc) = with_long_name(pvcs, kind, on).filter(|_| set.encrypted) {
        return Err(PvcRefusal::PvcNameTooLong { pvc, set: set.name.clone() }.into());
    }
    Ok(Class::Mismatched(Mismatch { format: kind, differs }))
}

/// Returns a PVC that is not encrypted yet, and whose name is too long for an encrypted one.
fn with_long_name(pvcs: PerPvc<String>, kind: Kind, on: &OnPvcs) -> Option<String> {
    let is_encrypted = |pvc: &String| kind.is_encrypted() && on.names().any(|name| name == pvc.as_str());
    let all = [Some(pvcs.data), pvcs.db, pvcs.wal].into_iter().flatten();
    all.filter(|pvc| !is_encrypted(pvc)).find(|pvc| pvc.len() > NAME_CHARS)
}

/// Returns the key management service that the key of the new OSD would have to be in, if it gets one.
///
/// An OSD that reads its key from a service does so whatever the CephCluster declares now.
fn kms_of(on: &OnPvcs, set: &DeviceSet, seen: &Observation) -> Option<String> {
    let declared = seen.kube.declaration.kms.clone();
    let found = || on.key_in_kms.then(|| "a key management service".to_owned());
    declared.or_else(found).filter(|_| set.encrypted)
}

/// Returns whether a CronJob rotates the key of an OSD without a device that the OSD gets.
///
/// The key of the data opens the new database and log, too. A rotation replaces that key in the headers of
/// the devices in its arguments only: the others could not be opened any more.
fn is_rotated_without(osd: OsdId, on: &OnPvcs, differs: &BTreeSet<Difference>, seen: &Observation) -> bool {
    let Some(rotation) = seen.kube.rotations.get(&osd) else { return false };
    let gets = |is_it: fn(&Difference) -> bool| differs.iter().any(is_it);
    let gets_db = on.db.is_none() && gets(|one| matches!(one, Difference::DatabaseOnPvc(_)));
    let gets_wal = on.wal.is_none() && gets(|one| matches!(one, Difference::LogOnPvc(_)));
    (gets_db && !rotation.db) || (gets_wal && !rotation.wal)
}

/// Returns whether an OSD has its database or its log on another device than its data.
fn has_other_parts(metadata: &Metadata) -> bool {
    metadata.dedicated_db || metadata.dedicated_wal
}

/// Returns what an OSD has on another device that its Deployment does not name: the device can't be found.
fn unnamed_part(on: &OnPvcs, metadata: &Metadata) -> Option<&'static str> {
    if metadata.dedicated_db && on.db.is_none() {
        return Some("database");
    }
    (metadata.dedicated_wal && on.wal.is_none()).then_some("log")
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
/// A database too many makes no difference (ADR 0022). A log too few does: Rook links the PVC of its set as
/// `block.wal` (spec.go, v1.20.6), and BlueStore does not start with a log that is not its own.
fn differs(kind: Kind, metadata: &Metadata, set: &DeviceSet, seen: &Observation) -> BTreeSet<Difference> {
    let target = Target { layout: layout(set, seen), database: None, per_device: None };
    let mut found = differences(kind, metadata, &target);
    if set.has_template(METADATA) && !metadata.dedicated_db {
        found.insert(Difference::DatabaseOnPvc(set.name.clone()));
    }
    if set.has_template(WAL) && !metadata.dedicated_wal {
        found.insert(Difference::LogOnPvc(set.name.clone()));
    }
    if matches!(kind, Kind::Lvm | Kind::LvmCrypt) {
        found.insert(Difference::OnLvm);
    }
    found
}
