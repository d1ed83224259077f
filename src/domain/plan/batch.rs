//! OSDs that are migrated in parallel: one more of the host of those in progress (`run.inParallel`).

use std::collections::BTreeSet;

use super::approved::changed;
use super::candidates::{candidates, for_all};
use super::existing_osd::{self, Candidate, Way};
use super::lacks_disk::lacks_its_disk;
use crate::domain::batch::{self, Share};
use crate::domain::classify::{self, Class};
use crate::domain::gate::{self, Gate, Own};
use crate::domain::guard::{Guard, passes};
use crate::domain::ledger::{MAX_OPEN, MAX_RECORDS, Record};
use crate::domain::next::Next;
use crate::domain::osd::{Kind, OsdId, PgId};
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
    host: String,
    own: Own<'a>,
    /// PGs of the OSDs in progress.
    pgs: BTreeSet<PgId>,
    share: Share<'a>,
}

impl<'a> Batch<'a> {
    /// Returns the batch in progress, if the run allows one more OSD in it, and no gate that applies to every
    /// OSD is shut.
    fn in_progress(view: View<'a>) -> Option<Self> {
        let members: Vec<&Record> = view.ledger.in_flight().collect();
        // One more that has no data. What the candidates have is asked in `fits`.
        let allows_one_more = view.policy.in_parallel.allows(members.len() + 1, Some((0, 0)));
        let has_room = allows_one_more && members.len() < MAX_OPEN && view.ledger.records.len() < MAX_RECORDS;
        let is_tried = |record: &&Record| batch::is_tried(&batch::kind(&record.class, &record.target), view);
        if !has_room || !members.iter().all(|record| batch::is_of_batch(record) && is_tried(record)) {
            return None;
        }
        let host = members.first()?.crush.host()?.clone();
        let accepted = Accepted { missing: batch::missing_on(&host, view), ..gate::accepted(view) };
        let own = Own::of(&accepted, view.seen);
        if for_all(&own, view) != Gate::Open {
            return None;
        }
        let served = members.iter().flat_map(|record| &record.pgs).cloned();
        let pgs =
            members.iter().flat_map(|record| gate::pgs_of(record.osd, view.seen)).chain(served).collect();
        Some(Self { view, host, own, pgs, share: Share::of(view) })
    }

    /// Returns the OSDs of the host that may be added, as far as the observation shows.
    fn candidates(&self) -> impl Iterator<Item = Candidate> {
        let all = candidates(self.view).into_iter().filter(|(osd, class)| self.fits(*osd, class));
        let found = all.filter_map(|(osd, class)| Candidate::of(osd, class, &self.own, self.view));
        found.filter(|candidate| {
            let kind = batch::kind(&candidate.class, &candidate.target);
            let is_open = self.own.gate_predicted(candidate.osd, &candidate.node) == Gate::Open;
            !candidate.empties && is_open && batch::is_tried(&kind, self.view)
        })
    }

    /// Returns whether an OSD is of the host, shares no PG with those in progress, and stays on its devices.
    fn fits(&self, osd: OsdId, class: &Class) -> bool {
        let view = self.view;
        let host = view.slot(osd).and_then(|slot| slot.crush.as_ref()?.host());
        let shares = || !gate::pgs_of(osd, view.seen).is_disjoint(&self.pgs);
        let together: Vec<OsdId> = view.ledger.in_flight().map(|record| record.osd).chain([osd]).collect();
        passes(Guard::BatchOneHost, host == Some(&self.host))
            && self.share.allows(&together)
            && !shares()
            && !class.migrates().is_some_and(Kind::in_directory)
            && classify::database_of(osd, view.seen).is_none()
            && self.own.never(osd).is_none()
            && view.ledger.refused(osd, &view.policy.run).is_none()
            && changed(osd, view).is_none()
            && !lacks_its_disk(osd, view)
    }
}
