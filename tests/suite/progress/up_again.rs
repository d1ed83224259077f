//! An OSD that is up again: what holds up its backfill is named, and it limits no drains.

use osd_migrate::domain::act::{Act, KubeAct};
use osd_migrate::domain::next::{Next, Saving, Wait};

use super::sick::SICK;
use crate::support::build::World;

#[test]
fn flags_that_hold_up_a_backfill_are_named() {
    let world = World::booted(SICK).with(|w| {
        (w.slot(SICK).noout, w.slot(SICK).noin) = (false, false);
        (w.ledger.run.fence, w.seen.kube.fence) = (None, None);
        w.seen.ceph.flags.insert("norebalance".to_owned());
    });
    let Next::Wait(wait @ Wait::ActiveClean { .. }) = world.plan() else { panic!("{:#?}", world.plan()) };
    let said = wait.to_string();
    assert!(said.contains("ceph osd unset norebalance") && said.contains("undersized+degraded"), "{said}");
}

#[test]
fn finished_osd_limits_no_drains_again_if_its_pod_is_not_ready() {
    let closing = World::filled(SICK).with(|w| {
        w.record(SICK).closing = true;
        let at = w.seen.at;
        w.record(SICK).milestones.push((Saving::Closing.code().to_owned(), at));
        w.seen.kube.osd_pdb = None;
        w.daemon(SICK).rolled_out = false;
    });
    assert!(
        !matches!(closing.plan(), Next::Do(Act::Kube(KubeAct::CreatePdb { .. }))),
        "{:#?}",
        closing.plan()
    );
}
