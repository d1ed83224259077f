//! `ceph osd metadata`: what each OSD reported at its last boot. It is kept while the OSD is down or
//! destroyed, and dropped by a purge.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::ceph::command::Command;
use crate::domain::observation::{Metadata, Slot};
use crate::domain::osd::{Epoch, ObjectStore, OsdFsid, OsdId};

/// Entry of Ceph's answer, in which every value is a string.
///
/// An OSD that never booted has only its id.
#[derive(Deserialize)]
struct Entry {
    id: OsdId,
    osd_objectstore: Option<String>,
    #[serde(default)]
    hostname: String,
    #[serde(default)]
    devices: String,
    /// `sda=ATA_MODEL_SERIAL,sdb=...`
    #[serde(default)]
    device_ids: String,
    /// `sda=/dev/disk/by-path/...,sdb=...`
    #[serde(default)]
    device_paths: String,
    #[serde(default)]
    ceph_version: String,
    bluestore_bdev_dev_node: Option<String>,
    bluestore_bdev_partition_path: Option<String>,
    /// `blk` or `file`
    bluestore_bdev_access_mode: Option<String>,
    backend_filestore_dev_node: Option<String>,
    backend_filestore_partition_path: Option<String>,
    bluefs_dedicated_db: Option<String>,
    bluefs_dedicated_wal: Option<String>,
}

/// Boots of all OSDs: the fsid, and the epoch in which the OSD came up last.
pub(super) type Boots = BTreeMap<OsdId, (Option<OsdFsid>, Epoch)>;

/// Returns the boots that an osdmap shows.
pub(super) fn boots(slots: &BTreeMap<OsdId, Slot>) -> Boots {
    slots.iter().map(|(osd, slot)| (*osd, (slot.fsid, slot.up_from))).collect()
}

/// Metadata of an earlier observation, with the boots of the map that was read before it.
///
/// The mons store the metadata of an OSD in the transaction of its boot, which sets `up_from` (16 to 20,
/// `OSDMonitor::prepare_boot`). So it is exact as long as the boots are the same. With 10,000 OSDs the answer
/// has 10 to 25 MB.
#[derive(Debug, Default)]
pub(super) struct KeptMetadata(Option<(Boots, BTreeMap<OsdId, Metadata>)>);

impl KeptMetadata {
    /// Returns the metadata, if no OSD booted, was created or was purged since.
    pub(super) fn of(&self, now: &Boots) -> Option<BTreeMap<OsdId, Metadata>> {
        let (boots, metadata) = self.0.as_ref()?;
        (boots == now).then(|| metadata.clone())
    }

    /// Keeps metadata that was read after a map with these boots.
    pub(super) fn keep(&mut self, boots: Boots, metadata: BTreeMap<OsdId, Metadata>) {
        self.0 = Some((boots, metadata));
    }
}

pub(super) fn command() -> Command {
    Command::mon("osd metadata")
}

pub(super) fn parse(answer: &[u8]) -> serde_json::Result<BTreeMap<OsdId, Metadata>> {
    let entries: Vec<Entry> = serde_json::from_slice(answer)?;
    Ok(entries.into_iter().filter_map(|entry| Some((entry.id, metadata(entry)?))).collect())
}

fn metadata(entry: Entry) -> Option<Metadata> {
    let devices: Vec<String> =
        entry.devices.split(',').filter(|d| !d.is_empty()).map(str::to_owned).collect();
    let path = entry.bluestore_bdev_partition_path.or(entry.backend_filestore_partition_path);
    let node = entry.bluestore_bdev_dev_node.or(entry.backend_filestore_dev_node);
    let device_mapper = path.iter().chain(&node).any(|name| is_device_mapper(name));
    Some(Metadata {
        store: ObjectStore(entry.osd_objectstore?),
        hostname: entry.hostname,
        // Ceph also reports the whole disk as "partition path" if there is no partition.
        on_partition: !device_mapper
            && path.is_some_and(|path| !devices.iter().any(|disk| last_part(&path) == disk)),
        devices,
        stable_devices: stable(&entry.device_ids).or_else(|| stable(&entry.device_paths)).unwrap_or_default(),
        ceph_version: entry.ceph_version,
        dedicated_db: entry.bluefs_dedicated_db.as_deref() == Some("1"),
        dedicated_wal: entry.bluefs_dedicated_wal.as_deref() == Some("1"),
        device_mapper,
        on_file: entry.bluestore_bdev_access_mode.as_deref() == Some("file"),
    })
}

