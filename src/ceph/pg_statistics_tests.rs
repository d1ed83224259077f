//! Statistics that are kept, beside those of a mgr whose PGs change at random.

use osd_migrate_explore::counted::{counted_by_growth, osds as osds_of_growth};

use super::cluster::{Cluster, id, osds, pg, states};
use super::*;
use crate::ceph::pg_dump::words;
use crate::domain::osd::Epoch;

/// Checks that the PGs from lists are as in the statistics of all PGs.
fn assert_listed(kept: &Kept, cluster: &Cluster) {
    let pgs = kept.pgs();
    for id in cluster.listed.borrow().iter() {
        assert_eq!(pgs[id], cluster.pgs[id], "{id}");
    }
}

/// Checks that nothing in the statistics is better than what the mgr knows.
fn assert_careful(kept: &Kept, cluster: &Cluster) {
    assert_listed(kept, cluster);
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
    let (mut looks, mut complete, mut listed) = (0, 0, 0);
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
            listed += u32::from(!cluster.listed.borrow().is_empty());
            kept = Some(next);
        }
    }
    assert!(complete > 50 && complete < looks, "{complete} of {looks}");
    assert!(listed > 100, "lists were read in {listed} of {looks}");
}

/// Checks what a partial observation has: clean PGs may have moved meanwhile, and came back.
fn assert_partly_careful(kept: &Kept, cluster: &Cluster) {
    assert_listed(kept, cluster);
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
    let (mut looks, mut by_counts, mut listed) = (0, 0, 0);
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
            listed += u32::from(suffices && !cluster.listed.borrow().is_empty());
            // A complete observation is exact again, whatever was kept.
            if cluster.random.u32(..5) == 0 {
                (kept, _) = cluster.look(Some(kept));
                assert_careful(&kept, &cluster);
            }
        }
    }
    assert!(by_counts > looks / 4 && by_counts < looks, "{by_counts} of {looks}");
    assert!(listed > 100, "lists were read in {listed} of {looks}");
}

#[test]
fn counts_suffice_only_if_clean_pgs_stay_clean() {
    let by_counts = |begins: &Cluster, goes_on: &Cluster| {
        let (kept, _) = begins.look(None);
        goes_on.look_partly(kept).1
    };
    let clean = || Cluster::new(40, 1);
    assert!(by_counts(&clean(), &clean()));
    assert!(by_counts(&clean(), &clean().with(3, "active+degraded")), "it is read by its state");
    assert!(by_counts(&clean(), &clean().with(3, "active+clean+scrubbing")));
    assert!(!by_counts(&clean(), &clean().with(40, "active+clean")), "a PG was created");
    assert!(!by_counts(&clean(), &clean().with(3, "unknown")), "pg ls does not list it");
    let restarted = || clean().restarts(2);
    assert!(!by_counts(&clean(), &restarted()), "its PGs have to report");
    assert!(!by_counts(&restarted(), &restarted()), "they have not yet");
    let many = (0..9).fold(clean(), |cluster, number| cluster.with(number, "active+degraded"));
    assert!(!by_counts(&clean(), &many), "the table has fewer bytes");
}

#[test]
fn pg_that_became_clean_is_read_from_a_list_of_its_osd() {
    let before = || Cluster::new(40, 1).with(3, "active+degraded").with(5, "active+degraded");
    let clean = || Cluster::new(40, 1).with(5, "active+degraded");
    let look = |before: Cluster, now: Cluster| {
        let (kept, suffices) = now.look_partly(before.look(None).0);
        assert_partly_careful(&kept, &now);
        (suffices, now.listed.borrow().contains(&id(3)), now.lists.get())
    };
    assert_eq!(look(before(), clean()), (true, true, 1));
    let other = clean().with(4, "active+degraded");
    assert_eq!(look(before(), other), (true, true, 1), "another PG became unclean meanwhile");
    let refused = Cluster { refuses: true, ..clean() };
    assert_eq!(look(before(), refused), (false, false, 0));
    let mut moved = clean();
    moved.pgs.get_mut(&id(3)).unwrap().acting = osds(4);
    assert_eq!(look(before(), moved), (false, false, 1), "on none of its OSDs");
    let mut down = clean();
    for osd in osds(3) {
        let slot = down.slots.get_mut(&osd).unwrap();
        (slot.up, slot.down_at) = (false, Epoch(5));
    }
    assert_eq!(look(before(), down), (false, false, 0), "none of its OSDs is up");
    let behind = |mut cluster: Cluster| {
        cluster.pgs.get_mut(&id(3)).unwrap().reported_epoch = Epoch(4);
        cluster
    };
    assert_eq!(look(behind(before()), behind(clean())), (false, true, 2), "it has not reported yet");
}

