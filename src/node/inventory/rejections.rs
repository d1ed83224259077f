//! ceph-volume's view of disks and OSDs. Only the fields named here are read, because tags of volumes contain
//! secrets.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::domain::osd::{ClusterFsid, ObjectStore, OsdFsid, OsdId};
use crate::node::disk::label;
use crate::node::error::NodeError;
use crate::node::tools::command::{QUICK, blocking};
use crate::node::tools::query::{self, Query};

/// Bytes of a label.
const LABEL: u64 = 4096;

/// Reasons why `ceph-volume inventory` would reject a disk, by the disk's path.
///
/// An accepted disk has no entry.
pub(crate) type Rejections = BTreeMap<PathBuf, Vec<String>>;

/// Asks for the inventory.
pub(crate) async fn rejections() -> Result<Rejections, NodeError> {
    let disks: Vec<Inventoried> = query::json(&Query::Inventory.ask_well().await?)?;
    Ok(rejected(disks))
}

fn rejected(disks: Vec<Inventoried>) -> Rejections {
    let unavailable = disks.into_iter().filter(|disk| !disk.available);
    unavailable
        .map(|mut disk| {
            disk.rejected_reasons.sort(); // ceph-volume prints the reasons in a different sequence each time
            (disk.path, disk.rejected_reasons)
        })
        .collect()
}

/// Returns the reasons of ceph-volume that remain against a disk that osd-migrate finds available.
///
/// osd-migrate overrules these reasons, because it has better information:
///
/// | reason | release | why it is overruled |
/// | --- | --- | --- |
/// | `locked` | 16.2 | it was open exclusively then; osd-migrate had it so itself a moment ago |
/// | `Insufficient space (<5GB)` | all | measured here with the same limit; partition sizes are from udev |
/// | `Device type is not acceptable. ...` | 18.2 and later | loop devices, which only tests have |
///
/// `Device type is not acceptable` is printed for loop devices if `CEPH_VOLUME_ALLOW_LOOP_DEVICES` is not
/// set. ceph-volume takes the sizes of partitions from udev's database. A disk that ceph-volume does not list
/// at all (partitions before 16.2.11, loop devices) is not a rejected disk.
pub(crate) fn not_overruled(name: &str, reasons: &[String]) -> Vec<String> {
    let is_known_better = |reason: &str| {
        reason == "locked"
            || reason.starts_with("Insufficient space (<5GB)")
            || (name.starts_with("loop") && reason.starts_with("Device type is not acceptable"))
    };
    if reasons.is_empty() {
        return vec!["it gives no reason".to_owned()];
    }
    reasons.iter().filter(|reason| !is_known_better(reason)).cloned().collect()
}

#[derive(Deserialize)]
struct Inventoried {
    path: PathBuf,
    available: bool,
    #[serde(default)]
    rejected_reasons: Vec<String>,
}

/// Returns the fsids of OSDs whose main device `raw list` finds on these devices: those that `raw activate`
/// can start.
pub(crate) async fn raw_osds(devices: &[PathBuf]) -> Result<BTreeSet<OsdFsid>, NodeError> {
    if devices.is_empty() {
        return Ok(BTreeSet::new());
    }
    let listed: BTreeMap<String, RawListed> = query::json(&Query::RawList(devices).ask_well().await?)?;
    Ok(with_main_device(listed))
}

fn with_main_device(listed: BTreeMap<String, RawListed>) -> BTreeSet<OsdFsid> {
    // For an OSD with a separate db device, 20.2 names the db device only.
    listed
        .into_values()
        .filter(|osd| osd.device.is_some())
        .filter_map(|osd| osd.osd_uuid.parse().ok())
        .collect()
}

#[derive(Deserialize)]
struct RawListed {
    osd_uuid: String,
    device: Option<String>,
}

/// An OSD on logical volumes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LvmOsd {
    pub(crate) fsid: OsdFsid,
    pub(crate) osd: OsdId,
    pub(crate) cluster: ClusterFsid,
    pub(crate) store: ObjectStore,
    pub(crate) encrypted: bool,
    /// `/dev/VG/LV` of the main volume; none if only the OSD's other volumes exist.
    pub(crate) block_path: Option<String>,
    pub(crate) db_path: Option<String>,
    pub(crate) wal_path: Option<String>,
    /// Kernel name of the disk that the database's volume lies on.
    pub(crate) db_disk: Option<String>,
    /// Whether the label in the main volume is finished; none if it can't be read: the volume is closed or
    /// encrypted.
    pub(crate) finished: Option<bool>,
    /// Disks and partitions that any of the OSD's volumes lies on.
    pub(crate) devices: BTreeSet<PathBuf>,
}

