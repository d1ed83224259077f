//! The rebuild: the new OSD in place of the recorded one, on the same disk. `rebuild` has all steps in their
//! order, the destructive ones among them. Only what the disk still needs is done.

use crate::domain::inspection::{Content, Evidence, NodeRequest, Proof};
use crate::domain::osd::{Mode, OsdFsid};
use crate::domain::proof::pieces::pieces_are_recorded;
use crate::domain::proof::verdict::{self, Verdict};
use crate::domain::proof::{is_mapped, proven, same_disk};
use crate::node::agent::outcome::{Outcome, inspection};
use crate::node::agent::recorded::{evidence_of, recorded};
use crate::node::create::capability::{self, CapabilityAnswer};
use crate::node::create::ceph_volume::{self, Given};
use crate::node::create::mons::{self, Slots};
use crate::node::disk::devices::Disk;
use crate::node::disk::file_disk::{self, Attached};
use crate::node::disk::tombstone::Tombstone;
use crate::node::disk::wipe::ExclusiveDisk;
use crate::node::error::NodeError;
use crate::node::find::content;
use crate::node::find::search::{self, FoundDisk, Search};
use crate::node::host::Host;
use crate::node::legacy::files::Sharing;
use crate::node::legacy::{partitions, pieces, remains};
use crate::node::state::issued;
use crate::node::state::lock::OsdLock;
use crate::node::steps::Steps;
use crate::node::tools::command::{QUICK, run};
use crate::node::volumes::lvm_cache::LvmCache;
use crate::node::volumes::old::Moment;
use crate::node::volumes::removal::{self, Shared};
use crate::node::volumes::{databases, make, stack, within};

/// Task and environment of a rebuild.
struct Order<'a> {
    request: &'a NodeRequest,
    evidence: &'a Evidence,
    host: &'a Host,
    steps: &'a Steps,
}

/// Creates the new OSD on the recorded disk.
///
/// The steps: find, prove, hold, prove again, tombstone, clear, prepare, verify. Up to the tombstone, a
/// failure leaves the old OSD whole.
pub(super) async fn rebuild(request: &NodeRequest, host: &Host, steps: &Steps) -> Outcome {
    let evidence = match evidence_of(request) {
        Ok(evidence) => evidence,
        Err(error) => return Outcome::failed(error),
    };
    let order = &Order { request, evidence, host, steps };
    // Find the recorded disk by its traits and its content.
    let (search, asked) = tokio::join!(
        steps.time("find", recorded(request, evidence, host, Sharing::No)),
        steps.time("capability", capability::ask(host)),
    );
    let found = match search {
        Ok(Search::One(found)) => found,
        Ok(search @ (Search::None(_) | Search::Several(_))) => return not_found(order, search, &asked),
        Err(error) => return Outcome::failed(error),
    };
    let mut file = None;
    let done = async {
        // Prove what is on the disk, and that its slot may be taken.
        let Some(verdict) = prove(order, &found, &asked)? else {
            return if request.on_file { file_disk::detach(host).await.map(|()| None) } else { Ok(None) };
        };
        // Only one agent changes volumes at a time: locked up to the new OSD.
        let _lock = lock_volumes(order)?;
        let (disk, unfinished) = release(order, &found, &verdict, &mut file).await?;
        if let Some(shared) = Shared::of(evidence).filter(|_| request.target.mode == Mode::Lvm) {
            // Others need the disk: only the OSD's volume goes, and a tag on its group is the tombstone.
            remove_volume(order, &disk, &verdict, &shared).await?;
        } else {
            #[cfg(feature = "failpoint")]
            crate::failpoint::pause_agent(&host.state, "open");
            // Hold the disk: while it is open, no daemon can start on it and no path can lead elsewhere.
            let exclusive = steps.time("open", ExclusiveDisk::open(&disk)).await?;
            // Prove again, now that nothing else can change the disk.
            steps.time("prove", prove_again(order, &disk, &verdict, unfinished)).await?;
            prove_database(order).await?;
            let pieces = pieces::take(host, evidence, request.old, &verdict).await?;
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
                exclusive.clear(&disk, &host.sys_block, &host.dev).await
            };
            steps.time("wipe", wipe).await?;
            drop(exclusive); // osd-migrate's last write is done; mkfs opens the disk exclusively itself
            steps.time("settle", settle()).await;
        }
        // Prepare the new OSD.
        create(order, &disk).await.map(Some)
    };
    let done = done.await;
    let done = detached(order, file, done).await;
    // Verify that the disk carries the new OSD, finished.
    verify(order, &asked, done).await
}

fn not_found(order: &Order<'_>, search: Search, asked: &CapabilityAnswer) -> Outcome {
    let inspection = inspection(order.request, order.host, search, asked);
    let why = inspection.content.to_string();
    let error = Some(NodeError::Refused(why));
    Outcome { inspection: Some(inspection), error, left: Vec::new() }
}

