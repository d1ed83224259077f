use serde_json::{Value, json};

use super::*;
use crate::domain::inspection::RecordId;
use crate::domain::observation::KeyOwner;
use crate::domain::osd::ObjectStore;
use crate::k8s::names::{OSD, PART, RECORD};
use crate::k8s::nodes::owned::{our_job, owned_map};
use crate::k8s::wire::{list, on, play};

#[test]
fn cordoned_node_is_observed_as_cordoned() {
    let read = |spec: Value| {
        let node = json!({"metadata": {"name": "n1"}, "spec": spec});
        named_node(&serde_json::from_value(node).unwrap()).1.cordoned
    };
    assert!(read(json!({"unschedulable": true})));
    assert!(!read(json!({})) && !read(json!({"unschedulable": false})));
}

#[test]
fn node_is_ready_only_if_its_condition_says_true() {
    let read = |ready: &str| {
        let node = json!({"metadata": {"name": "n1"}, "status": {"conditions": [
            {"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": ready}]}});
        named_node(&serde_json::from_value(node).unwrap()).1.ready
    };
    assert!(read("True") && !read("Unknown") && !read("False"));
}

#[test]
fn config_maps_are_backups_keys_reports_or_leftovers() {
    let map = |name: &str, part: &str, data: Value| {
        let map = json!({"metadata": {"name": name, "uid": "u", "labels": {PART: part, OSD: "3", RECORD: "short"},
            "annotations": {RECORD: "the-record"}}, "data": data});
        owned_map(serde_json::from_value(map).unwrap())
    };
    let maps = vec![
        map("osd-migrate-osd-3", "backup", json!({})),
        map("job-1", "report", json!({"heartbeat": "2026-11-21T10:00:00Z", "report": "not json"})),
        map("job-1-key", "key", json!({})),
        map("else", "", json!({})),
    ];
    let empty = Lists {
        daemons: Vec::new(),
        osd_pods: Vec::new(),
        nodes: BTreeMap::new(),
        jobs: Vec::new(),
        job_pods: Vec::new(),
        maps,
    };
    let (kube, notes) = assemble(empty, crate::k8s::osd::render_osd::tests::declaration());
    let record = RecordId("the-record".to_owned());
    assert_eq!(kube.backups, [(OsdId(3), record.clone())].into());
    let names: Vec<_> = kube.leftovers[&record].iter().map(String::as_str).collect();
    assert_eq!(names, ["ConfigMap/else", "ConfigMap/job-1", "ConfigMap/job-1-key"]);
    assert_eq!(kube.keys, [("job-1".to_owned(), KeyOwner { uid: "u".to_owned(), record })].into());
    assert!(kube.reports.is_empty());
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert_eq!(kube.declaration.store, ObjectStore::bluestore());
}

#[test]
fn inventory_jobs_are_distinguished_from_jobs_of_records() {
    let labels = json!({PART: "inventory", "osd-migrate.io/number": "1"});
    let annotations = json!({"osd-migrate.io/node": "h1", "osd-migrate.io/run": "r"});
    let meta =
        json!({"name": "osd-migrate-disks-x-r-1", "uid": "u", "labels": labels, "annotations": annotations});
    let empty = Lists {
        daemons: Vec::new(),
        osd_pods: Vec::new(),
        nodes: BTreeMap::new(),
        jobs: vec![our_job(&serde_json::from_value(json!({"metadata": meta})).unwrap())],
        job_pods: Vec::new(),
        maps: vec![owned_map(serde_json::from_value(json!({"metadata": meta})).unwrap())],
    };
    let (kube, notes) = assemble(empty, crate::k8s::osd::render_osd::tests::declaration());
    assert_eq!((kube.node_jobs.len(), kube.leftovers.len(), notes), (0, 0, Vec::<String>::new()));
    assert_eq!(kube.inventories["osd-migrate-disks-x-r-1"].node, NodeName("h1".to_owned()));
}

#[test]
fn node_is_observed_with_its_labels_and_taints() {
    let node = json!({"metadata": {"name": "n1", "labels": {"topology.rook.io/rack": "r1"}},
        "spec": {"taints": [{"key": "storage", "value": "only", "effect": "NoSchedule"}, {"key": "gpu", "effect": "NoExecute"}]}});
    let (_, node) = named_node(&serde_json::from_value(node).unwrap());
    assert_eq!((node.hostname.as_str(), node.labels["topology.rook.io/rack"].as_str()), ("n1", "r1"));
    let taints: Vec<_> = node.taints.iter().map(|t| format!("{}={}:{}", t.key, t.value, t.effect)).collect();
    assert_eq!(taints, ["storage=only:NoSchedule", "gpu=:NoExecute"]);
}

#[tokio::test]
async fn fsids_are_read_of_the_deployments_of_few_osds_or_of_all() {
    let list_by = |selector: &str| {
        let request = "GET /apis/apps/v1/namespaces/rook-ceph/deployments?&labelSelector=app%3Drook-ceph-osd";
        on(&format!("{request}{selector}&limit=100"), 200, list(&[]))
    };
    let named = list_by("%2Cceph-osd-id+in+%283%2C12%29");
    for (osds, request) in [([3, 12].into(), named), ((0..101).collect::<BTreeSet<_>>(), list_by(""))] {
        let osds = osds.into_iter().map(OsdId).collect();
        let found = play(vec![request], async |k8s| k8s.deployed_fsids(&osds).await).await.unwrap();
        assert_eq!(found, BTreeMap::new());
    }
}
