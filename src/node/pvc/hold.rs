//! Parts of an OSD on PVCs of their own, during a rebuild: proven, held, wiped, encrypted.

use crate::domain::inspection::{Evidence, NodeRequest, PieceLocation};
use crate::domain::osd::Role;
use crate::domain::proof::pieces::part_is_to_be_cleared;
use crate::domain::proof::same_disk;
use crate::domain::proof::verdict::Verdict;
use crate::node::disk::devices::Disk;
use crate::node::disk::tombstone::Tombstone;
use crate::node::disk::wipe::ExclusiveDisk;
use crate::node::error::NodeError;
use crate::node::host::Host;
use crate::node::pvc::part::{self, Part};
use crate::node::state::issued;
use crate::node::volumes::luks;

/// A part that is proven and open exclusively.
#[derive(Debug)]
pub(crate) struct HeldPart<'a> {
    role: Role,
    pvc: &'a str,
    disk: Disk,
    exclusive: ExclusiveDisk,
    is_to_be_cleared: bool,
}

/// Proves that all devices for database and log may be used for the new OSD; changes nothing.
pub(crate) async fn prove<'a>(
    host: &Host,
    request: &'a NodeRequest,
    evidence: &Evidence,
    verdict: &Verdict,
) -> Result<Vec<Part<'a>>, NodeError> {
    all_are_requested(request, evidence).map_err(NodeError::Refused)?;
    let parts = part::all(host, request).await?;
    for part in &parts {
        part.is_to_be_cleared(host, request, evidence, verdict).await?;
    }
    Ok(parts)
}

/// Closes the mappings on the parts, opens the parts exclusively, and proves them again.
pub(crate) async fn hold<'a>(
    host: &Host,
    request: &NodeRequest,
    evidence: &Evidence,
    verdict: &Verdict,
    parts: Vec<Part<'a>>,
) -> Result<Vec<HeldPart<'a>>, NodeError> {
    let mut held = Vec::new();
    for part in parts {
        let is_open = !part.disk.holders.is_empty();
        let disk = if is_open { luks::close_all(host, &part.disk).await? } else { part.disk.clone() };
        let part = Part { disk, ..part };
        let exclusive = ExclusiveDisk::open(&part.disk).await?;
        // From here on nothing else can open the device exclusively: what is read now stays.
        let is_to_be_cleared = part.is_to_be_cleared(host, request, evidence, verdict).await?;
        let Part { role, pvc, disk } = part;
        held.push(HeldPart { role, pvc, disk, exclusive, is_to_be_cleared });
    }
    Ok(held)
}

/// Wipes the parts for the new OSD.
pub(crate) async fn wipe(
    host: &Host,
    request: &NodeRequest,
    parts: &[HeldPart<'_>],
) -> Result<(), NodeError> {
    for part in parts {
        part.wipe(host, request).await?;
    }
    Ok(())
}

/// Checks that the request has the PVC of each recorded part: otherwise the part would stay behind.
fn all_are_requested(request: &NodeRequest, evidence: &Evidence) -> Result<(), String> {
    let is_requested =
        |role: Role, pvc: &str| part::pvcs(request).any(|(other, name)| (other, name) == (role, pvc));
    let missing = evidence.auxiliary.iter().find_map(|piece| match &piece.place {
        PieceLocation::Pvc { name, .. } if !is_requested(piece.role, name) => Some((piece.role, name)),
        PieceLocation::Pvc { .. } | PieceLocation::Device(_) | PieceLocation::Volume { .. } => None,
    });
    match missing {
        Some((role, name)) => {
            Err(format!("its {role} is on PVC {name}, which the agent's pod does not have"))
        }
        None => Ok(()),
    }
}

impl Part<'_> {
    /// Returns whether the device is to be cleared; `Refused` if it may not be used.
    async fn is_to_be_cleared(
        &self,
        host: &Host,
        request: &NodeRequest,
        evidence: &Evidence,
        verdict: &Verdict,
    ) -> Result<bool, NodeError> {
        if let Some((device, _)) = part::recorded(evidence, self.role) {
            same_disk::same_for(request, device, &self.disk.identity).map_err(NodeError::Refused)?;
        }
        let carried = self.examine(host, request, &issued::of(request, host)?).await?;
        part_is_to_be_cleared(self.role, self.pvc, verdict, &carried.seen).map_err(NodeError::Refused)
    }
}

impl HeldPart<'_> {
    /// Writes the tombstone, then clears everything else by which the part is recognised.
    ///
    /// A blank device also gets the tombstone: a LUKS header that is written only partly has no sign of its
    /// own.
    async fn wipe(&self, host: &Host, request: &NodeRequest) -> Result<(), NodeError> {
        self.exclusive.write_tombstone(&Tombstone::of(request)).await?;
        if self.is_to_be_cleared {
            self.exclusive.clear(&self.disk, &host.sys_block, &host.dev).await?;
        }
        Ok(())
    }

    /// Writes the LUKS header for the new OSD over the tombstone.
    pub(crate) async fn write_header(&self, host: &Host, request: &NodeRequest) -> Result<(), NodeError> {
        luks::write_header(host, request, (self.pvc, self.role), &self.exclusive).await
    }
}

#[cfg(test)]
#[path = "hold_tests.rs"]
mod tests;
