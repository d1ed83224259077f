//! Runs with an approved plan: an OSD is started on only while its line holds.

use std::collections::BTreeMap;

use osd_migrate_core::domain::approval::{Approval, PlanLines};
use osd_migrate_core::domain::ledger::Ledger;
use osd_migrate_core::domain::osd::OsdId;
use osd_migrate_core::domain::plan::{self, Questions};
use osd_migrate_core::domain::policy::Policy;
use osd_migrate_core::domain::view::View;
use osd_migrate_core::sim::{World, example};

use super::promises::Broken;
use super::search::Search;
use super::state::State;
use super::{OURS, PARTNER, nothing};

/// Name of the search that finds the absence of the guard.
pub(super) const CHANGED: &str = "an approved plan, and another OSD since";

/// Returns the line of an OSD in this world.
fn line(osd: OsdId, world: &World) -> Option<String> {
    let (policy, ledger) = (Policy::default(), Ledger::default());
    let seen = world.observe(|_| Questions::default());
    plan::line_of_osd(osd, View { policy: &policy, ledger: &ledger, seen: &seen })
}

/// Returns a policy that approves these lines.
fn approving(lines: BTreeMap<OsdId, String>) -> Policy {
    let lines = PlanLines::new(lines, [].into());
    Policy { approval: Some(Approval { hash: lines.hash(), lines }), ..Policy::default() }
}

/// Returns a policy that approves every OSD that is to be migrated in this world.
pub fn approving_all(world: &World) -> Policy {
    let osds = world.ceph.slots.keys();
    approving(osds.filter_map(|osd| Some((*osd, line(*osd, world)?))).collect())
}

/// Returns the searches: the plan holds, the plan has another OSD, the OSD has changed since the plan.
pub(super) fn searches() -> Vec<Search> {
    let new = |name, policy| Search { policy, ..Search::new(name, example::replicated, nothing, (0, 0, 0)) };
    vec![
        new("an approved plan", || approving([(OURS, line(OURS, &example::replicated()).unwrap())].into())),
        Search {
            stays_shut: true,
            ..new("an approved plan of another OSD", || approving([(PARTNER, "osd.1".to_owned())].into()))
        },
        Search {
            stays_shut: true,
            ..new(CHANGED, || approving([(OURS, "osd.0 as it was".to_owned())].into()))
        },
    ]
}

/// Checks P12: a record is opened only for an OSD whose line was approved.
pub(super) fn begun(before: &State, after: &State, policy: &Policy) -> Option<Broken> {
    let approved = &policy.approval.as_ref()?.lines;
    let new = after.ledger.records.keys().find(|osd| !before.ledger.records.contains_key(osd))?;
    (approved.of_osd(*new) != line(*new, &before.world).as_deref())
        .then(|| format!("P12: {new} was started although it is not as in the approved plan"))
}
