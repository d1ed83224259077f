//! OSDs that are migrated in parallel: one more of the host of those in progress (`run.inParallel`).

use std::collections::BTreeSet;

use super::approved::changed;
use super::candidates::{candidates_among, for_all};
use super::existing_osd::{self, Candidate, Way};
use super::lacks_disk::lacks_its_disk;
use crate::domain::batch::{self, Share};
use crate::domain::classify::{self, Class};
use crate::domain::gate::{self, Gate, Own};
use crate::domain::guard::{Guard, passes};
use crate::domain::ledger::Record;
use crate::domain::next::Next;
use crate::domain::observation::Pg;
use crate::domain::osd::{Kind, OsdId};
use crate::domain::policy::Accepted;
use crate::domain::view::View;

/// Returns the record of one more OSD of the batch, while all OSDs in progress wait; `None` if there is none.
pub(super) fn one_more(view: View<'_>) -> Option<Next> {
    let batch = Batch::in_progress(view)?;
    let is_open = |candidate: &Candidate| batch.own.gate_asked(candidate.osd, &candidate.node) == Gate::Open;
    let candidate = batch.candidates().find(is_open)?;
    let way = Way::in_place(candidate.target.clone());
    existing_osd::record(candidate, way, view)
}

/// Returns the OSD about which Ceph is asked, because it is next in the batch.
pub(super) fn asked(view: View<'_>) -> Option<OsdId> {
    let batch = Batch::in_progress(view)?;
    batch.candidates().next().map(|candidate| candidate.osd)
}

/// OSDs in progress, to which one more may be added.
struct Batch<'a> {
    view: View<'a>,
    own: Own<'a>,
    /// Other OSDs of the host that fit.
    others: Vec<(OsdId, Class)>,
}

impl<'a> Batch<'a> {
    /// Returns the batch in progress, if the run allows one more OSD in it, an OSD fits, and no gate that
    /// applies to every OSD is shut.
    ///
    /// The gates evaluate all PGs, so they are asked last: most iterations of a batch wait without another
    /// OSD to begin.
    fn in_progress(view: View<'a>) -> Option<Self> {
        let members: Vec<&Record> = view.ledger.in_flight().collect();
        let host = members.first()?.crush.host()?;
        if !has_room(&members, view) {
            return None;
        }
        let others = others_of(host, &members, view);
        if others.is_empty() {
            return None;
        }
        let accepted = Accepted { missing: batch::missing_on(host, view), ..gate::accepted(view) };
        let own = Own::of(&accepted, view.seen);
        let all = gate::first_of([gate::rook_answers(false, view), for_all(&own, view)]);
        (all == Gate::Open).then_some(Self { view, own, others })
    }

    /// Returns the OSDs of the host that may be added, as far as the observation shows.
    fn candidates(&self) -> impl Iterator<Item = Candidate> {
        self.others.iter().filter_map(|(osd, class)| {
            let candidate = Candidate::of(*osd, class.clone(), &self.own, self.view)?;
            let is_open = self.own.gate_predicted(*osd, &candidate.node) == Gate::Open;
            (self.own.never(*osd).is_none() && !candidate.empties && is_open).then_some(candidate)
        })
    }
}

/// Returns whether the run allows one more OSD beside those in progress, whatever data it has.
fn has_room(members: &[&Record], view: View<'_>) -> bool {
    let allows_one_more = view.policy.in_parallel.allows(members.len() + 1, Some((0, 0)));
    let is_tried = |record: &&Record| batch::is_tried(&batch::kind(&record.class, &record.target), view);
    allows_one_more
        && view.ledger.has_place()
        && members.iter().all(|record| batch::is_of_batch(record) && is_tried(record))
}

/// Returns the OSDs of the host that share no PG with those in progress, stay on their devices, and are of a
/// kind that may be migrated in parallel.
fn others_of(host: &String, members: &[&Record], view: View<'_>) -> Vec<(OsdId, Class)> {
    let host_of = |osd| view.slot(osd).and_then(|slot| slot.crush.as_ref()?.host());
    let mut found = candidates_among(view, |osd| passes(Guard::BatchOneHost, host_of(osd) == Some(host)));
    found.retain(|(osd, class)| {
        let kind = classify::target_of(*osd, view.seen).map(|target| batch::kind(class, &target));
        kind.is_some_and(|kind| batch::is_tried(&kind, view))
            && !class.migrates().is_some_and(Kind::in_directory)
            && classify::database_of(*osd, view.seen).is_none()
            && view.ledger.refused(*osd, &view.policy.run).is_none()
            && changed(*osd, view).is_none()
            && !lacks_its_disk(*osd, view)
    });
    if found.is_empty() {
        return found;
    }
    let share = Share::of(view);
    found.retain(|(osd, _)| {
        let together: Vec<OsdId> = members.iter().map(|record| record.osd).chain([*osd]).collect();
        share.allows(&together)
    });
    if !found.is_empty() {
        let beside = with_common_pgs(members, view);
        found.retain(|(osd, _)| passes(Guard::BatchNoCommonPg, !beside.contains(osd)));
    }
    found
}

/// Returns the OSDs that have a PG in common with one of those in progress.
fn with_common_pgs(members: &[&Record], view: View<'_>) -> BTreeSet<OsdId> {
    let pgs = &view.seen.ceph.pgs;
    let osds: BTreeSet<OsdId> = members.iter().map(|record| record.osd).collect();
    let is_on_them = |pg: &&Pg| pg.up.iter().chain(&pg.acting).any(|osd| osds.contains(osd));
    let held = members.iter().flat_map(|record| &record.pgs).filter_map(|id| pgs.get(id));
    let theirs = pgs.values().filter(is_on_them).chain(held);
    theirs.flat_map(|pg| pg.up.union(&pg.acting)).copied().collect()
}
