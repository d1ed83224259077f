//! Partition tables and signatures as libblkid reads them from the device itself (`blkid -p`, `partx -g`).
//! Neither udevd nor a partition parser in the kernel is needed, and no cache is asked.

use std::collections::BTreeMap;
use std::path::Path;

use crate::domain::proof::finding::LuksHeader;
use crate::node::disk::mark::Mark;
use crate::node::error::NodeError;
use crate::node::tools::query::Query;

/// Partition type of ceph-disk's data partitions, Filestore's and BlueStore's alike.
pub(crate) const CEPH_DATA: &str = "4fbd7e29-9d25-41b8-afd0-062c0ceff05d";

/// Signatures that libblkid finds at a device's start and end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Signature {
    /// type: `xfs`, `LVM2_member`, `ceph_bluestore`, ...
    pub(crate) kind: Option<String>,
    /// uuid of the file system
    pub(crate) uuid: Option<String>,
    /// label of the file system or LUKS header
    pub(crate) label: Option<String>,
    /// subsystem of a LUKS header
    pub(crate) subsystem: Option<String>,
    /// kind of partition table: `gpt`, `dos`, ...
    pub(crate) table: Option<String>,
    /// id of the partition table: the disk GUID of a `gpt`
    pub(crate) table_id: Option<String>,
    /// whether several signatures contradict each other
    pub(crate) ambivalent: bool,
}

/// One line of the table that is written on the disk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Entry {
    pub(crate) index: u32,
    /// in units of 512 bytes
    pub(crate) start: u64,
    /// in units of 512 bytes
    pub(crate) sectors: u64,
    pub(crate) type_guid: String,
    pub(crate) part_uuid: String,
    /// name in a GPT: for people, and for what Rook up to 1.2 created
    pub(crate) name: String,
}

impl Entry {
    /// Returns the partition's text for a message.
    pub(crate) fn described(&self) -> String {
        if self.name.is_empty() { self.index.to_string() } else { format!("{} ({})", self.index, self.name) }
    }
}

impl Signature {
    /// Returns the uuid of the physical volume of LVM, if the device is one.
    pub(crate) fn physical_volume(&self) -> Option<&str> {
        self.uuid.as_deref().filter(|_| self.kind.as_deref() == Some("LVM2_member"))
    }

    /// Returns the LUKS header, if the device is encrypted.
    pub(crate) fn luks(&self) -> Option<LuksHeader> {
        let uuid = self.uuid.clone().filter(|_| self.kind.as_deref() == Some("crypto_LUKS"))?;
        Some(LuksHeader { uuid, label: self.label.clone(), subsystem: self.subsystem.clone() })
    }

    /// Returns the mark of osd-migrate, if the disk's partition table is one.
    ///
    /// libblkid reports a table only if its checksums are right. It does not say whether the table is empty.
    pub(crate) fn mark(&self) -> Option<Mark> {
        let is_gpt = self.table.as_deref() == Some("gpt") && self.kind.is_none() && !self.ambivalent;
        self.table_id.as_deref().filter(|_| is_gpt).and_then(Mark::from_disk_guid)
    }

    /// Returns the name of the signature, or of the partition table.
    pub(crate) fn name(&self) -> &str {
        self.kind.as_deref().or(self.table.as_deref()).unwrap_or("several kinds")
    }

