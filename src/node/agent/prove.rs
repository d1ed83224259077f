//! What a rebuild or a wipe proves before it writes: once before anything is closed, and again while the disk
//! is open exclusively.

use crate::domain::inspection::{Evidence, NodeRequest, Proof};
use crate::domain::osd::{Mode, OsdFsid};
use crate::domain::proof::pieces::pieces_are_recorded;
use crate::domain::proof::verdict::{self, Verdict};
use crate::domain::proof::{Layers, proven, same_disk};
use crate::node::create::capability::CapabilityAnswer;
use crate::node::create::mons::{self, Slots};
use crate::node::disk::devices::Disk;
use crate::node::error::NodeError;
use crate::node::find::content;
use crate::node::find::search::{self, FoundDisk, Search};
use crate::node::host::Host;
use crate::node::legacy::files::Sharing;
use crate::node::legacy::partitions;
use crate::node::state::issued;
use crate::node::steps::Steps;
use crate::node::volumes::lvm_cache::LvmCache;
use crate::node::volumes::old::Moment;
use crate::node::volumes::removal::Shared;
use crate::node::volumes::{auxiliary, databases, stack, within};

/// Task and environment of a rebuild or a wipe.
pub(super) struct Order<'a> {
    pub(super) request: &'a NodeRequest,
    pub(super) evidence: &'a Evidence,
    pub(super) host: &'a Host,
    pub(super) steps: &'a Steps,
}

/// Returns the permission to wipe the disk; none if it carries the new OSD already.
pub(super) fn prove(
    order: &Order<'_>,
    found: &FoundDisk,
    asked: &CapabilityAnswer,
) -> Result<Option<Verdict>, NodeError> {
    let &Order { request, evidence, host, .. } = order;
    let Some(verdict) = permission(order, found, asked)? else { return Ok(None) };
    asked.can_rebuild(host, request, Layers::of(evidence))?;
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

/// Returns the permission to wipe the disk of an OSD that is removed: it carries that OSD, or its tombstone.
pub(super) fn prove_removed(
    order: &Order<'_>,
    found: &FoundDisk,
    asked: &CapabilityAnswer,
) -> Result<Verdict, NodeError> {
    let &Order { request, evidence, host, .. } = order;
    let verdict = match permission(order, found, asked)? {
        Some(verdict @ (Verdict::WipeOld | Verdict::WipeOurs)) => verdict,
        // A removal issues no fsid, and its OSD was on the disk.
        Some(Verdict::Done | Verdict::WipeMisplaced(_) | Verdict::TakeAvailable | Verdict::Refuse(_))
        | None => {
            let (disk, content) = (found.disk.described(), &found.examine.content);
            return Err(NodeError::Refused(format!("{disk}: expected the removed OSD, found {content}")));
        }
    };
    asked.has_tools(host, request, Layers::of(evidence))?;
    if let Ok(slots) = &asked.slots {
        slot_may_be_taken(slots, request, &verdict)?; // asked again when the disk is open exclusively
    }
    Ok(verdict)
}

/// Returns the permission that the disk's content gives; none if it carries the new OSD already.
fn permission(
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
        if let Some(why) = stack::foreign_layer(host, &found.disk, &evidence.proof, request.data_pvc()) {
            return Err(NodeError::Refused(why));
        }
    }
    Ok(Some(verdict))
}

/// Reads again everything that allows the wipe, while the disk is open exclusively.
///
/// `unfinished`: the issued fsid that its physical volume was named after, whose volumes are closed now.
pub(super) async fn prove_again(
    order: &Order<'_>,
    disk: &Disk,
    verdict: &Verdict,
    unfinished: Option<OsdFsid>,
) -> Result<(), NodeError> {
    let &Order { request, evidence, host, .. } = order;
    // An agent that was frozen for an hour must not wipe an OSD that was re-registered meanwhile.
    slot_may_be_taken(&mons::slots(host).await?, request, verdict)?;
    same_disk::same_for(request, &evidence.device, &disk.identity).map_err(NodeError::Refused)?;
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
            same_disk::same_content_for(request, &evidence.device, &disk.identity, &now.content)
                .map_err(NodeError::Refused)?;
            let issued = issued::of(request, host)?;
            let verdict_of = |now| verdict::verdict(request, evidence, &issued, now);
            let is_same = match unfinished {
                Some(fsid) => now.about == Some(fsid) && issued.contains(&fsid),
                None => verdict::is_still(verdict, &verdict_of(&now), request),
            };
            if is_same && disk.holders.is_empty() && !disk.read_only {
                return Ok(());
            }
            // Most likely the mkfs of a killed ceph-volume has just ended; the next attempt decides again.
            Err(NodeError::NotDone(format!("the disk changed meanwhile: {}", now.content)))
        }
    }
}

/// Checks that a disk which was searched again is as it was proven.
pub(super) fn is_still_proven(
    order: &Order<'_>,
    search: &Search,
    verdict: &Verdict,
) -> Result<(), NodeError> {
    let &Order { request, evidence, host, .. } = order;
    let issued = issued::of(request, host)?;
    let found = match search {
        Search::One(found) if verdict::verdict(request, evidence, &issued, &found.examine) == *verdict => {
            return Ok(());
        }
        Search::One(found) => found.examine.content.to_string(),
        Search::None(what) | Search::Several(what) => what.clone(),
    };
    Err(NodeError::NotDone(format!("the disk changed meanwhile: {found}")))
}

pub(super) fn slot_may_be_taken(
    slots: &Slots,
    request: &NodeRequest,
    verdict: &Verdict,
) -> Result<(), NodeError> {
    let status = slots.get(&request.osd).map(String::as_str);
    verdict::slot_may_be_taken(request, status)
        .and_then(|()| verdict::misplaced_is_purged(verdict, |misplaced| slots.contains_key(&misplaced)))
        .map_err(NodeError::Refused)
}

/// Proves that there is room for the volumes of database and log.
///
/// This is the last moment in which the OSD is still whole.
pub(super) async fn prove_database(order: &Order<'_>) -> Result<(), NodeError> {
    let &Order { request, evidence, host, steps } = order;
    if let Some(db) = &request.db {
        steps.time("database", databases::prove(host, db, request.cluster)).await?;
    }
    auxiliary::prove(request, evidence).await
}
