//! Stopped OSDs on PersistentVolumeClaims whose agents can't run, because their node is lost.

use chrono::TimeDelta;

use super::Step;
use crate::domain::next::{Next, Wait};

/// Hours since the last step for a stopped OSD in which the node of its agents may be lost.
///
/// A reboot with a check of the memory or an update of the firmware takes less. By then Ceph heals without
/// the OSD, and the run goes on with others.
const LOST_HOURS: i64 = 1;

impl Step<'_> {
    /// Returns whether the OSD is stopped, and its agents can't run on their node, which is not Ready.
    ///
    /// Only a PersistentVolume that can be attached to another node needs this: the attempts would fail, and
    /// no agent may run elsewhere, because the issued fsids are on the disk of the recorded node.
    fn is_node_lost(&self) -> bool {
        let (record, node) = (self.record, &self.record.node);
        let is_ready = self.view.node(node).is_some_and(|node| node.ready);
        let is_pinned = self.view.node_of(record.osd) == Some(node);
        record.down_since.is_some() && record.pvcs.is_some() && !is_pinned && !is_ready
    }

    /// Returns whether the OSD is not to wait for the lost node of its agents any longer.
    ///
    /// An agent that has not started must not wipe the old data when the node is back, so it is dropped.
    pub(super) fn is_node_given_up(&self) -> bool {
        let since = self.record.saved_at.max(self.record.down_since);
        let is_over = since.is_some_and(|since| self.view.seen.at - since >= TimeDelta::hours(LOST_HOURS));
        self.is_node_lost() && is_over
    }

    /// Returns a wait if the OSD is stopped, and its agents can't run on their node, which is not Ready.
    ///
    /// The OSD is given up after [`LOST_HOURS`].
    pub(super) fn waits_for_node(&self) -> Option<Next> {
        let (record, node) = (self.record, &self.record.node);
        if !self.is_node_lost() {
            return None;
        }
        if !self.is_node_given_up() {
            return Some(Next::Wait(Wait::AgentNodeLost { osd: record.osd, node: node.clone() }));
        }
        Some(self.quarantine(format!(
            "it is stopped, and its agents run on node {node} only, which is not Ready or no longer exists: that node \
             has the list of the fsids that were issued for it"
        )))
    }
}
