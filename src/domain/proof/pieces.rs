//! Decides which of an OSD's parts on other devices are cleared.

use std::fmt::Display;

use crate::domain::inspection::{Piece, PieceLocation};
use crate::domain::proof::verdict::Verdict;

/// Finding on a device on which a piece of the old OSD was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PieceSeen {
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
pub fn piece_is_to_be_cleared(piece: &Piece, verdict: &Verdict, seen: &PieceSeen) -> Result<bool, String> {
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
pub fn pieces_are_recorded(recorded: &[Piece], seen: &[Piece]) -> Result<(), String> {
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

#[cfg(test)]
#[path = "pieces_tests.rs"]
mod tests;
