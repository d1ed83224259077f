//! What `plan` prints of OSDs with a PVC for their database.

use std::collections::{BTreeMap, BTreeSet};

use osd_migrate::domain::estimate::Rate;
use osd_migrate::domain::ledger::Ledger;
use osd_migrate::domain::plan::{self, Disks};
use osd_migrate::domain::policy::Policy;
use osd_migrate::domain::preview;
use osd_migrate::show::{self, Plan, PlanDetail};
use osd_migrate::sim::{World, example};

/// Returns the text and the JSON of `plan`.
fn planned(world: &World) -> (String, serde_json::Value) {
    let (policy, ledger) = (Policy::default(), Ledger::default());
    let seen = world.observe(|seen| plan::questions(&policy, &ledger, seen));
    let lines = preview::lines(&policy, &ledger, &seen);
    let (devices, disks, unmatched) = (BTreeMap::new(), Disks::default(), BTreeSet::new());
    let plan = Plan {
        lines: &lines,
        devices: &devices,
        disks: &disks,
        places: &[],
        rate: Rate::of(None),
        hash: None,
        unmatched: &unmatched,
    };
    (show::plan_text(&plan, PlanDetail::default()), show::plan_json(&plan))
}

#[test]
fn plan_names_the_pvc_of_a_database() {
    for (world, sentence) in [
        (example::pvc_gets_database(), "osd.0: its database goes to PVC set1-metadata-0b"),
        (example::pvc_with_database(), "osd.0: its database is created again on PVC set1-metadata-0b"),
    ] {
        let (text, json) = planned(&world);
        assert!(text.lines().any(|line| line == sentence), "{text}");
        let osd = &json["osds"][0];
        assert_eq!(
            (osd["pvc"].as_str(), osd["databasePvc"].as_str()),
            (Some(example::PVC), Some(example::DB_PVC))
        );
        assert!(osd["logPvc"].is_null() && json["osds"][1]["databasePvc"].is_null(), "{json}");
    }
    let (text, json) = planned(&example::pvc_to_be_encrypted());
    assert!(!text.contains("its database") && json["osds"][0]["databasePvc"].is_null(), "{text}");
}

#[test]
fn approved_plan_names_the_pvc_whose_device_is_cleared() {
    let line = |world: &World| {
        let (policy, ledger) = (Policy::default(), Ledger::default());
        let seen = world.observe(|seen| plan::questions(&policy, &ledger, seen));
        let view = osd_migrate::domain::view::View { policy: &policy, ledger: &ledger, seen: &seen };
        plan::line_of_osd(osd_migrate::domain::osd::OsdId(0), view).unwrap()
    };
    assert!(line(&example::pvc_with_database()).contains(&format!(" PVC {}", example::DB_PVC)));
    assert!(!line(&example::pvc_to_be_encrypted()).contains("PVC"));
}
