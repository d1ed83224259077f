//! When a change is made that lasts while data moves: `scrub`, `recovery`.

use crate::domain::act::{Act, CephAct, KubeAct};
use crate::domain::gate::{self, Gate};
use crate::domain::next::{Halt, Next};
use crate::domain::view::View;

/// Change of the whole cluster that the owner asks for while data moves.
pub(super) struct WhileDataMoves {
    /// Returns whether the owner asks for the change, and nothing is against it now.
    pub(super) is_wanted: fn(View<'_>) -> bool,
    /// Returns the next step until the change is made; `None` if it is.
    pub(super) change: fn(View<'_>) -> Option<Next>,
    /// Returns the save of what was observed of the change; `None` if it is saved.
    pub(super) note: fn(View<'_>) -> Option<Next>,
    /// Returns the next step until the former state is restored; `None` if it is.
    pub(super) restore: fn(View<'_>) -> Option<Next>,
}

impl WhileDataMoves {
    /// Makes the change before the first act that makes data move, and restores it at the end of a run.
    ///
    /// It is also restored while a run waits that is paused, cancelled or outside of its windows, and while
    /// something is against it. An act on an OSD never waits for that.
    pub(super) fn around(&self, next: Next, view: View<'_>) -> Next {
        let is_wanted = || (self.is_wanted)(view) && gate::held(view) == Gate::Open;
        let own = match &next {
            Next::Do(act) if moves_data(act) && is_wanted() => (self.change)(view),
            Next::Wait(_) if is_wanted() => (self.note)(view),
            Next::Wait(_) | Next::Finished(_) => (self.restore)(view),
            Next::Halt(halt) if !matches!(halt, Halt::LedgerLost { .. }) => (self.restore)(view),
            Next::Do(_) | Next::Save { .. } | Next::Halt(_) => None,
        };
        own.unwrap_or(next)
    }
}

/// Returns whether data moves because of an act: an OSD is emptied, or stopped.
fn moves_data(act: &Act) -> bool {
    matches!(
        act,
        Act::Ceph(CephAct::MarkOut { .. } | CephAct::DropWeight { .. }) | Act::Kube(KubeAct::Stop { .. })
    )
}
