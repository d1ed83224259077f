//! Marks of a device's own bytes, as far as an available device is concerned: nothing may be on it. Reads
//! only, without udev's cache.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::domain::proof::finding::LuksHeader;
use crate::node::disk::devices::Disk;
use crate::node::disk::label;
use crate::node::disk::table::{self, Signature};
use crate::node::disk::tombstone::{SECTOR, Tombstone};
use crate::node::error::NodeError;
use crate::node::tools::command::{QUICK, blocking};

/// Bytes at the start and at the end of a device that are zero if it is blank.
const ENDS: u64 = 1 << 20;

/// The first of these marks that is found, in this sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Marks {
    /// osd-migrate's tombstone.
    ///
    /// It takes precedence over everything else: during a wipe, remains of the old OSD still exist. A
    /// signature next to it may also be newer than the tombstone: md and LVM keep the first sector.
    Tombstone(Tombstone, Signature),
    /// A BlueStore label at the start.
    Label,
    /// A signature that libblkid knows: a file system, a partition table, or signatures that contradict each
    /// other.
    Signed(Signature),
    /// No label at the start, but a copy at this byte.
    ///
    /// A signature takes precedence: neither LVM nor LUKS removes the copies that an OSD had written before
    /// (from 19.2.1 on).
    LabelCopy(u64),
    /// No signature, but bytes in the first MiB (true) or the last one.
    Data {
        /// at the start
        first: bool,
    },
    /// Nothing.
    None,
}

impl Marks {
    /// Returns the LUKS header, if the device is encrypted.
    pub(crate) fn luks(&self) -> Option<LuksHeader> {
        match self {
            Self::Signed(signature) => signature.luks(),
            Self::Tombstone(..) | Self::Label | Self::LabelCopy(_) | Self::Data { .. } | Self::None => None,
        }
    }

    /// Returns a text for people.
    pub(crate) fn described(self) -> String {
        match self {
            Self::Tombstone(stone, _) => stone.into_content().to_string(),
            Self::Label => "a BlueStore label".to_owned(),
            Self::LabelCopy(place) => format!("a copy of a BlueStore label at byte {place}"),
            Self::Signed(signature) => format!("a signature of {}", signature.name()),
            Self::Data { .. } => "data without a signature".to_owned(),
            Self::None => "nothing".to_owned(),
        }
    }
}

/// Returns the marks of a disk.
///
/// The file for tests has none before it is created.
pub(crate) async fn of(disk: &Disk) -> Result<Marks, NodeError> {
    if disk.is_file() && !disk.node.exists() {
        return Ok(Marks::None);
    }
    read(&disk.node, disk.identity.size_bytes).await
}

/// Reads a device, or a file, of `size` bytes.
async fn read(node: &Path, size: u64) -> Result<Marks, NodeError> {
    let described = node.display().to_string();
    let (head, places) = {
        let node = node.to_owned();
        blocking("read", described.clone(), QUICK, move || Ok((head(&node)?, label::places(&node, 0, size)?)))
            .await?
    };
    if let Some(stone) = Tombstone::from_head(&head) {
        return Ok(Marks::Tombstone(stone, table::signature(node).await?));
    }
    if places.first() == Some(&0) {
        return Ok(Marks::Label);
    }
    let signature = table::signature(node).await?;
    if !signature.is_none() {
        return Ok(Marks::Signed(signature));
    }
    if let Some(place) = places.first() {
        return Ok(Marks::LabelCopy(*place));
    }
    let node = node.to_owned();
    blocking("read", described, QUICK, move || data(&node, size)).await
}

fn head(node: &Path) -> Result<[u8; SECTOR], NodeError> {
    let mut head = [0; SECTOR];
    let file = File::open(node).map_err(NodeError::io("open", node))?;
    file.read_exact_at(&mut head, 0).map_err(NodeError::io("read", node))?;
    Ok(head)
}

