//! Requests, proofs and findings for the tests of this folder: of osd.1 with the fsid 1 in the cluster 1.

use crate::domain::inspection::{Content, Evidence, NodeRequest, NodeTask, Proof, RecordId};
use crate::domain::osd::{
    ClusterFsid, DeviceIdentity, Kind, Layout, Mode, NodeName, ObjectStore, OsdFsid, OsdId, Role,
};
use crate::domain::proof::finding::DiskFinding;

pub(super) fn fsid(n: u8) -> OsdFsid {
    format!("00000000-0000-0000-0000-0000000000{n:02}").parse().unwrap()
}

pub(super) fn cluster(n: u8) -> ClusterFsid {
    format!("10000000-0000-0000-0000-0000000000{n:02}").parse().unwrap()
}

pub(super) fn device() -> DeviceIdentity {
    DeviceIdentity {
        by_id: ["ata-1".to_owned()].into(),
        by_path: [].into(),
        serial: Some("S".into()),
        wwn: None,
        size_bytes: 1000,
    }
}

pub(super) fn label(osd_fsid: OsdFsid) -> Proof {
    Proof::BluestoreLabel { osd_fsid, whoami: OsdId(1), cluster: cluster(1), activatable: false }
}

pub(super) fn filestore() -> Proof {
    Proof::Partitions {
        format: Kind::FilestorePartition,
        parts: [(Role::Data, "d".to_owned()), (Role::Journal, "j".to_owned())].into(),
        fs_uuid: Some("f".into()),
        osd_fsid: fsid(1),
        whoami: OsdId(1),
        cluster: cluster(1),
    }
}

pub(super) fn volume(group: &str, volume: &str, luks: Option<&str>, alone: bool) -> Proof {
    Proof::Volume {
        format: if luks.is_some() { Kind::LvmCrypt } else { Kind::Lvm },
        group: group.into(),
        volume: volume.into(),
        name: "g/v".into(),
        alone,
        luks: luks.map(str::to_owned),
        osd_fsid: fsid(1),
        whoami: OsdId(1),
        cluster: cluster(1),
    }
}

pub(super) fn request() -> NodeRequest {
    NodeRequest {
        record: RecordId("r2".into()),
        attempt: 1,
        task: NodeTask::Rebuild,
        node: NodeName("n".into()),
        cluster: cluster(1),
        osd: OsdId(1),
        old: fsid(1),
        issued: [].into(),
        mon_host: String::new(),
        evidence: None,
        target: Layout { store: ObjectStore::bluestore(), mode: Mode::Raw, encrypted: false },
        device_class: None,
        on_file: false,
        db: None,
        after: None,
        directory: None,
        pvcs: None,
        on_new_pvcs: false,
        is_encrypted: false,
    }
}

pub(super) fn evidence(proof: Proof) -> Evidence {
    Evidence { device: device(), proof, usable_bytes: 1000, auxiliary: Vec::new() }
}

pub(super) fn bluestore(
    osd_fsid: OsdFsid,
    whoami: Option<u32>,
    in_cluster: Option<u8>,
    finished: bool,
    activatable: bool,
) -> DiskFinding {
    let (whoami, in_cluster) = (whoami.map(OsdId), in_cluster.map(cluster));
    let proof = match (finished, whoami, in_cluster) {
        (true, Some(whoami), Some(cluster)) => {
            Some(Proof::BluestoreLabel { osd_fsid, whoami, cluster, activatable })
        }
        _ => None,
    };
    let content = Content::Bluestore { osd_fsid, whoami, cluster: in_cluster, finished, activatable };
    DiskFinding { proof, ..DiskFinding::plain(content, Some(osd_fsid)) }
}
