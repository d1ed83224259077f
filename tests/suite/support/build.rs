//! A small world to start from, and the changes that the tests make to it.
//!
//! The world has six OSDs on three hosts (0, 1 on h1; 2, 3 on h2; 4, 5 on h3) and one replicated pool of size
//! 3. Each of the pool's eight PGs has one OSD of every host. osd.0 is a BlueStore created by hand, osd.2 a
//! Filestore on partitions; the others conform. Rook's operator is scaled to 0. The states that a migration
//! passes through are rungs of a ladder: `recorded`, `proven`, `intended`, `stopping`, `stopped`,
//! `destroyed`, `prepared`, `deployed`, `booted`, `filled`.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use osd_migrate::domain::act::{Act, KubeAct};
use osd_migrate::domain::inspection::{
    Capability, Content, Evidence, Inspection, NodeProblem, NodeReport, NodeTask, Proof, RecordId,
};
use osd_migrate::domain::ledger::{Ledger, Record};
use osd_migrate::domain::next::{Next, Saving, Summary};
use osd_migrate::domain::observation::{
    Admission, Ceph, Daemon, JobState, Kube, Metadata, Node, NodeJob, Observation, OkToStop, Operator,
    OsdPdb, Pg, Pod, Pool, Releases, Slot, SlotState,
};
use osd_migrate::domain::osd::{
    ClusterFsid, CrushItem, DeviceIdentity, Epoch, Kind, Mode, NodeName, ObjectStore, OsdFsid, OsdId, PgId,
    Role, Weight,
};
use osd_migrate::domain::plan;
use osd_migrate::domain::policy::{Declaration, Limits, Policy};
use osd_migrate::domain::storage::{DeviceConfig, Resources, Storage};
use osd_migrate::domain::view::View;

/// OSDs of the small world.
pub(crate) const OSDS: u32 = 6;
/// PGs of the small world's pool.
pub(crate) const PGS: u32 = 8;
/// The only pool of the small world.
pub(crate) const POOL: u64 = 1;
/// The BlueStore OSD created by hand.
pub(crate) const BY_HAND: OsdId = OsdId(0);
/// The Filestore OSD.
pub(crate) const FILESTORE: OsdId = OsdId(2);

/// Rook's operator, which a person scaled to 0.
pub(crate) const OPERATOR: &str = "rook-ceph/rook-ceph-operator";
/// Last line of a run that leaves nothing to do.
pub(crate) const FINISHED: &str = "finished: nothing is left to do; Rook's operator rook-ceph/rook-ceph-operator is scaled to 0, \
     which osd-migrate no longer needs. Scale it up: kubectl -n rook-ceph scale deployment rook-ceph-operator \
     --replicas=1 [finished]";

pub(crate) const GIB: u64 = 1 << 30;

/// Returns the summary of a run that leaves nothing to do.
pub(crate) fn nothing_left() -> Summary {
    Summary { operator_at_0: Some(OPERATOR.to_owned()), ..Summary::default() }
}

pub(crate) fn cluster() -> ClusterFsid {
    ClusterFsid::new(Uuid::from_u128(0xc1)).unwrap()
}

/// Returns the fsid that an OSD has at first.
pub(crate) fn old(osd: OsdId) -> OsdFsid {
    OsdFsid::new(Uuid::from_u128((0x01d0_0000 + u128::from(osd.0)) << 96 | 1)).unwrap()
}

/// Returns the fsid that ceph-volume generates for an OSD in its n-th attempt.
pub(crate) fn claim(osd: OsdId, n: u32) -> OsdFsid {
    OsdFsid::new(Uuid::from_u128((0xc1a1_0000 + u128::from(osd.0)) << 96 | u128::from(n))).unwrap()
}

/// Returns the fsid of an OSD that osd-migrate did not create.
pub(crate) fn foreign() -> OsdFsid {
    OsdFsid::new(Uuid::from_u128(0xf0_4e16)).unwrap()
}

pub(crate) fn noon() -> DateTime<Utc> {
    DateTime::from_timestamp(1_790_000_000, 0).unwrap()
}

pub(crate) fn host_of(osd: OsdId) -> String {
    format!("h{}", osd.0 / 2 + 1)
}

pub(crate) fn node_of(osd: OsdId) -> NodeName {
    NodeName(host_of(osd))
}