    /// Returns whether there is no signature.
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Reads the signatures on a device.
pub(crate) async fn signature(node: &Path) -> Result<Signature, NodeError> {
    let answer = Query::Signatures(node).ask().await?;
    match answer.status.code() {
        Some(0) => Ok(parse_signature(&answer.stdout)),
        Some(2) => Ok(Signature::default()),
        Some(8) => Ok(Signature { ambivalent: true, ..Signature::default() }),
        Some(_) | None => Err(answer.into_error()),
    }
}

/// Reads the partition table on a disk that has one.
pub(crate) async fn entries(node: &Path) -> Result<Vec<Entry>, NodeError> {
    let answer = Query::Table(node).ask_well().await?;
    parse_entries(&answer.stdout).ok_or_else(|| NodeError::Unreadable {
        subject: answer.command,
        why: answer.stdout.trim().to_owned(),
    })
}

fn parse_signature(text: &str) -> Signature {
    let pairs: BTreeMap<&str, &str> = text.lines().filter_map(|line| line.split_once('=')).collect();
    let get = |key: &str| pairs.get(key).map(|value| (*value).to_owned());
    Signature {
        kind: get("TYPE"),
        uuid: get("UUID"),
        label: get("LABEL"),
        subsystem: get("SUBSYSTEM"),
        table: get("PTTYPE"),
        table_id: get("PTUUID"),
        ambivalent: false,
    }
}

fn parse_entries(text: &str) -> Option<Vec<Entry>> {
    let mut entries = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| {
            let mut words = line.split_whitespace();
            Some(Entry {
                index: words.next()?.parse().ok()?,
                start: words.next()?.parse().ok()?,
                sectors: words.next()?.parse().ok()?,
                // The table of a DOS disk may have neither; such a partition is only counted.
                type_guid: words.next().unwrap_or_default().to_ascii_lowercase(),
                part_uuid: words.next().unwrap_or_default().to_ascii_lowercase(),
                name: words.next().map(unescaped).unwrap_or_default(),
            })
        })
        .collect::<Option<Vec<_>>>()?;
    entries.sort();
    Some(entries)
}