/// Returns the permission to wipe the disk; none if it carries the new OSD already.
fn prove(
    order: &Order<'_>,
    found: &FoundDisk,
    asked: &CapabilityAnswer,
) -> Result<Option<Verdict>, NodeError> {
    let &Order { request, evidence, host, .. } = order;
    let verdict = verdict::verdict(request, evidence, &issued::of(request, host)?, &found.examine);
    let status = asked.slots.as_ref().ok().and_then(|slots| slots.get(&request.osd));
    let verdict = verdict::unless_unreadable(verdict, request, status.map(String::as_str));
    match &verdict {
        Verdict::Done => return Ok(None),
        Verdict::Refuse(why) => return Err(NodeError::Refused(format!("{}: {why}", found.disk.described()))),
        Verdict::WipeOld | Verdict::WipeOurs | Verdict::WipeMisplaced(_) | Verdict::TakeAvailable => {}
    }
    if verdict == Verdict::WipeOld {
        pieces_are_recorded(&evidence.auxiliary, &found.examine.auxiliary).map_err(NodeError::Refused)?;
        if let Some(why) = stack::foreign_layer(host, &found.disk, &evidence.proof) {
            return Err(NodeError::Refused(why));
        }
    }
    asked.can_rebuild(host, request.target.mode, removal::are_touched(evidence))?;
    if let Ok(slots) = &asked.slots {
        slot_may_be_taken(slots, request, &verdict)?; // asked again when the disk is open exclusively
    }
    if let (Some(shared), Mode::Raw, false) = (Shared::of(evidence), request.target.mode, request.on_file) {
        return Err(NodeError::Refused(format!(
            "other volumes share the volume group of its volume, so its disk cannot become {}: {shared}",
            request.target
        )));
    }
    Ok(Some(verdict))
}

/// Takes the lock of the node's volumes, if volumes are created or removed.
///
/// If two agents changed one volume group at the same time, the first one's changes would be lost.
fn lock_volumes(order: &Order<'_>) -> Result<Option<OsdLock>, NodeError> {
    let &Order { request, evidence, host, .. } = order;
    let is_needed = match request.target.mode {
        Mode::Raw => !request.on_file && removal::are_touched(evidence),
        Mode::Lvm => true,
    };
    is_needed.then(|| OsdLock::take_lvm(&host.state)).transpose()
}

/// Closes what keeps the disk open, and removes what an unfinished OSD of osd-migrate left.
///
/// Returns the disk, and the issued fsid that its physical volume is named after. The file for tests is
/// attached.
async fn release(
    order: &Order<'_>,
    found: &FoundDisk,
    verdict: &Verdict,
    file: &mut Option<Attached>,
) -> Result<(Disk, Option<OsdFsid>), NodeError> {
    let &Order { request, evidence, host, steps } = order;
    if request.on_file {
        let attached = file.insert(Attached::attach(host).await?);
        return Ok((attached.disk.clone(), None));
    }
    if request.target.mode == Mode::Raw {
        return Ok((let_go(order, &found.disk, verdict).await?, None));
    }
    let unfinished = unfinished(found, verdict);
    slot_may_be_taken(&mons::slots(host).await?, request, verdict)?;
    let clear = make::clear_away(host, request, unfinished, &found.disk);
    let disk = steps.time("clear", clear).await?;
    if Shared::of(evidence).is_some() {
        return Ok((disk, unfinished));
    }
    Ok((let_go(order, &disk, verdict).await?, unfinished))
}

/// Returns the issued fsid of a store that is to be removed: objects on the disk are named after that fsid.
fn unfinished(found: &FoundDisk, verdict: &Verdict) -> Option<OsdFsid> {
    match &found.examine.content {
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
    }
}

/// Closes what device-mapper has on a disk that is the OSD's alone.
async fn let_go(order: &Order<'_>, disk: &Disk, verdict: &Verdict) -> Result<Disk, NodeError> {
    let &Order { request, evidence, host, steps } = order;
    if !is_mapped(&evidence.proof) {
        return Ok(disk.clone());
    }
    // Asked again when the disk is open exclusively; an OSD that was re-registered meanwhile must not lose
    // its nodes either.
    slot_may_be_taken(&mons::slots(host).await?, request, verdict)?;
    steps.time("let-go", removal::let_go(host, disk)).await
}

