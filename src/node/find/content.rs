//! Content of one disk. Reads only.

use crate::domain::inspection::{Content, Proof};
use crate::domain::osd::Role;
use crate::domain::proof::finding::{DiskFinding, Layer};
use crate::node::disk::devices::Disk;
use crate::node::disk::label;
use crate::node::disk::marks::{self, Marks};
use crate::node::disk::table::Signature;
use crate::node::error::NodeError;
use crate::node::legacy;
use crate::node::legacy::files::Reading;
use crate::node::volumes::names;

/// Examines what a disk carries.
pub(crate) async fn examine(disk: &Disk, reading: Reading<'_>) -> Result<DiskFinding, NodeError> {
    match marks::of(disk).await? {
        Marks::Tombstone(tombstone) => {
            let about = Some(tombstone.old);
            Ok(DiskFinding::plain(tombstone.into_content(), about))
        }
        Marks::Label => labelled(disk).await,
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

async fn labelled(disk: &Disk) -> Result<DiskFinding, NodeError> {
    let label = label::read(&disk.node).await?;
    if label.role() != Some(Role::Block) {
        // A part of an OSD is never taken for the OSD.
        let what = format!("`{}` of OSD {}, whose data is on another device", label.part, label.osd_fsid);
        return Ok(DiskFinding::other(what, None));
    }
    let about = Some(label.osd_fsid);
    if !disk.partitions.is_empty() {
        let what = format!("a BlueStore label of OSD {} on a disk that has partitions", label.osd_fsid);
        return Ok(DiskFinding::other(what, about));
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
    Ok(DiskFinding { proof, ..DiskFinding::plain(label.into_content(), about) })
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
