//! noscrub and nodeep-scrub while OSDs are emptied or stopped (`--no-scrub`).

use osd_migrate::domain::ledger::NoScrub;
use osd_migrate::domain::observation::{Control, ControlKind};
use osd_migrate::domain::scrub::ScrubFlags;

use super::*;

const DEEP: ScrubFlags = ScrubFlags { noscrub: false, nodeep_scrub: true };

fn wanted(w: &mut World) {
    w.policy.no_scrub = true;
}

/// Returns a world in which an OSD is stopped next.
fn about_to_stop() -> World {
    World::intended(OSD).with(|w| w.seen.kube.osd_pdb = None).with(own_pdb)
}

fn own_pdb(w: &mut World) {
    w.seen.kube.own_pdb = Some("own".to_owned());
}

fn flags(names: &'static [&'static str]) -> impl FnOnce(&mut World) {
    move |w| w.seen.ceph.flags = names.iter().map(|name| (*name).to_owned()).collect()
}

fn is_stop(next: &Next) -> bool {
    matches!(next, Next::Do(Act::Kube(KubeAct::Stop { .. })))
}

fn sets(next: &Next) -> Option<ScrubFlags> {
    if let Next::Do(Act::Ceph(CephAct::SetNoScrub { flags })) = next { Some(*flags) } else { None }
}

fn unsets(next: &Next) -> Option<ScrubFlags> {
    if let Next::Do(Act::Ceph(CephAct::UnsetNoScrub { flags })) = next { Some(*flags) } else { None }
}

/// Returns a world in which the flags are set, and an OSD is stopped next.
fn set() -> World {
    let saved = about_to_stop().with(wanted).saved("no-scrub");
    saved.with(flags(&["noscrub", "nodeep-scrub"])).saved("no-scrub-set")
}

/// Returns a world in which the flags are set, and the run waits for an OSD to go down.
fn waits(seen: ScrubFlags) -> World {
    World::stopping(OSD).with(wanted).with(move |w| {
        w.ledger.run.scrub = Some(NoScrub { flags: seen, seen: true });
        w.seen.ceph.flags = ScrubFlags::BOTH.names().map(str::to_owned).collect();
    })
}

fn paused(w: &mut World) {
    w.seen.kube.control = Some(Control { kind: ControlKind::Pause, since: None });
}

#[test]
fn scrub_flags_are_saved_then_set_right_before_a_stop() {
    assert!(is_stop(&about_to_stop().plan()), "they are not set unless the owner asks for it");
    let saved = about_to_stop().with(wanted).saved("no-scrub");
    assert_eq!(saved.ledger.run.scrub, Some(NoScrub { flags: ScrubFlags::BOTH, seen: false }));
    assert_eq!(sets(&saved.plan()), Some(ScrubFlags::BOTH));
    // One of two commands was sent.
    assert_eq!(sets(&saved.with(flags(&["noscrub"])).plan()), Some(DEEP));
    assert!(is_stop(&set().plan()));
    assert!(set().ledger.run.scrub.unwrap().seen);
}

#[test]
fn scrub_flag_of_another_client_stays_set() {
    let theirs = about_to_stop().with(wanted).with(flags(&["noscrub"])).saved("no-scrub");
    assert_eq!(theirs.ledger.run.scrub.unwrap().flags, DEEP);
    assert_eq!(sets(&theirs.plan()), Some(DEEP));
    assert_eq!(unsets(&waits(DEEP).with(paused).plan()), Some(DEEP));
    check!(waits(DEEP).plan(), Next::Wait(_));
    // Both are another client's: nothing is to be done.
    let both = about_to_stop().with(wanted).with(flags(&["noscrub", "nodeep-scrub"]));
    assert!(is_stop(&both.plan()));
}

#[test]
fn scrub_flag_that_another_client_unsets_is_not_set_again() {
    let unset = set().with(flags(&["nodeep-scrub"])).saved("no-scrub-unset-externally");
    assert_eq!(unset.ledger.run.scrub, Some(NoScrub { flags: DEEP, seen: true }));
    assert!(is_stop(&unset.plan()));
    // That is noticed during a wait, too. Set again later, it is the other client's.
    waits(ScrubFlags::BOTH).with(flags(&["nodeep-scrub"])).saved("no-scrub-unset-externally");
}

#[test]
fn scrub_flags_are_unset_while_a_run_is_held_or_scrubs_are_late() {
    type Change = fn(&mut World);
    let changes: [Change; 6] = [
        paused,
        |w| w.seen.kube.control = Some(Control { kind: ControlKind::Cancel, since: None }),
        |w| w.policy.windows = "03:00-03:01".parse().unwrap(),
        |w| w.policy.no_scrub = false,
        |w| w.seen.ceph.health = ["PG_NOT_SCRUBBED".to_owned()].into(),
        |w| w.seen.ceph.health = ["PG_NOT_DEEP_SCRUBBED".to_owned()].into(),
    ];
    for change in changes {
        let waits = waits(ScrubFlags::BOTH).with(change);
        assert_eq!(unsets(&waits.plan()), Some(ScrubFlags::BOTH));
        let restored = waits.with(flags(&[])).saved("no-scrub-restored");
        assert_eq!(restored.ledger.run.scrub, None);
        assert_eq!(sets(&restored.plan()), None);
    }
}
