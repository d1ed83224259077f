//! Upmaps that a purge takes: put back, but for those that others replaced meanwhile.

use osd_migrate::domain::observation::SlotState;
use osd_migrate::domain::osd::{OsdId, PgId, Upmap};
use osd_migrate::sim::{Happening, Stage, Stumble, World, example};

use super::search::Search;
use super::{OURS, explored};

/// The id is purged, by a person or by ceph-volume past the stand-in; the balancer finds another place for its PG.
pub(super) fn purges(world: &World) -> Vec<Happening> {
    let mut menu = Vec::new();
    for (job, agent) in &world.agents {
        if matches!(agent.stage, Stage::Claimed { .. } | Stage::Labelled { .. }) {
            menu.push(Happening::AgentStumbles(job.clone(), Stumble::RollsBackPastUs));
        }
    }
    let is_free = world.disks["disk-0"].held_by.is_none();
    match world.ceph.slots.get(&OURS) {
        Some(slot) if slot.state == SlotState::Destroyed && !is_free => {}
        Some(slot) if !slot.up && slot.state != SlotState::Exists => menu.push(Happening::PersonPurges(OURS)),
        Some(_) | None => {}
    }
    let elsewhere = Upmap { pg: PgId("1.1".to_owned()), mappings: vec![(OsdId(1), OsdId(2))] };
    if world.ceph.upmaps.is_empty() {
        menu.push(Happening::Balanced(elsewhere));
    }
    menu
}

pub(super) fn searched() -> Search {
    Search::new("upmaps, purges and the balancer", example::upmapped, purges, (2, 0, 0))
}

#[test]
fn upmaps_that_a_purge_took_come_back_unless_others_took_their_place() {
    explored(&searched());
}
