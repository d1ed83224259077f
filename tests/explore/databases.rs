//! An OSD whose database is to be on another disk of its node, searched like the others.

use osd_migrate_core::domain::classify::Class;
use osd_migrate_core::domain::osd::OsdId;
use osd_migrate_core::sim::example::{self, DATABASE_DISK};
use osd_migrate_core::sim::{Happening, World};

use super::search::Search;
use super::{explore, explored, has_time, nothing, promises};

/// Returns the hardware faults, including those of the database disk as long as it is blank.
fn spontaneous(world: &World) -> Vec<Happening> {
    let mut menu = super::spontaneous(world);
    let lit = world.kube.nodes.iter().filter(|(_, node)| node.ready).map(|(node, _)| node);
    menu.extend(lit.flat_map(|node| world.inventory_jobs_at_work(node)).map(Happening::InventoryJobDies));
    if world.databases.is_empty() {
        menu.push(Happening::DiskSwapped(DATABASE_DISK.to_owned()));
    }
    menu
}

fn everything(world: &World) -> Vec<Happening> {
    let mut menu = super::everything(world);
    menu.extend(spontaneous(world));
    menu
}

#[test]
fn database_worlds_have_osds_to_migrate_and_conforming_ones() {
    for (world, count) in [(example::to_have_a_database(), 1), (example::two_to_have_databases(), 2)] {
        let of = |osd| promises::class(&world, OsdId(osd));
        assert!((0..count).all(|osd| of(osd).migrates().is_some()), "{count}");
        assert!((count..count + 2).all(|osd| of(osd) == Class::Conforming), "{count}");
    }
}

pub(super) const SEARCHED: &str = "to have a database, a fault";

pub(super) fn searched() -> Search {
    Search::new(SEARCHED, example::to_have_a_database, spontaneous, (1, 0, 0))
}

#[test]
fn osd_gets_a_database_despite_a_fault_of_any_kind() {
    explored(&searched());
}

#[test]
fn osd_gets_a_database_despite_a_freeze() {
    explore("to have a database", example::to_have_a_database, nothing, (0, 1, 0));
}

#[test]
fn databases_wider_if_there_is_time() {
    if has_time() {
        explore("to have a database", example::to_have_a_database, everything, (1, 0, 1));
        explore("two to have databases", example::two_to_have_databases, spontaneous, (1, 0, 0));
        explore("two to have databases", example::two_to_have_databases, nothing, (0, 1, 0));
    }
}
