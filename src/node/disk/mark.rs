//! The mark on the disk of a removed OSD, if a person requested one: an empty partition table (GPT).
//!
//! Neither ceph-volume nor Rook uses a disk with a partition table by itself (ceph-volume 16.2.15, inventory:
//! `Has GPT headers`), nor does osd-migrate. The disk GUID of the table names the OSD.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use uuid::{Uuid, Variant};

use crate::domain::fnv;
use crate::domain::inspection::NodeRequest;
use crate::domain::osd::{ClusterFsid, OsdFsid, OsdId};
use crate::node::disk::tombstone::SECTOR;
use crate::node::error::NodeError;

/// First bytes of the disk GUID, a UUID of version 8 (RFC 9562).
const MAGIC: &[u8; 6] = b"osdmig";
/// Partition entries of the table, and the bytes of each: the smallest table that UEFI permits.
const ENTRIES: u32 = 128;
const ENTRY_BYTES: u32 = 128;
/// Bytes of a header that its checksum covers.
const HEADER_BYTES: u32 = 92;
/// Offset of the checksum in a header.
const CHECK_AT: usize = 16;
/// Offset of the only entry in a protective MBR.
const MBR_ENTRY_AT: usize = 446;

/// OSD that was removed from a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    osd: OsdId,
    guid: Uuid,
}

/// One write to a disk, which is on the disk before the next one starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Write {
    at: u64,
    bytes: Vec<u8>,
}

impl Mark {
    /// Returns the mark that the wipe of a request leaves.
    pub(crate) fn of(request: &NodeRequest) -> Self {
        Self::named(request.osd, request.old, request.cluster)
    }

    fn named(osd: OsdId, old: OsdFsid, cluster: ClusterFsid) -> Self {
        let hash = fnv::hash(format!("{cluster} {old}").as_bytes()).to_be_bytes();
        let bytes: Vec<u8> =
            MAGIC.iter().chain(hash.iter().take(6)).chain(&osd.0.to_be_bytes()).copied().collect();
        let bytes = <[u8; 16]>::try_from(bytes.as_slice()).unwrap_or_default();
        Self { osd, guid: Uuid::new_v8(bytes) }
    }

    /// Returns the mark with this disk GUID; none if another program created the table.
    pub(crate) fn from_disk_guid(guid: &str) -> Option<Self> {
        let guid: Uuid = guid.parse().ok()?;
        let is_ours = guid.get_version_num() == 8 && guid.get_variant() == Variant::RFC4122;
        let osd = guid.as_bytes().strip_prefix(MAGIC).filter(|_| is_ours)?.last_chunk()?;
        Some(Self { osd: OsdId(u32::from_be_bytes(*osd)), guid })
    }

    /// Returns a text for people, a different one for each OSD.
    pub(crate) fn described(&self) -> String {
        let Self { osd, guid } = self;
        format!(
            "gpt, an empty partition table with which osd-migrate marked the disk when it removed {osd} \
             ({guid})"
        )
    }

    /// Returns the writes that mark a disk of `size` bytes; none if the disk is too small.
    ///
    /// The first sector, with the tombstone, is replaced by the last of the writes. `block`: size of a
    /// logical block of the disk.
    pub(crate) fn writes(&self, size: u64, block: u64) -> Option<[Write; 3]> {
        let table = Table { guid: self.guid, last: size.checked_div(block)?.checked_sub(1)?, block };
        let copies_at = table.last.checked_sub(table.entry_blocks())?;
        let backup = [table.entries()?, table.header(table.last, 1, copies_at)?].concat();
        let primary = [table.header(1, table.last, 2)?, table.entries()?].concat();
        Some([
            Write { at: copies_at.checked_mul(block)?, bytes: backup },
            Write { at: block, bytes: primary },
            Write { at: 0, bytes: table.protective_mbr()?.to_vec() },
        ])
    }
}

/// Empty partition table of a disk.
struct Table {
    guid: Uuid,
    /// Last block of the disk.
    last: u64,
    block: u64,
}

impl Table {
    /// Returns the blocks of the partition entries.
    fn entry_blocks(&self) -> u64 {
        u64::from(ENTRIES * ENTRY_BYTES).div_ceil(self.block)
    }

    /// Returns the partition entries, all of them unused.
    fn entries(&self) -> Option<Vec<u8>> {
        let bytes = self.entry_blocks().checked_mul(self.block)?;
        Some(vec![0; usize::try_from(bytes).ok()?])
    }

