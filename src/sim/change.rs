//! Changes of the world: what can happen by itself now, and the effects of each happening.

use chrono::TimeDelta;

use crate::domain::inspection::Content;
use crate::domain::observation::{
    Ambiguity, Control, ControlKind, JobState, Metadata, Releases, RookPrepare, SlotState,
};
use crate::domain::osd::{Kind, NodeName, ObjectStore, OsdFsid, OsdId};
use crate::domain::recovery::RecoveryOption;
use crate::domain::removal::DiskAfter;
use crate::sim::agent;
use crate::sim::by_person::{THEIR_BACKFILLS, THEIR_WEIGHT};
use crate::sim::example;
use crate::sim::faults::foreign_fsid;
use crate::sim::happening::{Around, Happening};
use crate::sim::kube;
use crate::sim::pvcs::PvcChange;
use crate::sim::world::{Disk, Effect, World, fsid_on};

impl World {
    /// Returns what can happen by itself now.
    pub fn progress(&self) -> Vec<Happening> {
        let mut found: Vec<Happening> = self.lagging().into_iter().map(Happening::PgReports).collect();
        let unpeered = self.placements.iter().filter(|(_, placement)| !placement.peered);
        found.extend(unpeered.map(|(id, _)| Happening::Peer(*id)));
        found.extend(self.to_fill().into_iter().map(|(pg, osd)| Happening::Fill(pg, osd)));
        for (osd, daemon) in &self.kube.daemons {
            let up = self.ceph.slots.get(osd).is_some_and(|slot| slot.up);
            let is_powered = daemon.node.as_ref().is_none_or(|node| self.has_power(node));
            match (daemon.replicas, daemon.pods.is_empty()) {
                (0, _) if up && !self.is_nodown(*osd) => found.push(Happening::GoesDown(*osd)),
                (0, false) if is_powered => found.push(Happening::PodGone(*osd)),
                (0, _) => {}
                // A changed pod template: the old pod is gone, so its daemon stops.
                (_, true) if up && !daemon.rolled_out && !self.is_nodown(*osd) => {
                    found.push(Happening::GoesDown(*osd));
                }
                (_, true) if self.is_portable(*osd) && self.node_for_pod(*osd).is_none() => {}
                (_, true) if is_powered && self.tolerates(daemon) => found.push(Happening::PodStarts(*osd)),
                (_, false) if self.can_boot(*osd).is_some() => found.push(Happening::Boots(*osd)),
                (_, _) => {}
            }
        }
        found.extend(self.rook_can().into_iter().map(Happening::Rook));
        found.extend(self.noise_passes().map(Happening::Noise));
        found.extend(self.kube.rotating.iter().map(|osd| Happening::Pvc(PvcChange::RotationEnds(*osd))));
        found.extend(self.broken.iter().map(|osd| Happening::Recovers(*osd)));
        // A daemon whose Deployment is gone stops with it.
        let is_orphan = |osd: &OsdId| !self.kube.daemons.contains_key(osd) && !self.is_nodown(*osd);
        let orphans = self.ceph.slots.iter().filter(|(osd, slot)| slot.up && is_orphan(osd));
        found.extend(orphans.map(|(osd, _)| Happening::GoesDown(*osd)));
        let lit = self.kube.nodes.keys().filter(|node| self.has_power(node));
        found.extend(lit.flat_map(|node| self.inventory_jobs_at_work(node)).map(Happening::InventoryJobEnds));
        let alive = self.agents.iter().filter(|(_, agent)| self.has_power(&agent.request.node));
        found.extend(alive.map(|(job, _)| Happening::AgentSteps(job.clone())));
        found
    }

    fn has_power(&self, node: &NodeName) -> bool {
        self.kube.nodes.get(node).is_none_or(|node| node.ready)
    }

