//! Class of an OSD on PersistentVolumeClaims, compared with what its device set declares.

use std::collections::BTreeSet;

use super::class::{Class, Difference, Refusal, listed};
use super::differences::differences;
use super::pvc_refusal::PvcRefusal;
use super::release::keeps_ids;
use super::target::Target;
use crate::domain::device_set::DeviceSet;
use crate::domain::observation::{Daemon, Metadata, Observation, OnPvcs};
use crate::domain::osd::{Kind, Layout, Mode};

/// Returns the declared device set of an OSD: the one that its Deployment names, else the one of its PVC.
pub fn set_of<'a>(on: &OnPvcs, seen: &'a Observation) -> Option<&'a DeviceSet> {
    let name = name_of_set(on, seen)?;
    seen.kube.declaration.storage.sets.iter().find(|set| set.name == name)
}

fn name_of_set<'a>(on: &'a OnPvcs, seen: &'a Observation) -> Option<&'a str> {
    let of_pvc = || seen.kube.pvcs.get(on.data.as_ref()?)?.set.as_deref();
    on.set.as_deref().or_else(of_pvc)
}

/// Returns the class of an OSD on PVCs.
pub(super) fn class_of(
    on: &OnPvcs,
    kind: Kind,
    metadata: &Metadata,
    daemon: &Daemon,
    seen: &Observation,
) -> Class {
    decide(on, kind, metadata, daemon, seen).unwrap_or_else(Class::Refused)
}

fn decide(
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
    if let Some(what) = &daemon.managed_externally {
        return Err(Refusal::ManagedExternally(what.clone()));
    }
    if !keeps_ids(&metadata.ceph_version) {
        return Err(Refusal::TooOld(metadata.ceph_version.clone()));
    }
    expect_usable(pvc, seen)?;
    if metadata.store.0 == "bluestore-rdr" && seen.kube.declaration.store.0 == "bluestore" {
        return Err(Refusal::NoWayBack);
    }
    if let Some(kms) =
        seen.kube.declaration.kms.as_ref().filter(|_| differs.contains(&Difference::ToBeEncrypted))
    {
        return Err(Refusal::OnPvc(PvcRefusal::KeyInKms { kms: kms.clone(), set: set.name.clone() }));
    }
    let why = if is_on_lvm { "LVM on a PVC".to_owned() } else { listed(&differs) };
    Err(Refusal::NotBuiltYet(format!("an OSD on a PVC: {why}")))
}

/// Returns the set of an OSD, if the CephCluster declares it once and clearly.
fn declared<'a>(on: &OnPvcs, pvc: &str, seen: &'a Observation) -> Result<&'a DeviceSet, Refusal> {
    let Some(name) = name_of_set(on, seen) else {
        return Err(Refusal::OnPvc(PvcRefusal::NoSet { set: None, pvc: pvc.to_owned() }));
    };
    let mut found = seen.kube.declaration.storage.sets.iter().filter(|set| set.name == name);
    let (Some(set), another) = (found.next(), found.next()) else {
        return Err(Refusal::OnPvc(PvcRefusal::NoSet { set: Some(name.to_owned()), pvc: pvc.to_owned() }));
    };
    let twice = |what: String| Refusal::OnPvc(PvcRefusal::SetUnclear { what });
    match (another, set.double_template()) {
        (Some(_), _) => Err(twice(format!("device set `{name}`"))),
        (None, Some(template)) => Err(twice(format!("template `{template}` of device set `{name}`"))),
        (None, None) => Ok(set),
    }
}

/// Returns the differences of an OSD on PVCs from its set.
///
/// Rook creates such OSDs in raw mode only. A database too many makes no difference (ADR 0022).
fn differs(kind: Kind, metadata: &Metadata, set: &DeviceSet, seen: &Observation) -> BTreeSet<Difference> {
    let store = seen.kube.declaration.store.clone();
    let layout = Layout { store, mode: Mode::Raw, encrypted: set.encrypted };
    let mut found = differences(kind, metadata, &Target { layout, database: None });
    if set.has_metadata() && !metadata.dedicated_db {
        found.insert(Difference::DatabaseOnPvc(set.name.clone()));
    }
    found
}

/// Returns why another pod of the node can't use the PVC of an OSD as a device.
fn expect_usable(name: &str, seen: &Observation) -> Result<(), Refusal> {
    let not_bound = |phase: &str| {
        Err(Refusal::OnPvc(PvcRefusal::PvcNotBound { pvc: name.to_owned(), phase: phase.to_owned() }))
    };
    match seen.kube.pvcs.get(name) {
        None => not_bound("missing"),
        Some(pvc) if pvc.is_deleted => not_bound("being deleted"),
        Some(pvc) if pvc.phase != "Bound" => not_bound(&pvc.phase),
        Some(pvc) if !pvc.is_block => Err(Refusal::OnPvc(PvcRefusal::PvcNoBlock { pvc: name.to_owned() })),
        Some(pvc) if pvc.is_for_one_pod => {
            Err(Refusal::OnPvc(PvcRefusal::PvcOnePod { pvc: name.to_owned() }))
        }
        Some(_) => Ok(()),
    }
}
