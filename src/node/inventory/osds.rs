//! The OSDs that were found on a node's disks, whatever created them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::domain::classify;
use crate::domain::inventory::OsdSeen;
use crate::domain::osd::{Mode, ObjectStore, OsdFsid, Role};
use crate::node::inventory::state::{Facts, KnownOsds, Seen, read_label};

/// Returns the devices with a BlueStore label, for `raw list`.
pub(super) fn labelled(all: &[Seen]) -> Vec<PathBuf> {
    let labelled = all.iter().flat_map(Seen::all).filter(|facts| read_label(facts).is_some());
    labelled.map(|facts| facts.disk.node.clone()).collect()
}

/// Returns all OSDs.
///
/// `startable`: the result of `raw list`; if it is none (not asked, or failed), the label alone counts.
/// `ceph_version`: release of the image that starts them.
pub(super) fn on(
    all: &[Seen],
    known: &KnownOsds,
    startable: Option<&BTreeSet<OsdFsid>>,
    ceph_version: &str,
) -> Vec<OsdSeen> {
    let devices: Vec<&Facts> = all.iter().flat_map(Seen::all).collect();
    let lists_no_links = classify::lists_no_links(ceph_version);
    let raw = devices.iter().filter_map(|facts| raw(facts, &devices, startable, lists_no_links));
    let lvm = known.volumes.iter().filter_map(|volume| {
        Some(OsdSeen {
            fsid: volume.fsid,
            osd: volume.osd,
            cluster: volume.cluster,
            mode: Mode::Lvm,
            store: volume.store.clone(),
            encrypted: volume.encrypted,
            block_path: volume.block_path.clone()?,
            // A volume that can't be read is opened by its activation.
            activatable: volume.finished.unwrap_or(true),
            db_path: volume.db_path.clone(),
            wal_path: volume.wal_path.clone(),
            db_disk: volume.db_disk.clone(),
        })
    });
    let mut osds: Vec<OsdSeen> = raw.chain(lvm).collect();
    osds.sort();
    osds
}

/// Returns the OSD that a device carries itself.
///
/// An OSD whose label names no id or no cluster does not count yet.
fn raw(
    facts: &Facts,
    devices: &[&Facts],
    startable: Option<&BTreeSet<OsdFsid>>,
    lists_no_links: bool,
) -> Option<OsdSeen> {
    let label = read_label(facts).filter(|label| label.role() == Some(Role::Block))?;
    let of_it = |role: Role| {
        let is_it = |other: &&&Facts| {
            read_label(other)
                .is_some_and(|other| other.osd_fsid == label.osd_fsid && other.role() == Some(role))
        };
        devices.iter().find(is_it)
    };
    let path_of = |role: Role| of_it(role).map(|device| stable_path(device).0);
    // The OSD's pod finds the device by the device's content. Other devices that the OSD links have only
    // their path.
    let block_path =
        if lists_no_links { facts.disk.node.display().to_string() } else { stable_path(facts).0 };
    let auxiliary = [Role::Db, Role::Wal].into_iter().filter_map(of_it);
    let is_stable = auxiliary.into_iter().all(|device| stable_path(device).1);
    let is_listed = startable.is_none_or(|found| found.contains(&label.osd_fsid));
    Some(OsdSeen {
        fsid: label.osd_fsid,
        osd: label.whoami?,
        cluster: label.cluster?,
        mode: Mode::Raw,
        store: ObjectStore::bluestore(),
        encrypted: false,
        block_path,
        // Rook starts an OSD on a PersistentVolume, in a shape of its own.
        activatable: label.finished && label.activatable && is_stable && is_listed && facts.volume.is_none(),
        db_path: path_of(Role::Db),
        wal_path: path_of(Role::Wal),
        db_disk: of_it(Role::Db).map(|device| device.disk.name.clone()),
    })
}

/// Returns a path that leads to the device after a reboot, too, as every OSD has it that osd-migrate deploys;
/// the kernel's own path (false) if there is none.
fn stable_path(facts: &Facts) -> (String, bool) {
    let disk = &facts.disk;
    if disk.is_file() {
        return (disk.node.display().to_string(), true);
    }
    match disk.identity.stable_path() {
        Some(path) => (path, true),
        None => (disk.node.display().to_string(), false),
    }
}
