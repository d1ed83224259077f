//! The way from a disk that was found to the OSD on it: prove, wipe, prepare. Only what the disk still needs
//! is done.

use super::capability::CapabilityAnswer;
use super::ceph_volume::{self, Given};
use super::command::{QUICK, run};
use super::content;
use super::devices::Disk;
use super::error::NodeError;
use super::file_disk::{self, Attached};
use super::find::{self, FoundDisk};
use super::legacy::{self, Sharing, pieces};
use super::lock::OsdLock;
use super::mons::{self, Slots};
use super::proof::{self, Verdict};
use super::rebuild::issued;
use super::tombstone::Tombstone;
use super::volumes::{LvmCache, Moment, Shared};
use super::wipe::ExclusiveDisk;
use super::{Host, Steps, volumes};
use crate::domain::inspection::{Content, Evidence, NodeRequest, Proof};
use crate::domain::osd::{Mode, OsdFsid};

/// Task and environment of a rebuild.
pub(crate) struct Order<'a> {
    pub(crate) request: &'a NodeRequest,
    pub(crate) evidence: &'a Evidence,
    pub(crate) host: &'a Host,
    pub(crate) steps: &'a Steps,
}

/// Does what the disk still needs. Returns the output of ceph-volume if it ran.
pub(crate) async fn make(
    order: &Order<'_>,
    found: &FoundDisk,
    asked: &CapabilityAnswer,
) -> Result<Option<String>, NodeError> {
    let &Order { request, evidence, host, .. } = order;
    let verdict = proof::verdict(request, evidence, &issued(request, host)?, &found.examine);
    let status = asked.slots.as_ref().ok().and_then(|slots| slots.get(&request.osd));
    let verdict = proof::unless_unreadable(verdict, request, status.map(String::as_str));
    match &verdict {
        Verdict::Done if request.on_file => return file_disk::detach(host).await.map(|()| None),
        Verdict::Done => return Ok(None),
        Verdict::Refuse(why) => return Err(NodeError::Refused(format!("{}: {why}", found.disk.described()))),
        Verdict::WipeOld | Verdict::WipeOurs | Verdict::WipeMisplaced(_) | Verdict::TakeAvailable => {}
    }
    if verdict == Verdict::WipeOld {
        proof::pieces_are_recorded(&evidence.auxiliary, &found.examine.auxiliary)
            .map_err(NodeError::Refused)?;
        if let Some(why) = volumes::foreign_layer(host, &found.disk, &evidence.proof) {
            return Err(NodeError::Refused(why));
        }
    }
    asked.can_rebuild(host, request.target.mode, volumes::are_touched(evidence))?;
    if let Ok(slots) = &asked.slots {
        slot_may_be_taken(slots, request, &verdict)?; // asked again when the disk is open exclusively
    }
    let said = match request.target.mode {
        Mode::Raw if request.on_file => on_file(order, &verdict).await?,
        Mode::Raw => on_disk(order, found, &verdict).await?,
        Mode::Lvm => on_volumes(order, found, &verdict).await?,
    };
    Ok(Some(said))
}

async fn on_file(order: &Order<'_>, verdict: &Verdict) -> Result<String, NodeError> {
    let attached = Attached::attach(order.host).await?;
    let work = async {
        wipe(order, &attached.disk, verdict, None).await?;
        prepare(order, Given::Disk(&attached.disk.node)).await
    };
    let said = work.await;
    drop(attached);
    let detached = file_disk::detach(order.host).await;
    said.and_then(|said| detached.map(|()| said))
}

async fn on_disk(order: &Order<'_>, found: &FoundDisk, verdict: &Verdict) -> Result<String, NodeError> {
    let &Order { request, evidence, host, steps } = order;
    if let Some(shared) = Shared::of(evidence) {
        return Err(NodeError::Refused(format!(
            "other volumes share the volume group of its volume, so its disk cannot become {}: {shared}",
            request.target
        )));
    }
    // Locked to the end, if volumes are removed: only one agent changes volumes at a time.
    let _lock = if volumes::are_touched(evidence) { Some(OsdLock::take_lvm(&host.state)?) } else { None };
    let disk = let_go(order, &found.disk, verdict).await?;
    wipe(order, &disk, verdict, None).await?;
    steps.time("beside", volumes::auxiliary(host, request, evidence)).await?;
    prepare(order, Given::Disk(&disk.node)).await
}

