//! The wipe of the disk of an OSD that is removed: the same steps and proofs as the first half of a rebuild,
//! but no OSD follows. The tombstone is replaced last, by zeros or by a mark.

use crate::domain::inspection::{Content, Evidence, NodeRequest, NodeTask, Proof};
use crate::domain::osd::{Layout, Mode, ObjectStore};
use crate::domain::removal::DiskAfter;
use crate::node::agent::clearing::{clear_disk, let_go, lock_volumes, remove_volume, settle};
use crate::node::agent::outcome::{Outcome, inspection};
use crate::node::agent::prove::{Order, prove_removed, slot_may_be_taken};
use crate::node::agent::recorded::{is_wiped, recorded};
use crate::node::agent::verify::{ended, not_found, verify};
use crate::node::create::capability::{self, CapabilityAnswer};
use crate::node::create::mons;
use crate::node::disk::mark::Mark;
use crate::node::error::NodeError;
use crate::node::find::search::{FoundDisk, Search};
use crate::node::host::Host;
use crate::node::legacy::files::Sharing;
use crate::node::steps::Steps;
use crate::node::volumes::removal::{self, Shared};

/// Wipes the recorded disk, and marks it if that is requested.
///
/// The steps: find, prove, hold, prove again, tombstone, clear, replace the tombstone, verify. If others need
/// the disk, only the OSD's volume is removed. A disk that an earlier attempt has finished is not written to.
pub(super) async fn wipe(request: &NodeRequest, host: &Host, steps: &Steps) -> Outcome {
    let (evidence, mark) = match requested(request) {
        Ok(requested) => requested,
        Err(error) => return Outcome::failed(error),
    };
    // No OSD follows, so the declared layout does not matter.
    let target = Layout { store: ObjectStore::bluestore(), mode: Mode::Raw, encrypted: false };
    let request = &NodeRequest { target, db: None, ..request.clone() };
    let order = &Order { request, evidence, host, steps };
    // Find the recorded disk by its traits and its content.
    let (search, asked) = tokio::join!(
        steps.time("find", recorded(request, evidence, host, Sharing::No)),
        steps.time("capability", capability::ask(host)),
    );
    let search = match search {
        Ok(search) => search,
        Err(error) => return Outcome::failed(error),
    };
    if let Some(shared) = Shared::of(evidence) {
        return volume_of(order, search, &asked, &shared).await;
    }
    match search {
        Search::One(found) => {
            let done = whole(order, &found, &asked, mark).await.map(|()| "it was wiped".to_owned());
            verify(order, &asked, done, |found| Ok(is_wiped(request, found))).await
        }
        Search::None(_) | Search::Several(_) => not_found(order, search, &asked),
    }
}

/// Returns the proof of the request, and the mark that the disk gets; fails if there is nothing to wipe here.
fn requested(request: &NodeRequest) -> Result<(&Evidence, Option<Mark>), NodeError> {
    let refused = |why: &str| Err(NodeError::Refused(why.to_owned()));
    let mark = match (request.task, request.after) {
        (NodeTask::Wipe, Some(DiskAfter::Wipe)) => None,
        (NodeTask::Wipe, Some(DiskAfter::Mark)) => Some(Mark::of(request)),
        (_, Some(DiskAfter::Leave)) => return refused("the disk is to keep its content, so it is not wiped"),
        (_, Some(DiskAfter::Wipe | DiskAfter::Mark) | None) => {
            return refused("the request does not say what becomes of the disk");
        }
    };
    if request.pvcs.is_some() || request.directory.is_some() || request.on_file {
        return refused("an OSD on a PersistentVolumeClaim, in a directory or on a file is not supported");
    }
    match &request.evidence {
        Some(Evidence { proof: Proof::Directory { .. } | Proof::Available { .. }, .. }) => {
            refused("the proof in the request is not that of an OSD on a disk")
        }
        Some(evidence) => Ok((evidence, mark)),
        None => refused("the request contains no proof"),
    }
}

/// Wipes a disk that is the OSD's alone.
async fn whole(
    order: &Order<'_>,
    found: &FoundDisk,
    asked: &CapabilityAnswer,
    mark: Option<Mark>,
) -> Result<(), NodeError> {
    let &Order { request, evidence, host, steps } = order;
    if is_wiped(request, &found.examine) {
        return Ok(());
    }
    let verdict = prove_removed(order, found, asked)?;
    // Only one agent changes volumes at a time.
    let _lock = lock_volumes(order)?;
    let disk = let_go(order, &found.disk, &verdict).await?;
    let (exclusive, _) = clear_disk(order, &disk, &verdict, None, Vec::new()).await?;
    steps.time("auxiliary", removal::auxiliary(host, request, evidence)).await?;
    #[cfg(feature = "failpoint")]
    crate::failpoint::pause_agent(&host.state, "blank");
    // Replace the tombstone: from here on nothing says whose the disk was, and nothing of the OSD is left.
    steps.time("finish", exclusive.finish(mark, disk.block_bytes(&host.sys_block))).await?;
    drop(exclusive);
    steps.time("settle", settle()).await;
    Ok(())
}

/// Removes only the OSD's volume, from a group that others need, and reports.
///
/// A mark does not apply to the disk: the volumes of others keep it from being used.
async fn volume_of(
    order: &Order<'_>,
    search: Search,
    asked: &CapabilityAnswer,
    shared: &Shared<'_>,
) -> Outcome {
    let &Order { request, evidence, host, steps } = order;
    let is_gone = async || steps.time("gone", removal::is_gone(request, shared)).await;
    let done = match (is_gone().await, &search) {
        (Err(error), _) => Err(error),
        (Ok(true), _) => Ok(()),
        (Ok(false), Search::One(found)) => remove(order, found, asked, shared).await,
        (Ok(false), Search::None(_) | Search::Several(_)) => return not_found(order, search, asked),
    };
    let done = match done {
        Ok(()) => is_gone().await,
        Err(error) => Err(error),
    };
    let error = match done {
        Ok(true) => None,
        Ok(false) => Some(NodeError::NotDone(format!("{shared} was removed, but it still exists"))),
        Err(error) => Some(error),
    };
    match (steps.time("read", recorded(request, evidence, host, Sharing::No)).await, error) {
        (Ok(search), error) => {
            let mut inspection = inspection(request, host, search, asked);
            if error.is_none() {
                let what = format!(
                    "the volumes of others in group {}, without that of {}",
                    shared.group(),
                    request.osd
                );
                inspection.content = Content::Other { what };
            }
            ended(order, inspection, error).await
        }
        (Err(_), Some(error)) | (Err(error), None) => Outcome::failed(error),
    }
}

/// Removes the OSD's volume and its other parts; a tag on the group is the tombstone, and goes last.
async fn remove(
    order: &Order<'_>,
    found: &FoundDisk,
    asked: &CapabilityAnswer,
    shared: &Shared<'_>,
) -> Result<(), NodeError> {
    let &Order { request, evidence, host, steps } = order;
    let verdict = prove_removed(order, found, asked)?;
    let _lock = lock_volumes(order)?;
    // An agent that was frozen for an hour must not remove the volume of an OSD that was re-registered
    // meanwhile.
    slot_may_be_taken(&mons::slots(host).await?, request, &verdict)?;
    remove_volume(order, &found.disk, &verdict, shared).await?;
    steps.time("auxiliary", removal::auxiliary(host, request, evidence)).await?;
    steps.time("finish", removal::unmark_shared(request, shared)).await
}

#[cfg(test)]
#[path = "wipe_tests.rs"]
mod tests;
