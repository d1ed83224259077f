//! Parts of an OSD on PVCs of their own, added to the finding on its data: those of the old OSD as pieces of
//! the evidence, those of the new OSD checked.

use crate::domain::inspection::{Content, NodeRequest, Piece, PieceLocation};
use crate::domain::osd::OsdFsid;
use crate::domain::proof::finding::DiskFinding;
use crate::domain::proof::pieces::PieceSeen;
use crate::node::disk::devices::Disk;
use crate::node::disk::label::{self, Label, label_on};
use crate::node::disk::marks::{self, Marks};
use crate::node::error::NodeError;
use crate::node::host::Host;
use crate::node::pvc::part::{self, Part};
use crate::node::state::issued;
use crate::node::volumes::luks;

/// Least bytes of a device for database or log, without a LUKS header.
///
/// Ceph has no limit of its own. BlueFS takes 1 MiB units, and puts what does not fit on the data device
/// without a word: 16.2.15 creates an OSD with a database of 64 KiB, of which nothing is used. Of a new OSD,
/// 14 MiB are on its database and 4 MiB on its log, if the device has at least 32 MiB (measured with
/// `bluefs-bdev-sizes`). BlueFS's own log grows to 16 MiB before it is compacted, and then exists twice
/// (`bluefs_log_compact_min_size`). A smaller device would be a database in name only.
const LEAST_BYTES: u64 = 64 << 20;

/// Completes the finding on the device of an OSD's data by the OSD's parts on other PVCs.
///
/// The result has no proof if one of them is unclear.
pub(crate) async fn complete(
    host: &Host,
    request: &NodeRequest,
    data: &Disk,
    examine: DiskFinding,
) -> Result<DiskFinding, NodeError> {
    if part::pvcs(request).next().is_none() {
        return Ok(examine);
    }
    let is_old = examine.proof.is_some() && examine.about == Some(request.old);
    let new = new_of(&examine.content, request);
    if !is_old && new.is_none() {
        return Ok(examine);
    }
    let parts = part::all(host, request).await?;
    let found = match new {
        Some(fsid) => are_of_new(host, request, &parts, fsid).await?.map(|()| Vec::new()),
        None => of_old(host, request, data, &parts).await?,
    };
    Ok(match found {
        Ok(auxiliary) => DiskFinding { auxiliary, ..examine },
        Err(why) => DiskFinding::other(format!("{}, but {why}", examine.content), examine.about),
    })
}

/// Returns the fsid of the finished OSD in place of the old one, if the data is that of such an OSD.
fn new_of(content: &Content, request: &NodeRequest) -> Option<OsdFsid> {
    match content {
        Content::Bluestore { osd_fsid, whoami, finished: true, .. }
            if *osd_fsid != request.old && *whoami == Some(request.osd) =>
        {
            Some(*osd_fsid)
        }
        Content::Bluestore { .. }
        | Content::Osd { .. }
        | Content::Tombstone { .. }
        | Content::Blank
        | Content::Other { .. }
        | Content::NotFound { .. } => None,
    }
}

/// Returns the parts of the old OSD; a sentence if a device is neither blank nor the OSD's, or is unfit.
async fn of_old(
    host: &Host,
    request: &NodeRequest,
    data: &Disk,
    parts: &[Part<'_>],
) -> Result<Result<Vec<Piece>, String>, NodeError> {
    let issued = issued::of(request, host)?;
    let mut pieces = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        let others = std::iter::once(data).chain(parts.iter().take(at).map(|part| &part.disk));
        if let Err(why) = part.is_fit(others, request) {
            return Ok(Err(why));
        }
        let carried = part.examine(host, request, &issued).await?;
        match carried.seen {
            PieceSeen::Blank => {}
            PieceSeen::Old => pieces.push(part.to_piece(carried.luks)),
            other @ (PieceSeen::Ours | PieceSeen::Other(_) | PieceSeen::Missing) => {
                return Ok(Err(format!("{} carries {other}", part.described())));
            }
        }
    }
    pieces.sort();
    Ok(Ok(pieces))
}

/// Checks that each part belongs to the new OSD; returns a sentence if one does not.
async fn are_of_new(
    host: &Host,
    request: &NodeRequest,
    parts: &[Part<'_>],
    fsid: OsdFsid,
) -> Result<Result<(), String>, NodeError> {
    for part in parts {
        if let Err(found) = part.is_of_new(host, request, fsid).await? {
            return Ok(Err(format!("{} carries {found}", part.described())));
        }
    }
    Ok(Ok(()))
}

impl Part<'_> {
    pub(super) fn described(&self) -> String {
        format!("PVC {} for its {}", self.pvc, self.role)
    }

    fn to_piece(&self, luks: Option<String>) -> Piece {
        let (name, device) = (self.pvc.to_owned(), self.disk.identity.clone());
        Piece { role: self.role, place: PieceLocation::Pvc { name, device, luks } }
    }

    /// Checks that the device can become the part of a new OSD, whatever is on it.
    pub(super) fn is_fit<'d>(
        &self,
        mut others: impl Iterator<Item = &'d Disk>,
        request: &NodeRequest,
    ) -> Result<(), String> {
        let (size, needed) = (self.disk.identity.size_bytes, least_bytes(request));
        if size < needed {
            let (size, needed) = (size >> 20, needed >> 20);
            return Err(format!("{} has {size} MiB, and at least {needed} MiB are needed", self.described()));
        }
        if self.disk.read_only {
            return Err(format!("{} is read-only", self.described()));
        }
        match others.find(|other| !other.is_file() && other.number == self.disk.number) {
            Some(other) => Err(format!(
                "{} has the device {}, which another PVC of the OSD also has",
                self.described(),
                other.described()
            )),
            None => Ok(()),
        }
    }

    /// Checks that the part belongs to the finished new OSD; returns what it carries if it does not.
    ///
    /// A mapping that is not open is opened for reading.
    async fn is_of_new(
        &self,
        host: &Host,
        request: &NodeRequest,
        fsid: OsdFsid,
    ) -> Result<Result<(), String>, NodeError> {
        let marks = marks::of(&self.disk).await?;
        let is_encrypted = request.pvc_with_key().is_some();
        let is_header = marks.luks().is_some_and(|found| luks::is_of_record(&found.uuid, request, self.role));
        let label = if is_encrypted && is_header {
            luks::read(host, request, &self.disk, self.pvc, async |node| label_on(node).await).await?
        } else if !is_encrypted && marks == Marks::Label {
            Some(label::read(&self.disk.node).await?)
        } else {
            return Ok(Err(marks.described()));
        };
        Ok(self.has_label_of(label.as_ref(), fsid))
    }

    /// Checks that a label is that of this part of an OSD.
    fn has_label_of(&self, label: Option<&Label>, fsid: OsdFsid) -> Result<(), String> {
        match label {
            Some(label) if (label.osd_fsid, label.role()) == (fsid, Some(self.role)) => Ok(()),
            Some(label) => Err(label.described()),
            None => Err("no BlueStore label".to_owned()),
        }
    }
}

/// Returns the least bytes of a device for database or log of the requested OSD.
fn least_bytes(request: &NodeRequest) -> u64 {
    LEAST_BYTES + request.pvc_with_key().map_or(0, |_| luks::HEADER_BYTES)
}

#[cfg(test)]
#[path = "inspect_tests.rs"]
mod tests;
