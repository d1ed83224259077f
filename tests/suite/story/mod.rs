//! The real loop over the simulated cluster in virtual time, with the promises checked at each change of the
//! world.
//!
//! A BlueStore created by hand and a Filestore are migrated completely, at whatever point the program dies or
//! freezes.

mod bootstrap;
mod crash;
mod crash_loop;
mod denied;
mod directories;
mod drains;
mod emptied;
mod freeze;
mod group_flags;
mod kept_ledger;
mod new_osds;
mod new_pvcs;
mod parallel;
mod partial;
pub(crate) mod play;
mod portable;
mod pvcs;
mod removal;
mod rook;
mod silent;
mod temporary;

use std::collections::BTreeMap;

use osd_migrate::domain::act::{Act, CephAct, KubeAct};
use osd_migrate::domain::next::Summary;
use osd_migrate::domain::observation::SlotState;
use osd_migrate::domain::osd::OsdFsid;
use osd_migrate::run::End;
use osd_migrate::sim::{Happening, Stage, Stumble};

use crate::support::build::{FINISHED, nothing_left};
use play::{BY_HAND, FILESTORE, Play, count, old};

#[test]
fn two_legacy_osds_are_migrated_one_after_the_other() {
    let play = Play::new();
    assert_eq!(play.run(), Play::finished());
    play.assert_all_is_well();
    play.assert_once_per_incarnation();
    let one_osd = [
        "save record",
        "do agent",
        "save proof",
        "do back-up",
        "save stop",
        "save fence",
        "do fence",
        "do set-osd-flags",
        "save pdb",
        "do limit-drains",
        "do stop",
        "save down",
        "do destroy",
        "save rebuild",
        "do agent",
        "save new",
        "do deploy",
        "save up",
        "do unset-osd-flags",
        "do unfence",
        "save unfenced",
        "save closing",
        "do limit-drains",
        "save pdb-restored",
        "do clean-up",
        "save closed",
    ];
    let end = [FINISHED];
    let expected: Vec<&str> = one_osd.iter().chain(&one_osd).chain(&end).copied().collect();
    assert_eq!(*play.log.borrow(), expected);
}

#[test]
fn run_is_reproducible_by_seed_and_any_seed_finishes() {
    let story = |seed| {
        let play = Play::seeded(seed);
        assert_eq!(play.run(), Play::finished());
        play.assert_all_is_well();
        let sim = play.sim.borrow();
        (sim.occurred.iter().map(|one| (one.at, one.what.clone())).collect::<Vec<_>>(), sim.world.clone())
    };
    assert_eq!(story(7), story(7));
    assert_ne!(story(7).0, story(8).0);
}

#[test]
fn run_after_a_finished_one_is_idempotent() {
    let play = Play::new();
    assert_eq!(play.run(), Play::finished());
    let (done, version) = (play.sim.borrow().done.len(), play.sim.borrow().version());
    assert_eq!(play.run(), Play::finished());
    assert_eq!((play.sim.borrow().done.len(), play.sim.borrow().version()), (done, version));
}

/// Makes ceph-volume fail in the next rebuild of osd.0, right after it has registered the slot.
pub(crate) fn rebuild_fails(play: &Play) {
    play.sim.borrow_mut().add_fault(std::rc::Rc::new(|world, _| {
        let issued = world.agents.iter().find(|(_, agent)| {
            agent.request.osd == BY_HAND && matches!(agent.stage, Stage::Registered { .. })
        });
        let fails = |(job, _): (&String, _)| Happening::AgentStumbles(job.clone(), Stumble::Fails);
        issued.map(fails).map(|what| (chrono::TimeDelta::zero(), what)).into_iter().collect()
    }));
}

#[test]
fn failed_rebuild_after_osd_new_is_retried_with_the_same_id() {
    let play = Play::new();
    rebuild_fails(&play);
    assert_eq!(play.run(), Play::finished());
    play.assert_all_is_well();
    play.assert_once_per_incarnation();
    let destroys = count(&play, |act| matches!(act, Act::Ceph(CephAct::Destroy { osd: BY_HAND, .. })));
    assert_eq!(destroys, 2, "the old fsid, and an issued one");
}

