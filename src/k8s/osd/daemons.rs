//! Deployments of OSDs with their pods and nodes, combined from lists. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod as ApiPod;

use crate::domain::observation::{Ambiguity, Daemon, Node, Pod, on_one_pvc};
use crate::domain::osd::{NodeName, OsdId};
use crate::k8s::client::page::Raw;
use crate::k8s::names::{OSD_ID, osd_of_label};
use crate::k8s::osd::daemon;
use crate::k8s::pods;

/// A pod of an OSD that is not terminal.
#[derive(Clone)]
pub(crate) struct OsdPod {
    /// OSD of the pod, by its label.
    pub(crate) osd: Option<OsdId>,
    pod: Pod,
    is_deleted: bool,
}

/// Returns Deployments by OSD, each with its pods, and ambiguities.
///
/// If an OSD has two Deployments, an ambiguity names both: no act on that OSD will find exactly one. Of the
/// two, the one that is stopped for a record stays, otherwise the first.
pub(crate) fn daemons(
    parsed: Vec<Result<daemon::Parsed, String>>,
    pods: Vec<OsdPod>,
    nodes: &BTreeMap<NodeName, Node>,
) -> (BTreeMap<OsdId, Daemon>, Vec<Ambiguity>) {
    let (mut daemons, mut ambiguities) = (BTreeMap::<OsdId, Daemon>::new(), Vec::new());
    let mut selectors = BTreeMap::new();
    let by_hostname: BTreeMap<&str, &NodeName> =
        nodes.iter().map(|(name, node)| (node.hostname.as_str(), name)).collect();
    for one in parsed {
        let daemon::Parsed { osd, mut daemon, hostname, selector, .. } = match one {
            Ok(parsed) => parsed,
            Err(ambiguity) => {
                ambiguities.push(Ambiguity::of([], ambiguity));
                continue;
            }
        };
        if let Some(hostname) = hostname {
            let name = by_hostname.get(hostname.as_str()).map_or(NodeName(hostname), |name| (*name).clone());
            daemon.node = Some(name);
        }
        if let Some(other) = daemons.get(&osd) {
            let what = format!("{osd} has two Deployments: {} and {}", other.name, daemon.name);
            ambiguities.push(Ambiguity::of_two_deployments(osd, is_copy(&daemon, other), what));
            if other.stopped_by.is_some() || daemon.stopped_by.is_none() {
                continue;
            }
        }
        selectors.insert(osd, selector);
        daemons.insert(osd, daemon);
    }
    ambiguities.extend(on_one_pvc(&daemons));
    // If a pod moves to another node, the old pod may stay for minutes.
    let (mut moved_to, mut left) = (BTreeMap::new(), BTreeMap::new());
    for OsdPod { osd, pod, is_deleted } in pods {
        match osd.and_then(|osd| Some((osd, daemons.get_mut(&osd)?))) {
            Some((osd, daemon)) => {
                let nodes = if is_deleted { &mut left } else { &mut moved_to };
                nodes.extend(pod.node.clone().map(|node| (osd, node)));
                daemon.pods.push(pod);
            }
            // The Deployment was deleted. On a node that does not answer, the pod stays for days. The id says
            // that it is no other OSD's.
            None if is_deleted && osd.is_some() => {}
            None => {
                let what = format!("pod/{} runs an OSD that has no Deployment", pod.name);
                ambiguities.push(Ambiguity::of(osd.filter(|osd| is_named_for(*osd, &pod.name)), what));
            }
        }
    }
    for (osd, daemon) in &mut daemons {
        // Space for four pods would be a third of what a daemon takes.
        daemon.pods.shrink_to_fit();
        daemon.pods.sort_by(|a, b| a.name.cmp(&b.name));
        let of_pod = || moved_to.remove(osd).or_else(|| left.remove(osd));
        let pinned = || only_selected(selectors.get(osd)?, nodes);
        daemon.node = daemon.node.take().or_else(of_pod).or_else(pinned);
    }
    ambiguities.sort();
    (daemons, ambiguities)
}

/// Returns the nodes that a node selector selects.
///
/// Rook takes the label `kubernetes.io/hostname`, or the one that `ROOK_CUSTOM_HOSTNAME_LABEL` of its
/// operator names (pkg/operator/k8sutil/labels.go, `LabelHostname`, v1.20.6).
pub(crate) fn selected<'a>(
    selector: &BTreeMap<String, String>,
    nodes: &'a BTreeMap<NodeName, Node>,
) -> impl Iterator<Item = &'a NodeName> {
    let fits = move |node: &Node| selector.iter().all(|(label, value)| node.labels.get(label) == Some(value));
    nodes.iter().filter(move |(_, node)| fits(node)).map(|(name, _)| name)
}

