//! OSDs that are encrypted, or are to be, searched the same way: what opens one goes when its slot is destroyed.

use osd_migrate::domain::classify::Class;
use osd_migrate::domain::osd::OsdId;
use osd_migrate::sim::example;

use super::{everything, explore, has_time, machines, nothing, promises};

#[test]
fn the_worlds_have_one_osd_to_migrate() {
    for (world, made) in [(example::to_be_plain(), "encrypted"), (example::to_be_encrypted(), "by hand")] {
        let class = |osd| promises::class(&world, OsdId(osd));
        assert!(class(0).migrates().is_some(), "{made}: {}", class(0));
        assert_eq!((class(1), class(2)), (Class::Conforming, Class::Conforming), "{made}");
    }
}

#[test]
fn encrypted_to_plain_a_fault_of_any_kind() {
    explore("encrypted to plain", example::to_be_plain, machines, (1, 0, 0));
}

#[test]
fn plain_to_encrypted_a_fault_of_any_kind() {
    explore("plain to encrypted", example::to_be_encrypted, everything, (1, 0, 0));
}

#[test]
fn plain_to_encrypted_a_freeze() {
    explore("plain to encrypted", example::to_be_encrypted, nothing, (0, 1, 0));
}

#[test]
fn encryption_wider_where_there_is_time() {
    if has_time() {
        explore("encrypted to plain", example::to_be_plain, everything, (1, 0, 1));
        explore("encrypted to plain", example::to_be_plain, everything, (1, 1, 0));
        explore("plain to encrypted", example::to_be_encrypted, everything, (1, 0, 1));
        explore("plain to encrypted", example::to_be_encrypted, everything, (1, 1, 0));
    }
}
