//! OSDs that their own state delays, such as a cordoned node: a run waits for them up to a limit, when no
//! other OSD is left to migrate or to remove.
//!
//! New OSDs come later. They would take the disk, or end the inventory, that a delayed OSD needs.

use super::end::waiting;
use super::rest::{Rest, noting_held, until_skipped};
use crate::domain::gate::{self, Gate};
use crate::domain::next::{Next, Wait};
use crate::domain::view::View;

/// Waits for removals that a gate of all removals delays, and then for OSDs that their own state delays.
///
/// Returns `None` if the run goes on without them. While the run is held, the time does not count, and the
/// wait names what holds it.
pub(super) fn next(view: View<'_>, rest: &mut Rest) -> Option<Next> {
    if let Some(wait) = rest.removal.take() {
        return Some(waiting(view, wait));
    }
    let (osd, reason) = rest.delayed.take()?;
    let wait = |reason| Next::Wait(Wait::Gate { osd, reason });
    match gate::held(view) {
        Gate::Open => until_skipped(wait(reason), view),
        Gate::Shut(held) | Gate::Unknown(held) => {
            Some(noting_held(view).unwrap_or_else(|| waiting(view, wait(held))))
        }
    }
}
