//! The OSDs and PGs of the small world, as Ceph and Kubernetes report them.

use std::collections::{BTreeMap, BTreeSet};

use osd_migrate::domain::observation::{Daemon, Metadata, Pg, Pod, Slot, SlotState};
use osd_migrate::domain::osd::{CrushItem, Epoch, Mode, ObjectStore, OsdId, Weight};
use osd_migrate::domain::shared::Shared;

use super::ids::{BY_HAND, FILESTORE, GIB, POOL, host_of, members, node_of, old};

/// Mode of a layout in these tests.
pub(crate) const MODE: Mode = Mode::Raw;

pub(crate) fn states(text: &str) -> Shared<BTreeSet<String>> {
    text.split('+').map(str::to_owned).collect::<BTreeSet<_>>().into()
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

pub(super) fn slot(osd: OsdId) -> Slot {
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
        down_since: None,
        noout: false,
        noin: false,
        nodown: None,
        noup: None,
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
        on_pvcs: None,
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