    /// Returns the store with which a daemon would boot: Deployment, disk, slot and key name the same OSD,
    /// and nothing has the disk open.
    fn can_boot(&self, osd: OsdId) -> Option<OsdFsid> {
        let (daemon, slot) = (self.kube.daemons.get(&osd)?, self.ceph.slots.get(&osd)?);
        let fsid = slot.fsid.filter(|_| !slot.up && slot.state != SlotState::Destroyed)?;
        let starts = daemon.fsid.is_none_or(|starts| starts == fsid);
        let (name, disk) = self.disk_of(fsid)?;
        let finished = match &disk.content {
            Content::Bluestore { finished, .. } => *finished,
            Content::Osd { .. } => true,
            Content::Tombstone { .. } | Content::Blank | Content::Other { .. } | Content::NotFound { .. } => {
                false
            }
        };
        // An OSD in a directory can only be started from there.
        let starts_it = daemon.data_dir.is_none() || daemon.data_dir.as_deref() == disk.directory();
        let at_home = daemon.node.as_ref() == Some(&disk.node) && starts_it;
        let may = starts
            && finished
            && at_home
            && self.dmcrypt.get(&fsid) != Some(&false)
            && self.opens(osd, fsid, name, daemon)
            && disk.held_by.is_none()
            && self.has_key(osd);
        let is_able = !self.broken.contains(&osd) && !self.noise.keeps_down(osd);
        (may && is_able && self.has_power(&disk.node)).then_some(fsid)
    }

    /// Lets something happen.
    #[expect(clippy::too_many_lines, reason = "one arm for each happening")]
    pub fn happen(&mut self, what: &Happening) -> Vec<Effect> {
        match what {
            Happening::PgReports(pg) => self.report_pg(pg),
            Happening::Peer(pg) => self.peer(pg),
            Happening::Fill(pg, osd) => self.fill(pg, *osd),
            Happening::PodStarts(osd) => self.new_pod(*osd),
            Happening::Boots(osd) => self.boot(*osd),
            Happening::GoesDown(osd) => self.osd_down(*osd),
            Happening::PodGone(osd) => self.pod_gone(*osd),
            Happening::AgentSteps(job) => return self.agent_step(job),
            Happening::InventoryJobEnds(_)
            | Happening::InventoryJobDies(_)
            | Happening::Unselected
            | Happening::Selected
            | Happening::Tainted(_) => self.happen_to_new(what),
            Happening::Minutes(minutes) => self.at += TimeDelta::minutes(i64::from(*minutes)),
            Happening::AgentStumbles(job, how) => return self.agent_stumbles(job, *how),
            Happening::Noise(what) => self.disturb(what),
            Happening::AgentDies(job) => self.agent_dies(job),
            Happening::AgentLost(job) => self.end_job(job),
            Happening::Around(what, on) => self.change_around(*what, *on),
            Happening::BootsUnexpectedly(osd) => self.boot_unexpectedly(*osd),
            Happening::Balanced(upmap) => self.pg_upmap_items(upmap),
            Happening::Pvc(what) => self.change_pvc(what),
            Happening::MgrForgets(pg) => drop(self.ceph.pgs.remove(pg)),
            Happening::Dies(_)
            | Happening::Recovers(_)
            | Happening::PowerLost(_)
            | Happening::PowerBack(_)
            | Happening::DiskSwapped(_)
            | Happening::DiskMoved(..)
            | Happening::DiskFormatted(_)
            | Happening::DirectoryReplaced(_)
            | Happening::DiskOverwritten(_) => self.break_or_repair(what),
            Happening::PersonStops(_)
            | Happening::PersonStarts(_)
            | Happening::PersonEdits(_)
            | Happening::PersonDeletes(_)
            | Happening::PersonRecreates(_)
            | Happening::Unconfirmed
            | Happening::Confirmed
            | Happening::PersonUnfences
            | Happening::OthersFence
            | Happening::OthersUnfence
            | Happening::PersonOuts(_)
            | Happening::PersonIns(_)
            | Happening::PersonReweighs(_)
            | Happening::PersonRequests(_)
            | Happening::PersonKeeps(_)
            | Happening::PersonPurges(_)
            | Happening::PersonReregisters(_)
            | Happening::IdTakenExternally
            | Happening::FlagSet
            | Happening::FlagUnset
            | Happening::OperatorUp
            | Happening::NoScrub(_)
            | Happening::MaxBackfills(_)
            | Happening::PdbsRejected
            | Happening::OperatorDown
            | Happening::Rook(_) => self.meddle(what),
        }
        Vec::new()
    }

