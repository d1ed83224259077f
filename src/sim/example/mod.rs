//! Worlds that tests and `rehearse` start from.

mod databases;
mod directories;
mod emptying;
mod kind;
mod kube;
mod new_osds;
mod new_pvcs;
mod noise;
mod pvcs;
mod removal;
mod rook;
mod shape;
mod worlds;

pub use databases::{DATABASE_DISK, to_have_a_database, two_to_have_databases};
pub use directories::{in_directory, two_in_directories};
pub use emptying::{erasure_coded_with_a_spare_osd, two_replicas_with_a_spare_osd};
pub(super) use new_osds::taint;
pub use new_osds::{adopt, empty, empty_with, on_attached_volumes, on_volumes, one_more, refill, tolerate};
pub use new_pvcs::{
    NEW_DB_DISK, NEW_DB_PVC, NEW_DISK, NEW_PVC, pvc_in_place_of_a_destroyed_osd, pvc_of_a_destroyed_osd,
    pvc_with_data, pvc_without_osd, pvc_without_osd_alongside_rook, pvc_without_osd_encrypted,
    pvcs_without_osd, two_pvcs_without_osd,
};
pub use noise::{
    a_cordoned_node, a_dead_osd, a_node_that_is_gone, a_refused_deployment, an_osd_that_may_not_stop,
    two_in_line, two_without_a_device, with_a_sick_osd,
};
pub use pvcs::{
    DB_DISK, DB_PVC, OTHER_DISK, PVC, pvc_alongside_rook, pvc_encrypted_gets_database, pvc_gets_database,
    pvc_gets_encrypted_database, pvc_on_lvm, pvc_portable, pvc_to_be_encrypted, pvc_to_be_plain,
    pvc_with_database, pvc_with_database_elsewhere, pvc_without_its_key,
};
pub use removal::{
    directory_with_a_disk, directory_without_a_disk, out_for, removal, removal_alongside_rook,
    removal_and_migration, removal_of_a_directory, removal_of_a_node, removal_of_a_node_with_one_pg,
    removal_of_a_selected_disk, removal_of_two_replicas, removal_to, removal_under_a_rook_that_weighs,
    removal_without_a_place, two_directories_without_a_disk,
};
pub use rook::{with_old_rook, with_rook, with_rook_that_hydrates, with_rook_that_migrates};
pub use shape::{Kind, PoolShape, REWEIGHT, Shape, cluster, fsid};
pub use worlds::{
    erasure_coded, on_a_host_mapping, replicated, replicated_as, three_apart, three_to_do, to_be_encrypted,
    to_be_plain, twelve, two_of_a_kind, two_on_a_host, two_share_a_pg, without_serial_numbers,
};

pub use crate::sim::by_person::{THEIR_BACKFILLS, THEIR_WEIGHT};
