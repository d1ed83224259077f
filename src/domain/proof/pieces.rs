//! Decides which of an OSD's parts on other devices are cleared.

use std::fmt::Display;

use crate::domain::guard::{Guard, passes};
use crate::domain::inspection::{Evidence, Piece, PieceLocation};
use crate::domain::observation::OnPvcs;
use crate::domain::osd::Role;
use crate::domain::proof::verdict::Verdict;

/// Finding on a device on which a piece of the old OSD was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PieceSeen {
    /// The device carries the piece, by the piece's own mark.
    Old,
    /// The device is blank: the piece was cleared, or was never there.
    Blank,
    /// The device carries an unfinished part of the new OSD. Only devices of PVCs are examined for it.
    Ours,
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
            Self::Ours => f.write_str("an unfinished part of the new OSD"),
            Self::Other(what) => f.write_str(what),
            Self::Missing => f.write_str("no such device"),
        }
    }
}

/// Returns whether a recorded piece is to be cleared.
///
/// While the old OSD is whole, a piece that is not as recorded stops everything. Once the OSD's data is gone,
/// whatever was put in the piece's place since then belongs to its new owner and stays.
pub fn piece_is_to_be_cleared(piece: &Piece, verdict: &Verdict, seen: &PieceSeen) -> Result<bool, String> {
    match (seen, verdict) {
        (PieceSeen::Old, Verdict::WipeOld | Verdict::WipeOurs | Verdict::WipeMisplaced(_)) => Ok(true),
        (PieceSeen::Blank, Verdict::WipeOld | Verdict::WipeOurs | Verdict::WipeMisplaced(_))
        | (
            PieceSeen::Ours | PieceSeen::Other(_) | PieceSeen::Missing,
            Verdict::WipeOurs | Verdict::WipeMisplaced(_),
        ) => Ok(false),
        (_, _) => {
            Err(format!("its {} on {}: expected the old OSD, found {seen}", piece.role, place(&piece.place)))
        }
    }
}

/// Returns whether the device of a PVC for database or log is to be cleared before the new OSD gets it.
///
/// Unlike the device of a piece, this one is used again. So anything that is neither the old OSD's nor of an
/// interrupted attempt stops the rebuild.
pub fn part_is_to_be_cleared(
    role: Role,
    pvc: &str,
    verdict: &Verdict,
    seen: &PieceSeen,
) -> Result<bool, String> {
    let is_proven = match (seen, verdict) {
        (PieceSeen::Old, _) | (PieceSeen::Ours, Verdict::WipeOurs | Verdict::WipeMisplaced(_)) => true,
        (PieceSeen::Blank, _) => return Ok(false),
        (PieceSeen::Ours | PieceSeen::Other(_) | PieceSeen::Missing, _) => false,
    };
    if passes(Guard::PvcPartProven, is_proven) {
        return Ok(true);
    }
    Err(format!("PVC {pvc} for its {role}: expected the old OSD or a blank device, found {seen}"))
}

/// Checks that the parts that an OSD has on PVCs by its Deployment were found there.
///
/// A part that was not found is on a device that nobody knows: a rebuild would leave it behind.
pub fn parts_are_found(on: &OnPvcs, evidence: &Evidence) -> Result<(), String> {
    let is_found = |role: Role, pvc: &String| {
        let is_it = |place: &PieceLocation| matches!(place, PieceLocation::Pvc { name, .. } if name == pvc);
        evidence.auxiliary.iter().any(|piece| piece.role == role && is_it(&piece.place))
    };
    let parts = [(Role::Db, &on.db), (Role::Wal, &on.wal)];
    let named = parts.into_iter().filter_map(|(role, pvc)| Some((role, pvc.as_ref()?)));
    match named.into_iter().find(|(role, pvc)| !is_found(*role, pvc)) {
        Some((role, pvc)) if !passes(Guard::PartsFoundFirst, false) => Err(format!(
            "by its Deployment its {role} is on PVC {pvc}, but the device of this PVC is blank. See: kubectl -n \
             NAMESPACE describe pvc {pvc}"
        )),
        Some(_) | None => Ok(()),
    }
}

/// Checks that every existing piece is recorded: an unrecorded piece would be left behind without an owner.
pub fn pieces_are_recorded(recorded: &[Piece], seen: &[Piece]) -> Result<(), String> {
    let same = |a: &Piece, b: &Piece| match (&a.place, &b.place) {
        (PieceLocation::Device(recorded), PieceLocation::Device(seen)) => {
            a.role == b.role && recorded.is_same_as(seen)
        }
        (
            PieceLocation::Pvc { name: recorded_pvc, device: recorded, .. },
            PieceLocation::Pvc { name: pvc, device: seen, .. },
        ) => a.role == b.role && recorded_pvc == pvc && recorded.is_same_volume_as(seen),
        (PieceLocation::Volume { uuid: recorded, .. }, PieceLocation::Volume { uuid: seen, .. }) => {
            a.role == b.role && recorded == seen
        }
        (
            PieceLocation::Device(_) | PieceLocation::Volume { .. } | PieceLocation::Pvc { .. },
            PieceLocation::Device(_) | PieceLocation::Volume { .. } | PieceLocation::Pvc { .. },
        ) => false,
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
        PieceLocation::Pvc { name, .. } => format!("PVC {name}"),
    }
}

#[cfg(test)]
#[path = "pieces_tests.rs"]
mod tests;
