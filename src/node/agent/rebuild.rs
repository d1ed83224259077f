//! The rebuild: the new OSD in place of the recorded one, on the same disk. `rebuild` has all steps in their
//! order, the destructive ones among them. Only what the disk still needs is done.

use std::path::PathBuf;

use crate::domain::inspection::{Content, NodeRequest};
use crate::domain::osd::{Mode, OsdFsid, Role};
use crate::domain::proof::verdict::{self, Verdict};
use crate::node::agent::clearing::{clear_disk, let_go, lock_volumes, remove_volume, settle};
use crate::node::agent::outcome::Outcome;
use crate::node::agent::prove::{Order, prove, slot_may_be_taken};
use crate::node::agent::recorded::{evidence_of, recorded};
use crate::node::agent::verify::{not_found, verify};
use crate::node::create::capability;
use crate::node::create::ceph_volume::{self, Given};
use crate::node::create::mons;
use crate::node::disk::devices::Disk;
use crate::node::disk::file_disk::{self, Attached};
use crate::node::disk::wipe::ExclusiveDisk;
use crate::node::error::NodeError;
use crate::node::find::search::{FoundDisk, Search};
use crate::node::host::Host;
use crate::node::legacy::files::Sharing;
use crate::node::pvc::hold::{self, HeldPart};
use crate::node::state::issued;
use crate::node::steps::Steps;
use crate::node::volumes::removal::{self, Shared};
use crate::node::volumes::{luks, make};

/// Creates the new OSD on the recorded disk.
///
/// The steps: find, prove, hold, prove again, tombstone, clear, prepare, verify; on PVCs that are to be
/// encrypted, LUKS headers after the clearing. Up to the tombstone, a failure leaves the old OSD whole.
pub(super) async fn rebuild(request: &NodeRequest, host: &Host, steps: &Steps) -> Outcome {
    let evidence = match luks::check_key(host, request).and_then(|()| evidence_of(request)) {
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
        let parts = steps.time("parts", hold::prove(host, request, evidence, &verdict)).await?;
        // Only one agent changes volumes at a time: locked up to the new OSD.
        let _lock = lock_volumes(order)?;
        let (disk, unfinished) = release(order, &found, &verdict, &mut file).await?;
        if let Some(shared) = Shared::of(evidence).filter(|_| request.target.mode == Mode::Lvm) {
            // Others need the disk: only the OSD's volume goes, and a tag on its group is the tombstone.
            remove_volume(order, &disk, &verdict, &shared).await?;
        } else {
            let (exclusive, parts) = clear_disk(order, &disk, &verdict, unfinished, parts).await?;
            #[cfg(feature = "failpoint")]
            crate::failpoint::pause_agent(&host.state, "header");
            if let Some(pvc) = request.pvc_with_key() {
                steps.time("header", write_headers(order, pvc, &exclusive, &parts)).await?;
            }
            drop((exclusive, parts)); // osd-migrate's last write is done; mkfs opens the devices exclusively
            steps.time("settle", settle()).await;
        }
        // Prepare the new OSD.
        create(order, &disk).await.map(Some)
    };
    let done = done.await;
    let done = detached(order, file, done).await;
    // Verify that the disk carries the new OSD, finished.
    let done = done.map(|said| said.unwrap_or_else(|| "ceph-volume did not run".to_owned()));
    verify(order, &asked, done, |found| {
        let issued = issued::of(request, host)?;
        Ok(verdict::verdict(request, evidence, &issued, found) == Verdict::Done)
    })
    .await
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

/// Writes the LUKS headers of the new OSD: that of the data, then those of its parts on other PVCs.
async fn write_headers(
    order: &Order<'_>,
    pvc: &str,
    data: &ExclusiveDisk,
    parts: &[HeldPart<'_>],
) -> Result<(), NodeError> {
    let &Order { request, host, .. } = order;
    luks::write_header(host, request, (pvc, Role::Block), data).await?;
    for part in parts {
        part.write_header(host, request).await?;
    }
    Ok(())
}

/// Removes the old OSD's other volumes, then creates the new OSD. Returns what ceph-volume printed last.
async fn create(order: &Order<'_>, disk: &Disk) -> Result<String, NodeError> {
    let &Order { request, evidence, host, steps } = order;
    if !request.on_file {
        steps.time("auxiliary", removal::auxiliary(host, request, evidence)).await?;
    }
    match request.target.mode {
        Mode::Raw => match &request.pvcs {
            Some(pvcs) if request.target.encrypted => {
                luks::while_open(host, pvcs, async |nodes| encrypted(order, nodes).await).await
            }
            Some(pvcs) => {
                let nodes: Vec<_> = pvcs.iter().map(|(role, _)| (role, host.pvc_device(role))).collect();
                prepare(order, Given::Devices(&nodes)).await
            }
            None => prepare(order, Given::Devices(&[(Role::Block, disk.node.clone())])).await,
        },
        Mode::Lvm => {
            let volumes = steps.time("volumes", make::make(host, request, evidence, disk)).await?;
            let said = prepare(order, Given::Volumes(&volumes)).await?;
            steps.time("seal", make::seal(request, volumes.fsid)).await?;
            Ok(said)
        }
    }
}

/// Creates the new OSD in the mappings of LUKS headers.
async fn encrypted(order: &Order<'_>, mappings: &[(Role, PathBuf)]) -> Result<String, NodeError> {
    settle().await;
    #[cfg(feature = "failpoint")]
    crate::failpoint::pause_agent(&order.host.state, "mapping");
    prepare(order, Given::Devices(mappings)).await
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
