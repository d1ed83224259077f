//! Options of Ceph with which recovery is faster while OSDs are emptied or refilled, if the owner asks for
//! that.
//!
//! An option that has a value is its owner's and stays: only options without one are set, and removed
//! afterwards. See `docs/development/adr/0039-recovery.md`.

use std::collections::BTreeSet;

use super::while_data_moves::WhileDataMoves;
use crate::domain::act::{Act, CephAct};
use crate::domain::expect;
use crate::domain::guard::{Guard, is_out, passes};
use crate::domain::ledger::FastRecovery;
use crate::domain::next::{Next, Saving};
use crate::domain::observation::{Observation, Releases, Slot};
use crate::domain::policy::Recovery;
use crate::domain::recovery::{OpQueue, RecoveryConfig, RecoveryOptions};
use crate::domain::release;
use crate::domain::view::View;

const CHANGE: WhileDataMoves = WhileDataMoves { is_wanted, change, note, restore };

/// Sets the options before the first act that makes data move, and removes them at the end of a run.
pub(crate) fn around(next: Next, view: View<'_>) -> Next {
    CHANGE.around(next, view)
}

fn is_wanted(view: View<'_>) -> bool {
    view.policy.recovery == Recovery::Fast
}

/// Returns whether to ask which options the config database has.
pub(crate) fn is_asked_for(view: View<'_>) -> bool {
    is_wanted(view) || view.ledger.run.recovery.is_some()
}

/// Returns the next step until the options are set that had no value; `None` if they are.
///
/// They are saved first. If it is not known which have a value, nothing is done.
fn change(view: View<'_>) -> Option<Next> {
    let config = view.seen.ceph.recovery.as_ref()?;
    let Some(ours) = &view.ledger.run.recovery else { return begin(config, view) };
    let missing = ours.options.that(|option, _| !config.has(option));
    let is_set_again = !ours.seen || is_out(Guard::RecoveryOfOthersStays);
    if is_set_again && !missing.is_empty() { Some(set(missing)) } else { note(view) }
}

/// Saves the options that have no value, then sets them.
fn begin(config: &RecoveryConfig, view: View<'_>) -> Option<Next> {
    let queue = config.queue.or_else(|| release_of_osds(view.seen).map(OpQueue::of_release))?;
    let options = RecoveryOptions::fast(queue).that(|option, _| expect::to_set_option(config, option));
    if options.is_empty() {
        return None;
    }
    if passes(Guard::RecoverySavedFirst, false) {
        return Some(set(options));
    }
    Some(save(Some(FastRecovery { options, seen: false }), Saving::FastRecovery, view))
}

/// Returns the release of all OSDs that are up; `None` if they are of several, or it is not known.
fn release_of_osds(seen: &Observation) -> Option<u32> {
    let major = |slot: &Slot| Some(release::numbers(&slot.metadata.as_ref()?.ceph_version)?.0);
    let up = seen.ceph.slots.values().filter(|slot| slot.up);
    let mut releases: BTreeSet<Option<u32>> = up.map(major).collect();
    let first = releases.pop_first()?;
    first.filter(|_| releases.is_empty() && seen.ceph.releases == Releases::One)
}

/// Saves that the options were observed as set, or that another client changed one of them.
///
/// Such an option is the other client's from then on.
fn note(view: View<'_>) -> Option<Next> {
    let ours = view.ledger.run.recovery.as_ref()?;
    let config = view.seen.ceph.recovery.as_ref()?;
    let options = ours.options.that(|option, value| {
        let is_not_set_yet = !ours.seen && !config.has(option);
        passes(Guard::RecoveryOfOthersStays, config.has_value(option, value) || is_not_set_yet)
    });
    if options != ours.options {
        let left = FastRecovery { options, seen: ours.seen };
        return Some(save(Some(left), Saving::FastRecoveryChangedExternally, view));
    }
    let is_set = options.all(|option, value| config.has_value(option, value));
    (is_set && !ours.seen)
        .then(|| save(Some(FastRecovery { options, seen: true }), Saving::FastRecoverySet, view))
}

/// Returns the next step until the options of osd-migrate are removed and their entry cleared; `None` if that
/// is done, or it is not known which options have a value.
pub(crate) fn restore(view: View<'_>) -> Option<Next> {
    let ours = view.ledger.run.recovery.as_ref()?;
    let config = view.seen.ceph.recovery.as_ref()?;
    let set = ours
        .options
        .that(|option, value| config.has(option) && expect::to_remove_option(config, option, value));
    Some(if set.is_empty() {
        save(None, Saving::FastRecoveryRestored, view)
    } else {
        Next::Do(Act::Ceph(CephAct::UnsetFastRecovery { options: set }))
    })
}

/// Returns whether an option is set that osd-migrate set.
pub(crate) fn is_changed(view: View<'_>) -> bool {
    let (ours, config) = (view.ledger.run.recovery.as_ref(), view.seen.ceph.recovery.as_ref());
    ours.zip(config)
        .is_some_and(|(ours, config)| !ours.options.all(|option, value| !config.has_value(option, value)))
}

fn set(options: RecoveryOptions) -> Next {
    Next::Do(Act::Ceph(CephAct::SetFastRecovery { options }))
}

fn save(recovery: Option<FastRecovery>, why: Saving, view: View<'_>) -> Next {
    let mut ledger = view.ledger.clone();
    ledger.run.recovery = recovery;
    Next::Save { ledger, osd: None, why }
}
