//! What happens by itself, goes wrong, or is done by others: each a small change of the world, each told in words.

use std::fmt;

use chrono::TimeDelta;

use super::{Effect, Stumble, World, fsid_on};
use crate::domain::inspection::{Content, Proof};
use crate::domain::observation::{JobState, Metadata, Order, OrderKind, SlotState};
use crate::domain::osd::{NodeName, ObjectStore, OsdFsid, OsdId, PgId};

/// One thing that happens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Happening {
    // ---- by itself
    /// The mgr hears of a PG (statistics come every 5 s, up to 7 s late).
    Hear(PgId),
    /// A PG's OSDs agree on who holds what.
    Peer(PgId),
    /// An OSD has all of a PG's objects again.
    Fill(PgId, OsdId),
    /// A daemon's pod starts.
    PodStarts(OsdId),
    /// A daemon boots.
    Boots(OsdId),
    /// A daemon that is to stop is marked down.
    GoesDown(OsdId),
    /// Its pod is gone.
    PodGone(OsdId),
    /// A node agent does its next step.
    AgentSteps(String),
    /// Minutes pass.
    Minutes(u32),
    // ---- goes wrong
    /// A daemon dies and does not come back.
    Dies(OsdId),
    /// It can run again.
    Mends(OsdId),
    /// A node loses its power: its daemons and agents end, it is not Ready.
    PowerLost(NodeName),
    /// It is back.
    PowerBack(NodeName),
    /// A node agent is killed.
    AgentDies(String),
    /// Kubernetes takes an agent's Job for failed while its process lives on, frozen.
    AgentLost(String),
    /// ceph-volume fails in an agent.
    AgentStumbles(String, Stumble),
    /// Another disk is in a disk's place: same size, same position, foreign data.
    DiskSwapped(String),
    /// Somebody wrote another OSD's store onto a disk.
    DiskOverwritten(String),
    // ---- others
    /// A person scales a Deployment to 0.
    PersonStops(OsdId),
    /// A person scales it to 1 again.
    PersonStarts(OsdId),
    /// A person edits a Deployment.
    PersonEdits(OsdId),
    /// A person deletes a Deployment.
    PersonDeletes(OsdId),
    /// A person deletes a Deployment and makes it anew, as it was.
    PersonRecreates(OsdId),
    /// The owner takes the confirmation back.
    Unconfirmed,
    /// The owner confirms.
    Confirmed,
    /// A person takes our fence off.
    PersonUnfences,
    /// Somebody else puts a fence of their own on.
    OthersFence,
    /// They take it off.
    OthersUnfence,
    /// A person marks an OSD out.
    PersonOuts(OsdId),
    /// A person marks it in again, with its reweight.
    PersonIns(OsdId),
    /// A person purges an OSD that is down.
    PersonPurges(OsdId),
    /// A person gives a destroyed slot back to the OSD on its disk: `osd new OLD ID` with the disk's own key.
    PersonGivesBack(OsdId),
    /// Somebody's `osd new` without an id: it takes the lowest that is absent.
    OthersTakeId,
    /// A flag of the whole osdmap is set (`norecover`).
    FlagSet,
    /// It is unset.
    FlagUnset,
    /// The operator is scaled up.
    OperatorUp,
    /// And down.
    OperatorDown,
    /// Something around the OSDs changes.
    Around(Around, bool),
    /// A daemon boots, and is not what was wanted.
    BootsOddly(OsdId),
    /// The mgr loses a PG's statistics (it failed over).
    MgrForgets(PgId),
    /// Rook, running and not fenced, brings an OSD's Deployment to 1.
    RookStarts(OsdId),
}

/// What may stand in the way around the OSDs; each makes a gate shut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Around {
    /// Rook prepares OSDs.
    RookPrepares,
    /// Rook lets a domain be drained.
    Draining,
    /// Daemons of two releases run.
    Upgrade,
    /// An OSD is nearly full.
    Nearfull,
    /// A mon is down.
    MonDown,
    /// The CephCluster is made external.
    External,
    /// Rook may remove OSDs that are out.
    RemovesOutOsds,
    /// Two Deployments run one OSD.
    Odd,
    /// The first node is not Ready, though its daemons run.
    NotReady,
    /// The first node is cordoned.
    Cordoned,
    /// A person pauses.
    Paused,
    /// A person cancels.
    Cancelled,
}

