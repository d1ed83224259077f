//! PGs per OSD, below the plan.

use serde_json::{Value, json};

use crate::domain::observation::Ceph;
use crate::domain::pg_counts;

/// Returns one line for each device class with advice, or none if there is no advice.
pub fn pgs_text(ceph: &Ceph) -> Option<String> {
    let counts = pg_counts::by_class(ceph);
    let lines: Vec<_> = counts.iter().filter_map(pg_counts::PgCounts::advice).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Returns the PGs per OSD of each device class for programs.
pub fn pgs_json(ceph: &Ceph) -> Value {
    let of_class = |counts: &pg_counts::PgCounts| {
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
    };
    pg_counts::by_class(ceph).iter().map(of_class).collect()
}