#[test]
fn lists_are_read_only_if_they_cost_less_than_states() {
    let lists = |became_clean: &[usize]| {
        let unclean = |cluster: Cluster, number: &usize| cluster.with(*number, "active+degraded");
        let (kept, _) = became_clean.iter().fold(Cluster::new(40, 1), unclean).look(None);
        let cluster = Cluster::new(40, 1);
        let suffices = cluster.look_partly(kept).1;
        (suffices, cluster.lists.get())
    };
    // PGs 0, 11 and 17 are on OSD 0, as are 24 and 35.
    assert_eq!(lists(&[0, 11, 17, 24, 35]), (true, 1));
    assert_eq!(lists(&[0, 1, 2, 3]), (true, 4));
    assert_eq!(lists(&[0, 1, 2, 3, 4]), (false, 0), "five OSDs");
    assert_eq!(lists(&[0, 11, 17, 24, 35, 1, 12, 18, 25]), (false, 0), "more than a fifth of all PGs");
}

#[test]
fn pg_that_is_unclean_again_in_its_list_needs_all_states() {
    let mut cluster = Cluster::new(40, 1).with(3, "active+degraded");
    let (mut kept, _) = cluster.look(None);
    cluster = cluster.with(3, "active+clean");
    let counts = cluster.counts();
    let unread = kept.became_clean(&counts, &All::new(), &cluster.slots).unwrap();
    cluster = cluster.with(3, "active+degraded");
    let read = cluster.on_osds(&unread).unwrap();
    assert!(!kept.takes(All::new(), read, &cluster.slots));
    assert!(!gate::is_clean(&kept.pgs()[&id(3)]), "nothing was taken");
}

#[test]
fn pg_that_became_unclean_between_counts_and_list_needs_all_states() {
    let mut cluster = Cluster::new(40, 1);
    let (mut kept, _) = cluster.look(None);
    cluster = cluster.with(3, "active+degraded");
    let counts = cluster.counts();
    cluster = cluster.with(4, "active+degraded");
    let became_clean = |kept: &Kept, cluster: &Cluster| {
        kept.became_clean(&counts, &cluster.in_states(&counts.words), &cluster.slots)
    };
    assert_eq!(became_clean(&kept, &cluster), None);
    cluster = cluster.with(3, "active+clean");
    assert_eq!(became_clean(&kept, &cluster), Some(Unread::default()), "one for another: both are known");
    assert!(kept.takes(cluster.in_states(&counts.words), All::new(), &cluster.slots));
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
    cluster.pgs.insert(id(3), Pg { degraded: 7, ..pg(3, "active+undersized+degraded", 11) });
    let asked = states("undersized+degraded");
    assert_eq!(kept.missing(&cluster.brief()), Missing::InStates(asked.clone()));
    assert_eq!(cluster.in_states(&asked).len(), 1);
    let (kept, is_all) = cluster.look(Some(kept));
    assert_eq!((kept.pgs()[&id(3)].degraded, is_all), (7, false));
}

#[test]
fn table_is_read_if_many_pgs_are_unclean() {
    let missing = |unclean: usize| {
        let (kept, _) = Cluster::new(40, 1).look(None);
        let cluster =
            (0..unclean).fold(Cluster::new(40, 1), |all, number| all.with(number, "active+degraded"));
        kept.missing(&cluster.brief())
    };
    assert_eq!((missing(8), missing(9)), (Missing::InStates(states("degraded")), Missing::All));
}

#[test]
fn statistics_are_read_again_if_states_do_not_suffice() {
    let before = || Cluster::new(40, 1).look(None).0;
    let refused = Cluster { refuses: true, ..Cluster::new(40, 1).restarts(2) };
    let mut replaced = Cluster::new(39, 1);
    replaced.pgs.insert(id(40), pg(40, "active+clean", 10));
    for (what, cluster) in [
        ("PGs of restarted OSDs are more than a fifth", Cluster::new(40, 1).restarts(2).restarts(4)),
        ("no list", refused),
        ("PG created", Cluster::new(40, 1).with(40, "active+clean")),
        ("PG replaced", replaced),
    ] {
        assert!(cluster.look(Some(before())).1, "{what}");
    }
    let kept = before();
    let mut unknown = Cluster::new(40, 1).with(3, "unknown");
    unknown.pgs.get_mut(&id(3)).unwrap().acting.clear();
    let now = unknown.brief();
    assert_eq!(kept.missing(&now), Missing::InStates(states("unknown")));
    assert!(kept.renewed(now, All::new(), &unknown.slots).is_none(), "pg ls lists no unknown PG");
}

