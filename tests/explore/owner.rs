//! An owner who fences the CephCluster alongside a running Rook, edits its device set, and lets a run follow.
//! Runs may come before the edit, and `fence` may be killed.

use std::borrow::Cow;

use chrono::{DateTime, Utc};

use osd_migrate_core::domain::guard::Guard;
use osd_migrate_core::domain::next::{FenceOutcome, Next, Summary};
use osd_migrate_core::domain::policy::{FenceCommand, Policy};
use osd_migrate_core::sim::{Happening, PvcChange, example};

use super::search::{Move, Search};
use super::state::State;
use super::{explored, needs, nothing};

pub(super) const FENCES: &str = "alongside Rook, the owner fences and edits";

/// Progress of the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) enum Owner {
    /// Nothing: this search has no such owner.
    #[default]
    Absent,
    /// `fence` is at work.
    Fences,
    /// `fence` was killed. Runs may come.
    Killed,
    /// `fence` has said that the fence is in force. Runs may come before the edit.
    Fenced,
    /// The device set is edited.
    Edited,
}

impl Owner {
    pub(crate) fn said(self) -> &'static str {
        match self {
            Self::Absent => "the owner does nothing",
            Self::Fences => "the owner types `fence` again",
            Self::Killed => "! `fence` is killed",
            Self::Fenced => "the owner reads that the fence is in force",
            Self::Edited => "the owner declares the device set encrypted",
        }
    }
}

impl State {
    /// Returns the policy of the runner: that of `fence` while it is at work.
    pub(crate) fn policy_now<'a>(&self, of_run: &'a Policy) -> Cow<'a, Policy> {
        match self.owner {
            Owner::Fences => {
                let until = DateTime::<Utc>::MAX_UTC;
                Cow::Owned(Policy { fence: Some(FenceCommand::Set { until }), ..Policy::default() })
            }
            Owner::Absent | Owner::Killed | Owner::Fenced | Owner::Edited => Cow::Borrowed(of_run),
        }
    }

    /// Returns what the owner does next, if nothing goes wrong.
    pub(crate) fn owner_next(&self, decided: &Next) -> Option<Owner> {
        let is_in_force =
            matches!(decided, Next::Finished(Summary { fence: Some(FenceOutcome::InForce { .. }), .. }));
        match self.owner {
            Owner::Fences => is_in_force.then_some(Owner::Fenced),
            Owner::Killed => Some(Owner::Fences),
            Owner::Fenced => Some(Owner::Edited),
            Owner::Absent | Owner::Edited => None,
        }
    }

    /// Returns what may happen to the owner now.
    pub(crate) fn owner_moves(&self, decided: &Next) -> Vec<Move> {
        let killed = (self.owner == Owner::Fences && self.left.faults > 0).then_some(Owner::Killed);
        self.owner_next(decided).into_iter().chain(killed).map(Move::Owner).collect()
    }

    pub(crate) fn owner_does(&mut self, what: Owner) {
        match what {
            Owner::Killed => self.left.faults -= 1,
            Owner::Edited => drop(self.world.happen(&Happening::Pvc(PvcChange::SetEdited(true)))),
            Owner::Absent | Owner::Fences | Owner::Fenced => {}
        }
        self.owner = what;
    }
}

/// Returns the search, with this many kills of `fence` and freezes of a runner.
pub(super) fn fences(kills: u8, freezes: u8) -> Search {
    let policy = || Policy { confirmed: true, ..Policy::default() };
    let search = Search::new(FENCES, example::pvc_alongside_rook, nothing, (kills, freezes, 0));
    Search { policy, owner: Owner::Fences, ..search }
}

#[test]
fn owner_who_fences_and_edits_is_safe_alongside_rook() {
    explored(&fences(0, 0));
    explored(&fences(1, 0));
}

#[test]
fn owner_who_fences_is_safe_from_a_frozen_runner() {
    explored(&fences(0, 1));
}

#[test]
fn owner_who_fences_needs_its_guards() {
    needs(|| fences(0, 0), &[Guard::OwnersFenceStays, Guard::FenceAcknowledged]);
}
