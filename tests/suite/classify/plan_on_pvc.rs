//! What `plan` prints of OSDs with a PVC for their database.

use osd_migrate::domain::ledger::Ledger;
use osd_migrate::domain::plan;
use osd_migrate::domain::policy::Policy;
use osd_migrate::domain::preview;
use osd_migrate::show::{self, PlanDetail};
use osd_migrate::sim::{World, example};

use crate::support::with_plan;

/// Returns the text and the JSON of `plan`.
fn planned(world: &World) -> (String, serde_json::Value) {
    let (policy, ledger) = (Policy::default(), Ledger::default());
    let seen = world.observe(|seen| plan::questions(&policy, &ledger, seen));
    let lines = preview::lines(&policy, &ledger, &seen);
    with_plan(&lines, |plan| (show::plan_text(plan, PlanDetail::default()), show::plan_json(plan)))
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
    let encrypted = line(&example::pvc_to_be_encrypted());
    assert!(encrypted.contains(", PVC set1-data-0a (pv-set1-data-0a), "), "{encrypted}");
    let database = line(&example::pvc_with_database());
    assert!(
        database.contains(" (pv-set1-data-0a) PVC set1-metadata-0b (pv-set1-metadata-0b), "),
        "{database}"
    );
    // Another PersistentVolume is another device, and a plan that names the first one does not cover it.
    let mut other = example::pvc_to_be_encrypted();
    other.kube.pvcs.get_mut(example::PVC).unwrap().volume.as_mut().unwrap().name = "pv-other".to_owned();
    assert!(line(&other).contains("(pv-other)"));
}

#[test]
fn plan_says_to_fence_rook_before_a_device_set_is_edited() {
    let said = |world: &World| show::before_an_edit(&world.observe(|_| plan::Questions::default()));
    let world = example::pvc_alongside_rook();
    let text = said(&world).unwrap();
    assert!(
        text.contains("before you edit `encrypted`") && text.ends_with("osd-migrate -n NAMESPACE fence"),
        "{text}"
    );
    let mut edited = world.clone();
    edited.kube.declaration.storage.sets[0].encrypted = true;
    let text = said(&edited).unwrap();
    assert!(
        text.contains("starts osd.1 as their device sets or nodes declare") && text.ends_with(" fence"),
        "{text}"
    );
    // An older Rook honours no fence: it is scaled down.
    let mut old = world.clone();
    old.kube.operator.as_mut().unwrap().honours_fence = false;
    assert!(said(&old).unwrap().ends_with("scale deployment rook-ceph-operator --replicas=0"));
    let mut fenced = world.clone();
    fenced.kube.fence = Some("true".to_owned());
    let mut away = world;
    (away.kube.operator.as_mut().unwrap().replicas, away.kube.operator.as_mut().unwrap().pods) = (0, 0);
    for silent in [fenced, away, example::with_rook(), example::pvc_to_be_encrypted()] {
        assert_eq!(said(&silent), None);
    }
}
