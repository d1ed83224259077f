//! Statistics that are kept, beside those of a mgr whose PGs change at random.

use super::*;
use crate::ceph::pg_dump::words;
use crate::domain::osd::Epoch;

fn states(text: &str) -> BTreeSet<String> {
    (*words(text)).clone()
}

fn osds(ids: [u32; 3]) -> BTreeSet<OsdId> {
    ids.map(OsdId).into()
}

fn pg(state: &str, reported_epoch: u64) -> Pg {
    Pg {
        pool: 1,
        state: words(state),
        up: osds([0, 1, 2]),
        acting: osds([0, 1, 2]),
        reported_epoch: Epoch(reported_epoch),
        objects: 10,
        degraded: 0,
        misplaced: 0,
        bytes: 1000,
    }
}

fn id(number: usize) -> PgId {
    PgId { pool: 1, number: u32::try_from(number).unwrap() }
}

/// A mgr, and the map that its statistics follow.
struct Cluster {
    pgs: BTreeMap<PgId, Pg>,
    slots: BTreeMap<OsdId, Slot>,
    epoch: u64,
    random: fastrand::Rng,
}

impl Cluster {
    fn new(pgs: usize, seed: u64) -> Self {
        let slot = Slot {
            up: true,
            up_from: Epoch(5),
            ..crate::ceph::osd_dump::tests::fine().slots[&OsdId(1)].clone()
        };
        Self {
            pgs: (0..pgs).map(|number| (id(number), pg("active+clean", 10))).collect(),
            slots: (0..6).map(|osd| (OsdId(osd), slot.clone())).collect(),
            epoch: 10,
            random: fastrand::Rng::with_seed(seed),
        }
    }

    fn brief(&self) -> BTreeMap<PgId, Brief> {
        let of = |pg: &Pg| Brief { state: pg.state.clone(), up: pg.up.clone(), acting: pg.acting.clone() };
        self.pgs.iter().map(|(id, pg)| (*id, of(pg))).collect()
    }

    /// Returns what `pg ls` lists, which has no state for a PG of which nothing is known.
    fn in_states(&self, states: &BTreeSet<String>) -> BTreeMap<PgId, Pg> {
        let is_asked = |pg: &Pg| !pg.state.contains("unknown") && !pg.state.is_disjoint(states);
        self.pgs.iter().filter(|(_, pg)| is_asked(pg)).map(|(id, pg)| (*id, pg.clone())).collect()
    }

    /// Lets an OSD restart or end, a PG degrade, move, or become clean, clients write, a scrub begin, or all
    /// PGs report.
    fn changes(&mut self) {
        let number = self.random.usize(..self.pgs.len());
        let event = self.random.u32(..16);
        let osd = OsdId(self.random.u32(..6));
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
        let Some(pg) = self.pgs.get_mut(&id(number)) else { return };
        match event {
            1 => (pg.state, pg.degraded) = (words("active+undersized+degraded"), 7),
            2 => {
                (pg.state, pg.misplaced) = (words("active+remapped+backfilling"), 5);
                pg.up = osds([0, 1, 3]);
            }
            3 => (pg.objects, pg.bytes) = (pg.objects + 1, pg.bytes + 100),
            4 => {
                (pg.state, pg.degraded, pg.misplaced) = (words("active+clean+scrubbing+deep"), 0, 0);
            }
            15 => (pg.up, pg.acting) = (osds([0, 2, 3]), osds([0, 2, 3])),
            _ => {
                (pg.state, pg.degraded, pg.misplaced) = (words("active+clean"), 0, 0);
                pg.acting = pg.up.clone();
            }
        }
        pg.reported_epoch = Epoch(self.epoch);
    }

    /// Returns what the next observation keeps, and whether all of it was read.
    fn look(&self, kept: Option<Kept>) -> (Kept, bool) {
        let renewed = kept.filter(|kept| !kept.is_old()).and_then(|kept| {
            let now = self.brief();
            let Missing::InStates(states) = kept.missing(&now) else { return None };
            kept.renewed(now, self.in_states(&states), &self.slots)
        });
        let is_all = renewed.is_none();
        (renewed.unwrap_or_else(|| Kept::new(self.pgs.clone().into(), &self.slots)), is_all)
    }

    fn counts(&self) -> Counts {
        let unclean: Vec<_> = self.pgs.values().filter(|pg| !gate::is_clean(pg)).collect();
        let words = unclean.iter().flat_map(|pg| gate::unclean_words(&pg.state)).map(str::to_owned).collect();
        Counts { all: self.pgs.len(), unclean: unclean.len(), words }
    }

    /// Returns what the next partial observation keeps, and whether counts sufficed.
    fn look_partly(&self, mut kept: Kept) -> (Kept, bool) {
        let counts = self.counts();
        let suffices = !kept.is_old()
            && kept.may_suffice(&counts, &self.slots)
            && kept.takes(&counts, self.in_states(&counts.words));
        if suffices { (kept, true) } else { (self.look(Some(kept)).0, false) }
    }
}

