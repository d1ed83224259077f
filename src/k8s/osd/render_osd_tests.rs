use super::*;
use crate::domain::inspection::RecordId;
use crate::domain::osd::{CrushItem, Layout, Mode, NodeName, ObjectStore, Weight};
use crate::domain::storage::{Resources, Storage};
use crate::k8s::osd::daemon;

pub(crate) fn deploy() -> Deploy {
    let location = [("root", "default"), ("host", "h1-example"), ("zone", "z1")];
    Deploy {
        osd: OsdId(3),
        record: RecordId("r1".to_owned()),
        fsid: "2b0c3b5e-8a52-4a7e-9d2f-3a1f5d0e7b22".parse().unwrap(),
        node: NodeName("h1.example".to_owned()),
        block_path: "/dev/disk/by-id/wwn-0x1".to_owned(),
        store: "bluestore".to_owned(),
        crush: CrushItem {
            location: location.map(|(k, v)| (k.to_owned(), v.to_owned())).into(),
            weight: Weight::ONE,
            device_class: Some("hdd".to_owned()),
        },
        layout: Layout { store: ObjectStore::bluestore(), mode: Mode::Raw, encrypted: false },
        db_path: None,
        wal_path: None,
        initial_weight: None,
        device_type: Some("ssd".to_owned()),
        on_file: false,
        fresh: None,
        pvcs: None,
    }
}

pub(crate) fn declaration() -> Declaration {
    Declaration {
        name: "my-cluster".to_owned(),
        uid: "c-uid".to_owned(),
        api_version: "ceph.rook.io/v1".to_owned(),
        store: ObjectStore::bluestore(),
        confirmed: true,
        data_dir: "/var/lib/rook".to_owned(),
        image: "ceph:16.2.15".to_owned(),
        external: false,
        removes_out_osds: false,
        resets_weights: false,
        host_network: false,
        binds: None,
        prepare_resources: Resources::default(),
        storage: Storage::default(),
        pg_healthy_regex: None,
        kms: None,
        rotates_keys: false,
    }
}

/// Returns a Deployment as an older Rook left it, with additions of its owner.
fn old() -> Value {
    json!({
        "metadata": {
            "name": "rook-ceph-osd-3", "uid": "d", "resourceVersion": "4",
            "labels": {"app": "rook-ceph-osd", "ceph-osd-id": "3", "team": "storage", "topology-location-rack": "gone",
                "rook.io/operator-namespace": "rook-system", "rook-version": "v1.2.7"},
            "annotations": {STOPPED: "r1", "banzaicloud.com/last-applied": "x", "note": "back-up me"},
            "ownerReferences": [{"kind": "CephCluster", "uid": "c-uid"}],
        },
        "spec": {"replicas": 0, "template": {
            "metadata": {"annotations": {"k8s.v1.cni.cncf.io/networks": "public"}},
            "spec": {
                "nodeSelector": {"kubernetes.io/hostname": "h1.example", "tier": "storage"},
                "tolerations": [{"operator": "Exists"}], "priorityClassName": "system-node-critical",
                "serviceAccountName": "rook-ceph-osd", "hostNetwork": true,
                "containers": [{"name": "osd", "image": "ceph:old", "resources": {"limits": {"memory": "4Gi"}},
                    "args": ["--osd-uuid", "1f0c3b5e-8a52-4a7e-9d2f-3a1f5d0e7b11"]}],
            },
        }},
    })
}

pub(in crate::k8s::osd) fn frame(declaration: &Declaration) -> Frame<'_> {
    Frame {
        namespace: "rook-ceph",
        operator_namespace: "rook-system",
        cluster: "6a1b2c3d-0000-4000-8000-000000000001".parse().unwrap(),
        declaration,
        hostname: "h1.example",
    }
}

fn rendered(old: &Value) -> Value {
    render(&deploy(), old, &frame(&declaration()))
}

#[test]
fn rendered_deployment_has_what_rook_reads_back() {
    let new = rendered(&old());
    let parsed = daemon::parse(&new).unwrap();
    assert_eq!((parsed.osd, parsed.daemon.fsid), (OsdId(3), Some(deploy().fsid)));
    assert_eq!(parsed.hostname.as_deref(), Some("h1.example"));
    assert!(parsed.daemon.activates && parsed.daemon.on_pvcs.is_none() && parsed.daemon.stopped_by.is_none());
    for (key, value) in [
        ("ROOK_NODE_NAME", "h1.example"),
        ("ROOK_OSD_ID", "3"),
        ("ROOK_BLOCK_PATH", "/dev/disk/by-id/wwn-0x1"),
        ("ROOK_CV_MODE", "raw"),
        ("ROOK_OSD_DEVICE_CLASS", "hdd"),
        ("ROOK_CLUSTER_ID", "c-uid"),
        ("ROOK_CRUSHMAP_HOSTNAME", "h1-example"),
    ] {
        assert_eq!(env(&new, key), Some(value), "{key}");
    }
    let args = new.pointer("/spec/template/spec/containers/0/args").unwrap();
    assert_eq!(args[9], "--crush-location=root=default host=h1-example zone=z1");
    let paths = new.pointer("/spec/template/spec/volumes").unwrap().to_string();
    assert!(paths.contains(
        "/var/lib/rook/rook-ceph/6a1b2c3d-0000-4000-8000-000000000001_2b0c3b5e-8a52-4a7e-9d2f-3a1f5d0e7b22"
    ));
}

