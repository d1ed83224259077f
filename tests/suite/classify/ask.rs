//! The class of an OSD in the small world with one thing changed, and the changes.

use osd_migrate::domain::classify::{self, Class, Refusal};
use osd_migrate::domain::osd::OsdId;

use crate::support::build::{FILESTORE, World};

pub(super) const RAW: OsdId = OsdId(5);

pub(super) fn class_of(world: &World, osd: OsdId) -> Class {
    classify::classify(&world.seen).remove(&osd).unwrap()
}

pub(super) fn refused(osd: OsdId, change: impl FnOnce(&mut World)) -> Refusal {
    match class_of(&World::new().with(change), osd) {
        Class::Refused(why) => why,
        other => panic!("{other:?}"),
    }
}

pub(super) fn not_built(osd: OsdId, change: impl FnOnce(&mut World)) -> String {
    match refused(osd, change) {
        Refusal::NotBuiltYet(what) => what,
        other => panic!("{other:?}"),
    }
}

pub(super) fn in_directory(w: &mut World) {
    let daemon = w.daemon(FILESTORE);
    (daemon.mounts_device, daemon.data_dir) = (false, Some("/srv/osd2".to_owned()));
}

pub(super) fn database(device: &str) -> impl Fn(&mut World) {
    let device = device.to_owned();
    move |w| w.seen.kube.declaration.storage.config.metadata_device = Some(device.clone())
}
