//! OSDs that are encrypted, or are to be, searched like the others: destroying the slot also removes the
//! OSD's dmcrypt key.

use osd_migrate_core::domain::classify::Class;
use osd_migrate_core::domain::guard::Guard;
use osd_migrate_core::domain::osd::OsdId;
use osd_migrate_core::sim::example;

use super::search::Search;
use super::{everything, explore, explored, has_time, needs, nothing, promises, spontaneous};

pub(super) const ON_A_HOST_MAPPING: &str = "alongside an OSD on a mapping of its host";

pub(super) fn on_a_host_mapping() -> Search {
    Search::new(ON_A_HOST_MAPPING, example::on_a_host_mapping, nothing, (0, 0, 0))
}

#[test]
fn osd_on_a_host_mapping_is_not_touched() {
    assert_eq!(promises::class(&example::on_a_host_mapping(), OsdId(1)), Class::Conforming);
    explored(&on_a_host_mapping());
    needs(on_a_host_mapping, &[Guard::OnlyKnownEncryption]);
}

#[test]
fn encryption_worlds_have_one_osd_to_migrate() {
    for (world, kind) in [(example::to_be_plain(), "encrypted"), (example::to_be_encrypted(), "by hand")] {
        let class = |osd| promises::class(&world, OsdId(osd));
        assert!(class(0).migrates().is_some(), "{kind}: {}", class(0));
        assert_eq!((class(1), class(2)), (Class::Conforming, Class::Conforming), "{kind}");
    }
}

#[test]
fn encrypted_to_plain_survives_a_fault_of_any_kind() {
    explore("encrypted to plain", example::to_be_plain, spontaneous, (1, 0, 0));
}

#[test]
fn plain_to_encrypted_survives_a_fault_of_any_kind() {
    explore("plain to encrypted", example::to_be_encrypted, everything, (1, 0, 0));
}

#[test]
fn plain_to_encrypted_survives_a_freeze() {
    explore("plain to encrypted", example::to_be_encrypted, nothing, (0, 1, 0));
}

#[test]
fn encryption_wider_if_there_is_time() {
    if has_time() {
        explore("encrypted to plain", example::to_be_plain, everything, (1, 0, 1));
        explore("encrypted to plain", example::to_be_plain, everything, (1, 1, 0));
        explore("plain to encrypted", example::to_be_encrypted, everything, (1, 0, 1));
        explore("plain to encrypted", example::to_be_encrypted, everything, (1, 1, 0));
    }
}
