//! Additional steps for an OSD in a directory: its id is recreated on an available disk, and the directory is
//! removed last.

use super::Step;
use crate::domain::inspection::{NodeReport, NodeTask};
use crate::domain::ledger::{Attempt, Strategy};
use crate::domain::next::{Halt, Next, Saving, TAKEN_MINUTES};
use crate::domain::osd::DeviceIdentity;
use crate::domain::phase;

impl Step<'_> {
    /// Returns the location of the old OSD's key while its data exists.
    pub(super) fn old_key(&self) -> String {
        match &self.record.strategy {
            Strategy::Directory { path, .. } => {
                format!("the key in {path}/keyring on node {}", self.record.node)
            }
            Strategy::InPlace | Strategy::New { .. } | Strategy::Removal(_) => {
                "the key on its disk".to_owned()
            }
        }
    }

    /// Halts if the slot is destroyed and the disk for the recreated OSD is no longer available.
    ///
    /// The data is intact in its directory. A person decides which of the two to fix.
    pub(super) fn disk_is_taken(&self) -> Next {
        let is_old =
            |report: &NodeReport| (self.view.seen.at - report.ended_at).num_minutes() >= TAKEN_MINUTES;
        let (record, failures) = (self.record, self.max_failures() - 1);
        if self.report().is_none_or(is_old) {
            return self.save(Saving::Attempt { task: NodeTask::Inspect, after: None }, |record| {
                let number = record.attempt.number + 1;
                // One more inspection, not several.
                record.attempt = Attempt { failures, ..Attempt::inspect(number) };
            });
        }
        Next::Halt(Halt::DiskTaken {
            osd: record.osd,
            old: record.old,
            key: self.old_key(),
            node: record.node.clone(),
            disk: record.device().map(DeviceIdentity::stable_name).unwrap_or_default(),
            found: self.found_on_disk(),
        })
    }

    /// Removes the old directory after the new OSD has all its data.
    ///
    /// Nothing else is left then.
    ///
    /// If the directory can't be removed, the OSD is finished nevertheless (ADR 0015): the directory is
    /// reported and left to a person.
    pub(super) fn clear(&self) -> Next {
        if let Some(next) = self.let_go() {
            return next;
        }
        let is_asked_for = self.record.attempt.task == NodeTask::Clear;
        if is_asked_for && !phase::is_created(self.record, self.view.seen) {
            return self.make_agent(NodeTask::Clear);
        }
        match self.report() {
            Some(NodeReport { problem: None, .. }) if is_asked_for => {
                self.save(Saving::Closing, |record| record.closing = true)
            }
            Some(_) | None if is_asked_for && self.failed_too_often() => {
                self.leave_directory(self.agent_trouble())
            }
            Some(_) | None => self.save_attempt(NodeTask::Clear),
        }
    }

    /// Returns whether only this task is missing, the removal of the old directory: the new OSD is up.
    pub(super) fn lacks_only(&self, task: NodeTask) -> bool {
        let serves = self.facts.up && self.record.down_since.is_none();
        task == NodeTask::Clear && self.record.is_in_directory() && serves
    }

    pub(super) fn leave_directory(&self, why: String) -> Next {
        let Strategy::Directory { path, .. } = &self.record.strategy else { return self.close() };
        let node = &self.record.node;
        let saving = Saving::Uncleared { path: path.clone(), node: node.clone(), why: why.clone() };
        let next = self.save(saving, |record| record.closing = true);
        let Next::Save { mut ledger, osd, why: saving } = next else { return next };
        if let Some(work) = ledger.nodes.get_mut(node) {
            work.directories.insert(path.clone(), why);
        }
        Next::Save { ledger, osd, why: saving }
    }
}
