//! What the device of a PVC for database or log carries. Reads only, and opens no mapping.

use std::collections::BTreeSet;

use crate::domain::inspection::{Evidence, NodeRequest, PieceLocation};
use crate::domain::osd::pvc::PerPvc;
use crate::domain::osd::{DeviceIdentity, OsdFsid, Role};
use crate::domain::proof::finding::LuksHeader;
use crate::domain::proof::pieces::PieceSeen;
use crate::node::disk::devices::Disk;
use crate::node::disk::label::{self, Label};
use crate::node::disk::marks::{self, Marks};
use crate::node::disk::tombstone::Tombstone;
use crate::node::error::NodeError;
use crate::node::host::Host;
use crate::node::pvc::device::device;
use crate::node::volumes::{crypt, luks, stack};

/// The PVC of an OSD for its database or its log, and the device of the PVC.
#[derive(Debug, Clone)]
pub(crate) struct Part<'a> {
    pub(super) role: Role,
    pub(super) pvc: &'a str,
    pub(super) disk: Disk,
}

/// Content of a device, as far as it concerns the OSD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Carried {
    pub(super) seen: PieceSeen,
    /// uuid of the LUKS header, if the OSD's part is encrypted
    pub(super) luks: Option<String>,
    /// The bytes on the device belong to another owner. What is unclear for another reason, such as a closed
    /// mapping, is not foreign.
    pub(super) is_foreign: bool,
}

impl Carried {
    /// Returns the content of a device without a LUKS header, as its bytes show it.
    fn plain(seen: PieceSeen) -> Self {
        Self { is_foreign: matches!(seen, PieceSeen::Other(_)), seen, luks: None }
    }

    /// Returns something that is on the device and may be gone at the next inspection.
    fn in_use(layer: String) -> Self {
        Self { seen: PieceSeen::Other(layer), luks: None, is_foreign: false }
    }
}

/// Returns a request's PVCs for database and log, with their roles.
pub(super) fn pvcs(request: &NodeRequest) -> impl Iterator<Item = (Role, &str)> {
    request.pvcs.iter().flat_map(PerPvc::others).map(|(role, pvc)| (role, pvc.as_str()))
}

/// Finds the devices of a request's PVCs for database and log.
pub(super) async fn all<'a>(host: &Host, request: &'a NodeRequest) -> Result<Vec<Part<'a>>, NodeError> {
    let mut parts = Vec::new();
    for (role, pvc) in pvcs(request) {
        parts.push(Part { role, pvc, disk: device(host, role, pvc).await? });
    }
    Ok(parts)
}

/// Returns the device and the LUKS header of the part that was recorded for a role, if there is one.
pub(super) fn recorded(evidence: &Evidence, role: Role) -> Option<(&DeviceIdentity, Option<&str>)> {
    evidence.auxiliary.iter().filter(|piece| piece.role == role).find_map(|piece| match &piece.place {
        PieceLocation::Pvc { device, luks, .. } => Some((device, luks.as_deref())),
        PieceLocation::Device(_) | PieceLocation::Volume { .. } => None,
    })
}

impl Part<'_> {
    /// Examines what the device carries.
    pub(super) async fn examine(
        &self,
        host: &Host,
        request: &NodeRequest,
        issued: &BTreeSet<OsdFsid>,
    ) -> Result<Carried, NodeError> {
        if !self.disk.partitions.is_empty() {
            return Ok(Carried::plain(PieceSeen::Other("partitions".to_owned())));
        }
        let found = match marks::of(&self.disk).await? {
            Marks::None => Carried::plain(PieceSeen::Blank),
            Marks::Tombstone(stone, _) => Carried::plain(entombed(stone, request)),
            Marks::Label => {
                let label = label::read(&self.disk.node).await?;
                Carried::plain(self.labelled(&label, request, issued))
            }
            marks @ (Marks::Signed(_) | Marks::LabelCopy(_) | Marks::Data { .. }) => match marks.luks() {
                Some(header) => self.encrypted(host, &header, request, issued).await?,
                None => Carried::plain(PieceSeen::Other(marks.described())),
            },
        };
        Ok(self.unless_in_use(host, request, found))
    }

    /// Returns what a label says about the device.
    fn labelled(&self, label: &Label, request: &NodeRequest, issued: &BTreeSet<OsdFsid>) -> PieceSeen {
        if (label.osd_fsid, label.role()) == (request.old, Some(self.role)) {
            PieceSeen::Old
        } else if issued.contains(&label.osd_fsid) {
            PieceSeen::Ours
        } else {
            PieceSeen::Other(label.described())
        }
    }

    /// Examines a device with a LUKS header.
    ///
    /// The header of the record and the recorded one identify the device by themselves: they are closed
    /// during a rebuild. Any other header must be open, so that the label within can be read.
    async fn encrypted(
        &self,
        host: &Host,
        header: &LuksHeader,
        request: &NodeRequest,
        issued: &BTreeSet<OsdFsid>,
    ) -> Result<Carried, NodeError> {
        let recorded = request.evidence.as_ref().and_then(|evidence| recorded(evidence, self.role)?.1);
        let seen = if recorded == Some(header.uuid.as_str()) {
            PieceSeen::Old
        } else if luks::is_of_record(&header.uuid, request, self.role) {
            PieceSeen::Ours
        } else {
            match crypt::label_within(host, &self.disk).await? {
                None => {
                    let is_foreign = crypt::owner_elsewhere(header, request, Some(self.pvc)).is_some();
                    let seen = PieceSeen::Other(crypt::not_open(header, request, Some(self.pvc)));
                    return Ok(Carried { seen, luks: Some(header.uuid.clone()), is_foreign });
                }
                Some(None) => PieceSeen::Other(format!("{header}, open, without a BlueStore label")),
                Some(Some(label)) => self.labelled(&label, request, issued),
            }
        };
        Ok(Carried { seen, luks: Some(header.uuid.clone()), is_foreign: false })
    }

    /// Returns the finding, or what is on the device that is neither the OSD's nor of an agent.
    fn unless_in_use(&self, host: &Host, request: &NodeRequest, found: Carried) -> Carried {
        if matches!(found.seen, PieceSeen::Other(_)) {
            return found;
        }
        let header = found.luks.as_deref();
        match stack::foreign_on_part(host, &self.disk, header, request.old, (self.pvc, self.role)) {
            Some(layer) => Carried::in_use(layer),
            None => found,
        }
    }
}

/// Returns what a tombstone says about the device.
///
/// The record may be an earlier one with a lost ledger, as on the data.
fn entombed(stone: Tombstone, request: &NodeRequest) -> PieceSeen {
    if (stone.cluster, stone.osd, stone.old) == (request.cluster, request.osd, request.old) {
        PieceSeen::Ours
    } else {
        PieceSeen::Other(stone.into_content().to_string())
    }
}

#[cfg(test)]
#[path = "part_tests.rs"]
mod tests;
