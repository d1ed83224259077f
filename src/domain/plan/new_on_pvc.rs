//! New OSDs on PVCs of device sets: one after the other, in the order of the sets and their indices.
//!
//! No inventory shows the device of a PVC: only a pod that has the PVC does. So the record comes first, and
//! its agent's first inspection says whether the device is blank. A device that is not is left unchanged.

use std::collections::BTreeSet;
use std::fmt;

use chrono::{DateTime, Utc};

use super::new_osd::{self, lowest_absent};
use super::record::{self, Begun};
use super::rest::{Rest, lasts, save_begin};
use crate::domain::classify::{self, Class};
use crate::domain::gate::{self, Gate, Reason};
use crate::domain::guard::{Guard, passes};
use crate::domain::ledger::{Record, RecordedPvc, Strategy};
use crate::domain::next::{Next, Wait};
use crate::domain::observation::{Daemon, Slot, SlotState};
use crate::domain::osd::pvc::PerPvc;
use crate::domain::osd::{CrushItem, OsdId, Weight};
use crate::domain::places::{AvailablePvcs, Found, Obstacle, Place, places};
use crate::domain::provision;
use crate::domain::view::View;

/// Returns the next step for new OSDs on PVCs; `None` if none is to be created, or none now.
///
/// A node that is not Ready, or on which a Job of Rook hangs, is waited for up to a limit.
pub(super) fn next(view: View<'_>, rest: &mut Rest) -> Option<Next> {
    let places = allowed(view);
    let may_begin = gate::begin(view) == Gate::Open;
    let waited = lasts(view.ledger.run.waiting_for_node.as_ref(), view);
    let no_place = view.ledger.full_of_quarantined();
    let mut is_node_away = false;
    for available in places.iter().filter_map(Place::available) {
        if let Some(why) = &no_place {
            rest.summary.places.push(gets_none(available, why));
            continue;
        }
        let Some(reason) = why_not_now(available, view) else {
            return Some(record(available, view).unwrap_or(Next::Wait(Wait::FreshView)));
        };
        let node = available.node.clone();
        if may_begin && gate::of_node_for_new(&node, view.seen) != Gate::Open {
            is_node_away = true;
            let Some(waited) = waited else { return Some(save_waiting_for_node(Some(view.seen.at), view)) };
            if waited >= view.policy.limits.skip_after {
                rest.summary.places.push(gets_none(available, &reason));
                continue;
            }
        }
        rest.wait.get_or_insert(Next::Wait(Wait::Node { node, reason }));
    }
    let is_back = may_begin && !is_node_away && waited.is_some();
    is_back.then(|| save_waiting_for_node(None, view))
}

/// Returns the text that PVCs get no OSD in this run, and why.
fn gets_none(available: &AvailablePvcs, why: &dyn fmt::Display) -> String {
    format!("PVC {} gets no OSD in this run: {why}", available.pvcs.data)
}

/// Saves since when this Job waits for a node.
fn save_waiting_for_node(since: Option<DateTime<Utc>>, view: View<'_>) -> Next {
    save_begin(since, |run| &mut run.waiting_for_node, view)
}

fn why_not_now(available: &AvailablePvcs, view: View<'_>) -> Option<Reason> {
    let gates = [gate::begin(view), gate::before_new(&available.node, &view.ledger.run, view.seen)];
    gates.into_iter().find_map(|gate| match gate {
        Gate::Open => None,
        Gate::Shut(reason) | Gate::Unknown(reason) => Some(reason),
    })
}

/// Returns the places without an OSD. A plan that a person approved allows only its own.
pub fn allowed(view: View<'_>) -> Vec<Place> {
    let mut found = places(view);
    for place in &mut found {
        if let Some(available) = place.available().filter(|available| !is_in_plan(available, view)) {
            let pvc = available.pvcs.data.clone();
            place.found = Found::Obstructed(Obstacle::NotInPlan { pvc });
        }
    }
    found
}

fn is_in_plan(available: &AvailablePvcs, view: View<'_>) -> bool {
    let approval = view.policy.approval.as_ref();
    approval
        .is_none_or(|approval| passes(Guard::ApprovedOnly, approval.lines.has_disk(&line_of_pvcs(available))))
}

/// Returns the line of PVCs that become an OSD, in a plan that a person approves.
pub fn line_of_pvcs(available: &AvailablePvcs) -> String {
    let AvailablePvcs { pvcs, node, layout, volume_uid, .. } = available;
    let names = pvcs.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(" ");
    format!("PVC {names} on {node}, volume {volume_uid} -> {layout}")
}

/// Returns the PVCs of the data that become OSDs.
pub(super) fn chosen(view: View<'_>) -> BTreeSet<String> {
    allowed(view).iter().filter_map(Place::available).map(|available| available.pvcs.data.clone()).collect()
}

