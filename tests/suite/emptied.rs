//! OSDs that are emptied before their stop, as `plan` and `status` show them.

use serde_json::json;

use osd_migrate::domain::gate::{self, Own, Reason};
use osd_migrate::domain::ledger::Emptying;
use osd_migrate::domain::next::{Next, Wait};
use osd_migrate::domain::observation::Emptiable;
use osd_migrate::domain::osd::OsdId;
use osd_migrate::domain::pace::RunPace;
use osd_migrate::domain::plan;
use osd_migrate::domain::policy::Empty;
use osd_migrate::domain::preview::{self, Now};
use osd_migrate::domain::view::View;
use osd_migrate::layout::Width;
use osd_migrate::report::{Event, RunProgress, Said};
use osd_migrate::show::{self, Status};

use crate::preview::{names, now, table};
use crate::support::build::{BY_HAND, FILESTORE, POOL, World, noon};

/// Returns a cluster with one pool of size 2, and Ceph's answer about the first OSD.
fn two_replicas(answer: Option<Emptiable>) -> World {
    World::new().with(|w| {
        w.seen.ceph.pools.get_mut(&POOL).unwrap().size = 2;
        w.seen.ceph.emptiable = answer.into_iter().map(|answer| (BY_HAND, answer)).collect();
        for osd in [BY_HAND, FILESTORE] {
            w.seen.ceph.slots.get_mut(&osd).unwrap().used_bytes = Some(3 << 30);
        }
    })
}