/// Returns the only node that a node selector selects; none if the selector is empty.
fn only_selected(selector: &BTreeMap<String, String>, nodes: &BTreeMap<NodeName, Node>) -> Option<NodeName> {
    let mut found = selected(selector, nodes);
    let node = found.next().filter(|_| !selector.is_empty())?;
    found.next().is_none().then(|| node.clone())
}

/// Returns whether two Deployments run the same OSD on the same device: neither label is wrong.
fn is_copy(one: &Daemon, other: &Daemon) -> bool {
    (one.fsid, &one.on_pvcs, &one.data_dir) == (other.fsid, &other.on_pvcs, &other.data_dir)
        && (one.fsid.is_some() || one.data_dir.is_some())
}

/// Returns whether the name of a pod, and not its label alone, says that it runs the OSD.
fn is_named_for(osd: OsdId, pod: &str) -> bool {
    ["", "id-"].iter().any(|id| pod.starts_with(&format!("rook-ceph-osd-{id}{}-", osd.0)))
}

/// Parses the Deployment of an OSD.
pub(crate) fn parse_daemon(Raw(deployment): &Raw) -> Result<daemon::Parsed, String> {
    daemon::parse(deployment)
}

/// Reads a pod of an OSD; none if it is terminal.
pub(crate) fn osd_pod(pod: &ApiPod) -> Option<OsdPod> {
    let label = pod.metadata.labels.as_ref().and_then(|l| l.get(OSD_ID));
    (!pods::is_terminal(pod)).then(|| OsdPod {
        osd: label.and_then(|label| osd_of_label(label)),
        pod: pods::observed(pod),
        is_deleted: pod.metadata.deletion_timestamp.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use osd_migrate_explore::counted::{counted_by_growth, osds};
    use serde_json::{Value, json};

    use super::*;

    fn deployment(name: &str, id: &str, hostname: &str) -> Result<daemon::Parsed, String> {
        let object = json!({"metadata": {"name": name, "labels": {"ceph-osd-id": id}},
            "spec": {"template": {"spec": {"nodeSelector": {"kubernetes.io/hostname": hostname}}}}});
        parse_daemon(&serde_json::from_value(object).unwrap())
    }

    fn on_pvc(name: &str, id: &str, pvc: &str) -> Result<daemon::Parsed, String> {
        let object =
            json!({"metadata": {"name": name, "labels": {"ceph-osd-id": id, "ceph.rook.io/pvc": pvc}}});
        parse_daemon(&serde_json::from_value(object).unwrap())
    }

    fn api_pod(name: &str, id: &str, phase: &str) -> Option<OsdPod> {
        let pod = json!({"metadata": {"name": name, "labels": {"ceph-osd-id": id}},
            "spec": {"nodeName": "n1", "containers": []}, "status": {"phase": phase}});
        osd_pod(&serde_json::from_value(pod).unwrap())
    }

    fn node(name: &str, hostname: &str) -> (NodeName, Node) {
        let node = Node {
            ready: true,
            cordoned: false,
            hostname: hostname.to_owned(),
            labels: BTreeMap::new(),
            taints: Vec::new(),
        };
        (NodeName(name.to_owned()), node)
    }

    #[test]
    fn osds_on_one_pvc_are_ambiguous() {
        let pvcs = [("a", "1", "set1-data-0"), ("b", "2", "set1-data-1"), ("c", "3", "set1-data-0")];
        let parsed = pvcs.into_iter().map(|(name, id, pvc)| on_pvc(name, id, pvc)).collect();
        let (daemons, ambiguities) = daemons(parsed, Vec::new(), &BTreeMap::new());
        assert_eq!(
            (daemons.len(), ambiguities),
            (
                3,
                vec![Ambiguity::of(
                    [OsdId(1), OsdId(3)],
                    "osd.1 and osd.3 have one PVC: set1-data-0".to_owned()
                )]
            )
        );
    }

    #[test]
    fn deployments_get_their_pods_and_the_name_of_their_node() {
        let nodes = [node("n1", "host-1"), node("n2", "host-2")].into();
        let parsed =
            vec![deployment("rook-ceph-osd-1", "1", "host-1"), deployment("rook-ceph-osd-2", "2", "no-node")];
        let pods =
            [api_pod("b", "1", "Running"), api_pod("a", "1", "Pending"), api_pod("c", "1", "Succeeded")];
        let (daemons, ambiguities) = daemons(parsed, pods.into_iter().flatten().collect(), &nodes);
        assert_eq!(ambiguities, []);
        let first = &daemons[&OsdId(1)];
        assert_eq!(first.node, Some(NodeName("n1".to_owned())));
        assert_eq!(first.pods.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(
            daemons[&OsdId(2)].node,
            Some(NodeName("no-node".to_owned())),
            "the node is gone: still said"
        );
    }

    /// Checks an operator with `ROOK_CUSTOM_HOSTNAME_LABEL`.
    #[test]
    fn stopped_osd_is_on_the_only_node_with_its_labels() {
        let labelled = |name: &str, value: &str| {
            let (name, node) = node(name, name);
            (name, Node { labels: [("site/host".to_owned(), value.to_owned())].into(), ..node })
        };
        let on = |selector: Value, pods: Vec<OsdPod>| {
            let nodes =
                [labelled("n1", "s1"), labelled("n2", "s2"), labelled("n3", "s3"), labelled("n4", "s3")];
            let object = json!({"metadata": {"name": "rook-ceph-osd-1", "labels": {"ceph-osd-id": "1"}},
                "spec": {"template": {"spec": {"nodeSelector": selector}}}});
            let parsed = parse_daemon(&serde_json::from_value(object).unwrap());
            daemons(vec![parsed], pods, &nodes.into()).0[&OsdId(1)].node.clone().map(|node| node.0)
        };
        assert_eq!(on(json!({"site/host": "s2"}), Vec::new()).as_deref(), Some("n2"));
        assert_eq!(on(json!({"site/host": "s3"}), Vec::new()), None, "two nodes");
        assert_eq!(on(json!({"site/host": "s4"}), Vec::new()), None, "no node");
        assert_eq!(on(json!({}), Vec::new()), None);
        let pods = api_pod("a", "1", "Running").into_iter().collect();
        assert_eq!(on(json!({"site/host": "s2"}), pods).as_deref(), Some("n1"), "its pod is there");
    }

    #[test]
    fn deleted_pod_without_a_deployment_is_ambiguous_only_without_an_id() {
        let ambiguities = |osd: Option<OsdId>| {
            let mut pods: Vec<OsdPod> = api_pod("lost", "9", "Running").into_iter().collect();
            (pods[0].osd, pods[0].is_deleted) = (osd, true);
            daemons(Vec::new(), pods, &BTreeMap::new()).1.len()
        };
        assert_eq!((ambiguities(Some(OsdId(9))), ambiguities(None)), (0, 1));
    }

    #[test]
    fn ambiguous_deployments_and_pods_are_reported() {
        let parsed = vec![
            deployment("rook-ceph-osd-1", "1", "h"),
            deployment("rook-ceph-osd-id-1", "1", "h"),
            deployment("rook-ceph-osd-x", "x", "h"),
        ];
        let pods = [api_pod("rook-ceph-osd-9-x", "9", "Running")].into_iter().flatten().collect();
        let (daemons, ambiguities) = daemons(parsed, pods, &BTreeMap::new());
        assert_eq!(daemons.len(), 1);
        assert_eq!(ambiguities.len(), 3, "{ambiguities:?}");
        let twice = "osd.1 has two Deployments: rook-ceph-osd-1 and rook-ceph-osd-id-1".to_owned();
        let twice = Ambiguity::of_two_deployments(OsdId(1), false, twice);
        assert!(ambiguities.contains(&twice), "nothing says that they have one device");
        let of: Vec<_> = ambiguities.iter().flat_map(|one| &one.osds).collect();
        assert_eq!(of, [&OsdId(9)], "a label that is no number may be that of any OSD: {ambiguities:?}");
    }

    #[test]
    fn stopped_deployment_stays_beside_a_second_one() {
        for stopped in ["rook-ceph-osd-1", "rook-ceph-osd-1-maintenance"] {
            let of = |name: &str| {
                let annotations = json!({"osd-migrate.io/stopped": (name == stopped).then_some("record")});
                let object = json!({"metadata": {"name": name, "labels": {"ceph-osd-id": "1"},
                    "annotations": annotations}, "spec": {}});
                parse_daemon(&serde_json::from_value(object).unwrap())
            };
            let parsed = vec![of("rook-ceph-osd-1"), of("rook-ceph-osd-1-maintenance")];
            let (daemons, ambiguities) = daemons(parsed, Vec::new(), &BTreeMap::new());
            assert_eq!((daemons[&OsdId(1)].name.as_str(), ambiguities.len()), (stopped, 1));
        }
    }

    #[test]
    fn ambiguity_is_of_one_osd_only_if_data_or_name_say_so_too() {
        let of = |name: &str, fsid: &str| {
            let env = json!([{"name": "ROOK_OSD_UUID", "value": fsid}]);
            let object = json!({"metadata": {"name": name, "labels": {"ceph-osd-id": "5"}},
                "spec": {"template": {"spec": {"containers": [{"name": "osd", "env": env}]}}}});
            parse_daemon(&serde_json::from_value(object).unwrap())
        };
        let (own, others) = ("00000000-0000-4000-8000-000000000005", "00000000-0000-4000-8000-000000000003");
        for (name, fsid, osds) in
            [("rook-ceph-osd-5-debug", own, vec![OsdId(5)]), ("by-hand", others, vec![])]
        {
            let parsed = vec![of("rook-ceph-osd-5", own), of(name, fsid)];
            let (_, ambiguities) = daemons(parsed, Vec::new(), &BTreeMap::new());
            let found: Vec<_> = ambiguities.into_iter().flat_map(|one| one.osds).collect();
            assert_eq!(found, osds, "{name}");
        }
        for (pod, osds) in [("rook-ceph-osd-5-x", vec![OsdId(5)]), ("rook-ceph-osd-3-x", vec![])] {
            let pods = api_pod(pod, "5", "Running").into_iter().collect();
            let (_, ambiguities) = daemons(Vec::new(), pods, &BTreeMap::new());
            assert_eq!(ambiguities[0].osds.iter().copied().collect::<Vec<_>>(), osds, "{pod}");
        }
    }

    #[test]
    fn node_of_a_portable_osd_is_that_of_the_pod_that_stays() {
        let portable = || {
            let object = json!({"metadata": {"name": "rook-ceph-osd-1", "labels": {"ceph-osd-id": "1"}}});
            vec![parse_daemon(&serde_json::from_value(object).unwrap())]
        };
        let pod = |name: &str, node: Option<&str>, is_deleted: bool| {
            let pod = Pod {
                name: name.to_owned(),
                uid: name.to_owned(),
                node: node.map(|node| NodeName(node.to_owned())),
                restarts: 0,
                trouble: None,
            };
            OsdPod { osd: Some(OsdId(1)), pod, is_deleted }
        };
        let node_of = |pods: Vec<OsdPod>| {
            let (daemons, _) = daemons(portable(), pods, &BTreeMap::new());
            daemons[&OsdId(1)].node.clone().map(|node| node.0)
        };
        let (old, new) = (|| pod("a", Some("n1"), true), || pod("b", Some("n2"), false));
        assert_eq!(node_of(vec![old(), new()]).as_deref(), Some("n2"));
        assert_eq!(node_of(vec![new(), old()]).as_deref(), Some("n2"));
        assert_eq!(node_of(vec![pod("b", None, false), old()]).as_deref(), Some("n1"), "not bound yet");
        assert_eq!(node_of(vec![pod("b", None, false)]), None);
        assert_eq!(node_of(Vec::new()), None);
    }

    /// Joins Deployments, pods and nodes of a cluster of the size that `build/growth` asks for.
    ///
    /// Every second OSD is on a PVC: only its pod names its node.
    #[test]
    #[ignore = "build/growth runs it"]
    fn growth_of_daemons() {
        let nodes = (0..osds() / 25).map(|number| node(&format!("n{number}"), &format!("host-{number}")));
        let deployment = |osd: usize| {
            let (name, id) = (format!("rook-ceph-osd-{osd}"), osd.to_string());
            if osd.is_multiple_of(2) {
                on_pvc(&name, &id, &format!("set1-data-{osd}"))
            } else {
                deployment(&name, &id, &format!("host-{}", osd / 25))
            }
        };
        let pod = |osd: usize| api_pod(&format!("rook-ceph-osd-{osd}-x"), &osd.to_string(), "Running");
        let (parsed, pods) = ((0..osds()).map(deployment).collect(), (0..osds()).filter_map(pod).collect());
        let nodes = nodes.collect();
        let (daemons, ambiguities) = counted_by_growth(|| daemons(parsed, pods, &nodes));
        assert!(daemons.values().all(|daemon| daemon.node.is_some() && daemon.pods.len() == 1));
        assert_eq!((daemons.len(), ambiguities), (osds(), Vec::new()));
    }
}
