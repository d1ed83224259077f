//! Samples for the tests of the agent: a host, a request, a bare disk, and the output of the tools of nodes
//! of three releases (`tests/suite/fixtures`).

use std::path::Path;

use crate::domain::inspection::{NodeRequest, NodeTask, RecordId};
use crate::domain::osd::{DeviceIdentity, Layout, Mode, NodeName, ObjectStore, OsdId};
use crate::node::disk::devices::Disk;
use crate::node::host::Host;

/// Releases whose tools were run on the same disks.
pub(crate) const RELEASES: [&str; 3] = ["16.2.15", "18.2.7", "20.2.4"];

/// Returns captured output about disks and their contents: `fixtures/inventory`.
pub(crate) fn said(release: &str, name: &str) -> String {
    read(&format!("inventory/{release}/{name}"))
}

/// Returns captured output about a node with OSDs on PersistentVolumeClaims: `fixtures/pvc`.
pub(crate) fn on_claims(name: &str) -> String {
    read(&format!("pvc/16.2.15/node/{name}"))
}

/// Returns the captured label of a part of a legacy OSD, by kind: `fixtures/legacy`.
pub(crate) fn label(release: &str, kind: &str, part: &str) -> String {
    read(&format!("legacy/{release}/readers/label-{kind}-{part}.json"))
}

/// Returns a disk `sdb` without links, holders, partitions or a serial number.
pub(crate) fn bare_disk(by_id: &[&str], size_bytes: u64) -> Disk {
    let identity = DeviceIdentity {
        by_id: by_id.iter().map(|name| (*name).to_owned()).collect(),
        by_path: [].into(),
        serial: None,
        wwn: None,
        size_bytes,
    };
    Disk {
        name: "sdb".into(),
        node: "/dev/sdb".into(),
        number: (8, 16),
        identity,
        links: [].into(),
        parent: None,
        rotational: true,
        read_only: false,
        holders: Vec::new(),
        partitions: Vec::new(),
    }
}

/// Returns the environment of an agent with all paths below `root`.
pub(crate) fn host(root: &Path) -> Host {
    Host {
        node: NodeName("n1".into()),
        sys_block: root.join("sys"),
        dev: root.join("dev"),
        proc: root.join("proc"),
        sys_fs: root.join("sys_fs"),
        state: root.join("state"),
        ceph_conf: root.join("etc/ceph.conf"),
        keyring: root.join("keyring"),
        parent: root.join("parent"),
        rook: root.join("rook"),
        namespace: "rook-ceph".into(),
        pvc: root.join("pvc"),
        key: root.join("key"),
        scratch: root.join("tmp"),
        binary: "/proc/self/exe".into(),
        path: String::new(),
    }
}

/// Returns a request to rebuild osd.1 on that node.
pub(crate) fn request(node: &str) -> NodeRequest {
    NodeRequest {
        record: RecordId("r".into()),
        attempt: 2,
        task: NodeTask::Rebuild,
        node: NodeName(node.into()),
        cluster: "5f382147-dc61-408c-ad68-8e6a2e37590b".parse().unwrap(),
        osd: OsdId(1),
        old: "55ebe299-c0ce-4341-960a-ddfd22d5b5bf".parse().unwrap(),
        issued: [].into(),
        mon_host: "[v2:10.0.0.1:3300,v1:10.0.0.1:6789]".into(),
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

fn read(name: &str) -> String {
    let path = format!("{}/tests/suite/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}
