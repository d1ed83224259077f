//! A mgr in memory whose PGs change at random, and what an observation keeps of them.

use std::cell::{Cell, RefCell};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use rustix::io::Errno;

use super::*;
use crate::ceph::error::CephError;
use crate::ceph::pg_dump::words;
use crate::ceph::pg_ls_by_osd::Lists;
use crate::domain::osd::Epoch;

/// Number of OSDs: each of them has an eighth of 40 PGs.
const OSDS: u32 = 24;

pub(super) fn states(text: &str) -> BTreeSet<String> {
    (*words(text)).clone()
}

/// Returns the OSDs on which a PG is at first.
pub(super) fn osds(number: usize) -> BTreeSet<OsdId> {
    [0, 7, 13].map(|further| OsdId((id(number).number + further) % OSDS)).into()
}

pub(super) fn pg(number: usize, state: &str, reported_epoch: u64) -> Pg {
    Pg {
        pool: 1,
        state: words(state),
        up: osds(number),
        acting: osds(number),
        reported_epoch: Epoch(reported_epoch),
        objects: 10,
        degraded: 0,
        misplaced: 0,
        bytes: 1000,
    }
}

pub(super) fn id(number: usize) -> PgId {
    PgId { pool: 1, number: u32::try_from(number).unwrap() }
}

/// Returns what a mgr in memory answers.
fn answered<T>(answer: impl Future<Output = T>) -> T {
    match pin!(answer).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!(),
    }
}

/// A mgr, and the map that its statistics follow.
pub(super) struct Cluster {
    pub(super) pgs: BTreeMap<PgId, Pg>,
    pub(super) slots: BTreeMap<OsdId, Slot>,
    pub(super) epoch: u64,
    pub(super) random: fastrand::Rng,
    /// The mgr lists the PGs of no OSD.
    pub(super) refuses: bool,
    /// Number of lists so far.
    pub(super) lists: Cell<u32>,
    /// PGs that the last observation has from lists.
    pub(super) listed: RefCell<BTreeSet<PgId>>,
}

impl Lists for Cluster {
    async fn list(&self, osd: OsdId) -> Result<All, CephError> {
        if self.refuses || !self.slots[&osd].up {
            let said = String::new();
            return Err(CephError::Read { command: "pg ls-by-osd", errno: Errno::AGAIN, said });
        }
        self.lists.set(self.lists.get() + 1);
        let is_on = |(_, pg): &(&PgId, &Pg)| pg.acting.contains(&osd);
        Ok(self.pgs.iter().filter(is_on).map(|(id, pg)| (*id, pg.clone())).collect())
    }
}

impl Cluster {
    pub(super) fn new(pgs: usize, seed: u64) -> Self {
        let slot = Slot {
            up: true,
            up_from: Epoch(5),
            ..crate::ceph::osd_dump::tests::fine().slots[&OsdId(1)].clone()
        };
        Self {
            pgs: (0..pgs).map(|number| (id(number), pg(number, "active+clean", 10))).collect(),
            slots: (0..OSDS).map(|osd| (OsdId(osd), slot.clone())).collect(),
            epoch: 10,
            random: fastrand::Rng::with_seed(seed),
            refuses: false,
            lists: Cell::default(),
            listed: RefCell::default(),
        }
    }

    pub(super) fn brief(&self) -> BTreeMap<PgId, Brief> {
        let of = |pg: &Pg| Brief { state: pg.state.clone(), up: pg.up.clone(), acting: pg.acting.clone() };
        self.pgs.iter().map(|(id, pg)| (*id, of(pg))).collect()
    }

    /// Returns what `pg ls` lists, which has no state for a PG of which nothing is known.
    pub(super) fn in_states(&self, states: &BTreeSet<String>) -> BTreeMap<PgId, Pg> {
        let is_asked = |pg: &Pg| !pg.state.contains("unknown") && !pg.state.is_disjoint(states);
        self.pgs.iter().filter(|(_, pg)| is_asked(pg)).map(|(id, pg)| (*id, pg.clone())).collect()
    }

    /// Sets the state of a PG, which it reports.
    pub(super) fn with(mut self, number: usize, state: &str) -> Self {
        self.pgs.insert(id(number), pg(number, state, 10));
        self
    }

    /// Lets an OSD restart, after which no PG has reported.
    pub(super) fn restarts(mut self, osd: u32) -> Self {
        self.epoch += 1;
        self.slots.get_mut(&OsdId(osd)).unwrap().up_from = Epoch(self.epoch);
        self
    }

