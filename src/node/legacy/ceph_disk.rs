//! OSDs with a data partition. It is Filestore's own, of ceph-disk or of Rook up to 1.2
//! (`ROOK-OSD<id>-FS-DATA`), or the small one that ceph-disk created for a BlueStore.

use std::collections::BTreeMap;

use crate::domain::osd::{Kind, Role};
use crate::domain::proof::finding::DiskFinding;
use crate::node::disk::devices::Disk;
use crate::node::disk::table::{self, CEPH_DATA, Entry};
use crate::node::error::NodeError;
use crate::node::legacy::files::{self, DataFiles, Lies, Reading};
use crate::node::legacy::partitions::{Named, Table, node_of, on_whole_disk};
use crate::node::legacy::rook;
use crate::node::tools::command::{QUICK, blocking};

/// A data partition that was read.
#[derive(Debug)]
struct Data<'a> {
    entry: &'a Entry,
    fs_uuid: String,
    files: DataFiles,
}

/// Returns the OSD of a data partition on the disk.
///
/// If there are several, the requested OSD counts, otherwise the first one: the disk is shared, and the
/// finding says so.
pub(super) async fn examine(
    disk: &Disk,
    entries: &[Entry],
    reading: Reading<'_>,
) -> Result<Option<DiskFinding>, NodeError> {
    let mut chosen: Option<Data<'_>> = None;
    for entry in entries.iter().filter(|entry| is_data(entry)) {
        let data = match read(disk, entry, reading).await? {
            Ok(data) => data,
            Err(what) => return Ok(Some(DiskFinding::other(what, None))),
        };
        if chosen.is_none() || reading.whom == Some(data.files.osd_fsid) {
            chosen = Some(data);
        }
    }
    let Some(data) = chosen else { return Ok(None) };
    let table = Table::read(disk, entries).await?;
    Ok(Some(if data.files.is_filestore() { filestore(&table, &data) } else { bluestore(&table, &data) }))
}

fn is_data(entry: &Entry) -> bool {
    entry.type_guid == CEPH_DATA || rook::part(&entry.name).is_some_and(|(_, role)| role == Role::Data)
}

async fn read<'a>(
    disk: &Disk,
    entry: &'a Entry,
    reading: Reading<'_>,
) -> Result<Result<Data<'a>, String>, NodeError> {
    let Some(node) = node_of(disk, entry) else {
        return Ok(Err(format!(
            "an OSD's data partition {} that the kernel does not know",
            entry.described()
        )));
    };
    let on_it = table::signature(&node).await?;
    let (Some(kind), Some(fs_uuid)) = (on_it.kind, on_it.uuid) else {
        return Ok(Err(format!("an OSD's data partition {} without a file system", entry.described())));
    };
    let (scratch, sharing) = (reading.scratch.to_owned(), reading.sharing);
    let described = node.display().to_string();
    let files =
        blocking("read", described, QUICK, move || files::read(&node, &kind, &scratch, sharing)).await?;
    Ok(Ok(Data { entry, fs_uuid, files }))
}

/// Returns the finding for a Filestore: its data, and its journal on the same disk, in the data, or on
/// another disk.
fn filestore(table: &Table<'_>, data: &Data<'_>) -> DiskFinding {
    let files = &data.files;
    let other = |what: String| {
        DiskFinding::other(format!("Filestore of {} {what}", files.described()), Some(files.osd_fsid))
    };
    let mut parts = BTreeMap::from([(Role::Data, data.entry.part_uuid.clone())]);
    let mut elsewhere = BTreeMap::new();
    match &files.journal {
        Lies::Here => {}
        Lies::Partition(uuid) if *uuid == data.entry.part_uuid => {
            return other("whose journal is recorded as its data partition".to_owned());
        }
        Lies::Partition(uuid) => {
            let here = table.entries.iter().any(|entry| entry.part_uuid == *uuid);
            if here {
                parts.insert(Role::Journal, uuid.clone());
            } else {
                elsewhere.insert(Role::Journal, Some(uuid.clone()));
            }
        }
        Lies::At(place) => {
            return other(format!("whose journal is {place}, which is not a stable name"));
        }
        Lies::Nowhere => return other("whose journal is neither in it nor named by it".to_owned()),
    }
    let examine = whole(Kind::FilestorePartition, table, data, parts);
    DiskFinding { elsewhere, ..examine }
}

