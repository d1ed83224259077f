//! The promises for noscrub and nodeep-scrub, which people set and unset, too.

use osd_migrate_core::domain::act::{Act, CephAct};
use osd_migrate_core::domain::next::Next;
use osd_migrate_core::sim::World;

use super::super::state::{Done, State};
use super::Broken;

/// Checks P9 and P6: the flags are in the ledger before they are set, and a person's flag stays.
pub(super) fn changed(before: &State, next: &Next, done: &Done) -> Option<Broken> {
    if done.refused.is_some() {
        return None;
    }
    let (ours, person) = (before.ledger.run.scrub, before.world.by_person.noscrub);
    if let Next::Do(Act::Ceph(CephAct::SetNoScrub { flags })) = next {
        let is_saved = ours.is_some_and(|ours| flags.without(ours.flags).is_none());
        if !is_saved {
            return Some(format!("P9: {flags} was set, and is not in the ledger"));
        }
        let is_set_again = person == Some(false) && flags.noscrub && ours.is_some_and(|ours| ours.seen);
        return is_set_again.then(|| "P6: noscrub was set again after a person had unset it".to_owned());
    }
    let Next::Do(Act::Ceph(CephAct::UnsetNoScrub { flags })) = next else { return None };
    let is_theirs = person == Some(true) && flags.noscrub;
    is_theirs.then(|| "P6: noscrub was unset, which a person had set".to_owned())
}

/// Returns a flag of the cluster that is not about scrubs.
pub(super) fn other_flag(world: &World) -> Option<&str> {
    world.ceph.flags.iter().map(String::as_str).find(|flag| !["noscrub", "nodeep-scrub"].contains(flag))
}

/// Checks P9 at an end of a run: the flags are as people left them.
pub(crate) fn at_an_end(state: &State) -> Option<Broken> {
    let flags = &state.world.ceph.flags;
    let by_person = state.world.by_person.noscrub == Some(true);
    if flags.contains("noscrub") != by_person || flags.contains("nodeep-scrub") {
        return Some(format!("P9: the flags at the end are {flags:?}"));
    }
    state.ledger.run.scrub.is_some().then(|| "P9: the flags of scrubs are still in the ledger".to_owned())
}
