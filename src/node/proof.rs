//! Compares what was read with what was recorded, and decides what a rebuild may do with a disk. Pure.

use std::collections::BTreeSet;
use std::fmt::Display;

use super::content::DiskFinding;
use super::legacy::Reread;
use crate::domain::guard::{Guard, passes};
use crate::domain::inspection::{Content, Evidence, NodeRequest, Piece, PieceLocation, Proof, RecordId};
use crate::domain::osd::{DeviceIdentity, OsdFsid, OsdId, Role};

/// What a rebuild may do with the disk it found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It carries the new OSD, finished: nothing to do.
    Done,
    /// It carries the recorded OSD, proven.
    WipeOld,
    /// Our tombstone, an unfinished store of a claim, or nothing where there was one: what was there is gone already.
    WipeOurs,
    /// A store of a claim under another id, which ceph-volume took by mistake: once that id is purged, it is ours to wipe.
    WipeMisplaced(OsdId),
    /// It was found free and is free: there is nothing to lose.
    TakeAvailable,
    /// Anything else, in a sentence.
    Refuse(String),
}

/// Decides by the disk's content.
pub(crate) fn verdict(
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
                    "the disk carries the new OSD {osd_fsid}, finished but without what its activation needs"
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
        // The record may be an earlier one of the same OSD, whose ledger was lost: the old fsid names the OSD for good.
        Content::Tombstone { cluster, osd, old, record: _ }
            if *cluster == request.cluster && *osd == request.osd && *old == request.old =>
        {
            Verdict::WipeOurs
        }
        // An agent of this record came as far as `osd new`, so the old data is gone. Then somebody else's was here, and was zapped.
        Content::Blank if !issued.is_empty() => Verdict::WipeOurs,
        Content::Tombstone { .. } | Content::Blank | Content::Other { .. } | Content::NotFound { .. } => {
            refuse(examine, request)
        }
    }
}

/// An encrypted OSD whose slot is destroyed: `osd destroy` and `osd purge` take its key out of the mons' store (16.2.15), so nobody
/// can read it any more, and it is made anew. `status` as in `slot_may_be_taken`.
pub(crate) fn unless_unreadable(verdict: Verdict, request: &NodeRequest, status: Option<&str>) -> Verdict {
    let is_unreadable = request.target.encrypted && status == Some("destroyed");
    if verdict == Verdict::Done && is_unreadable { Verdict::WipeOurs } else { verdict }
}

/// A disk that was free when it was chosen. Our own tombstone for this OSD is what a rebuild that was cut short leaves.
fn available(
    request: &NodeRequest,
    tombstone: Option<&(OsdId, OsdFsid, RecordId)>,
    examine: &DiskFinding,
) -> Verdict {
    let stone = match &examine.content {
        Content::Tombstone { cluster, osd, old, record } if *cluster == request.cluster => {
            Some((*osd, *old, record.clone()))
        }
        Content::Tombstone { .. }
        | Content::Blank
        | Content::Bluestore { .. }
        | Content::Osd { .. }
        | Content::Other { .. }
        | Content::NotFound { .. } => None,
    };
    if stone.as_ref().is_some_and(|(osd, old, _)| (*osd, *old) == (request.osd, request.old)) {
        return Verdict::WipeOurs;
    }
    let is_available = match &stone {
        Some(stone) => tombstone == Some(stone),
        None => examine.content == Content::Blank,
    };
    if passes(Guard::DiskAvailable, is_available) {
        return Verdict::TakeAvailable;
    }
    Verdict::Refuse(format!("expected a free disk, as it was when it was chosen; found {}", examine.content))
}

