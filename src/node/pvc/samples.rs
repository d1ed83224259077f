//! Samples for the tests of this folder: a database on a file in place of a device. Labels are read with
//! Ceph's tools, in the lab.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::domain::inspection::{Evidence, NodeRequest, Piece, PieceLocation, Proof};
use crate::domain::osd::pvc::PerPvc;
use crate::domain::osd::{OsdFsid, Role};
use crate::node::disk::devices::{Disk, NO_DEVICE};
use crate::node::disk::label::Label;
use crate::node::pvc::part::Part;
use crate::node::samples::{bare_disk, request};

pub(super) const DB: &str = "set1-metadata-0x";
/// uuid of the LUKS header of the old database
pub(super) const OLD_HEADER: &str = "95889c26-82f1-46a3-b2a7-609a34676da4";
pub(super) const SIZE: u64 = 100 << 20;

/// Returns the request for an OSD with a database on a PVC of its own.
pub(super) fn with_db(encrypted: bool) -> NodeRequest {
    let pvcs = PerPvc { db: Some(DB.to_owned()), ..PerPvc::of_data("set1-data-0x".to_owned()) };
    let mut request = NodeRequest { pvcs: Some(pvcs), ..request("n1") };
    request.target.encrypted = encrypted;
    request
}

/// Returns the database on that file, which is made with zeros if it does not exist.
pub(super) fn db_on(path: &Path) -> Part<'static> {
    OpenOptions::new().write(true).create(true).truncate(false).open(path).unwrap().set_len(SIZE).unwrap();
    let disk = Disk {
        name: "vdb".to_owned(),
        node: path.to_owned(),
        number: NO_DEVICE,
        ..bare_disk(&["virtio-db"], SIZE)
    };
    Part { role: Role::Db, pvc: DB, disk }
}

pub(super) fn put(path: &Path, at: u64, bytes: &[u8]) {
    OpenOptions::new().write(true).open(path).unwrap().write_all_at(bytes, at).unwrap();
}

/// Returns the evidence of the old OSD with this database.
pub(super) fn evidence(request: &NodeRequest, db: &Part<'_>, luks: Option<&str>) -> Evidence {
    let (osd_fsid, whoami, cluster) = (request.old, request.osd, request.cluster);
    let proof = Proof::BluestoreLabel { osd_fsid, whoami, cluster, activatable: true };
    let (name, device) = (db.pvc.to_owned(), db.disk.identity.clone());
    let place = PieceLocation::Pvc { name, device: device.clone(), luks: luks.map(str::to_owned) };
    let auxiliary = vec![Piece { role: db.role, place }];
    Evidence { device, proof, usable_bytes: 1, auxiliary }
}

/// Returns the first sector of a LUKS2 header with that uuid and label.
pub(super) fn labelled(uuid: &str, label: &str) -> Vec<u8> {
    let mut bytes = header(uuid);
    bytes[24..24 + label.len()].copy_from_slice(label.as_bytes());
    bytes
}

/// Returns the first sector of a LUKS2 header with that uuid.
pub(super) fn header(uuid: &str) -> Vec<u8> {
    let mut bytes = vec![0; 512];
    bytes[..8].copy_from_slice(b"LUKS\xba\xbe\x00\x02");
    bytes[168..168 + uuid.len()].copy_from_slice(uuid.as_bytes());
    bytes
}

/// Returns the label of a part, as mkfs writes it.
pub(super) fn label(part: &str, osd_fsid: OsdFsid) -> Label {
    Label {
        osd_fsid,
        whoami: None,
        cluster: None,
        finished: false,
        activatable: false,
        part: part.to_owned(),
    }
}

/// Returns the fsid of a new OSD.
pub(super) fn new() -> OsdFsid {
    "500fff8e-39ff-4d5f-a72f-3cd43f874c6b".parse().unwrap()
}
