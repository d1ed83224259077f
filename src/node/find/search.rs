//! Finds the one disk that a request is about.

use crate::domain::inspection::{NodeRequest, Volume};
use crate::domain::osd::DeviceIdentity;
use crate::domain::proof::finding::DiskFinding;
use crate::domain::proof::same_disk;
use crate::node::disk::devices::{self, Disk, Disks, SECTOR_BYTES};
use crate::node::disk::label;
use crate::node::disk::{file_disk, parts};
use crate::node::error::NodeError;
use crate::node::find::content;
use crate::node::host::Host;
use crate::node::legacy::files::{Reading, Sharing};
use crate::node::volumes::lvm_cache::LvmCache;
use crate::node::volumes::old::Moment;
use crate::node::volumes::within;

/// A disk and its content.
#[derive(Debug)]
pub(crate) struct FoundDisk {
    pub(crate) disk: Disk,
    pub(crate) examine: DiskFinding,
    /// Logical volumes of the disk's OSD, if the OSD is finished.
    pub(crate) volume: Option<Volume>,
}

/// Result of a search.
#[derive(Debug)]
pub(crate) enum Search {
    /// Exactly one disk.
    One(Box<FoundDisk>),
    /// No disk; the text names the inspected disks.
    None(String),
    /// More than one disk, which is also a failure.
    Several(String),
}

/// Finds the recorded disk or partition by its traits.
///
/// If several fit (disks without serial number and of one size), `is_ours` decides by their content.
pub(crate) async fn recorded(
    host: &Host,
    identity: &DeviceIdentity,
    request: &NodeRequest,
    sharing: Sharing,
    is_ours: impl Fn(&DiskFinding) -> bool,
) -> Result<Search, NodeError> {
    let mut all = devices::of_host(host).await?;
    if identity.is_partition() {
        all = partitions(host, all, identity.size_bytes).await?;
    }
    let fitting: Vec<&Disk> = all.disks.iter().filter(|disk| identity.is_same_as(&disk.identity)).collect();
    let is_only = fitting.len() == 1;
    let (mut seen, known) = (Vec::new(), LvmCache::default());
    for disk in fitting {
        match examine_disk(host, disk, sharing, &known, request).await {
            Ok(examine) => seen.push(FoundDisk { disk: disk.clone(), examine, volume: None }),
            Err(error) if is_only => return Err(error),
            // Another disk with the same traits can't be read. Skip it: the proof is on the recorded one.
            Err(error) => all.unseen.push(format!("{} ({error})", disk.name)),
        }
    }
    let carried = |found: &FoundDisk| format!("; on {}: {}", found.disk.described(), found.examine.content);
    let carried: String = seen.iter().map(carried).collect();
    seen.retain(|found| same_disk::same_disk(identity, &found.disk.identity, &found.examine.content).is_ok());
    let ours =
        same_disk::candidates(seen, is_only, |found| &found.examine.content, |found| is_ours(&found.examine));
    let inspected = format!(
        "found no disk {} of {} bytes; {}{carried}",
        identity.stable_name(),
        identity.size_bytes,
        described(&all.disks, &all.unseen)
    );
    Ok(one_of(ours, inspected))
}

/// Returns the file for tests, if it is the requested one.
pub(crate) async fn on_file(host: &Host, is_it: impl Fn(&FoundDisk) -> bool) -> Result<Search, NodeError> {
    let disk = file_disk::as_disk(host)?;
    let inspected = disk.described();
    let examine =
        content::examine(&disk, Reading { scratch: &host.scratch, sharing: Sharing::No, whom: None }).await?;
    let found = Some(FoundDisk { disk, examine, volume: None }).filter(is_it);
    Ok(one_of(found.into_iter().collect(), format!("inspected {inspected}")))
}

