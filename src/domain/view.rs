//! View of an iteration: everything that its decision depends on.

use super::ledger::Ledger;
use super::observation::{Daemon, Node, Observation, Slot};
use super::osd::{NodeName, OsdId, Upmap};
use super::policy::Policy;
use super::removal::RemovalRequest;

/// View of an iteration: what the run may do, what it saved, and what it observed just now.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// Policy of the run.
    pub policy: &'a Policy,
    /// Ledger as stored.
    pub ledger: &'a Ledger,
    /// Observation of the cluster.
    pub seen: &'a Observation,
}

impl<'a> View<'a> {
    /// Returns the same view with another observation, to ask what would be decided then.
    #[must_use]
    pub fn imagining(self, seen: &'a Observation) -> Self {
        Self { seen, ..self }
    }

    /// Returns whether the migration is confirmed by flag or in the CephCluster (P12).
    pub fn is_confirmed(self) -> bool {
        self.policy.is_confirmed(&self.seen.kube.declaration)
    }

    /// Returns whether the owner selects the OSD for this run: by number, host, device class and plan.
    pub fn selects(self, osd: OsdId) -> bool {
        self.policy.has_in_plan(osd) && self.selects_to_remove(osd)
    }

    /// Returns whether the owner selects the OSD for a removal by this run: by number, host and device class.
    ///
    /// A plan has no removals. A request, or the switch of a run, is the approval of a removal.
    pub fn selects_to_remove(self, osd: OsdId) -> bool {
        let Policy { hosts, device_classes, .. } = self.policy;
        self.policy.names(osd)
            && (hosts.is_empty() || hosts.iter().any(|host| self.is_on_host(osd, host)))
            && (device_classes.is_empty()
                || device_classes.iter().any(|class| self.has_device_class(osd, class)))
    }

    /// Returns the bytes used on the OSD, and on one in progress those before its stop, if they are known.
    pub fn used_bytes(self, osd: OsdId) -> Option<u64> {
        match self.ledger.records.get(&osd) {
            Some(record) => record.used_bytes,
            None => self.slot(osd)?.used_bytes,
        }
    }

    /// Returns the upmaps that name the OSD.
    pub fn upmaps_of(self, osd: OsdId) -> Vec<Upmap> {
        let names = |upmap: &&Upmap| upmap.mappings.iter().any(|(from, to)| *from == osd || *to == osd);
        self.seen.ceph.upmaps.iter().filter(names).cloned().collect()
    }

    /// Returns whether the OSD is on this host, by its name in CRUSH or in Kubernetes.
    pub fn is_on_host(self, osd: OsdId, host: &str) -> bool {
        let in_crush = self.slot(osd).and_then(|slot| slot.crush.as_ref()?.host());
        in_crush.is_some_and(|name| name == host) || self.node_of(osd).is_some_and(|node| node.0 == host)
    }

    /// Returns whether the OSD has this device class in CRUSH.
    pub fn has_device_class(self, osd: OsdId, class: &str) -> bool {
        let has = |slot: &Slot| slot.crush.as_ref()?.device_class.clone();
        self.slot(osd).and_then(has).is_some_and(|name| name == class)
    }

    /// Returns the fence that osd-migrate set, or is about to set.
    pub fn our_fence(self) -> Option<&'a str> {
        self.ledger.run.fence.as_deref()
    }

    /// Returns the OSD's slot in the osdmap.
    pub fn slot(self, osd: OsdId) -> Option<&'a Slot> {
        self.seen.ceph.slots.get(&osd)
    }

    /// Returns the request to remove the OSD that the slot holds now.
    pub fn removal_request(self, osd: OsdId) -> Option<&'a RemovalRequest> {
        self.seen.kube.requests.of(osd, self.slot(osd)?.fsid?)
    }

    /// Returns the OSD's Deployment.
    pub fn daemon(self, osd: OsdId) -> Option<&'a Daemon> {
        self.seen.kube.daemons.get(&osd)
    }

    /// Returns the node that the OSD's Deployment runs on.
    pub fn node_of(self, osd: OsdId) -> Option<&'a NodeName> {
        self.daemon(osd)?.node.as_ref()
    }

    /// Returns the Kubernetes node.
    pub fn node(self, name: &NodeName) -> Option<&'a Node> {
        self.seen.kube.nodes.get(name)
    }

    /// Returns whether the OSD's daemon is up.
    pub fn is_up(self, osd: OsdId) -> bool {
        self.slot(osd).is_some_and(|slot| slot.up)
    }
}