pub(crate) fn pg_id(n: u32) -> PgId {
    PgId(format!("{POOL}.{n:x}"))
}

/// Returns the OSDs to which CRUSH maps a PG.
pub(crate) fn members(n: u32) -> BTreeSet<OsdId> {
    [n & 1, 2 + (n >> 1 & 1), 4 + (n >> 2 & 1)].map(OsdId).into()
}

pub(crate) fn states(text: &str) -> BTreeSet<String> {
    text.split('+').map(str::to_owned).collect()
}

pub(crate) fn identity(osd: OsdId) -> DeviceIdentity {
    DeviceIdentity {
        by_id: BTreeSet::from([format!("ata-disk-{}", osd.0)]),
        by_path: [].into(),
        serial: Some(format!("S{}", osd.0)),
        wwn: None,
        size_bytes: 6 * GIB,
    }
}

/// Returns the evidence that the first inspection collects for an OSD.
pub(crate) fn evidence(osd: OsdId) -> Evidence {
    let (osd_fsid, whoami, cluster) = (old(osd), osd, cluster());
    let proof = if osd == FILESTORE {
        let parts = [(Role::Data, "11111111-aaaa"), (Role::Journal, "33333333-cccc")];
        Proof::Partitions {
            made: Kind::FilestorePartition,
            parts: parts.map(|(role, uuid)| (role, uuid.to_owned())).into(),
            fs_uuid: Some("22222222-bbbb".to_owned()),
            osd_fsid,
            whoami,
            cluster,
        }
    } else {
        Proof::BluestoreLabel { osd_fsid, whoami, cluster, activatable: false }
    };
    Evidence { device: identity(osd), proof, usable_bytes: 6 * GIB, auxiliary: Vec::new() }
}

/// Returns the content of the device of an untouched OSD.
pub(crate) fn old_content(osd: OsdId) -> Content {
    if osd == FILESTORE {
        Content::Osd { made: Kind::FilestorePartition, osd_fsid: old(osd), whoami: osd, cluster: cluster() }
    } else {
        label(old(osd), osd, true)
    }
}

/// Returns a BlueStore label of this cluster.
pub(crate) fn label(osd_fsid: OsdFsid, whoami: OsdId, finished: bool) -> Content {
    let activatable = osd_fsid != old(whoami);
    Content::Bluestore { osd_fsid, whoami: Some(whoami), cluster: Some(cluster()), finished, activatable }
}

pub(crate) fn tombstone(record: &Record) -> Content {
    Content::Tombstone { cluster: cluster(), osd: record.osd, old: record.old, record: record.id.clone() }
}

pub(crate) fn able() -> Capability {
    Capability {
        ceph_version: "ceph version 16.2.15 pacific".to_owned(),
        raw_osd_id: true,
        stores: [ObjectStore::bluestore()].into(),
        missing_tools: BTreeSet::new(),
        key_accepted: true,
        key_trouble: None,
    }
}

pub(crate) fn job_name(record: &RecordId, osd: OsdId, task: NodeTask, attempt: u32) -> String {
    format!("osd-migrate-{task}-{}-{record}-{attempt}", osd.0)
}

pub(crate) fn metadata(store: &str, osd: OsdId, on_partition: bool) -> Metadata {
    Metadata {
        store: ObjectStore(store.to_owned()),
        hostname: host_of(osd),
        devices: vec!["sdb".to_owned()],
        stable_devices: Vec::new(),
        ceph_version: "ceph version 16.2.15 (618f440892089921c3e944a991122ddc44e60516) pacific (stable)"
            .to_owned(),
        on_partition,
        dedicated_db: false,
        dedicated_wal: false,
        device_mapper: false,
        on_file: false,
    }
}

pub(crate) fn pod(osd: OsdId) -> Pod {
    Pod {
        name: format!("rook-ceph-osd-{}-x", osd.0),
        uid: format!("pod-{}", osd.0),
        node: Some(node_of(osd)),
        restarts: 0,
        trouble: None,
    }
}