/// Returns the finding for a BlueStore: the small data partition and the one with the label; database and log
/// by their own labels.
fn bluestore(table: &Table<'_>, data: &Data<'_>) -> DiskFinding {
    let files = &data.files;
    let about = Some(files.osd_fsid);
    let other =
        |what: String| DiskFinding::other(format!("BlueStore of {} {what}", files.described()), about);
    let Lies::Partition(block) = &files.block else {
        return other("whose block partition is not named by its guid".to_owned());
    };
    match table.labels.get(block) {
        Some(label)
            if label.role() == Some(Role::Block)
                && label.finished
                && (label.osd_fsid, label.whoami, label.cluster)
                    == (files.osd_fsid, Some(files.whoami), Some(files.cluster)) => {}
        Some(label) => {
            let (finished, id) = (label.finished, label.whoami.map(|id| id.to_string()));
            return other(format!(
                "whose block partition has the label `{}` of OSD {} ({}){}",
                label.part,
                label.osd_fsid,
                id.as_deref().unwrap_or("no id"),
                if finished { "" } else { ", not finished" }
            ));
        }
        None => return other(format!("whose block partition {block} is not on its disk, or has no label")),
    }
    let mut parts = match table.auxiliary_of_block(files.osd_fsid) {
        Ok(parts) => parts,
        Err(why) => return other(why),
    };
    let mut elsewhere = BTreeMap::new();
    for role in [Role::Db, Role::Wal] {
        match (files.part(role), parts.get(&role)) {
            (Lies::Partition(named), Some(found)) if named != found => {
                return other(format!("whose {role} is recorded as {named}, but its label is on {found}"));
            }
            (Lies::Partition(named), None) => {
                elsewhere.insert(role, Some(named.clone()));
            }
            (Lies::At(_), None) => {
                elsewhere.insert(role, None);
            }
            (Lies::Partition(_) | Lies::At(_), Some(_)) | (Lies::Nowhere, _) => {}
            (Lies::Here, _) => return other(format!("whose {role} is a file")),
        }
    }
    parts.insert(Role::Data, data.entry.part_uuid.clone());
    parts.insert(Role::Block, block.clone());
    DiskFinding { elsewhere, ..whole(Kind::BluestorePartition, table, data, parts) }
}

