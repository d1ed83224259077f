//! New OSDs, node by node: a node's disks are inventoried, then its available and selected disks become OSDs
//! one after the other, then the next node follows.
//!
//! The ledger has the state of each node, so that a run can resume after a crash.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use super::provisioner::NodeProvisioner;
use super::rest::Rest;
use super::{adopt, available, inventories, new_on_pvc, new_osd};
use crate::domain::gate::{self, Gate, Reason};
use crate::domain::guard::{Guard, passes};
use crate::domain::inventory::NodeInventory;
use crate::domain::ledger::{NodeStatus, NodeWork};
use crate::domain::next::{Next, Saving, Summary, Wait};
use crate::domain::osd::NodeName;
use crate::domain::provision::{self, Processed};
use crate::domain::step::{AWAY_MINUTES, MAX_FAILURES};
use crate::domain::view::View;

/// Inventories of a run that may be open at a time: more Jobs that do not start help nobody.
const MOST_INVENTORIES: u32 = 4;

/// Returns the next step for new OSDs; `None` if nothing is left to do, or nothing now.
pub(super) fn next(view: View<'_>, rest: &mut Rest) -> Option<Next> {
    rest.summary.skipped.extend(adopt::denied(view));
    let walk = NodeProvisioner { view };
    match walk.clean_up().or_else(|| walk.next_node())? {
        done @ (Next::Save { .. } | Next::Do(_)) => Some(done),
        wait @ (Next::Wait(_) | Next::Finished(_) | Next::Halt(_)) => {
            rest.wait.get_or_insert(wait);
            None
        }
    }
}

/// Finishes a run without new OSDs that are not confirmed.
pub(super) fn unconfirmed(view: View<'_>, rest: &mut Rest) -> Option<Next> {
    if passes(Guard::Confirmed, view.is_confirmed()) {
        return None;
    }
    let (unconfirmed_nodes, unconfirmed_pvcs) = (chosen(view), new_on_pvc::chosen(view));
    Some(Next::Finished(Summary { unconfirmed_nodes, unconfirmed_pvcs, ..rest.take_summary() }))
}

/// Returns the nodes that get new OSDs.
fn chosen(view: View<'_>) -> BTreeSet<NodeName> {
    provision::nodes(view.seen, view.policy.store_on_file).chosen.into_iter().collect()
}

/// Starts another new OSD on the current node, in parallel with those in progress there.
pub(super) fn one_more_on_its_node(view: View<'_>) -> Option<Next> {
    let walk = NodeProvisioner { view };
    // Other nodes may be at work too: they are unreachable, or their inventories have not reported.
    let is_its_node =
        |node: &NodeName| view.ledger.in_flight().all(|record| record.is_new() && record.node == *node);
    let (node, work) = walk.all_at_work().find(|(node, _)| is_its_node(node))?;
    let room = view.ledger.in_flight().count() < usize::try_from(view.policy.at_once).unwrap_or(1);
    let inventory = walk.inventory(node, work)?;
    if !(room && work.status == NodeStatus::Orchestrating) {
        return None;
    }
    // The record of a node that can take no OSD would be withdrawn and saved again without end.
    if walk.unreachable(node).is_some() || !walk.is_still_chosen(node) {
        return None;
    }
    let processed = available::process(node, inventory, view);
    let available = walk.available_disks(node, work, &processed).next()?;
    // The cluster backfills the OSDs in progress. The other gates are checked.
    match gate::begin(view) {
        Gate::Open => new_osd::record(node, available, view),
        Gate::Shut(_) | Gate::Unknown(_) => None,
    }
}

/// State of a run's knowledge of a node's disks.
pub(super) enum KnownDisks<'a> {
    /// Disks from the inventory, and the work done since.
    Disks(&'a NodeWork, &'a NodeInventory),
    /// Next step of the inventory that is needed first.
    Next(Next),
    /// Reason why the disks can't be inventoried.
    Never(String),
    /// Work of a completed node, whose inventory is deleted.
    Done(&'a NodeWork),
}

/// Returns the disks of one node from this run's inventory, for work on the node before its new OSDs are
/// created.
pub(super) fn known<'a>(node: &NodeName, view: View<'a>) -> KnownDisks<'a> {
    let walk = NodeProvisioner { view };
    let Some(work) = view.ledger.nodes.get(node).filter(|work| work.run == view.policy.run) else {
        return KnownDisks::Next(walk.begin_with(node));
    };
    match (work.status, walk.inventory(node, work)) {
        _ if work.failures >= MAX_FAILURES => KnownDisks::Never(work.message.clone()),
        // Failed inventories are deleted at once: a run may last long.
        (NodeStatus::ComputingDiff, _) => {
            KnownDisks::Next(walk.clean_up().unwrap_or_else(|| walk.inspect_disks(node, work)))
        }
        (NodeStatus::Orchestrating | NodeStatus::Completed, Some(inventory)) => {
            KnownDisks::Disks(work, inventory)
        }
        (NodeStatus::Orchestrating, None) => KnownDisks::Next(walk.inventory_again(node, work.failures)),
        (NodeStatus::Completed, None) => KnownDisks::Done(work),
    }
}