/// Removes only the OSD's volume, and its parts on other devices, from a disk that others need.
async fn remove_volume(
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

/// Reads again everything that allows the wipe, while the disk is open exclusively.
///
/// `unfinished`: the issued fsid that its physical volume was named after, whose volumes are closed now.
async fn prove_again(
    order: &Order<'_>,
    disk: &Disk,
    verdict: &Verdict,
    unfinished: Option<OsdFsid>,
) -> Result<(), NodeError> {
    let &Order { request, evidence, host, .. } = order;
    // An agent that was frozen for an hour must not wipe an OSD that was re-registered meanwhile.
    slot_may_be_taken(&mons::slots(host).await?, request, verdict)?;
    same_disk::same_device(&evidence.device, &disk.identity).map_err(NodeError::Refused)?;
    match (verdict, &evidence.proof) {
        (Verdict::WipeOld, Proof::Partitions { parts, .. }) => {
            let seen = partitions::reread(disk, parts).await?;
            proven::same_partitions(&evidence.proof, &seen).map_err(NodeError::Refused)
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
            let now = content::examine(&disk, search::reading(host, request, Sharing::No)).await?;
            let now = within::within(host, &disk, now, &LvmCache::default(), request, Moment::Held).await?;
            same_disk::same_disk(&evidence.device, &disk.identity, &now.content)
                .map_err(NodeError::Refused)?;
            let issued = issued::of(request, host)?;
            let is_same = match unfinished {
                Some(fsid) => now.about == Some(fsid) && issued.contains(&fsid),
                None => verdict::verdict(request, evidence, &issued, &now) == *verdict,
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
    verdict::slot_may_be_taken(request, status)
        .and_then(|()| verdict::misplaced_is_purged(verdict, |misplaced| slots.contains_key(&misplaced)))
        .map_err(NodeError::Refused)
}

/// Proves that there is room for the database.
///
/// This is the last moment in which the OSD is still whole.
async fn prove_database(order: &Order<'_>) -> Result<(), NodeError> {
    let &Order { request, host, steps, .. } = order;
    match &request.db {
        Some(db) => steps.time("database", databases::prove(host, db, request.cluster)).await,
        None => Ok(()),
    }
}

/// Waits until the host's udevd has seen what was removed: ceph-volume asks lsblk, and lsblk asks udevd's
/// database.
///
/// If there is no udevd or it is slow, prepare runs all the same and reports what blocks it.
async fn settle() {
    run("udevadm", &["settle", "--timeout=10"], None, QUICK).await.ok();
}

/// Removes the old OSD's other volumes, then creates the new OSD. Returns what ceph-volume printed last.
async fn create(order: &Order<'_>, disk: &Disk) -> Result<String, NodeError> {
    let &Order { request, evidence, host, steps } = order;
    if !request.on_file {
        steps.time("auxiliary", removal::auxiliary(host, request, evidence)).await?;
    }
    match request.target.mode {
        Mode::Raw => prepare(order, Given::Disk(&disk.node)).await,
        Mode::Lvm => {
            let volumes = steps.time("volumes", make::make(host, request, evidence, disk)).await?;
            let said = prepare(order, Given::Volumes(&volumes)).await?;
            steps.time("seal", make::seal(request, volumes.fsid)).await?;
            Ok(said)
        }
    }
}

async fn prepare(order: &Order<'_>, given: Given<'_>) -> Result<String, NodeError> {
    let prepare = ceph_volume::prepare(order.host, order.request, given);
    let prepared = order.steps.time("prepare", prepare).await?;
    Ok(format!("ceph-volume ended with {}: {}", prepared.status, prepared.last))
}

/// Detaches the file for tests, if it is attached, whatever became of the rebuild.
async fn detached(
    order: &Order<'_>,
    file: Option<Attached>,
    done: Result<Option<String>, NodeError>,
) -> Result<Option<String>, NodeError> {
    if file.is_none() {
        return done;
    }
    drop(file);
    let detached = file_disk::detach(order.host).await;
    done.and_then(|said| detached.map(|()| said))
}

/// Reads the disk once more, and removes Rook's files of the old OSD if the new one is finished.
async fn verify(
    order: &Order<'_>,
    asked: &CapabilityAnswer,
    done: Result<Option<String>, NodeError>,
) -> Outcome {
    let &Order { request, evidence, host, steps } = order;
    // Search again from the start: numbers, partitions and even the disk's name may have changed.
    let last = steps.time("read", recorded(request, evidence, host, Sharing::No)).await;
    let error = match (done, &last) {
        (Err(error), _) => Some(error),
        (Ok(said), Ok(search)) => not_done(request, evidence, host, search, said.as_deref()),
        (Ok(_), Err(_)) => None, // reported below
    };
    match (last, error) {
        (Ok(search), error) => {
            let is_done = error.is_none();
            let left =
                if is_done { steps.time("remains", remains::remove(request, host)).await } else { vec![] };
            Outcome { inspection: Some(inspection(request, host, search, asked)), error, left }
        }
        (Err(_), Some(error)) | (Err(error), None) => Outcome::failed(error),
    }
}

/// Returns why the disk does not show what ceph-volume should have created.
fn not_done(
    request: &NodeRequest,
    evidence: &Evidence,
    host: &Host,
    search: &Search,
    said: Option<&str>,
) -> Option<NodeError> {
    let issued = match issued::of(request, host) {
        Ok(issued) => issued,
        Err(error) => return Some(error),
    };
    let carries = match search {
        Search::One(found)
            if verdict::verdict(request, evidence, &issued, &found.examine) == Verdict::Done =>
        {
            return None;
        }
        Search::One(found) => found.examine.content.to_string(),
        Search::None(what) | Search::Several(what) => what.clone(),
    };
    Some(NodeError::NotDone(format!(
        "the disk carries {carries}; {}",
        said.unwrap_or("ceph-volume did not run")
    )))
}
