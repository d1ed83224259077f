//! The inventory of a node's disks in its ConfigMap: plain JSON if it is small, gzip if it is not, and never
//! shortened without a note. Pure; this file contains both the writer and the reader.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use crate::domain::inventory::{DiskState, InventoryReport};

/// Key in `data`.
pub const INVENTORY: &str = "inventory";
/// Key in `binaryData`, if the plain text would be too long.
pub const INVENTORY_GZ: &str = "inventory.gz";

/// Size limit of a stored report: a ConfigMap has at most 1 MiB, and base64 and the rest of a request must
/// fit, too.
const LIMIT: usize = 512 << 10;
/// Size limit of an unpacked report: none of ours is as long as this, so a longer one is not unpacked.
const UNPACKED_LIMIT: u64 = 64 << 20;

/// A report in its stored form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stored {
    /// JSON, for `data`.
    Plain(String),
    /// Compressed JSON, for `binaryData`.
    Gzip(Vec<u8>),
}

impl Stored {
    /// Returns the merge patch that writes the report.
    pub(super) fn into_patch(self) -> Value {
        match self {
            Self::Plain(text) => json!({"data": {INVENTORY: text}}),
            Self::Gzip(bytes) => json!({"binaryData": {INVENTORY_GZ: ByteString(bytes)}}),
        }
    }
}

/// Returns the report in the smallest form that is necessary.
///
/// If the report does not fit even compressed, rejected disks are left out, the last ones first: no decision
/// depends on them. A note gives their number.
pub fn fit(report: &InventoryReport) -> Result<Stored, String> {
    fit_below(report, LIMIT)
}

fn fit_below(report: &InventoryReport, limit: usize) -> Result<Stored, String> {
    let plain = serde_json::to_string(report).map_err(|e| e.to_string())?;
    if plain.len() <= limit {
        return Ok(Stored::Plain(plain));
    }
    let is_rejected = |state: &DiskState| matches!(state, DiskState::Rejected { .. });
    let disks = report.inventory.iter().flat_map(|inventory| &inventory.disks);
    let rejected = disks.filter(|disk| is_rejected(&disk.state)).count();
    let without = |left_out: usize| packed(&shortened(report, rejected - left_out, left_out));
    let all = packed(report)?;
    if all.len() <= limit {
        return Ok(Stored::Gzip(all));
    }
    // Searches the smallest number of disks to leave out: `fits` is known to fit, `too_few` is known not to.
    let (mut too_few, mut fits, mut best) = (0, rejected, without(rejected)?);
    if best.len() > limit {
        let problem = format!("the inventory has {} compressed bytes: too much for a ConfigMap", best.len());
        let short = InventoryReport { inventory: None, problem: Some(problem), ..report.clone() };
        return packed(&short).map(Stored::Gzip);
    }
    while fits - too_few > 1 {
        let middle = usize::midpoint(too_few, fits);
        let bytes = without(middle)?;
        if bytes.len() <= limit {
            (fits, best) = (middle, bytes);
        } else {
            too_few = middle;
        }
    }
    Ok(Stored::Gzip(best))
}

/// Returns the report with only the first `backups` rejected disks.
fn shortened(report: &InventoryReport, backups: usize, left_out: usize) -> InventoryReport {
    let mut report = report.clone();
    if let Some(inventory) = &mut report.inventory {
        let mut seen = 0;
        inventory.disks.retain(|disk| {
            let is_rejected = matches!(disk.state, DiskState::Rejected { .. });
            seen += usize::from(is_rejected);
            !is_rejected || seen <= backups
        });
        if left_out > 0 {
            inventory.notes.push(format!("{left_out} rejected disks are omitted: the report was too long"));
        }
    }
    report
}

fn packed(report: &InventoryReport) -> Result<Vec<u8>, String> {
    let text = serde_json::to_vec(report).map_err(|e| e.to_string())?;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&text).and_then(|()| encoder.finish()).map_err(|e| e.to_string())
}

