//! noscrub and nodeep-scrub while OSDs are migrated, and a person who sets and unsets noscrub.

use osd_migrate_core::domain::guard::Guard;
use osd_migrate_core::domain::policy::Policy;
use osd_migrate_core::sim::{Happening, World, example};

use super::search::Search;
use super::while_data_moves::{self, with_a_late_freeze, with_faults};
use super::{OURS, explored, needs};

pub(super) const WAIT: &str = "scrubs wait";
pub(super) const OF_A_PERSON: &str = "scrubs wait, a fault";

fn policy() -> Policy {
    Policy { no_scrub: true, ..Policy::default() }
}

/// Returns what a person does to noscrub.
///
/// Nothing in Ceph shows who set it. So a person who sets it in the seconds between the intent and the
/// command is left out, and in the seconds between the restore and the save of it. Before both, the OSD is
/// the old one and has no backup.
fn by_a_person(world: &World) -> Vec<Happening> {
    let is_set = world.ceph.flags.contains("noscrub");
    let is_old = world.ceph.slots.get(&OURS).is_some_and(|slot| slot.fsid == Some(example::fsid(OURS, 0)));
    let is_possible = is_set || (is_old && world.kube.backups.is_empty());
    is_possible.then_some(Happening::NoScrub(!is_set)).into_iter().collect()
}

fn everything(world: &World) -> Vec<Happening> {
    with_faults(by_a_person, world)
}

pub(super) fn searches() -> Vec<Search> {
    while_data_moves::searches(policy, (WAIT, OF_A_PERSON), everything)
}

fn search(name: &'static str) -> Search {
    searches().into_iter().find(|search| search.name == name).unwrap()
}

#[test]
fn scrub_flags_are_as_before_whatever_goes_wrong() {
    explored(&search(OF_A_PERSON));
}

#[test]
fn scrub_flags_are_as_before_although_a_runner_freezes() {
    explored(&with_a_late_freeze("scrubs wait, a late freeze", by_a_person, &search(OF_A_PERSON)));
}

#[test]
fn scrub_flags_need_their_guards() {
    needs(|| search(WAIT), &[Guard::ScrubSavedFirst]);
    needs(|| search(OF_A_PERSON), &[Guard::ScrubOfOthersStays]);
}
