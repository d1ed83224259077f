//! The only writes to a disk by osd-migrate itself: the tombstone, then zeros over everything by which a disk
//! is recognised. A LUKS header follows for an encrypted OSD on a PVC, and zeros or a mark in place of the
//! tombstone for an OSD that is removed.

use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, fcntl_lock, flock};
use rustix::io::Errno;

use crate::node::disk::devices::{self, Disk, SECTOR_BYTES};
use crate::node::disk::label::PLACES;
use crate::node::disk::mark::{Mark, Write};
use crate::node::disk::tombstone::{SECTOR, Tombstone};
use crate::node::error::NodeError;
use crate::node::tools::command::{QUICK, blocking, run};

/// Bytes that are zeroed at the disk's start.
///
/// libblkid reads no further than the first MiB for any signature, LVM's metadata takes the same, and
/// `ceph-volume zap` clears 10 MiB. This value is generous and still takes less than a second. Zeroing more
/// is of no use: a new mkfs never reads what it has not written.
const HEAD: u64 = 16 << 20;
/// Bytes that are zeroed at the disk's end and at both ends of each partition: backup GPT (33 sectors), md,
/// ZFS and RAID labels.
const TAIL: u64 = 4 << 20;
/// Bytes of a label copy.
const LABEL: u64 = 4096;
/// Size of one write of zeros.
const PIECE: usize = 1 << 20;
/// Number of tries to open a disk that is in use.
///
/// A mount goes some seconds after its pod. The mkfs of a killed ceph-volume ends by itself. udevd probes for
/// milliseconds. A unit test of a disk that stays in use does not wait for ten seconds.
const TRIES: u32 = if cfg!(test) { 3 } else { 100 };
const BETWEEN_TRIES: Duration = Duration::from_millis(100);
/// Limit of one write task: a disk that takes longer than this for some ten MiB is broken.
const WRITE_LIMIT: Duration = Duration::from_secs(300);

/// A whole disk that this agent alone has open.
///
/// There is no mount, device-mapper, md, running OSD or mkfs on it.
///
/// BlueStore (16.2.15, measured) opens its device with `O_EXCL`. The kernel keeps that flag for the device
/// and not for the path, so it counts across containers. So does a mount of the disk or of a partition.
/// BlueStore's record lock (OFD) belongs to the inode of one /dev and counts only within that one. It is
/// tried as well, for releases that had nothing else.
#[derive(Debug, Clone)]
pub(crate) struct ExclusiveDisk {
    file: Arc<File>,
    node: PathBuf,
    size: u64,
}

impl ExclusiveDisk {
    /// Opens the disk exclusively; returns `Refused` if it is in use.
    pub(crate) async fn open(disk: &Disk) -> Result<Self, NodeError> {
        let in_use = |by: &str| NodeError::Refused(format!("{} is in use: {by}", disk.described()));
        if disk.read_only {
            return Err(NodeError::Refused(format!("{} is read-only", disk.described())));
        }
        if !disk.holders.is_empty() {
            return Err(in_use(&format!("{} is on it", disk.holders.join(", "))));
        }
        let node = disk.node.clone();
        let file = {
            let node = node.clone();
            blocking("open", disk.described(), QUICK, move || open_patiently(&node)).await?
        };
        let file =
            file.ok_or_else(|| in_use("mounted, or open exclusively (its OSD may still be running)"))?;
        let rdev = file.metadata().map_err(NodeError::io("stat", &node))?.rdev();
        if (rustix::fs::major(rdev), rustix::fs::minor(rdev)) != disk.number {
            return Err(NodeError::Refused(format!("{} became another device", node.display())));
        }
        Ok(Self { file: Arc::new(file), node, size: disk.identity.size_bytes })
    }

    /// Writes the tombstone; when the function returns, the tombstone is on the disk.
    pub(crate) async fn write_tombstone(&self, stone: &Tombstone) -> Result<(), NodeError> {
        let sector = stone.to_sector().ok_or_else(|| {
            NodeError::Refused(format!("the name of record {} is too long for a tombstone", stone.record))
        })?;
        let (file, node) = (Arc::clone(&self.file), self.node.clone());
        blocking("write tombstone", node.display().to_string(), WRITE_LIMIT, move || {
            write_tombstone(&file, &node, &sector)
        })
        .await
    }

