//! Steps from the finished new OSD to the closed record.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use super::Step;
use crate::domain::act::{Act, CephAct, Deploy, Fresh, KubeAct, SourceDeployment};
use crate::domain::batch;
use crate::domain::classify;
use crate::domain::expect::{self, Lost};
use crate::domain::gate::{self, Gate};
use crate::domain::guard::{Guard, is_out, passes};
use crate::domain::inspection::{KernelDisk, Volume};
use crate::domain::ledger::{Ledger, NodeStatus, Record, Strategy};
use crate::domain::next::{Next, Saving, Wait};
use crate::domain::observation::{JobState, Slot};
use crate::domain::osd::{DeviceIdentity, Epoch, Kind, Mode, OsdFsid, pvc};
use crate::domain::phase::{self, SlotFact};
use crate::domain::temporary::{drains, flags, marked_out};
use crate::domain::{places, provision};

/// Flags of the whole osdmap that prevent data from moving to an OSD.
///
/// `norebalance` affects only data without missing replicas.
pub(super) const HOLDS_UP_DATA: [&str; 3] = ["norecover", "nobackfill", "norebalance"];

/// Restarts of a new OSD's pod after which waiting longer does not help.
pub const MAX_RESTARTS: u32 = 3;

/// File of a node's OSD for tests, as its pod sees it: below `dataDirHostPath`, which Rook mounts there.
pub const ON_FILE: &str = "/var/lib/rook/osd-migrate/osd-on-file.img";

