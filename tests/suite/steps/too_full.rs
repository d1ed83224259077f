//! The end of an OSD with a PG for which an OSD has no space: only data that this OSD lacks is waited for.

use chrono::TimeDelta;
use osd_migrate::domain::ledger::Strategy;

use super::up::{noin_lifted, unfenced};
use super::*;

const TOO_FULL: &str = "active+remapped+backfill_toofull";

/// Returns the new OSD with all data, and PG 0, which is to be on these OSDs, and is served by those.
fn with_a_full_pg(up: [u32; 3], acting: [u32; 3]) -> World {
    let world = unfenced(noin_lifted(World::booted(OSD))).reported().pg_state(0, TOO_FULL);
    world.with(|w| (w.pg(0).up, w.pg(0).acting) = (up.map(OsdId).into(), acting.map(OsdId).into()))
}

#[test]
fn osd_is_not_finished_while_a_pg_of_it_lacks_space() {
    check!(with_a_full_pg([0, 2, 4], [2, 4, 5]).plan(), Next::Wait(Wait::ActiveClean { .. }));
    // A replica of the PG is missing, or objects of it are.
    let missing = || with_a_full_pg([0, 2, 5], [0, 2, 4]);
    let undersized = missing().with(|w| w.pg(0).acting.retain(|osd| *osd != OSD));
    let degraded = missing().with(|w| w.pg(0).degraded = 1);
    let recovery = missing().pg_state(0, "active+recovery_toofull+degraded");
    for world in [undersized, degraded, recovery] {
        check!(world.plan(), Next::Wait(Wait::ActiveClean { .. }));
    }
}

#[test]
fn osd_is_finished_while_another_osd_of_a_pg_lacks_space() {
    let moves = with_a_full_pg([0, 2, 5], [0, 2, 4]);
    check!(moves.plan(), Next::Save { why: Saving::Closing, .. });
    for other in ["+inconsistent", "+degraded", "+undersized"] {
        let state = format!("{TOO_FULL}{other}");
        check!(moves.clone().pg_state(0, &state).plan(), Next::Wait(Wait::ActiveClean { .. }));
    }
    // Statistics from before the boot prove nothing.
    let earlier = moves.clone().with(|w| w.pg(0).reported_epoch = Epoch(1));
    check!(earlier.plan(), Next::Wait(Wait::ActiveClean { .. }));
    // The old directory has a replica of the PG, and is deleted next.
    let in_directory = moves.with(|w| {
        let onto = w.record(OSD).evidence.as_ref().unwrap().device.clone();
        w.record(OSD).strategy = Strategy::Directory { path: "/data/osd0".to_owned(), onto };
        w.record(OSD).up_seen = Some((w.slot(OSD).up_from, w.seen.at));
        w.seen.at += TimeDelta::minutes(1);
    });
    check!(in_directory.plan(), Next::Wait(Wait::ActiveClean { .. }));
    assert_eq!(word(&in_directory.pg_state(0, "active+clean").plan()), Some("clear"));
}
