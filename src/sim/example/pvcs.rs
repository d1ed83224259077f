//! Worlds with an OSD on a PersistentVolumeClaim.

use crate::domain::device_set::DeviceSet;
use crate::domain::inspection::{Content, Proof};
use crate::domain::observation::{BoundVolume, Pvc};
use crate::domain::osd::pvc::PerPvc;
use crate::domain::osd::{Kind as Format, OsdId};
use crate::sim::example::kind::on_volume;
use crate::sim::example::rook::with_rook;
use crate::sim::example::shape::{GIB, Kind, fsid, host};
use crate::sim::example::worlds::on_three_hosts;
use crate::sim::pvcs::SET;
use crate::sim::world::World;

/// PVC of an example.
pub const PVC: &str = "set1-data-0a";

/// PVC for the database of an OSD of an example.
pub const DB_PVC: &str = "set1-metadata-0b";

/// Disk behind that PVC.
pub const DB_DISK: &str = "disk-of-db-pvc";

/// Another disk, on which a database is.
const ELSEWHERE: &str = "disk-elsewhere";

/// A disk of another PersistentVolume, with data, to which a recreated PVC is bound.
pub const OTHER_DISK: &str = "disk-other";

/// Returns three replicas on three hosts; the OSD of the first one is on a PVC, and is to be encrypted.
pub fn pvc_to_be_encrypted() -> World {
    on_a_pvc(false)
}

/// Returns `pvc_to_be_encrypted` the other way round: the OSD is encrypted, and is to be unencrypted.
pub fn pvc_to_be_plain() -> World {
    on_a_pvc(true)
}

/// Returns `pvc_to_be_encrypted` with an OSD on a volume of LVM on its PVC, which is to be raw.
pub fn pvc_on_lvm() -> World {
    let mut world = on_three();
    let (osd, disk) = (OsdId(0), "disk-0");
    let (content, proof) = on_volume(Format::Lvm, osd, world.ceph.fsid);
    if let Some(found) = world.disks.get_mut(disk) {
        (found.content, found.proof) = (content, Some(proof));
    }
    if let Some(metadata) = world.ceph.slots.get_mut(&osd).and_then(|slot| slot.metadata.as_mut()) {
        metadata.device_mapper = true;
    }
    world.pvcs.open.insert(disk.to_owned());
    world.put_on_pvc(osd, PVC, 0, false);
    world.declare_set(&["data"], false);
    world.add_disk(OTHER_DISK, &host(0), 6 * GIB);
    world.put_foreign(OTHER_DISK);
    world
}

/// Returns `pvc_to_be_encrypted` with a portable OSD, on a volume of a CSI driver without a serial number.
pub fn pvc_portable() -> World {
    let mut world = on_a_pvc(false);
    let (osd, disk) = (OsdId(0), "disk-0");
    world.pvcs.attachable.insert(disk.to_owned());
    if let Some(found) = world.disks.get_mut(disk) {
        (found.identity.by_id, found.identity.serial) = ([].into(), None);
        found.identity.by_path = ["csi-lun-1".to_owned()].into();
    }
    // In CRUSH, the host of a portable OSD is its PVC.
    if let Some(item) = world.ceph.slots.get_mut(&osd).and_then(|slot| slot.crush.as_mut()) {
        item.location.insert("host".to_owned(), PVC.to_owned());
    }
    world.reshape(osd);
    world
}

/// Returns `pvc_to_be_encrypted` with an OSD whose database is on another PVC, and stays on that PVC.
pub fn pvc_with_database() -> World {
    let mut world = on_a_pvc(false);
    world.declare_set(&["data", "metadata"], true);
    world.add_database_pvc();
    world.put_database(OsdId(0), DB_DISK);
    world
}

/// Returns `pvc_with_database` with the database on a disk that is not behind its PVC: the PVC was recreated
/// while the OSD is running.
pub fn pvc_with_database_elsewhere() -> World {
    let mut world = pvc_with_database();
    world.add_disk(ELSEWHERE, &host(0), 6 * GIB);
    world.put_database(OsdId(0), ELSEWHERE);
    world
}

/// Returns three replicas on three hosts; the OSD of the first one is on a PVC, and is to get another PVC for
/// its database.
pub fn pvc_gets_database() -> World {
    let mut world = on_a_pvc(false);
    world.declare_set(&["data", "metadata"], false);
    world.add_database_pvc();
    world
}

/// Returns `pvc_gets_database` with an OSD that is encrypted, and stays so.
pub fn pvc_encrypted_gets_database() -> World {
    let mut world = on_a_pvc(true);
    world.declare_set(&["data", "metadata"], true);
    world.add_database_pvc();
    world
}

/// Returns `pvc_encrypted_gets_database` after the key of the OSD was lost while the OSD is running.
pub fn pvc_without_its_key() -> World {
    let mut world = pvc_encrypted_gets_database();
    world.pvcs.keys.clear();
    world
}