impl Around {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::RookPrepares,
        Self::Draining,
        Self::Upgrade,
        Self::Nearfull,
        Self::MonDown,
        Self::External,
        Self::RemovesOutOsds,
        Self::Odd,
        Self::NotReady,
        Self::Cordoned,
        Self::Paused,
        Self::Cancelled,
    ];
}

impl fmt::Display for Happening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hear(pg) => write!(f, "the mgr hears of PG {pg}"),
            Self::Peer(pg) => write!(f, "PG {pg} peers"),
            Self::Fill(pg, osd) => write!(f, "{osd} has all of PG {pg}"),
            Self::PodStarts(osd) => write!(f, "the pod of {osd} starts"),
            Self::Boots(osd) => write!(f, "{osd} boots"),
            Self::GoesDown(osd) => write!(f, "{osd} goes down"),
            Self::PodGone(osd) => write!(f, "the pod of {osd} is gone"),
            Self::AgentSteps(job) => write!(f, "the agent {job} goes on"),
            Self::Minutes(minutes) => write!(f, "{minutes} minutes pass"),
            Self::Dies(osd) => write!(f, "{osd} dies"),
            Self::Mends(osd) => write!(f, "{osd} can run again"),
            Self::PowerLost(node) => write!(f, "node {node} loses its power"),
            Self::PowerBack(node) => write!(f, "node {node} is back"),
            Self::AgentDies(job) => write!(f, "the agent {job} is killed"),
            Self::AgentLost(job) => write!(f, "the agent {job} freezes, and Kubernetes gives its Job up"),
            Self::AgentStumbles(job, how) => write!(f, "ceph-volume in {job}: {how}"),
            Self::DiskSwapped(disk) => {
                write!(f, "somebody puts another disk, with data, in the place of {disk}")
            }
            Self::DiskOverwritten(disk) => write!(f, "somebody puts another OSD's store on {disk}"),
            Self::PersonStops(osd) => write!(f, "a person stops {osd}"),
            Self::PersonStarts(osd) => write!(f, "a person starts {osd}"),
            Self::PersonEdits(osd) => write!(f, "a person edits the Deployment of {osd}"),
            Self::PersonDeletes(osd) => write!(f, "a person deletes the Deployment of {osd}"),
            Self::PersonRecreates(osd) => write!(f, "a person makes the Deployment of {osd} anew"),
            Self::Unconfirmed => f.write_str("the owner takes the confirmation back"),
            Self::Confirmed => f.write_str("the owner confirms"),
            Self::PersonUnfences => f.write_str("a person takes our fence off"),
            Self::OthersFence => f.write_str("somebody else fences the CephCluster"),
            Self::OthersUnfence => f.write_str("they take their fence off"),
            Self::PersonOuts(osd) => write!(f, "a person marks {osd} out"),
            Self::PersonIns(osd) => write!(f, "a person marks {osd} in"),
            Self::PersonPurges(osd) => write!(f, "a person purges {osd}"),
            Self::PersonGivesBack(osd) => {
                write!(f, "a person gives the slot of {osd} back to the OSD on its disk")
            }
            Self::OthersTakeId => f.write_str("somebody asks the mons for a new OSD id"),
            Self::FlagSet => f.write_str("a person sets the flag norecover"),
            Self::FlagUnset => f.write_str("the flag norecover is taken off"),
            Self::OperatorUp => f.write_str("a person scales Rook's operator up"),
            Self::OperatorDown => f.write_str("a person scales Rook's operator down"),
            Self::Around(what, true) => write!(f, "it begins: {what:?}"),
            Self::Around(what, false) => write!(f, "it is over: {what:?}"),
            Self::BootsOddly(osd) => write!(f, "{osd} boots, and is not what was wanted"),
            Self::MgrForgets(pg) => write!(f, "the mgr fails over and does not know PG {pg}"),
            Self::RookStarts(osd) => write!(f, "Rook brings the Deployment of {osd} to 1"),
        }
    }
}

impl fmt::Display for Stumble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fails => "it fails",
            Self::DoesNothing => "it ends with 0 and has done nothing",
            Self::RollsBack => "it fails and rolls back",
            Self::RollsBackPastUs => "it fails and rolls back past our stand-in",
            Self::IgnoresId => "it ignores --osd-id",
            Self::IgnoresIdPastUs => "it ignores --osd-id, past our stand-in",
        })
    }
}

