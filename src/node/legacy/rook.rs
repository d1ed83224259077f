//! Rook's own partitions, up to 1.2. Their names in the GPT are `ROOK-OSD<id>-WAL`, `-DB` and `-BLOCK` for a
//! BlueStore, and `-FS-DATA` for a Filestore (which has a data partition: `ceph_disk`).

use crate::domain::osd::{Kind, OsdId, Role};
use crate::domain::proof::finding::DiskFinding;
use crate::node::disk::devices::Disk;
use crate::node::disk::label::Label;
use crate::node::disk::table::Entry;
use crate::node::error::NodeError;
use crate::node::legacy::files::Reading;
use crate::node::legacy::partitions::{Named, Table, on_whole_disk};

/// Returns the OSD and the role of a partition, by its name.
pub(super) fn part(name: &str) -> Option<(OsdId, Role)> {
    let (id, part) = name.strip_prefix("ROOK-OSD")?.split_once('-')?;
    let role = match part {
        "BLOCK" => Role::Block,
        "DB" => Role::Db,
        "WAL" => Role::Wal,
        "FS-DATA" => Role::Data,
        _ => return None,
    };
    Some((id.parse().ok()?, role))
}

/// Returns the BlueStore whose main partition is on the disk.
///
/// A disk with databases and logs alone carries none.
pub(super) async fn examine(
    disk: &Disk,
    entries: &[Entry],
    reading: Reading<'_>,
) -> Result<Option<DiskFinding>, NodeError> {
    let is_block = |entry: &Entry| part(&entry.name).is_some_and(|(_, role)| role == Role::Block);
    if !entries.iter().any(is_block) {
        return Ok(None);
    }
    let table = Table::read(disk, entries).await?;
    let mut blocks = entries.iter().filter(|entry| is_block(entry));
    let is_whom = |entry: &&Entry| {
        table.labels.get(&entry.part_uuid).is_some_and(|label| reading.whom == Some(label.osd_fsid))
    };
    let chosen = blocks.clone().find(is_whom).or_else(|| blocks.next());
    Ok(chosen.map(|block| bluestore(&table, block)))
}

fn bluestore(table: &Table<'_>, block: &Entry) -> DiskFinding {
    let Some(label) = table.labels.get(&block.part_uuid) else {
        return DiskFinding::other(
            format!("Rook's partition {} without a BlueStore label", block.described()),
            None,
        );
    };
    let about = Some(label.osd_fsid);
    let other = |why: String| {
        let what = format!("Rook's partition {} of OSD {}: {why}", block.described(), label.osd_fsid);
        DiskFinding::other(what, about)
    };
    let Some(named) = named(label) else {
        return other(format!("its label `{}` is not that of a finished main device", label.part));
    };
    if part(&block.name).map(|(id, _)| id) != Some(named.whoami) {
        return other(format!("its label says {}", named.whoami));
    }
    match table.auxiliary_of_block(label.osd_fsid) {
        Ok(mut parts) => {
            parts.insert(Role::Block, block.part_uuid.clone());
            on_whole_disk(Kind::BluestorePartition, named, table, parts, None)
        }
        Err(why) => other(why),
    }
}

/// Returns the identity in the label of a finished main device.
fn named(label: &Label) -> Option<Named> {
    let is_main = label.role() == Some(Role::Block) && label.finished;
    match (is_main, label.whoami, label.cluster) {
        (true, Some(whoami), Some(cluster)) => Some(Named { osd_fsid: label.osd_fsid, whoami, cluster }),
        (true | false, _, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::legacy::partitions::tests::{OSD, OTHER, entry, label, labels, proven, refused};

    /// Default partition type of sgdisk.
    const LINUX: &str = "0fc63daf-8483-4772-8e79-3d69d8477de4";

    fn entries() -> [Entry; 3] {
        [
            entry(1, LINUX, "w", "ROOK-OSD1-WAL"),
            entry(2, LINUX, "e", "ROOK-OSD1-DB"),
            entry(3, LINUX, "b", "ROOK-OSD1-BLOCK"),
        ]
    }

    fn seen(entries: &[Entry], of: &[(&str, Label)]) -> DiskFinding {
        let table = Table { entries, labels: labels(of) };
        let block = entries.iter().find(|entry| entry.part_uuid == "b").unwrap();
        bluestore(&table, block)
    }

    #[test]
    fn rook_partition_name_yields_osd_and_role() {
        assert_eq!(part("ROOK-OSD12-BLOCK"), Some((OsdId(12), Role::Block)));
        assert_eq!(part("ROOK-OSD0-FS-DATA"), Some((OsdId(0), Role::Data)));
        assert_eq!(part("ROOK-OSD1-WAL").map(|(_, role)| role), Some(Role::Wal));
        for name in ["", "ceph block", "ROOK-OSD-DB", "ROOK-OSD1", "ROOK-OSD1-JOURNAL", "ROOK-OSD+1-DB"] {
            assert_eq!(part(name), None, "{name}");
        }
    }

    #[test]
    fn rook_partitions_are_proven_all_on_one_disk_or_block_alone() {
        let main = ("b", label(OSD, "main"));
        let all = [main.clone(), ("e", label(OSD, "bluefs db")), ("w", label(OSD, "bluefs wal"))];
        let parts = [(Role::Block, "b"), (Role::Db, "e"), (Role::Wal, "w")];
        assert_eq!(proven(&seen(&entries(), &all)).unwrap(), parts);
        assert_eq!(proven(&seen(&entries()[2..], &[main])).unwrap(), [(Role::Block, "b")]);
    }

    #[test]
    fn rook_partition_shared_unlabelled_or_misnamed_is_no_proof() {
        let main = ("b", label(OSD, "main"));
        let shared = [main.clone(), ("e", label(OTHER, "bluefs db")), ("w", label(OSD, "bluefs wal"))];
        let why = refused(&seen(&entries(), &shared));
        assert!(why.ends_with("not its own: 2 (ROOK-OSD1-DB)"), "{why}");
        let twice = [main.clone(), ("e", label(OSD, "bluefs db")), ("w", label(OSD, "bluefs db"))];
        assert!(refused(&seen(&entries(), &twice)).contains("two partitions"));
        let renamed = [entry(3, LINUX, "b", "ROOK-OSD2-BLOCK")];
        assert!(refused(&seen(&renamed, &[main])).contains("its label says osd.1"));
        assert!(refused(&seen(&entries()[2..], &[("b", label(OSD, "bluefs db"))])).contains("`bluefs db`"));
        let unlabelled = seen(&entries()[2..], &[]);
        assert_eq!((unlabelled.proof, unlabelled.about), (None, None));
    }
}
