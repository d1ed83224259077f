//! The promises for options with which recovery is faster, which people set and remove, too.

use osd_migrate_core::domain::act::{Act, CephAct};
use osd_migrate_core::domain::next::Next;
use osd_migrate_core::domain::recovery::RecoveryOption;
use osd_migrate_core::sim::example;

use super::super::state::State;
use super::Broken;

/// Checks P9 and P6: an option is in the ledger before it is set, and a person's value stays.
pub(super) fn changed(before: &State, next: &Next, after: &State) -> Option<Broken> {
    let (was, is) = (backfills(before), backfills(after));
    let ours = before.ledger.run.recovery.as_ref();
    if before.world.by_person.max_backfills == Some(true) && was != is {
        return Some(format!("P6: osd_max_backfills, which a person had set, is {is:?} now"));
    }
    let is_set_again = was.is_none() && is.is_some() && ours.is_some_and(|ours| ours.seen);
    if before.world.by_person.max_backfills == Some(false) && is_set_again {
        return Some("P6: osd_max_backfills was set again after a person had removed it".to_owned());
    }
    let Next::Do(Act::Ceph(CephAct::SetFastRecovery { options })) = next else { return None };
    let is_saved = ours.is_some_and(|ours| options.all(|option, _| ours.options.0.contains_key(&option)));
    let is_set = before.world.ceph.recovery != after.world.ceph.recovery;
    (is_set && !is_saved).then(|| format!("P9: {options} was set, and is not in the ledger"))
}

fn backfills(state: &State) -> Option<&String> {
    state.world.ceph.recovery.as_ref()?.values.0.get(&RecoveryOption::OsdMaxBackfills)
}

/// Checks P9 at an end of a run: the options are as people left them.
pub(crate) fn at_an_end(state: &State) -> Option<Broken> {
    let values = state.world.ceph.recovery.as_ref().map(|config| config.values.clone())?;
    let by_person = state.world.by_person.max_backfills == Some(true);
    let is_theirs = |option, value: &str| {
        by_person && option == RecoveryOption::OsdMaxBackfills && value == example::THEIR_BACKFILLS
    };
    if !values.all(is_theirs) || values.is_empty() == by_person {
        return Some(format!("P9: the options at the end are {values}"));
    }
    state
        .ledger
        .run
        .recovery
        .is_some()
        .then(|| "P9: options about recovery are still in the ledger".to_owned())
}
