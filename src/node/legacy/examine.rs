//! The OSD on the partitions of a disk, whatever created it.

use crate::domain::proof::finding::DiskFinding;
use crate::node::disk::devices::Disk;
use crate::node::disk::table;
use crate::node::error::NodeError;
use crate::node::legacy::files::Reading;
use crate::node::legacy::partitions::disagreement;
use crate::node::legacy::{ceph_disk, rook};

/// Returns the OSD on the partitions of a disk, or none if they are no such OSD's.
pub(crate) async fn examine(disk: &Disk, reading: Reading<'_>) -> Result<Option<DiskFinding>, NodeError> {
    let entries = table::entries(&disk.node).await?;
    if let Some(what) = disagreement(disk, &entries) {
        return Ok(Some(DiskFinding::other(what, None)));
    }
    if let Some(examine) = ceph_disk::examine(disk, &entries, reading).await? {
        return Ok(Some(examine));
    }
    rook::examine(disk, &entries, reading).await
}
