//! `noscrub` and `nodeep-scrub`: Ceph begins no scrub while OSDs are migrated, if the owner asks for that.
//!
//! The flags apply to the whole cluster, and people set them too. See `docs/development/adr/0036-scrubs.md`.

use super::while_data_moves::WhileDataMoves;
use crate::domain::act::{Act, CephAct};
use crate::domain::guard::{Guard, is_out, passes};
use crate::domain::ledger::NoScrub;
use crate::domain::next::{Next, Saving};
use crate::domain::scrub::ScrubFlags;
use crate::domain::view::View;

/// Health codes of PGs that were not scrubbed in time: Ceph then needs its scrubs more than the migration
/// needs the disks.
const LATE: [&str; 2] = ["PG_NOT_SCRUBBED", "PG_NOT_DEEP_SCRUBBED"];

const CHANGE: WhileDataMoves = WhileDataMoves { is_wanted, change, note, restore };

/// Sets the flags before the first act that makes data move, and unsets them at the end of a run.
///
/// They are also unset while PGs were not scrubbed in time.
pub(crate) fn around(next: Next, view: View<'_>) -> Next {
    CHANGE.around(next, view)
}

/// Returns whether scrubs are to wait now.
fn is_wanted(view: View<'_>) -> bool {
    view.policy.no_scrub && !LATE.iter().any(|code| view.seen.ceph.health.contains(*code))
}

/// Returns the next step until the flags are set that no other client has set; `None` if they are.
///
/// They are saved first.
fn change(view: View<'_>) -> Option<Next> {
    let Some(ours) = view.ledger.run.scrub else { return begin(view) };
    let missing = ours.flags.without(set_now(view));
    let is_set_again = !ours.seen || is_out(Guard::ScrubOfOthersStays);
    if is_set_again && !missing.is_none() { Some(set_flags(missing)) } else { note(view) }
}

/// Saves the flags that are unset, then sets them.
fn begin(view: View<'_>) -> Option<Next> {
    let unset = ScrubFlags::BOTH.without(set_now(view));
    if unset.is_none() {
        return None;
    }
    if passes(Guard::ScrubSavedFirst, false) {
        return Some(set_flags(unset));
    }
    let flags = if is_out(Guard::ScrubOfOthersStays) { ScrubFlags::BOTH } else { unset };
    Some(save(Some(NoScrub { flags, seen: false }), Saving::NoScrub, view))
}

/// Saves that the flags were observed as set, or that another client unset one of them since.
///
/// Such a flag is not set again, and if it is set later, it is another client's.
fn note(view: View<'_>) -> Option<Next> {
    let ours = view.ledger.run.scrub?;
    let left = ours.flags.and(set_now(view));
    match (ours.seen, left == ours.flags) {
        (true, true) | (false, false) => None,
        (false, true) => Some(save(Some(NoScrub { seen: true, ..ours }), Saving::NoScrubSet, view)),
        (true, false) if is_out(Guard::ScrubOfOthersStays) => None,
        (true, false) => {
            Some(save(Some(NoScrub { flags: left, seen: true }), Saving::NoScrubUnsetExternally, view))
        }
    }
}

/// Returns the next step until the flags of osd-migrate are unset and their entry cleared; `None` if that is
/// done.
pub(crate) fn restore(view: View<'_>) -> Option<Next> {
    let ours = view.ledger.run.scrub?;
    let set = ours.flags.and(set_now(view));
    Some(if set.is_none() {
        save(None, Saving::NoScrubRestored, view)
    } else {
        Next::Do(Act::Ceph(CephAct::UnsetNoScrub { flags: set }))
    })
}

/// Returns whether a flag is set that osd-migrate set.
pub(crate) fn is_changed(view: View<'_>) -> bool {
    view.ledger.run.scrub.is_some_and(|ours| !ours.flags.and(set_now(view)).is_none())
}

fn set_now(view: View<'_>) -> ScrubFlags {
    ScrubFlags::among(&view.seen.ceph.flags)
}

fn set_flags(flags: ScrubFlags) -> Next {
    Next::Do(Act::Ceph(CephAct::SetNoScrub { flags }))
}

fn save(scrub: Option<NoScrub>, why: Saving, view: View<'_>) -> Next {
    let mut ledger = view.ledger.clone();
    ledger.run.scrub = scrub;
    Next::Save { ledger, osd: None, why }
}