    /// Zeroes the ranges of `plan`, then removes the partitions from the kernel.
    pub(crate) async fn clear(&self, disk: &Disk, sys_block: &Path, dev: &Path) -> Result<(), NodeError> {
        let parts: Vec<Range<u64>> = disk
            .partitions
            .iter()
            .map(|part| {
                let start = part.start.saturating_mul(SECTOR_BYTES);
                start..start.saturating_add(part.sectors.saturating_mul(SECTOR_BYTES))
            })
            .collect();
        let ranges = plan(self.size, &parts);
        let (file, node) = (Arc::clone(&self.file), self.node.clone());
        blocking("wipe", node.display().to_string(), WRITE_LIMIT, move || zero(&file, &node, &ranges))
            .await?;
        self.forget_partitions(disk, sys_block, dev).await
    }

    /// Replaces the tombstone of a disk that is cleared by the mark, or by zeros if none is requested.
    ///
    /// The disk shows the tombstone until the last write. `block`: size of a logical block of the disk.
    pub(crate) async fn finish(&self, mark: Option<Mark>, block: u64) -> Result<(), NodeError> {
        let writes = match mark {
            None => vec![Write::blank()],
            Some(mark) => Vec::from(mark.writes(self.size, block).ok_or_else(|| {
                let (node, size) = (self.node.display(), self.size);
                NodeError::NotDone(format!("{node} with {size} bytes is too small for a partition table"))
            })?),
        };
        let (file, node) = (Arc::clone(&self.file), self.node.clone());
        blocking("end the wipe of", node.display().to_string(), WRITE_LIMIT, move || {
            writes.iter().try_for_each(|write| write.done(&file, &node))
        })
        .await
    }

    /// Zeroes a piece of an OSD: both of its ends, and last the block with the mark by which it is
    /// recognised.
    ///
    /// Nothing outside of the piece is touched, and no table is read again.
    pub(crate) async fn clear_piece(&self) -> Result<(), NodeError> {
        let ranges = within(self.size);
        let (file, node) = (Arc::clone(&self.file), self.node.clone());
        blocking("wipe", node.display().to_string(), WRITE_LIMIT, move || {
            for range in ranges {
                zero(&file, &node, &[range])?; // each range is on the disk before the next one starts
            }
            Ok(())
        })
        .await
    }

    /// Writes a LUKS header over the tombstone, its first sector last.
    ///
    /// The disk shows the tombstone until the whole header is on it.
    pub(crate) async fn write_header(&self, header: Vec<u8>) -> Result<(), NodeError> {
        let (file, node) = (Arc::clone(&self.file), self.node.clone());
        blocking("write LUKS header", node.display().to_string(), WRITE_LIMIT, move || {
            write_first_sector_last(&file, &node, &header)
        })
        .await
    }

    /// Removes the partitions from the kernel with `partx -d`, one by one.
    ///
    /// Re-reading the table would need the disk to be closed, and does nothing if the kernel has no parser
    /// for the table.
    async fn forget_partitions(&self, disk: &Disk, sys_block: &Path, dev: &Path) -> Result<(), NodeError> {
        let known = || devices::partitions(&sys_block.join(&disk.name), &disk.name, dev);
        if known().is_empty() {
            return Ok(());
        }
        let answer = run("partx", &["-d".as_ref(), self.node.as_os_str()], None, QUICK).await?;
        if known().is_empty() { Ok(()) } else { Err(answer.into_error()) }
    }
}

/// Opens a device exclusively, with retries; returns none if it stays in use.
#[expect(
    clippy::disallowed_methods,
    reason = "on a thread that may wait, for what can't be waited for with a limit"
)]
fn open_patiently(node: &Path) -> Result<Option<File>, NodeError> {
    for _ in 1..TRIES {
        if let Some(file) = open_exclusively(node)? {
            return Ok(Some(file));
        }
        std::thread::sleep(BETWEEN_TRIES);
    }
    open_exclusively(node)
}

