//! Adopts a finished OSD of this cluster on a disk of a node that is down and that nothing starts, whichever
//! client created it.

use std::collections::BTreeMap;

use super::new_osd;
use crate::domain::act::{Act, Deploy, Fresh, KubeAct};
use crate::domain::guard::{Guard, passes};
use crate::domain::inventory::{DiskSeen, DiskState, NodeInventory, OsdSeen};
use crate::domain::next::Next;
use crate::domain::observation::SlotState;
use crate::domain::osd::{CrushItem, Layout, Mode, NodeName, OsdId, Weight, device_type};
use crate::domain::provision;
use crate::domain::step;
use crate::domain::view::View;

/// Returns the act that starts the first such OSD; one whose last act failed comes last.
pub(super) fn next(node: &NodeName, inventory: &NodeInventory, view: View<'_>) -> Option<Next> {
    let failed = &view.seen.failed;
    let is_next = |found: &&OsdSeen| {
        is_adoptable(found, view)
            && failed.denied_last(found.osd).is_none()
            && provision::volumes::of_osd(found, inventory, node, view.seen).is_none()
    };
    let found = inventory.osds.iter().filter(is_next).min_by_key(|found| failed.contains(found.osd))?;
    let slot = view.slot(found.osd)?;
    let location = provision::location(view.node(node)?, &view.seen.kube.declaration.storage);
    let on_file = view.policy.store_on_file;
    Some(Next::Do(Act::Kube(KubeAct::Adopt(Deploy {
        osd: found.osd,
        record: new_osd::adopted(found),
        fsid: found.fsid,
        node: node.clone(),
        // The agent sees the node's file at another path than the OSD's pod does.
        block_path: if on_file { step::ON_FILE.to_owned() } else { found.block_path.clone() },
        store: found.store.to_string(),
        crush: crush(slot.crush.clone(), location),
        layout: Layout { store: found.store.clone(), mode: found.mode, encrypted: found.encrypted },
        db_path: found.db_path.clone(),
        wal_path: found.wal_path.clone(),
        initial_weight: None,
        device_type: (found.mode == Mode::Raw && !on_file).then(|| type_of(found, inventory)).flatten(),
        on_file,
        fresh: Some(Fresh { replaces: None, source: None }),
        pvcs: None,
    }))))
}

/// Returns the OSDs that nothing starts because a right or a policy denied it, and why: this run does not try
/// again.
pub(super) fn denied(view: View<'_>) -> impl Iterator<Item = (OsdId, String)> {
    let is_left = move |(osd, _): &(OsdId, &str)| {
        let is_down = view.slot(*osd).is_some_and(|slot| slot.state != SlotState::Destroyed && !slot.up);
        is_down && !view.seen.kube.daemons.contains_key(osd) && !view.ledger.records.contains_key(osd)
    };
    let denied = view.seen.failed.all_denied().filter(is_left);
    denied.map(|(osd, why)| (osd, format!("its Deployment was not created: {why}")))
}

/// Returns the place of an OSD on its node.
///
/// An OSD whose disk was moved here from another node leaves that node's host in CRUSH. A place below no host
/// was chosen by a person.
fn crush(of_slot: Option<CrushItem>, location: BTreeMap<String, String>) -> CrushItem {
    match of_slot {
        Some(item) if item.host().is_none_or(|host| location.get("host") == Some(host)) => item,
        Some(item) => CrushItem { location, ..item },
        None => CrushItem { location, weight: Weight(0), device_class: None },
    }
}

fn type_of(found: &OsdSeen, inventory: &NodeInventory) -> Option<String> {
    let carries =
        |disk: &&DiskSeen| matches!(&disk.state, DiskState::Ours { fsid, .. } if *fsid == found.fsid);
    let disk = inventory.disks.iter().find(carries)?;
    Some(device_type(disk.rotational, &disk.name).to_owned())
}

fn is_adoptable(found: &OsdSeen, view: View<'_>) -> bool {
    let is_it = view.slot(found.osd).is_some_and(|slot| {
        let is_down = slot.state != SlotState::Destroyed && !slot.up;
        is_down && passes(Guard::AdoptsItsOwn, slot.fsid == Some(found.fsid))
    });
    is_it
        && found.activatable
        && found.cluster == view.seen.ceph.fsid
        && !view.seen.kube.daemons.contains_key(&found.osd)
        && !view.ledger.records.contains_key(&found.osd)
}