    /// Lets an OSD restart or end, a PG degrade, move, or become clean, clients write, a scrub begin, or all
    /// PGs report; and the mgr begin or end to refuse lists.
    ///
    /// A PG that becomes clean is one that was not, if there is one.
    pub(super) fn changes(&mut self) {
        let event = self.random.u32(..20);
        let unclean: Vec<_> =
            self.pgs.iter().filter(|(_, pg)| !gate::is_clean(pg)).map(|(id, _)| *id).collect();
        let any = id(self.random.usize(..self.pgs.len()));
        let picked = if (5..12).contains(&event) { self.random.choice(unclean).unwrap_or(any) } else { any };
        let osd = OsdId(self.random.u32(..OSDS));
        self.refuses = self.random.u32(..4) == 0;
        match event {
            0 | 12 => {
                self.epoch += 1;
                let Some(slot) = self.slots.get_mut(&osd) else { return };
                slot.up = event == 0;
                *(if slot.up { &mut slot.up_from } else { &mut slot.down_at }) = Epoch(self.epoch);
                return;
            }
            13 | 14 => return self.pgs.values_mut().for_each(|pg| pg.reported_epoch = Epoch(self.epoch)),
            _ => {}
        }
        let Some(pg) = self.pgs.get_mut(&picked) else { return };
        let moved: BTreeSet<_> = pg.up.iter().skip(1).copied().chain([osd]).collect();
        match event {
            1 | 16 | 17 => (pg.state, pg.degraded) = (words("active+undersized+degraded"), 7),
            2 | 18 | 19 => {
                (pg.state, pg.misplaced) = (words("active+remapped+backfilling"), 5);
                pg.up = moved;
            }
            3 => (pg.objects, pg.bytes) = (pg.objects + 1, pg.bytes + 100),
            4 => {
                (pg.state, pg.degraded, pg.misplaced) = (words("active+clean+scrubbing+deep"), 0, 0);
            }
            15 => (pg.up, pg.acting) = (moved.clone(), moved),
            _ => {
                (pg.state, pg.degraded, pg.misplaced) = (words("active+clean"), 0, 0);
                pg.acting = pg.up.clone();
            }
        }
        pg.reported_epoch = Epoch(self.epoch);
    }

    /// Reads from lists what is still to be read.
    pub(super) fn on_osds(&self, unread: &Unread) -> Option<All> {
        let read = answered(unread.read(self)).ok().flatten()?;
        self.listed.borrow_mut().extend(read.keys());
        Some(read)
    }

    /// Returns what the next observation keeps, and whether all of it was read.
    pub(super) fn look(&self, kept: Option<Kept>) -> (Kept, bool) {
        self.listed.take();
        let renewed = kept.filter(|kept| !kept.is_old()).and_then(|kept| {
            let now = self.brief();
            let Missing::InStates(states) = kept.missing(&now) else { return None };
            let (kept, unread) = kept.renewed(now, self.in_states(&states), &self.slots)?;
            Some(kept.with(self.on_osds(&unread)?, &self.slots))
        });
        let is_all = renewed.is_none();
        (renewed.unwrap_or_else(|| Kept::new(self.pgs.clone().into(), &self.slots)), is_all)
    }

    pub(super) fn counts(&self) -> Counts {
        let unclean: Vec<_> = self.pgs.values().filter(|pg| !gate::is_clean(pg)).collect();
        let words = unclean.iter().flat_map(|pg| gate::unclean_words(&pg.state)).map(str::to_owned).collect();
        Counts { all: self.pgs.len(), unclean: unclean.len(), words }
    }

    /// Returns what the next partial observation keeps, and whether counts and lists sufficed.
    pub(super) fn look_partly(&self, mut kept: Kept) -> (Kept, bool) {
        self.listed.take();
        if self.by_counts(&mut kept).is_some() { (kept, true) } else { (self.look(Some(kept)).0, false) }
    }

    fn by_counts(&self, kept: &mut Kept) -> Option<()> {
        let counts = self.counts();
        if kept.is_old() || !kept.may_suffice(&counts, &self.slots) {
            return None;
        }
        let unclean = self.in_states(&counts.words);
        let unread = kept.became_clean(&counts, &unclean, &self.slots)?;
        kept.takes(unclean, self.on_osds(&unread)?, &self.slots).then_some(())
    }
}
