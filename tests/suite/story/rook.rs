//! A running Rook alongside osd-migrate, which creates the Deployments of recreated OSDs.

use std::rc::Rc;

use chrono::TimeDelta;

use osd_migrate::domain::act::{Act, KubeAct};
use osd_migrate::domain::classify::Class;
use osd_migrate::domain::policy::{DeploymentBy, Policy};
use osd_migrate::run::End;
use osd_migrate::sim::{Happening, example};

use super::play::{BY_HAND, Play, assert_no_leftovers, count, ends};

fn play() -> Play {
    let policy = Policy { confirmed: true, deployment_by: DeploymentBy::ByRook, ..Policy::default() };
    Play::with_policy(example::with_rook_that_hydrates(), policy, 1)
}

fn created_by_osd_migrate(play: &Play) -> (usize, usize) {
    let dropped = count(play, |act| matches!(act, Act::Kube(KubeAct::DropDeployment { osd: BY_HAND, .. })));
    (dropped, count(play, |act| matches!(act, Act::Kube(KubeAct::Deploy(_)))))
}

fn assert_migrated(play: &Play) {
    assert!(matches!(play.run(), Some(Ok(End::Finished(_)))), "{:?}", play.log.borrow());
    let sim = play.sim.borrow();
    for (osd, end) in ends(&sim) {
        assert_eq!(
            (end.is_new, end.class, end.flags),
            (osd == BY_HAND, Class::Conforming, (true, true, false, false)),
            "{osd}"
        );
    }
    assert_no_leftovers(&sim);
}

#[test]
fn deployment_left_to_rook_is_never_created_by_osd_migrate() {
    let play = play();
    assert_migrated(&play);
    assert_eq!(created_by_osd_migrate(&play), (1, 0));
    let log = play.log.borrow();
    let at = |what: &str| log.iter().position(|line| line == what);
    let order: Vec<_> = ["save new", "save left-to-rook", "do drop-deployment", "do unfence"].map(at).into();
    assert!(order.iter().all(Option::is_some) && order.is_sorted(), "{log:?}");
}

#[test]
fn deployment_left_to_an_operator_that_ends_is_rendered() {
    let play = play();
    play.sim.borrow_mut().add_fault(Rc::new(|world, _| {
        let is_left = !world.kube.daemons.contains_key(&BY_HAND) && world.kube.fence.is_none();
        if is_left && world.kube.running_operator().is_some() {
            return vec![(TimeDelta::zero(), Happening::OperatorDown)];
        }
        Vec::new()
    }));
    assert_migrated(&play);
    assert_eq!(created_by_osd_migrate(&play), (1, 1));
}

#[test]
fn operator_scaled_up_externally_is_scaled_down_once() {
    let policy = Policy { scales_operator: true, ..Policy::default() };
    let play = Play::with_policy(example::with_old_rook(), policy, 1);
    play.sim.borrow_mut().add_fault(Rc::new(|world, _| {
        let is_at_0 = world.kube.running_operator().is_none();
        if is_at_0 { vec![(TimeDelta::zero(), Happening::OperatorUp)] } else { Vec::new() }
    }));
    assert_eq!(play.run(), None, "it waits for a person");
    let scales = |to: u32| {
        let is = move |act: &Act| matches!(act, Act::Kube(KubeAct::ScaleOperator { replicas, .. }) if *replicas == to);
        count(&play, is)
    };
    assert_eq!((scales(0), scales(1)), (1, 0), "{:?}", play.log.borrow());
}