#[test]
fn rebuild_that_fails_twice_succeeds_the_third_time() {
    let play = Play::new();
    rebuild_fails(&play);
    let again = std::cell::Cell::new(None::<String>);
    play.sim.borrow_mut().add_fault(std::rc::Rc::new(move |world, _| {
        let issued = world.agents.iter().find(|(_, agent)| {
            agent.request.osd == BY_HAND && matches!(agent.stage, Stage::Registered { .. })
        });
        // The first attempt belongs to the other fault.
        let Some((job, _)) = issued else { return Vec::new() };
        let first = again.take().unwrap_or_else(|| job.clone());
        again.set(Some(first.clone()));
        if first == *job {
            return Vec::new();
        }
        vec![(chrono::TimeDelta::zero(), Happening::AgentStumbles(job.clone(), Stumble::Fails))]
    }));
    assert_eq!(play.run(), Play::finished());
    play.assert_all_is_well();
    let destroys = count(&play, |act| matches!(act, Act::Ceph(CephAct::Destroy { osd: BY_HAND, .. })));
    assert_eq!(destroys, 3, "the old fsid, and two issued ones");
}

#[test]
fn stop_is_reverted_if_a_partner_fails_and_retried_later() {
    let play = Play::new();
    play.partner_fails();
    assert_eq!(play.run(), Play::finished());
    play.assert_all_is_well();
    assert_eq!(count(&play, |act| matches!(act, Act::Kube(KubeAct::Restart { osd: BY_HAND, .. }))), 1);
    assert_eq!(count(&play, |act| matches!(act, Act::Kube(KubeAct::Stop { osd: BY_HAND, .. }))), 2);
    assert_eq!(count(&play, |act| matches!(act, Act::Ceph(CephAct::Destroy { osd: BY_HAND, .. }))), 1);
}

#[test]
fn cancelled_run_finishes_the_stopped_osd_and_resume_the_rest() {
    let play = Play::new();
    assert_eq!(play.start_cancelled_at_stop(None).go_on(), cancelled());
    assert_cancelled_after_the_first(&play);
    play.sim.borrow_mut().world.kube.control = None;
    assert_eq!(play.run(), Play::finished());
    play.assert_all_is_well();
}

pub(crate) fn cancelled() -> Option<Result<End, osd_migrate::run::RunError>> {
    Some(Ok(End::Finished(Summary { cancelled: true, ..nothing_left() })))
}

/// Asserts the end of a run that was cancelled while osd.0 was stopped.
///
/// osd.0 is finished, osd.2 is not started, and nothing of osd-migrate's is left.
pub(crate) fn assert_cancelled_after_the_first(play: &Play) {
    let sim = play.sim.borrow();
    let slots = &sim.world.ceph.slots;
    assert_ne!(slots[&BY_HAND].fsid, Some(old(BY_HAND)));
    assert_eq!(slots[&FILESTORE].fsid, Some(old(FILESTORE)));
    for (osd, slot) in slots {
        assert_eq!(slot.state, SlotState::Exists, "{osd}");
        assert_eq!((slot.up, slot.is_in, slot.noout, slot.noin), (true, true, false, false), "{osd}");
    }
    play::assert_no_leftovers(&sim);
    let stops = sim.done.iter().filter(|act| matches!(act, Act::Kube(KubeAct::Stop { .. }))).count();
    assert_eq!(stops, 1);
}

/// Returns how often each fsid was destroyed.
pub(crate) fn destroyed(play: &Play) -> BTreeMap<OsdFsid, u32> {
    let mut times: BTreeMap<OsdFsid, u32> = BTreeMap::new();
    for act in &play.sim.borrow().done {
        if let Act::Ceph(CephAct::Destroy { fsid, .. }) = act {
            *times.entry(*fsid).or_default() += 1;
        }
    }
    times
}