/// Checks that nothing in the statistics is better than what the mgr knows.
fn assert_careful(kept: &Kept, cluster: &Cluster) {
    let pgs = kept.pgs();
    assert_eq!(pgs.keys().collect::<Vec<_>>(), cluster.pgs.keys().collect::<Vec<_>>());
    for (id, truth) in &cluster.pgs {
        let seen = &pgs[id];
        let exact = |pg: &Pg| (pg.state.clone(), pg.up.clone(), pg.acting.clone(), pg.degraded, pg.misplaced);
        assert_eq!(exact(seen), exact(truth), "{id}");
        assert!(seen.reported_epoch <= truth.reported_epoch, "{id}");
        let is_fresh = |pg: &Pg| pg.reported_epoch >= pg.last_change(&cluster.slots);
        assert_eq!(is_fresh(seen), is_fresh(truth), "{id}: the gates would wait for ever");
        assert!(seen.bytes <= truth.bytes, "{id}");
        if !gate::is_clean(truth) {
            assert_eq!(seen, truth, "{id}");
        }
    }
}

#[test]
fn kept_statistics_are_never_better_than_those_of_the_mgr() {
    let (mut looks, mut complete) = (0, 0);
    for seed in 0..50 {
        let mut cluster = Cluster::new(40, seed);
        let mut kept = None;
        for _ in 0..60 {
            for _ in 0..cluster.random.u32(..3) {
                cluster.changes();
            }
            let (next, is_all) = cluster.look(kept);
            assert_careful(&next, &cluster);
            (looks, complete) = (looks + 1, complete + u32::from(is_all));
            kept = Some(next);
        }
    }
    assert!(complete > 50 && complete < looks, "{complete} of {looks}");
}

/// Checks what a partial observation has: clean PGs may have moved meanwhile, and came back.
fn assert_partly_careful(kept: &Kept, cluster: &Cluster) {
    let pgs = kept.pgs();
    assert_eq!(pgs.keys().collect::<Vec<_>>(), cluster.pgs.keys().collect::<Vec<_>>());
    for (id, truth) in &cluster.pgs {
        let seen = &pgs[id];
        assert_eq!(gate::is_clean(seen), gate::is_clean(truth), "{id}");
        assert!(seen.reported_epoch <= truth.reported_epoch && seen.bytes <= truth.bytes, "{id}");
        if !gate::is_clean(truth) {
            assert_eq!(seen, truth, "{id}");
        }
    }
}

#[test]
fn partial_observations_have_the_unclean_pgs_as_they_are() {
    let (mut looks, mut by_counts) = (0, 0);
    for seed in 0..50 {
        let mut cluster = Cluster::new(40, seed);
        let (mut kept, _) = cluster.look(None);
        for _ in 0..60 {
            for _ in 0..cluster.random.u32(..3) {
                cluster.changes();
            }
            let suffices;
            (kept, suffices) = cluster.look_partly(kept);
            assert_partly_careful(&kept, &cluster);
            (looks, by_counts) = (looks + 1, by_counts + u32::from(suffices));
            // A complete observation is exact again, whatever was kept.
            if cluster.random.u32(..5) == 0 {
                (kept, _) = cluster.look(Some(kept));
                assert_careful(&kept, &cluster);
            }
        }
    }
    assert!(by_counts > looks / 4 && by_counts < looks, "{by_counts} of {looks}");
}

#[test]
fn counts_suffice_only_while_clean_pgs_stay_clean() {
    let by_counts = |begins: &Cluster, goes_on: &Cluster| {
        let (kept, _) = begins.look(None);
        goes_on.look_partly(kept).1
    };
    let clean = || Cluster::new(40, 1);
    let with = |number: usize, state: &str| {
        let mut cluster = clean();
        cluster.pgs.insert(id(number), pg(state, 10));
        cluster
    };
    assert!(by_counts(&clean(), &clean()));
    assert!(by_counts(&clean(), &with(3, "active+degraded")), "it is read by its state");
    assert!(by_counts(&clean(), &with(3, "active+clean+scrubbing")));
    assert!(!by_counts(&with(3, "active+degraded"), &clean()), "it may have other OSDs now");
    assert!(!by_counts(&with(3, "active+degraded"), &with(4, "active+degraded")));
    assert!(!by_counts(&clean(), &with(40, "active+clean")), "a PG was created");
    assert!(!by_counts(&clean(), &with(3, "unknown")), "pg ls does not list it");
    let mut restarted = clean();
    restarted.slots.get_mut(&OsdId(2)).unwrap().up_from = Epoch(11);
    assert!(!by_counts(&clean(), &restarted), "its PGs have to report");
    assert!(!by_counts(&restarted, &restarted), "they have not yet");
    let mut many = clean();
    many.pgs.extend((0..9).map(|number| (id(number), pg("active+degraded", 11))));
    assert!(!by_counts(&clean(), &many), "the table has fewer bytes");
}