    fn boot(&mut self, osd: OsdId) {
        let Some(fsid) = self.can_boot(osd) else { return };
        let Some((_, disk)) = self.disk_of(fsid) else { return };
        let is_one_of =
            |kinds: &[Kind]| matches!(&disk.content, Content::Osd { format, .. } if kinds.contains(format));
        let is_filestore = is_one_of(&[Kind::FilestoreDirectory, Kind::FilestorePartition]);
        let encrypted = self.dmcrypt.contains_key(&fsid);
        let in_luks = encrypted || self.pvcs.stores.contains_key(&fsid);
        let dedicated_db = self.databases.contains_key(&fsid);
        let store = ObjectStore(if is_filestore { "filestore" } else { "bluestore" }.to_owned());
        let metadata = Metadata {
            store,
            hostname: disk.node.0.clone(),
            devices: vec!["sdb".to_owned()],
            stable_devices: disk
                .identity
                .by_id
                .iter()
                .map(|name| format!("/dev/disk/by-id/{name}"))
                .collect(),
            ceph_version: agent::able().ceph_version,
            on_partition: is_filestore,
            dedicated_db,
            dedicated_wal: false,
            // On a host such a database is on a volume, and the data is then on one too.
            device_mapper: in_luks
                || is_one_of(&[Kind::Lvm])
                || (dedicated_db && !self.pvcs.of.contains_key(&osd))
                || disk.mapped_by_host,
            on_file: false,
        };
        let node = disk.node.clone();
        if !self.osd_boot(osd, fsid) {
            return;
        }
        self.opened(fsid);
        if let Some(daemon) = self.kube.daemons.get_mut(&osd) {
            daemon.rolled_out = true;
        }
        if let Some(slot) = self.ceph.slots.get_mut(&osd) {
            (slot.metadata, slot.dmcrypt_key) = (Some(metadata), encrypted);
        }
        self.place_new(osd, &node);
    }

    fn boot_unexpectedly(&mut self, osd: OsdId) {
        self.boot(osd);
        let is_on_pvc = self.pvcs.of.contains_key(&osd);
        let Some(slot) = self.ceph.slots.get_mut(&osd) else { return };
        if let Some(metadata) = slot.metadata.as_mut().filter(|_| is_on_pvc) {
            metadata.store = ObjectStore("bluestore-rdr".to_owned());
        } else if let Some(metadata) = &mut slot.metadata {
            (metadata.device_mapper, slot.dmcrypt_key) = (true, true);
        }
    }

    /// Does `osd new OLD ID` with the key on the disk.
    fn restore_slot(&mut self, osd: OsdId) {
        let whose = |disk: &Disk| match &disk.content {
            Content::Bluestore { whoami, finished: true, .. } => *whoami == Some(osd),
            Content::Osd { whoami, .. } => *whoami == osd,
            Content::Bluestore { .. }
            | Content::Tombstone { .. }
            | Content::Blank
            | Content::Other { .. }
            | Content::NotFound { .. } => false,
        };
        let fsid = self.disks.values().find(|disk| whose(disk)).and_then(|disk| fsid_on(&disk.content));
        // The key on an encrypted disk cannot be read.
        if let Some(fsid) = fsid.filter(|fsid| !self.dmcrypt.contains_key(fsid)) {
            self.osd_new(fsid, osd, true).ok();
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "`happen` names what comes here")]
    fn meddle(&mut self, what: &Happening) {
        match what {
            Happening::PersonStops(osd) => self.scale_keeping_mark(*osd, 0),
            Happening::PersonStarts(osd) => self.scale_keeping_mark(*osd, 1),
            Happening::PersonEdits(osd) => self.touch(*osd),
            Happening::PersonDeletes(osd) => {
                self.kube.daemons.remove(osd);
            }
            Happening::PersonRecreates(osd) => {
                if let Some(daemon) = self.kube.daemons.get_mut(osd) {
                    daemon.uid = kube::after(&daemon.uid);
                }
                self.touch(*osd);
            }
            Happening::Unconfirmed => self.kube.declaration.confirmed = false,
            Happening::Confirmed => self.kube.declaration.confirmed = true,
            Happening::PersonUnfences | Happening::OthersUnfence => self.label(None),
            Happening::OthersFence => self.label(Some("theirs".to_owned())),
            Happening::PersonOuts(osd) => self.osd_out(*osd),
            Happening::PersonIns(osd) => {
                self.osd_in(*osd);
                self.osd_reweight(*osd, example::REWEIGHT);
            }
            Happening::PersonReweighs(osd) => {
                self.crush_reweight(*osd, THEIR_WEIGHT);
            }
            Happening::PersonRequests(osd) => self.request_removal(*osd, DiskAfter::Wipe),
            Happening::PersonKeeps(osd) => {
                self.kube.requests.removals.remove(osd);
            }
            Happening::PersonPurges(osd) => {
                self.osd_purge(*osd).ok();
            }
            Happening::PersonReregisters(osd) => self.restore_slot(*osd),
            Happening::IdTakenExternally => {
                if let Some(fsid) = foreign_fsid(2) {
                    self.osd_new_anywhere(fsid);
                }
            }
            Happening::FlagSet => {
                self.ceph.flags.insert("norecover".to_owned());
            }
            Happening::FlagUnset => {
                self.ceph.flags.remove("norecover");
            }
            Happening::NoScrub(is_set) => {
                self.osd_set("noscrub", *is_set);
                self.by_person.noscrub = Some(*is_set);
            }
            Happening::MaxBackfills(is_set) => self.max_backfills_by_person(*is_set),
            Happening::PdbsRejected => self.rejects_pdbs = true,
            Happening::OperatorUp => self.run_operator(1),
            Happening::OperatorDown => self.run_operator(0),
            Happening::Rook(what) => self.rook_does(*what),
            _ => {}
        }
    }