/// Fsid and cluster of somebody else's OSD.
const FOREIGN: u128 = 0xf0_4e16_0000_4000_8000_0000_0000_0001;

fn foreign_fsid(n: u128) -> Option<OsdFsid> {
    OsdFsid::new(uuid::Uuid::from_u128(FOREIGN + n))
}

impl World {
    /// What can happen by itself now.
    pub fn progress(&self) -> Vec<Happening> {
        let mut found: Vec<Happening> = self.lagging().into_iter().map(Happening::Hear).collect();
        let unpeered = self.placements.iter().filter(|(_, placement)| !placement.peered);
        found.extend(unpeered.map(|(id, _)| Happening::Peer(id.clone())));
        found.extend(self.to_fill().into_iter().map(|(pg, osd)| Happening::Fill(pg, osd)));
        for (osd, daemon) in &self.kube.daemons {
            let up = self.ceph.slots.get(osd).is_some_and(|slot| slot.up);
            let is_powered = daemon.node.as_ref().is_none_or(|node| self.has_power(node));
            match (daemon.replicas, daemon.pods.is_empty()) {
                (0, _) if up => found.push(Happening::GoesDown(*osd)),
                (0, false) if is_powered => found.push(Happening::PodGone(*osd)),
                (0, _) => {}
                (_, true) if is_powered => found.push(Happening::PodStarts(*osd)),
                (_, false) if self.can_boot(*osd).is_some() => found.push(Happening::Boots(*osd)),
                (_, _) => {}
            }
        }
        if self.kube.fence.is_none() && self.kube.operator.as_ref().is_some_and(|operator| operator.pods > 0)
        {
            let stopped = self.kube.daemons.iter().filter(|(_, daemon)| daemon.replicas == 0);
            found.extend(stopped.map(|(osd, _)| Happening::RookStarts(*osd)));
        }
        found.extend(self.broken.iter().map(|osd| Happening::Mends(*osd)));
        // A daemon whose Deployment is gone ends with it.
        let orphans =
            self.ceph.slots.iter().filter(|(osd, slot)| slot.up && !self.kube.daemons.contains_key(osd));
        found.extend(orphans.map(|(osd, _)| Happening::GoesDown(*osd)));
        let alive = self.agents.iter().filter(|(_, agent)| self.has_power(&agent.request.node));
        found.extend(alive.map(|(job, _)| Happening::AgentSteps(job.clone())));
        found
    }

    fn has_power(&self, node: &NodeName) -> bool {
        self.kube.nodes.get(node).is_none_or(|node| node.ready)
    }

    /// The store with which a daemon would boot: Deployment, disk, slot and key name the same OSD, nobody holds the disk.
    fn can_boot(&self, osd: OsdId) -> Option<OsdFsid> {
        let (daemon, slot) = (self.kube.daemons.get(&osd)?, self.ceph.slots.get(&osd)?);
        let fsid = slot.fsid.filter(|_| !slot.up && slot.state != SlotState::Destroyed)?;
        let starts = daemon.fsid.is_none_or(|starts| starts == fsid);
        let (_, disk) = self.disk_of(fsid)?;
        let finished = match &disk.content {
            Content::Bluestore { finished, .. } => *finished,
            Content::FilestorePartition { .. } => true,
            Content::Tombstone { .. } | Content::Blank | Content::Other { .. } | Content::NotFound { .. } => {
                false
            }
        };
        let at_home = daemon.node.as_ref() == Some(&disk.node);
        let may = starts && finished && at_home && disk.held_by.is_none() && self.has_key(osd);
        (may && !self.broken.contains(&osd) && self.has_power(&disk.node)).then_some(fsid)
    }