/// Closes what device-mapper has on a disk that is the OSD's alone.
async fn let_go(order: &Order<'_>, disk: &Disk, verdict: &Verdict) -> Result<Disk, NodeError> {
    let &Order { request, evidence, host, steps } = order;
    if !volumes::is_mapped(&evidence.proof) {
        return Ok(disk.clone());
    }
    // Asked again when the disk is open exclusively; an OSD that was re-registered meanwhile must not lose
    // its nodes either.
    slot_may_be_taken(&mons::slots(host).await?, request, verdict)?;
    steps.time("let-go", volumes::let_go(host, disk)).await
}

async fn on_volumes(order: &Order<'_>, found: &FoundDisk, verdict: &Verdict) -> Result<String, NodeError> {
    let &Order { request, evidence, host, steps } = order;
    // Locked to the end: if two agents changed one volume group at the same time, the first one's changes
    // would be lost.
    let _lock = OsdLock::take_lvm(&host.state)?;
    // A store with an issued fsid that is to be removed: objects on the disk are named after that fsid.
    let unfinished = match &found.examine.content {
        Content::Bluestore { osd_fsid, .. }
            if matches!(verdict, Verdict::WipeOurs | Verdict::WipeMisplaced(_)) =>
        {
            Some(*osd_fsid)
        }
        Content::Bluestore { .. }
        | Content::Osd { .. }
        | Content::Tombstone { .. }
        | Content::Blank
        | Content::Other { .. }
        | Content::NotFound { .. } => None,
    };
    slot_may_be_taken(&mons::slots(host).await?, request, verdict)?;
    let clear = volumes::clear_away(host, request, unfinished, &found.disk);
    let mut disk = steps.time("clear", clear).await?;
    if let Some(shared) = Shared::of(evidence) {
        remove(order, &disk, verdict, &shared).await?;
    } else {
        disk = let_go(order, &disk, verdict).await?;
        wipe(order, &disk, verdict, unfinished).await?;
    }
    steps.time("beside", volumes::auxiliary(host, request, evidence)).await?;
    let made = steps.time("volumes", volumes::make(host, request, evidence, &disk)).await?;
    let said = prepare(order, Given::Volumes(&made)).await?;
    steps.time("seal", volumes::seal(request, made.fsid)).await?;
    Ok(said)
}

/// Removes only the OSD's volume, and its parts on other devices, from a disk that others need.
async fn remove(
    order: &Order<'_>,
    disk: &Disk,
    verdict: &Verdict,
    shared: &Shared<'_>,
) -> Result<(), NodeError> {
    let &Order { request, evidence, host, steps } = order;
    let pieces = pieces::take(host, evidence, request.old, verdict).await?;
    prove_database(order).await?;
    steps.time("remove", volumes::from_group(host, request, disk, shared)).await?;
    for piece in pieces {
        piece.clear().await?;
    }
    Ok(())
}

/// Wipes a disk: from the exclusive open to the last zero.
async fn wipe(
    order: &Order<'_>,
    disk: &Disk,
    verdict: &Verdict,
    unfinished: Option<OsdFsid>,
) -> Result<(), NodeError> {
    let &Order { request, host, steps, .. } = order;
    #[cfg(feature = "failpoint")]
    crate::failpoint::pause_agent(&host.state, "open");
    // The disk is opened first: while it is open, no daemon can start on it and no path can lead elsewhere.
    let exclusive = steps.time("open", ExclusiveDisk::open(disk)).await?;
    steps.time("prove", prove(order, disk, verdict, unfinished)).await?;
    prove_database(order).await?;
    let pieces = pieces::take(host, order.evidence, request.old, verdict).await?;
    #[cfg(feature = "failpoint")]
    crate::failpoint::pause_agent(&host.state, "wipe");
    let wipe = async {
        exclusive.write_tombstone(&Tombstone::of(request)).await?;
        #[cfg(feature = "failpoint")]
        crate::failpoint::pause_agent(&host.state, "pieces");
        for piece in pieces {
            piece.clear().await?;
        }
        exclusive.clear(disk, &host.sys_block, &host.dev).await
    };
    steps.time("wipe", wipe).await?;
    drop(exclusive); // osd-migrate's last write is done; mkfs opens the disk exclusively itself
    steps.time("settle", settle()).await;
    Ok(())
}

