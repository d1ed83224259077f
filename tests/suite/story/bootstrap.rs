//! client.bootstrap-osd is missing (Rook from 1.19 on deletes it).
//!
//! The program creates the key for the agents and removes it at the end, at whatever point it dies or
//! freezes.

use osd_migrate::sim::World;

use super::crash::Crashes;
use super::play::{Play, six};

fn without_it() -> World {
    let mut world = six();
    world.ceph.bootstrap = Some(false);
    world
}

fn play() -> Play {
    Play::over(without_it(), 2)
}

fn it_is_gone(play: &Play) {
    play.assert_all_is_well();
    let sim = play.sim.borrow();
    assert_eq!(sim.world.ceph.bootstrap, Some(false), "the key that was created for the run still exists");
    assert!(!sim.ledger().unwrap().run.bootstrap, "the ledger still records the key");
}

/// Returns the saves and acts about the key.
fn key_entries(play: &Play) -> Vec<String> {
    play.log.borrow().iter().filter(|line| line.contains("bootstrap")).cloned().collect()
}

#[test]
fn bootstrap_key_is_recorded_created_once_and_removed_at_end() {
    let play = play();
    assert_eq!(play.run(), Play::finished());
    it_is_gone(&play);
    assert_eq!(key_entries(&play), ["save bootstrap", "do bootstrap", "do bootstrap", "save no-bootstrap"]);
}

#[test]
fn existing_bootstrap_key_is_never_removed() {
    let play = Play::over(six(), 2);
    assert_eq!(play.run(), Play::finished());
    assert_eq!(play.sim.borrow().world.ceph.bootstrap, Some(true));
    assert_eq!(key_entries(&play), Vec::<String>::new());
}

#[test]
fn bootstrap_key_is_removed_at_the_end_after_any_crash() {
    Crashes { play, check: it_is_gone, ..Crashes::PLAIN }.run("no bootstrap key", false);
}