#[test]
fn restarted_osd_is_asked_until_its_pgs_have_reported() {
    let (kept, _) = Cluster::new(40, 1).look(None);
    let mut cluster = Cluster::new(40, 1).restarts(2);
    let (kept, is_all) = cluster.look(Some(kept));
    assert_eq!((is_all, cluster.lists.get(), cluster.listed.borrow().len()), (false, 1, 5));
    let (kept, suffices) = cluster.look_partly(kept);
    assert_eq!((suffices, cluster.lists.get()), (false, 2), "they have not reported");
    cluster.pgs.values_mut().for_each(|pg| pg.reported_epoch = Epoch(cluster.epoch));
    let (kept, _) = cluster.look(Some(kept));
    assert_careful(&kept, &cluster);
    assert_eq!((cluster.look_partly(kept).1, cluster.lists.get()), (true, 3));
}

#[test]
fn active_pg_that_pg_ls_has_no_state_for_is_read_from_a_list() {
    let (kept, _) = Cluster::new(40, 1).look(None);
    let cluster = Cluster::new(40, 1).with(3, "active");
    let (kept, is_all) = cluster.look(Some(kept));
    assert_eq!((is_all, cluster.lists.get()), (false, 1));
    assert_careful(&kept, &cluster);
    assert!(!cluster.look_partly(kept).1, "the counts have no state for it");
}

#[test]
fn pg_that_became_unclean_between_the_reads_is_not_lost() {
    let mut cluster = Cluster::new(40, 1);
    let (kept, _) = cluster.look(None);
    cluster.pgs.insert(id(3), Pg { degraded: 7, ..pg(3, "active+degraded", 11) });
    let now = cluster.brief();
    let Missing::InStates(states) = kept.missing(&now) else { panic!() };
    cluster.pgs.insert(id(4), Pg { degraded: 2, ..pg(4, "active+degraded", 11) });
    let (kept, unread) = kept.renewed(now, cluster.in_states(&states), &cluster.slots).unwrap();
    assert!(unread.is_empty());
    assert_eq!([3, 4].map(|number| kept.pgs()[&id(number)].degraded), [7, 2]);
    // A PG that became clean meanwhile is in neither answer. Its list has it, whatever it is by then.
    let now = cluster.brief();
    cluster = cluster.with(3, "active+clean");
    let (kept, unread) = kept.renewed(now, cluster.in_states(&states), &cluster.slots).unwrap();
    cluster = cluster.with(3, "active+degraded").with(4, "active+degraded");
    let kept = kept.with(cluster.on_osds(&unread).unwrap(), &cluster.slots);
    assert_listed(&kept, &cluster);
    assert_eq!(kept.unclean, [3, 4].map(id).into());
}

/// Returns a cluster of the size that `build/growth` asks for, with 11 PGs for each OSD, of which one in ten
/// is not clean.
fn cluster_of_growth() -> Cluster {
    let count = u32::try_from(osds_of_growth()).unwrap();
    let mut cluster = Cluster::new(osds_of_growth() * 11, 1);
    let slot = cluster.slots[&OsdId(0)].clone();
    cluster.slots = (0..count).map(|osd| (OsdId(osd), slot.clone())).collect();
    for (id, pg) in &mut cluster.pgs {
        let acting: BTreeSet<_> = [0, 1, 2].map(|other| OsdId((id.number + other) % count)).into();
        (pg.up, pg.acting) = (acting.clone(), acting);
        if id.number.is_multiple_of(10) {
            (pg.state, pg.degraded) = (words("active+undersized+degraded"), 7);
        }
    }
    cluster
}

#[test]
#[ignore = "build/growth runs it"]
fn growth_of_statistics_renewed_by_states() {
    let cluster = cluster_of_growth();
    let (kept, now) = (cluster.look(None).0, cluster.brief());
    let Missing::InStates(states) = kept.missing(&now) else { panic!("all of them are read") };
    let unclean = cluster.in_states(&states);
    let (kept, unread) = counted_by_growth(|| kept.renewed(now, unclean, &cluster.slots)).unwrap();
    assert!(unread.is_empty());
    assert_careful(&kept, &cluster);
}

#[test]
#[ignore = "build/growth runs it"]
fn growth_of_statistics_renewed_by_counts() {
    let cluster = cluster_of_growth();
    let (mut kept, counts) = (cluster.look(None).0, cluster.counts());
    let unclean = cluster.in_states(&counts.words);
    assert!(counted_by_growth(|| {
        kept.may_suffice(&counts, &cluster.slots)
            && kept.became_clean(&counts, &unclean, &cluster.slots).is_some_and(|unread| unread.is_empty())
            && kept.takes(unclean, All::new(), &cluster.slots)
    }));
}
