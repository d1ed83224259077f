//! Content of one disk. Reads only.

use crate::domain::inspection::{Content, Proof};
use crate::domain::osd::{OsdFsid, Role};
use crate::domain::proof::finding::{DiskFinding, Layer};
use crate::node::disk::devices::Disk;
use crate::node::disk::label::{self, Label};
use crate::node::disk::marks::{self, Marks};
use crate::node::disk::table::Signature;
use crate::node::error::NodeError;
use crate::node::legacy;
use crate::node::legacy::files::Reading;
use crate::node::volumes::names;

/// Examines what a disk carries.
pub(crate) async fn examine(disk: &Disk, reading: Reading<'_>) -> Result<DiskFinding, NodeError> {
    match marks::of(disk).await? {
        Marks::Tombstone(tombstone, signature) => {
            let (about, is_alone) = (Some(tombstone.old), signature.is_none());
            let signature = (!is_alone).then(|| signature.name().to_owned());
            Ok(DiskFinding { signature, ..DiskFinding::plain(tombstone.into_content(), about) })
        }
        Marks::Label => labelled(disk, reading.whom).await,
        Marks::LabelCopy(place) => Ok(DiskFinding::other(
            format!("a copy of a BlueStore label at byte {place}, none at the start"),
            None,
        )),
        // A partition table within a partition is foreign data.
        Marks::Signed(signature)
            if signature.table.is_some() && !signature.ambivalent && disk.parent.is_none() =>
        {
            let legacy = legacy::examine::examine(disk, reading).await?;
            Ok(legacy.unwrap_or_else(|| DiskFinding::other(described(&signature, disk), None)))
        }
        Marks::Signed(signature) => Ok(DiskFinding {
            layer: layer(&signature),
            ..DiskFinding::other(
                described(&signature, disk),
                signature.physical_volume().and_then(names::fsid_of),
            )
        }),
        Marks::None | Marks::Data { .. } if !disk.partitions.is_empty() => {
            Ok(DiskFinding::other(described(&Signature::default(), disk), None))
        }
        Marks::None => Ok(DiskFinding::plain(Content::Blank, None)),
        Marks::Data { .. } => {
            Ok(DiskFinding::other("no signature, but its first or last MiB is not zero", None))
        }
    }
}

async fn labelled(disk: &Disk, whom: Option<OsdFsid>) -> Result<DiskFinding, NodeError> {
    Ok(of_label(label::read(&disk.node).await?, disk, whom))
}

/// Returns what a disk with this label carries.
///
/// Kernels take some labels for an Atari partition table (Ceph tracker 52060). So a new OSD can be on a disk
/// with partitions that do not exist, and counts if nothing lies on them. It has no proof: the OSD `whom`
/// that is to be destroyed must be on a disk without any partition.
fn of_label(label: Label, disk: &Disk, whom: Option<OsdFsid>) -> DiskFinding {
    if label.role() != Some(Role::Block) {
        // A part of an OSD is never taken for the OSD.
        let what = format!("`{}` of OSD {}, whose data is on another device", label.part, label.osd_fsid);
        return DiskFinding::other(what, None);
    }
    let about = Some(label.osd_fsid);
    let has_partitions = !disk.partitions.is_empty();
    if has_partitions && (whom == about || !disk.holders.is_empty()) {
        let what = format!("a BlueStore label of OSD {} on a disk that has partitions", label.osd_fsid);
        return DiskFinding::other(what, about);
    }
    let proof = match (label.finished, label.whoami, label.cluster) {
        (true, Some(whoami), Some(cluster)) if !has_partitions => Some(Proof::BluestoreLabel {
            osd_fsid: label.osd_fsid,
            whoami,
            cluster,
            activatable: label.activatable,
        }),
        (true | false, _, _) => None,
    };
    DiskFinding { proof, ..DiskFinding::plain(label.into_content(), about) }
}

fn layer(signature: &Signature) -> Option<Layer> {
    let physical = signature.physical_volume().map(|uuid| Layer::Physical(uuid.to_owned()));
    physical.or_else(|| signature.luks().map(Layer::Luks))
}

fn described(signature: &Signature, disk: &Disk) -> String {
    if signature.ambivalent {
        return "signatures that contradict each other".to_owned();
    }
    if let Some(mark) = signature.mark().filter(|_| disk.partitions.is_empty()) {
        return mark.described();
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
    use crate::node::disk::devices::Partition;
    use crate::node::samples::bare_disk;

    /// Returns whether a disk with partitions counts as that of the OSD of its label, without a proof.
    fn counts(holders: &[&str], is_old: bool) -> bool {
        let osd_fsid: OsdFsid = "55ebe299-c0ce-4341-960a-ddfd22d5b5bf".parse().unwrap();
        let label = Label {
            osd_fsid,
            whoami: Some(OsdId(1)),
            cluster: Some("5f382147-dc61-408c-ad68-8e6a2e37590b".parse().unwrap()),
            finished: true,
            activatable: true,
            part: "main".to_owned(),
        };
        let phantom =
            Partition { index: 2, name: "sdb2".into(), node: "/dev/sdb2".into(), start: 2048, sectors: 10 };
        let holders = holders.iter().map(|name| (*name).to_owned()).collect();
        let disk = Disk { partitions: vec![phantom], holders, ..bare_disk(&["ata-1"], 1 << 40) };
        let found = of_label(label, &disk, is_old.then_some(osd_fsid));
        assert_eq!((found.proof, found.about), (None, Some(osd_fsid)));
        matches!(found.content, Content::Bluestore { .. })
    }

    #[test]
    fn label_beside_phantom_partitions_counts_for_a_new_osd() {
        assert!(counts(&[], false));
        assert!(!counts(&[], true), "the OSD that is to be destroyed");
        assert!(!counts(&["dm-0"], false), "something lies on a partition");
    }
}