/// Winds up a run that creates no new OSDs: completes the nodes that it inventoried, and deletes their
/// inventories.
pub(super) fn wind_up(view: View<'_>, rest: &mut Rest) -> Option<Next> {
    if view.policy.makes_new() {
        return None;
    }
    if !view.is_confirmed() {
        return Some(Next::Finished(rest.take_summary()));
    }
    let finished = || Next::Finished(Summary { problems: problems_of(view), ..rest.take_summary() });
    Some(complete_all(view, &Processed::default()).unwrap_or_else(finished))
}

/// Winds up a run while Rook's operator is running: leaves the current node's disks to Rook and reports that.
///
/// Rook creates OSDs on available disks itself, and two writers on one disk are one too many. With `only_new`
/// the user wants osd-migrate to create them.
pub(super) fn leave_to_rook(view: View<'_>, rest: &mut Rest) -> Option<Next> {
    if view.seen.kube.running_operator().is_none() || view.policy.only_new {
        return None;
    }
    let problem = "Rook's operator is running, so its available disks are left to Rook".to_owned();
    let left = Processed { problems: vec![problem], ..Processed::default() };
    let finished = || {
        let (problems, left_to_rook) = (problems_of(view), chosen(view));
        let pvcs_left_to_rook = new_on_pvc::chosen(view);
        Next::Finished(Summary { pvcs_left_to_rook, problems, left_to_rook, ..rest.take_summary() })
    };
    Some(complete_all(view, &left).unwrap_or_else(finished))
}

/// Completes the node that the run is working on, then deletes the inventories.
fn complete_all(view: View<'_>, left: &Processed) -> Option<Next> {
    let walk = NodeProvisioner { view };
    let Some((node, work)) = walk.at_work() else { return walk.clean_up() };
    Some(walk.complete(node, work, left))
}