fn data(node: &Path, size: u64) -> Result<Marks, NodeError> {
    let file = File::open(node).map_err(NodeError::io("open", node))?;
    for (place, first) in [(0, true), (size.saturating_sub(ENDS), false)] {
        let mut bytes = vec![0; usize::try_from(ENDS.min(size)).unwrap_or(0)];
        file.read_exact_at(&mut bytes, place).map_err(NodeError::io("read", node))?;
        if bytes.iter().any(|byte| *byte != 0) {
            return Ok(Marks::Data { first });
        }
    }
    Ok(Marks::None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::inspection::RecordId;
    use crate::domain::osd::OsdId;

    const SIZE: u64 = 2 << 30;

    async fn with(bytes: &[u8], at: u64) -> Marks {
        let image = tempfile::NamedTempFile::new().unwrap();
        image.as_file().set_len(SIZE).unwrap();
        image.as_file().write_all_at(bytes, at).unwrap();
        read(image.path(), SIZE).await.unwrap()
    }

    #[tokio::test]
    async fn disk_with_one_byte_at_either_end_is_not_blank() {
        assert_eq!(with(b"", 0).await, Marks::None);
        assert_eq!(with(b"x", ENDS - 1).await, Marks::Data { first: true });
        assert_eq!(with(b"x", SIZE - 1).await, Marks::Data { first: false });
        assert_eq!(with(b"x", SIZE - ENDS).await, Marks::Data { first: false });
        // Data of a former owner lies in the middle; nothing leads to it any more.
        assert_eq!(with(b"x", SIZE / 2 + 4096).await, Marks::None);
    }

    #[tokio::test]
    async fn bluestore_label_its_copy_and_luks_signature_are_found() {
        let label = b"bluestore block device\n";
        assert_eq!(with(label, 0).await, Marks::Label);
        assert_eq!(with(label, 1 << 30).await, Marks::LabelCopy(1 << 30));
        let luks = with(b"LUKS\xba\xbe\x00\x01", 0).await;
        assert!(
            matches!(luks, Marks::Signed(ref found) if found.kind.as_deref() == Some("crypto_LUKS")),
            "{luks:?}"
        );
        let dos = with(b"\x80\x00\x00\x00\x83\x00\x00\x00\x00\x08\x00\x00\x00\x08\x00\x00", 446).await;
        assert_eq!(dos, Marks::Data { first: true }, "without its last two bytes it is no table, but data");
    }

    #[tokio::test]
    async fn tombstone_is_recognised_in_the_first_sector() {
        let stone = Tombstone {
            cluster: "5f382147-dc61-408c-ad68-8e6a2e37590b".parse().unwrap(),
            osd: OsdId(1),
            old: "55ebe299-c0ce-4341-960a-ddfd22d5b5bf".parse().unwrap(),
            record: RecordId("r".into()),
        };
        let sector = stone.to_sector().unwrap();
        assert_eq!(with(&sector, 0).await, Marks::Tombstone(stone.clone(), Signature::default()));
        // A member of an md array has its superblock (version 1.2) behind the first sector.
        let mut member = sector.to_vec();
        member.resize(8192, 0);
        for (at, value) in [(0, 0xa92b_4efc_u32), (4, 1), (144, 8)] {
            member[4096 + at..4096 + at + 4].copy_from_slice(&value.to_le_bytes());
        }
        let found = with(&member, 0).await;
        assert!(
            matches!(&found, Marks::Tombstone(one, of) if *one == stone && of.name() == "linux_raid_member"),
            "{found:?}"
        );
    }

    #[tokio::test]
    async fn copy_of_an_old_label_hides_no_luks_header() {
        let image = tempfile::NamedTempFile::new().unwrap();
        image.as_file().set_len(SIZE).unwrap();
        image.as_file().write_all_at(b"bluestore block device\n", 1 << 30).unwrap();
        image.as_file().write_all_at(b"LUKS\xba\xbe\x00\x01", 0).unwrap();
        let marks = read(image.path(), SIZE).await.unwrap();
        assert!(matches!(marks, Marks::Signed(_)), "{marks:?}");
    }

    #[tokio::test]
    async fn device_shorter_than_a_sector_cannot_be_read() {
        let image = tempfile::NamedTempFile::new().unwrap();
        assert!(read(image.path(), 0).await.is_err());
    }
}
