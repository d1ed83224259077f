//! Steps that a rebuild and the wipe of a removed OSD have in common: what the old OSD has on its disk, and
//! on other devices, goes.

use crate::domain::osd::{Mode, OsdFsid};
use crate::domain::proof::Layers;
use crate::domain::proof::verdict::Verdict;
use crate::node::agent::prove::{Order, is_still_proven, prove_again, prove_database, slot_may_be_taken};
use crate::node::agent::recorded::recorded;
use crate::node::create::mons;
use crate::node::disk::devices::Disk;
use crate::node::disk::tombstone::Tombstone;
use crate::node::disk::wipe::ExclusiveDisk;
use crate::node::error::NodeError;
use crate::node::legacy::files::Sharing;
use crate::node::legacy::pieces;
use crate::node::pvc::hold::{self, HeldPart};
use crate::node::pvc::part::Part;
use crate::node::state::lock::OsdLock;
use crate::node::tools::command::{QUICK, run};
use crate::node::volumes::luks;
use crate::node::volumes::removal::{self, Shared};

/// Takes the lock of the node's volumes, if volumes are created or removed.
///
/// If two agents changed one volume group at the same time, the first one's changes would be lost.
pub(super) fn lock_volumes(order: &Order<'_>) -> Result<Option<OsdLock>, NodeError> {
    let &Order { request, evidence, host, .. } = order;
    let is_needed = match request.target.mode {
        Mode::Raw => !request.on_file && Layers::of(evidence) != Layers::None,
        Mode::Lvm => true,
    };
    is_needed.then(|| OsdLock::take_lvm(&host.state)).transpose()
}

/// Closes what device-mapper has on a disk that is the OSD's alone.
pub(super) async fn let_go(order: &Order<'_>, disk: &Disk, verdict: &Verdict) -> Result<Disk, NodeError> {
    let &Order { request, evidence, host, steps } = order;
    let on_pvc = request.pvcs.is_some();
    let disk = if on_pvc { close_mappings(order, disk, verdict).await? } else { disk.clone() };
    match Layers::of_proof(&evidence.proof) {
        Layers::None => return Ok(disk),
        Layers::Encryption if on_pvc => return Ok(disk),
        Layers::Encryption | Layers::Volumes => {}
    }
    // Asked again when the disk is open exclusively; an OSD that was re-registered meanwhile must not lose
    // its nodes either.
    slot_may_be_taken(&mons::slots(host).await?, request, verdict)?;
    steps.time("let-go", removal::let_go(host, &disk)).await
}

/// Closes the mappings on the device of a PVC, and proves the device again: a mkfs of a ceph-volume that was
/// killed may have ended in such a mapping only now.
async fn close_mappings(order: &Order<'_>, disk: &Disk, verdict: &Verdict) -> Result<Disk, NodeError> {
    let &Order { request, evidence, host, steps } = order;
    if disk.holders.is_empty() {
        return Ok(disk.clone());
    }
    // An OSD that was re-registered meanwhile must not lose its mapping.
    slot_may_be_taken(&mons::slots(host).await?, request, verdict)?;
    let closed = steps.time("let-go", luks::close_all(host, disk)).await?;
    is_still_proven(order, &recorded(request, evidence, host, Sharing::No).await?, verdict)?;
    Ok(closed)
}

/// Clears a disk that is the OSD's alone, and the OSD's parts on other devices, up to the tombstone.
///
/// The steps: hold, prove again, tombstone, clear. The disk and the parts on PVCs are returned held.
/// `unfinished`: see `prove_again`.
pub(super) async fn clear_disk<'a>(
    order: &Order<'_>,
    disk: &Disk,
    verdict: &Verdict,
    unfinished: Option<OsdFsid>,
    parts: Vec<Part<'a>>,
) -> Result<(ExclusiveDisk, Vec<HeldPart<'a>>), NodeError> {
    let &Order { request, evidence, host, steps } = order;
    #[cfg(feature = "failpoint")]
    crate::failpoint::pause_agent(&host.state, "open");
    // Hold the disk: while it is open, no daemon can start on it and no path can lead elsewhere.
    let exclusive = steps.time("open", ExclusiveDisk::open(disk)).await?;
    // Prove again, now that nothing else can change the disk.
    steps.time("prove", prove_again(order, disk, verdict, unfinished)).await?;
    prove_database(order).await?;
    let pieces = pieces::take(host, evidence, request.old, verdict).await?;
    let parts = hold::hold(host, request, evidence, verdict, parts).await?;
    #[cfg(feature = "failpoint")]
    crate::failpoint::pause_agent(&host.state, "wipe");
    let wipe = async {
        // Write the tombstone: the first write to the disk.
        exclusive.write_tombstone(&Tombstone::of(request)).await?;
        #[cfg(feature = "failpoint")]
        crate::failpoint::pause_agent(&host.state, "pieces");
        // Clear the OSD's parts on other devices, then its disk.
        for piece in pieces {
            piece.clear().await?;
        }
        hold::wipe(host, request, &parts).await?;
        exclusive.clear(disk, &host.sys_block, &host.dev).await
    };
    steps.time("wipe", wipe).await?;
    Ok((exclusive, parts))
}

/// Removes only the OSD's volume, and its parts on other devices, from a disk that others need.
pub(super) async fn remove_volume(
    order: &Order<'_>,
    disk: &Disk,
    verdict: &Verdict,
    shared: &Shared<'_>,
) -> Result<(), NodeError> {
    let &Order { request, evidence, host, steps } = order;
    let pieces = pieces::take(host, evidence, request.old, verdict).await?;
    prove_database(order).await?;
    steps.time("remove", removal::from_group(host, request, disk, shared)).await?;
    for piece in pieces {
        piece.clear().await?;
    }
    Ok(())
}

/// Waits until the host's udevd has seen what was removed: ceph-volume asks lsblk, and lsblk asks udevd's
/// database.
///
/// If there is no udevd or it is slow, prepare runs all the same and reports what blocks it.
pub(super) async fn settle() {
    run("udevadm", &["settle", "--timeout=10"], None, QUICK).await.ok();
}
