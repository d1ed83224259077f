//! Taints that were added later.

use osd_migrate::domain::gate::Reason;
use osd_migrate::sim::{Disturbance, UnusualPg};

use super::*;

fn tolerates(osd: u32) -> impl Fn(&Act) -> bool {
    move |act| matches!(act, Act::Kube(KubeAct::Tolerate { osd: of, .. }) if of.0 == osd)
}

#[test]
fn osd_restart_for_a_taint_is_sequential_or_at_once_if_down() {
    let mut run = Run::of(example::tolerate());
    let Next::Do(Act::Kube(KubeAct::Tolerate { osd: OsdId(0), precondition: Some(_), add, .. })) = run.next()
    else {
        panic!()
    };
    assert_eq!((add.len(), add[0].key.as_str()), (1, "storage"));
    let mut down = run.clone();
    let Next::Do(act) = run.next() else { panic!() };
    run.world.act(&act).unwrap();
    let first_wait = |next: &Next| matches!(next, Next::Wait(_) | Next::Do(_));
    let next = run.until(first_wait);
    assert!(matches!(next, Next::Wait(Wait::Gate { osd: OsdId(1), .. })), "it has not come to rest");
    let Next::Do(last) =
        run.until(|next| matches!(next, Next::Do(Act::Kube(KubeAct::Tolerate { osd: OsdId(1), .. }))))
    else {
        panic!()
    };
    run.world.act(&last).unwrap();
    assert!(
        matches!(run.next(), Next::Wait(Wait::Up { osd: OsdId(1), .. })),
        "the last one is seen to be back"
    );
    run.finished();

    down.world.happen(&Happening::PersonStops(OsdId(0)));
    down.world.happen(&Happening::GoesDown(OsdId(0)));
    assert!(matches!(
        down.next(),
        Next::Do(Act::Kube(KubeAct::Tolerate { osd: OsdId(0), precondition: None, .. }))
    ));
}

#[test]
fn osd_on_a_cordoned_node_holds_up_no_restart_and_no_end() {
    let mut run = Run::of(example::tolerate());
    run.world.happen(&Happening::Around(Around::Cordoned, true));
    run.acts(|act| matches!(act, Act::Kube(KubeAct::Tolerate { .. })));
    assert!(run.world.kube.daemons[&OsdId(0)].tolerations.is_empty(), "its node is cordoned");
    assert!(!run.world.kube.daemons[&OsdId(1)].tolerations.is_empty());
    let began = run.seen().at;
    let summary = run.summary();
    let [(OsdId(0), why)] = summary.skipped.as_slice() else { panic!("{summary:?}") };
    assert!(why.contains("no toleration") && why.contains("cordoned"), "{why}");
    assert!(run.seen().at - began >= run.policy.limits.skip_after);
}

#[test]
fn pg_that_stays_unclean_holds_up_no_end_for_a_taint() {
    let mut run = Run::of(example::tolerate());
    let pg = *run.world.placements.keys().next().unwrap();
    run.world.happen(&Happening::Noise(Disturbance::PgChanges(pg, UnusualPg::Inconsistent)));
    run.time_passes();
    let began = run.seen().at;
    let summary = run.summary();
    let osds: Vec<u32> = summary.skipped.iter().map(|(osd, _)| osd.0).collect();
    assert_eq!(osds, [0, 1]);
    let why = &summary.skipped[0].1;
    assert!(why.contains("no toleration") && why.contains("inconsistent"), "{why}");
    assert!(run.seen().at - began >= run.policy.limits.skip_after);
    assert!(run.world.kube.daemons.values().all(|daemon| daemon.tolerations.is_empty()));
    // A pause lasts for as long as the person wants.
    let mut paused = run.clone();
    paused.world.happen(&Happening::Around(Around::Paused, true));
    paused.until(|next| matches!(next, Next::Wait(Wait::Gate { reason: Reason::Paused { .. }, .. })));
    assert_eq!(paused.ledger.run.waiting_to_restart, None, "it does not count");
    // Another run waits for as long again.
    run.policy.run = "second".to_owned();
    let waits = |next: &Next| matches!(next, Next::Wait(Wait::Gate { reason: Reason::NotClean { .. }, .. }));
    run.until(waits);
}

