//! Upmaps that a purge removes: they are restored, except those that were replaced externally meanwhile.

use osd_migrate_core::domain::guard::Guard;
use osd_migrate_core::domain::observation::SlotState;
use osd_migrate_core::domain::osd::{OsdId, Upmap};
use osd_migrate_core::sim::example::{Kind, PoolShape, Shape};
use osd_migrate_core::sim::{Agent, Happening, Stage, Stumble, World};

use super::search::Search;
use super::{OURS, explored, needs};

fn upmap(to: u32) -> Upmap {
    Upmap { pg: "1.0".parse().unwrap(), mappings: vec![(OsdId(1), OsdId(to))] }
}

/// Returns a world with one OSD to migrate alongside two others on its host.
///
/// CRUSH maps the PG to the second OSD, an upmap to the first.
fn world() -> World {
    let pool = PoolShape { pgs: 1, size: 3, min_size: 2, data_chunks: None, gib: 1 };
    let hosts = vec![vec![Kind::ByHand, Kind::Raw, Kind::Raw], vec![Kind::Raw], vec![Kind::Raw]];
    let mut world = Shape { hosts, pools: vec![pool], disk_gib: 6 }.world();
    world.placements.values_mut().for_each(|placement| placement.home[0] = OsdId(1));
    world.ceph.upmaps.push(upmap(0));
    world
}

/// Returns one purge of the id, by a person or by a ceph-volume that bypasses the shim.
///
/// The balancer then finds another place for the PG.
pub(super) fn purges(world: &World) -> Vec<Happening> {
    if world.ceph.upmaps.is_empty() {
        return vec![Happening::Balanced(upmap(2))];
    }
    let issued = |(_, agent): &(&String, &Agent)| {
        matches!(agent.stage, Stage::Registered { .. } | Stage::Labelled { .. })
    };
    let rolls_back =
        |(job, _): (&String, &Agent)| Happening::AgentStumbles(job.clone(), Stumble::RollsBackPastUs);
    let mut menu: Vec<Happening> = world.agents.iter().filter(issued).map(rolls_back).collect();
    let is_held = world.disks["disk-0"].held_by.is_some();
    let slot = world.ceph.slots.get(&OURS).filter(|slot| !slot.up);
    if slot
        .is_some_and(|slot| slot.state == SlotState::New || (slot.state == SlotState::Destroyed && !is_held))
    {
        menu.push(Happening::PersonPurges(OURS));
    }
    menu
}

pub(super) fn searched() -> Search {
    Search::new("upmaps, purges and the balancer", world, purges, (2, 0, 0))
}

#[test]
fn purged_upmaps_are_restored_unless_replaced_externally() {
    explored(&searched());
}

#[test]
fn upmaps_need_their_guards() {
    needs(searched, &[Guard::UpmapLossSavedFirst, Guard::UpmapsOfOthersStay]);
}
