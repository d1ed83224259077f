//! Gates before an available disk becomes an OSD, and before a finished OSD is adopted.

use super::answer::{Gate, first_not_open};
use super::data::{fresh, none_recovers};
use super::node::of_node_and_rook;
use super::rook;
use super::stop::mon_quorum;
use super::surroundings::{flag_in_the_way, may_come_up_on, none_ambiguous, rook_and_release};
use crate::domain::ledger::Run;
use crate::domain::observation::Observation;
use crate::domain::osd::NodeName;

/// Returns the gate before an available disk becomes an OSD.
///
/// Asked before the OSD is recorded and again before its node agent is created. Rook is not at work, no PG
/// lacks a replica except those short of OSDs or space, and the node is Ready. No OSD is stopped and no data
/// is removed, so neither redundancy nor fullness is asked: a new OSD is the cure for both.
pub fn before_new(node: &NodeName, run: &Run, seen: &Observation) -> Gate {
    first_not_open([
        before_adopt(node, run, seen),
        flag_in_the_way(&FLAGS_FOR_NEW, seen),
        may_come_up_on(node, seen),
        fresh(|_| true, &seen.ceph),
        none_recovers(&seen.ceph),
    ])
}

/// Returns the gate before an OSD is started that is finished, down, and started by nothing.
///
/// Like `before_new`, but without the checks of flags and PGs: the OSD brings its data.
pub fn before_adopt(node: &NodeName, run: &Run, seen: &Observation) -> Gate {
    first_not_open([
        // No fence is set for such an OSD: Rook itself turns available disks into OSDs.
        rook::is_away_by_hand(run, seen),
        rook_and_release(run, seen),
        // The id and the PVCs of a new OSD are those that no Deployment names.
        none_ambiguous(seen),
        mon_quorum(seen),
        of_node_and_rook(node, seen),
    ])
}

/// Returns the gate of one node on which new OSDs are created: it is available, and they would come up.
pub fn of_node_for_new(node: &NodeName, seen: &Observation) -> Gate {
    first_not_open([of_node_and_rook(node, seen), may_come_up_on(node, seen)])
}

/// Flags that prevent a new OSD: it would not come up or not be marked in, or its data would not move to it.
const FLAGS_FOR_NEW: [&str; 8] =
    ["noup", "noin", "norecover", "nobackfill", "norebalance", "pause", "pauserd", "pausewr"];