/// The slot must be destroyed, or, where a free disk becomes an OSD, its id may be nobody's. `status` as `osd tree` words
/// it; none where there is no such id.
pub(crate) fn slot_may_be_taken(request: &NodeRequest, status: Option<&str>) -> Result<(), String> {
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

/// The id that a store was made under by mistake must be gone: purged, it can have no daemon and no data.
pub(crate) fn misplaced_is_purged(verdict: &Verdict, is_there: impl Fn(OsdId) -> bool) -> Result<(), String> {
    match verdict {
        Verdict::WipeMisplaced(misplaced) if is_there(*misplaced) => Err(format!(
            "the disk carries {misplaced}, which was made on it by mistake: expected it purged, found its id in use"
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
        "expected OSD {} ({}), our tombstone for it, or a claimed store; found {}",
        request.old, request.osd, examine.content
    ))
}

/// The evidence must be of the OSD that the request names, and what was read must be the evidence.
pub(crate) fn old_is_proven(request: &NodeRequest, evidence: &Evidence, seen: &Proof) -> Result<(), String> {
    let Some((fsid, whoami, cluster)) = evidence.proof.names() else {
        return Err("expected a free disk, found an OSD".to_owned());
    };
    let mut differences = Differences::default();
    differences.note("OSD fsid of the evidence", &request.old, &fsid);
    differences.note("OSD id of the evidence", &request.osd, &whoami);
    differences.note("cluster of the evidence", &request.cluster, &cluster);
    differences.proofs(&evidence.proof, seen);
    differences.into_result()
}

/// The disk's traits must be the recorded ones.
pub(crate) fn same_device(recorded: &DeviceIdentity, seen: &DeviceIdentity) -> Result<(), String> {
    if recorded.is_same_as(seen) {
        return Ok(());
    }
    Err(format!("expected the disk {recorded:?}, found {seen:?}"))
}

/// The same of a disk whose content was read. One that nothing names (no serial number) is told by what it carries alone; a blank one
/// carries nothing, so it must be in the recorded place: else it is any blank disk of that size.
pub(crate) fn same_disk(
    recorded: &DeviceIdentity,
    seen: &DeviceIdentity,
    content: &Content,
) -> Result<(), String> {
    same_device(recorded, seen)?;
    let is_told = recorded.is_named() || *content != Content::Blank || recorded.is_in_place_of(seen);
    if passes(Guard::BlankByPlace, is_told) {
        return Ok(());
    }
    let place = |device: &DeviceIdentity| {
        device.by_path.first().cloned().unwrap_or_else(|| "an unknown place".to_owned())
    };
    Err(format!("a blank disk without serial number in {}, expected in {}", place(seen), place(recorded)))
}

/// Of the disks that fit a record by their traits (`same_disk`), the ones that it can mean: where several fit, what is on them decides,
/// and what carries something of ours goes before what is blank.
pub(crate) fn candidates<T>(
    mut fitting: Vec<T>,
    is_only: bool,
    content: impl Fn(&T) -> &Content,
    is_ours: impl Fn(&T) -> bool,
) -> Vec<T> {
    if is_only {
        return fitting;
    }
    fitting.retain(is_ours);
    if fitting.iter().any(|disk| *content(disk) != Content::Blank) {
        fitting.retain(|disk| *content(disk) != Content::Blank);
    }
    fitting
}

/// The part of a proof by partitions that can be read while the disk is held exclusively.
pub(crate) fn same_partitions(recorded: &Proof, seen: &Reread) -> Result<(), String> {
    let Proof::Partitions { parts, fs_uuid, osd_fsid, .. } = recorded else {
        return Err(format!("expected {}, found partitions", kind(recorded)));
    };
    let mut differences = Differences::default();
    differences.note("number of partitions", &parts.len(), &seen.entries.len());
    for (role, uuid) in parts {
        let found = seen.entries.iter().find(|entry| entry.part_uuid == *uuid);
        let found = found.map_or("none", |entry| entry.part_uuid.as_str());
        differences.note(&format!("partition for {role}"), uuid.as_str(), found);
        if matches!(role, Role::Block | Role::Db | Role::Wal) {
            let found = seen.labels.get(uuid).map_or_else(|| "none".to_owned(), OsdFsid::to_string);
            differences.note(&format!("OSD in the label of {role}"), &osd_fsid.to_string(), &found);
        }
    }
    let or_none = |uuid: &Option<String>| uuid.clone().unwrap_or_else(|| "none".to_owned());
    differences.note("file system", &or_none(fs_uuid), &or_none(&seen.fs_uuid));
    differences.into_result()
}

/// What a device carries on which a piece of the old OSD was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PieceSeen {
    /// The piece, by its own mark.
    Old,
    /// Nothing: it was cleared.
    Blank,
    /// Anything else, in words.
    Other(String),
    /// No device of the node is the recorded one.
    Missing,
}

impl Display for PieceSeen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Old => f.write_str("the old OSD"),
            Self::Blank => f.write_str("nothing"),
            Self::Other(what) => f.write_str(what),
            Self::Missing => f.write_str("no such device"),
        }
    }
}

