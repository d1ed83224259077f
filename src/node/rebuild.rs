//! The tasks. Each looks first, under the lock, and does only what is left to do.

use std::collections::BTreeSet;

use super::capability::{self, Asked};
use super::ceph_volume;
use super::command::{QUICK, run};
use super::content;
use super::devices::Disk;
use super::error::NodeError;
use super::file_disk::{self, Attached};
use super::filestore::Sharing;
use super::find::{self, Found, Search};
use super::mons::{self, Slots};
use super::proof::{self, Verdict};
use super::tombstone::Tombstone;
use super::wipe::ExclusiveDisk;
use super::{Host, Steps, claims, label};
use crate::domain::inspection::{Content, Evidence, Inspection, NodeRequest, Proof};
use crate::domain::osd::{Mode, ObjectStore, OsdFsid};

/// What an agent saw last, and why it did not do its task.
pub(crate) struct Outcome {
    pub(crate) inspection: Option<Inspection>,
    pub(crate) error: Option<NodeError>,
}

/// Read only: what carries the OSD, its proof, and what the image can do.
pub(crate) async fn inspect(request: &NodeRequest, host: &Host, steps: &Steps) -> Outcome {
    let search = async {
        match &request.evidence {
            Some(evidence) => recorded(request, evidence, host, Sharing::WithTheDaemon).await,
            None if request.on_file => {
                find::on_file(host, |found| found.look.about == Some(request.old)).await
            }
            None => find::carrier(host, request.old).await,
        }
    };
    let (search, asked) =
        tokio::join!(steps.time("look", search), steps.time("capability", capability::ask(host)));
    match search {
        Ok(search) => Outcome { inspection: Some(inspection(request, search, &asked)), error: None },
        Err(error) => Outcome { inspection: None, error: Some(error) },
    }
}

/// Makes the recorded disk carry the new OSD.
pub(crate) async fn rebuild(request: &NodeRequest, host: &Host, steps: &Steps) -> Outcome {
    let evidence = match evidence_of(request) {
        Ok(evidence) => evidence,
        Err(error) => return Outcome { inspection: None, error: Some(error) },
    };
    let (search, asked) = tokio::join!(
        steps.time("look", recorded(request, evidence, host, Sharing::No)),
        steps.time("capability", capability::ask(host)),
    );
    let found = match search {
        Ok(Search::One(found)) => found,
        Ok(search @ (Search::None(_) | Search::Several(_))) => {
            let inspection = inspection(request, search, &asked);
            let why = inspection.content.to_string();
            return Outcome { inspection: Some(inspection), error: Some(NodeError::Refused(why)) };
        }
        Err(error) => return Outcome { inspection: None, error: Some(error) },
    };
    let done = make(request, evidence, host, steps, &found, &asked).await;
    // From the start: numbers, partitions and even the disk's name may be others now.
    let last = steps.time("read", recorded(request, evidence, host, Sharing::No)).await;
    let error = match (done, &last) {
        (Err(error), _) => Some(error),
        (Ok(said), Ok(search)) => not_done(request, evidence, host, search, said.as_deref()),
        (Ok(_), Err(_)) => None, // told below
    };
    match (last, error) {
        (Ok(search), error) => Outcome { inspection: Some(inspection(request, search, &asked)), error },
        (Err(_), Some(error)) | (Err(error), None) => Outcome { inspection: None, error: Some(error) },
    }
}

/// The disk carries a finished OSD of ours whose slot was destroyed behind it: gives the slot back to it.
pub(crate) async fn give_back(request: &NodeRequest, host: &Host, steps: &Steps) -> Outcome {
    let mut outcome = inspect(request, host, steps).await;
    if outcome.error.is_none() {
        outcome.error = steps.time("give-back", hand_back(request, host)).await.err();
    }
    outcome
}

