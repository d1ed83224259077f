//! `plan --inventory` and `remove --undeclared`: inventory Jobs on all nodes at once, outside of a run.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::domain::act::{Act, NodeAct};
use crate::domain::inventory::NodeInventory;
use crate::domain::observation::{Inventory, JobState, Observation};
use crate::domain::osd::NodeName;
use crate::domain::plan::{self, Questions};
use crate::domain::policy::Policy;
use crate::domain::undeclared;
use crate::k8s::K8s;
use crate::live::{Ledgers, Live, pause};
use crate::ports::{Cluster, Failure, LedgerStore, Severity};

/// Seconds to wait for all inventory Jobs.
///
/// A Job takes seconds; a node that pulls the image first needs minutes.
const PATIENCE_SECONDS: u32 = 300;

/// Inventories of one command.
pub(super) struct Inventories<'a> {
    /// Policy whose `run` names this process alone.
    pub policy: &'a Policy,
    /// Ceph and Kubernetes.
    pub live: &'a mut Live,
    /// Access to the ledger, which every act reads first.
    pub k8s: Arc<K8s>,
}

impl Inventories<'_> {
    /// Requests an inventory of each node that would get new OSDs or has an OSD in a directory.
    ///
    /// Waits until each node has answered or cannot answer. Returns the failure to report after the plan, if
    /// some nodes did neither.
    pub(super) async fn ask(&mut self) -> Result<Option<Failure>, Failure> {
        let seen = self.observe().await?;
        let nodes = plan::inspected(self.policy, &seen);
        let silent = self.ask_on(&nodes).await?;
        Ok((!silent.is_empty()).then(|| not_in_time(&silent, self.k8s.namespace())))
    }

    /// Requests an inventory of each of these nodes.
    ///
    /// Returns the nodes that in time have neither answered nor failed to.
    pub(super) async fn ask_on(&mut self, nodes: &BTreeSet<NodeName>) -> Result<BTreeSet<NodeName>, Failure> {
        let seen = self.observe().await?;
        for node in nodes {
            self.live.act(&plan::inventory_job(self.policy, node, 1, &seen)).await?;
        }
        let mut silent = nodes.clone();
        for _ in 0..PATIENCE_SECONDS {
            let seen = self.observe().await?;
            let is_over = |job: &&Inventory| job.report.is_some() || job.state == Some(JobState::Ended);
            for (_, job) in self.mine(&seen).filter(|(_, job)| is_over(job)) {
                silent.remove(&job.node);
            }
            if silent.is_empty() {
                break;
            }
            pause(Duration::from_secs(1)).await;
        }
        Ok(silent)
    }

    /// Returns the inventories, or why there is none of a node, and what is observed now.
    pub(super) async fn results(&mut self) -> Result<(undeclared::Inventories, Observation), Failure> {
        let seen = self.observe().await?;
        let found = self.mine(&seen).map(|(_, job)| (job.node.clone(), result(job))).collect();
        Ok((found, seen))
    }

    /// Deletes the inventory Jobs that were created for this `plan`.
    pub(super) async fn clean_up(&mut self) -> Result<(), Failure> {
        let seen = self.observe().await?;
        let acts: Vec<Act> = self
            .mine(&seen)
            .map(|(name, job)| {
                Act::Node(NodeAct::DeleteInventoryJob { name: name.clone(), uid: job.uid.clone() })
            })
            .collect();
        for act in acts {
            self.live.act(&act).await?;
        }
        Ok(())
    }

    fn mine<'o>(&self, seen: &'o Observation) -> impl Iterator<Item = (&'o String, &'o Inventory)> {
        let run = self.policy.run.clone();
        seen.kube.inventories.iter().filter(move |(_, job)| job.run == run)
    }

    async fn observe(&mut self) -> Result<Observation, Failure> {
        // Reading the ledger gives its version, which every act compares with the stored one.
        Ledgers::new(Arc::clone(&self.k8s)).load().await?;
        self.live.observe(&BTreeSet::new(), |_| Questions::default()).await
    }
}

fn not_in_time(silent: &BTreeSet<NodeName>, namespace: &str) -> Failure {
    let names: Vec<_> = silent.iter().map(ToString::to_string).collect();
    Failure {
        severity: Severity::Passing,
        message: format!(
            "the disks of {} were not inspected within {PATIENCE_SECONDS} s. See: kubectl -n {namespace} get pods -l \
             osd-migrate.io/part=inventory",
            names.join(", ")
        ),
    }
}

/// Returns the inventory of a Job, or why there is none.
fn result(job: &Inventory) -> Result<NodeInventory, String> {
    let report = job.report.as_ref();
    let inventory = report.and_then(|report| report.inventory.clone());
    let why = || report.and_then(|report| report.problem.clone()).or_else(|| job.trouble.clone());
    inventory.ok_or_else(|| why().unwrap_or_else(|| "its Job has left no report".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_were_not_inspected_in_time_are_named() {
        let silent = ["h2", "h1"].map(|node| NodeName(node.to_owned())).into();
        assert_eq!(
            not_in_time(&silent, "rook-ceph").message,
            "the disks of h1, h2 were not inspected within 300 s. See: kubectl -n rook-ceph get pods -l \
             osd-migrate.io/part=inventory"
        );
    }
}
