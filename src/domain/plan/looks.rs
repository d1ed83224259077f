//! Looks at the disks of a node, from the one that is asked for to what it found. They outlive the run that asked: a Job that is
//! replaced again and again would else begin each time with the first node (ADR 0024).

use chrono::{DateTime, Utc};

use super::free;
use super::nodes::{self, Walk};
use crate::domain::inventory::NodeInventory;
use crate::domain::ledger::{Ledger, NodeStatus, NodeWork};
use crate::domain::next::{Next, Wait};
use crate::domain::observation::{JobState, Observation};
use crate::domain::osd::NodeName;
use crate::domain::policy::Policy;
use crate::domain::step::{MAX_FAILURES, SILENT_MINUTES, START_MINUTES};

/// Minutes for which what a look found serves the next run. What changed on a disk meanwhile is found by the agent, which proves the
/// disk again before it writes.
pub(super) const YOUNG_MINUTES: i64 = 10;

/// Returns the work of an earlier run on a node as this run's own, if its look is young: under way, or reported lately.
pub(super) fn taken_over(
    policy: &Policy,
    ledger: &Ledger,
    node: &NodeName,
    seen: &Observation,
) -> Option<NodeWork> {
    let work = ledger.nodes.get(node).filter(|work| work.run != policy.run)?;
    let look = free::look_of(node, work, seen).filter(|_| work.status != NodeStatus::Completed)?;
    let is_young = |at: DateTime<Utc>| (seen.at - at).num_minutes() < YOUNG_MINUTES;
    let serves = match &look.report {
        Some(report) => report.inventory.is_some() && is_young(report.ended_at),
        None => {
            matches!(look.state, Some(JobState::Waiting | JobState::Running)) && is_young(look.created_at)
        }
    };
    let looked_by = Some(work.look_run().to_owned());
    serves.then(|| NodeWork { run: policy.run.clone(), looked_by, ..work.clone() })
}

impl Walk<'_> {
    /// Its disks are being looked at.
    pub(super) fn look(&self, node: &NodeName, work: &NodeWork) -> Next {
        let Some(look) = free::look_of(node, work, self.seen) else { return self.make_look(node, work) };
        if let Some(report) = &look.report {
            return match (&report.inventory, &report.problem) {
                (Some(inventory), _) => self.looked(node, work, inventory),
                (None, problem) => {
                    self.look_failed(node, work, problem.as_deref().unwrap_or("no reason is known"))
                }
            };
        }
        let minutes = |since: DateTime<Utc>| (self.seen.at - since).num_minutes();
        let trouble = look.trouble.as_deref();
        match look.state {
            None => self.make_look(node, work),
            Some(JobState::Waiting) if minutes(look.created_at) >= START_MINUTES => {
                self.look_failed(node, work, trouble.unwrap_or("its pod does not start"))
            }
            Some(JobState::Running)
                if minutes(look.heartbeat_at.unwrap_or(look.created_at)) >= SILENT_MINUTES =>
            {
                self.look_failed(node, work, "its agent is silent")
            }
            Some(JobState::Ended) => self.look_failed(node, work, trouble.unwrap_or("it left no report")),
            Some(JobState::Waiting | JobState::Running) => {
                Next::Wait(Wait::Look { node: node.clone(), trouble: look.trouble.clone() })
            }
        }
    }

    fn make_look(&self, node: &NodeName, work: &NodeWork) -> Next {
        // The look of an earlier run is gone: this run asks for its own.
        if work.looked_by.is_some() {
            return self.look_anew(node, work.failures);
        }
        Next::Do(nodes::look(self.policy, node, work.look, self.seen))
    }

    /// A node that can't be looked at again and again is left out; the others go on.
    fn look_failed(&self, node: &NodeName, work: &NodeWork, why: &str) -> Next {
        if work.failures + 1 < MAX_FAILURES {
            return self.look_anew(node, work.failures + 1);
        }
        let why = format!("its disks could not be looked at {MAX_FAILURES} times, the last time: {why}");
        self.save(
            node,
            NodeWork {
                status: NodeStatus::Completed,
                since: self.seen.at,
                message: why.clone(),
                failures: MAX_FAILURES,
                problems: vec![why],
                ..work.clone()
            },
        )
    }

    fn looked(&self, node: &NodeName, work: &NodeWork, inventory: &NodeInventory) -> Next {
        let processed = free::process(self.policy, node, inventory, self.seen);
        let new = self.vacancies(node, work, &processed).count();
        self.save(
            node,
            NodeWork {
                status: NodeStatus::Orchestrating,
                since: self.seen.at,
                message: format!("{new} disks to be made OSDs"),
                failures: 0,
                problems: nodes::told(node, work, &processed.problems),
                ..work.clone()
            },
        )
    }
}
