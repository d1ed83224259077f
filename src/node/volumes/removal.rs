//! Removes what the old OSD lies on: closes its mappings, and deactivates or removes its volumes. Each of
//! them is identified by a recorded uuid; neighbouring objects of other owners are never touched.

use std::fmt;

use crate::domain::inspection::{Evidence, NodeRequest, Piece, PieceLocation, Proof};
use crate::node::disk::devices::Disk;
use crate::node::disk::tombstone::Tombstone;
use crate::node::error::NodeError;
use crate::node::host::Host;
use crate::node::state::issued;
use crate::node::volumes::auxiliary::{expect_tags, is_of_old};
use crate::node::volumes::change::Change;
use crate::node::volumes::lvm::{self, Lv};
use crate::node::volumes::lvm_cache;
use crate::node::volumes::lvm_cache::Physical;
use crate::node::volumes::mapped::{Mapped, opened};
use crate::node::volumes::names::is_ours;
use crate::node::volumes::tombstone;

/// The group that the OSD's volume shares with others, and the volume that is recreated in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shared<'a> {
    pub(super) group: &'a str,
    pub(super) volume: &'a str,
    pub(super) size_bytes: u64,
}

impl fmt::Display for Shared<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "volume {} of group {}", self.volume, self.group)
    }
}

impl<'a> Shared<'a> {
    /// Returns the uuid of the group.
    pub(crate) fn group(&self) -> &str {
        self.group
    }

    /// Returns the shared group if only the volume may be recreated, and not the disk.
    pub(crate) fn of(evidence: &'a Evidence) -> Option<Self> {
        match &evidence.proof {
            Proof::Volume { alone: false, group, volume, .. } => {
                Some(Self { group, volume, size_bytes: evidence.usable_bytes })
            }
            Proof::Volume { alone: true, .. }
            | Proof::BluestoreLabel { .. }
            | Proof::Partitions { .. }
            | Proof::Luks { .. }
            | Proof::Directory { .. }
            | Proof::Available { .. } => None,
        }
    }
}

/// Closes everything that lies on a disk.
///
/// The disk is the OSD's alone, as was proven, or already has the OSD's tombstone.
pub(crate) async fn let_go(host: &Host, disk: &Disk) -> Result<Disk, NodeError> {
    for mapped in Mapped::over(host, &disk.holders) {
        if mapped.is_crypt() {
            Change::CryptClose { mapping: &mapped.name }.done().await?;
        } else {
            close_above(host, &mapped).await?;
        }
    }
    // An encrypted disk has no group.
    if let Some(physical) = lvm_cache::physical_on(disk, &lvm::segments().await?).await? {
        Change::Deactivate { group: &physical.group.name }.done().await?;
    }
    disk.again(&host.sys_block, &host.dev)
}

/// Removes the old volume, and unfinished volumes of osd-migrate in its place, from a group that others
/// share.
///
/// The group is tagged with the OSD's tombstone before that, so that an inspection identifies the OSD at
/// every instant.
pub(crate) async fn from_group(
    host: &Host,
    request: &NodeRequest,
    disk: &Disk,
    shared: &Shared<'_>,
) -> Result<(), NodeError> {
    let group = physical(disk, shared).await?;
    let all = lvm::volumes().await?;
    Change::VgTag { name: &group.group.name, tag: &tombstone::tag(&Tombstone::of(request)) }.done().await?;
    let issued = issued::of(request, host)?;
    for lv in all.iter().filter(|lv| group.volumes.contains(&lv.uuid)) {
        let is_old = lv.uuid == shared.volume && is_of_old(lv, request);
        if is_old || is_ours(lv, request, &issued) {
            remove(host, lv).await?;
        }
    }
    Ok(())
}

/// Removes the tombstone from the group: the recreated volume identifies the OSD by itself.
pub(super) async fn unmark(request: &NodeRequest, group: &str) -> Result<(), NodeError> {
    let tag = tombstone::tag(&Tombstone::of(request));
    Change::VgUntag { name: group, tag: &tag }.done().await
}

/// Removes the tombstone from a shared group whose volume was removed, and does not come back.
pub(crate) async fn unmark_shared(request: &NodeRequest, shared: &Shared<'_>) -> Result<(), NodeError> {
    match group_named(shared.group).await? {
        Some(group) => unmark(request, &group).await,
        None => Err(NodeError::NotDone(format!("volume group {} no longer exists", shared.group))),
    }
}

/// Returns whether a shared group exists, and has neither the OSD's volume nor its tombstone any more.
pub(crate) async fn is_gone(request: &NodeRequest, shared: &Shared<'_>) -> Result<bool, NodeError> {
    let (segments, volumes) = (lvm::segments().await?, lvm::volumes().await?);
    let group = segments.into_iter().find(|segment| segment.group_uuid == shared.group);
    let is_there = volumes.iter().any(|lv| lv.uuid == shared.volume);
    Ok(!is_there && group.is_some_and(|segment| tombstone::of(&segment.group.tags, request).is_none()))
}

/// Removes the old OSD's other volumes, only once its data is gone.
///
/// Without the other volumes the old OSD can't be restored. Parts on whole disks and on
/// partitions: `legacy::pieces`.
pub(crate) async fn auxiliary(
    host: &Host,
    request: &NodeRequest,
    evidence: &Evidence,
) -> Result<(), NodeError> {
    if !evidence.auxiliary.iter().any(is_volume) {
        return Ok(());
    }
    let all = lvm::volumes().await?;
    for piece in &evidence.auxiliary {
        let PieceLocation::Volume { uuid, .. } = &piece.place else { continue };
        let Some(lv) = all.iter().find(|lv| lv.uuid == *uuid) else { continue };
        expect_tags(lv, piece.role, request).map_err(NodeError::Refused)?;
        remove(host, lv).await?;
    }
    Ok(())
}

fn is_volume(piece: &Piece) -> bool {
    matches!(piece.place, PieceLocation::Volume { .. })
}

/// Removes a volume that has no snapshot.
///
/// `lvremove` fails if the volume is in use.
async fn remove(host: &Host, lv: &Lv) -> Result<(), NodeError> {
    if let Some(why) = lv.snapshot(&lvm::volumes().await?) {
        return Err(NodeError::Refused(why));
    }
    if let Some(mapped) = Mapped::of_volume(host, lv) {
        close_above(host, &mapped).await?;
    }
    Change::LvRemove { lv: &lv.named() }.done().await
}

async fn close_above(host: &Host, mapped: &Mapped) -> Result<(), NodeError> {
    if let Some(open) = opened(mapped.above(host)) {
        Change::CryptClose { mapping: &open.name }.done().await?;
    }
    Ok(())
}

/// Returns the name of the group with this uuid: names change.
async fn group_named(uuid: &str) -> Result<Option<String>, NodeError> {
    let segments = lvm::segments().await?;
    Ok(segments.into_iter().find(|segment| segment.group_uuid == uuid).map(|segment| segment.group.name))
}

/// Returns the physical volume of a shared group on this disk.
pub(super) async fn physical(disk: &Disk, shared: &Shared<'_>) -> Result<Physical, NodeError> {
    let found = lvm_cache::physical_on(disk, &lvm::segments().await?).await?;
    found.filter(|physical| physical.group_uuid == shared.group).ok_or_else(|| {
        NodeError::Refused(format!("{} is no longer in volume group {}", disk.described(), shared.group))
    })
}
