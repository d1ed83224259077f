//! The ladder: the states that the migration of one OSD passes through.

use std::collections::BTreeSet;

use osd_migrate::domain::act::{Act, KubeAct};
use osd_migrate::domain::inspection::{Content, NodeProblem};
use osd_migrate::domain::next::Next;
use osd_migrate::domain::observation::{Daemon, SlotState};
use osd_migrate::domain::osd::{OsdFsid, OsdId};

use super::agent::{job_name, label, old_content};
use super::ids::{PGS, issued_fsid, members};
use super::osd::{daemon, metadata, states};
use super::world::World;

impl World {
    /// Returns a world in which only this OSD is selected and its record is saved.
    pub(crate) fn recorded(osd: OsdId) -> Self {
        Self::new().with(|w| w.policy.select = BTreeSet::from([osd])).saved("record")
    }

    /// Returns a world in which the first inspection has reported and its proof is saved.
    pub(crate) fn proven(osd: OsdId) -> Self {
        Self::recorded(osd).report(osd, Some(old_content(osd)), None).saved("proof")
    }

    /// Returns a world in which everything is prepared for Stop, which is the next act.
    pub(crate) fn intended(osd: OsdId) -> Self {
        Self::proven(osd).backed_up(osd).saved("stop").with_flags_set(osd).fenced(osd)
    }

    /// Saves the Deployment as found as a backup.
    pub(crate) fn backed_up(mut self, osd: OsdId) -> Self {
        let id = self.record(osd).id.clone();
        self.seen.kube.backups.insert(osd, id);
        self
    }

    /// Removes what was created for a record, which the program must want to clean up at this point.
    pub(crate) fn cleaned_up(mut self, osd: OsdId) -> Self {
        let plan = self.plan();
        assert!(
            matches!(plan, Next::Do(Act::Kube(KubeAct::CleanUp { osd: of, .. })) if of == osd),
            "{plan:?}"
        );
        self.seen.kube.backups.remove(&osd);
        self.seen.kube.reports.retain(|_, report| report.osd != osd);
        self.seen.kube.node_jobs.retain(|job| job.osd != osd);
        self
    }

    pub(crate) fn with_flags_set(mut self, osd: OsdId) -> Self {
        self.slot(osd).noout = true;
        self.slot(osd).noin = true;
        self
    }

    /// Records osd-migrate's fence and sets it.
    pub(crate) fn fenced(mut self, osd: OsdId) -> Self {
        let value = format!("osd-migrate-{}", self.record(osd).id);
        self.ledger.run.fence = Some(value.clone());
        self.ledger.run.fence_after = self.seen.kube.cluster_revision();
        (self.seen.kube.fence, self.seen.kube.fenced_at) = (Some(value), self.seen.kube.cluster_revision());
        self
    }

    /// Returns a world in which Stop was written and the daemon is still running.
    pub(crate) fn stopping(osd: OsdId) -> Self {
        let mut world = Self::intended(osd);
        let id = world.record(osd).id.clone();
        let daemon = world.daemon(osd);
        daemon.replicas = 0;
        daemon.stopped_by = Some(id);
        world.saved("down")
    }

    /// Returns a world in which the OSD is down, its pod is gone, and its PGs are reported accordingly.
    pub(crate) fn stopped(osd: OsdId) -> Self {
        Self::stopping(osd).with(|w| w.daemon(osd).pods.clear()).down(osd).reported()
    }

    /// Returns a world in which the OSD's slot is destroyed and its old data still exists.
    pub(crate) fn destroyed(osd: OsdId) -> Self {
        Self::stopped(osd).slot_destroyed(osd)
    }

    pub(crate) fn slot_destroyed(mut self, osd: OsdId) -> Self {
        let slot = self.slot(osd);
        slot.state = SlotState::Destroyed;
        slot.fsid = None;
        self.seen.ceph.auth.insert(osd, false);
        self
    }

    /// Registers the slot, as `osd new` does.
    pub(crate) fn slot_registered(mut self, osd: OsdId, fsid: OsdFsid) -> Self {
        let slot = self.slot(osd);
        slot.state = SlotState::New;
        slot.fsid = Some(fsid);
        self.seen.ceph.auth.insert(osd, true);
        self
    }

    /// Removes the slot, as a purge of the id does.
    pub(crate) fn slot_gone(mut self, osd: OsdId) -> Self {
        self.seen.ceph.slots.remove(&osd);
        self.seen.ceph.auth.insert(osd, false);
        self
    }

    /// Ends the saved rebuild: with the content of the device, the issued fsids, and the problem if any.
    pub(crate) fn rebuild_ended(
        self,
        osd: OsdId,
        content: Option<Content>,
        problem: Option<NodeProblem>,
    ) -> Self {
        self.saved("rebuild").report(osd, content, problem).report_issued(osd, [issued_fsid(osd, 1)])
    }

    /// Adds these issued fsids to the last report.
    pub(crate) fn report_issued(mut self, osd: OsdId, issued: impl Into<BTreeSet<OsdFsid>>) -> Self {
        let record = self.record(osd).clone();
        let name = job_name(&record.id, osd, record.attempt.task, record.attempt.number);
        self.seen.kube.reports.get_mut(&name).unwrap().issued = issued.into();
        self
    }

    /// Returns a world in which the rebuild succeeded and no Deployment starts the new OSD.
    pub(crate) fn prepared(osd: OsdId) -> Self {
        let fsid = issued_fsid(osd, 1);
        Self::destroyed(osd).rebuild_ended(osd, Some(label(fsid, osd, true)), None).slot_registered(osd, fsid)
    }

    /// Returns a world in which the Deployment of the new OSD exists.
    pub(crate) fn deployed(osd: OsdId) -> Self {
        Self::prepared(osd).saved("new").with(|w| {
            *w.daemon(osd) = Daemon { fsid: Some(issued_fsid(osd, 1)), activates: true, ..daemon(osd) };
        })
    }

    /// Returns a world in which the new OSD is up and empty; its PGs know it and are backfilling.
    pub(crate) fn booted(osd: OsdId) -> Self {
        let mut world = Self::deployed(osd).up(osd).reported();
        world.slot(osd).metadata = Some(metadata("bluestore", osd, false));
        for n in (0..PGS).filter(|n| members(*n).contains(&osd)) {
            let pg = world.pg(n);
            pg.state = states("active+undersized+degraded+remapped+backfilling");
            pg.acting.remove(&osd);
            pg.degraded = pg.objects;
        }
        world.saved("up")
    }

    /// Returns a world in which all data is back on the OSD.
    pub(crate) fn filled(osd: OsdId) -> Self {
        Self::booted(osd).reported()
    }
}
