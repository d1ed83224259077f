//! The door of new OSDs, searched the same way.

use osd_migrate::sim::example;

use super::{explore, nothing};

#[test]
fn one_more_disk() {
    explore("one more disk", example::one_more, nothing, (0, 0, 0));
}

#[test]
fn from_nothing() {
    explore("from nothing", example::empty, nothing, (0, 0, 0));
}
