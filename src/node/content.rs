//! What one disk carries. Reads only.

use std::path::{Path, PathBuf};

use super::command::{QUICK, blocking};
use super::devices::{Disk, SECTOR_BYTES};
use super::error::NodeError;
use super::filestore::{self, DataFiles, Sharing};
use super::label;
use super::marks::{self, Marks};
use super::table::{self, CEPH_DATA, Entry, Signature};
use super::volumes::{self, Layer};
use crate::domain::inspection::{Content, Piece, Proof};
use crate::domain::osd::{Kind, OsdFsid, Role};

/// One look at a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Look {
    pub(crate) content: Content,
    /// What identifies the OSD in it, where it is complete and of a kind that we can wipe.
    pub(crate) proof: Option<Proof>,
    /// The OSD that it belongs to in any way, also where `content` is `Other`.
    pub(crate) about: Option<OsdFsid>,
    /// Parts of that OSD on other devices.
    pub(crate) beside: Vec<Piece>,
    /// What hides the rest from a look at the disk alone (`volumes::within`).
    pub(crate) layer: Option<Layer>,
    /// Bytes that the new OSD may use, where that is not the whole device.
    pub(crate) usable_bytes: Option<u64>,
}

impl Look {
    /// Without a proof.
    pub(crate) fn plain(content: Content, about: Option<OsdFsid>) -> Self {
        Self { content, proof: None, about, beside: Vec::new(), layer: None, usable_bytes: None }
    }

    /// Something that is not handled.
    pub(crate) fn other(what: impl Into<String>, about: Option<OsdFsid>) -> Self {
        Self::plain(Content::Other { what: what.into() }, about)
    }
}

/// Looks at a disk.
pub(crate) async fn look(disk: &Disk, scratch: &Path, sharing: Sharing) -> Result<Look, NodeError> {
    match marks::of(disk).await? {
        Marks::Tombstone(stone) => {
            let about = Some(stone.old);
            Ok(Look::plain(stone.into_content(), about))
        }
        Marks::Label => labelled(disk).await,
        Marks::LabelCopy(place) => {
            Ok(Look::other(format!("a copy of a BlueStore label at byte {place}, none at the start"), None))
        }
        // A table within a partition is somebody's data.
        Marks::Signed(signature)
            if signature.table.is_some() && !signature.ambivalent && disk.parent.is_none() =>
        {
            partitioned(disk, &signature, scratch, sharing).await
        }
        Marks::Signed(signature) => Ok(Look {
            layer: layer(&signature),
            ..Look::other(described(&signature, disk), signature.physical_volume().and_then(volumes::fsid_of))
        }),
        Marks::None | Marks::Data { .. } if !disk.partitions.is_empty() => {
            Ok(Look::other(described(&Signature::default(), disk), None))
        }
        Marks::None => Ok(Look::plain(Content::Blank, None)),
        Marks::Data { .. } => Ok(Look::other("no signature, but its first or last MiB is not zero", None)),
    }
}

async fn labelled(disk: &Disk) -> Result<Look, NodeError> {
    let label = label::read(&disk.node).await?;
    let about = Some(label.osd_fsid);
    if label.part != "main" {
        let what = format!(
            "`{}` of OSD {}, whose data is on another device: not handled yet",
            label.part, label.osd_fsid
        );
        return Ok(Look::other(what, about));
    }
    if !disk.partitions.is_empty() {
        let what = format!("a BlueStore label of OSD {} on a disk that has partitions", label.osd_fsid);
        return Ok(Look::other(what, about));
    }
    let proof = match (label.finished, label.whoami, label.cluster) {
        (true, Some(whoami), Some(cluster)) => Some(Proof::BluestoreLabel {
            osd_fsid: label.osd_fsid,
            whoami,
            cluster,
            activatable: label.activatable,
        }),
        (true | false, _, _) => None,
    };
    Ok(Look { proof, ..Look::plain(label.into_content(), about) })
}