fn slot(osd: OsdId) -> Slot {
    let location =
        BTreeMap::from([("root".to_owned(), "default".to_owned()), ("host".to_owned(), host_of(osd))]);
    Slot {
        state: SlotState::Exists,
        fsid: Some(old(osd)),
        up: true,
        is_in: true,
        reweight: Weight::from_decimal(0.9),
        primary_affinity: Weight::ONE,
        up_from: Epoch(10),
        down_at: Epoch(5),
        noout: false,
        noin: false,
        auto_out: false,
        crush: Some(CrushItem { location, weight: Weight::ONE, device_class: Some("hdd".to_owned()) }),
        metadata: Some(if osd == FILESTORE {
            metadata("filestore", osd, true)
        } else {
            metadata("bluestore", osd, false)
        }),
        used_bytes: Some(GIB),
        dmcrypt_key: false,
    }
}

pub(crate) fn daemon(osd: OsdId) -> Daemon {
    let legacy = osd == BY_HAND || osd == FILESTORE;
    Daemon {
        name: format!("rook-ceph-osd-{}", osd.0),
        uid: format!("uid-{}", osd.0),
        generation: 1,
        replicas: 1,
        stopped_by: None,
        fsid: (!legacy).then(|| old(osd)),
        node: Some(node_of(osd)),
        image: "ceph:16".to_owned(),
        activates: !legacy,
        mode: (!legacy).then_some(MODE),
        mounts_device: osd == FILESTORE,
        data_dir: None,
        pvc_backed: false,
        managed_externally: None,
        tolerations: Vec::new(),
        opens_encryption: false,
        encrypted_to_rook: false,
        rolled_out: true,
        names_topology: true,
        replica_failure: None,
        pods: vec![pod(osd)],
    }
}

pub(crate) fn pg(n: u32) -> Pg {
    Pg {
        pool: POOL,
        state: states("active+clean"),
        up: members(n),
        acting: members(n),
        reported_epoch: Epoch(50),
        objects: 100,
        degraded: 0,
        misplaced: 0,
        bytes: 100 << 20,
    }
}

pub(crate) fn declaration() -> Declaration {
    Declaration {
        name: "rook-ceph".to_owned(),
        uid: "cc-1".to_owned(),
        api_version: "ceph.rook.io/v1".to_owned(),
        store: ObjectStore::bluestore(),
        confirmed: true,
        data_dir: "/var/lib/rook".to_owned(),
        image: "ceph:16".to_owned(),
        external: false,
        removes_out_osds: false,
        host_network: false,
        binds: None,
        prepare_resources: Resources::default(),
        storage: Storage { all_nodes: true, ..Storage::default() },
        pg_healthy_regex: None,
    }
}

/// Returns a declaration that wants OSDs encrypted.
pub(crate) fn encrypted() -> Storage {
    let config = DeviceConfig { encrypted: Some(true), ..DeviceConfig::default() };
    Storage { all_nodes: true, config, ..Storage::default() }
}

pub(crate) fn observation() -> Observation {
    let osds = || (0..OSDS).map(OsdId);
    let node = |name: &str| {
        let (labels, taints) = (BTreeMap::new(), Vec::new());
        let hostname = name.to_owned();
        (NodeName(name.to_owned()), Node { ready: true, cordoned: false, hostname, labels, taints })
    };
    Observation {
        at: noon(),
        ceph: Ceph {
            fsid: cluster(),
            epoch: Epoch(100),
            flags: BTreeSet::new(),
            health: BTreeSet::new(),
            releases: Releases::One,
            nearfull_ratio: 8500,
            pools: BTreeMap::from([(
                POOL,
                Pool {
                    name: "data".to_owned(),
                    pg_num: PGS,
                    merges: false,
                    size: 3,
                    min_size: 2,
                    data_chunks: None,
                    failure_domain: "host".to_owned(),
                },
            )]),
            slots: osds().map(|osd| (osd, slot(osd))).collect(),
            pgs: (0..PGS).map(|n| (pg_id(n), pg(n))).collect(),
            upmaps: Vec::new(),
            ok_to_stop: osds()
                .map(|osd| (BTreeSet::from([osd]), OkToStop { ok: true, bad_pgs: 0 }))
                .collect(),
            auth: osds().map(|osd| (osd, true)).collect(),
            bootstrap: Some(true),
        },
        kube: Kube {
            declaration: declaration(),
            fence: None,
            fenced_at: None,
            cluster_version: "1".to_owned(),
            operator: Some(Operator {
                name: OPERATOR.to_owned(),
                image: "rook:v1.16".to_owned(),
                uid: "operator".to_owned(),
                replicas: 0,
                pods: 0,
                generation: 1,
                honours_fence: false,
            }),
            rook_checked: Some(noon()),
            rook_image: None,
            // The PodDisruptionBudget allows no eviction: only `steps/drains.rs` tests drains.
            osd_pdb: Some(OsdPdb {
                max_unavailable: 0,
                left_out: BTreeSet::new(),
                uid: "rooks".to_owned(),
                generation: 1,
            }),
            own_pdb: None,
            pdb_rejected: None,
            admission: osds().map(|osd| (osd, Admission::Admitted)).collect(),
            skipped: None,
            daemons: osds().map(|osd| (osd, daemon(osd))).collect(),
            ambiguities: Vec::new(),
            nodes: ["h1", "h2", "h3"].map(node).into(),
            node_jobs: Vec::new(),
            reports: BTreeMap::new(),
            inventories: BTreeMap::new(),
            backups: BTreeMap::new(),
            keys: BTreeMap::new(),
            leftovers: BTreeMap::new(),
            rook_prepares: Vec::new(),
            rook_migrated: BTreeSet::new(),
            draining_failure_domain: None,
            control: None,
            local_volumes: Vec::new(),
        },
    }
}

