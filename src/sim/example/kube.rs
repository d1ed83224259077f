//! Kubernetes objects of an example at first, except those of its OSDs.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::observation::{Kube, Operator, OsdPdb};
use crate::domain::osd::ObjectStore;
use crate::domain::policy::Declaration;
use crate::domain::removal::Requests;
use crate::domain::shared::Shared;
use crate::domain::storage::{Resources, Storage};

/// Returns the objects of a cluster whose Rook operator is at 0 replicas, and whose migration is confirmed.
pub(super) fn kube() -> Kube {
    Kube {
        declaration: declaration().into(),
        cluster_version: "1".to_owned(),
        fence: None,
        fenced_at: None,
        operator: Some(Operator {
            name: "rook-ceph/rook-ceph-operator".to_owned(),
            image: "rook/ceph:v1.6.11".to_owned(),
            uid: "operator".to_owned(),
            replicas: 0,
            pods: 0,
            generation: 1,
            honours_fence: false,
            opens_lvm: false,
        }),
        rook_checked: None,
        rook_image: None,
        osd_pdb: Some(OsdPdb {
            max_unavailable: 1,
            left_out: BTreeSet::new(),
            uid: "rooks".to_owned(),
            generation: 1,
        }),
        own_pdb: None,
        pdb_rejected: None,
        admission: BTreeMap::new(),
        requests: Requests::default(),
        skipped: None,
        daemons: Shared::default(),
        ambiguities: Vec::new(),
        nodes: Shared::default(),
        node_jobs: Shared::default(),
        reports: Shared::default(),
        inventories: Shared::default(),
        backups: BTreeMap::new(),
        control: None,
        local_volumes: Shared::default(),
        pvcs: Shared::default(),
        rotating: BTreeSet::new(),
        rotations: BTreeMap::new(),
        keys: BTreeMap::new(),
        leftovers: BTreeMap::new(),
        rook_prepares: Vec::new(),
        rook_migrated: BTreeSet::new(),
        draining_failure_domain: None,
    }
}

fn declaration() -> Declaration {
    Declaration {
        name: "rook-ceph".to_owned(),
        uid: "uid-cluster".to_owned(),
        api_version: "ceph.rook.io/v1".to_owned(),
        store: ObjectStore::bluestore(),
        confirmed: true,
        data_dir: "/var/lib/rook".to_owned(),
        image: "ceph:v16.2.15".to_owned(),
        external: false,
        removes_out_osds: false,
        resets_weights: false,
        host_network: false,
        binds: None,
        prepare_resources: Resources::default(),
        storage: Storage::default(),
        pg_healthy_regex: None,
        kms: None,
        rotates_keys: false,
    }
}