#[test]
fn osd_binds_to_the_ip_families_of_the_cephcluster() {
    let bound = |binds: Option<(bool, bool)>| {
        let declared = Declaration { binds, ..declaration() };
        let new = render(&deploy(), &old(), &frame(&declared));
        let args =
            new.pointer("/spec/template/spec/containers/0/args").and_then(Value::as_array).unwrap().clone();
        let is_one = |arg: &Value| arg.as_str().is_some_and(|arg| arg.starts_with("--ms-bind-ipv"));
        args.into_iter().filter(is_one).map(|arg| arg.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(bound(None), Vec::<String>::new());
    assert_eq!(bound(Some((true, false))), ["--ms-bind-ipv4=true", "--ms-bind-ipv6=false"]);
    assert_eq!(bound(Some((false, true))), ["--ms-bind-ipv4=false", "--ms-bind-ipv6=true"]);
    assert_eq!(bound(Some((true, true))), ["--ms-bind-ipv4=true", "--ms-bind-ipv6=true"]);
}

#[test]
fn exported_addresses_of_an_osd_are_carried_over() {
    let addresses =
        ["--public-addr=203.0.113.7", "--public-bind-addr=$(ROOK_POD_IP)", "--cluster-addr=$(ROOK_POD_IP)"];
    let with = |addresses: &[&str]| {
        let mut old = old();
        let args = [&["--foreground", "--id", "3"][..], addresses, &["--public-network=x"][..]].concat();
        old["spec"]["template"]["spec"]["containers"][0]["args"] = json!(args);
        let args = rendered(&old).pointer("/spec/template/spec/containers/0/args").unwrap().clone();
        let is_one =
            |arg: &&Value| arg.as_str().is_some_and(|arg| arg.contains("-addr=") || arg.contains("=x"));
        args.as_array().unwrap().iter().filter(is_one).cloned().collect::<Vec<_>>()
    };
    assert_eq!(with(&addresses), addresses);
    assert_eq!(with(&[]), Vec::<Value>::new());
}

#[test]
fn config_override_of_the_node_is_mounted_as_before() {
    let mounted = |old: &Value| {
        let volumes =
            rendered(old).pointer("/spec/template/spec/volumes").and_then(Value::as_array).unwrap().clone();
        let config = volumes.into_iter().find(|volume| volume["name"] == "rook-config-override").unwrap();
        config.pointer("/projected/sources/0/configMap/name").and_then(Value::as_str).unwrap().to_owned()
    };
    assert_eq!(mounted(&old()), "rook-config-override");
    let mut of_node = old();
    let source = json!({"configMap": {"name": "rook-config-override-h1-example"}});
    of_node["spec"]["template"]["spec"]["volumes"] =
        json!([{"name": "rook-config-override", "projected": {"sources": [source]}}]);
    assert_eq!(mounted(&of_node), "rook-config-override-h1-example");
}

#[test]
fn deployment_labels_name_the_current_place_and_retain_others() {
    let new = rendered(&old());
    let labels = new.pointer("/metadata/labels").unwrap();
    for (key, value) in [
        ("osd-store", "bluestore"),
        ("encrypted", "false"),
        ("failure-domain", "h1.example"),
        ("topology-location-host", "h1-example"),
        ("topology-location-zone", "z1"),
        ("app.kubernetes.io/part-of", "my-cluster"),
        ("rook.io/operator-namespace", "rook-system"),
        ("team", "storage"),
        ("rook-version", "v1.2.7"),
    ] {
        assert_eq!(labels[key], value, "{key}");
    }
    assert!(labels.get("topology-location-rack").is_none());
    assert_eq!(new.pointer("/metadata/annotations"), Some(&json!({"note": "back-up me"})));
}

#[test]
fn scheduling_resources_and_owner_are_carried_over() {
    let new = rendered(&old());
    let pod = new.pointer("/spec/template/spec").unwrap();
    assert_eq!(pod["nodeSelector"], json!({"kubernetes.io/hostname": "h1.example", "tier": "storage"}));
    assert_eq!(pod["tolerations"], json!([{"operator": "Exists"}]));
    assert_eq!(pod["priorityClassName"], "system-node-critical");
    assert_eq!((&pod["hostNetwork"], &pod["dnsPolicy"]), (&json!(true), &json!("ClusterFirstWithHostNet")));
    assert_eq!(pod["containers"][0]["resources"]["limits"]["memory"], "4Gi");
    assert_eq!(pod["containers"][0]["image"], "ceph:16.2.15");
    assert!(pod.get("hostPID").is_none() && pod.get("hostIPC").is_none());
    assert_eq!(new.pointer("/metadata/ownerReferences/0/uid").unwrap(), "c-uid");
    assert!(new.pointer("/metadata/uid").is_none());
    let annotations = new.pointer("/spec/template/metadata/annotations").unwrap();
    assert_eq!(annotations["k8s.v1.cni.cncf.io/networks"], "public");
}

#[test]
fn osd_containers_drop_net_raw_and_daemon_uses_a_random_nonce() {
    let new = rendered(&old());
    let pod = new.pointer("/spec/template/spec").unwrap();
    let lists = ["initContainers", "containers"].map(|kind| pod[kind].as_array().unwrap());
    assert_eq!(lists.map(Vec::len), [3, 1]);
    for container in lists.into_iter().flatten() {
        assert_eq!(container["securityContext"]["capabilities"], json!({"drop": ["NET_RAW"]}));
    }
    let nonce = json!({"name": "CEPH_USE_RANDOM_NONCE", "value": "true"});
    assert!(pod["containers"][0]["env"].as_array().unwrap().contains(&nonce));
}

#[test]
fn deployment_without_an_owner_gets_the_cephcluster_as_owner() {
    let new = rendered(&json!({}));
    assert_eq!(new.pointer("/metadata/ownerReferences/0/name").unwrap(), "my-cluster");
    assert_eq!(
        new.pointer("/spec/template/spec/nodeSelector").unwrap(),
        &json!({"kubernetes.io/hostname": "h1.example"})
    );
    assert_eq!(new.pointer("/spec/template/spec/serviceAccountName").unwrap(), "rook-ceph-osd");
    let selector =
        json!({"matchLabels": {"app": "rook-ceph-osd", "ceph-osd-id": "3", "rook_cluster": "rook-ceph"}});
    assert_eq!(new.pointer("/spec/selector"), Some(&selector));
}

#[test]
fn deployment_rendering_is_idempotent() {
    let once = rendered(&old());
    assert_eq!(rendered(&once), once);
}

#[test]
fn directory_of_an_osd_recreated_on_a_disk_is_not_mounted() {
    let mut old = old();
    let pod = old.pointer_mut("/spec/template/spec").unwrap();
    pod["volumes"] = json!([{"name": "rook-data", "hostPath": {"path": "/var/lib/rook"}},
        {"name": "dir-srv", "hostPath": {"path": "/srv/storage"}}]);
    pod["containers"][0]["volumeMounts"] = json!([{"name": "dir-srv", "mountPath": "/srv/storage"}]);
    pod["containers"][0]["args"] = json!(["--foreground", "--osd-data", "/srv/storage/osd3"]);
    assert_eq!(crate::k8s::osd::daemon_data::data_dir(&old).as_deref(), Some("/srv/storage/osd3"));
    let new = rendered(&old);
    assert!(!new.to_string().contains("/srv/storage"), "{new:#}");
    let parsed = daemon::parse(&new).unwrap().daemon;
    assert!(parsed.activates && parsed.data_dir.is_none());
    assert_eq!(parsed.fsid, Some(deploy().fsid));
}

/// Checks the disk's type: Rook labels Deployment and pods with it (`getOSDLabels`) and reads it back.
#[test]
fn device_type_is_labelled_or_carried() {
    let labelled = |device_type: Option<&str>, old: &Value| {
        let deploy = Deploy { device_type: device_type.map(str::to_owned), ..deploy() };
        let rendered = render(&deploy, old, &frame(&declaration()));
        ["/metadata/labels", "/spec/template/metadata/labels"]
            .map(|path| rendered.pointer(path).unwrap().get("device-type").cloned())
    };
    assert_eq!(labelled(Some("nvme"), &old()), [Some(json!("nvme")), Some(json!("nvme"))]);
    assert_eq!(labelled(None, &old()), [None, None]);
    let mut found = old();
    found["metadata"]["labels"]["device-type"] = json!("hdd");
    assert_eq!(labelled(None, &found), [Some(json!("hdd")), None]);
}