impl Step<'_> {
    pub(super) fn deploy(&self) -> Next {
        let record = self.record;
        let (Some(fsid), Some(evidence)) = (self.slot_fsid(), &record.evidence) else {
            return Next::Wait(Wait::FreshView);
        };
        let issued = phase::issued_of(record, self.view.seen);
        if !passes(Guard::NewSavedFirst, record.new == Some(fsid)) {
            return self.save(Saving::New, |record| {
                (record.new, record.issued, record.blocked_since) = (Some(fsid), issued, None);
            });
        }
        // The pod would change what is on another device.
        if let Gate::Shut(reason) = gate::same_pvc(record, self.view.seen) {
            return self.quarantine(reason.to_string());
        }
        if let Some(next) = self.set_osd_flags().filter(|_| !self.facts.up) {
            return next;
        }
        if let Some(next) = self.weigh() {
            return next;
        }
        if let Some(next) = self.leave_to_rook() {
            return next;
        }
        let inspection =
            phase::last_inspection(record, self.view.seen).and_then(|report| report.inspection.as_ref());
        let volume = inspection.and_then(|inspection| inspection.volume.clone());
        let kernel = inspection.and_then(|inspection| inspection.kernel.as_ref());
        let needs_kernel_name = inspection
            .is_some_and(|inspection| classify::lists_no_links(&inspection.capability.ceph_version));
        let named = (kernel, needs_kernel_name);
        let Some(block_path) = block_path(record, &evidence.device, volume.as_ref(), named) else {
            return self.quarantine("its agent reported no path of its device".to_owned());
        };
        let deploy = self.deployment(fsid, block_path, volume, kernel);
        if record.pvcs.is_some() && deploy.fresh.as_ref().is_some_and(|fresh| fresh.source.is_none()) {
            return self.quarantine(
                "its device set has no other OSD from whose Deployment that of this one could be made. Let Rook's \
                 operator run: it finds the OSD on its PVC, and creates the Deployment"
                    .to_owned(),
            );
        }
        self.fenced(Act::Kube(KubeAct::Deploy(deploy)))
    }

    /// Returns the data from which the Deployment of the new OSD is rendered.
    pub(super) fn deployment(
        &self,
        fsid: OsdFsid,
        block_path: String,
        volume: Option<Volume>,
        kernel: Option<&KernelDisk>,
    ) -> Deploy {
        let (record, osd) = (self.record, self.record.osd);
        let (initial_weight, on_file) = match &record.strategy {
            Strategy::InPlace | Strategy::Directory { .. } | Strategy::Removal(_) => (None, false),
            Strategy::New { initial_weight, on_file } => (*initial_weight, *on_file),
        };
        let there = self.view.daemon(osd);
        let replaces = there.map(|daemon| (daemon.uid.clone(), daemon.generation));
        Deploy {
            osd,
            record: record.id.clone(),
            fsid,
            node: record.node.clone(),
            block_path,
            store: record.target.store.to_string(),
            crush: record.crush.clone(),
            layout: record.target.clone(),
            db_path: volume.as_ref().and_then(|volume| volume.db_path.clone()),
            wal_path: volume.and_then(|volume| volume.wal_path),
            initial_weight,
            device_type: kernel
                .filter(|_| record.target.mode == Mode::Raw)
                .map(|disk| disk.device_type.clone()),
            on_file,
            fresh: record.is_new().then(|| Fresh { replaces, source: self.source() }),
            pvcs: record.pvcs.clone(),
        }
    }

    /// Returns the Deployment from which that of a new OSD on PVCs is made.
    fn source(&self) -> Option<SourceDeployment> {
        let pvcs = self.record.pvcs.as_ref().filter(|_| self.record.is_new())?;
        let set = self.view.seen.kube.pvcs.get(&pvcs.data.name)?.set.as_deref()?;
        let (db, wal) = (pvcs.db.is_some(), pvcs.wal.is_some());
        let wanted = places::Wanted { set, encrypted: self.record.target.encrypted, db, wal };
        places::source(wanted, Some(self.record.osd), true, self.view.seen)
    }

    /// Sets the weight of the new disk's size before the OSD is started, so that data moves only once.
    ///
    /// A weight that was set externally stays.
    fn weigh(&self) -> Option<Next> {
        let record = self.record;
        let found = self.view.slot(record.osd)?.crush.as_ref();
        let lost = expect::to_restore(&record.crush, record.former_weight, found);
        (!passes(Guard::WeighedFirst, lost != Ok(Lost::Weight))).then(|| self.restore_crush())
    }

    pub(super) fn starting(&self) -> Next {
        let osd = self.record.osd;
        let Some(daemon) = self.view.daemon(osd) else {
            return Next::Wait(Wait::FreshView);
        };
        if self.is_late_to_start() {
            return self.quarantine(self.late(daemon));
        }
        if daemon.replicas == 0 {
            return Next::Wait(Wait::NotOurStop { osd });
        }
        // A taint was added after its Deployment was created: its pod would wait for ever.
        let node_object = self.view.node_of(osd).and_then(|node| self.view.node(node));
        let add =
            node_object.map(|node_object| provision::missing_tolerations(&daemon.tolerations, node_object));
        if let Some(add) = add.filter(|add| !add.is_empty()) {
            return Next::Do(Act::Kube(KubeAct::Tolerate {
                osd,
                deployment: daemon.uid.clone(),
                generation: daemon.generation,
                add,
                precondition: None,
            }));
        }
        let trouble = daemon.trouble();
        if self.counted_restarts() >= MAX_RESTARTS {
            return self.quarantine(format!(
                "its new daemon does not stay up: {}. See: kubectl -n NAMESPACE logs deployment/{} \
                 --all-containers",
                trouble.as_deref().unwrap_or("no reason is known"),
                daemon.name
            ));
        }
        Next::Wait(Wait::Up { osd, trouble: trouble.or_else(|| self.kept_down()) })
    }

    pub(super) fn settling(&self) -> Next {
        let osd = self.record.osd;
        if let Some(next) = self.let_go() {
            return next;
        }
        // An OSD that was marked out externally stays out, and is reported. It has no PG while it is out, so
        // no PG could prove that it serves again.
        let slot = self.view.slot(osd);
        if let Some(slot) = slot.filter(|slot| phase::is_marked_out_externally(self.record, slot)) {
            let was_in = self.record.up_seen.is_some_and(|(epoch, _)| epoch == slot.up_from);
            let mark_in = (!was_in).then(|| marked_out::restore_of(self.record, self.view)).flatten();
            return mark_in.unwrap_or_else(|| self.is_out(slot));
        }
        if let Some(next) = self.note_up().or_else(|| self.restore_upmaps()) {
            return next;
        }
        let unclean =
            self.view.seen.ceph.pgs.values().filter(|pg| pg.up.contains(&osd) && !gate::is_clean(pg));
        let (mut pgs, mut lacking, mut bytes) = (0, 0, 0);
        let mut states = BTreeSet::new();
        for pg in unclean {
            pgs += 1;
            states.insert(gate::state_text(pg));
            lacking += pg.degraded + pg.misplaced;
            let copies = (pg.degraded + pg.misplaced).min(pg.objects);
            bytes += pg.bytes.checked_div(pg.objects).unwrap_or(0) * copies;
        }
        let moved = gate::moved_unclean(osd, self.record.held_pgs(), &self.view.seen.ceph);
        if let Some((pg, found)) = moved.filter(|_| pgs == 0 && self.record.is_in_directory()) {
            let reason = gate::Reason::RemappedPgNotClean { pg: *pg, state: gate::state_text(found) };
            return Next::Wait(Wait::Gate { osd, reason });
        }
        let flags = HOLDS_UP_DATA.iter().filter(|flag| self.view.seen.ceph.flags.contains(**flag));
        let flags = flags.map(|flag| (*flag).to_owned()).collect();
        Next::Wait(Wait::ActiveClean { osd, pgs, objects: lacking, bytes, states, flags })
    }

    /// Handles a new OSD that is up and out.
    ///
    /// If the mons marked it out while its `noout` was lifted, it is marked in again. Otherwise another
    /// client marked it out.
    fn is_out(&self, slot: &Slot) -> Next {
        let (osd, record) = (self.record.osd, self.record);
        let wait = Wait::MarkedOutExternally { osd, reweight: record.reweight };
        if let (true, true, Some(fsid)) = (slot.auto_out, record.noout_lifted, slot.fsid) {
            return Next::Do(Act::Ceph(CephAct::TakeIn { osd, fsid, reweight: record.reweight }));
        }
        let Some(since) = record.blocked_since else {
            return self.note_blocked();
        };
        if self.view.seen.at - since < self.view.policy.limits.start {
            return Next::Wait(wait);
        }
        self.quarantine(wait.to_string())
    }

    pub(super) fn settled(&self) -> Next {
        if self.facts.directory {
            return self.clear();
        }
        self.save(Saving::Closing, |record| record.closing = true)
    }

    /// Unsets the flags as soon as the OSD is up: `noout` would keep Ceph from healing during the backfill if
    /// its node dies.
    ///
    /// An OSD that booted under noin is still marked new, and its next boot would reset its reweight
    /// (16.2.15). The adapter removes that mark first. Then the fence can be removed: the rest is Ceph's
    /// work.
    pub(super) fn let_go(&self) -> Option<Next> {
        flags::restore_of(self.record, self.view).or_else(|| self.unfence())
    }

    /// Saves when a new OSD came up: the statistics lag, and show no PG on it at first.
    fn note_up(&self) -> Option<Next> {
        let up_seen = self.up_seen()?;
        let noted = self.record.up_seen.map(|(epoch, _)| epoch);
        (noted != Some(up_seen.0)).then(|| {
            let restarts = self.restarts();
            self.save(Saving::Up, |record| {
                record.up_seen = Some(up_seen);
                record.note_restarts(restarts);
                record.note_in();
            })
        })
    }

    /// Returns the epoch in which the new OSD came up, and the time, if it may get PGs from now on.
    ///
    /// An OSD that another client marked out, or that was emptied, gets none before it is marked in. One that
    /// was out all the time stays out. The owner decides whether a new OSD is marked in by itself
    /// (`mon_osd_auto_mark_new_in`).
    pub(super) fn up_seen(&self) -> Option<(Epoch, DateTime<Utc>)> {
        let record = self.record;
        let gets =
            |slot: &&Slot| slot.up && (record.is_new() || !phase::is_marked_out_externally(record, slot));
        let slot = self.view.slot(record.osd).filter(gets)?;
        Some((slot.up_from, self.view.seen.at))
    }

    /// Returns the ledger without the record.
    ///
    /// The inventory of its node predates the OSD, so its disk is marked as no longer available.
    fn closed(&self) -> Ledger {
        let record = self.record;
        let mut ledger = self.view.ledger.without(record.osd);
        if self.leaves_rotation() {
            ledger.run.note_unencrypted(record.osd, &self.view.policy.run);
        }
        let is_tried = record.new.is_some() && matches!(self.facts.slot, SlotFact::Ours { .. });
        if self.view.policy.in_parallel.allows_several() && is_tried && batch::is_of_batch(record) {
            batch::note_tried(record, &mut ledger.run, self.view);
        }
        if record.is_removal() && self.facts.slot != SlotFact::Old {
            ledger.run.note_removed(record.osd, &self.view.policy.run);
        }
        let was_free = record.is_new() || record.is_in_directory();
        let disk = record.device().map(DeviceIdentity::stable_name);
        if let (true, Some(_), Some(disk)) = (was_free, record.new, disk)
            && let Some(work) = ledger.nodes.get_mut(&record.node)
        {
            work.done.insert(disk);
        }
        let is_old_knowledge = record.db.is_some() && !record.is_new() && record.new.is_some();
        if let Some(work) = ledger.nodes.get_mut(&record.node).filter(|_| is_old_knowledge)
            && work.status == NodeStatus::Orchestrating
        {
            // The next OSD on the node must know the space left on the database device: the node is
            // inventoried again.
            work.status = NodeStatus::ComputingDiff;
            work.inventory += 1;
        }
        ledger
    }

    /// Returns whether Rook leaves the CronJob that rotates the key of an OSD which is unencrypted now.
    ///
    /// Rook deletes these CronJobs only when it no longer rotates keys, and the Deployment that owns this one
    /// keeps its uid (key_rotation.go, `reconcileKeyRotationCronJob`, v1.20.6).
    fn leaves_rotation(&self) -> bool {
        let record = self.record;
        let was_encrypted = record.class.migrates().is_some_and(Kind::is_encrypted);
        let is_plain = record.pvcs.is_some() && record.new.is_some() && !record.target.encrypted;
        self.view.seen.kube.declaration.rotates_keys && was_encrypted && is_plain
    }

    /// Closes the record, one step an iteration: flags, fence, objects created for the record, and last the
    /// record itself.
    pub(super) fn close(&self) -> Next {
        let record = self.record;
        // A Stop arrived after the record was given up: the OSD is started again first.
        let is_old = self.facts.slot == SlotFact::Old;
        if is_old && self.facts.stopped {
            return self.restart();
        }
        // Without the backup no Stop can arrive any more, so the backup is deleted before the flags are
        // unset.
        if let Some(next) = self.clean_up().filter(|_| is_old) {
            return next;
        }
        let flags = flags::restore_of(record, self.view).filter(|_| !is_out(Guard::FlagsUnsetFirst));
        if let Some(next) = flags.or_else(|| self.mark_in_first()).or_else(|| self.unfence()) {
            return next;
        }
        if drains::is_waited_for(record, self.view) {
            return Next::Wait(Wait::Up { osd: record.osd, trouble: None });
        }
        if let Some(next) = self.data_returns() {
            return next;
        }
        let closed = || Next::Save { ledger: self.closed(), osd: Some(record.osd), why: Saving::Closed };
        self.clean_up().unwrap_or_else(closed)
    }

    /// Returns the cleanup act while an object that was created for the record exists.
    ///
    /// A pod whose Job is deleted counts as a running Job, for ever if its node is lost. Another deletion
    /// would not end it, and its OSD is not begun before it ends (`gate::Own`).
    fn clean_up(&self) -> Option<Next> {
        let (record, kube) = (self.record, &self.view.seen.kube);
        let exists = kube.leftovers.contains_key(&record.id)
            || kube.backups.get(&record.osd) == Some(&record.id)
            || kube.node_jobs.iter().any(|job| job.record == record.id && job.state != JobState::Running)
            || kube.reports.values().any(|report| report.record == record.id);
        (!passes(Guard::CleanedUpFirst, !exists))
            .then(|| Next::Do(Act::Kube(KubeAct::CleanUp { osd: record.osd, record: record.id.clone() })))
    }
}

