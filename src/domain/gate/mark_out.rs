//! Gate before an OSD is marked out, so that it is emptied.

use super::answer::{Gate, first_not_open};
use super::data::pgs_of;
use super::emptied::emptiable;
use super::node::of_node_and_rook;
use super::pvc::no_rotation;
use super::stop::{around_any_stop, data_before_stop};
use super::surroundings::{flag_in_the_way, flags_of, not_ambiguous};
use crate::domain::ledger::Run;
use crate::domain::observation::Observation;
use crate::domain::osd::{NodeName, OsdId};
use crate::domain::policy::Accepted;

/// Flag of the osdmap that keeps data on an OSD that is marked out, beside those that prevent any migration.
pub(super) const HOLDS_DATA: [&str; 1] = ["norebalance"];

/// Returns the gate before an OSD is marked out to be emptied.
///
/// All gates of its stop are asked that can be asked now: data that was moved in vain is moved back.
pub fn before_mark_out(
    osd: OsdId,
    node: &NodeName,
    run: &Run,
    accepted: &Accepted,
    seen: &Observation,
) -> Gate {
    first_not_open([
        around_any_stop(run, seen),
        not_ambiguous(osd, seen),
        flags_of(osd, seen),
        flag_in_the_way(&HOLDS_DATA, seen),
        data_before_stop(osd, &pgs_of(osd, seen), accepted, seen),
        of_node_and_rook(node, seen),
        no_rotation(osd, seen),
        emptiable(osd, seen),
    ])
}