/// Returns the names after the equal signs, if every disk has one.
fn stable(names: &str) -> Option<Vec<String>> {
    let name =
        |pair: &str| pair.split_once('=').map(|(_, name)| name.to_owned()).filter(|name| !name.is_empty());
    names.split(',').map(name).collect()
}

fn is_device_mapper(name: &str) -> bool {
    name.starts_with("/dev/mapper/") || last_part(name).starts_with("dm-")
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ceph::samples::{RELEASES, answer};

    #[test]
    fn osd_on_a_whole_disk_is_never_read_as_on_a_partition() {
        for (release, device) in RELEASES.into_iter().zip(["loop0", "loop12", "loop0"]) {
            let all = parse(&answer(release, "osd-metadata")).unwrap();
            let whole = &all[&OsdId(0)];
            assert_eq!((whole.store.0.as_str(), whole.hostname.as_str()), ("bluestore", "h1"));
            assert!(
                !whole.on_partition && !whole.device_mapper && !whole.dedicated_db && !whole.dedicated_wal
            );
            assert_eq!(whole.devices, [device]);
            assert!(whole.ceph_version.starts_with(&format!("ceph version {release} (")));
        }
        let partition = &parse(&answer("16.2.15", "osd-metadata")).unwrap()[&OsdId(1)];
        assert!(partition.store.is_filestore() && partition.on_partition && !partition.device_mapper);
    }

    #[test]
    fn metadata_is_kept_until_an_osd_boots_or_is_another_one() {
        let boots = |epoch| Boots::from([(OsdId(0), (None, Epoch(epoch)))]);
        let metadata = parse(&answer("16.2.15", "osd-metadata")).unwrap();
        let mut kept = KeptMetadata::default();
        assert_eq!(kept.of(&boots(3)), None);
        kept.keep(boots(3), metadata.clone());
        assert_eq!(kept.of(&boots(3)), Some(metadata));
        let fsid = "55ebe299-c0ce-4341-960a-ddfd22d5b5bf".parse().ok();
        for other in [boots(4), Boots::new(), Boots::from([(OsdId(0), (fsid, Epoch(3)))])] {
            assert_eq!(kept.of(&other), None);
        }
    }

    #[test]
    fn device_ids_are_read_without_kernel_names_or_not_at_all() {
        assert_eq!(stable("sda=ATA_A_1,sdb=ATA_B_2"), Some(vec!["ATA_A_1".to_owned(), "ATA_B_2".to_owned()]));
        assert_eq!((stable(""), stable("sda=ATA_A_1,sdb=")), (None, None));
    }

    #[test]
    fn device_mapper_and_dedicated_db_are_read_from_osd_metadata() {
        let one = br#"[{"id":4,"osd_objectstore":"bluestore","bluefs_dedicated_db":"1","bluefs_dedicated_wal":"0",
            "bluestore_bdev_dev_node":"/dev/dm-3","bluestore_bdev_partition_path":"/dev/dm-3","devices":"sda,sdb"}]"#;
        let all = parse(one).unwrap();
        let lvm = &all[&OsdId(4)];
        assert!(lvm.device_mapper && !lvm.on_partition && lvm.dedicated_db && !lvm.dedicated_wal);
        assert_eq!(lvm.devices, ["sda", "sdb"]);
    }

    #[test]
    fn osd_that_never_booted_has_no_metadata() {
        assert!(parse(br#"[{"id":7}]"#).unwrap().is_empty());
    }
}