/// Returns the path that the Deployment activates: the logical volume, the file, or the disk by a name that
/// survives a reboot.
///
/// A disk without such a name is named by its kernel name, as in Rook: its label is what activation goes by.
/// So is one of Ceph 16 or 17: with a link, `ceph-volume raw list` fails, and Rook before 1.13.10 and 1.14.8
/// starts no OSD then (rook/rook issue 13136). From 18 on, a link spares a search through all disks.
pub(super) fn block_path(
    record: &Record,
    device: &DeviceIdentity,
    volume: Option<&Volume>,
    (kernel, needs_kernel_name): (Option<&KernelDisk>, bool),
) -> Option<String> {
    if let Some(pvcs) = &record.pvcs {
        return Some(pvc::block_path(&pvcs.data.name, record.target.encrypted));
    }
    match &record.strategy {
        Strategy::New { on_file: true, .. } => Some(ON_FILE.to_owned()),
        Strategy::InPlace | Strategy::Directory { .. } | Strategy::New { .. } | Strategy::Removal(_)
            if record.target.mode == Mode::Lvm =>
        {
            volume.map(|v| v.block_path.clone())
        }
        Strategy::InPlace | Strategy::Directory { .. } | Strategy::New { .. } | Strategy::Removal(_) => {
            let (link, node) = (device.stable_path(), kernel.map(|kernel| kernel.node.clone()));
            if needs_kernel_name { node.or(link) } else { link.or(node) }
        }
    }
}