impl LvmOsd {
    /// Returns whether one of the OSD's volumes lies on a device.
    pub(crate) fn is_on(&self, node: &Path) -> bool {
        self.devices.contains(node)
    }
}

/// Asks for the OSDs on logical volumes.
pub(crate) async fn lvm_osds() -> Result<Vec<LvmOsd>, NodeError> {
    let listed: BTreeMap<String, Vec<Volume>> = query::json(&Query::LvmList.ask_well().await?)?;
    let mut osds = assembled(listed);
    for osd in osds.iter_mut().filter(|osd| !osd.encrypted) {
        if let Some(path) = &osd.block_path {
            osd.finished = is_finished(Path::new(path)).await;
        }
    }
    Ok(osds)
}

/// Reads the label of a volume.
///
/// A volume has all its tags right before its mkfs starts, so tags alone say nothing about its end.
async fn is_finished(volume: &Path) -> Option<bool> {
    let node = volume.to_owned();
    let head =
        blocking("read", volume.display().to_string(), QUICK, move || label::places(&node, 0, LABEL)).await;
    match head.ok()?.first() {
        None => Some(false),
        Some(_) => label::read(volume).await.ok().map(|label| label.finished && label.activatable),
    }
}

/// Combines the volumes into OSDs by fsid.
///
/// Two OSDs may have one id: OSDs of different clusters, or an OSD that was never removed. Their fsids
/// distinguish them.
fn assembled(listed: BTreeMap<String, Vec<Volume>>) -> Vec<LvmOsd> {
    let mut osds = BTreeMap::<OsdFsid, LvmOsd>::new();
    for volume in listed.into_values().flatten() {
        let Volume { kind, path, devices, tags } = volume;
        let (Some(fsid), Some(osd), Some(cluster)) =
            (parsed(tags.fsid.as_ref()), parsed(tags.osd.as_ref()), parsed(tags.cluster.as_ref()))
        else {
            continue; // a journal that is a partition is listed with its partition uuid only
        };
        let osd = osds.entry(fsid).or_insert_with(|| LvmOsd {
            fsid,
            osd,
            cluster,
            store: ObjectStore::bluestore(),
            encrypted: false,
            block_path: None,
            db_path: None,
            wal_path: None,
            db_disk: None,
            finished: None,
            devices: BTreeSet::new(),
        });
        let disk = devices.first().and_then(|node| Some(node.file_name()?.to_string_lossy().into_owned()));
        osd.devices.extend(devices);
        osd.encrypted |= tags.encrypted.as_deref() == Some("1");
        match kind.as_str() {
            "data" => (osd.store, osd.block_path) = (ObjectStore("filestore".to_owned()), Some(path)),
            "block" => {
                osd.block_path = Some(path);
                osd.db_path = osd.db_path.take().or(tags.db);
                osd.wal_path = osd.wal_path.take().or(tags.wal);
            }
            "db" => (osd.db_path, osd.db_disk) = (Some(path), disk),
            "wal" => osd.wal_path = Some(path),
            _ => {}
        }
    }
    osds.into_values().collect()
}

fn parsed<T: std::str::FromStr>(text: Option<&String>) -> Option<T> {
    text?.parse().ok()
}

#[derive(Deserialize)]
struct Volume {
    #[serde(rename = "type")]
    kind: String,
    path: String,
    #[serde(default)]
    devices: Vec<PathBuf>,
    tags: Tags,
}

#[derive(Deserialize)]
struct Tags {
    #[serde(rename = "ceph.osd_fsid")]
    fsid: Option<String>,
    #[serde(rename = "ceph.osd_id")]
    osd: Option<String>,
    #[serde(rename = "ceph.cluster_fsid")]
    cluster: Option<String>,
    #[serde(rename = "ceph.encrypted")]
    encrypted: Option<String>,
    #[serde(rename = "ceph.db_device")]
    db: Option<String>,
    #[serde(rename = "ceph.wal_device")]
    wal: Option<String>,
}

#[cfg(test)]
#[path = "rejections_tests.rs"]
mod tests;