async fn hand_back(request: &NodeRequest, host: &Host) -> Result<(), NodeError> {
    let evidence = evidence_of(request)?;
    let claimed = claimed(request, host)?;
    match recorded(request, evidence, host, Sharing::No).await? {
        Search::One(found) => match proof::verdict(request, evidence, &claimed, &found.look) {
            Verdict::Done => {
                let fsid =
                    found.look.about.ok_or_else(|| NodeError::Refused("the disk names no OSD".to_owned()))?;
                let key = label::read_key(&found.disk.node).await?;
                mons::osd_new(host, fsid, request.osd, &key).await
            }
            Verdict::WipeOld | Verdict::WipeOurs | Verdict::TakeFree | Verdict::Refuse(_) => Err(
                NodeError::Refused(format!("expected a finished OSD of ours, found {}", found.look.content)),
            ),
        },
        Search::None(what) | Search::Several(what) => Err(NodeError::Refused(what)),
    }
}

/// Does what the disk still needs; what ceph-volume said, if it ran.
async fn make(
    request: &NodeRequest,
    evidence: &Evidence,
    host: &Host,
    steps: &Steps,
    found: &Found,
    asked: &Asked,
) -> Result<Option<String>, NodeError> {
    let verdict = proof::verdict(request, evidence, &claimed(request, host)?, &found.look);
    match &verdict {
        Verdict::Done if request.on_file => return file_disk::detach(host).await.map(|()| None),
        Verdict::Done => return Ok(None),
        Verdict::Refuse(why) => return Err(NodeError::Refused(format!("{}: {why}", found.disk.told()))),
        Verdict::WipeOld | Verdict::WipeOurs | Verdict::TakeFree => {}
    }
    asked.can_rebuild()?;
    if let Ok(slots) = &asked.slots {
        slot_may_be_taken(slots, request)?; // asked again when the disk is ours alone
    }
    if !request.on_file {
        return write(request, evidence, host, steps, &found.disk, &verdict).await.map(Some);
    }
    let attached = Attached::attach(host).await?;
    let said = write(request, evidence, host, steps, &attached.disk, &verdict).await;
    drop(attached);
    let detached = file_disk::detach(host).await;
    said.and_then(|said| detached.map(|()| Some(said)))
}

/// From the exclusive open to what ceph-volume said.
async fn write(
    request: &NodeRequest,
    evidence: &Evidence,
    host: &Host,
    steps: &Steps,
    disk: &Disk,
    verdict: &Verdict,
) -> Result<String, NodeError> {
    #[cfg(feature = "drill")]
    crate::drill::hold_agent(&host.state, "open");
    // Opened first: while it is open, no daemon can start on it, no path can lead elsewhere.
    let exclusive = steps.time("open", ExclusiveDisk::open(disk)).await?;
    steps.time("prove", prove(request, evidence, host, disk, verdict)).await?;
    #[cfg(feature = "drill")]
    crate::drill::hold_agent(&host.state, "wipe");
    let wipe = async {
        exclusive.bury(&Tombstone::of(request)).await?;
        exclusive.clear(disk, &host.sys_block, &host.dev).await
    };
    steps.time("wipe", wipe).await?;
    drop(exclusive); // the last write of ours is done; mkfs opens it exclusively itself
    steps.time("settle", settle()).await;
    let prepared = steps.time("prepare", ceph_volume::prepare(host, request, disk)).await?;
    Ok(format!("ceph-volume ended with {}: {}", prepared.status, prepared.last))
}

/// Lets the host's udevd see what is gone: ceph-volume asks lsblk, and lsblk asks udevd's memory. Where there is none, or it
/// is slow, prepare goes on all the same and says what is in its way.
async fn settle() {
    run("udevadm", &["settle", "--timeout=10"], None, QUICK).await.ok();
}

/// Reads everything again that allows the wipe, the disk being ours alone.
async fn prove(
    request: &NodeRequest,
    evidence: &Evidence,
    host: &Host,
    disk: &Disk,
    verdict: &Verdict,
) -> Result<(), NodeError> {
    // An agent that was frozen for an hour must not wipe an OSD that was given back meanwhile.
    slot_may_be_taken(&mons::slots(host).await?, request)?;
    proof::same_device(&evidence.device, &disk.identity).map_err(NodeError::Refused)?;
    match (verdict, &evidence.proof) {
        (Verdict::WipeOld, Proof::FilestorePartition { .. }) => {
            let (entries, fs_uuid) = content::partition_uuids(disk).await?;
            proof::same_partitions(&evidence.proof, &entries, fs_uuid.as_deref()).map_err(NodeError::Refused)
        }
        (
            Verdict::WipeOld | Verdict::WipeOurs | Verdict::TakeFree | Verdict::Done | Verdict::Refuse(_),
            _,
        ) => {
            // Its bytes, and what the kernel has put on it or found in it since.
            let disk = disk.again(&host.sys_block, &host.dev)?;
            let now = content::look(&disk, &host.scratch, Sharing::No).await?;
            let is_unused = disk.holders.is_empty() && !disk.read_only;
            if is_unused && proof::verdict(request, evidence, &claimed(request, host)?, &now) == *verdict {
                return Ok(());
            }
            // Most likely the mkfs of a killed ceph-volume has just ended; the next attempt decides anew.
            Err(NodeError::NotDone(format!("the disk changed meanwhile: {}", now.content)))
        }
    }
}

