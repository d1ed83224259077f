//! The location of new OSDs in CRUSH.

use std::collections::BTreeMap;

use osd_migrate::domain::observation::Node;
use osd_migrate::domain::provision::location;
use osd_migrate::domain::storage::Storage;

fn node(hostname: &str, labels: &[(&str, &str)]) -> Node {
    let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Node { ready: true, cordoned: false, hostname: hostname.to_owned(), labels, taints: Vec::new() }
}

fn at(hostname: &str, labels: &[(&str, &str)], crush_root: &str) -> BTreeMap<String, String> {
    location(&node(hostname, labels), &Storage { crush_root: crush_root.to_owned(), ..Storage::default() })
}

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn crush_location_without_labels_is_the_host_below_the_root() {
    assert_eq!(at("h1", &[], "default"), map(&[("root", "default"), ("host", "h1")]));
    assert_eq!(at("h1", &[], ""), map(&[("root", "default"), ("host", "h1")]));
    assert_eq!(at("h1", &[], "ssd-root"), map(&[("root", "ssd-root"), ("host", "h1")]));
}

#[test]
fn crush_location_has_dashes_instead_of_dots() {
    assert_eq!(
        at("h1.example.org", &[("topology.kubernetes.io/zone", "a.1")], "default"),
        map(&[("root", "default"), ("host", "h1-example-org"), ("zone", "a-1")])
    );
}

#[test]
fn crush_levels_are_read_from_each_topology_label_of_rook() {
    let levels = ["datacenter", "room", "pod", "pdu", "row", "rack", "chassis"];
    let mut labels: Vec<(String, String)> =
        levels.iter().map(|level| (format!("topology.rook.io/{level}"), format!("the-{level}"))).collect();
    labels.push(("topology.kubernetes.io/zone".to_owned(), "the-zone".to_owned()));
    labels.push(("topology.kubernetes.io/region".to_owned(), "the-region".to_owned()));
    // Other labels have no effect.
    labels.push(("topology.rook.io/zone".to_owned(), "z".to_owned()));
    labels.push(("failure-domain.beta.kubernetes.io/zone".to_owned(), "z".to_owned()));
    labels.push(("topology.rook.io/host".to_owned(), "z".to_owned()));
    let borrowed: Vec<(&str, &str)> =
        labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let found = at("h1", &borrowed, "default");
    let mut expected =
        map(&[("root", "default"), ("host", "h1"), ("zone", "the-zone"), ("region", "the-region")]);
    expected.extend(levels.iter().map(|level| ((*level).to_owned(), format!("the-{level}"))));
    assert_eq!(found, expected);
}

#[test]
fn crush_level_is_the_lowest_of_one_name_and_never_empty() {
    let labels = [
        ("topology.kubernetes.io/region", "a"),
        ("topology.kubernetes.io/zone", "a"),
        ("topology.rook.io/rack", "a"),
        ("topology.rook.io/row", ""),
        ("topology.rook.io/room", "h1"),
        // One name in CRUSH, though not on the node.
        ("topology.rook.io/pod", "x.1"),
        ("topology.rook.io/datacenter", "x-1"),
    ];
    assert_eq!(
        at("h1", &labels, "default"),
        map(&[("root", "default"), ("host", "h1"), ("rack", "a"), ("pod", "x-1")])
    );
}