    /// Lets something happen.
    pub fn happen(&mut self, what: &Happening) -> Vec<Effect> {
        match what {
            Happening::Hear(pg) => self.report_pg(pg),
            Happening::Peer(pg) => self.peer(pg),
            Happening::Fill(pg, osd) => self.fill(pg, *osd),
            Happening::PodStarts(osd) => self.new_pod(*osd),
            Happening::Boots(osd) => self.boot(*osd),
            Happening::GoesDown(osd) => self.osd_down(*osd),
            Happening::PodGone(osd) => {
                if let Some(daemon) = self.kube.daemons.get_mut(osd) {
                    daemon.pods.clear();
                }
            }
            Happening::AgentSteps(job) => return self.agent_step(job),
            Happening::Minutes(minutes) => self.at += TimeDelta::minutes(i64::from(*minutes)),
            Happening::AgentStumbles(job, how) => return self.agent_stumbles(job, *how),
            Happening::AgentDies(job) => self.agent_dies(job),
            Happening::AgentLost(job) => self.end_job(job),
            Happening::Around(what, on) => self.change_around(*what, *on),
            Happening::BootsOddly(osd) => {
                self.boot(*osd);
                let metadata = self.ceph.slots.get_mut(osd).and_then(|slot| slot.metadata.as_mut());
                if let Some(metadata) = metadata {
                    metadata.device_mapper = true;
                }
            }
            Happening::MgrForgets(pg) => {
                self.ceph.pgs.remove(pg);
            }
            Happening::Dies(_)
            | Happening::Mends(_)
            | Happening::PowerLost(_)
            | Happening::PowerBack(_)
            | Happening::DiskSwapped(_)
            | Happening::DiskOverwritten(_) => self.break_or_mend(what),
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
            | Happening::PersonPurges(_)
            | Happening::PersonGivesBack(_)
            | Happening::OthersTakeId
            | Happening::FlagSet
            | Happening::FlagUnset
            | Happening::OperatorUp
            | Happening::OperatorDown
            | Happening::RookStarts(_) => self.meddle(what),
        }
        Vec::new()
    }