fn slot_may_be_taken(slots: &Slots, request: &NodeRequest) -> Result<(), NodeError> {
    let status = slots.get(&request.osd).map(String::as_str);
    proof::slot_may_be_taken(request, status).map_err(NodeError::Refused)
}

/// Why the disk does not show what ceph-volume should have made.
fn not_done(
    request: &NodeRequest,
    evidence: &Evidence,
    host: &Host,
    search: &Search,
    said: Option<&str>,
) -> Option<NodeError> {
    let claimed = match claimed(request, host) {
        Ok(claimed) => claimed,
        Err(error) => return Some(error),
    };
    let carries = match search {
        Search::One(found) if proof::verdict(request, evidence, &claimed, &found.look) == Verdict::Done => {
            return None;
        }
        Search::One(found) => found.look.content.to_string(),
        Search::None(what) | Search::Several(what) => what.clone(),
    };
    Some(NodeError::NotDone(format!(
        "the disk carries {carries}; {}",
        said.unwrap_or("ceph-volume did not run")
    )))
}

fn evidence_of(request: &NodeRequest) -> Result<&Evidence, NodeError> {
    let target = &request.target;
    if target.store != ObjectStore::bluestore() || target.mode != Mode::Raw || target.encrypted {
        return Err(NodeError::Refused(format!("`{target}` is not made yet, only bluestore raw")));
    }
    if request.db.is_some() {
        return Err(NodeError::Refused("a database on another device is not made yet".to_owned()));
    }
    request.evidence.as_ref().ok_or_else(|| NodeError::Refused("the request brings no proof".to_owned()))
}

fn claimed(request: &NodeRequest, host: &Host) -> Result<BTreeSet<OsdFsid>, NodeError> {
    claims::read(&claims::path(&host.state, request.osd, &request.record))
}

async fn recorded(
    request: &NodeRequest,
    evidence: &Evidence,
    host: &Host,
    sharing: Sharing,
) -> Result<Search, NodeError> {
    let claimed = claimed(request, host)?;
    if request.on_file {
        let is_it = |found: &Found| proof::same_device(&evidence.device, &found.disk.identity).is_ok();
        return find::on_file(host, is_it).await;
    }
    find::recorded(host, &evidence.device, sharing, |look| {
        match proof::verdict(request, evidence, &claimed, look) {
            Verdict::Done | Verdict::WipeOld | Verdict::WipeOurs | Verdict::TakeFree => true,
            Verdict::Refuse(_) => false,
        }
    })
    .await
}

fn inspection(request: &NodeRequest, search: Search, asked: &Asked) -> Inspection {
    let capability = asked.capability.clone();
    match search {
        Search::One(found) => {
            let Found { disk, look } = *found;
            let evidence =
                look.proof.filter(|_| look.about == Some(request.old)).map(|proof| evidence(disk, proof));
            Inspection { content: look.content, evidence, capability, volume: None }
        }
        Search::None(looked_at) => {
            Inspection { content: Content::NotFound { looked_at }, evidence: None, capability, volume: None }
        }
        Search::Several(disks) => Inspection {
            content: Content::Other { what: format!("several disks claim to be it: {disks}") },
            evidence: None,
            capability,
            volume: None,
        },
    }
}

fn evidence(disk: Disk, proof: Proof) -> Evidence {
    Evidence { usable_bytes: disk.identity.size_bytes, device: disk.identity, proof }
}
