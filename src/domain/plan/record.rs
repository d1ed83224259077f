//! Creation of records: each is numbered, named, and saved before anything is done (P5).

use std::collections::BTreeSet;

use crate::domain::classify::Class;
use crate::domain::inspection::{Evidence, RecordId};
use crate::domain::ledger::{Attempt, Emptying, Record, RecordedPvc, Strategy};
use crate::domain::next::{Next, Saving};
use crate::domain::osd::pvc::PerPvc;
use crate::domain::osd::{CrushItem, DbDevice, Layout, NodeName, OsdFsid, OsdId, Upmap, Weight};
use crate::domain::view::View;

/// Facts about an OSD when its record is created.
///
/// The fields are those of the record.
pub(super) struct Begun {
    pub(super) osd: OsdId,
    pub(super) node: NodeName,
    pub(super) class: Class,
    pub(super) strategy: Strategy,
    pub(super) target: Layout,
    pub(super) db: Option<DbDevice>,
    pub(super) pvcs: Option<PerPvc<RecordedPvc>>,
    pub(super) old: OsdFsid,
    pub(super) deployment: String,
    pub(super) crush: CrushItem,
    pub(super) former_weight: Option<Weight>,
    pub(super) reweight: Weight,
    pub(super) primary_affinity: Weight,
    pub(super) upmaps: Vec<Upmap>,
    pub(super) used_bytes: Option<u64>,
    pub(super) former_flags: (bool, bool),
    pub(super) evidence: Option<Evidence>,
    pub(super) empty: Option<Emptying>,
}

/// Saves the record with the next number, named after an fsid.
///
/// If nothing proves its device yet, the first attempt inspects it.
pub(super) fn save(begun: Begun, named: OsdFsid, view: View<'_>) -> Option<Next> {
    let serial = view.ledger.run.serial + 1;
    let osd = begun.osd;
    let number = u32::from(begun.evidence.is_none());
    let record = Record {
        id: RecordId(format!("{}-{serial}", named.to_string().get(..8)?)),
        osd,
        node: begun.node,
        class: begun.class,
        strategy: begun.strategy,
        target: begun.target,
        db: begun.db,
        pvcs: begun.pvcs,
        old: begun.old,
        deployment: begun.deployment,
        crush: begun.crush,
        former_weight: begun.former_weight,
        reweight: begun.reweight,
        primary_affinity: begun.primary_affinity,
        upmaps: begun.upmaps,
        used_bytes: begun.used_bytes,
        former_flags: begun.former_flags,
        evidence: begun.evidence,
        empty: begun.empty,
        pgs: BTreeSet::new(),
        stop_intended_at: None,
        down_since: None,
        noout_lifted: false,
        blocked_since: None,
        saved_at: Some(view.seen.at),
        restarts: 0,
        stop_reverted: None,
        wipe_blocked_since: None,
        attempt: Attempt::inspect(number),
        issued: BTreeSet::new(),
        new: None,
        left_to_rook_since: None,
        up_seen: None,
        milestones: vec![(Saving::Record.code().to_owned(), view.seen.at)],
        lost_upmaps: None,
        retried: false,
        pod_restarts: None,
        closing: false,
        quarantine: None,
    };
    let is_new = matches!(record.strategy, Strategy::New { .. });
    let mut ledger = view.ledger.with(record);
    ledger.run.serial = serial;
    (ledger.run.waiting_for_node, ledger.run.waiting_to_restart) = (None, None);
    if !is_new {
        // New OSDs come after OSDs that were waited for in vain: these are not waited for once more.
        ledger.run.skipping = None;
    }
    Some(Next::Save { ledger, osd: Some(osd), why: Saving::Record })
}
