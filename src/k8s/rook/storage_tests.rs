//! Settings of a CephCluster for new OSDs, as people write them.

use serde_json::{Value, json};

use crate::domain::device_set::DeviceSet;
use crate::domain::osd::Weight;
use crate::domain::storage::{
    DeviceConfig, DeviceSelection, NamedDevice, NodeTerm, Placement, Requirement, Storage, StorageNode,
    Toleration,
};
use crate::k8s::rook::storage::declared;

fn storage(storage: &Value) -> Storage {
    declared(&json!({ "storage": storage }))
}

fn placement(placement: &Value, storage: &Value) -> Placement {
    declared(&json!({"placement": placement, "storage": storage})).placement
}

#[test]
fn device_sets_are_read_with_their_templates() {
    let found = storage(&json!({"storageClassDeviceSets": [
        {"name": "set1", "count": 3, "encrypted": true, "portable": false, "volumeClaimTemplates": [
            {"metadata": {"name": "data", "annotations": {"crushDeviceClass": "ssd"}}, "spec": {}},
            {"metadata": {"name": "metadata", "annotations": {"crushDeviceClass": "nvme"}}, "spec": {}}]},
        {"name": "set2", "count": "two", "portable": true, "volumeClaimTemplates": [{"spec": {}}]},
    ]}));
    let templates = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(
        found.sets,
        [
            DeviceSet {
                name: "set1".to_owned(),
                encrypted: true,
                templates: templates(&["data", "metadata"]),
                count: Some(3),
                portable: false,
                device_class: Some("ssd".to_owned()),
            },
            DeviceSet {
                name: "set2".to_owned(),
                templates: templates(&[""]),
                portable: true,
                ..DeviceSet::default()
            },
        ]
    );
}

#[test]
fn storage_spec_is_read_in_full() {
    let found = storage(&json!({
        "useAllNodes": false, "useAllDevices": false, "deviceFilter": "^sd.", "devicePathFilter": "by-id",
        "config": {"metadataDevice": "nvme0n1", "databaseSizeMB": "1024", "walSizeMB": "576", "osdsPerDevice": "1",
            "deviceClass": "hdd", "encryptedDevice": "true", "initialWeight": "1.5", "crushRoot": "other"},
        "devices": [{"name": "sda"}],
        "nodes": [
            {"name": "h1", "useAllDevices": true, "config": {"databaseSizeMB": "2048"},
                "devices": [{"name": "sdb"}, {"name": "sdc", "fullpath": "/dev/disk/by-id/x", "config": {"deviceClass": "ssd"}}]},
            {"name": "h2", "deviceFilter": "^nvme"},
            {"name": ""}, {},
        ],
    }));
    let named = |name: &str, config| NamedDevice { name: name.to_owned(), config };
    let text = |text: &str| Some(text.to_owned());
    let none = DeviceConfig::default;
    assert_eq!(
        found,
        Storage {
            all_nodes: false,
            nodes: vec![
                StorageNode {
                    name: "h1".to_owned(),
                    selection: DeviceSelection {
                        all: Some(true),
                        devices: vec![
                            named("sdb", none()),
                            named("/dev/disk/by-id/x", DeviceConfig { device_class: text("ssd"), ..none() }),
                        ],
                        ..DeviceSelection::default()
                    },
                    config: DeviceConfig { database_size_mb: Some(2048), ..none() },
                },
                StorageNode {
                    name: "h2".to_owned(),
                    selection: DeviceSelection { filter: text("^nvme"), ..DeviceSelection::default() },
                    config: none(),
                },
            ],
            selection: DeviceSelection {
                all: Some(false),
                filter: text("^sd."),
                path_filter: text("by-id"),
                devices: vec![named("sda", none())],
            },
            config: DeviceConfig {
                metadata_device: text("nvme0n1"),
                database_size_mb: Some(1024),
                wal_size_mb: Some(576),
                osds_per_device: Some(1),
                device_class: text("hdd"),
                encrypted: Some(true),
                initial_weight: Some(Weight::from_decimal(1.5)),
                unreadable: Vec::new(),
            },
            crush_root: "other".to_owned(),
            sets: Vec::new(),
            directories: [].into(),
            placement: Placement::default(),
        }
    );
}