/// Reads the result of `fit` from the values of the two keys; none if neither exists yet.
pub fn unpack(plain: Option<&str>, gzip: Option<&[u8]>) -> Option<Result<InventoryReport, String>> {
    if let Some(text) = plain.filter(|text| !text.is_empty()) {
        return Some(serde_json::from_str(text).map_err(|e| e.to_string()));
    }
    let bytes = gzip.filter(|bytes| !bytes.is_empty())?;
    let mut text = Vec::new();
    let read = GzDecoder::new(bytes).take(UNPACKED_LIMIT).read_to_end(&mut text);
    Some(
        read.map_err(|e| e.to_string())
            .and_then(|_| serde_json::from_slice(&text).map_err(|e| e.to_string())),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::inspection::Capability;
    use crate::domain::inventory::{DiskSeen, NodeInventory, Rejection};
    use crate::domain::osd::{DeviceIdentity, NodeName};

    fn disk(number: u32, state: DiskState) -> DiskSeen {
        let serial = format!("{:x}", uuid::Uuid::from_u128(u128::from(number) * 0x9e37_79b9_7f4a_7c15));
        DiskSeen {
            name: format!("sd{number}"),
            parent: None,
            links: [format!("/dev/disk/by-id/ata-{serial}")].into(),
            identity: DeviceIdentity {
                by_id: [format!("ata-{serial}")].into(),
                by_path: [].into(),
                serial: Some(serial),
                wwn: None,
                size_bytes: 1 << 40,
            },
            rotational: true,
            state,
        }
    }

    fn report(rejected: u32) -> InventoryReport {
        let mut disks: Vec<DiskSeen> =
            (0..rejected).map(|n| disk(n, DiskState::Rejected { why: Rejection::ReadOnly })).collect();
        disks.push(disk(rejected, DiskState::Available));
        InventoryReport {
            run: "uid".into(),
            number: 1,
            node: NodeName("n1".into()),
            began_at: chrono::DateTime::UNIX_EPOCH,
            ended_at: chrono::DateTime::UNIX_EPOCH,
            steps: vec![("disks".into(), 3)],
            inventory: Some(NodeInventory {
                capability: Capability {
                    ceph_version: "ceph version 16.2.15".into(),
                    raw_osd_id: true,
                    stores: [].into(),
                    missing_tools: [].into(),
                    key_accepted: false,
                    key_trouble: None,
                    tool_trouble: None,
                },
                disks,
                osds: Vec::new(),
                database_groups: std::collections::BTreeMap::new(),
                notes: Vec::new(),
            }),
            problem: None,
        }
    }

    fn read(stored: &Stored) -> InventoryReport {
        match stored {
            Stored::Plain(text) => unpack(Some(text), None),
            Stored::Gzip(bytes) => unpack(Some(""), Some(bytes)),
        }
        .unwrap()
        .unwrap()
    }

    #[test]
    fn inventory_report_is_plain_if_short_and_gzipped_if_long() {
        let short = fit(&report(3)).unwrap();
        assert!(matches!(short, Stored::Plain(_)));
        assert_eq!(read(&short), report(3));
        let long = fit(&report(3000)).unwrap();
        assert!(matches!(&long, Stored::Gzip(bytes) if bytes.len() < LIMIT));
        assert_eq!(read(&long), report(3000));
    }

    #[test]
    fn oversized_inventory_drops_and_counts_last_rejected_disks() {
        let limit = 4 << 10;
        let Stored::Gzip(bytes) = fit_below(&report(300), limit).unwrap() else { panic!() };
        assert!(bytes.len() <= limit && bytes.len() > limit - 200, "{}", bytes.len());
        let inventory = read(&Stored::Gzip(bytes)).inventory.unwrap();
        let left_out = 301 - inventory.disks.len();
        assert!(
            inventory.notes[0].starts_with(&format!("{left_out} rejected disks")),
            "{:?}",
            inventory.notes
        );
        assert_eq!(inventory.disks[0].name, "sd0");
        assert_eq!(inventory.disks.last().unwrap().state, DiskState::Available);
    }

    #[test]
    fn inventory_that_can_not_fit_at_all_is_a_problem() {
        let short = read(&fit_below(&report(300), 100).unwrap());
        assert!(short.inventory.is_none() && short.problem.unwrap().contains("too much"));
    }

    #[test]
    fn missing_inventory_is_distinguished_from_a_malformed_one() {
        assert_eq!(unpack(None, None), None);
        assert_eq!(unpack(Some(""), Some(b"")), None);
        assert!(unpack(Some("{"), None).unwrap().is_err());
        assert!(unpack(None, Some(b"no gzip")).unwrap().is_err());
        let Stored::Gzip(bytes) = fit_below(&report(300), 64 << 10).unwrap() else { panic!() };
        assert!(unpack(None, Some(&bytes[..bytes.len() / 2])).unwrap().is_err(), "cut short");
    }
}
