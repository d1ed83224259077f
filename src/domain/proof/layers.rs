//! Layers of device-mapper between a disk and the content of its OSD.

use crate::domain::inspection::{Evidence, Piece, PieceLocation, Proof};
use crate::domain::proof::finding::{DiskFinding, Layer};

/// Layers of device-mapper that an OSD is on; each one needs more tools than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layers {
    /// Nothing.
    None,
    /// Encryption (LUKS).
    Encryption,
    /// Volumes of LVM, which may be encrypted.
    Volumes,
}

impl Layers {
    /// Returns the layers of an OSD's data.
    pub fn of_proof(proof: &Proof) -> Self {
        match proof {
            Proof::Volume { .. } => Self::Volumes,
            Proof::Luks { .. } => Self::Encryption,
            Proof::BluestoreLabel { .. }
            | Proof::Partitions { .. }
            | Proof::Directory { .. }
            | Proof::Available { .. } => Self::None,
        }
    }

    /// Returns the layers of an OSD that is recreated or removed.
    pub fn of(evidence: &Evidence) -> Self {
        with_pieces(Self::of_proof(&evidence.proof), &evidence.auxiliary)
    }

    /// Returns the layers on a disk that was examined.
    pub fn found(examine: &DiskFinding) -> Self {
        let layer = match &examine.layer {
            Some(Layer::Physical(_)) => Self::Volumes,
            Some(Layer::Luks(_)) => Self::Encryption,
            None => Self::None,
        };
        let proven = examine.proof.as_ref().map_or(Self::None, Self::of_proof);
        with_pieces(layer.max(proven), &examine.auxiliary)
    }
}

fn with_pieces(data: Layers, pieces: &[Piece]) -> Layers {
    let of_piece = |piece: &Piece| match &piece.place {
        PieceLocation::Volume { .. } => Layers::Volumes,
        PieceLocation::Pvc { luks: Some(_), .. } => Layers::Encryption,
        PieceLocation::Pvc { luks: None, .. } | PieceLocation::Device(_) => Layers::None,
    };
    pieces.iter().map(of_piece).fold(data, Layers::max)
}
