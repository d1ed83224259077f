//! Taints that were added later.

use super::*;

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
    assert!(matches!(run.next(), Next::Wait(Wait::Gate { osd: OsdId(1), .. })), "it has not come to rest");
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
