//! Parts of an OSD on devices other than the one that is recreated: Filestore's journal, BlueStore's database
//! and log, on whole disks or on partitions between other OSDs' partitions.
//!
//! Each is proven by its own mark, when the OSD is inspected and once more when the device is open
//! exclusively. All of them are proven before anything is wiped. Then the tombstone is written on the main
//! device, and then they are cleared, within their own bytes. No table is touched or read again, so nothing
//! of a neighbour moves.

use crate::domain::inspection::{Evidence, Piece, PieceLocation};
use crate::domain::osd::{DeviceIdentity, OsdFsid, Role};
use crate::domain::proof::Layers;
use crate::domain::proof::finding::DiskFinding;
use crate::domain::proof::pieces::{PieceSeen, piece_is_to_be_cleared};
use crate::domain::proof::verdict::Verdict;
use crate::node::disk::devices::{self, Disk};
use crate::node::disk::label::{self, label_at};
use crate::node::disk::marks::{self, Marks};
use crate::node::disk::parts::{self, PART_UUID};
use crate::node::disk::wipe::ExclusiveDisk;
use crate::node::error::NodeError;
use crate::node::host::Host;
use crate::node::legacy::journal;
use crate::node::tools::command::{QUICK, blocking};

/// Adds the OSD's parts on other devices to the finding of its main device.
///
/// The result has no proof if one of them is unclear.
pub(crate) async fn complete(
    host: &Host,
    main: &Disk,
    examine: DiskFinding,
) -> Result<DiskFinding, NodeError> {
    let (Some(proof), Some(osd_fsid)) = (&examine.proof, examine.about) else { return Ok(examine) };
    // The tags of a volume name its parts: `volumes` has found them.
    if Layers::of_proof(proof) != Layers::None {
        return Ok(examine);
    }
    let devices = devices(host).await?;
    let found = match found(&devices, main, osd_fsid, &examine).await? {
        Ok(found) => found,
        Err(why) => {
            return Ok(DiskFinding::other(format!("{}, {why}", examine.content), examine.about));
        }
    };
    Ok(DiskFinding { auxiliary: found, ..examine })
}

/// A piece that is proven and open exclusively.
#[derive(Debug)]
pub(crate) struct Taken {
    disk: ExclusiveDisk,
}

impl Taken {
    /// Clears everything by which the piece is recognised, the mark itself last.
    ///
    /// After a crash the rest is still known to be the old OSD's.
    pub(crate) async fn clear(&self) -> Result<(), NodeError> {
        self.disk.clear_piece().await
    }
}

/// Opens and proves all of an OSD's pieces that are still to be cleared.
pub(crate) async fn take(
    host: &Host,
    evidence: &Evidence,
    old: OsdFsid,
    verdict: &Verdict,
) -> Result<Vec<Taken>, NodeError> {
    if evidence.auxiliary.is_empty() {
        return Ok(Vec::new());
    }
    take_of(&devices(host).await?, &evidence.auxiliary, old, verdict).await
}

async fn take_of(
    devices: &[Disk],
    pieces: &[Piece],
    old: OsdFsid,
    verdict: &Verdict,
) -> Result<Vec<Taken>, NodeError> {
    let mut taken = Vec::new();
    for piece in pieces {
        // Volumes are removed after the data (`volumes::auxiliary`).
        let PieceLocation::Device(identity) = &piece.place else { continue };
        let (seen, disk) = find_again(devices, piece.role, identity, old).await?;
        if !piece_is_to_be_cleared(piece, verdict, &seen).map_err(NodeError::Refused)? {
            continue;
        }
        let Some(disk) = disk else { continue };
        let exclusive = ExclusiveDisk::open(disk).await?;
        // From here on nothing else can open the device exclusively: what is read now stays.
        let now = on_device(disk, piece.role, old).await?;
        if piece_is_to_be_cleared(piece, verdict, &now).map_err(NodeError::Refused)? {
            taken.push(Taken { disk: exclusive });
        }
    }
    Ok(taken)
}

/// Returns all disks of the node and their partitions.
pub(crate) async fn devices(host: &Host) -> Result<Vec<Disk>, NodeError> {
    let mut all = Vec::new();
    for disk in devices::of_host(host).await?.disks {
        let parts = parts::of(&disk, &host.sys_block, &host.dev).await?;
        all.push(disk);
        all.extend(parts.disks);
    }
    Ok(all)
}

