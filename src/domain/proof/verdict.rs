//! Compares the content of a disk with the record, and decides what a rebuild may do with the disk.

use std::collections::BTreeSet;

use crate::domain::guard::{Guard, passes};
use crate::domain::inspection::{Content, Evidence, NodeRequest, Proof, RecordId};
use crate::domain::osd::{OsdFsid, OsdId};
use crate::domain::proof::finding::DiskFinding;
use crate::domain::proof::proven::old_is_proven;

/// Permission of a rebuild for the disk that it found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The disk carries the new OSD, finished: nothing to do.
    Done,
    /// The disk carries the recorded OSD, proven.
    WipeOld,
    /// A tombstone, an unfinished store with an issued fsid, or a blank disk after one: the old data is gone.
    WipeOurs,
    /// The disk carries a store with an issued fsid under another id, which ceph-volume took by mistake.
    /// Once that id is purged, the store may be wiped.
    WipeMisplaced(OsdId),
    /// The disk was available when it was chosen and still is: there is nothing to lose.
    TakeAvailable,
    /// Anything else; the text says what.
    Refuse(String),
}

/// Decides what may be done with a disk by its content.
pub fn verdict(
    request: &NodeRequest,
    evidence: &Evidence,
    issued: &BTreeSet<OsdFsid>,
    examine: &DiskFinding,
) -> Verdict {
    match &examine.content {
        Content::Bluestore { osd_fsid, whoami, cluster, finished, activatable }
            if passes(Guard::ProofIssuedFsid, issued.contains(osd_fsid)) =>
        {
            let mine = whoami.is_none_or(|id| id == request.osd)
                && cluster.is_none_or(|fsid| fsid == request.cluster);
            let mine = passes(Guard::ProofIssuedToThis, mine);
            match (mine, finished) {
                (false, _) => match whoami {
                    Some(misplaced) if *misplaced != request.osd && *cluster == Some(request.cluster) => {
                        Verdict::WipeMisplaced(*misplaced)
                    }
                    Some(_) | None => refuse(examine, request),
                },
                (true, false) => Verdict::WipeOurs,
                (true, true) if *activatable && whoami.is_some() && cluster.is_some() => Verdict::Done,
                (true, true) => Verdict::Refuse(format!(
                    "the disk carries the finished new OSD {osd_fsid}, but values that its activation needs \
                     are missing"
                )),
            }
        }
        Content::Tombstone { .. }
        | Content::Blank
        | Content::Bluestore { .. }
        | Content::Osd { .. }
        | Content::Other { .. }
            if let Proof::Available { tombstone } = &evidence.proof =>
        {
            available(request, tombstone.as_ref(), examine)
        }
        // The old OSD lies elsewhere, in its directory; this device was chosen because it was blank.
        Content::Tombstone { .. }
        | Content::Blank
        | Content::Bluestore { .. }
        | Content::Osd { .. }
        | Content::Other { .. }
            if matches!(evidence.proof, Proof::Directory { .. }) =>
        {
            available(request, None, examine)
        }
        Content::Bluestore { .. } | Content::Osd { .. } => match &examine.proof {
            Some(seen) => match old_is_proven(request, evidence, seen) {
                Ok(()) => Verdict::WipeOld,
                Err(why) => Verdict::Refuse(why),
            },
            None => refuse(examine, request),
        },
        // The record may be an earlier one with a lost ledger; the old fsid identifies the OSD permanently.
        Content::Tombstone { cluster, osd, old, record: _ }
            if *cluster == request.cluster && *osd == request.osd && *old == request.old =>
        {
            Verdict::WipeOurs
        }
        // An agent of this record reached `osd new`, so the old data is gone; then the disk was zapped.
        Content::Blank if !issued.is_empty() => Verdict::WipeOurs,
        Content::Tombstone { .. } | Content::Blank | Content::Other { .. } | Content::NotFound { .. } => {
            refuse(examine, request)
        }
    }
}

