//! The disk of an OSD that is recorded, found again.

use std::collections::BTreeSet;

use crate::domain::inspection::{Content, Evidence, NodeRequest};
use crate::domain::osd::{Mode, ObjectStore, OsdFsid};
use crate::domain::proof::finding::DiskFinding;
use crate::domain::proof::same_disk;
use crate::domain::proof::verdict::{self, Verdict};
use crate::domain::removal::DiskAfter;
use crate::node::disk::mark::Mark;
use crate::node::error::NodeError;
use crate::node::find::on_pvc;
use crate::node::find::search::{self, FoundDisk, Search};
use crate::node::host::Host;
use crate::node::legacy::files::Sharing;
use crate::node::legacy::pieces;
use crate::node::state::issued;
use crate::node::volumes::seen;

/// Returns the proof of the request, if an OSD of the requested kind is created here at all.
pub(super) fn evidence_of(request: &NodeRequest) -> Result<&Evidence, NodeError> {
    let target = &request.target;
    let is_created = match target.mode {
        Mode::Raw => (!target.encrypted || request.pvcs.is_some()) && request.db.is_none(),
        Mode::Lvm => !request.on_file,
    };
    if target.store != ObjectStore::bluestore() || !is_created {
        let with = if request.db.is_some() { " with a database on another device" } else { "" };
        let on = if request.on_file { " on a file" } else { "" };
        return Err(NodeError::Refused(format!(
            "`{target}`{with}{on} is not supported, only bluestore raw or lvm"
        )));
    }
    request.evidence.as_ref().ok_or_else(|| NodeError::Refused("the request contains no proof".to_owned()))
}

/// Finds the recorded disk, or the one that osd-migrate has created in its place.
pub(super) async fn recorded(
    request: &NodeRequest,
    evidence: &Evidence,
    host: &Host,
    sharing: Sharing,
) -> Result<Search, NodeError> {
    let issued = issued::of(request, host)?;
    if request.on_file {
        let is_it =
            |found: &FoundDisk| same_disk::same_device(&evidence.device, &found.disk.identity).is_ok();
        return search::on_file(host, is_it).await;
    }
    if let Some(pvc) = request.data_pvc() {
        return on_pvc::recorded(host, request, pvc, evidence, sharing).await;
    }
    let mut search = search::recorded(host, &evidence.device, request, sharing, |examine| {
        match verdict::verdict(request, evidence, &issued, examine) {
            Verdict::Done
            | Verdict::WipeOld
            | Verdict::WipeOurs
            | Verdict::WipeMisplaced(_)
            | Verdict::TakeAvailable => true,
            Verdict::Refuse(_) => {
                is_wiped(request, examine) || volumes_of(request, &issued, examine).is_some()
            }
        }
    })
    .await?;
    if let Search::One(found) = &mut search
        && let Some(fsid) = volumes_of(request, &issued, &found.examine)
    {
        (found.examine, found.volume) = seen::examine(request, fsid).await?;
    }
    add_pieces(request, host, &mut search).await?;
    Ok(search)
}

/// Returns whether a disk is as the wipe of its removed OSD leaves it: blank, or with the mark of that OSD.
///
/// A blank disk has nothing to lose. Nothing is written to either of them.
pub(super) fn is_wiped(request: &NodeRequest, examine: &DiskFinding) -> bool {
    match (request.after, &examine.content) {
        (Some(DiskAfter::Wipe), Content::Blank) => true,
        (Some(DiskAfter::Mark), Content::Other { what }) => *what == Mark::of(request).described(),
        (Some(DiskAfter::Wipe | DiskAfter::Mark | DiskAfter::Leave) | None, _) => false,
    }
}

/// Returns the issued fsid that a physical volume is named after, if OSDs of this kind are created on
/// volumes.
fn volumes_of(request: &NodeRequest, issued: &BTreeSet<OsdFsid>, examine: &DiskFinding) -> Option<OsdFsid> {
    let is_volume = request.target.mode == Mode::Lvm && matches!(examine.content, Content::Other { .. });
    examine.about.filter(|fsid| is_volume && issued.contains(fsid))
}

/// Adds the parts of the old OSD on other devices to its finding.
pub(super) async fn add_pieces(
    request: &NodeRequest,
    host: &Host,
    search: &mut Search,
) -> Result<(), NodeError> {
    if let Search::One(found) = search
        && found.examine.about == Some(request.old)
    {
        found.examine = pieces::complete(host, &found.disk, found.examine.clone()).await?;
    }
    Ok(())
}
