//! Inventories of a node's disks, from the request to the result.
//!
//! An inventory outlives the run that requested it. Otherwise a Job that is replaced again and again would
//! always start with the first node (ADR 0024).

use chrono::{DateTime, Utc};

use super::available;
use super::provisioner::{self, NodeProvisioner};
use crate::domain::act::{Act, NodeAct};
use crate::domain::inventory::{InventoryRequest, NodeInventory};
use crate::domain::ledger::{NodeStatus, NodeWork};
use crate::domain::next::{Next, Wait};
use crate::domain::observation::{Inventory, JobState, Observation};
use crate::domain::osd::NodeName;
use crate::domain::policy::Policy;
use crate::domain::step::{MAX_FAILURES, SILENT_MINUTES, START_MINUTES};
use crate::domain::view::View;

/// Minutes for which an inventory's result also serves the next run.
///
/// The agent detects later changes of a disk: it proves the disk again before it writes.
pub(super) const YOUNG_MINUTES: i64 = 10;

/// Minutes after which an inventory no longer delays the other nodes: it takes seconds if its pod starts.
const SLOW_MINUTES: i64 = 1;

/// Returns whether a node's inventory takes longer than usual.
pub(super) fn is_slow(node: &NodeName, work: &NodeWork, seen: &Observation) -> bool {
    let minutes = |job: &Inventory| (seen.at - job.created_at).num_minutes();
    available::inventory_of(node, work, seen).is_some_and(|job| minutes(job) >= SLOW_MINUTES)
}

/// Returns an earlier run's work on a node as this run's work, if its inventory is recent: still running, or
/// reported lately.
pub(super) fn taken_over(node: &NodeName, view: View<'_>) -> Option<NodeWork> {
    let work = view.ledger.nodes.get(node).filter(|work| work.run != view.policy.run)?;
    let job =
        available::inventory_of(node, work, view.seen).filter(|_| work.status != NodeStatus::Completed)?;
    let is_young = |at: DateTime<Utc>| (view.seen.at - at).num_minutes() < YOUNG_MINUTES;
    let serves = match &job.report {
        Some(report) => report.inventory.is_some() && is_young(report.ended_at),
        None => matches!(job.state, Some(JobState::Waiting | JobState::Running)) && is_young(job.created_at),
    };
    let inventoried_by = Some(work.inventory_run().to_owned());
    serves.then(|| NodeWork {
        run: view.policy.run.clone(),
        inventoried_by,
        away_since: None,
        ..work.clone()
    })
}

impl NodeProvisioner<'_> {
    /// Waits for the inventory of the node's disks, or handles its result.
    pub(super) fn inspect_disks(&self, node: &NodeName, work: &NodeWork) -> Next {
        let Some(job) = available::inventory_of(node, work, self.view.seen) else {
            return self.create_inventory(node, work);
        };
        if let Some(report) = &job.report {
            return match (&report.inventory, &report.problem) {
                (Some(inventory), _) => self.inventoried(node, work, inventory),
                (None, problem) => {
                    self.inventory_failed(node, work, problem.as_deref().unwrap_or("no reason is known"))
                }
            };
        }
        let minutes = |since: DateTime<Utc>| (self.view.seen.at - since).num_minutes();
        let trouble = job.trouble.as_deref();
        match job.state {
            None => self.create_inventory(node, work),
            Some(JobState::Waiting) if minutes(job.created_at) >= START_MINUTES => {
                self.inventory_failed(node, work, trouble.unwrap_or("its pod does not start"))
            }
            Some(JobState::Running)
                if minutes(job.heartbeat_at.unwrap_or(job.created_at)) >= SILENT_MINUTES =>
            {
                self.inventory_failed(node, work, "its agent sends no heartbeat")
            }
            Some(JobState::Ended) => {
                self.inventory_failed(node, work, trouble.unwrap_or("it left no report"))
            }
            Some(JobState::Waiting | JobState::Running) => {
                Next::Wait(Wait::Inventory { node: node.clone(), trouble: job.trouble.clone() })
            }
        }
    }

    fn create_inventory(&self, node: &NodeName, work: &NodeWork) -> Next {
        // The inventory of an earlier run is gone, so this run requests its own.
        if work.inventoried_by.is_some() {
            return self.inventory_again(node, work.failures);
        }
        Next::Do(inventory_job(self.view.policy, node, work.inventory, self.view.seen))
    }

    /// Retries a failed inventory.
    ///
    /// After `MAX_FAILURES` failures the node is left out, and the others continue.
    fn inventory_failed(&self, node: &NodeName, work: &NodeWork, why: &str) -> Next {
        if work.failures + 1 < MAX_FAILURES {
            return self.inventory_again(node, work.failures + 1);
        }
        let why = format!("the inspection of its disks failed {MAX_FAILURES} times, the last time: {why}");
        self.save(
            node,
            NodeWork {
                status: NodeStatus::Completed,
                since: self.view.seen.at,
                message: why.clone(),
                failures: MAX_FAILURES,
                problems: vec![why],
                ..work.clone()
            },
        )
    }

    fn inventoried(&self, node: &NodeName, work: &NodeWork, inventory: &NodeInventory) -> Next {
        let processed = available::process(node, inventory, self.view);
        let new = self.available_disks(node, work, &processed).count();
        self.save(
            node,
            NodeWork {
                status: NodeStatus::Orchestrating,
                since: self.view.seen.at,
                message: format!("{new} disks are to become OSDs"),
                failures: 0,
                problems: provisioner::message_of(node, work, &processed.problems),
                ..work.clone()
            },
        )
    }
}

/// Returns the act that creates an inventory Job on a node for this run.
pub fn inventory_job(policy: &Policy, node: &NodeName, number: u32, seen: &Observation) -> Act {
    let declared = &seen.kube.declaration;
    Act::Node(NodeAct::Inventory {
        request: InventoryRequest {
            run: policy.run.clone(),
            number,
            node: node.clone(),
            cluster: seen.ceph.fsid,
            on_file: policy.store_on_file,
        },
        image: declared.image.clone(),
        data_dir: declared.data_dir.clone(),
    })
}