async fn partitioned(
    disk: &Disk,
    signature: &Signature,
    scratch: &Path,
    sharing: Sharing,
) -> Result<Look, NodeError> {
    let entries = table::entries(&disk.node).await?;
    if let Some(what) = disagreement(disk, &entries) {
        return Ok(Look::other(what, None));
    }
    let mut data = entries.iter().filter(|entry| entry.type_guid == CEPH_DATA);
    match (data.next(), data.next()) {
        (Some(entry), None) => filestore_look(disk, &entries, entry, scratch, sharing).await,
        (Some(_), Some(_)) => Ok(Look::other("several data partitions of ceph-disk: not handled yet", None)),
        (None, _) => Ok(Look::other(described(signature, disk), labelled_partition(disk).await?)),
    }
}

async fn filestore_look(
    disk: &Disk,
    entries: &[Entry],
    data: &Entry,
    scratch: &Path,
    sharing: Sharing,
) -> Result<Look, NodeError> {
    let Some(node) = node_of(disk, data) else {
        return Ok(Look::other("a data partition of ceph-disk that the kernel does not know", None));
    };
    let on_it = table::signature(&node).await?;
    let (Some(kind), Some(fs_uuid)) = (on_it.kind, on_it.uuid) else {
        return Ok(Look::other("a data partition of ceph-disk without a file system", None));
    };
    let files = {
        let (node, scratch) = (node.clone(), scratch.to_owned());
        blocking("read", node.display().to_string(), QUICK, move || {
            filestore::read(&node, &kind, &scratch, sharing)
        })
        .await?
    };
    Ok(filestore_proof(entries, data, fs_uuid, &files))
}

/// Whether data and journal partition are all that the disk has, and belong together.
fn filestore_proof(entries: &[Entry], data: &Entry, fs_uuid: String, files: &DataFiles) -> Look {
    let about = Some(files.osd_fsid);
    let who = format!("OSD {} ({})", files.osd_fsid, files.whoami);
    if files.store.as_deref().is_some_and(|store| store != "filestore") {
        let store = files.store.as_deref().unwrap_or_default();
        return Look::other(format!("{store} of {who} on partitions of ceph-disk: not handled yet"), about);
    }
    let Some(journal) = &files.journal_uuid else {
        return Look::other(
            format!("Filestore of {who} whose journal is no partition: not handled yet"),
            about,
        );
    };
    if !entries.iter().any(|entry| entry.part_uuid == *journal && entry != data) {
        let what = format!(
            "Filestore of {who} whose journal partition {journal} is on another disk: not handled yet"
        );
        return Look::other(what, about);
    }
    if entries.len() != 2 {
        let what = format!("Filestore of {who}, and {} partitions that are not its own", entries.len() - 2);
        return Look::other(what, about);
    }
    let (made, osd_fsid, whoami, cluster) =
        (Kind::FilestorePartition, files.osd_fsid, files.whoami, files.cluster);
    let parts = [(Role::Data, data.part_uuid.clone()), (Role::Journal, journal.clone())].into();
    let fs_uuid = Some(fs_uuid);
    let proof = Some(Proof::Partitions { made, parts, fs_uuid, osd_fsid, whoami, cluster });
    Look { proof, ..Look::plain(Content::Osd { made, osd_fsid, whoami, cluster }, about) }
}

/// The partitions and the file system's uuid, read again without a mount: what can be compared while the disk is held open
/// exclusively, which keeps it from being mounted.
pub(crate) async fn partition_uuids(disk: &Disk) -> Result<(Vec<Entry>, Option<String>), NodeError> {
    let entries = table::entries(&disk.node).await?;
    if let Some(what) = disagreement(disk, &entries) {
        return Err(NodeError::Refused(format!("{}: {what}", disk.told())));
    }
    let data =
        entries.iter().find(|entry| entry.type_guid == CEPH_DATA).and_then(|entry| node_of(disk, entry));
    let fs_uuid = match data {
        Some(node) => table::signature(&node).await?.uuid,
        None => None,
    };
    Ok((entries, fs_uuid))
}

/// The table on the disk and the kernel's partitions must be the same: else a node leads to other bytes than the table says.
fn disagreement(disk: &Disk, entries: &[Entry]) -> Option<String> {
    let on_disk: Vec<_> = entries.iter().map(|entry| (entry.index, entry.start, entry.sectors)).collect();
    let in_kernel: Vec<_> =
        disk.partitions.iter().map(|part| (part.index, part.start, part.sectors)).collect();
    (on_disk != in_kernel).then(|| {
        format!(
            "a partition table with {} partitions of which the kernel knows others, {} (try `partx -u {}`)",
            on_disk.len(),
            in_kernel.len(),
            disk.node.display()
        )
    })
}