#[test]
fn directories_of_the_cluster_and_of_its_nodes_are_read() {
    let found = storage(&json!({
        "directories": [{"path": "/var/lib/rook/"}, {}],
        "nodes": [{"name": "h1", "directories": [{"path": "/srv/osds"}]}, {"name": "h2"}],
    }));
    assert_eq!(found.directories, ["/srv/osds".to_owned(), "/var/lib/rook".to_owned()].into());
}

#[test]
fn storage_numbers_and_booleans_are_read_quoted_or_bare() {
    let bare =
        storage(&json!({"useAllNodes": true, "useAllDevices": true, "config": {"databaseSizeMB": 1024,
        "walSizeMB": 576, "osdsPerDevice": 2, "encryptedDevice": true, "initialWeight": 2}}));
    let quoted =
        storage(&json!({"useAllNodes": "true", "useAllDevices": "true", "config": {"databaseSizeMB": "1024",
        "walSizeMB": "576", "osdsPerDevice": "2", "encryptedDevice": "true", "initialWeight": "2"}}));
    assert_eq!(bare, quoted);
    assert!(bare.all_nodes && bare.config.encrypted == Some(true));
    assert_eq!(bare.config.initial_weight, Some(Weight::from_decimal(2.0)));
}

#[test]
fn empty_storage_spec_declares_nothing() {
    let nothing = Storage { crush_root: "default".to_owned(), ..Storage::default() };
    assert_eq!(declared(&json!({})), nothing);
    assert_eq!(
        storage(&json!({"nodes": null, "devices": null, "config": null, "useAllDevices": null})),
        nothing
    );
    assert_eq!(storage(&json!({"config": {"crushRoot": ""}})), nothing);
}

#[test]
fn empty_config_value_counts_as_set() {
    let found =
        storage(&json!({"nodes": [{"name": "h1", "config": {"metadataDevice": "", "databaseSizeMB": "",
        "encryptedDevice": "", "deviceClass": "", "initialWeight": ""}}]}));
    let expected = DeviceConfig {
        metadata_device: Some(String::new()),
        database_size_mb: Some(0),
        encrypted: Some(false),
        device_class: Some(String::new()),
        ..DeviceConfig::default()
    };
    assert_eq!(found.nodes.first().map(|node| &node.config), Some(&expected));
}

#[test]
fn unreadable_storage_value_is_named_with_its_path() {
    let found = storage(&json!({
        "useAllNodes": "maybe", "useAllDevices": "yes",
        "config": {"databaseSizeMB": "1 GB", "encryptedDevice": "yes"},
        "nodes": [{"name": "h1", "useAllDevices": 1, "config": {"osdsPerDevice": "-1"},
            "devices": [{"name": "sdb", "config": {"initialWeight": "heavy", "walSizeMB": "1.5"}}]}],
    }));
    assert!(!found.all_nodes && found.selection.all.is_none());
    assert_eq!(
        found.config.unreadable,
        [
            "spec.storage.config.databaseSizeMB is `1 GB`, not a whole number",
            "spec.storage.config.encryptedDevice is `yes`, neither true nor false",
            "spec.storage.useAllNodes is `maybe`, neither true nor false",
            "spec.storage.useAllDevices is `yes`, neither true nor false",
        ]
    );
    let node = found.nodes.first().unwrap();
    assert_eq!(
        node.config.unreadable,
        [
            "spec.storage.nodes[h1].config.osdsPerDevice is `-1`, not a whole number",
            "spec.storage.nodes[h1].useAllDevices is `1`, neither true nor false",
        ]
    );
    assert_eq!(
        node.selection.devices.first().unwrap().config.unreadable,
        [
            "spec.storage.nodes[h1].devices[sdb].config.walSizeMB is `1.5`, not a whole number",
            "spec.storage.nodes[h1].devices[sdb].config.initialWeight is `heavy`, not a weight in TiB",
        ]
    );
    for weight in ["-1", "NaN", "inf"] {
        let found = storage(&json!({"config": {"initialWeight": weight}}));
        assert_eq!((found.config.initial_weight, found.config.unreadable.len()), (None, 1), "{weight}");
    }
}

