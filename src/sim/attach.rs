//! Volumes of CSI drivers: attached to the node of the pod that uses them, detached when no pod does.
//!
//! A volume that is attached again has another place and another kernel name, and its names below
//! `/dev/disk` depend on the node. As with `ReadWriteOnce`, pods of one node may share it.

use crate::domain::inspection::NodeRequest;
use crate::domain::osd::pvc::PerPvc;
use crate::domain::osd::{NodeName, OsdId};
use crate::sim::stage::{Agent, Stage};
use crate::sim::world::World;

impl World {
    /// Returns whether an OSD is on volumes that can be attached to other nodes.
    pub(super) fn is_portable(&self, osd: OsdId) -> bool {
        self.pvcs.of.get(&osd).is_some_and(|pvcs| self.attachable(pvcs).next().is_some())
    }

    fn attachable<'a>(&'a self, pvcs: &'a PerPvc<String>) -> impl Iterator<Item = &'a String> {
        let disks = pvcs.iter().filter_map(move |(_, pvc)| self.pvcs.disks.get(pvc));
        disks.filter(move |disk| self.pvcs.attachable.contains(*disk))
    }

    /// Attaches the volumes of an OSD for its new pod; `None` if no node can have them.
    ///
    /// The scheduler prefers the node on which they are.
    pub(super) fn attach_for_pod(&mut self, osd: OsdId) -> Option<NodeName> {
        let node = self.node_for_pod(osd)?;
        self.attach_of(osd, &node);
        Some(node)
    }

    /// Returns the node on which a new pod of a portable OSD starts.
    pub(super) fn node_for_pod(&self, osd: OsdId) -> Option<NodeName> {
        let pvcs = self.pvcs.of.get(&osd)?;
        let disk = self.attachable(pvcs).next()?;
        let here = &self.disks.get(disk)?.node;
        let can_run = |node: &NodeName| {
            let found = self.kube.nodes.get(node);
            found.is_some_and(|found| found.ready && !found.cordoned)
        };
        if can_run(here) {
            return Some(here.clone());
        }
        if self.agents.values().any(|agent| has_attached(agent, osd)) {
            return None;
        }
        self.kube.nodes.keys().find(|node| can_run(node)).cloned()
    }

    /// Attaches the volumes of an agent's PVCs to its node; returns false if a pod of another node uses them.
    pub(super) fn attach_for_agent(&mut self, job: &str, request: &NodeRequest) -> bool {
        let osd = request.osd;
        if request.pvcs.is_none() || !self.is_portable(osd) {
            return true;
        }
        let pod = self.kube.daemons.get(&osd).and_then(|daemon| daemon.pods.first());
        if let Some(pod) = pod {
            return pod.node.as_ref() == Some(&request.node);
        }
        let others = self.agents.iter().filter(|(name, _)| *name != job);
        let others = others.filter(|(_, agent)| has_attached(agent, osd));
        let others: Vec<&NodeName> = others.map(|(_, agent)| &agent.request.node).collect();
        if !others.is_empty() {
            return others.iter().all(|node| **node == request.node);
        }
        self.attach_of(osd, &request.node);
        true
    }

    fn attach_of(&mut self, osd: OsdId, node: &NodeName) {
        let Some(pvcs) = self.pvcs.of.get(&osd) else { return };
        for disk in self.attachable(pvcs).cloned().collect::<Vec<_>>() {
            self.attach(&disk, node);
        }
    }

    /// Attaches a volume: another place than before, and no name that a rule of udev would give it.
    fn attach(&mut self, disk: &str, node: &NodeName) {
        let Some(found) = self.disks.get_mut(disk) else { return };
        if found.node != *node {
            self.pvcs.open.remove(disk);
        }
        let other = |place: &str| if place.ends_with('1') { "csi-lun-2" } else { "csi-lun-1" };
        let place = found.identity.by_path.first().map_or("csi-lun-1", |place| other(place));
        found.identity.by_path = [place.to_owned()].into();
        found.node = node.clone();
    }

    /// Evicts the pod of a portable OSD, and starts it on another node.
    pub(super) fn move_pod(&mut self, osd: OsdId, node: &NodeName) {
        self.osd_down(osd);
        self.pod_gone(osd);
        self.attach_of(osd, node);
        self.new_pod(osd);
    }
}

/// Returns whether the pod of an agent uses the volumes of an OSD.
fn has_attached(agent: &Agent, osd: OsdId) -> bool {
    agent.request.osd == osd && agent.request.pvcs.is_some() && agent.stage != Stage::Waiting
}
