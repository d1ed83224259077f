//! Record of an existing OSD that is migrated: everything that can't be observed again once it is stopped.

use super::record::{self, Begun};
use crate::domain::classify::{self, Class};
use crate::domain::gate::Own;
use crate::domain::ledger::{Emptying, RecordedPvc, Strategy};
use crate::domain::next::Next;
use crate::domain::osd::pvc::PerPvc;
use crate::domain::osd::{CrushItem, DbDevice, Layout, NodeName, OsdId, Weight};
use crate::domain::view::View;

/// OSD that is to be migrated next.
pub(super) struct Candidate {
    pub(super) osd: OsdId,
    pub(super) class: Class,
    pub(super) node: NodeName,
    /// Layout that the owner declares for the OSD on its own disk.
    pub(super) target: Layout,
    /// The OSD is emptied before its stop.
    pub(super) empties: bool,
}

impl Candidate {
    /// Returns the candidate with its node and its target; `None` if one of them is unknown.
    pub(super) fn of(osd: OsdId, class: Class, own: &Own<'_>, view: View<'_>) -> Option<Self> {
        let node = view.node_of(osd)?.clone();
        let empties = own.is_to_be_emptied(osd, view.policy.empty);
        Some(Self { osd, class, node, target: classify::target_of(osd, view.seen)?, empties })
    }
}

/// Strategy, target and devices of an OSD.
pub(super) struct Way {
    pub(super) strategy: Strategy,
    pub(super) target: Layout,
    pub(super) db: Option<DbDevice>,
    /// New CRUSH weight, if the weight changes.
    pub(super) weight: Option<Weight>,
}

impl Way {
    pub(super) fn in_place(target: Layout) -> Self {
        Self { strategy: Strategy::InPlace, target, db: None, weight: None }
    }
}

/// Saves the OSD's record before anything is done to it: everything that can't be observed again (P5).
pub(super) fn record(candidate: Candidate, way: Way, view: View<'_>) -> Option<Next> {
    let osd = candidate.osd;
    let (slot, daemon) = (view.slot(osd)?, view.daemon(osd)?);
    let (old, crush) = (slot.fsid?, slot.crush.clone()?);
    let pvcs = match &daemon.on_pvcs {
        Some(_) => Some(recorded(&classify::pvcs_of(osd, view.seen)?, view)?),
        None => None,
    };
    let begun = Begun {
        osd,
        node: candidate.node,
        class: candidate.class,
        strategy: way.strategy,
        target: way.target,
        db: way.db,
        pvcs,
        old,
        deployment: daemon.uid.clone(),
        former_weight: way.weight.map(|_| crush.weight),
        crush: CrushItem { weight: way.weight.unwrap_or(crush.weight), ..crush },
        reweight: slot.reweight,
        primary_affinity: slot.primary_affinity,
        upmaps: view.upmaps_of(osd),
        used_bytes: slot.used_bytes,
        former_flags: (slot.noout, slot.noin),
        evidence: None,
        empty: candidate.empties.then(Emptying::default),
    };
    record::save(begun, old, view)
}

/// Returns the PVCs of an OSD with the uids that identify them; `None` if one of them is not bound.
fn recorded(pvcs: &PerPvc<String>, view: View<'_>) -> Option<PerPvc<RecordedPvc>> {
    let of = |name: &String| RecordedPvc::of(name, view.seen.kube.pvcs.get(name)?);
    let of_part = |name: Option<&String>| name.map_or(Some(None), |name| of(name).map(Some));
    Some(PerPvc { data: of(&pvcs.data)?, db: of_part(pvcs.db.as_ref())?, wal: of_part(pvcs.wal.as_ref())? })
}