#[test]
fn time_of_restarts_for_taints_begins_with_each_of_them() {
    let mut run = Run::of(example::tolerate());
    run.acts(tolerates(0));
    run.until(|next| matches!(next, Next::Wait(Wait::Gate { osd: OsdId(1), .. })));
    assert!(run.ledger.run.waiting_to_restart.is_some());
    run.acts(tolerates(1));
    assert_eq!(run.ledger.run.waiting_to_restart, None);
}

#[test]
fn osd_whose_toleration_failed_or_is_denied_holds_up_no_other() {
    let next = |run: &Run, denied: Option<&str>, osds: &[u32]| {
        let mut seen = run.seen();
        for osd in osds {
            seen.failed.note(Some(OsdId(*osd)), false, denied.map(str::to_owned));
        }
        plan::plan(&run.policy, &run.ledger, &seen)
    };
    let tries = |next: &Next, osd: u32| matches!(next, Next::Do(act) if tolerates(osd)(act));
    let run = Run::of(example::tolerate());
    for denied in [None, Some("a policy")] {
        assert!(tries(&next(&run, denied, &[]), 0));
        assert!(tries(&next(&run, denied, &[0]), 1), "{denied:?}");
    }
    assert!(tries(&next(&run, None, &[0, 1]), 0), "all had their turn");
    let none = next(&run, Some("a policy"), &[0, 1]);
    assert!(!tries(&none, 0) && !tries(&none, 1), "{none:?}");
    // The others wait for the PGs of an OSD that is down, so it is tried again.
    let mut down = run;
    down.world.happen(&Happening::PersonStops(OsdId(1)));
    down.world.happen(&Happening::GoesDown(OsdId(1)));
    assert!(tries(&next(&down, None, &[1]), 1));
}

#[test]
fn osd_that_is_down_gets_its_toleration_before_the_others() {
    let mut run = Run::of(example::tolerate());
    run.world.happen(&Happening::PersonStops(OsdId(1)));
    run.world.happen(&Happening::GoesDown(OsdId(1)));
    let next = run.next();
    assert!(matches!(next, Next::Do(Act::Kube(KubeAct::Tolerate { osd: OsdId(1), .. }))), "{next:?}");
}

#[test]
fn osd_that_waits_for_its_restart_holds_up_no_new_osd() {
    // Two hosts with OSDs for three copies: nothing is clean before the third has one.
    let mut run = Run::of(example::empty());
    run.until(|next| matches!(next, Next::Save { why: Saving::Node { node, .. }, .. } if node.0 == "h3"));
    run.world.happen(&Happening::Tainted(NodeName("h1".to_owned())));
    run.finished();
    assert_eq!(run.world.ceph.slots.len(), 3);
    assert!(
        run.world.kube.daemons[&OsdId(0)].tolerations.iter().any(|toleration| toleration.key == "storage")
    );
}

#[test]
fn new_osd_gets_a_toleration_for_a_taint_before_its_start() {
    let mut run = Run::of(example::one_more());
    run.until(|next| matches!(next, Next::Wait(Wait::Up { .. })));
    run.world.happen(&Happening::Tainted(NodeName("h1".to_owned())));
    run.world.kube.daemons.get_mut(&OsdId(3)).unwrap().pods.clear();
    assert!(matches!(
        run.next(),
        Next::Do(Act::Kube(KubeAct::Tolerate { osd: OsdId(3), precondition: None, .. }))
    ));
    run.finished();
    assert!(run.world.ceph.slots[&OsdId(3)].up);
}
