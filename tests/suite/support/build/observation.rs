//! What is observed in the small world, and what its CephCluster declares.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;

use osd_migrate::domain::observation::{
    Admission, Autoscale, BackfillFull, BoundVolume, Ceph, FailedActs, Kube, Node, Observation, OkToStop,
    Operator, OsdPdb, Pool, Pvc, Releases, RookPrepare,
};
use osd_migrate::domain::osd::{Epoch, NodeName, ObjectStore, OsdId};
use osd_migrate::domain::policy::Declaration;
use osd_migrate::domain::removal::Requests;
use osd_migrate::domain::shared::Shared;
use osd_migrate::domain::storage::{DeviceConfig, Resources, Storage};

use super::ids::{OPERATOR, OSDS, PGS, POOL, cluster, noon, pg_id};
use super::osd::{daemon, pg, slot};

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
        resets_weights: false,
        host_network: false,
        binds: None,
        prepare_resources: Resources::default(),
        storage: Storage { all_nodes: true, ..Storage::default() },
        pg_healthy_regex: None,
        kms: None,
        rotates_keys: false,
    }
}

/// Returns a PVC of set1 that is bound to pv1.
pub(crate) fn bound_pvc() -> Pvc {
    Pvc {
        uid: "uid-of-pvc".to_owned(),
        volume: Some(BoundVolume { name: "pv1".to_owned(), uid: Some("uid-of-pv1".to_owned()), nodes: None }),
        set: Some("set1".to_owned()),
        index: Some("0".to_owned()),
        template: Some("data".to_owned()),
        phase: "Bound".to_owned(),
        is_deleted: false,
        is_block: true,
        is_for_one_pod: false,
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
        failed: FailedActs::default(),
        ceph: Ceph {
            empty_hosts: BTreeSet::new(),
            fsid: cluster(),
            epoch: Epoch(100),
            flags: BTreeSet::new(),
            health: BTreeSet::new(),
            releases: Releases::One,
            nearfull_ratio: 8500,
            backfill_full: BackfillFull { ratio: 9000, osds: BTreeMap::new() },
            pools: Shared::from_iter([(
                POOL,
                Pool {
                    name: "data".to_owned(),
                    pg_num: PGS,
                    merges: false,
                    resizes: false,
                    autoscale: Autoscale::On,
                    size: 3,
                    min_size: 2,
                    data_chunks: None,
                    any_losses: None,
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
            recovery: None,
            commit_latency: None,
            safe_to_destroy: BTreeMap::new(),
            emptiable: BTreeMap::new(),
        },
        kube: Kube {
            declaration: declaration().into(),
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
                opens_lvm: false,
            }),
            rook_checked: Some(noon() - TimeDelta::minutes(3)),
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
            requests: Requests::default(),
            admission: osds().map(|osd| (osd, Admission::Admitted)).collect(),
            skipped: None,
            daemons: osds().map(|osd| (osd, daemon(osd))).collect(),
            ambiguities: Vec::new(),
            nodes: BTreeMap::from(["h1", "h2", "h3"].map(node)).into(),
            node_jobs: Shared::default(),
            reports: Shared::default(),
            inventories: Shared::default(),
            backups: BTreeMap::new(),
            keys: BTreeMap::new(),
            leftovers: BTreeMap::new(),
            rook_prepares: Vec::new(),
            rook_migrated: BTreeSet::new(),
            draining_failure_domain: None,
            control: None,
            local_volumes: Shared::default(),
            pvcs: Shared::default(),
            rotating: BTreeSet::new(),
            rotations: BTreeMap::new(),
        },
    }
}

/// Returns a running Job in which Rook prepares OSDs.
pub(crate) fn prepare(node: Option<&NodeName>) -> RookPrepare {
    let of = node.map_or("set1-data-0a", |node| node.0.as_str());
    RookPrepare { job: format!("rook-ceph-osd-prepare-{of}"), node: node.cloned() }
}
