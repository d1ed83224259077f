//! Whether an OSD could be stopped later: asked before work on it begins, and before its data moves away.

use crate::domain::gate::{self, Gate};
use crate::domain::osd::OsdId;
use crate::domain::temporary::drains;
use crate::domain::view::View;

/// Returns the gate that is shut if the run would wait for the stop of the OSD in vain: Rook acknowledges no
/// fence, or, if its data is moved away first, drains can't be blocked.
///
/// Data that was moved away would have to move back.
pub fn can_be_stopped_later(osd: OsdId, moves_data: bool, view: View<'_>) -> Gate {
    let drains = if moves_data { drains::allowed(osd, view.seen) } else { Gate::Open };
    gate::first_of([gate::rook_answers(moves_data, view), drains])
}
