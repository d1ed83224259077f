//! Places without an OSD of all device sets.

use std::collections::BTreeSet;

use super::of_set::OfSet;
use super::{Found, Obstacle, Place};
use crate::domain::classify::PvcIndex;
use crate::domain::device_set::DeviceSet;
use crate::domain::observation::{Observation, OnPvcs};
use crate::domain::view::View;

/// Returns the places without an OSD, by set in the order declared, and by index.
pub fn places(view: View<'_>) -> Vec<Place> {
    let sets = &view.seen.kube.declaration.storage.sets;
    let used = used(view.seen);
    let mut found = Vec::new();
    for (n, set) in sets.iter().enumerate() {
        let is_named = |other: &DeviceSet| other.name == set.name;
        if sets.iter().take(n).any(is_named) {
            continue;
        }
        let is_declared_twice = sets.iter().skip(n + 1).any(is_named);
        match unclear(set, is_declared_twice) {
            Some(obstacle) => found.push(Place {
                set: set.name.clone(),
                indices: Vec::new(),
                found: Found::Obstructed(obstacle),
            }),
            None => found
                .extend(together(OfSet { set, used: &used, index: PvcIndex::of(view.seen), view }.places())),
        }
    }
    found
}

/// Returns why it is unclear what a set declares.
fn unclear(set: &DeviceSet, is_declared_twice: bool) -> Option<Obstacle> {
    if is_declared_twice {
        return Some(Obstacle::Unclear { what: format!("device set `{}`", set.name) });
    }
    if let Some(template) = set.double_template() {
        let what = format!("template `{template}` of device set `{}`", set.name);
        return Some(Obstacle::Unclear { what });
    }
    set.count.is_none().then_some(Obstacle::NoCount)
}

/// Returns the PVCs that Deployments of OSDs name.
fn used(seen: &Observation) -> BTreeSet<&str> {
    let named = seen.kube.daemons.values().filter_map(|daemon| daemon.on_pvcs.as_ref());
    named.flat_map(OnPvcs::names).collect()
}

/// Returns the places with those of one obstacle together.
fn together(places: Vec<Place>) -> Vec<Place> {
    let mut found: Vec<Place> = Vec::new();
    for place in places {
        let same = found.iter_mut().find(|other| place.obstacle().is_some() && other.found == place.found);
        match same {
            Some(other) => other.indices.extend(place.indices),
            None => found.push(place),
        }
    }
    found
}