    fn boot(&mut self, osd: OsdId) {
        let Some(fsid) = self.can_boot(osd) else { return };
        let Some((_, disk)) = self.disk_of(fsid) else { return };
        let is_filestore = matches!(disk.content, Content::FilestorePartition { .. });
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
            ceph_version: super::agent::able().ceph_version,
            on_partition: is_filestore,
            dedicated_db: false,
            dedicated_wal: false,
            device_mapper: false,
        };
        if self.osd_boot(osd, fsid)
            && let Some(slot) = self.ceph.slots.get_mut(&osd)
        {
            slot.metadata = Some(metadata);
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "`happen` names what comes here")]
    fn break_or_mend(&mut self, what: &Happening) {
        match what {
            Happening::Dies(osd) => {
                self.broken.insert(*osd);
                self.osd_down(*osd);
            }
            Happening::Mends(osd) => {
                self.broken.remove(osd);
            }
            Happening::PowerLost(node) => self.power(node, false),
            Happening::PowerBack(node) => self.power(node, true),
            Happening::DiskSwapped(name) => {
                self.put_foreign(name);
                if let Some(disk) = self.disks.get_mut(name) {
                    disk.identity.by_id = [format!("ata-foreign-{name}")].into();
                    disk.identity.serial = Some(format!("foreign-{name}"));
                    disk.held_by = None;
                }
            }
            Happening::DiskOverwritten(name) => self.put_foreign(name),
            _ => {}
        }
    }

    fn power(&mut self, node: &NodeName, on: bool) {
        if let Some(found) = self.kube.nodes.get_mut(node) {
            found.ready = on;
        }
        if on {
            return;
        }
        let here = |daemon: &crate::domain::observation::Daemon| daemon.node.as_ref() == Some(node);
        let osds: Vec<OsdId> =
            self.kube.daemons.iter().filter(|(_, daemon)| here(daemon)).map(|(osd, _)| *osd).collect();
        for osd in osds {
            self.osd_down(osd);
        }
        let jobs = self.agents.iter().filter(|(_, agent)| agent.request.node == *node);
        for job in jobs.map(|(job, _)| job.clone()).collect::<Vec<_>>() {
            self.agent_dies(&job);
        }
    }

    fn put_foreign(&mut self, name: &str) {
        let Some(disk) = self.disks.get_mut(name) else { return };
        let lost = fsid_on(&disk.content);
        let (Some(osd_fsid), Some(cluster)) =
            (foreign_fsid(1), crate::domain::osd::ClusterFsid::new(uuid::Uuid::from_u128(FOREIGN)))
        else {
            return;
        };
        let whoami = OsdId(0);
        disk.content = Content::Bluestore {
            osd_fsid,
            whoami: Some(whoami),
            cluster: Some(cluster),
            finished: true,
            activatable: true,
        };
        disk.proof = Some(Proof::BluestoreLabel { osd_fsid, whoami, cluster, activatable: true });
        let Some(fsid) = lost else { return };
        let served = self.ceph.slots.iter().find(|(_, slot)| slot.up && slot.fsid == Some(fsid));
        if let Some(osd) = served.map(|(osd, _)| *osd) {
            self.osd_down(osd); // its daemon ends with input/output errors
        }
        self.forget_store(fsid);
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "`happen` names what comes here")]
    fn meddle(&mut self, what: &Happening) {
        match what {
            Happening::PersonStops(osd) => self.scale_keeping_mark(*osd, 0),
            Happening::PersonStarts(osd) | Happening::RookStarts(osd) => self.scale_keeping_mark(*osd, 1),
            Happening::PersonEdits(osd) => self.touch(*osd),
            Happening::PersonDeletes(osd) => {
                self.kube.daemons.remove(osd);
            }
            Happening::PersonRecreates(osd) => {
                if let Some(daemon) = self.kube.daemons.get_mut(osd) {
                    daemon.uid = super::kube::after(&daemon.uid);
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
                self.osd_reweight(*osd, super::example::REWEIGHT);
            }
            Happening::PersonPurges(osd) => {
                self.osd_purge(*osd).ok();
            }
            Happening::PersonGivesBack(osd) => {
                let whose = |disk: &super::Disk| match &disk.content {
                    Content::Bluestore { whoami, finished: true, .. } => *whoami == Some(*osd),
                    Content::FilestorePartition { whoami, .. } => whoami == osd,
                    Content::Bluestore { .. }
                    | Content::Tombstone { .. }
                    | Content::Blank
                    | Content::Other { .. }
                    | Content::NotFound { .. } => false,
                };
                let fsid =
                    self.disks.values().find(|disk| whose(disk)).and_then(|disk| fsid_on(&disk.content));
                if let Some(fsid) = fsid {
                    self.osd_new(fsid, *osd, true).ok();
                }
            }
            Happening::OthersTakeId => {
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
            Happening::OperatorUp | Happening::OperatorDown => {
                if let Some(operator) = &mut self.kube.operator {
                    let on = u32::from(*what == Happening::OperatorUp);
                    (operator.replicas, operator.pods) = (on, on);
                }
            }
            _ => {}
        }
    }

    fn change_around(&mut self, what: Around, on: bool) {
        let order = |kind| on.then_some(Order { kind, since: Some(self.at) });
        let (pause, cancel) = (order(OrderKind::Pause), order(OrderKind::Cancel));
        let health = |ceph: &mut crate::domain::observation::Ceph, code: &str| {
            ceph.health.remove(code);
            if on {
                ceph.health.insert(code.to_owned());
            }
        };
        match what {
            Around::RookPrepares => {
                let job = on.then(|| "rook-ceph-osd-prepare-h1".to_owned());
                self.kube.rook_prepares = job.into_iter().collect();
            }
            Around::Draining => self.kube.draining_failure_domain = on.then(|| "h2".to_owned()),
            Around::Upgrade => self.ceph.mixed_versions = on,
            Around::Nearfull => health(&mut self.ceph, "OSD_NEARFULL"),
            Around::MonDown => health(&mut self.ceph, "MON_DOWN"),
            Around::External => self.kube.declaration.external = on,
            Around::RemovesOutOsds => self.kube.declaration.removes_out_osds = on,
            Around::Odd => {
                let odd = on.then(|| "two Deployments run osd.0".to_owned());
                self.kube.oddities = odd.into_iter().collect();
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
            Around::Paused => self.kube.order = pause,
            Around::Cancelled => self.kube.order = cancel,
        }
    }

    fn scale_keeping_mark(&mut self, osd: OsdId, replicas: u32) {
        let mark = self.kube.daemons.get(&osd).and_then(|daemon| daemon.stopped_by.clone());
        self.scale(osd, replicas, mark);
    }

    /// Jobs whose agent could be lost: Kubernetes thinks that it runs.
    pub fn running_jobs(&self) -> Vec<String> {
        let runs = |job: &&crate::domain::observation::NodeJob| job.state != JobState::Ended;
        self.kube.node_jobs.iter().filter(runs).map(|job| job.name.clone()).collect()
    }
}
