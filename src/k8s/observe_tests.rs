use serde_json::json;

use super::*;
use crate::domain::osd::ObjectStore;

fn deployment(name: &str, id: &str, hostname: &str) -> Result<daemon::Parsed, String> {
    let object = json!({"metadata": {"name": name, "labels": {"ceph-osd-id": id}},
        "spec": {"template": {"spec": {"nodeSelector": {"kubernetes.io/hostname": hostname}}}}});
    parse_daemon(serde_json::from_value(object).unwrap())
}

fn api_pod(name: &str, id: &str, phase: &str) -> Option<(Option<OsdId>, Pod)> {
    let pod = json!({"metadata": {"name": name, "labels": {"ceph-osd-id": id}},
        "spec": {"nodeName": "n1", "containers": []}, "status": {"phase": phase}});
    osd_pod(&serde_json::from_value(pod).unwrap())
}

fn node(name: &str, hostname: &str, ready: &str) -> (NodeName, Node) {
    let node = json!({"metadata": {"name": name, "labels": {HOSTNAME: hostname}},
        "status": {"conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": ready}]}});
    named_node(&serde_json::from_value(node).unwrap())
}

#[test]
fn deployments_get_their_pods_and_the_name_of_their_node() {
    let nodes = [node("n1", "host-1", "True"), node("n2", "host-2", "Unknown")].into();
    let parsed =
        vec![deployment("rook-ceph-osd-1", "1", "host-1"), deployment("rook-ceph-osd-2", "2", "no-node")];
    let pods = [api_pod("b", "1", "Running"), api_pod("a", "1", "Pending"), api_pod("c", "1", "Succeeded")];
    let (daemons, ambiguities) = daemons(parsed, pods.into_iter().flatten().collect(), &nodes);
    assert_eq!(ambiguities, Vec::<String>::new());
    let first = &daemons[&OsdId(1)];
    assert_eq!(first.node, Some(NodeName("n1".to_owned())));
    assert_eq!(first.pods.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(daemons[&OsdId(2)].node, Some(NodeName("no-node".to_owned())), "the node is gone: still said");
    assert!(nodes[&NodeName("n1".to_owned())].ready && !nodes[&NodeName("n2".to_owned())].ready);
}

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
fn ambiguous_deployments_and_pods_are_reported() {
    let parsed = vec![
        deployment("rook-ceph-osd-1", "1", "h"),
        deployment("rook-ceph-osd-id-1", "1", "h"),
        deployment("rook-ceph-osd-x", "x", "h"),
    ];
    let pods = [api_pod("lost", "9", "Running")].into_iter().flatten().collect();
    let (daemons, ambiguities) = daemons(parsed, pods, &BTreeMap::new());
    assert_eq!(daemons.len(), 1);
    assert_eq!(ambiguities.len(), 3, "{ambiguities:?}");
    assert!(
        ambiguities.contains(&"osd.1 has two Deployments: rook-ceph-osd-1 and rook-ceph-osd-id-1".to_owned())
    );
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

#[test]
fn prepare_job_counts_only_while_it_is_running() {
    let job = |status: Value| {
        let job = json!({"metadata": {"name": "rook-ceph-osd-prepare-h1"}, "status": status});
        running_prepare(&serde_json::from_value(job).unwrap())
    };
    assert_eq!(job(json!({"active": 1})).as_deref(), Some("rook-ceph-osd-prepare-h1"));
    assert_eq!(job(json!({"conditions": [{"type": "Complete", "status": "True"}]})), None);
}

#[test]
fn down_osd_is_not_a_drain_unless_rook_sets_noout() {
    let seen = |data: Value| draining(serde_json::from_value(json!({ "data": data })).unwrap());
    assert_eq!(seen(json!({"draining-failure-domain": "h1", "set-no-out": "true"})).as_deref(), Some("h1"));
    assert_eq!(seen(json!({"draining-failure-domain": "h1", "set-no-out": ""})), None);
    assert_eq!(seen(json!({"draining-failure-domain": "", "set-no-out": ""})), None);
    // Rook 1.6 has only this key.
    assert_eq!(seen(json!({"draining-failure-domain": "h1"})).as_deref(), Some("h1"));
}

#[test]
fn osd_migrated_by_rook_is_read_in_each_of_rooks_formats() {
    let of = |data: Value| migrated_by_rook(serde_json::from_value(json!({"data": data})).unwrap());
    assert_eq!(of(json!({"osdID": "5"})), Some(OsdId(5)));
    let config = json!({"id": 5, "path": "/dev/sdb", "node": "h1"}).to_string();
    assert_eq!(of(json!({"config": config})), Some(OsdId(5)));
    for none in [
        json!({}),
        json!({"osdID": ""}),
        json!({"osdID": "-1"}),
        json!({"config": "null"}),
        json!({"config": "{}"}),
    ] {
        assert_eq!(of(none.clone()), None, "{none}");
    }
}
