//! An OSD in a directory, searched like the others: its id is recreated on an available disk.

use osd_migrate_core::sim::{Around, Happening, World, example};

use super::search::Search;
use super::{OURS, explore, explored, has_time, nothing, with_the_osd};

/// The available disk.
const DISK: &str = "disk-new";

/// Returns the faults that happen by themselves.
fn spontaneous(world: &World) -> Vec<Happening> {
    let mut menu = super::spontaneous(world);
    let lit = world.kube.nodes.iter().filter(|(_, node)| node.ready).map(|(node, _)| node);
    menu.extend(lit.flat_map(|node| world.inventory_jobs_at_work(node)).map(Happening::InventoryJobDies));
    menu
}

/// Returns what people and Rook do to the OSD, to its destination disk, and to its directory.
pub(super) fn people(world: &World) -> Vec<Happening> {
    let mut menu = vec![
        Happening::DiskSwapped(DISK.to_owned()),
        Happening::Unconfirmed,
        Happening::Unselected,
        Happening::OthersFence,
        Happening::FlagSet,
        Happening::OperatorUp,
        Happening::PersonOuts(OURS),
        Happening::PersonReweighs(OURS),
    ];
    let (disk, below) = (&world.disks[DISK], &world.disks["disk-0"]);
    if disk.held_by.is_none() && !world.is_run(disk) {
        // A person who writes to a disk opens it exclusively too.
        menu.extend([Happening::DiskOverwritten(DISK.to_owned()), Happening::DiskFormatted(DISK.to_owned())]);
    }
    if below.directory().is_some() && !world.is_run(below) {
        menu.push(Happening::DirectoryReplaced("disk-0".to_owned()));
    }
    menu.extend(with_the_osd(world, disk));
    menu
}

/// Returns all of it except changes around the OSDs, which are the same for all strategies.
pub(super) fn everything(world: &World) -> Vec<Happening> {
    let mut menu = spontaneous(world);
    menu.extend(people(world));
    menu
}

fn around_too(world: &World) -> Vec<Happening> {
    let mut menu = everything(world);
    menu.extend(Around::ALL.map(|what| Happening::Around(what, true)));
    menu
}

#[test]
fn directory_osd_survives_a_fault_of_any_kind() {
    explore("in a directory", example::in_directory, everything, (1, 0, 0));
}

#[test]
fn directory_osd_survives_a_freeze() {
    explore("in a directory", example::in_directory, nothing, (0, 1, 0));
    let late = Search::new("in a directory, frozen late", example::in_directory, nothing, (0, 1, 0));
    explored(&Search { freezes_late: true, ..late });
}

#[test]
fn directory_osd_wider_if_there_is_time() {
    if has_time() {
        explore("in a directory", example::in_directory, around_too, (1, 0, 0));
        explore("in a directory", example::in_directory, everything, (1, 0, 1));
        explore("in a directory", example::in_directory, spontaneous, (1, 1, 0));
        let late = Search::new("in a directory, frozen late", example::in_directory, people, (1, 1, 0));
        explored(&Search { freezes_late: true, ..late });
    }
}