/// Finds the disk that carries the request's old OSD in any way, or the partition that carries it on a disk
/// that is not the OSD's own.
pub(crate) async fn carrier(host: &Host, request: &NodeRequest) -> Result<Search, NodeError> {
    let all = devices::of_host(host).await?;
    let (mut unseen, known) = (all.unseen, LvmCache::default());
    let mut carriers = Vec::new();
    let mut seen = Vec::new();
    let reading = reading(host, request, Sharing::WithTheDaemon);
    for disk in all.disks {
        match examine_disk(host, &disk, reading.sharing, &known, request).await {
            Ok(examine) if examine.about == Some(request.old) => {
                carriers.push(FoundDisk { disk, examine, volume: None });
            }
            Ok(_) => {
                carriers.extend(on_partitions(host, &disk, reading, &mut unseen).await?);
                seen.push(disk);
            }
            Err(error) => unseen.push(format!("{} ({error})", disk.name)),
        }
    }
    Ok(one_of(carriers, described(&seen, &unseen)))
}

/// Returns the partitions of a disk that each carry the OSD by themselves.
async fn on_partitions(
    host: &Host,
    disk: &Disk,
    reading: Reading<'_>,
    unseen: &mut Vec<String>,
) -> Result<Vec<FoundDisk>, NodeError> {
    let mut found = Vec::new();
    let parts = parts::of(disk, &host.sys_block, &host.dev).await?;
    unseen.extend(parts.unseen);
    for disk in parts.disks {
        match label::label_at(&disk.node).await {
            Ok(fsid) if fsid.is_none() || fsid != reading.whom => continue,
            Ok(_) => {}
            Err(error) => {
                unseen.push(format!("{} ({error})", disk.name));
                continue;
            }
        }
        match content::examine(&disk, reading).await {
            Ok(examine) if examine.about == reading.whom => {
                found.push(FoundDisk { disk, examine, volume: None });
            }
            Ok(_) => {}
            Err(error) => unseen.push(format!("{} ({error})", disk.name)),
        }
    }
    Ok(found)
}

/// Examines what a disk carries, also through a layer that hides it.
async fn examine_disk(
    host: &Host,
    disk: &Disk,
    sharing: Sharing,
    known: &LvmCache,
    request: &NodeRequest,
) -> Result<DiskFinding, NodeError> {
    let examine = content::examine(disk, reading(host, request, sharing)).await?;
    within::within(host, disk, examine, known, request, Moment::Asked).await
}

pub(crate) fn reading<'a>(host: &'a Host, request: &NodeRequest, sharing: Sharing) -> Reading<'a> {
    Reading { scratch: &host.scratch, sharing, whom: Some(request.old) }
}

/// Returns the partitions of that size on all disks, instead of the disks.
async fn partitions(host: &Host, whole: Disks, size: u64) -> Result<Disks, NodeError> {
    let mut found = Disks { disks: Vec::new(), unseen: whole.unseen };
    let has_one =
        |disk: &&Disk| disk.partitions.iter().any(|part| part.sectors.saturating_mul(SECTOR_BYTES) == size);
    for disk in whole.disks.iter().filter(has_one) {
        let parts = parts::of(disk, &host.sys_block, &host.dev).await?;
        found.disks.extend(parts.disks);
        found.unseen.extend(parts.unseen);
    }
    Ok(found)
}

fn one_of(mut found: Vec<FoundDisk>, inspected: String) -> Search {
    let names: Vec<String> = found.iter().map(|found| found.disk.described()).collect();
    match (found.pop(), found.is_empty()) {
        (None, _) => Search::None(inspected),
        (Some(one), true) => Search::One(Box::new(one)),
        (Some(_), false) => Search::Several(names.join(", ")),
    }
}

fn described(disks: &[Disk], unseen: &[String]) -> String {
    let names: Vec<String> = disks.iter().map(Disk::described).collect();
    let mut described =
        format!("inspected {}", if names.is_empty() { "no disk".to_owned() } else { names.join(", ") });
    if !unseen.is_empty() {
        described.push_str("; could not inspect ");
        described.push_str(&unseen.join(", "));
    }
    described
}