/// Returns `pvc_gets_database` with an OSD that is to be encrypted, too.
pub fn pvc_gets_encrypted_database() -> World {
    let mut world = pvc_gets_database();
    world.declare_set(&["data", "metadata"], true);
    world
}

/// Returns `with_rook` with another OSD on a PVC, which is as declared.
pub fn pvc_alongside_rook() -> World {
    let mut world = with_rook();
    world.put_on_pvc(OsdId(1), PVC, 0, false);
    world.declare_set(&["data"], false);
    world
}

/// Returns three hosts with one OSD each, as declared.
pub(super) fn on_three() -> World {
    on_three_hosts([Kind::Raw, Kind::Raw, Kind::Raw])
}

fn on_a_pvc(is_encrypted: bool) -> World {
    let mut world = on_three();
    world.put_on_pvc(OsdId(0), PVC, 0, is_encrypted);
    world.declare_set(&["data"], !is_encrypted);
    world.add_disk(OTHER_DISK, &host(0), 6 * GIB);
    world.put_foreign(OTHER_DISK);
    world
}

impl World {
    /// Declares the device set, with an OSD for each PVC for the data.
    pub(super) fn declare_set(&mut self, templates: &[&str], encrypted: bool) {
        let templates = templates.iter().map(|name| (*name).to_owned()).collect();
        let for_data = self.kube.pvcs.values().filter(|pvc| pvc.template.as_deref() == Some("data"));
        let count = u32::try_from(for_data.count()).ok();
        let set = DeviceSet { name: SET.to_owned(), encrypted, templates, count, ..DeviceSet::default() };
        self.kube.declaration.storage.sets = vec![set];
    }

    /// Puts an OSD on a PVC.
    pub(super) fn put_on_pvc(&mut self, osd: OsdId, pvc: &str, index: u32, is_encrypted: bool) {
        let (osd_fsid, disk) = (fsid(osd, 0), format!("disk-{}", osd.0));
        self.add_pvc(pvc, ("data", index), &disk);
        self.pvcs.of.insert(osd, PerPvc::of_data(pvc.to_owned()));
        if is_encrypted {
            let (whoami, cluster, format) = (osd, self.ceph.fsid, Format::RawCrypt);
            if let Some(found) = self.disks.get_mut(&disk) {
                found.content = Content::Osd { format, osd_fsid, whoami, cluster };
                let header = format!("header-{}", osd.0);
                found.proof = Some(Proof::Luks { header, osd_fsid, whoami, cluster });
            }
            if let Some(metadata) = self.ceph.slots.get_mut(&osd).and_then(|slot| slot.metadata.as_mut()) {
                metadata.device_mapper = true;
            }
            self.pvcs.keys.insert(pvc.to_owned(), 1);
            self.pvcs.stores.insert(osd_fsid, 1);
            self.pvcs.open.insert(disk);
        }
        self.reshape(osd);
    }

    /// Adds a bound PVC of the device set over a disk.
    pub(super) fn add_pvc(&mut self, name: &str, (template, index): (&str, u32), disk: &str) {
        let volume = format!("pv-{name}");
        let nodes = self.disks.get(disk).map(|disk| [disk.node.0.clone()].into());
        let pvc = Pvc {
            uid: format!("uid-{name}-0"),
            volume: Some(BoundVolume { uid: Some(format!("uid-{volume}")), name: volume, nodes }),
            set: Some(SET.to_owned()),
            index: Some(index.to_string()),
            template: Some(template.to_owned()),
            phase: "Bound".to_owned(),
            is_deleted: false,
            is_block: true,
            is_for_one_pod: false,
        };
        self.kube.pvcs.insert(name.to_owned(), pvc);
        self.pvcs.disks.insert(name.to_owned(), disk.to_owned());
    }

    /// Adds a PVC for the database over a blank disk, which no OSD uses.
    fn add_database_pvc(&mut self) {
        self.add_disk(DB_DISK, &host(0), 6 * GIB);
        self.add_pvc(DB_PVC, ("metadata", 0), DB_DISK);
    }

    /// Puts the database of an OSD on a disk, and names its PVC in the Deployment of the OSD.
    pub(super) fn put_database(&mut self, osd: OsdId, disk: &str) {
        self.databases.insert(fsid(osd, 0), disk.to_owned());
        if let Some(pvcs) = self.pvcs.of.get_mut(&osd) {
            pvcs.db = Some(DB_PVC.to_owned());
        }
        if let Some(metadata) = self.ceph.slots.get_mut(&osd).and_then(|slot| slot.metadata.as_mut()) {
            metadata.dedicated_db = true;
        }
        self.reshape(osd);
    }

    fn reshape(&mut self, osd: OsdId) {
        if let Some(mut daemon) = self.kube.daemons.remove(&osd) {
            self.shape_on_pvc(osd, &mut daemon);
            self.kube.daemons.insert(osd, daemon);
        }
    }
}
