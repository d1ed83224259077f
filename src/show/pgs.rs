//! PGs per OSD, below the plan and the forecast of a removal.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::domain::forecast::Placement;
use crate::domain::observation::Ceph;
use crate::domain::pg_counts::{self, PgCounts};

/// Returns one line for each device class with advice, or none if there is no advice.
pub fn pgs_text(ceph: &Ceph) -> Option<String> {
    let counts = pg_counts::by_class(ceph);
    let lines: Vec<_> = counts.iter().filter_map(PgCounts::advice).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Returns the PGs per OSD of each device class for programs.
pub fn pgs_json(ceph: &Ceph) -> Value {
    pg_counts::by_class(ceph).iter().map(of_class).collect()
}

fn of_class(counts: &PgCounts) -> Value {
    json!({
        "deviceClass": counts.class,
        "osds": counts.osds,
        "lowest": counts.lowest,
        "meanTenths": counts.mean_tenths(),
        "highest": counts.highest.0,
        "highestOsd": counts.highest.1,
        "notAutoscaled": counts.fixed,
        "advice": counts.advice(),
    })
}

/// Returns one line for each device class whose PGs per OSD a changed placement changes: now, and then.
pub(super) fn changed_pgs(placement: &Placement, ceph: &Ceph) -> Vec<String> {
    let mut then: BTreeMap<_, _> = pg_counts::by_class_after(placement, ceph)
        .into_iter()
        .map(|counts| (counts.class.clone(), counts))
        .collect();
    let of_class = |now: PgCounts| {
        let then = then.remove(&now.class);
        let is_same = then.as_ref() == Some(&now);
        let then = then.map_or_else(|| "no OSD".to_owned(), |then| then.range());
        (!is_same).then(|| format!("{}: now {}; then {then}", now.subject(), now.range()))
    };
    pg_counts::by_class(ceph).into_iter().filter_map(of_class).collect()
}

/// Returns the PGs per OSD of each device class for programs: now, and once a changed placement is real.
pub(super) fn changed_pgs_json(placement: &Placement, ceph: &Ceph) -> Value {
    let then: Value = pg_counts::by_class_after(placement, ceph).iter().map(of_class).collect();
    json!({ "now": pgs_json(ceph), "then": then })
}