/// The OSD of a partition that begins with a BlueStore label.
async fn labelled_partition(disk: &Disk) -> Result<Option<OsdFsid>, NodeError> {
    for part in &disk.partitions {
        let (node, from) = (disk.node.clone(), part.start.saturating_mul(SECTOR_BYTES));
        let places =
            blocking("read", disk.told(), QUICK, move || label::places(&node, from, SECTOR_BYTES * 8))
                .await?;
        if !places.is_empty() {
            return Ok(Some(label::read(&part.node).await?.osd_fsid));
        }
    }
    Ok(None)
}

fn node_of(disk: &Disk, entry: &Entry) -> Option<PathBuf> {
    disk.partitions.iter().find(|part| part.index == entry.index).map(|part| part.node.clone())
}

fn layer(signature: &Signature) -> Option<Layer> {
    let luks = || signature.uuid.clone().filter(|_| signature.kind.as_deref() == Some("crypto_LUKS"));
    let physical = signature.physical_volume().map(|uuid| Layer::Physical(uuid.to_owned()));
    physical.or_else(|| luks().map(Layer::Luks))
}

fn described(signature: &Signature, disk: &Disk) -> String {
    if signature.ambivalent {
        return "signatures that contradict each other".to_owned();
    }
    match (&signature.kind, &signature.table) {
        (Some(kind), _) => format!("a signature of {kind}"),
        (None, Some(table)) => format!("a {table} partition table with {} partitions", disk.partitions.len()),
        (None, None) => format!("{} partitions without a table", disk.partitions.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::osd::OsdId;

    const JOURNAL: &str = "f76b1738-2c9a-4244-8217-3604b053e471";

    fn entries() -> Vec<Entry> {
        let entry = |index, type_guid: &str, part_uuid: &str| Entry {
            index,
            start: u64::from(index) * 2048,
            sectors: 2048,
            type_guid: type_guid.to_owned(),
            part_uuid: part_uuid.to_owned(),
        };
        vec![entry(1, CEPH_DATA, "d"), entry(2, "45b0969e", JOURNAL)]
    }

    fn files() -> DataFiles {
        DataFiles {
            osd_fsid: "7bcafb1e-936a-4173-8093-4789e2f5cb9f".parse().unwrap(),
            whoami: OsdId(1),
            cluster: "5f382147-dc61-408c-ad68-8e6a2e37590b".parse().unwrap(),
            store: None,
            journal_uuid: Some(JOURNAL.to_owned()),
        }
    }

    #[test]
    fn data_and_its_own_journal_are_a_proof() {
        let look = filestore_proof(&entries(), &entries()[0], "fs".into(), &files());
        assert!(matches!(look.content, Content::Osd { .. }));
        assert!(matches!(look.proof, Some(Proof::Partitions { ref parts, .. }) if parts[&Role::Data] == "d"));
    }

    #[test]
    fn a_disk_that_is_shared_or_holds_half_of_it_is_no_proof_but_is_known_to_be_about_the_osd() {
        let mut third = entries();
        third.push(Entry { index: 3, ..third[1].clone() });
        let mut elsewhere = files();
        elsewhere.journal_uuid = Some("other".into());
        let mut itself = files();
        itself.journal_uuid = Some("d".into());
        let mut bluestore = files();
        bluestore.store = Some("bluestore".into());
        let mut file_journal = files();
        file_journal.journal_uuid = None;
        for (entries, files) in [
            (third, files()),
            (entries(), elsewhere),
            (entries(), itself),
            (entries(), bluestore),
            (entries(), file_journal),
        ] {
            let look = filestore_proof(&entries, &entries[0], "fs".into(), &files);
            assert_eq!((look.proof, look.about), (None, Some(files.osd_fsid)), "{:?}", look.content);
            assert!(matches!(look.content, Content::Other { .. }));
        }
    }
}