impl NodeProvisioner<'_> {
    /// Returns the step of the current node, or of the first node that this run has not inventoried.
    ///
    /// An unreachable or cordoned node does not delay the others. When no other node is left it is waited
    /// for, and finally given up for this run. An inventory that is slow does not delay them either.
    fn next_node(&self) -> Option<Next> {
        let (mut unreachable, mut inventory) = (Vec::new(), None);
        let (mut open, mut are_slow) = (0, true);
        for (node, work) in self.all_at_work() {
            if let Some(reason) = self.unreachable(node) {
                unreachable.push((node, work, reason));
                continue;
            }
            if work.away_since.is_some() {
                return Some(self.save_away(&[node], None));
            }
            let next = self.work_on(node, work);
            if !matches!(next, Next::Wait(Wait::Inventory { .. })) {
                return Some(next);
            }
            inventory = inventory.or(Some(next));
            open += 1;
            are_slow = are_slow && inventories::is_slow(node, work, self.view.seen);
        }
        if inventory.is_some() && (open >= MOST_INVENTORIES || !are_slow) {
            return inventory;
        }
        let is_new = |node: &&NodeName| {
            self.view.ledger.nodes.get(*node).is_none_or(|work| work.run != self.view.policy.run)
        };
        let nodes = provision::nodes(self.view.seen, self.view.policy.store_on_file);
        let Some(node) = nodes.chosen.iter().find(is_new) else {
            let given_up = self.give_up(unreachable);
            return match (given_up, inventory) {
                (None | Some(Next::Wait(_)), Some(inventory)) => Some(inventory),
                (given_up, _) => given_up,
            };
        };
        // An inventory changes nothing, but it starts work that a gate may suspend.
        match gate::begin(self.view) {
            Gate::Open => Some(self.begin_with(node)),
            Gate::Shut(reason) | Gate::Unknown(reason) => Some(waits(node, reason)),
        }
    }

    fn work_on(&self, node: &NodeName, work: &NodeWork) -> Next {
        match work.status {
            NodeStatus::ComputingDiff => self.inspect_disks(node, work),
            NodeStatus::Orchestrating | NodeStatus::Completed => self.orchestrate(node, work),
        }
    }

    /// Returns why nothing can be done on this node now, although other nodes can be worked on.
    fn unreachable(&self, node: &NodeName) -> Option<Reason> {
        match gate::of_node_for_new(node, self.view.seen) {
            Gate::Open => None,
            Gate::Shut(reason) | Gate::Unknown(reason) => Some(reason),
        }
    }

    /// Returns whether the owner still wants new OSDs on this node.
    fn is_still_chosen(&self, node: &NodeName) -> bool {
        passes(Guard::NodeStillChosen, chosen(self.view).contains(node))
    }

    /// Gives up a node that has been away for long; otherwise waits for the first.
    fn give_up(&self, unreachable: Vec<(&NodeName, &NodeWork, Reason)>) -> Option<Next> {
        let noted_now = unreachable.iter().filter(|(_, work, _)| work.away_since.is_none());
        let noted_now: Vec<&NodeName> = noted_now.map(|(node, ..)| *node).collect();
        if !noted_now.is_empty() {
            return Some(self.save_away(&noted_now, Some(self.view.seen.at)));
        }
        let is_lost = |work: &NodeWork| {
            work.away_since.is_some_and(|since| (self.view.seen.at - since).num_minutes() >= AWAY_MINUTES)
        };
        let lost = unreachable.iter().find(|(_, work, _)| is_lost(work));
        if let Some((node, work, reason)) = lost {
            let problems = vec![reason.to_string()];
            return Some(self.complete(node, work, &Processed { problems, ..Processed::default() }));
        }
        unreachable.into_iter().next().map(|(node, _, reason)| waits(node, reason))
    }

    /// Saves since when nodes are away: a restarted pod would wait from the beginning.
    fn save_away(&self, nodes: &[&NodeName], since: Option<DateTime<Utc>>) -> Next {
        let mut ledger = self.view.ledger.clone();
        for (_, work) in ledger.nodes.iter_mut().filter(|(node, _)| nodes.contains(node)) {
            work.away_since = since;
        }
        Next::Save { ledger, osd: None, why: Saving::Skipping }
    }

    /// Starts on a node.
    ///
    /// A recent inventory of an earlier run serves this run too.
    fn begin_with(&self, node: &NodeName) -> Next {
        match inventories::taken_over(node, self.view) {
            Some(work) => self.save(node, work),
            None => self.inventory_again(node, 0),
        }
    }

    /// Creates the node's new OSDs: first adopts OSDs that nothing starts, then takes one disk after the
    /// other.
    fn orchestrate(&self, node: &NodeName, work: &NodeWork) -> Next {
        let Some(inventory) = self.inventory(node, work) else {
            // Another client deleted the inventory's result.
            return self.inventory_again(node, work.failures);
        };
        let run = &self.view.ledger.run;
        if let Some(adopt) = adopt::next(node, inventory, self.view) {
            let gate = self.begin(gate::before_adopt(node, run, self.view.seen));
            return gate.map_or(adopt, |reason| waits(node, reason));
        }
        let processed = available::process(node, inventory, self.view);
        let Some(available) = self.available_disks(node, work, &processed).next() else {
            return self.complete(node, work, &processed);
        };
        if let Some(why) = self.view.ledger.full_of_quarantined() {
            let problems = processed.problems.iter().cloned().chain([why]).collect();
            return self.complete(node, work, &Processed { problems, ..processed });
        }
        if let Some(reason) = self.begin(gate::before_new(node, run, self.view.seen)) {
            return waits(node, reason);
        }
        // The node is Ready and not cordoned, but no longer gets new OSDs: the owner has selected other
        // nodes.
        if !self.is_still_chosen(node) {
            return self.complete(node, work, &processed);
        }
        new_osd::record(node, available, self.view).unwrap_or(Next::Wait(Wait::FreshView))
    }

    /// Returns why nothing may be started now.
    fn begin(&self, gate: Gate) -> Option<Reason> {
        let gates = [gate::begin(self.view), gate];
        gates.into_iter().find_map(|gate| match gate {
            Gate::Open => None,
            Gate::Shut(reason) | Gate::Unknown(reason) => Some(reason),
        })
    }
}

fn waits(node: &NodeName, reason: Reason) -> Next {
    Next::Wait(Wait::Node { node: node.clone(), reason })
}

/// Returns the nodes of this run with their reported problems, for the summary.
pub(super) fn problems_of(view: View<'_>) -> Vec<(String, String)> {
    let of_nodes = view.ledger.nodes.iter().filter(|(_, work)| work.run == view.policy.run);
    of_nodes
        .flat_map(|(node, work)| work.problems.iter().map(|problem| (node.to_string(), problem.clone())))
        .collect()
}

/// Returns the same problems, and what prevents new OSDs.
pub(super) fn problems(view: View<'_>) -> Vec<(String, String)> {
    let found = problems_of(view);
    let left_out = provision::nodes(view.seen, view.policy.store_on_file).left_out;
    let all: BTreeSet<_> = found.into_iter().chain(left_out).collect();
    all.into_iter().collect()
}

/// Returns the nodes of this run whose inventories failed.
pub(super) fn unseen(view: View<'_>) -> BTreeSet<NodeName> {
    let failed = |work: &NodeWork| work.run == view.policy.run && work.failures >= MAX_FAILURES;
    view.ledger.nodes.iter().filter(|(_, work)| failed(work)).map(|(node, _)| node.clone()).collect()
}