/// Returns the parts of an OSD on the devices that are not its main one; a sentence if they are unclear.
async fn found(
    devices: &[Disk],
    main: &Disk,
    osd_fsid: OsdFsid,
    examine: &DiskFinding,
) -> Result<Result<Vec<Piece>, String>, NodeError> {
    let mut pieces: Vec<Piece> = Vec::new();
    for disk in devices.iter().filter(|disk| !is_within(main, disk)) {
        let role = match role_of(disk, osd_fsid, examine).await? {
            Ok(Some(role)) => role,
            Ok(None) => continue,
            Err(why) => return Ok(Err(why)),
        };
        let identity = &disk.identity;
        if identity.by_id.is_empty() && identity.wwn.is_none() && identity.serial.is_none() {
            return Ok(Err(format!("and its {role} is on {}, which has no stable name", disk.described())));
        }
        if pieces.iter().any(|piece| piece.role == role) {
            return Ok(Err(format!("and more than one device is its {role}")));
        }
        pieces.push(Piece { role, place: PieceLocation::Device(identity.clone()) });
    }
    let missing = examine.elsewhere.iter().find(|(role, _)| !pieces.iter().any(|piece| piece.role == **role));
    if let Some((role, uuid)) = missing {
        let named = uuid.as_ref().map(|uuid| format!(", the partition {uuid}")).unwrap_or_default();
        return Ok(Err(format!("and no device of the node proves to be its {role}{named}")));
    }
    pieces.sort();
    Ok(Ok(pieces))
}

/// Returns whether a device is the main device itself, or a partition of the disk that is recreated as a
/// whole.
fn is_within(main: &Disk, disk: &Disk) -> bool {
    disk.name == main.name || (main.parent.is_none() && disk.parent.as_ref() == Some(&main.name))
}

/// Returns the device's role for the OSD, if it has one.
async fn role_of(
    disk: &Disk,
    osd_fsid: OsdFsid,
    examine: &DiskFinding,
) -> Result<Result<Option<Role>, String>, NodeError> {
    let is_named = |uuid: &str| disk.identity.wwn.as_deref() == Some(&format!("{PART_UUID}{uuid}"));
    let named = examine.elsewhere.iter().find(|(_, uuid)| uuid.as_deref().is_some_and(is_named));
    if let Some((Role::Journal, _)) = named {
        return Ok(match on_device(disk, Role::Journal, osd_fsid).await? {
            PieceSeen::Old => Ok(Some(Role::Journal)),
            other @ (PieceSeen::Blank | PieceSeen::Ours | PieceSeen::Other(_) | PieceSeen::Missing) => {
                Err(format!("and its journal partition {} carries {other}", disk.described()))
            }
        });
    }
    // A device that can't be read is no running OSD's.
    if label_at(&disk.node).await.ok().flatten() != Some(osd_fsid) {
        return Ok(named.map_or(Ok(None), |(role, _)| {
            Err(format!("and its partition {} for {role} does not carry its label", disk.described()))
        }));
    }
    let label = label::read(&disk.node).await?;
    Ok(match (label.role(), named) {
        (Some(role @ (Role::Db | Role::Wal)), None) => match examine.elsewhere.get(&role) {
            Some(Some(uuid)) => {
                Err(format!("and {} is its {role}, although it names {uuid}", disk.described()))
            }
            Some(None) | None => Ok(Some(role)),
        },
        (Some(role @ (Role::Db | Role::Wal)), Some((named, _))) if role == *named => Ok(Some(role)),
        (Some(_) | None, _) => Err(format!("and {} also carries its `{}`", disk.described(), label.part)),
    })
}

/// Returns the device of a recorded piece, and what it carries now.
///
/// If several devices fit, the one with the mark counts.
async fn find_again<'a>(
    devices: &'a [Disk],
    role: Role,
    identity: &DeviceIdentity,
    old: OsdFsid,
) -> Result<(PieceSeen, Option<&'a Disk>), NodeError> {
    let mut last = (PieceSeen::Missing, None);
    for disk in devices.iter().filter(|disk| identity.is_same_as(&disk.identity)) {
        let carried = on_device(disk, role, old).await?;
        if carried == PieceSeen::Old || last.0 == PieceSeen::Missing {
            last = (carried, Some(disk));
        } else if last.0 != PieceSeen::Old {
            last.0 = PieceSeen::Other("one of several devices that cannot be distinguished".to_owned());
        }
    }
    Ok(last)
}

/// Returns what a device carries that is, or was, a piece of the old OSD.
pub(crate) async fn on_device(disk: &Disk, role: Role, old: OsdFsid) -> Result<PieceSeen, NodeError> {
    if role == Role::Journal {
        let node = disk.node.clone();
        let head = move || journal::fsid_at_head(&node);
        match blocking("read", disk.described(), QUICK, head).await? {
            Some(fsid) if fsid == old => return Ok(PieceSeen::Old),
            Some(other) => return Ok(PieceSeen::Other(format!("the journal of OSD {other}"))),
            None => {}
        }
    }
    Ok(match marks::of(disk).await? {
        Marks::None if disk.partitions.is_empty() => PieceSeen::Blank,
        Marks::Label => {
            let label = label::read(&disk.node).await?;
            if role != Role::Journal && (label.osd_fsid, label.role()) == (old, Some(role)) {
                PieceSeen::Old
            } else {
                PieceSeen::Other(label.described())
            }
        }
        Marks::None => PieceSeen::Other("partitions".to_owned()),
        marks @ (Marks::Tombstone(..) | Marks::Signed(_) | Marks::LabelCopy(_) | Marks::Data { .. }) => {
            PieceSeen::Other(marks.described())
        }
    })
}

#[cfg(test)]
#[path = "pieces_tests.rs"]
mod tests;
