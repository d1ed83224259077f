//! Worlds with an OSD on a PersistentVolumeClaim.

use crate::domain::device_set::DeviceSet;
use crate::domain::inspection::{Content, Proof};
use crate::domain::observation::{BoundVolume, Pvc};
use crate::domain::osd::{Kind as Format, OsdId};
use crate::sim::example::rook::with_rook;
use crate::sim::example::shape::{GIB, Kind, fsid, host};
use crate::sim::example::worlds::on_three_hosts;
use crate::sim::pvcs::SET;
use crate::sim::world::World;

/// PVC of an example.
pub const PVC: &str = "set1-data-0a";

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

/// Returns `with_rook` with another OSD on a PVC, which is as declared.
pub fn pvc_alongside_rook() -> World {
    let mut world = with_rook();
    world.put_on_pvc(OsdId(1), false);
    world.declare_set(false);
    world
}

fn on_a_pvc(is_encrypted: bool) -> World {
    let mut world = on_three_hosts([Kind::Raw, Kind::Raw, Kind::Raw]);
    world.put_on_pvc(OsdId(0), is_encrypted);
    world.declare_set(!is_encrypted);
    world.add_disk(OTHER_DISK, &host(0), 6 * GIB);
    world.put_foreign(OTHER_DISK);
    world
}

impl World {
    fn declare_set(&mut self, encrypted: bool) {
        let templates = vec!["data".to_owned()];
        self.kube.declaration.storage.sets = vec![DeviceSet { name: SET.to_owned(), encrypted, templates }];
    }

    /// Puts an OSD on a PVC.
    fn put_on_pvc(&mut self, osd: OsdId, is_encrypted: bool) {
        let (osd_fsid, disk) = (fsid(osd, 0), format!("disk-{}", osd.0));
        let pvc = Pvc {
            uid: "uid-pvc-0".to_owned(),
            volume: Some(BoundVolume { name: "pv-0".to_owned(), uid: Some("uid-pv-0".to_owned()) }),
            set: Some(SET.to_owned()),
            index: Some("0".to_owned()),
            template: Some("data".to_owned()),
            phase: "Bound".to_owned(),
            is_deleted: false,
            is_block: true,
            is_for_one_pod: false,
        };
        self.kube.pvcs.insert(PVC.to_owned(), pvc);
        self.pvcs.of.insert(osd, PVC.to_owned());
        self.pvcs.disks.insert(PVC.to_owned(), disk.clone());
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
            self.pvcs.keys.insert(PVC.to_owned(), 1);
            self.pvcs.stores.insert(osd_fsid, 1);
            self.pvcs.open.insert(disk);
        }
        if let Some(mut daemon) = self.kube.daemons.remove(&osd) {
            self.shape_on_pvc(osd, &mut daemon);
            self.kube.daemons.insert(osd, daemon);
        }
    }
}
