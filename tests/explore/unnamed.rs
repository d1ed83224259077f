//! Disks without serial numbers, all of one size: only their content, and for blank disks their place,
//! distinguishes them.

use osd_migrate_core::domain::guard::Guard;
use osd_migrate_core::sim::{Happening, World, example};

use super::search::Search;
use super::{explored, needs, nothing};

pub(super) const PULLED: &str = "without serial numbers, disks change places";

/// Returns moves of the disk of the OSD in progress.
///
/// The disk changes places with that of another OSD or with a blank one, or is pulled out.
fn moved(world: &World) -> Vec<Happening> {
    let there = world.disks.contains_key("disk-0");
    let others = [Some("disk-1"), Some("disk-blank"), None].into_iter().filter(|_| there);
    others.map(|other| Happening::DiskMoved("disk-0".to_owned(), other.map(str::to_owned))).collect()
}

pub(super) fn disks_move() -> Search {
    Search::new(PULLED, example::without_serial_numbers, moved, (1, 0, 0))
}

#[test]
fn osd_on_a_disk_without_serial_number_is_migrated() {
    explored(&Search::new("without serial numbers", example::without_serial_numbers, nothing, (0, 0, 0)));
}

/// Checks that the other disk is never wiped, whatever disk is in which place.
#[test]
fn disks_without_serial_numbers_may_change_places() {
    explored(&disks_move());
    needs(disks_move, &[Guard::BlankByPlace]);
}