#[test]
fn plan_shows_which_osds_are_emptied_and_what_it_moves() {
    let yes = || Some(Emptiable::Yes { moved_bytes: 105 << 20, fullest: Some((OsdId(7), 43)) });
    let world = two_replicas(yes());
    assert_eq!(now(&world, BY_HAND), Now::Next);
    assert_eq!(now(&world, FILESTORE), Now::Waits(Reason::Queued { osd: BY_HAND }));
    let text = table(&world);
    for expected in [
        "2 of 6 OSDs to migrate, 4 as declared; 12.0 GiB to move",
        "\nEmptied before the stop (their data moves to other OSDs, and back): osd.0, osd.2\n",
        "\nosd.0 is emptied first: 105.0 MiB move, and back; the fullest OSD then: osd.7, 43 %",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let lines = preview::lines(&world.policy, &world.ledger, &world.seen);
    let of = |osd: OsdId| lines.iter().find(|line| line.osd == osd).unwrap();
    assert_eq!((of(BY_HAND).strategy, of(FILESTORE).strategy), ("emptied, same id", "emptied, same id"));
    assert_eq!((of(OsdId(1)).emptied.is_some(), of(OsdId(1)).strategy), (false, "-"));
    // The price is known before a run may begin; a person confirms by it.
    let unconfirmed = two_replicas(yes()).with(|w| w.seen.kube.declaration.confirmed = false);
    assert!(table(&unconfirmed).contains("\nosd.0 is emptied first: "));
    // With redundancy, an OSD is emptied only by order.
    let all = two_replicas(yes()).with(|w| {
        w.seen.ceph.pools.get_mut(&POOL).unwrap().size = 3;
        w.policy.empty = Empty::All;
    });
    assert_eq!(now(&all, BY_HAND), Now::Next);
    assert!(table(&all).contains("osd.0 is emptied first: "));
    let usual = all.with(|w| w.policy.empty = Empty::Thin);
    assert!(
        !table(&usual).contains("emptied") && table(&usual).contains("6.0 GiB to move"),
        "{}",
        table(&usual)
    );
}

#[test]
fn preview_shows_why_an_osd_cannot_be_emptied() {
    let why = || "without osd.0, 3 PGs find too few OSDs".to_owned();
    for confirmed in [true, false] {
        let world = two_replicas(Some(Emptiable::No(why())));
        let world = world.with(|w| w.seen.kube.declaration.confirmed = confirmed);
        let refused = Now::Refused(Reason::CannotBeEmptied { osd: BY_HAND, why: why() });
        assert_eq!(now(&world, BY_HAND), refused);
        assert!(table(&world).contains("refused: cannot-be-emptied"), "{}", table(&world));
        assert!(!table(&world).contains("is emptied first"), "{}", table(&world));
    }
    // A run asks about the next OSD then. Nobody has asked yet.
    let world = two_replicas(Some(Emptiable::No(why())));
    assert_eq!(now(&world, FILESTORE), Now::Waits(Reason::EmptyingUnknown { osd: FILESTORE, why: None }));
    let unknown = two_replicas(Some(Emptiable::Unknown(why())));
    let expected = Reason::EmptyingUnknown { osd: BY_HAND, why: Some(why()) };
    assert_eq!(now(&unknown, BY_HAND), Now::Waits(expected));
    let not_asked = two_replicas(None);
    assert_eq!(now(&not_asked, BY_HAND), Now::Waits(Reason::EmptyingUnknown { osd: BY_HAND, why: None }));
    assert_eq!(now(&not_asked, FILESTORE), Now::Waits(Reason::Queued { osd: BY_HAND }));
}

#[test]
fn preview_next_is_the_osd_that_a_run_empties_first() {
    let yes = || two_replicas(Some(Emptiable::Yes { moved_bytes: 1, fullest: None }));
    let all = World::new().with(|w| w.policy.empty = Empty::All);
    for (world, expected) in [(yes(), Some(BY_HAND)), (two_replicas(None), None), (all, None)] {
        let next = [BY_HAND, FILESTORE].into_iter().find(|osd| now(&world, *osd) == Now::Next);
        assert_eq!(next, expected);
        let begun = match world.plan() {
            Next::Save { osd, ledger, .. } => osd.filter(|osd| ledger.records[osd].empty.is_some()),
            _ => None,
        };
        assert_eq!(begun, expected);
    }
}

#[test]
fn ceph_is_asked_about_the_first_osd_to_be_emptied() {
    let first = |world: &World| {
        let view = View { policy: &world.policy, ledger: &world.ledger, seen: &world.seen };
        plan::first_to_be_emptied(&Own::of(&gate::accepted(view), view.seen), view)
    };
    let unconfirmed = two_replicas(None).with(|w| w.seen.kube.declaration.confirmed = false);
    for world in [two_replicas(None), unconfirmed] {
        assert_eq!(first(&world), Some(BY_HAND));
        assert_eq!(first(&world.with(|w| w.policy.skip = [BY_HAND].into())), Some(FILESTORE));
    }
    assert_eq!(first(&World::new()), None);
    assert_eq!(first(&two_replicas(None).with(|w| w.policy.empty = Empty::Never)), None);
}

#[test]
fn status_shows_what_is_left_on_an_osd_that_is_emptied() {
    let emptied = |codes: &[&str], emptied_at| {
        World::proven(BY_HAND).with(|w| {
            let record = w.record(BY_HAND);
            record.milestones.extend(codes.iter().map(|code| ((*code).to_owned(), noon())));
            record.empty = Some(Emptying {
                bytes: 8 << 30,
                intended_at: Some(noon()),
                out_since: Some(noon()),
                least: Some((5 << 30, noon())),
                emptied_at,
                ..Emptying::default()
            });
        })
    };
    let of = |world: &World, said: Option<&Said>| {
        let (ledger, now) = (&world.ledger, noon() + chrono::TimeDelta::minutes(5));
        let status = Status {
            names: names(),
            ledger,
            control: None,
            own_pdb: false,
            runner: None,
            requests: None,
            said,
            now,
        };
        (show::status_text(&status, Width::Unknown), show::status_json(&status))
    };
    let moving = emptied(&["emptying", "marked-out"], None);
    let (text, json) = of(&moving, None);
    assert!(text.contains("emptying, 5.0 GiB left on it"), "{text}");
    assert_eq!(json["open"][0]["emptying"]["leftBytes"], json!(5_u64 << 30));
    // The last message of the run is more recent than the ledger.
    let mut pace = RunPace::default();
    pace.empties((BY_HAND, false), noon(), 8 << 30, 12);
    pace.empties((BY_HAND, false), noon() + chrono::TimeDelta::minutes(4), 2 << 30, 3);
    pace.queue.in_progress = 1;
    let flags = [].into();
    let wait = Wait::Emptying { osd: BY_HAND, pgs: 3, bytes: 2 << 30, elsewhere: None, flags, first: None };
    let event =
        Event::Waiting { wait: &wait, policy: &moving.policy, ledger: &moving.ledger, seen: &moving.seen };
    let said = Said { pace: Some(pace), ..Said::of(&event, &event.to_string(), noon(), noon()) };
    let (text, json) = of(&moving, Some(&said));
    assert!(text.contains("emptying, 2.0 GiB left on it"), "{text}");
    assert!(text.contains("osd.0 emptying: 75 % of 8.0 GiB, 25.6 MiB/s, "), "{text}");
    assert!(text.contains("osd.0 is being emptied: 3 PGs, 2.0 GiB left on it [emptying]"), "{text}");
    assert_eq!(json["progress"]["backfills"][0]["emptying"], true);
    let (text, json) = of(&emptied(&["emptying", "marked-out", "emptied"], Some(noon())), None);
    assert!(text.contains("emptied, stop is next"), "{text}");
    assert_eq!(json["open"][0]["emptying"]["leftBytes"], 0);
}

#[test]
fn emptying_without_progress_is_a_stall_with_its_cause() {
    let world = World::proven(BY_HAND);
    let world = world.with(|w| w.seen.ceph.flags = ["nobackfill".to_owned()].into());
    let flags = world.seen.ceph.flags.clone();
    let wait = Wait::Emptying { osd: BY_HAND, pgs: 3, bytes: 2 << 30, elsewhere: None, flags, first: None };
    let event =
        Event::Waiting { wait: &wait, policy: &world.policy, ledger: &world.ledger, seen: &world.seen };
    let mut progress = RunProgress::default();
    let mut after = |minutes| {
        let detail = progress.add(&event, &[], noon() + chrono::TimeDelta::minutes(minutes));
        (progress.stall.clone(), detail.unwrap_or_default())
    };
    assert_eq!((after(0).0, after(9).0), (None, None));
    let (stall, detail) = after(10);
    assert!(stall.is_some_and(|cause| cause.ends_with("ceph osd unset nobackfill")), "{detail}");
    assert!(detail.starts_with("no progress for 10 min: the OSD flag nobackfill is set"), "{detail}");
}
