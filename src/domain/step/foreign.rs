//! Foreign objects that osd-migrate did not create: inspected again, then the OSD is quarantined.

use super::Step;
use crate::domain::inspection::{Content, NodeTask};
use crate::domain::next::Next;
use crate::domain::observation::{Daemon, SlotState};
use crate::domain::osd::{OsdFsid, OsdId};
use crate::domain::phase::{self, DiskFact, SlotFact};

impl Step<'_> {
    /// Inspects a device again before the OSD is quarantined: a missing or unknown device may be a loose
    /// cable or a bad read.
    ///
    /// Another foreign object (slot, Deployment, OSD of another id) is not a read error.
    pub(super) fn see_again(&self) -> Next {
        let is_the_device = self.is_not_found() && self.facts.slot != SlotFact::Other;
        let is_stopped = self.facts.slot == SlotFact::Old && self.facts.stopped;
        // The OSD is intact in its directory, whatever is on the disk that it was to go to.
        if is_stopped && self.facts.directory {
            return self.restart();
        }
        // Another inspection would find the same.
        if let Some(why) = self.foreign_data().filter(|_| !is_stopped) {
            return self.quarantine(why);
        }
        if is_the_device && !self.failed_too_often() {
            return self.save_attempt(NodeTask::Inspect);
        }
        // The OSD is stopped, but nothing is lost yet: it is started again first, and quarantined afterwards.
        if is_the_device && is_stopped {
            return self.restart();
        }
        if is_the_device && self.facts.directory && self.facts.slot == SlotFact::Destroyed {
            return self.disk_is_taken();
        }
        let why = self.lost_disk().unwrap_or_else(|| self.foreign());
        self.quarantine(why)
    }

    /// Describes a disk that no agent finds on its node any more.
    ///
    /// Returns `None` if one was found, or if the id was given to another OSD.
    fn lost_disk(&self) -> Option<String> {
        let report = phase::last_inspection(self.record, self.view.seen)?;
        let Content::NotFound { inspected } = &report.inspection.as_ref()?.content else { return None };
        let (OsdId(id), node) = (self.record.osd, &self.record.node);
        let is_on_disk = self.record.pvcs.is_none() && self.facts.slot != SlotFact::Other;
        // `remove` accepts an OSD in quarantine only while it is dead.
        let can_be_removed =
            self.view.slot(self.record.osd).is_some_and(|slot| self.record.dead_in(slot).is_some());
        let removal = if can_be_removed {
            format!("; if it is dead, remove the OSD: osd-migrate -n NAMESPACE remove osd.{id}")
        } else {
            String::new()
        };
        is_on_disk.then(|| {
            format!(
                "its disk was not found on node {node}: {inspected}. If the disk is intact, put it back, then: \
                 osd-migrate -n NAMESPACE retry osd.{id}{removal}"
            )
        })
    }

    /// Returns whether the device does not contain the OSD, or its directory does not, if it is in one.
    pub(super) fn is_not_found(&self) -> bool {
        let facts = &self.facts;
        let no_directory = facts.directory && facts.disk == DiskFact::Blank && facts.slot == SlotFact::Old;
        facts.disk == DiskFact::Other || no_directory
    }

    /// Describes the contents of the device.
    pub(super) fn found_on_disk(&self) -> String {
        phase::last_inspection(self.record, self.view.seen)
            .and_then(|report| report.inspection.as_ref())
            .map_or_else(|| "not inspected".to_owned(), |inspection| inspection.content.to_string())
    }

    /// Describes the foreign objects that osd-migrate did not create.
    pub(super) fn foreign(&self) -> String {
        let slot = match self.view.slot(self.record.osd) {
            None => "absent".to_owned(),
            Some(slot) if slot.up && slot.state == SlotState::Destroyed => self.revived(),
            Some(slot) => match slot.fsid {
                Some(fsid) => format!("{fsid}"),
                None => "destroyed".to_owned(),
            },
        };
        let disk = self.found_on_disk();
        let daemon = self.view.daemon(self.record.osd).map(|daemon: &Daemon| daemon.fsid);
        let starts = match daemon {
            None => "no Deployment".to_owned(),
            Some(None) => "a Deployment without an fsid".to_owned(),
            Some(Some(fsid)) => format!("a Deployment that starts {fsid}"),
        };
        let issued: Vec<String> =
            phase::issued_of(self.record, self.view.seen).iter().map(OsdFsid::to_string).collect();
        let ours = if issued.is_empty() { "none".to_owned() } else { issued.join(", ") };
        format!(
            "the cluster differs from the record: device {disk}, {starts}; recorded fsid {}, issued fsids: \
             {ours}; slot {slot}. See: ceph osd tree; kubectl -n NAMESPACE get configmap osd-migrate-ledger \
             -o yaml{}",
            self.record.old,
            self.way_to_zap()
        )
    }

    /// Describes an OSD that another client gave a new key and started, although its slot is destroyed.
    pub(super) fn revived(&self) -> String {
        format!(
            "destroyed, but up: another client gave the OSD a new key and started it. To resume: kubectl -n \
             NAMESPACE scale deployment rook-ceph-osd-{0} --replicas=0; ceph auth rm osd.{0}; osd-migrate \
             -n NAMESPACE retry osd.{0}",
            self.record.osd.0
        )
    }

    /// Returns the command for a person if the old data is gone and the disk has other contents since.
    ///
    /// Once the disk is blank, osd-migrate uses it again.
    pub(super) fn way_to_zap(&self) -> String {
        let issued = phase::issued_of(self.record, self.view.seen);
        let is_awaited = self.facts.slot == SlotFact::Destroyed && self.facts.disk == DiskFact::Other;
        let by_id = self.record.device().and_then(|device| device.by_id.first());
        let Some(by_id) = by_id.filter(|_| is_awaited && !issued.is_empty()) else { return String::new() };
        format!(
            ". Its old data is gone. If nothing on the disk is needed, make the disk blank, on node {} in \
             Ceph's image: ceph-volume lvm zap /dev/disk/by-id/{by_id}",
            self.record.node
        )
    }
}
