//! The worlds of the examples without new OSDs, databases or noise.

use crate::domain::osd::{DeviceIdentity, OsdId, PgId};
use crate::sim::example::shape::{GIB, Kind, PoolShape, Shape, host};
use crate::sim::world::World;

/// Returns three replicas on three hosts with one OSD each, one of them created by hand.
pub fn replicated() -> World {
    on_three_hosts([Kind::ByHand, Kind::Raw, Kind::Raw])
}

/// Returns three replicas of one PG on three hosts with one OSD each.
pub(super) fn on_three_hosts(kinds: [Kind; 3]) -> World {
    let pool = PoolShape { pgs: 1, size: 3, min_size: 2, data_chunks: None, gib: 1 };
    let hosts = kinds.map(|kind| vec![kind]).into();
    Shape { hosts, pools: vec![pool], disk_gib: 6 }.world()
}

/// Returns two OSDs to migrate on one host, one created by hand and one Filestore, each with its own PG.
pub fn two_on_a_host() -> World {
    let pool = PoolShape { pgs: 2, size: 3, min_size: 2, data_chunks: None, gib: 1 };
    let hosts = vec![vec![Kind::ByHand, Kind::Filestore], vec![Kind::Raw], vec![Kind::Raw]];
    Shape { hosts, pools: vec![pool], disk_gib: 6 }.world()
}

/// Returns two OSDs of a kind to migrate on one host, of which one has the only PG.
pub fn two_of_a_kind(with_pg: OsdId) -> World {
    let pool = PoolShape { pgs: 1, size: 3, min_size: 2, data_chunks: None, gib: 1 };
    let hosts = vec![vec![Kind::ByHand; 2], vec![Kind::Raw], vec![Kind::Raw]];
    let mut world = Shape { hosts, pools: vec![pool], disk_gib: 6 }.world();
    world.place(PgId { pool: 1, number: 0 }, [with_pg, OsdId(2), OsdId(3)]);
    world
}

/// Returns two OSDs of a kind to migrate on one host, which both have the only PG, and two on another host.
///
/// The CRUSH rule of such a pool chooses two OSDs on each of two hosts.
pub fn two_share_a_pg() -> World {
    let pool = PoolShape { pgs: 1, size: 4, min_size: 2, data_chunks: None, gib: 1 };
    let hosts = vec![vec![Kind::ByHand; 2], vec![Kind::Raw; 2]];
    let mut world = Shape { hosts, pools: vec![pool], disk_gib: 6 }.world();
    for pool in world.ceph.pools.values_mut() {
        "osd".clone_into(&mut pool.failure_domain);
    }
    world.place(PgId { pool: 1, number: 0 }, [OsdId(0), OsdId(1), OsdId(2), OsdId(3)]);
    world
}

/// Returns three OSDs of a kind to migrate on three hosts, whose PGs share none of them.
pub fn three_apart() -> World {
    let pool = PoolShape { pgs: 3, size: 3, min_size: 2, data_chunks: None, gib: 1 };
    let legacy = || vec![Kind::ByHand];
    let hosts = vec![legacy(), legacy(), legacy(), vec![Kind::Raw], vec![Kind::Raw]];
    let mut world = Shape { hosts, pools: vec![pool], disk_gib: 6 }.world();
    for osd in 0..3 {
        world.place(PgId { pool: 1, number: osd }, [OsdId(osd), OsdId(3), OsdId(4)]);
    }
    world
}

/// Returns an erasure coded pool, k=2 and m=2, on four hosts, with one Filestore OSD.
pub fn erasure_coded() -> World {
    let pool = PoolShape { pgs: 1, size: 4, min_size: 3, data_chunks: Some(2), gib: 1 };
    let hosts = vec![vec![Kind::Filestore], vec![Kind::Raw], vec![Kind::Raw], vec![Kind::Raw]];
    Shape { hosts, pools: vec![pool], disk_gib: 6 }.world()
}

/// Returns `replicated` with other numbers of replicas, and of replicas needed to serve.
pub fn replicated_as(size: u32, min_size: u32, gib: u64) -> World {
    let pool = PoolShape { pgs: 1, size, min_size, data_chunks: None, gib };
    let hosts = vec![vec![Kind::ByHand], vec![Kind::Raw], vec![Kind::Raw]];
    Shape { hosts, pools: vec![pool], disk_gib: 6 }.world()
}

/// Returns three OSDs to migrate, each on its own host.
pub fn three_to_do() -> World {
    on_three_hosts([Kind::ByHand, Kind::ByHand, Kind::ByHand])
}

/// Returns `replicated` with one encrypted OSD, which is to become unencrypted.
pub fn to_be_plain() -> World {
    let mut world = on_three_hosts([Kind::Encrypted, Kind::Raw, Kind::Raw]);
    world.kube.declaration.storage.all_nodes = true;
    world
}

/// Returns `replicated` with all OSDs declared encrypted, one of which is not.
pub fn to_be_encrypted() -> World {
    let mut world = on_three_hosts([Kind::ByHand, Kind::Encrypted, Kind::Encrypted]);
    let storage = &mut world.kube.declaration.storage;
    (storage.all_nodes, storage.config.encrypted) = (true, Some(true));
    world
}

/// Returns `replicated` with another OSD on a device-mapper device of its host (multipath, LUKS opened by
/// crypttab).
///
/// This OSD conforms.
pub fn on_a_host_mapping() -> World {
    let mut world = replicated();
    world.kube.declaration.storage.all_nodes = true;
    world.map_by_host(OsdId(1));
    world
}

/// Returns `replicated` with disks that have no serial number (virtual disks), and with one more OSD and a
/// blank disk on the first host.
///
/// All disks have one size.
pub fn without_serial_numbers() -> World {
    let pool = PoolShape { pgs: 1, size: 3, min_size: 2, data_chunks: None, gib: 1 };
    let hosts = vec![vec![Kind::ByHand, Kind::Raw], vec![Kind::Raw], vec![Kind::Raw]];
    let mut world = Shape { hosts, pools: vec![pool], disk_gib: 6 }.world();
    world.add_disk("disk-blank", &host(0), 6 * GIB);
    for (name, disk) in &mut world.disks {
        let by_path = [format!("pci-{name}")].into();
        disk.identity = DeviceIdentity { by_path, by_id: [].into(), serial: None, ..disk.identity.clone() };
    }
    world
}

/// Returns twelve OSDs on four hosts, five of them legacy: the cluster that `rehearse` shows by default.
pub fn twelve() -> World {
    use Kind::{ByHand, Filestore, Raw};
    let pool = PoolShape { pgs: 32, size: 3, min_size: 2, data_chunks: None, gib: 24 };
    let hosts = vec![
        vec![Filestore, Raw, ByHand],
        vec![Filestore, Raw, Raw],
        vec![ByHand, Raw, Raw],
        vec![Filestore, Raw, Raw],
    ];
    Shape { hosts, pools: vec![pool], disk_gib: 400 }.world()
}