/// Opens a device exclusively; returns none if it is in use now.
fn open_exclusively(node: &Path) -> Result<Option<File>, NodeError> {
    let flags = i32::try_from((OFlags::EXCL | OFlags::NOFOLLOW).bits()).unwrap_or(0);
    let file = match OpenOptions::new().read(true).write(true).custom_flags(flags).open(node) {
        Ok(file) => file,
        Err(error) if error.raw_os_error() == Some(Errno::BUSY.raw_os_error()) => return Ok(None),
        Err(error) => return Err(NodeError::io("open exclusively", node)(error)),
    };
    // udevd takes this lock shared while it probes, and keeps away while this agent has it.
    let locks = [
        flock(&file, FlockOperation::NonBlockingLockExclusive),
        fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive),
    ];
    for lock in locks {
        match lock {
            Ok(()) => {}
            Err(Errno::ACCESS | Errno::AGAIN) => return Ok(None), // WOULDBLOCK is AGAIN
            Err(errno) => return Err(NodeError::io("lock", node)(errno)),
        }
    }
    Ok(Some(file))
}

fn write_tombstone(file: &File, node: &Path, sector: &[u8; SECTOR]) -> Result<(), NodeError> {
    file.write_all_at(sector, 0).map_err(NodeError::io("write tombstone", node))?;
    file.sync_all().map_err(NodeError::io("fsync", node))
}

fn write_first_sector_last(file: &File, node: &Path, bytes: &[u8]) -> Result<(), NodeError> {
    let (first, rest) = bytes.split_at_checked(SECTOR).ok_or_else(|| NodeError::Unreadable {
        subject: "the LUKS header".to_owned(),
        why: format!("it has {} bytes", bytes.len()),
    })?;
    for (part, at) in [(rest, SECTOR as u64), (first, 0)] {
        file.write_all_at(part, at).map_err(NodeError::io("write LUKS header", node))?;
        file.sync_all().map_err(NodeError::io("fsync", node))?;
    }
    Ok(())
}

/// Returns the ranges to zero on a disk of `size` bytes with these partitions: sorted, not overlapping, and
/// never the tombstone.
fn plan(size: u64, partitions: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut ranges = vec![0..HEAD, size.saturating_sub(TAIL)..size];
    ranges.extend(PLACES.into_iter().map(|place| place..place.saturating_add(LABEL)));
    for part in partitions {
        ranges.push(part.start..part.start.saturating_add(TAIL).min(part.end));
        ranges.push(part.end.saturating_sub(TAIL).max(part.start)..part.end);
    }
    ranges.sort_by_key(|range| range.start);
    let mut plan: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        let range = range.start.max(SECTOR as u64)..range.end.min(size);
        match plan.last_mut() {
            _ if range.is_empty() => {}
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            Some(_) | None => plan.push(range),
        }
    }
    plan
}

/// Returns the ranges to zero on a piece of `size` bytes, in this sequence: the mark, which is in the first
/// block, comes last.
fn within(size: u64) -> Vec<Range<u64>> {
    let mark = LABEL.min(size);
    let mut ranges = vec![mark..HEAD.min(size), size.saturating_sub(TAIL).max(mark)..size, 0..mark];
    ranges.retain(|range| !range.is_empty());
    ranges
}

fn zero(file: &File, node: &Path, ranges: &[Range<u64>]) -> Result<(), NodeError> {
    let zeros = vec![0; PIECE];
    for range in ranges {
        let mut at = range.start;
        while at < range.end {
            let length = usize::try_from(range.end - at).map_or(PIECE, |left| left.min(PIECE));
            let piece = zeros.get(..length).unwrap_or(&zeros);
            file.write_all_at(piece, at).map_err(NodeError::io("wipe", node))?;
            at += length as u64;
        }
    }
    file.sync_all().map_err(NodeError::io("fsync", node))
}

#[cfg(test)]
#[path = "wipe_tests.rs"]
mod tests;