fn whole(kind: Kind, table: &Table<'_>, data: &Data<'_>, parts: BTreeMap<Role, String>) -> DiskFinding {
    let DataFiles { osd_fsid, whoami, cluster, .. } = data.files;
    on_whole_disk(kind, Named { osd_fsid, whoami, cluster }, table, parts, Some(data.fs_uuid.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::osd::OsdId;
    use crate::node::disk::label::Label;
    use crate::node::legacy::partitions::tests::{
        OSD, OTHER, cluster, entry, label, labels, proven, refused,
    };

    const JOURNAL: &str = "45b0969e-9b03-4f30-b4c6-b4b80ceff106";
    const BLOCK: &str = "cafecafe-9b03-4f30-b4c6-b4b80ceff106";

    fn files(store: &str) -> DataFiles {
        DataFiles {
            osd_fsid: OSD.parse().unwrap(),
            whoami: OsdId(1),
            cluster: cluster(),
            store: Some(store.to_owned()),
            journal: Lies::Nowhere,
            block: Lies::Nowhere,
            db: Lies::Nowhere,
            wal: Lies::Nowhere,
        }
    }

    fn on(uuid: &str) -> Lies {
        Lies::Partition(uuid.to_owned())
    }

    fn seen(entries: &[Entry], of: &[(&str, Label)], files: DataFiles) -> DiskFinding {
        let table = Table { entries, labels: labels(of) };
        let data = Data { entry: &entries[0], fs_uuid: "fs".to_owned(), files };
        if data.files.is_filestore() { filestore(&table, &data) } else { bluestore(&table, &data) }
    }

    #[test]
    fn filestore_is_proven_with_its_journal_wherever_it_is() {
        let both = [entry(1, CEPH_DATA, "d", "ceph data"), entry(2, JOURNAL, "j", "ceph journal")];
        let examine = seen(&both, &[], DataFiles { journal: on("j"), ..files("filestore") });
        assert_eq!(proven(&examine).unwrap(), [(Role::Data, "d"), (Role::Journal, "j")]);
        assert!(examine.elsewhere.is_empty());
        let examine = seen(&both[..1], &[], DataFiles { journal: Lies::Here, store: None, ..files("") });
        assert_eq!(proven(&examine).unwrap(), [(Role::Data, "d")]);
        let examine = seen(&both[..1], &[], DataFiles { journal: on("k"), ..files("filestore") });
        assert_eq!(proven(&examine).unwrap(), [(Role::Data, "d")]);
        assert_eq!(examine.elsewhere, [(Role::Journal, Some("k".to_owned()))].into());
    }

    #[test]
    fn filestore_with_shared_disk_or_unclear_journal_is_unproven() {
        let both = [entry(1, CEPH_DATA, "d", "ceph data"), entry(2, JOURNAL, "j", "ceph journal")];
        let of = |journal| DataFiles { journal, ..files("filestore") };
        let why = refused(&seen(&both, &[], of(on("k"))));
        assert!(why.ends_with("partitions that are not its own: 2 (ceph journal)"), "{why}");
        assert!(refused(&seen(&both, &[], of(on("d")))).contains("its data partition"));
        assert!(refused(&seen(&both[..1], &[], of(Lies::Nowhere))).contains("neither in it nor named"));
        let why = refused(&seen(&both[..1], &[], of(Lies::At("/dev/sdc1".to_owned()))));
        assert!(why.contains("/dev/sdc1"), "{why}");
    }

    #[test]
    fn bluestore_is_proven_with_its_db_and_wal_wherever_they_are() {
        let all = [
            entry(1, CEPH_DATA, "d", "ceph data"),
            entry(2, BLOCK, "b", "ceph block"),
            entry(3, "x", "e", "ceph block.db"),
            entry(4, "x", "w", "ceph block.wal"),
        ];
        let main = ("b", label(OSD, "main"));
        let (db, wal) = (("e", label(OSD, "bluefs db")), ("w", label(OSD, "bluefs wal")));
        let of = || DataFiles { block: on("b"), ..files("bluestore") };
        let alone = seen(&all[..2], std::slice::from_ref(&main), of());
        assert_eq!(proven(&alone).unwrap(), [(Role::Data, "d"), (Role::Block, "b")]);
        let here = [main.clone(), db, wal];
        let examine = seen(&all, &here, DataFiles { db: on("e"), wal: on("w"), ..of() });
        let parts = [(Role::Data, "d"), (Role::Block, "b"), (Role::Db, "e"), (Role::Wal, "w")];
        assert_eq!(proven(&examine).unwrap(), parts);
        assert!(examine.elsewhere.is_empty());
        let examine = seen(&all[..2], std::slice::from_ref(&main), DataFiles { db: on("z"), ..of() });
        assert_eq!(examine.elsewhere, [(Role::Db, Some("z".to_owned()))].into());
        let link = DataFiles { wal: Lies::At("/dev/sdc".to_owned()), ..of() };
        let examine = seen(&all[..2], std::slice::from_ref(&main), link);
        assert_eq!(examine.elsewhere, [(Role::Wal, None)].into());
    }

    #[test]
    fn bluestore_with_a_wrong_label_or_foreign_part_is_unproven() {
        let all = [entry(1, CEPH_DATA, "d", "ceph data"), entry(2, BLOCK, "b", "ceph block")];
        let of = || DataFiles { block: on("b"), ..files("bluestore") };
        let with = |label: Label| refused(&seen(&all, &[("b", label)], of()));
        let main = label(OSD, "main");
        assert!(refused(&seen(&all, &[], of())).contains("has no label"));
        assert!(with(label(OTHER, "main")).contains(OTHER));
        assert!(with(label(OSD, "bluefs db")).contains("`bluefs db`"));
        assert!(with(Label { finished: false, ..main.clone() }).contains("not finished"));
        assert!(with(Label { whoami: Some(OsdId(2)), ..main.clone() }).contains("osd.2"));
        assert!(refused(&seen(&all, &[("b", main.clone())], files("bluestore"))).contains("not named"));
        let third = [all[0].clone(), all[1].clone(), entry(3, "x", "e", "ceph block.db")];
        let foreign = [("b", main.clone()), ("e", label(OTHER, "bluefs db"))];
        let why = refused(&seen(&third, &foreign, of()));
        assert!(why.ends_with("not its own: 3 (ceph block.db)"), "{why}");
        let mine = [("b", main), ("e", label(OSD, "bluefs db"))];
        let why = refused(&seen(&third, &mine, DataFiles { db: on("z"), ..of() }));
        assert!(why.contains("recorded as z"), "{why}");
    }
}
