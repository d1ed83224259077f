//! Steps of an OSD that is removed, after it is empty and destroyed: its disk, its id, its Deployment, and
//! the request.

use chrono::{DateTime, Utc};

use super::Step;
use super::destroyed::UNSAFE_MINUTES;
use super::later_stop::can_be_stopped_later;
use crate::domain::act::{Act, CephAct, KubeAct};
use crate::domain::gate::{self, Gate, Reason};
use crate::domain::inspection::NodeTask;
use crate::domain::ledger::Strategy;
use crate::domain::next::{Next, Saving, Wait};
use crate::domain::observation::Slot;
use crate::domain::phase::{self, DiskFact};
use crate::domain::policy::Accepted;
use crate::domain::provision;
use crate::domain::removal::DiskAfter;

/// Minutes after the last save for which the removal of an empty CRUSH host is tried.
///
/// A mon that is elected answers within seconds. What else refuses it stays: a rule, for example.
const HOST_MINUTES: i64 = 3;

impl Step<'_> {
    /// Returns the gate before the CRUSH weight is set to 0.
    pub(super) fn gates_of_removal(&self, accepted: &Accepted) -> Gate {
        let (record, seen) = (self.record, self.view.seen);
        let disk = record.removal().map(|removal| removal.disk).unwrap_or_default();
        gate::first_of([
            can_be_stopped_later(record.osd, true, self.view),
            gate::removable(record.osd, false, seen),
            gate::fits_place(record.osd, disk, seen),
            self.still_selected(),
            self.view.our_fence().map_or_else(|| gate::migrates_none(self.view), |_| Gate::Open),
            gate::before_drop_weight(record.osd, &record.node, &self.view.ledger.run, accepted, seen),
        ])
    }

    /// Returns who restored the CRUSH weight, and what to do if it is a running Rook.
    pub(super) fn weight_was_restored(&self) -> String {
        let why = "another client restored its CRUSH weight while it was emptied";
        match gate::weights_not_reset(&self.view.ledger.run, self.view.seen) {
            Gate::Shut(reason) => format!("{why}. {reason}"),
            Gate::Open | Gate::Unknown(_) => why.to_owned(),
        }
    }

    /// Returns the gate that is shut if the CephCluster selects the disk, so that Rook or a later run would
    /// make it an OSD again.
    fn still_selected(&self) -> Gate {
        let record = self.record;
        let inspection =
            phase::last_inspection(record, self.view.seen).and_then(|report| report.inspection.as_ref());
        let is_marked = record.removal().is_some_and(|removal| removal.disk == DiskAfter::Mark);
        let Some(kernel) =
            inspection.and_then(|inspection| inspection.kernel.as_ref()).filter(|_| !is_marked)
        else {
            return Gate::Open;
        };
        match provision::selects(&record.node, kernel, self.view.seen) {
            None => Gate::Open,
            Some(selected) => Gate::Shut(Reason::StillSelected {
                osd: record.osd,
                node: record.node.clone(),
                whole_node: record.removal().is_some_and(|removal| removal.whole_node),
                disk: kernel.node.clone(),
                selected,
            }),
        }
        .guarded()
    }

    /// Returns whether the OSD went down while it was emptied, no PG needs it by now, and its pod can end.
    pub(super) fn died_empty(&self) -> bool {
        let (record, ceph) = (self.record, &self.view.seen.ceph);
        let gets_data = self.view.slot(record.osd).is_none_or(Slot::gets_data);
        let is_empty = !gets_data && gate::emptied(record.osd, ceph) == Gate::Open;
        let can_end = || gate::node_answers(record.osd, self.view.seen) == Gate::Open;
        self.facts.removal && !self.facts.up && is_empty && can_end()
    }

    /// Saves that the OSD is removed as a dead one.
    pub(super) fn goes_on_as_dead(&self) -> Next {
        let at = self.view.seen.at;
        let why = "the OSD went down while it was emptied".to_owned();
        self.save(Saving::DiskLeft { why }, |record| {
            record.note_dead(at);
            record.blocked_since = None;
        })
    }

    /// Wipes the disk of the destroyed OSD, or deletes its directory, then purges the id.
    ///
    /// The data is elsewhere: a disk that can't be wiped is left and reported, and the id is purged all the
    /// same.
    pub(super) fn removing(&self) -> Next {
        let Some(removal) = self.record.removal() else { return Next::Wait(Wait::FreshView) };
        if removal.disk == DiskAfter::Leave || removal.left.is_some() || self.is_wiped(removal.disk) {
            if removal.keep_id {
                return self.removed();
            }
            let (osd, record) = (self.record.osd, self.record.id.clone());
            return self.fenced(Act::Ceph(CephAct::Purge { osd, record }));
        }
        match self.facts.disk {
            // The agent proves the directory again before it deletes anything.
            _ if removal.directory.is_some() => self.wipe(),
            DiskFact::Old | DiskFact::Tombstone | DiskFact::Unseen => self.wipe(),
            DiskFact::Unfinished
            | DiskFact::Finished
            | DiskFact::Misplaced
            | DiskFact::Blank
            | DiskFact::Other => self.leave_its_disk(&format!("it carries {}", self.found_on_disk())),
        }
    }

    /// Returns the task of the agent that ends the old data: a directory is deleted, a disk wiped.
    fn last_task(&self) -> NodeTask {
        if self.record.removed_directory().is_some() { NodeTask::Clear } else { NodeTask::Wipe }
    }

    /// Returns whether the last agent has wiped the disk, or the disk is blank as it is to be.
    fn is_wiped(&self, disk: DiskAfter) -> bool {
        let task = self.last_task();
        let is_done = self.report().is_some_and(|report| report.task == task && report.problem.is_none());
        is_done || (disk == DiskAfter::Wipe && self.facts.disk == DiskFact::Blank)
    }

    fn wipe(&self) -> Next {
        if self.failed_too_often() {
            return self.leave_its_disk(&self.last_trouble());
        }
        let (record, seen) = (self.record, self.view.seen);
        match gate::before_last_wipe(record.osd, &record.node, &self.view.ledger.run, seen) {
            Gate::Open => self.agent(self.last_task()),
            Gate::Shut(reason) | Gate::Unknown(reason) => self.wipe_waits(reason),
        }
    }

    /// Waits for the gate of the wipe up to a limit: the OSD is gone either way.
    fn wipe_waits(&self, reason: Reason) -> Next {
        let Some(since) = self.record.wipe_blocked_since else { return self.note_wipe_blocked() };
        if (self.view.seen.at - since).num_minutes() >= UNSAFE_MINUTES {
            return self.leave_its_disk(&reason.to_string());
        }
        Next::Wait(Wait::Gate { osd: self.record.osd, reason })
    }

    /// Saves that the disk keeps what is on it.
    fn leave_its_disk(&self, why: &str) -> Next {
        let why = why.to_owned();
        self.save(Saving::DiskLeft { why: why.clone() }, |record| {
            if let Strategy::Removal(removal) = &mut record.strategy {
                removal.left = Some(why);
            }
        })
    }

    /// Deletes what is left of an OSD whose id is purged, or kept for a new disk.
    ///
    /// That is its Deployment, and the request.
    pub(super) fn removed(&self) -> Next {
        let (record, osd) = (self.record, self.record.osd);
        if let Some(daemon) = self.view.daemon(osd) {
            // A Deployment that another client scaled up keeps the mark of osd-migrate.
            if !self.facts.stopped || daemon.replicas > 0 {
                return self.quarantine(format!(
                    "it is destroyed, and another client changed its Deployment. Delete the Deployment: kubectl -n \
                     NAMESPACE delete deployment {}; then: osd-migrate -n NAMESPACE retry {osd}",
                    daemon.name
                ));
            }
            if self.facts.pod {
                return Next::Wait(self.wait_for_its_pod());
            }
            return self.fenced(Act::Kube(KubeAct::DropDeployment {
                osd,
                record: record.id.clone(),
                deployment: daemon.uid.clone(),
                generation: daemon.generation,
            }));
        }
        if let Some(host) = self.host_to_remove() {
            if self.is_host_refused() {
                return self.save(Saving::HostLeft { host }, |record| {
                    if let Strategy::Removal(removal) = &mut record.strategy {
                        removal.whole_node = false;
                    }
                });
            }
            return Next::Do(Act::Ceph(CephAct::RemoveHost { osd, record: record.id.clone(), host }));
        }
        if self.view.seen.kube.requests.of(osd, record.old).is_some() {
            return Next::Do(Act::Kube(KubeAct::DropRequest { osd, fsid: record.old }));
        }
        self.let_go().unwrap_or_else(|| self.save(Saving::Removed, |record| record.closing = true))
    }

    /// Returns whether Ceph has refused for some time to remove the CRUSH host.
    ///
    /// The fence stays until the record closes, so Rook must not wait for it.
    fn is_host_refused(&self) -> bool {
        let is_late = |at: DateTime<Utc>| (self.view.seen.at - at).num_minutes() >= HOST_MINUTES;
        self.view.seen.failed.contains(self.record.osd) && self.record.saved_at.is_some_and(is_late)
    }

    /// Returns the CRUSH host of a node that is removed as a whole, if its last OSD is gone.
    fn host_to_remove(&self) -> Option<String> {
        self.record.removal().filter(|removal| removal.whole_node)?;
        let host = self.record.crush.host()?;
        self.view.seen.ceph.empty_hosts.contains(host).then(|| host.clone())
    }
}
