//! OSDs that their own state delays, such as a cordoned node: a run waits for them when nothing else is left,
//! up to a limit.

use super::end::waiting;
use super::nodes;
use super::rest::{Rest, until_skipped};
use crate::domain::gate::{self, Gate};
use crate::domain::next::{Next, Wait};
use crate::domain::view::View;

/// Waits for removals that a gate of all removals delays when no OSD is left to migrate; if no new OSDs
/// follow, also for OSDs that their own state delays.
///
/// New OSDs do not wait for them: they may be what the data of a delayed OSD lacks.
pub(super) fn before_new(view: View<'_>, rest: &mut Rest) -> Option<Next> {
    let removal = rest.removal.take().map(|wait| waiting(view, wait));
    removal.or_else(|| if nodes::are_next(view) { None } else { last(view, rest) })
}

/// Waits for OSDs that their own state delays; `None` if the run ends without them.
///
/// While the run is held, the time does not count, and the wait names what holds it.
pub(super) fn last(view: View<'_>, rest: &mut Rest) -> Option<Next> {
    if rest.wait.is_some() {
        // Something else is left: inventories, for example.
        return None;
    }
    let (osd, reason) = rest.delayed.take()?;
    let wait = |reason| Next::Wait(Wait::Gate { osd, reason });
    match gate::held(view) {
        Gate::Open => until_skipped(wait(reason), view),
        Gate::Shut(held) | Gate::Unknown(held) => Some(waiting(view, wait(held))),
    }
}