/// Decodes `ceph\x20data`: raw output has no blank within a word.
fn unescaped(word: &str) -> String {
    let mut parts = word.split("\\x");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let digits = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        if let (Some(byte), Some(rest)) = (digits, part.get(2..)) {
            text.push(char::from(byte));
            text.push_str(rest);
        } else {
            text.push_str("\\x");
            text.push_str(part);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::samples::{RELEASES, said};

    #[test]
    fn partition_table_of_ceph_disk_is_parsed() {
        let text = "1 1050624 11532255 4fbd7e29-9d25-41b8-afd0-062c0ceff05d 7BCAFB1E-936a-4173-8093-4789e2f5cb9f\n\
                    2 2048 1048576 45b0969e-9b03-4f30-b4c6-b4b80ceff106 f76b1738-2c9a-4244-8217-3604b053e471\n";
        let entries = parse_entries(text).unwrap();
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[0].type_guid, CEPH_DATA);
        assert_eq!(entries[0].part_uuid, "7bcafb1e-936a-4173-8093-4789e2f5cb9f");
        assert_eq!((entries[1].index, entries[1].start, entries[1].sectors), (2, 2048, 1_048_576));
        assert_eq!(parse_entries("what is this\n"), None);
        assert_eq!(parse_entries("1 2048 4096 0x83\n").unwrap()[0].part_uuid, "");
    }

    #[test]
    fn partition_names_are_unescaped() {
        let text = "1 2048 10240 0fc63daf-8483-4772-8e79-3d69d8477de4 bbff53fb-b02d-4a0f-ba7e-1adf0cc67cc8 ROOK-OSD2-BLOCK\n\
                    3 16384 4096 0fc63daf-8483-4772-8e79-3d69d8477de4 19c30f86-703a-4a2e-a89e-d086cfdbbd79 \n\
                    9 12288 4096 0fc63daf-8483-4772-8e79-3d69d8477de4 f2544e29-3fa0-4b10-8e53-fc9d43ecc6e0 somebody's\\x20data\n";
        let described: Vec<String> = parse_entries(text).unwrap().iter().map(Entry::described).collect();
        assert_eq!(described, ["1 (ROOK-OSD2-BLOCK)", "3", "9 (somebody's data)"]);
        assert_eq!(unescaped("a\\x2"), "a\\x2");
    }

    #[test]
    fn blkid_signatures_of_partition_and_disk_are_parsed() {
        let part = "DEVNAME=/dev/loop13p1\nUUID=95889c26-82f1-46a3-b2a7-609a34676da4\nBLOCK_SIZE=512\nTYPE=xfs\n\
                    USAGE=filesystem\nPART_ENTRY_NAME=ceph\\ data\n";
        let signature = parse_signature(part);
        assert_eq!(signature.kind.as_deref(), Some("xfs"));
        assert_eq!(signature.uuid.as_deref(), Some("95889c26-82f1-46a3-b2a7-609a34676da4"));
        let disk = parse_signature("DEVNAME=/dev/loop13\nPTUUID=d95708fc\nPTTYPE=gpt\n");
        assert_eq!((disk.table.as_deref(), disk.kind), (Some("gpt"), None));
        assert!(parse_signature("DEVNAME=/dev/x\n").is_none());
        // As blkid of util-linux 2.38 prints it for a header that cryptsetup 2.6.1 wrote.
        let luks = "DEVNAME=/dev/ubdb\nVERSION=2\nUUID=12345678-1234-5678-9234-123456789012\n\
                    LABEL=pvc_name=set1-data-0x\nSUBSYSTEM=ceph_fsid=5f382147-dc61-408c-ad68-8e6a2e37590b\n\
                    TYPE=crypto_LUKS\nUSAGE=crypto\n";
        let luks = parse_signature(luks).luks().unwrap();
        assert_eq!(luks.label.as_deref(), Some("pvc_name=set1-data-0x"));
        assert_eq!(luks.subsystem.as_deref(), Some("ceph_fsid=5f382147-dc61-408c-ad68-8e6a2e37590b"));
        assert_eq!(signature.luks(), None);
    }

    #[test]
    fn captured_signatures_of_each_release_are_parsed() {
        for release in RELEASES {
            let captured = |name: &str| parse_signature(&said(release, &format!("blkid-{name}.txt")));
            let kind = |name: &str| captured(name).kind;
            assert!(captured("blank").is_none(), "{release}");
            assert!(captured("partition-blank").is_none(), "{release}");
            assert_eq!(kind("ext4").as_deref(), Some("ext4"), "{release}");
            assert_eq!(kind("partition-xfs").as_deref(), Some("xfs"), "{release}");
            assert_eq!(kind("luks").as_deref(), Some("crypto_LUKS"), "{release}");
            for name in ["bluestore", "partition-bluestore"] {
                assert_eq!(kind(name).as_deref(), Some("ceph_bluestore"), "{release}: {name}");
            }
            assert_eq!((captured("gpt").table.as_deref(), kind("gpt")), (Some("gpt"), None), "{release}");
            assert!(
                captured("lvm-member").physical_volume().is_some_and(|uuid| uuid.len() == 38),
                "{release}"
            );
            assert_eq!(captured("luks").physical_volume(), None, "{release}");
        }
    }

    #[test]
    fn captured_partition_tables_of_each_release_are_parsed() {
        for release in RELEASES {
            let described = |name: &str| {
                let entries = parse_entries(&said(release, &format!("partx-{name}.txt"))).unwrap();
                assert!(entries.iter().all(|entry| entry.part_uuid.len() == 36), "{release}: {entries:?}");
                entries.iter().map(Entry::described).collect::<Vec<_>>()
            };
            assert_eq!(described("ceph-disk"), ["1 (ceph data)", "2 (ceph block)"], "{release}");
            assert_eq!(
                described("rook"),
                ["1 (ROOK-OSD3-WAL)", "2 (ROOK-OSD3-DB)", "3 (ROOK-OSD3-BLOCK)"],
                "{release}"
            );
            // A disk that OSDs share.
            assert_eq!(
                described("shared"),
                ["1 (ROOK-OSD4-WAL)", "2 (ROOK-OSD4-DB)", "9 (somebody's data)"],
                "{release}"
            );
            assert_eq!(parse_entries(&said(release, "partx-ceph-disk.txt")).unwrap()[0].type_guid, CEPH_DATA);
        }
    }
}
