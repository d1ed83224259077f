//! OSDs of a node, which a person requests to be removed together.

use std::collections::{BTreeMap, BTreeSet};

use super::gate::names;
use super::observation::{Daemon, Observation};
use super::osd::{NodeName, OsdId};

/// OSDs of a node, and the hosts in CRUSH that they are on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeOsds {
    /// OSDs whose Deployment is on the node.
    pub osds: BTreeSet<OsdId>,
    /// Other OSDs on the same hosts in CRUSH, by host: a host with others stays.
    hosts: BTreeMap<String, BTreeSet<OsdId>>,
}

/// Returns the OSDs whose Deployment is on a node; the error is a sentence: no such node, or no OSD on it.
///
/// A node that was deleted from Kubernetes is still named by the Deployments of its OSDs.
pub fn on(node: &NodeName, seen: &Observation) -> Result<NodeOsds, String> {
    let is_there = |(_, daemon): &(&OsdId, &Daemon)| daemon.node.as_ref() == Some(node);
    let osds: BTreeSet<OsdId> = seen.kube.daemons.iter().filter(is_there).map(|(osd, _)| *osd).collect();
    if osds.is_empty() {
        return Err(if seen.kube.nodes.contains_key(node) {
            format!(
                "no OSD has its Deployment on node {node}. See: kubectl -n NAMESPACE get pods -l app=rook-ceph-osd \
                 -o wide"
            )
        } else {
            format!("node {node} does not exist, and no OSD has its Deployment on it. See: kubectl get nodes")
        });
    }
    let host = |osd: &OsdId| seen.ceph.slots.get(osd).and_then(|slot| slot.crush.as_ref()?.host().cloned());
    let others = |name: String| {
        let is_other = |osd: &&OsdId| !osds.contains(osd) && host(osd).as_ref() == Some(&name);
        let others = seen.ceph.slots.keys().filter(is_other).copied().collect();
        (name, others)
    };
    let hosts = osds.iter().filter_map(host).map(others).collect();
    Ok(NodeOsds { osds, hosts })
}

impl NodeOsds {
    /// Returns a sentence for each host in CRUSH: whether it goes with the last of the OSDs.
    pub fn of_hosts(&self) -> Vec<String> {
        let of_host = |(host, others): (&String, &BTreeSet<OsdId>)| {
            if others.is_empty() {
                format!("Host {host} is removed from CRUSH with the last of them")
            } else {
                format!(
                    "Host {host} stays in CRUSH: {} on it, too, without a Deployment on this node",
                    are(others)
                )
            }
        };
        self.hosts.iter().map(of_host).collect()
    }
}

fn are(osds: &BTreeSet<OsdId>) -> String {
    format!("{} {}", names(osds), if osds.len() == 1 { "is" } else { "are" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::plan::Questions;
    use crate::sim::example;

    fn seen() -> Observation {
        example::two_replicas_with_a_spare_osd().observe(|_| Questions::default())
    }

    fn node(name: &str) -> NodeName {
        NodeName(name.to_owned())
    }

    /// Returns a node with OSDs, and its OSDs by their Deployments.
    fn first(seen: &Observation) -> (NodeName, BTreeSet<OsdId>) {
        let of = |node: &NodeName| {
            let daemons = seen.kube.daemons.iter().filter(|(_, daemon)| daemon.node.as_ref() == Some(node));
            daemons.map(|(osd, _)| *osd).collect::<BTreeSet<_>>()
        };
        let mut nodes = seen.kube.nodes.keys().map(|node| (node.clone(), of(node)));
        nodes.find(|(_, osds)| !osds.is_empty()).unwrap()
    }

    #[test]
    fn osds_of_a_node_are_those_whose_deployment_is_on_it() {
        let mut seen = seen();
        let (name, osds) = first(&seen);
        assert_eq!(on(&name, &seen).unwrap().osds, osds);
        // The node is gone, and its Deployments are not.
        seen.kube.nodes.remove(&name);
        assert_eq!(on(&name, &seen).unwrap().osds, osds);
        for osd in &osds {
            seen.kube.daemons.remove(osd);
        }
        let why = on(&name, &seen).unwrap_err();
        assert!(why.contains("does not exist") && why.contains("kubectl get nodes"), "{why}");
    }

    #[test]
    fn node_without_osds_is_reported() {
        let mut seen = seen();
        let (name, osds) = first(&seen);
        seen.kube.daemons.retain(|osd, _| !osds.contains(osd));
        let why = on(&name, &seen).unwrap_err();
        assert!(why.starts_with(&format!("no OSD has its Deployment on node {name}. ")), "{why}");
        assert!(on(&node("h9"), &seen).unwrap_err().starts_with("node h9 does not exist"));
    }

    #[test]
    fn crush_host_with_another_osd_stays() {
        let mut seen = seen();
        let (name, osds) = first(&seen);
        let first = *osds.first().unwrap();
        let host = seen.ceph.slots[&first].crush.as_ref().unwrap().location["host"].clone();
        let goes = on(&name, &seen).unwrap().of_hosts();
        assert_eq!(goes, [format!("Host {host} is removed from CRUSH with the last of them")]);
        // An OSD of the host without a Deployment.
        let other = *seen.ceph.slots.keys().find(|osd| !osds.contains(osd)).unwrap();
        seen.ceph.slots.get_mut(&other).unwrap().crush = seen.ceph.slots[&first].crush.clone();
        let stays = on(&name, &seen).unwrap().of_hosts();
        let expected =
            format!("Host {host} stays in CRUSH: {other} is on it, too, without a Deployment on this node");
        assert_eq!(stays, [expected]);
    }
}
