//! Record of an available disk that becomes an OSD: its id, and everything that its creation needs.

use uuid::Uuid;

use super::record::{self, Begun};
use crate::domain::classify::Class;
use crate::domain::inspection::{Evidence, Proof, RecordId};
use crate::domain::inventory::OsdSeen;
use crate::domain::ledger::Strategy;
use crate::domain::next::Next;
use crate::domain::observation::{Node, Observation, Slot, SlotState};
use crate::domain::osd::{CrushItem, NodeName, OsdFsid, OsdId, Weight};
use crate::domain::provision::{self, AvailableDisk};
use crate::domain::view::View;

/// Saves the record of an available disk before anything is done to it.
pub(super) fn record(node: &NodeName, available: &AvailableDisk, view: View<'_>) -> Option<Next> {
    if !view.ledger.has_place() {
        return None;
    }
    let node_object = view.node(node)?;
    let location = provision::location(node_object, &view.seen.kube.declaration.storage);
    let (osd, slot) = id_for(node, node_object, available, view);
    let daemon = view.daemon(osd);
    // A slot that is reused keeps its place in CRUSH, except for the weight. Its Deployment starts the former
    // OSD.
    let named = placeholder(view.ledger.run.serial + 1, view.seen);
    let old = daemon.and_then(|daemon| daemon.fsid).unwrap_or(named);
    let kept = slot.and_then(|slot| slot.crush.clone());
    let former = kept.as_ref().map(|item| item.weight);
    let size = available.device.size_bytes;
    let by_size = || former.map_or_else(|| Weight::by_size(size), |former| former.following(size));
    let weight = available.initial_weight.unwrap_or_else(by_size);
    let crush = match kept {
        Some(kept) => CrushItem { weight, ..kept },
        None => CrushItem { location, weight, device_class: available.device_class.clone() },
    };
    let begun = Begun {
        empty: None,
        osd,
        node: node.clone(),
        class: Class::Available,
        strategy: strategy(available),
        target: available.layout.clone(),
        db: available.db.clone(),
        pvcs: None,
        old,
        deployment: daemon.map(|daemon| daemon.uid.clone()).unwrap_or_default(),
        crush,
        former_weight: former.filter(|former| *former != weight),
        reweight: Weight::ONE,
        primary_affinity: Weight::ONE,
        upmaps: Vec::new(),
        used_bytes: None,
        former_flags: slot.map_or((false, false), |slot| (slot.noout, slot.noin)),
        // The inventory of the node's disks is the first evidence.
        evidence: Some(Evidence {
            device: available.device.clone(),
            proof: Proof::Available { tombstone: available.tombstone.clone() },
            usable_bytes: available.device.size_bytes,
            auxiliary: Vec::new(),
        }),
    };
    record::save(begun, named, view)
}

/// Returns the strategy for an available disk.
pub(super) fn strategy(available: &AvailableDisk) -> Strategy {
    Strategy::New { initial_weight: available.initial_weight, on_file: available.on_file }
}

/// Returns the id that an available disk gets.
///
/// A destroyed slot of its host comes first, unless a Deployment says that its OSD is of another node, and
/// among these the slot that the disk's tombstone names. Otherwise the disk gets the lowest unused id.
///
/// The new OSD keeps the device class of the slot, so a disk of another kind does not get it.
///
/// Ceph 16.2.15 accepts `osd new UUID ID` on an absent id, and refuses it if the id was taken meanwhile.
fn id_for<'a>(
    node: &NodeName,
    node_object: &Node,
    available: &AvailableDisk,
    view: View<'a>,
) -> (OsdId, Option<&'a Slot>) {
    let host = provision::location(node_object, &view.seen.kube.declaration.storage).remove("host");
    let named = available.tombstone.as_ref().map(|(osd, ..)| *osd);
    let is_ours = |osd: &OsdId, slot: &Slot| {
        let at_home = slot.crush.as_ref().is_some_and(|item| item.host() == host.as_ref());
        // Without a Deployment, the place in CRUSH alone says where the OSD was.
        let was_run_here = view.daemon(*osd).is_none_or(|daemon| {
            daemon.node.as_ref() == Some(node)
                && daemon.on_pvcs.is_none()
                && daemon.managed_externally.is_none()
                && daemon.pods.is_empty()
        });
        slot.state == SlotState::Destroyed
            && !slot.up
            && at_home
            && was_run_here
            && fits_class(available, slot, named == Some(*osd))
            && !view.ledger.records.contains_key(osd)
    };
    let slots = &view.seen.ceph.slots;
    let available =
        |osd: &OsdId| slots.get(osd).filter(|slot| is_ours(osd, slot)).map(|slot| (*osd, Some(slot)));
    let destroyed = named.as_ref().and_then(available).or_else(|| slots.keys().find_map(available));
    destroyed.unwrap_or_else(|| (lowest_absent(view), None))
}

/// Returns whether the disk is of the device class that a destroyed slot keeps: of the declared one, else of
/// the kind that the class stands for.
///
/// Only hard disks are distinguished: some clusters call an NVMe `ssd`. A class with another name was given
/// by its owner, and may stand for any disk, and so may that of the slot which the disk's tombstone names.
fn fits_class(available: &AvailableDisk, slot: &Slot, is_named: bool) -> bool {
    let kept = slot.crush.as_ref().and_then(|item| item.device_class.as_deref());
    match (kept, available.device_class.as_deref()) {
        (Some(kept), Some(declared)) => kept == declared,
        (Some(kept @ ("hdd" | "ssd" | "nvme")), None) => {
            is_named || (kept == "hdd") == (available.device_type == "hdd")
        }
        (Some(_) | None, None) | (None, Some(_)) => true,
    }
}

/// Returns the lowest unused id.
pub(super) fn lowest_absent(view: View<'_>) -> OsdId {
    let absent = |osd: &OsdId| {
        let is_absent = !view.seen.ceph.slots.contains_key(osd) && !view.ledger.records.contains_key(osd);
        // The Deployment of a purged OSD still starts the OSD with its number.
        is_absent && !view.seen.kube.daemons.contains_key(osd)
    };
    (0..u32::MAX).map(OsdId).find(absent).unwrap_or(OsdId(u32::MAX))
}

/// Returns a placeholder for the fsid of the former OSD in a record; no OSD ever has it.
///
/// It is a UUID of version 8 (RFC 9562) from the values that make it unique: the second, the record's number,
/// the cluster.
pub(super) fn placeholder(serial: u32, seen: &Observation) -> OsdFsid {
    let second = u128::from(seen.at.timestamp().unsigned_abs() & 0xffff_ffff);
    let cluster = seen.ceph.fsid.to_string();
    let cluster = u128::from(u32::from_str_radix(cluster.get(..8).unwrap_or_default(), 16).unwrap_or(0));
    let bits = second << 96 | u128::from(serial) << 32 | cluster;
    let uuid = uuid::Builder::from_custom_bytes(bits.to_be_bytes()).into_uuid();
    // Never nil, because version and variant are set.
    OsdFsid::new(uuid)
        .or_else(|| OsdFsid::new(Uuid::max()))
        .unwrap_or_else(|| unreachable!("a version is set"))
}

/// Returns the name of an adoption for acts that need a record.
///
/// Nothing of it is stored.
pub(super) fn adopted(found: &OsdSeen) -> RecordId {
    RecordId(format!("adopted-{}", found.osd.0))
}
