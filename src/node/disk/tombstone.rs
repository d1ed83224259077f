//! The tombstone: the mark that osd-migrate writes over the first sector before anything else is wiped. A
//! disk whose OSD is partly wiped still says whose it is.
//!
//! The whole tombstone fits into the first 512 bytes, the smallest unit that a disk writes whole. A power cut
//! leaves either the old sector (and with it the old label or partition table) or the complete tombstone,
//! never neither. The last two bytes stay zero: they are the place of a partition table's signature.

use serde::{Deserialize, Serialize};

use crate::domain::fnv;
use crate::domain::inspection::{Content, NodeRequest, RecordId};
use crate::domain::osd::{ClusterFsid, OsdFsid, OsdId};

/// Size of a tombstone in bytes.
pub(crate) const SECTOR: usize = 512;
const MAGIC: &[u8; 20] = b"osd-migrate tomb v1\n";
const LENGTH_AT: usize = MAGIC.len();
const CHECK_AT: usize = LENGTH_AT + 4;
const TEXT_AT: usize = CHECK_AT + 8;
const TEXT_END: usize = SECTOR - 2;

/// OSD that was on the disk, and the record that the disk is reserved for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tombstone {
    pub(crate) cluster: ClusterFsid,
    pub(crate) osd: OsdId,
    pub(crate) old: OsdFsid,
    pub(crate) record: RecordId,
}

impl Tombstone {
    /// Returns the tombstone that the wipe of a request leaves.
    pub(crate) fn of(request: &NodeRequest) -> Self {
        Self { cluster: request.cluster, osd: request.osd, old: request.old, record: request.record.clone() }
    }

    /// Converts the tombstone into its form in a report.
    pub(crate) fn into_content(self) -> Content {
        let Self { cluster, osd, old, record } = self;
        Content::Tombstone { cluster, osd, old, record }
    }

    /// Returns the sector to write, or none if the record's name is too long for it.
    pub(crate) fn to_sector(&self) -> Option<[u8; SECTOR]> {
        let text = serde_json::to_vec(self).ok()?;
        let mut sector = [0; SECTOR];
        sector.get_mut(..LENGTH_AT)?.copy_from_slice(MAGIC);
        sector.get_mut(LENGTH_AT..CHECK_AT)?.copy_from_slice(&u32::try_from(text.len()).ok()?.to_le_bytes());
        sector.get_mut(CHECK_AT..TEXT_AT)?.copy_from_slice(&checksum(&text).to_le_bytes());
        sector.get_mut(TEXT_AT..TEXT_END)?.get_mut(..text.len())?.copy_from_slice(&text);
        Some(sector)
    }

    /// Returns the tombstone at the beginning of a disk, if there is one.
    pub(crate) fn from_head(head: &[u8]) -> Option<Self> {
        if head.get(..LENGTH_AT)? != MAGIC {
            return None;
        }
        let length = u32::from_le_bytes(head.get(LENGTH_AT..CHECK_AT)?.try_into().ok()?);
        let check = u64::from_le_bytes(head.get(CHECK_AT..TEXT_AT)?.try_into().ok()?);
        let rest = head.get(TEXT_AT..SECTOR)?;
        let (text, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        // A partition table leaves the place of the boot code as it is (sgdisk): the disk is used since.
        if checksum(text) != check || rest.iter().any(|byte| *byte != 0) {
            return None;
        }
        serde_json::from_slice(text).ok()
    }
}

/// Returns the checksum.
///
/// It detects a torn or foreign sector; a forged sector is not expected.
fn checksum(bytes: &[u8]) -> u64 {
    fnv::hash(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stone(record: &str) -> Tombstone {
        Tombstone {
            cluster: "5f382147-dc61-408c-ad68-8e6a2e37590b".parse().unwrap(),
            osd: OsdId(4_294_967_295),
            old: "55ebe299-c0ce-4341-960a-ddfd22d5b5bf".parse().unwrap(),
            record: RecordId(record.to_owned()),
        }
    }

    #[test]
    fn tombstone_is_read_as_written_and_is_never_a_boot_sector() {
        let sector = stone("55ebe299-1").to_sector().unwrap();
        assert_eq!(Tombstone::from_head(&sector), Some(stone("55ebe299-1")));
        assert_eq!(sector[510..], [0, 0]);
    }

    #[test]
    fn tombstone_with_any_changed_byte_is_not_recognised() {
        let sector = stone("r").to_sector().unwrap();
        let length = sector.iter().rposition(|byte| *byte != 0).unwrap() + 1;
        for at in 0..length {
            let mut torn = sector;
            torn[at] ^= 0x20;
            assert_ne!(Tombstone::from_head(&torn), Some(stone("r")), "byte {at}");
        }
        assert_eq!(Tombstone::from_head(&sector[..100]), None);
        assert_eq!(Tombstone::from_head(&[0; SECTOR]), None);
    }

    #[test]
    fn tombstone_below_a_partition_table_is_not_recognised() {
        // sgdisk on a disk without a table: it writes the protective MBR, and keeps the first 440 bytes.
        let mut sector = stone("r").to_sector().unwrap();
        sector[446..462]
            .copy_from_slice(&[0, 0, 2, 0, 0xee, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
        sector[510..].copy_from_slice(&[0x55, 0xaa]);
        assert_eq!(Tombstone::from_head(&sector), None);
        let mut signature = stone("r").to_sector().unwrap();
        signature[511] = 0xaa;
        assert_eq!(Tombstone::from_head(&signature), None);
    }

    #[test]
    fn tombstone_is_refused_if_its_record_id_exceeds_the_sector() {
        assert!(stone(&"r".repeat(200)).to_sector().is_some());
        assert!(stone(&"r".repeat(400)).to_sector().is_none());
    }
}