    fn prepares(&mut self, of: &str, node: Option<&str>, on: bool) {
        let job = format!("rook-ceph-osd-prepare-{of}");
        self.kube.rook_prepares.retain(|known| known.job != job);
        let node = node.map(|node| NodeName(node.to_owned()));
        self.kube.rook_prepares.extend(on.then_some(RookPrepare { job, node }));
    }

    fn change_around(&mut self, what: Around, on: bool) {
        let control = |kind| on.then_some(Control { kind, since: Some(self.at) });
        let (pause, cancel) = (control(ControlKind::Pause), control(ControlKind::Cancel));
        let health = |ceph: &mut crate::domain::observation::Ceph, code: &str| {
            ceph.health.remove(code);
            if on {
                ceph.health.insert(code.to_owned());
            }
        };
        match what {
            Around::RookPrepares => self.prepares("h1", Some("h1"), on),
            Around::RookPreparesSomewhere => self.prepares("set1-data-0a", None, on),
            Around::Draining => self.kube.draining_failure_domain = on.then(|| "h2".to_owned()),
            Around::Upgrade => self.ceph.releases = if on { Releases::Several } else { Releases::One },
            Around::Nearfull => health(&mut self.ceph, "OSD_NEARFULL"),
            Around::MonDown => health(&mut self.ceph, "MON_DOWN"),
            Around::External => self.kube.declaration.external = on,
            Around::RookRemovesOutOsds => self.kube.declaration.removes_out_osds = on,
            Around::AmbiguousObjects => {
                let what = "osd.0 has two Deployments: a and b".to_owned();
                let unusual = on.then(|| Ambiguity::of_two_deployments(OsdId(0), true, what));
                self.kube.ambiguities = unusual.into_iter().collect();
            }
            Around::NotReady => {
                if let Some(node) = self.kube.nodes.values_mut().next() {
                    node.ready = !on;
                }
            }
            Around::Cordoned => {
                if let Some(node) = self.kube.nodes.values_mut().next() {
                    node.cordoned = on;
                }
            }
            Around::Paused => self.kube.control = pause,
            Around::Cancelled => self.kube.control = cancel,
            Around::Full => self.noise.no_space = on,
        }
    }

    /// Sets the option, or removes it, also if osd-migrate set it.
    fn max_backfills_by_person(&mut self, is_set: bool) {
        let option = RecoveryOption::OsdMaxBackfills;
        if let Some(config) = &mut self.ceph.recovery {
            config.values.0.remove(&option);
            config.values.0.extend(is_set.then(|| (option, THEIR_BACKFILLS.to_owned())));
        }
        self.by_person.max_backfills = Some(is_set);
    }

    pub(super) fn scale_keeping_mark(&mut self, osd: OsdId, replicas: u32) {
        let mark = self.kube.daemons.get(&osd).and_then(|daemon| daemon.stopped_by.clone());
        self.scale(osd, replicas, mark);
    }

    /// Returns the Jobs whose agent could be lost: Kubernetes regards them as running.
    pub fn running_jobs(&self) -> Vec<String> {
        let runs = |job: &&crate::domain::observation::NodeJob| job.state != JobState::Ended;
        self.kube.node_jobs.iter().filter(runs).map(|job| job.name.clone()).collect()
    }
}
