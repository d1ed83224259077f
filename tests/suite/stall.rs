//! Causes of a stalled backfill or emptying, by the observation.

use osd_migrate::domain::observation::Observation;
use osd_migrate::domain::osd::OsdId;
use osd_migrate::domain::stall;

use crate::support::build::{observation, pg_id, states};

/// Returns an observation in which one PG finds an OSD too full, with the OSDs that the PG is to get.
fn too_full() -> (Observation, OsdId, Vec<OsdId>) {
    let mut seen = observation();
    let pg = seen.ceph.pgs.values_mut().next().unwrap();
    pg.state = states("active+remapped+backfill_toofull");
    let up: Vec<_> = pg.up.iter().copied().collect();
    (seen, up[0], up)
}

#[test]
fn stall_by_backfill_toofull_names_the_full_osds_and_their_usage() {
    let (mut seen, osd, up) = too_full();
    let other = seen.ceph.slots.keys().find(|osd| !up.contains(osd)).copied().unwrap();
    seen.ceph.backfill_full.osds = [(up[1], 9234), (other, 9900)].into();
    let text = stall::cause(osd, &seen);
    let expected =
        format!("(active+remapped+backfill_toofull): {} is 92.3 % full (backfillfull_ratio 90.0 %)", up[1]);
    assert!(text.contains(&expected), "{text}");
    assert!(!text.contains(&other.to_string()) && !text.contains("one of"), "{text}");
    seen.ceph.backfill_full.osds.insert(up[2], 9000);
    let text = stall::cause(osd, &seen);
    assert!(text.contains(&format!("{} is 92.3 % full, {} is 90.0 % full (", up[1], up[2])), "{text}");
}

/// Checks an OSD that a PG would make too full: it is below the ratio itself.
#[test]
fn stall_by_backfill_toofull_below_the_ratio_names_all_osds_of_the_pgs() {
    let (seen, osd, up) = too_full();
    let all: Vec<_> = up.iter().map(ToString::to_string).collect();
    let text = stall::cause(osd, &seen);
    assert!(text.contains(&format!(": one of {}. See: ceph osd df", all.join(", "))), "{text}");
}

#[test]
fn recovery_that_comes_first_is_named_with_its_state() {
    let mut seen = observation();
    let osd = *seen.ceph.slots.keys().next().unwrap();
    let leaving = [osd].into();
    assert_eq!((stall::waits_for(&leaving, &seen), stall::held_up(&leaving, &seen)), (None, None));
    let (id, pg) = seen.ceph.pgs.iter_mut().find(|(_, pg)| !pg.is_on(osd)).unwrap();
    let id = *id;
    (pg.state, pg.degraded) = (states("active+recovering+degraded"), 5);
    let state = "active+recovering+degraded".to_owned();
    assert_eq!(stall::waits_for(&leaving, &seen), Some((id, state)));
    assert_eq!(stall::held_up(&leaving, &seen), None, "no PG waits for its turn");
    let (own, pg) = seen.ceph.pgs.iter_mut().find(|(_, pg)| pg.is_on(osd)).unwrap();
    let own = *own;
    pg.state = states("active+remapped+backfill_wait");
    let text = stall::held_up(&leaving, &seen).unwrap();
    assert_eq!(
        text,
        format!("Ceph recovers other data first, for example PG {id} (active+recovering+degraded)")
    );
    // A PG that only leaves the OSD is the move itself.
    let (_, pg) = seen.ceph.pgs.iter_mut().find(|(id, pg)| **id != own && pg.is_on(osd)).unwrap();
    pg.state = states("active+remapped+backfilling");
    assert_eq!(stall::waits_for(&leaving, &seen), None);
    assert_eq!(stall::held_up(&leaving, &seen), Some(text));
}

/// Checks reservations, which are of single OSDs: PGs of other OSDs keep none that the waiting PG needs.
#[test]
fn backfill_of_other_osds_holds_up_no_waiting_pg() {
    let with = |found: &[(u32, &str)]| {
        let mut seen = observation();
        for (n, state) in found {
            seen.ceph.pgs.get_mut(&pg_id(*n)).unwrap().state = states(state);
        }
        stall::held_up(&[OsdId(0)].into(), &seen)
    };
    let (waits, moves) = ("active+remapped+backfill_wait", "active+remapped+backfilling");
    let own = (0, waits);
    assert_eq!(with(&[own, (7, moves)]), None, "PG 7 is on osd.1, osd.3 and osd.5");
    let names =
        |text: Option<String>, n: u32| text.is_some_and(|text| text.contains(&format!("{} (", pg_id(n))));
    assert!(names(with(&[own, (3, moves), (7, moves)]), 3), "PG 3 is on osd.4, as PG 0 is");
    // PG 5 waits for PG 7, and may keep a reservation of osd.2 meanwhile.
    assert!(names(with(&[own, (5, waits), (7, moves)]), 7));
    assert_eq!(with(&[own, (5, "active+clean"), (7, moves)]), None);
}
