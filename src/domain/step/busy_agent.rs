//! Attempts that found another agent of the OSD at work: its Job has ended, its process has not.

use std::cmp::Reverse;

use chrono::{DateTime, TimeDelta, Utc};

use super::Step;
use super::agents::SILENT_MINUTES;
use crate::domain::guard::{Guard, is_out};
use crate::domain::inspection::{NodeProblem, NodeReport, NodeTask};
use crate::domain::next::{Next, Wait};

/// Minutes until the next attempt after an agent found another agent at work.
///
/// An agent takes seconds, a frozen one hours.
const BUSY_MINUTES: i64 = 1;

impl Step<'_> {
    /// Returns the next step if the last agent found another one at work; `None` if the next attempt is due.
    ///
    /// That agent may be frozen for hours, so the next Job is not created every few seconds. A process that
    /// hangs in the kernel never ends: as an agent that is silent, it is given up.
    pub(super) fn while_busy(&self, task: NodeTask) -> Option<Next> {
        let report = self.report()?;
        let Some(NodeProblem::Busy(why)) = &report.problem else { return None };
        let (osd, node) = (self.record.osd, self.record.node.clone());
        let wait = Wait::AgentBusy { osd, node, why: why.clone() };
        let is_over = self.busy_since().is_some_and(|since| self.view.seen.at - since >= self.patience(task));
        if is_over && !is_out(Guard::FailuresEnd) {
            let why = wait.to_string();
            return Some(if self.lacks_only(task) {
                self.leave_directory(why)
            } else {
                self.quarantine(why)
            });
        }
        let is_recent = (self.view.seen.at - report.ended_at).num_minutes() < BUSY_MINUTES;
        is_recent.then_some(Next::Wait(wait))
    }

    /// Returns how long another agent may be at work: a moment before the stop, and after it as long as an
    /// agent may be silent.
    fn patience(&self, task: NodeTask) -> TimeDelta {
        if task == NodeTask::Inspect && self.record.down_since.is_none() {
            return TimeDelta::minutes(SILENT_MINUTES);
        }
        self.view.policy.limits.noout * 2
    }

    /// Returns the end of the first attempt from which on each one found another agent at work.
    fn busy_since(&self) -> Option<DateTime<Utc>> {
        let all = self.view.seen.kube.reports.values();
        let mut reports: Vec<&NodeReport> = all.filter(|report| report.record == self.record.id).collect();
        reports.sort_by_key(|report| Reverse(report.attempt));
        let is_busy = |report: &&&NodeReport| matches!(report.problem, Some(NodeProblem::Busy(_)));
        reports.iter().take_while(is_busy).last().map(|report| report.ended_at)
    }
}