/// Returns the sentences about places that get no OSD.
pub(super) fn problems(view: View<'_>) -> Vec<String> {
    allowed(view).iter().filter(|place| place.obstacle().is_some()).map(ToString::to_string).collect()
}

/// Returns whether the place of a recorded OSD still becomes this OSD.
pub(super) fn is_selected(record: &Record, view: View<'_>) -> bool {
    let ledger = view.ledger.without(record.osd);
    let places = allowed(View { ledger: &ledger, ..view });
    let names = record.pvcs.as_ref().map(|pvcs| pvcs.map(|pvc| pvc.name.clone()));
    let is_it = |available: &AvailablePvcs| {
        Some(&available.pvcs) == names.as_ref()
            && available.node == record.node
            && available.layout == record.target
    };
    gate::same_pvc(record, view.seen) == Gate::Open && places.iter().filter_map(Place::available).any(is_it)
}

/// Saves the record of PVCs that become an OSD, before an agent gets them.
fn record(available: &AvailablePvcs, view: View<'_>) -> Option<Next> {
    if !view.ledger.has_place() {
        return None;
    }
    let node_object = view.node(&available.node)?;
    let location = provision::location(node_object, &view.seen.kube.declaration.storage);
    let host = location.get("host").cloned();
    let (osd, slot) = id_for(available, host.as_ref(), view);
    let daemon = view.daemon(osd);
    let named = new_osd::placeholder(view.ledger.run.serial + 1, view.seen);
    let old = daemon.and_then(|daemon| daemon.fsid).unwrap_or(named);
    // The size of the device is known after the inspection.
    let new = CrushItem { location, weight: Weight(0), device_class: available.device_class.clone() };
    let begun = Begun {
        empty: None,
        osd,
        node: available.node.clone(),
        class: Class::Available,
        strategy: Strategy::New { initial_weight: None, on_file: false },
        target: available.layout.clone(),
        db: None,
        pvcs: Some(recorded(&available.pvcs, view)?),
        old,
        deployment: daemon.map(|daemon| daemon.uid.clone()).unwrap_or_default(),
        crush: slot.and_then(|slot| slot.crush.clone()).unwrap_or(new),
        former_weight: None,
        reweight: Weight::ONE,
        primary_affinity: Weight::ONE,
        upmaps: Vec::new(),
        used_bytes: None,
        former_flags: slot.map_or((false, false), |slot| (slot.noout, slot.noin)),
        evidence: None,
    };
    record::save(begun, named, view)
}

/// Returns the PVCs with the uids that identify them.
fn recorded(pvcs: &PerPvc<String>, view: View<'_>) -> Option<PerPvc<RecordedPvc>> {
    let of = |name: &String| RecordedPvc::of(name, view.seen.kube.pvcs.get(name)?);
    let of_part = |name: Option<&String>| name.map_or(Some(None), |name| of(name).map(Some));
    Some(PerPvc { data: of(&pvcs.data)?, db: of_part(pvcs.db.as_ref())?, wal: of_part(pvcs.wal.as_ref())? })
}

/// Returns the id of the new OSD: that of a destroyed OSD of the set on this host whose PVC is gone, else the
/// lowest unused one.
///
/// The new OSD keeps the device class of the slot, so a set that declares another class does not get it.
fn id_for<'a>(available: &AvailablePvcs, host: Option<&String>, view: View<'a>) -> (OsdId, Option<&'a Slot>) {
    let set_of = |pvc: &String| view.seen.kube.pvcs.get(pvc)?.set.as_ref();
    let set = set_of(&available.pvcs.data);
    let is_of_set = |daemon: &Daemon| {
        let on = daemon.on_pvcs.as_ref();
        on.is_some_and(|on| {
            let is_gone = on.data.as_ref().is_some_and(|pvc| !view.seen.kube.pvcs.contains_key(pvc));
            is_gone && classify::set_of(on, view.seen).map(|set| &set.name) == set
        })
    };
    let is_left = |osd: &OsdId, slot: &Slot| {
        let at_home = slot.crush.as_ref().is_some_and(|item| item.host() == host);
        let is_idle = |daemon: &Daemon| daemon.managed_externally.is_none() && daemon.pods.is_empty();
        let kept = slot.crush.as_ref().and_then(|item| item.device_class.as_ref());
        let fits =
            available.device_class.as_ref().is_none_or(|declared| kept.is_none_or(|kept| kept == declared));
        slot.state == SlotState::Destroyed
            && !slot.up
            && at_home
            && fits
            && view.daemon(*osd).is_some_and(|daemon| is_idle(daemon) && is_of_set(daemon))
            && !view.ledger.records.contains_key(osd)
    };
    let mut slots = view.seen.ceph.slots.iter();
    slots
        .find(|(osd, slot)| is_left(osd, slot))
        .map_or_else(|| (lowest_absent(view), None), |(osd, slot)| (*osd, Some(slot)))
}
