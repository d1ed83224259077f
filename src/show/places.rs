//! Places of device sets without an OSD, in `plan`.

use serde_json::{Value, json};

use crate::domain::osd::Role;
use crate::domain::places::{AvailablePvcs, Found, Obstacle, Place};

/// Returns one line a place.
pub(super) fn places_text(places: &[Place]) -> Vec<String> {
    let mut parts = Vec::new();
    if !places.is_empty() {
        parts.push("\nDevice sets without an OSD:".to_owned());
    }
    parts.extend(places.iter().map(ToString::to_string));
    parts
}

/// Returns the places for programs.
pub(super) fn places_json(places: &[Place]) -> Value {
    places.iter().map(row).collect()
}

fn row(place: &Place) -> Value {
    let available = place.available();
    let name = |role: Role| {
        let mut pvcs = available?.pvcs.iter();
        pvcs.find(|(other, _)| *other == role).map(|(_, pvc)| pvc.as_str())
    };
    let (state, in_progress) = match &place.found {
        Found::Available(_) => ("available", None),
        Found::InProgress { pvc, osd } => ("in-progress", Some((pvc.as_str(), *osd))),
        Found::Obstructed(_) => ("obstructed", None),
    };
    json!({
        "set": place.set,
        "indices": place.indices,
        "state": state,
        "pvc": name(Role::Block).or_else(|| in_progress.map(|(pvc, _)| pvc)),
        "databasePvc": name(Role::Db),
        "logPvc": name(Role::Wal),
        "node": available.map(|available: &AvailablePvcs| &available.node),
        "becomes": available.map(|available| &available.layout),
        "osd": in_progress.map(|(_, osd)| osd),
        "code": place.obstacle().map(Obstacle::code),
        "message": place.found.to_string(),
    })
}
