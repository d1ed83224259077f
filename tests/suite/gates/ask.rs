//! The gates before and after the stop of osd.0, and changes of the small world that close them.

use osd_migrate::domain::gate::{self, Gate};
use osd_migrate::domain::ledger::{Record, Run};
use osd_migrate::domain::policy::{Accepted, Missing};

use crate::support::build::{BY_HAND, World, members, node_of};

pub(super) const OURS: &str = "osd-migrate-test";

/// Returns the state of a run that set the fence.
pub(super) fn fenced(world: &World) -> Run {
    Run { fence: Some(OURS.to_owned()), ..world.ledger.run.clone() }
}

/// Returns the gate before osd.0 is recorded and stopped.
pub(super) fn before(world: &World) -> Gate {
    gate::before_stop(BY_HAND, &node_of(BY_HAND), &fenced(world), &Accepted::default(), &world.seen)
}

/// Returns the gate before osd.0, stopped by osd-migrate, is destroyed and wiped.
pub(super) fn after(world: &World) -> Gate {
    let record: &Record = &world.ledger.records[&BY_HAND];
    gate::after_stop(record, &world.ledger.run, &Missing::new(), &world.seen)
}

pub(super) fn changed(change: impl FnOnce(&mut World)) -> Gate {
    before(&World::new().with(change))
}

/// A PG that maps to osd.0, and one that does not.
pub(super) const WITH: u32 = 0;
pub(super) const WITHOUT: u32 = 1;

pub(super) fn health(w: &mut World, code: &str) {
    w.seen.ceph.health.insert(code.to_owned());
}

#[test]
fn gates_before_and_after_stop_pass_in_the_small_world() {
    assert!(members(WITH).contains(&BY_HAND) && !members(WITHOUT).contains(&BY_HAND));
    assert_eq!(before(&World::new()), Gate::Open);
    assert_eq!(after(&World::stopped(BY_HAND)), Gate::Open);
    assert_eq!(after(&World::destroyed(BY_HAND)), Gate::Open);
}