/// Everything that an iteration is decided from.
#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) policy: Policy,
    pub(crate) ledger: Ledger,
    pub(crate) seen: Observation,
}

impl World {
    pub(crate) fn new() -> Self {
        // Attempts follow each other without a pause: the pauses have tests of their own.
        let limits = Limits { retry_pause: TimeDelta::zero(), ..Limits::default() };
        let policy = Policy { limits, ..Policy::default() };
        Self { policy, ledger: Ledger::default(), seen: observation() }
    }

    /// Returns the view of an iteration in this world.
    pub(crate) fn view(&self) -> View<'_> {
        View { policy: &self.policy, ledger: &self.ledger, seen: &self.seen }
    }

    /// Returns what the real program does in this world.
    pub(crate) fn plan(&self) -> Next {
        plan::plan(&self.policy, &self.ledger, &self.seen)
    }

    /// Applies any change.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Stores the ledger that the program must want to save at this point.
    pub(crate) fn saved(mut self, expected: &str) -> Self {
        match self.plan() {
            Next::Save { ledger, why, .. } if why.code() == expected => self.ledger = ledger,
            other => panic!("expected to save {expected}, got {other:#?}"),
        }
        self
    }

    pub(crate) fn slot(&mut self, osd: OsdId) -> &mut Slot {
        self.seen.ceph.slots.get_mut(&osd).unwrap()
    }

    pub(crate) fn daemon(&mut self, osd: OsdId) -> &mut Daemon {
        self.seen.kube.daemons.get_mut(&osd).unwrap()
    }

    pub(crate) fn record(&mut self, osd: OsdId) -> &mut Record {
        self.ledger.records.get_mut(&osd).unwrap()
    }

    pub(crate) fn pg(&mut self, n: u32) -> &mut Pg {
        self.seen.ceph.pgs.get_mut(&pg_id(n)).unwrap()
    }

    pub(crate) fn minutes_later(mut self, minutes: i64) -> Self {
        self.seen.at += TimeDelta::minutes(minutes);
        self
    }

    // ---- Ceph

    /// Marks an OSD down in the osdmap; the mgr does not know it yet.
    pub(crate) fn down(mut self, osd: OsdId) -> Self {
        self.seen.ceph.epoch.0 += 1;
        let epoch = self.seen.ceph.epoch;
        let slot = self.slot(osd);
        slot.up = false;
        slot.down_at = epoch;
        self
    }

    /// Marks an OSD up in the osdmap; the mgr does not know it yet.
    pub(crate) fn up(mut self, osd: OsdId) -> Self {
        self.seen.ceph.epoch.0 += 1;
        let epoch = self.seen.ceph.epoch;
        let slot = self.slot(osd);
        slot.up = true;
        slot.up_from = epoch;
        slot.state = SlotState::Exists;
        self
    }

    /// Updates the mgr's statistics to the osdmap: PGs on OSDs that are up are complete.
    pub(crate) fn reported(mut self) -> Self {
        let epoch = self.seen.ceph.epoch;
        for n in 0..PGS {
            let up: BTreeSet<OsdId> = members(n)
                .into_iter()
                .filter(|osd| self.seen.ceph.slots.get(osd).is_some_and(|s| s.up))
                .collect();
            let lacking = 3 - up.len() as u64;
            let pg = self.pg(n);
            pg.state = states(if lacking == 0 { "active+clean" } else { "active+undersized+degraded" });
            pg.degraded = lacking * pg.objects;
            pg.misplaced = 0;
            pg.acting.clone_from(&up);
            pg.up = up;
            pg.reported_epoch = epoch;
        }
        self
    }

    /// Sets the state of one PG, as reported at this moment.
    pub(crate) fn pg_state(mut self, n: u32, text: &str) -> Self {
        let epoch = self.seen.ceph.epoch;
        let pg = self.pg(n);
        pg.state = states(text);
        pg.reported_epoch = epoch;
        self
    }

    // ---- node agents

    /// Adds the Job of the saved attempt.
    pub(crate) fn job(mut self, osd: OsdId, state: JobState) -> Self {
        let record = self.record(osd).clone();
        let name = job_name(&record.id, osd, record.attempt.task, record.attempt.number);
        self.seen.kube.node_jobs.retain(|job| job.name != name);
        self.seen.kube.node_jobs.push(NodeJob {
            uid: format!("uid-{name}"),
            name,
            osd,
            record: record.id,
            attempt: record.attempt.number,
            task: record.attempt.task,
            state,
            created_at: self.seen.at,
            heartbeat_at: None,
            trouble: None,
        });
        self
    }

    /// Ends the agent of the saved attempt with a report.
    pub(crate) fn report(self, osd: OsdId, content: Option<Content>, problem: Option<NodeProblem>) -> Self {
        self.report_with(osd, |report| {
            report.inspection = content.map(|content| Inspection {
                content,
                evidence: Some(evidence(osd)),
                capability: able(),
                volume: None,
                kernel: None,
            });
            report.problem = problem;
        })
    }

    /// Ends the agent of the saved attempt with a report that the caller changes.
    pub(crate) fn report_with(self, osd: OsdId, change: impl FnOnce(&mut NodeReport)) -> Self {
        let mut world = self.job(osd, JobState::Ended);
        let record = world.record(osd).clone();
        let content = old_content(osd);
        let mut report = NodeReport {
            record: record.id.clone(),
            attempt: record.attempt.number,
            osd,
            task: record.attempt.task,
            began_at: world.seen.at,
            ended_at: world.seen.at,
            steps: vec![("prove".to_owned(), 3)],
            issued: record.issued.clone(),
            inspection: Some(Inspection {
                content,
                evidence: Some(evidence(osd)),
                capability: able(),
                volume: None,
                kernel: None,
            }),
            left: Vec::new(),
            problem: None,
        };
        change(&mut report);
        let name = job_name(&record.id, osd, record.attempt.task, record.attempt.number);
        world.seen.kube.reports.insert(name, report);
        world
    }

    // ---- the ladder

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
        Self::proven(osd).keep(osd).saved("stop").with_flags_set(osd).fenced(osd)
    }

    /// Saves the Deployment as found as a backup.
    pub(crate) fn keep(mut self, osd: OsdId) -> Self {
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
        self.saved("rebuild").report(osd, content, problem).report_issued(osd, [claim(osd, 1)])
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
        let fsid = claim(osd, 1);
        Self::destroyed(osd).rebuild_ended(osd, Some(label(fsid, osd, true)), None).slot_registered(osd, fsid)
    }

    /// Returns a world in which the Deployment of the new OSD exists.
    pub(crate) fn deployed(osd: OsdId) -> Self {
        Self::prepared(osd).saved("new").with(|w| {
            *w.daemon(osd) = Daemon { fsid: Some(claim(osd, 1)), activates: true, ..daemon(osd) };
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

/// Returns the code of a save, if the step is one.
pub(crate) fn word(next: &Next) -> Option<&'static str> {
    match next {
        Next::Save { why, .. } => Some(why.code()),
        _ => None,
    }
}

/// Returns why an OSD is quarantined, if it is.
pub(crate) fn quarantine(next: &Next) -> Option<&str> {
    match next {
        Next::Save { why: Saving::Quarantine { why }, .. } => Some(why),
        _ => None,
    }
}

/// Mode of a layout in these tests.
pub(crate) const MODE: Mode = Mode::Raw;
