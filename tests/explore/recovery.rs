//! Options with which recovery is faster while OSDs are migrated, and a person who sets and removes one.

use osd_migrate_core::domain::guard::Guard;
use osd_migrate_core::domain::policy::{Policy, Recovery};
use osd_migrate_core::domain::recovery::RecoveryOption;
use osd_migrate_core::sim::{Happening, World, example};

use super::search::Search;
use super::while_data_moves::{self, with_a_late_freeze, with_faults};
use super::{explored, needs};

pub(super) const FAST: &str = "fast recovery";
pub(super) const OF_A_PERSON: &str = "fast recovery, a fault";

fn policy() -> Policy {
    Policy { recovery: Recovery::Fast, ..Policy::default() }
}

/// Returns what a person does to `osd_max_backfills`: sets another value than osd-migrate, or removes what is
/// there.
fn by_a_person(world: &World) -> Vec<Happening> {
    let values = world.ceph.recovery.as_ref().map(|config| &config.values.0);
    let value = values.and_then(|values| values.get(&RecoveryOption::OsdMaxBackfills));
    let sets = value.is_none_or(|value| value != example::THEIR_BACKFILLS);
    let removes = value.map(|_| Happening::MaxBackfills(false));
    sets.then_some(Happening::MaxBackfills(true)).into_iter().chain(removes).collect()
}

fn everything(world: &World) -> Vec<Happening> {
    with_faults(by_a_person, world)
}

pub(super) fn searches() -> Vec<Search> {
    while_data_moves::searches(policy, (FAST, OF_A_PERSON), everything)
}

fn search(name: &'static str) -> Search {
    searches().into_iter().find(|search| search.name == name).unwrap()
}

#[test]
fn recovery_options_are_as_before_whatever_goes_wrong() {
    explored(&search(OF_A_PERSON));
}

#[test]
fn recovery_options_are_as_before_although_a_runner_freezes() {
    explored(&with_a_late_freeze("fast recovery, a late freeze", by_a_person, &search(OF_A_PERSON)));
}

#[test]
fn recovery_options_need_their_guards() {
    needs(|| search(FAST), &[Guard::RecoverySavedFirst]);
    needs(|| search(OF_A_PERSON), &[Guard::RecoveryOfOthersStays]);
}