#[test]
fn pg_that_became_unclean_between_counts_and_list_needs_all_states() {
    let mut cluster = Cluster::new(40, 1);
    let (mut kept, _) = cluster.look(None);
    cluster.pgs.insert(id(3), pg("active+degraded", 11));
    let counts = cluster.counts();
    cluster.pgs.insert(id(4), pg("active+degraded", 11));
    assert!(!kept.takes(&counts, cluster.in_states(&counts.words)));
    cluster.pgs.insert(id(3), pg("active+clean", 12));
    assert!(kept.takes(&counts, cluster.in_states(&counts.words)), "one for another: both are known");
    assert!(gate::is_clean(&kept.pgs()[&id(3)]) && !gate::is_clean(&kept.pgs()[&id(4)]));
}

#[test]
fn statistics_of_a_clean_cluster_are_read_once() {
    let cluster = Cluster::new(40, 1);
    let (mut kept, is_all) = cluster.look(None);
    assert!(is_all);
    let mut complete = 0;
    for _ in 0..OBSERVATIONS {
        let is_all;
        (kept, is_all) = cluster.look(Some(kept));
        complete += u32::from(is_all);
    }
    assert_eq!((complete, cluster.look(Some(kept)).1), (0, true), "sizes get old");
}

#[test]
fn unclean_pgs_are_read_by_their_states() {
    let mut cluster = Cluster::new(40, 1);
    let (kept, _) = cluster.look(None);
    cluster.pgs.insert(id(3), Pg { degraded: 7, ..pg("active+undersized+degraded", 11) });
    let asked = states("undersized+degraded");
    assert_eq!(kept.missing(&cluster.brief()), Missing::InStates(asked.clone()));
    assert_eq!(cluster.in_states(&asked).len(), 1);
    let (kept, is_all) = cluster.look(Some(kept));
    assert_eq!((kept.pgs()[&id(3)].degraded, is_all), (7, false));
}

#[test]
fn table_is_read_if_many_pgs_are_unclean() {
    let missing = |unclean: usize| {
        let mut cluster = Cluster::new(40, 1);
        let (kept, _) = cluster.look(None);
        cluster.pgs.extend((0..unclean).map(|number| (id(number), pg("active+degraded", 11))));
        kept.missing(&cluster.brief())
    };
    assert_eq!((missing(8), missing(9)), (Missing::InStates(states("degraded")), Missing::All));
}

#[test]
fn statistics_are_read_again_if_states_do_not_suffice() {
    let before = || Cluster::new(40, 1).look(None).0;
    let mut restarted = Cluster::new(40, 1);
    restarted.slots.get_mut(&OsdId(2)).unwrap().up_from = Epoch(11);
    let mut created = Cluster::new(40, 1);
    created.pgs.insert(id(40), pg("active+clean", 10));
    let mut replaced = Cluster::new(39, 1);
    replaced.pgs.insert(id(40), pg("active+clean", 10));
    // `pg ls` has no state for these: PGs that only are not clean, and PGs of which nothing is known.
    let (mut unready, mut unknown) = (Cluster::new(40, 1), Cluster::new(40, 1));
    unready.pgs.insert(id(3), pg("active", 10));
    unknown.pgs.insert(id(3), pg("unknown", 10));
    for (what, cluster) in [
        ("OSD restarted", restarted),
        ("PG created", created),
        ("PG replaced", replaced),
        ("PG active", unready),
    ] {
        assert!(cluster.look(Some(before())).1, "{what}");
    }
    let kept = before();
    let now = unknown.brief();
    assert_eq!(kept.missing(&now), Missing::InStates(states("unknown")));
    assert!(kept.renewed(now, BTreeMap::new(), &unknown.slots).is_none(), "pg ls lists no unknown PG");
}

#[test]
fn pg_that_became_unclean_between_the_reads_is_not_lost() {
    let mut cluster = Cluster::new(40, 1);
    let (kept, _) = cluster.look(None);
    cluster.pgs.insert(id(3), Pg { degraded: 7, ..pg("active+degraded", 11) });
    let now = cluster.brief();
    let Missing::InStates(states) = kept.missing(&now) else { panic!() };
    cluster.pgs.insert(id(4), Pg { degraded: 2, ..pg("active+degraded", 11) });
    let kept = kept.renewed(now, cluster.in_states(&states), &cluster.slots).unwrap();
    assert_eq!([3, 4].map(|number| kept.pgs()[&id(number)].degraded), [7, 2]);
    // A PG that became clean meanwhile is in neither answer.
    let now = cluster.brief();
    cluster.pgs.insert(id(3), pg("active+clean", 12));
    assert!(kept.renewed(now, cluster.in_states(&states), &cluster.slots).is_none());
}
