//! PVCs that are to become an OSD, at their first inspection: only blank devices may be used.

use crate::domain::inspection::{Content, Evidence, NodeRequest, Proof};
use crate::domain::proof::finding::DiskFinding;
use crate::domain::proof::pieces::PieceSeen;
use crate::node::disk::devices::{Disk, MIN_BYTES};
use crate::node::error::NodeError;
use crate::node::host::Host;
use crate::node::pvc::part::{self, Part};
use crate::node::state::issued;
use crate::node::volumes::luks;

/// Returns the evidence that the devices of a request's PVCs are blank, or a sentence about what is on them.
///
/// A tombstone of this cluster on the data is what an attempt left that was given up: there is nothing to
/// lose, either, unless there is a signature next to it.
pub(crate) async fn available(
    host: &Host,
    request: &NodeRequest,
    data: &Disk,
    examine: &DiskFinding,
) -> Result<Result<Evidence, String>, NodeError> {
    let parts = part::all(host, request).await?;
    judged(host, request, (data, examine), &parts).await
}

async fn judged(
    host: &Host,
    request: &NodeRequest,
    (data, examine): (&Disk, &DiskFinding),
    parts: &[Part<'_>],
) -> Result<Result<Evidence, String>, NodeError> {
    let content = &examine.content;
    if let Some(name) = &examine.signature {
        return Ok(Err(format!("{content}, and a signature of {name}")));
    }
    let tombstone = match content {
        Content::Blank => None,
        Content::Tombstone { cluster, osd, old, record } if *cluster == request.cluster => {
            Some((*osd, *old, record.clone()))
        }
        Content::Tombstone { .. }
        | Content::Bluestore { .. }
        | Content::Osd { .. }
        | Content::Other { .. }
        | Content::NotFound { .. } => return Ok(Err(content.to_string())),
    };
    if let Some(why) = unfit(data) {
        return Ok(Err(why));
    }
    let issued = issued::of(request, host)?;
    for (at, part) in parts.iter().enumerate() {
        let others = std::iter::once(data).chain(parts.iter().take(at).map(|part| &part.disk));
        if let Err(why) = part.is_fit(others, request) {
            return Ok(Err(why));
        }
        let seen = part.examine(host, request, &issued).await?.seen;
        if seen != PieceSeen::Blank {
            return Ok(Err(format!("{} carries {seen}", part.described())));
        }
    }
    let header = request.pvc_with_key().map_or(0, |_| luks::HEADER_BYTES);
    Ok(Ok(Evidence {
        usable_bytes: data.identity.size_bytes.saturating_sub(header),
        device: data.identity.clone(),
        proof: Proof::Available { tombstone },
        auxiliary: Vec::new(),
    }))
}

/// Returns why a blank device can't become an OSD, as an inventory judges a disk.
fn unfit(disk: &Disk) -> Option<String> {
    if disk.read_only {
        return Some("a read-only device".to_owned());
    }
    if !disk.holders.is_empty() {
        return Some(format!("a device in use by {}", disk.holders.join(", ")));
    }
    if !disk.partitions.is_empty() {
        return Some("a device with partitions".to_owned());
    }
    if disk.identity.size_bytes < MIN_BYTES {
        return Some(format!("a device of {} MiB, too small for an OSD", disk.identity.size_bytes >> 20));
    }
    let is_found_again = disk.identity.is_named() || !disk.identity.by_path.is_empty();
    (!is_found_again).then(|| "a device without a serial number and without a stable path".to_owned())
}

#[cfg(test)]
#[path = "available_tests.rs"]
mod tests;
