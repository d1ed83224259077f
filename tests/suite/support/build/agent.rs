//! What node agents find on the devices of the small world.

use std::collections::BTreeSet;

use osd_migrate::domain::inspection::{Capability, Content, Evidence, NodeTask, Proof, RecordId};
use osd_migrate::domain::ledger::Record;
use osd_migrate::domain::osd::{DeviceIdentity, Kind, ObjectStore, OsdFsid, OsdId, Role};

use super::ids::{FILESTORE, GIB, cluster, old};

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
            format: Kind::FilestorePartition,
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
        Content::Osd { format: Kind::FilestorePartition, osd_fsid: old(osd), whoami: osd, cluster: cluster() }
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
        tool_trouble: None,
    }
}

pub(crate) fn job_name(record: &RecordId, osd: OsdId, task: NodeTask, attempt: u32) -> String {
    format!("osd-migrate-{task}-{}-{record}-{attempt}", osd.0)
}
