use serde_json::json;

use super::*;
use crate::k8s::nodes::node_job::tests::{assert_adorned, declaration, own};

pub(crate) fn request() -> InventoryRequest {
    InventoryRequest {
        run: "0b1f1a0e-6c65-4c11-9d65-0f1d5a3a9a01".to_owned(),
        number: 2,
        node: NodeName("h1.example".to_owned()),
        cluster: "6a1b2c3d-0000-4000-8000-000000000001".parse().unwrap(),
        on_file: false,
    }
}

fn built() -> Value {
    let (request, own) = (request(), own());
    let (image, data_dir) = ("ceph:16.2.15", "/var/lib/rook/");
    let pod = NodePod { image, data_dir, declaration: &declaration(), own: &own };
    build(&NewInventoryJob { request: &request, pod }, "map")
}

#[test]
fn inventory_job_has_no_key_runs_once_and_tolerates_all_taints() {
    let job = built();
    let at = |pointer: &str| job.pointer(pointer).unwrap_or_else(|| panic!("{pointer}"));
    assert_eq!(at("/metadata/name"), &json!(inventory_job_name(&request())));
    assert_eq!(at("/metadata/ownerReferences"), &agent_pod::owner(&inventory_job_name(&request()), "map"));
    assert_eq!(at("/metadata/labels/osd-migrate.io~1part"), "inventory");
    assert_eq!((at("/spec/backoffLimit"), at("/spec/podReplacementPolicy")), (&json!(0), &json!("Failed")));
    let pod = at("/spec/template/spec");
    assert_eq!((&pod["nodeName"], &pod["restartPolicy"]), (&json!("h1.example"), &json!("Never")));
    assert_eq!(pod["tolerations"], json!([{"operator": "Exists"}]));
    assert_eq!(pod["containers"][0]["command"], json!(["/opt/osd-migrate/osd-migrate", "node", "inventory"]));
    assert_eq!(pod["containers"][0]["securityContext"]["privileged"], true);
    assert_adorned(&job);
    assert_eq!(pod["imagePullSecrets"], json!([{"name": "pull"}]));
    let text = job.to_string();
    assert!(
        !text.contains("bootstrap") && !text.contains("secretName") && !text.contains("hostPID"),
        "{text}"
    );
    assert!(text.contains("/var/lib/rook/osd-migrate") && text.contains("/run/udev"));
}

#[test]
fn inventory_request_is_read_back_unchanged_from_its_job() {
    let job = built();
    let vars = job.pointer("/spec/template/spec/containers/0/env").and_then(Value::as_array).unwrap();
    let value = |name: &str| vars.iter().find(|v| v["name"] == name).unwrap()["value"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<InventoryRequest>(value("OSD_MIGRATE_INVENTORY")).unwrap(), request());
    assert_eq!(value("OSD_MIGRATE_REPORT"), inventory_job_name(&request()));
}

fn found(data: &Value) -> Result<InventoryJobSeen, String> {
    let mut map = report(&request());
    map["metadata"]["uid"] = json!("map");
    map["metadata"]["creationTimestamp"] = json!("2026-11-21T10:00:00Z");
    map["data"] = data.clone();
    map_seen(serde_json::from_value(map).unwrap())
}

fn job(owner: &str, status: &Value) -> JobFacts {
    let mut job = built();
    job["metadata"]["uid"] = json!("j");
    job["metadata"]["ownerReferences"][0]["uid"] = json!(owner);
    job["status"] = status.clone();
    job_state::job(&serde_json::from_value(job).unwrap())
}

fn pod(phase: &str) -> PodFacts {
    let labels = json!({"batch.kubernetes.io/job-name": inventory_job_name(&request()), "batch.kubernetes.io/controller-uid": "j"});
    let status = json!({"phase": phase, "reason": "Evicted", "message": "low on memory"});
    job_state::pod(
        &serde_json::from_value(json!({"metadata": {"labels": labels}, "status": status})).unwrap(),
    )
    .unwrap()
}

fn only(
    map: Result<InventoryJobSeen, String>,
    jobs: &[JobFacts],
    pods: &[PodFacts],
) -> (Inventory, Vec<String>) {
    let (mut inventories, notes) = assemble(vec![map], jobs, pods);
    (inventories.remove(&inventory_job_name(&request())).unwrap(), notes)
}

fn reported(number: u32) -> Value {
    let at = "2026-11-21T10:00:20Z".parse().unwrap();
    let (run, node) = (request().run, request().node);
    let report = InventoryReport {
        run,
        number,
        node,
        began_at: at,
        ended_at: at,
        steps: Vec::new(),
        inventory: None,
        problem: None,
    };
    json!({"heartbeat": "2026-11-21T10:00:15Z", "inventory": serde_json::to_string(&report).unwrap()})
}

#[test]
fn inventory_is_observed_with_its_state_trouble_and_report() {
    let (inventory, notes) = only(found(&json!({})), &[], &[]);
    assert_eq!(
        (inventory.state, inventory.report, notes),
        (None, None, Vec::new()),
        "a runner died before it created the Job"
    );
    assert_eq!((inventory.run, inventory.number, inventory.node), (request().run, 2, request().node));
    assert_eq!(
        (inventory.uid.as_str(), inventory.created_at),
        ("map", "2026-11-21T10:00:00Z".parse().unwrap())
    );

    let none = json!({});
    let (inventory, _) = only(found(&none), &[job("map", &none)], &[]);
    assert_eq!(inventory.state, Some(JobState::Waiting));
    let (inventory, _) = only(found(&none), &[job("map", &none)], &[pod("Failed")]);
    assert_eq!(
        (inventory.state, inventory.trouble.as_deref()),
        (Some(JobState::Running), Some("Evicted: low on memory"))
    );

    let failed = json!({"conditions": [{"type": "Failed", "status": "True"}]});
    let (inventory, notes) = only(found(&reported(2)), &[job("map", &failed)], &[pod("Failed")]);
    assert_eq!((inventory.state, notes), (Some(JobState::Ended), Vec::new()));
    assert_eq!(inventory.report.unwrap().number, 2);
    assert_eq!(inventory.heartbeat_at, Some("2026-11-21T10:00:15Z".parse().unwrap()));
}

#[test]
fn inventory_job_of_an_earlier_report_map_is_ignored() {
    let (inventory, _) = only(found(&json!({})), &[job("gone", &json!({}))], &[]);
    assert_eq!(inventory.state, None);
    let (inventory, _) = only(found(&json!({})), &[], &[pod("Running")]);
    assert_eq!(inventory.state, Some(JobState::Running), "its pod lives on");
}

#[test]
fn invalid_inventory_report_is_noted_and_not_used() {
    for data in [reported(3), json!({"inventory": "{}"})] {
        let (inventory, notes) = only(found(&data), &[], &[]);
        assert_eq!((inventory.report, notes.len()), (None, 1), "{notes:?}");
    }
    let mut nameless = report(&request());
    nameless["metadata"].as_object_mut().unwrap().remove("annotations");
    assert!(map_seen(serde_json::from_value(nameless).unwrap()).is_err());
}