/// Returns `WipeOurs` instead of `Done` for an encrypted OSD whose slot is destroyed, and any other verdict
/// unchanged.
///
/// `osd destroy` and `osd purge` remove the OSD's key from the mons' store (16.2.15). The OSD can no longer
/// be read, so it is recreated. The key of an OSD on a PVC is in a Secret. `status` as in
/// `slot_may_be_taken`.
pub fn unless_unreadable(verdict: Verdict, request: &NodeRequest, status: Option<&str>) -> Verdict {
    let is_key_gone = request.target.encrypted && request.pvcs.is_none();
    let is_unreadable = is_key_gone && status == Some("destroyed");
    if verdict == Verdict::Done && is_unreadable { Verdict::WipeOurs } else { verdict }
}

/// Returns whether what is read while the disk is held permits the wipe that was decided before.
///
/// A LUKS header of the record can't be opened while its device is held. It then counts as the record's
/// tombstone, also if a store under another id was found in it before.
pub fn is_still(before: &Verdict, now: &Verdict, request: &NodeRequest) -> bool {
    let is_closed = request.pvc_with_key().is_some() && *now == Verdict::WipeOurs;
    before == now || (is_closed && matches!(before, Verdict::WipeMisplaced(_)))
}

/// Decides about a disk that was available when it was chosen.
///
/// osd-migrate's own tombstone for this OSD is what an interrupted rebuild leaves. A tombstone of another
/// record does not say whose data is next to it: another client may have written it since.
fn available(
    request: &NodeRequest,
    tombstone: Option<&(OsdId, OsdFsid, RecordId)>,
    examine: &DiskFinding,
) -> Verdict {
    let stone = examine.content.tombstone_of(request.cluster);
    let is_alone = examine.signature.is_none();
    let is_for_osd = |(osd, old, record): &(OsdId, OsdFsid, RecordId)| {
        (*osd, *old) == (request.osd, request.old) && (is_alone || *record == request.record)
    };
    if stone.as_ref().is_some_and(is_for_osd) {
        return Verdict::WipeOurs;
    }
    let is_available = match &stone {
        Some(stone) => tombstone == Some(stone) && is_alone,
        None => examine.content == Content::Blank,
    };
    if passes(Guard::DiskAvailable, is_available) {
        return Verdict::TakeAvailable;
    }
    let signature = examine.signature.as_ref().map(|name| format!(", and a signature of {name}"));
    Verdict::Refuse(format!(
        "expected an available disk, as it was when it was chosen; found {}{}",
        examine.content,
        signature.unwrap_or_default()
    ))
}

/// Checks that the slot is destroyed.
///
/// If an available disk becomes an OSD, the id may also be absent.
///
/// `status` is the word of `osd tree`; none if the id does not exist.
pub fn slot_may_be_taken(request: &NodeRequest, status: Option<&str>) -> Result<(), String> {
    let is_new = matches!(&request.evidence, Some(Evidence { proof: Proof::Available { .. }, .. }));
    match status {
        Some("destroyed") => Ok(()),
        None if is_new => Ok(()),
        found => Err(format!(
            "the slot of {}: expected destroyed{}, found {}",
            request.osd,
            if is_new { " or absent" } else { "" },
            found.unwrap_or("absent")
        )),
    }
}

/// Checks that an id under which a store was created by mistake is purged: it then has no daemon or data.
pub fn misplaced_is_purged(verdict: &Verdict, is_there: impl Fn(OsdId) -> bool) -> Result<(), String> {
    match verdict {
        Verdict::WipeMisplaced(misplaced) if is_there(*misplaced) => Err(format!(
            "the disk carries {misplaced}, which ceph-volume created on it by mistake: expected its id \
             purged, found its id in use"
        )),
        Verdict::WipeMisplaced(_)
        | Verdict::Done
        | Verdict::WipeOld
        | Verdict::WipeOurs
        | Verdict::TakeAvailable
        | Verdict::Refuse(_) => Ok(()),
    }
}

fn refuse(examine: &DiskFinding, request: &NodeRequest) -> Verdict {
    Verdict::Refuse(format!(
        "expected OSD {} ({}), its tombstone, or an OSD with an issued fsid; found {}",
        request.old, request.osd, examine.content
    ))
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
