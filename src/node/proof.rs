//! Compares the content of a disk with the record, and decides what a rebuild may do with the disk. Pure.

use std::collections::BTreeSet;
use std::fmt::Display;

use super::content::DiskFinding;
use super::legacy::Reread;
use crate::domain::guard::{Guard, passes};
use crate::domain::inspection::{Content, Evidence, NodeRequest, Piece, PieceLocation, Proof, RecordId};
use crate::domain::osd::{DeviceIdentity, OsdFsid, OsdId, Role};

/// Permission of a rebuild for the disk that it found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
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
/// be read, so it is recreated. `status` as in `slot_may_be_taken`.
pub(crate) fn unless_unreadable(verdict: Verdict, request: &NodeRequest, status: Option<&str>) -> Verdict {
    let is_unreadable = request.target.encrypted && status == Some("destroyed");
    if verdict == Verdict::Done && is_unreadable { Verdict::WipeOurs } else { verdict }
}

/// Decides about a disk that was available when it was chosen.
///
/// osd-migrate's own tombstone for this OSD is what an interrupted rebuild leaves.
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
    Verdict::Refuse(format!(
        "expected an available disk, as it was when it was chosen; found {}",
        examine.content
    ))
}

/// Checks that the slot is destroyed. If an available disk becomes an OSD, the id may also be absent.
///
/// `status` is the word of `osd tree`; none if the id does not exist.
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

/// Checks that an id under which a store was created by mistake is purged: it then has no daemon or data.
pub(crate) fn misplaced_is_purged(verdict: &Verdict, is_there: impl Fn(OsdId) -> bool) -> Result<(), String> {
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

/// Checks that the evidence is of the OSD that the request names, and that the disk's content equals it.
pub(crate) fn old_is_proven(request: &NodeRequest, evidence: &Evidence, seen: &Proof) -> Result<(), String> {
    let Some((fsid, whoami, cluster)) = evidence.proof.names() else {
        return Err("expected an available disk, found an OSD".to_owned());
    };
    let mut differences = Differences::default();
    differences.note("OSD fsid of the evidence", &request.old, &fsid);
    differences.note("OSD id of the evidence", &request.osd, &whoami);
    differences.note("cluster of the evidence", &request.cluster, &cluster);
    differences.proofs(&evidence.proof, seen);
    differences.into_result()
}

/// Checks that the disk's traits are the recorded ones.
pub(crate) fn same_device(recorded: &DeviceIdentity, seen: &DeviceIdentity) -> Result<(), String> {
    if recorded.is_same_as(seen) {
        return Ok(());
    }
    Err(format!("expected the disk {recorded:?}, found {seen:?}"))
}

/// Checks the traits of a disk whose content was read, and the place of a blank disk that nothing names.
///
/// A disk that nothing names (no serial number) is identified by its content alone. A blank disk has no
/// content, so it must be in the recorded place: otherwise it could be any blank disk of that size.
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
    Err(format!("a blank disk without a serial number at {}, expected at {}", place(seen), place(recorded)))
}

/// Selects the disks that a record can mean from those that fit it by their traits (`same_disk`).
///
/// If several fit, their content decides: a disk that carries something of osd-migrate's or the OSD's takes
/// precedence over a blank disk.
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

/// Compares the part of a proof by partitions that can be read while the disk is open exclusively.
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

/// Finding on a device on which a piece of the old OSD was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PieceSeen {
    /// The device carries the piece, by the piece's own mark.
    Old,
    /// The device is blank: the piece was cleared.
    Blank,
    /// The device carries anything else; the text says what.
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

/// Returns whether a recorded piece is to be cleared.
///
/// While the old OSD is whole, a piece that is not as recorded stops everything. Once the OSD's data is gone,
/// whatever was put in the piece's place since then belongs to its new owner and stays.
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

/// Checks that every existing piece is recorded: an unrecorded piece would be left behind without an owner.
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
            self.0.push(format!(
                "{name} was alone in its volume group, but its volume group has other volumes now"
            ));
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

/// Returns the marks of a proof in addition to the names; the kinds have different numbers of marks.
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
    proof.made().map_or_else(|| "an available disk".to_owned(), |made| made.to_string())
}

#[cfg(test)]
#[path = "proof_tests.rs"]
mod tests;
