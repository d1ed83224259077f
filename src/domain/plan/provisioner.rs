//! Progress of a run with the new OSDs of each node, as the ledger has it.

use std::collections::BTreeMap;

use super::approved::allows_disk;
use super::available;
use crate::domain::act::{Act, NodeAct};
use crate::domain::inventory::NodeInventory;
use crate::domain::ledger::{NodeStatus, NodeWork};
use crate::domain::next::{Next, Saving, uncleared};
use crate::domain::observation::{Inventory, JobState};
use crate::domain::osd::{NodeName, OsdId};
use crate::domain::provision::{self, Processed};
use crate::domain::view::View;

/// Run name of the inventories of `plan --inventory`.
///
/// It is not a run, so no other client deletes them while they are read.
pub const OF_PLAN: &str = "plan-";

/// Minutes after which such a `plan` is considered dead, and its inventories are deleted.
const DEAD_PLAN_MINUTES: i64 = 10;

/// Problems stored per node, and the length of each: the ledger contains all nodes and must stay small.
const PROBLEMS: usize = 10;
const PROBLEM_CHARS: usize = 300;

/// Pass over the nodes that get new OSDs.
pub(super) struct NodeProvisioner<'a> {
    pub(super) view: View<'a>,
}

impl<'a> NodeProvisioner<'a> {
    /// Returns the node that this run is working on.
    pub(super) fn at_work(&self) -> Option<(&'a NodeName, &'a NodeWork)> {
        self.all_at_work().next()
    }

    pub(super) fn all_at_work(&self) -> impl Iterator<Item = (&'a NodeName, &'a NodeWork)> {
        self.view.ledger.nodes.iter().filter(|(_, work)| self.is_at_work(work))
    }

    pub(super) fn is_at_work(&self, work: &NodeWork) -> bool {
        work.run == self.view.policy.run && work.status != NodeStatus::Completed
    }

    /// Deletes the inventories of completed nodes and of earlier requests, one an iteration.
    ///
    /// Only one runner is active, so no other run reads these inventories.
    pub(super) fn clean_up(&self) -> Option<Next> {
        let is_current = |job: &Inventory| {
            let work = self.view.ledger.nodes.get(&job.node);
            work.is_some_and(|work| {
                work.status != NodeStatus::Completed
                    && work.inventory_run() == job.run
                    && work.inventory == job.number
            })
        };
        // A Job that has reported reads no more. Its pod ends a moment later.
        let is_over =
            |job: &Inventory| job.report.is_some() || matches!(job.state, None | Some(JobState::Ended));
        let is_old = |job: &Inventory| {
            !job.run.starts_with(OF_PLAN)
                || (self.view.seen.at - job.created_at).num_minutes() >= DEAD_PLAN_MINUTES
        };
        let mut inventories = self.view.seen.kube.inventories.iter();
        let (name, job) = inventories.find(|(_, job)| !is_current(job) && is_over(job) && is_old(job))?;
        Some(Next::Do(Act::Node(NodeAct::DeleteInventoryJob { name: name.clone(), uid: job.uid.clone() })))
    }

    /// Saves the number of an inventory before its Job is created.
    pub(super) fn inventory_again(&self, node: &NodeName, failures: u32) -> Next {
        let before = self.view.ledger.nodes.get(node).filter(|work| work.run == self.view.policy.run);
        self.save(
            node,
            NodeWork {
                status: NodeStatus::ComputingDiff,
                since: self.view.seen.at,
                message: String::new(),
                run: self.view.policy.run.clone(),
                inventoried_by: None,
                away_since: None,
                inventory: before.map_or(0, |work| work.inventory) + 1,
                failures,
                done: before.map(|work| work.done.clone()).unwrap_or_default(),
                left: before.map(|work| work.left.clone()).unwrap_or_default(),
                directories: before.map(|work| work.directories.clone()).unwrap_or_default(),
                databases: BTreeMap::new(),
                problems: Vec::new(),
            },
        )
    }

    pub(super) fn save(&self, node: &NodeName, work: NodeWork) -> Next {
        let why = Saving::Node {
            node: node.clone(),
            status: work.status,
            message: work.message.clone(),
            problems: work.problems.clone(),
        };
        let mut ledger = self.view.ledger.clone();
        ledger.nodes.insert(node.clone(), work);
        Next::Save { ledger, osd: None, why }
    }

    pub(super) fn inventory(&self, node: &NodeName, work: &NodeWork) -> Option<&'a NodeInventory> {
        available::inventory(node, work, self.view.seen)
    }

    pub(super) fn available_disks<'p>(
        &'p self,
        node: &'p NodeName,
        work: &'p NodeWork,
        processed: &'p Processed,
    ) -> impl Iterator<Item = &'p provision::AvailableDisk> {
        available::available_disks(self.view.ledger, node, Some(work), processed)
            .map(|(_, available)| available)
            .filter(move |available| allows_disk(node, available, self.view))
    }

    /// Returns the OSDs of the node that get no database, with reasons.
    ///
    /// The ledger keeps them after the inventory is deleted.
    fn no_databases(&self, node: &NodeName, work: &NodeWork) -> BTreeMap<OsdId, String> {
        let Some(inventory) = self.inventory(node, work) else { return BTreeMap::new() };
        let databases = available::process(node, inventory, self.view).databases;
        databases.into_iter().filter_map(|(osd, found)| Some((osd, found.err()?))).collect()
    }

    pub(super) fn complete(&self, node: &NodeName, work: &NodeWork, processed: &Processed) -> Next {
        let created = work.done.len();
        let message = match created {
            0 => "nothing to do".to_owned(),
            _ => format!("created OSDs on {created} disks"),
        };
        self.save(
            node,
            NodeWork {
                status: NodeStatus::Completed,
                since: self.view.seen.at,
                message,
                away_since: None,
                databases: self.no_databases(node, work),
                problems: message_of(node, work, &processed.problems),
                ..work.clone()
            },
        )
    }
}

/// Returns the problems of a node as they are stored: few and short.
pub(super) fn message_of(node: &NodeName, work: &NodeWork, problems: &[String]) -> Vec<String> {
    let left = work
        .left
        .iter()
        .map(|(disk, found)| format!("{disk} is no longer available and is left unchanged: {found}"));
    let directories = work.directories.iter().map(|(path, why)| uncleared(path, node, why));
    let short = |text: String| text.chars().take(PROBLEM_CHARS).collect();
    directories.chain(problems.iter().cloned()).chain(left).take(PROBLEMS).map(short).collect()
}