fn affinity(keys: &[&str]) -> Value {
    let terms: Vec<Value> =
        keys.iter().map(|key| json!({"matchExpressions": [{"key": key, "operator": "Exists"}]})).collect();
    json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}})
}

fn term(keys: &[&str]) -> NodeTerm {
    let exists = |key: &&str| Requirement {
        key: (*key).to_owned(),
        operator: "Exists".to_owned(),
        values: Vec::new(),
    };
    NodeTerm { labels: keys.iter().map(exists).collect(), fields: Vec::new() }
}

#[test]
fn node_affinities_are_merged_as_in_rooks_pods() {
    let preferred = json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}});
    for (all, osd, alone, expected) in [
        (json!({}), json!({}), false, vec![]),
        (affinity(&["a"]), json!({}), false, vec![term(&["a"])]),
        (json!({}), affinity(&["o", "p"]), false, vec![term(&["o"]), term(&["p"])]),
        // With both, the first term of each must match.
        (affinity(&["a", "b"]), affinity(&["o", "p"]), false, vec![term(&["a", "o"])]),
        (affinity(&["a", "b"]), affinity(&["o", "p"]), true, vec![term(&["o"]), term(&["p"])]),
        // Rook chooses nodes by the affinity of `all`, if `osd` has none.
        (affinity(&["a"]), json!({}), true, vec![term(&["a"])]),
        (affinity(&["a"]), preferred.clone(), true, vec![]),
        (affinity(&["a"]), preferred, false, vec![term(&["a"])]),
        // An empty list matches no node.
        (json!({}), affinity(&[]), false, vec![NodeTerm::default()]),
        (affinity(&[]), json!({}), false, vec![NodeTerm::default()]),
        (affinity(&["a"]), affinity(&[]), false, vec![term(&["a"])]),
        (affinity(&[]), affinity(&["o"]), false, vec![term(&["o"])]),
    ] {
        let found = placement(&json!({"all": all, "osd": osd}), &json!({"onlyApplyOSDPlacement": alone}));
        assert_eq!(found.terms, expected, "{all} {osd} {alone}");
    }
    assert_eq!(declared(&json!({"placement": {"mon": affinity(&["m"])}})).placement, Placement::default());
}

#[test]
fn node_affinity_requirements_are_read_with_their_values() {
    let required = json!({"nodeSelectorTerms": [{
        "matchExpressions": [{"key": "role", "operator": "In", "values": ["a", "b"]}],
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["h1"]}],
    }]});
    let osd = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
    let requirement = |key: &str, values: &[&str]| Requirement {
        key: key.to_owned(),
        operator: "In".to_owned(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
    };
    let expected = NodeTerm {
        labels: vec![requirement("role", &["a", "b"])],
        fields: vec![requirement("metadata.name", &["h1"])],
    };
    assert_eq!(placement(&json!({"osd": osd}), &json!({})).terms, [expected]);
}

#[test]
fn tolerations_of_osd_come_before_those_of_all() {
    let spec = json!({
        "all": {"tolerations": [{"operator": "Exists"}]},
        "osd": {"tolerations": [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute", "tolerationSeconds": 30}]},
    });
    let of_osd = Toleration {
        key: "k".to_owned(),
        operator: "Equal".to_owned(),
        value: "v".to_owned(),
        effect: "NoExecute".to_owned(),
        seconds: Some(30),
    };
    let of_all = Toleration {
        key: String::new(),
        operator: "Exists".to_owned(),
        value: String::new(),
        effect: String::new(),
        seconds: None,
    };
    assert_eq!(placement(&spec, &json!({})).tolerations, [of_osd.clone(), of_all]);
    assert_eq!(placement(&spec, &json!({"onlyApplyOSDPlacement": true})).tolerations, [of_osd]);
}
