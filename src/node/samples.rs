//! Output of the tools of nodes of three releases, for the tests alongside the parsers:
//! `tests/suite/fixtures`.

use super::devices::Disk;
use crate::domain::osd::DeviceIdentity;

/// Releases whose tools were run on the same disks.
pub(super) const RELEASES: [&str; 3] = ["16.2.15", "18.2.7", "20.2.4"];

/// Returns captured output about disks and their contents: `fixtures/inventory`.
pub(super) fn said(release: &str, name: &str) -> String {
    read(&format!("inventory/{release}/{name}"))
}

/// Returns the captured label of a part of a legacy OSD, by kind: `fixtures/legacy`.
pub(super) fn label(release: &str, kind: &str, part: &str) -> String {
    read(&format!("legacy/{release}/readers/label-{kind}-{part}.json"))
}

/// Returns a disk `sdb` without links, holders, partitions or a serial number.
pub(super) fn bare_disk(by_id: &[&str], size_bytes: u64) -> Disk {
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

fn read(name: &str) -> String {
    let path = format!("{}/tests/suite/fixtures/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}