/// Whether a recorded piece is to be cleared. While the old OSD is whole, one that is not as recorded stops everything; once its
/// data is gone, what others have put in its place since is theirs.
pub(crate) fn piece_is_to_be_cleared(
    piece: &Piece,
    verdict: &Verdict,
    seen: &PieceSeen,
) -> Result<bool, String> {
    match (seen, verdict) {
        (PieceSeen::Old, Verdict::WipeOld | Verdict::WipeOurs | Verdict::WipeMisplaced(_)) => Ok(true),
        (PieceSeen::Blank, Verdict::WipeOld | Verdict::WipeOurs | Verdict::WipeMisplaced(_))
        | (PieceSeen::Other(_) | PieceSeen::Missing, Verdict::WipeOurs | Verdict::WipeMisplaced(_)) => {
            Ok(false)
        }
        (_, _) => {
            Err(format!("its {} on {}: expected the old OSD, found {seen}", piece.role, place(&piece.place)))
        }
    }
}

/// Every piece that is there must be recorded: what is not would be left behind as nobody's.
pub(crate) fn pieces_are_recorded(recorded: &[Piece], seen: &[Piece]) -> Result<(), String> {
    let same = |a: &Piece, b: &Piece| match (&a.place, &b.place) {
        (PieceLocation::Device(recorded), PieceLocation::Device(seen)) => {
            a.role == b.role && recorded.is_same_as(seen)
        }
        (PieceLocation::Volume { uuid: recorded, .. }, PieceLocation::Volume { uuid: seen, .. }) => {
            a.role == b.role && recorded == seen
        }
        (PieceLocation::Device(_), PieceLocation::Volume { .. })
        | (PieceLocation::Volume { .. }, PieceLocation::Device(_)) => false,
    };
    match seen.iter().find(|seen| !recorded.iter().any(|recorded| same(recorded, seen))) {
        Some(other) => {
            Err(format!("its {} is on {}, which is not recorded", other.role, place(&other.place)))
        }
        None => Ok(()),
    }
}

fn place(place: &PieceLocation) -> String {
    match place {
        PieceLocation::Device(identity) => identity.stable_name(),
        PieceLocation::Volume { name, .. } => name.clone(),
    }
}

#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn note<T: PartialEq + Display + ?Sized>(&mut self, what: &str, expected: &T, found: &T) {
        if expected != found {
            self.0.push(format!("{what}: expected {expected}, found {found}"));
        }
    }

    fn proofs(&mut self, expected: &Proof, found: &Proof) {
        if let (Some(recorded), Some(seen)) = (expected.names(), found.names()) {
            self.note("OSD fsid on the disk", &recorded.0, &seen.0);
            self.note("OSD id on the disk", &recorded.1, &seen.1);
            self.note("cluster on the disk", &recorded.2, &seen.2);
        }
        let (recorded, seen) = (marks(expected), marks(found));
        if let (Proof::Volume { alone: true, name, .. }, Proof::Volume { alone: false, .. }) =
            (expected, found)
        {
            self.0.push(format!("{name} was alone in its volume group, and is not any more"));
        }
        let same_kind = expected.made().is_some() && expected.made() == found.made();
        if same_kind && recorded.len() == seen.len() {
            for ((what, recorded), (_, seen)) in recorded.iter().zip(&seen) {
                self.note(what, recorded.as_str(), seen.as_str());
            }
        } else {
            self.note("kind", &kind(expected), &kind(found));
        }
    }

    fn into_result(self) -> Result<(), String> {
        if passes(Guard::ProofNames, self.0.is_empty()) { Ok(()) } else { Err(self.0.join("; ")) }
    }
}

/// What a proof of its kind has besides the names; the kinds have different numbers of them.
fn marks(proof: &Proof) -> Vec<(String, String)> {
    let described = |what: &str, value: &str| (what.to_owned(), value.to_owned());
    match proof {
        Proof::BluestoreLabel { activatable, .. } => {
            vec![described("key in the label", &activatable.to_string())]
        }
        Proof::Partitions { parts, fs_uuid, .. } => {
            let parts = parts.iter().map(|(role, uuid)| (format!("partition for {role}"), uuid.clone()));
            let fs = described("file system", fs_uuid.as_deref().unwrap_or("none"));
            parts.chain([fs]).collect()
        }
        Proof::Volume { group, volume, luks, .. } => vec![
            described("volume group", group),
            described("volume", volume),
            described("LUKS header", luks.as_deref().unwrap_or("none")),
        ],
        Proof::Luks { header, .. } => vec![described("LUKS header", header)],
        Proof::Directory { path, .. } => vec![described("directory", path)],
        Proof::Available { .. } => Vec::new(),
    }
}

fn kind(proof: &Proof) -> String {
    proof.made().map_or_else(|| "a free disk".to_owned(), |made| made.to_string())
}

#[cfg(test)]
#[path = "proof_tests.rs"]
mod tests;