    /// Returns the header in block `at`, whose copy is in block `copy`, as a whole block.
    fn header(&self, at: u64, copy: u64, entries_at: u64) -> Option<Vec<u8>> {
        let first_usable = 2 + self.entry_blocks();
        let last_usable = self.last.checked_sub(self.entry_blocks() + 1)?;
        if first_usable > last_usable {
            return None;
        }
        let entries = vec![0; usize::try_from(ENTRIES * ENTRY_BYTES).ok()?];
        let mut header = Vec::new();
        header.extend_from_slice(b"EFI PART");
        header.extend_from_slice(&[0, 0, 1, 0]); // revision 1.0
        header.extend_from_slice(&HEADER_BYTES.to_le_bytes());
        header.extend_from_slice(&[0; 8]); // its checksum, and reserved bytes
        for place in [at, copy, first_usable, last_usable] {
            header.extend_from_slice(&place.to_le_bytes());
        }
        header.extend_from_slice(&self.guid.to_bytes_le());
        header.extend_from_slice(&entries_at.to_le_bytes());
        for number in [ENTRIES, ENTRY_BYTES, crc32fast::hash(&entries)] {
            header.extend_from_slice(&number.to_le_bytes());
        }
        let check = crc32fast::hash(&header).to_le_bytes();
        header.get_mut(CHECK_AT..CHECK_AT + check.len())?.copy_from_slice(&check);
        header.resize(usize::try_from(self.block).ok()?.max(header.len()), 0);
        Some(header)
    }

    /// Returns the first sector: a partition of type 0xEE over the whole disk, so that no program that does
    /// not know GPT takes the disk for an empty one.
    fn protective_mbr(&self) -> Option<[u8; SECTOR]> {
        let blocks = u32::try_from(self.last).unwrap_or(u32::MAX).to_le_bytes();
        let mut sector = [0; SECTOR];
        let entry = [&[0, 0, 2, 0, 0xee, 0xff, 0xff, 0xff, 1, 0, 0, 0], blocks.as_slice()].concat();
        sector.get_mut(MBR_ENTRY_AT..MBR_ENTRY_AT + entry.len())?.copy_from_slice(&entry);
        sector.last_chunk_mut::<2>()?.copy_from_slice(&[0x55, 0xaa]);
        Some(sector)
    }
}

impl Write {
    /// Returns the write that removes the tombstone.
    pub(crate) fn blank() -> Self {
        Self { at: 0, bytes: vec![0; SECTOR] }
    }

    /// Does the write; when the function returns, the bytes are on the disk.
    pub(crate) fn done(&self, file: &File, node: &Path) -> Result<(), NodeError> {
        file.write_all_at(&self.bytes, self.at).map_err(NodeError::io("end the wipe of", node))?;
        file.sync_all().map_err(NodeError::io("fsync", node))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::samples::request;

    #[test]
    fn mark_is_recognised_by_its_guid_and_names_the_osd() {
        let mut request = request("n1");
        request.osd = OsdId(4_000_000_005);
        let mark = Mark::of(&request);
        assert_eq!(Mark::from_disk_guid(&mark.guid.to_string().to_uppercase()), Some(mark));
        assert!(mark.described().contains("osd.4000000005"), "{}", mark.described());
        let mut other = request.clone();
        other.old = "65ebe299-c0ce-4341-960a-ddfd22d5b5bf".parse().unwrap();
        assert_ne!(Mark::of(&other).described(), mark.described());
        other = request.clone();
        other.cluster = "6f382147-dc61-408c-ad68-8e6a2e37590b".parse().unwrap();
        assert_ne!(Mark::of(&other).described(), mark.described());
        for foreign in
            ["ba4cca4b-64d3-4322-8163-610df5ea40ef", "6f73646d-6967-4000-8000-000000000000", "x", ""]
        {
            assert_eq!(Mark::from_disk_guid(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn mark_has_the_layout_of_uefi_for_each_block_size() {
        for (block, entry_blocks) in [(512_u64, 32_u64), (4096, 4)] {
            let size = 1 << 30;
            let last = size / block - 1;
            let [backup, primary, mbr] = Mark::of(&request("n1")).writes(size, block).unwrap();
            assert_eq!((primary.at, mbr.at), (block, 0));
            assert_eq!(backup.at, (last - entry_blocks) * block);
            assert_eq!(backup.at + backup.bytes.len() as u64, size, "the backup header is the last block");
            assert_eq!(primary.bytes.len() as u64, block + 128 * 128);
            let header = &primary.bytes[..92];
            let number = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().unwrap());
            assert_eq!([number(24), number(32), number(72)], [1, last, 2]);
            assert_eq!([number(40), number(48)], [2 + entry_blocks, last - entry_blocks - 1]);
            assert_eq!(mbr.bytes[450], 0xee);
            assert_eq!(mbr.bytes[510..], [0x55, 0xaa]);
        }
        assert_eq!(Mark::of(&request("n1")).writes(30 << 10, 512), None);
        assert_eq!(Mark::of(&request("n1")).writes(0, 512), None);
        assert_eq!(Mark::of(&request("n1")).writes(1 << 30, 0), None);
    }
}