/// Proves that there is room for the database. This is the last moment in which the OSD is still whole.
async fn prove_database(order: &Order<'_>) -> Result<(), NodeError> {
    let &Order { request, host, steps, .. } = order;
    match &request.db {
        Some(db) => steps.time("database", volumes::prove_database(host, db, request.cluster)).await,
        None => Ok(()),
    }
}

async fn prepare(order: &Order<'_>, given: Given<'_>) -> Result<String, NodeError> {
    let prepare = ceph_volume::prepare(order.host, order.request, given);
    let prepared = order.steps.time("prepare", prepare).await?;
    Ok(format!("ceph-volume ended with {}: {}", prepared.status, prepared.last))
}

/// Waits until the host's udevd has seen what was removed: ceph-volume asks lsblk, and lsblk asks udevd's
/// database.
///
/// If there is no udevd or it is slow, prepare runs all the same and reports what blocks it.
async fn settle() {
    run("udevadm", &["settle", "--timeout=10"], None, QUICK).await.ok();
}

/// Reads again everything that allows the wipe, while the disk is open exclusively.
///
/// `unfinished`: the issued fsid that its physical volume was named after, whose volumes are closed now.
async fn prove(
    order: &Order<'_>,
    disk: &Disk,
    verdict: &Verdict,
    unfinished: Option<OsdFsid>,
) -> Result<(), NodeError> {
    let &Order { request, evidence, host, .. } = order;
    // An agent that was frozen for an hour must not wipe an OSD that was re-registered meanwhile.
    slot_may_be_taken(&mons::slots(host).await?, request, verdict)?;
    proof::same_device(&evidence.device, &disk.identity).map_err(NodeError::Refused)?;
    match (verdict, &evidence.proof) {
        (Verdict::WipeOld, Proof::Partitions { parts, .. }) => {
            let seen = legacy::reread(disk, parts).await?;
            proof::same_partitions(&evidence.proof, &seen).map_err(NodeError::Refused)
        }
        (
            Verdict::WipeOld
            | Verdict::WipeOurs
            | Verdict::WipeMisplaced(_)
            | Verdict::TakeAvailable
            | Verdict::Done
            | Verdict::Refuse(_),
            _,
        ) => {
            // Read the disk's bytes, and what the kernel has put on it or found in it since.
            let disk = disk.again(&host.sys_block, &host.dev)?;
            let now = content::examine(&disk, find::reading(host, request, Sharing::No)).await?;
            let now = volumes::within(host, &disk, now, &LvmCache::default(), request, Moment::Held).await?;
            proof::same_disk(&evidence.device, &disk.identity, &now.content).map_err(NodeError::Refused)?;
            let issued = issued(request, host)?;
            let is_same = match unfinished {
                Some(fsid) => now.about == Some(fsid) && issued.contains(&fsid),
                None => proof::verdict(request, evidence, &issued, &now) == *verdict,
            };
            if is_same && disk.holders.is_empty() && !disk.read_only {
                return Ok(());
            }
            // Most likely the mkfs of a killed ceph-volume has just ended; the next attempt decides again.
            Err(NodeError::NotDone(format!("the disk changed meanwhile: {}", now.content)))
        }
    }
}

fn slot_may_be_taken(slots: &Slots, request: &NodeRequest, verdict: &Verdict) -> Result<(), NodeError> {
    let status = slots.get(&request.osd).map(String::as_str);
    proof::slot_may_be_taken(request, status)
        .and_then(|()| proof::misplaced_is_purged(verdict, |misplaced| slots.contains_key(&misplaced)))
        .map_err(NodeError::Refused)
}
