//! Requests to remove OSDs, as `plan`, `status`, `remove` and `keep` show them.

use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde_json::json;

use osd_migrate::domain::estimate::{Rate, Totals};
use osd_migrate::domain::gate::Reason;
use osd_migrate::domain::ledger::{Emptying, Ledger, Quarantine, Strategy};
use osd_migrate::domain::observation::{Emptiable, OnPvcs};
use osd_migrate::domain::osd::{NodeName, OsdId};
use osd_migrate::domain::plan::Disks;
use osd_migrate::domain::preview::{self, Line, Now};
use osd_migrate::domain::removal::{Cause, DiskAfter, Removal, RemovalRequest};
use osd_migrate::layout::Width;
use osd_migrate::show::{self, Asked, By, Status, StoredRequests, ToRemove};

use crate::preview::{names, now, table};
use crate::support::build::{BY_HAND, FILESTORE, World, noon};

/// An OSD that is as declared.
const CONFORMING: OsdId = OsdId(1);

/// Returns a cluster whose run removes OSDs, with a request for each of these, and Ceph's answer about the
/// first one.
fn requested(osds: &[OsdId]) -> World {
    World::new().with(|w| {
        w.policy.removals = true;
        for osd in osds {
            let fsid = w.slot(*osd).fsid.unwrap();
            w.slot(*osd).used_bytes = Some(3 << 30);
            let request = RemovalRequest { since: Some(noon()), ..RemovalRequest::of(fsid) };
            w.seen.kube.requests.removals.insert(*osd, request);
        }
        let yes = Emptiable::Yes { moved_bytes: 105 << 20, fullest: Some((OsdId(7), 43)) };
        w.seen.ceph.emptiable = osds.first().map(|osd| (*osd, yes)).into_iter().collect();
    })
}

fn lines(world: &World) -> Vec<Line> {
    preview::lines(&world.policy, &world.ledger, &world.seen)
}

fn line(world: &World, osd: OsdId) -> Line {
    lines(world).into_iter().find(|line| line.osd == osd).unwrap()
}

/// Returns the world in which the removal of the OSD has begun.
fn removing(osd: OsdId, disk: DiskAfter) -> World {
    let mut world = requested(&[osd]);
    let mut record = World::proven(BY_HAND).ledger.records.remove(&BY_HAND).unwrap();
    (record.osd, record.old) = (osd, world.slot(osd).fsid.unwrap());
    record.strategy = Strategy::Removal(Removal { disk, ..Removal::default() });
    record.empty = Some(Emptying::default());
    world.ledger.records.insert(osd, record);
    world
}

#[test]
fn plan_shows_the_removal_before_the_migrations() {
    let world = requested(&[CONFORMING, FILESTORE]);
    let of = |osd: OsdId| line(&world, osd);
    assert_eq!((of(CONFORMING).now, of(CONFORMING).strategy), (Now::Next, "emptied, removed"));
    assert_eq!(of(FILESTORE).now, Now::Waits(Reason::Queued { osd: CONFORMING }));
    assert_eq!(of(BY_HAND).now, Now::Waits(Reason::Queued { osd: CONFORMING }));
    assert_eq!(of(FILESTORE).becomes, None, "an OSD that is removed is not migrated");
    assert_eq!(of(CONFORMING).moved_bytes(), Some(3 << 30), "nothing moves back");
    let totals = Totals::of(&lines(&world), Rate::of(None));
    assert_eq!((totals.to_migrate, totals.to_remove), (1, 2));
    let text = table(&world);
    for expected in [
        "1 of 6 OSDs to migrate, 2 to remove, 3 as declared",
        "removal requested",
        "\nRemoved, as requested: osd.1 (its disk is wiped), osd.2 (its disk is wiped). To keep one: \
         osd-migrate -n NAMESPACE keep osd.1\n",
        "\nosd.1 is emptied first: 105.0 MiB move; the fullest OSD then: osd.7, 43 %",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(!text.contains("Emptied before the stop"), "{text}");
}

#[test]
fn plan_and_status_name_the_switch_that_removes_an_osd() {
    let out = World::new().with(|w| {
        (w.policy.removals, w.policy.remove_out) = (true, Some(TimeDelta::minutes(60)));
        let since = w.seen.at - TimeDelta::minutes(61);
        let slot = w.slot(CONFORMING);
        (slot.up, slot.is_in, slot.down_since) = (false, false, Some(since));
    });
    let text = table(&out);
    for expected in [
        "  run.removeOut ",
        "\nRemoved, because run.removeOut is on: osd.1 (its disk stays as it is). To keep one: run with \
         --skip osd.1 (value run.skip)",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let mut world = removing(CONFORMING, DiskAfter::Wipe);
    world.seen.kube.requests.removals.clear();
    let removal = Removal { cause: Cause::Directory, ..Removal::default() };
    world.record(CONFORMING).strategy = Strategy::Removal(removal);
    let expected =
        "because run.dropDirectories is on: osd.1 (its directory is deleted). To keep one: run with --skip";
    let (plan, (status, _)) = (table(&world), status(&world, &stored(&world)));
    assert!(plan.contains(expected) && status.contains("  run.dropDirectories "), "{plan}\n{status}");
    for text in [text, plan, status] {
        assert!(!text.contains("requested") && !text.contains("NAMESPACE keep"), "{text}");
    }
}

#[test]
fn plan_of_a_run_without_removals_refuses_them() {
    let world = requested(&[CONFORMING]).with(|w| w.policy.removals = false);
    let text = table(&world);
    assert!(text.contains("refused: not-removable"), "{text}");
    assert!(text.contains("Set the value remove.enabled of the chart, or run with --removals"), "{text}");
    assert_eq!(now(&world, BY_HAND), Now::Next);
    // A migration of such an OSD does not begin either.
    let both = requested(&[BY_HAND]).with(|w| w.policy.removals = false);
    assert!(matches!(now(&both, BY_HAND), Now::Refused(Reason::NotRemovable { .. })));
    assert_eq!(now(&both, FILESTORE), Now::Next);
}

#[test]
fn request_for_another_fsid_changes_nothing_in_the_plan() {
    let other = requested(&[BY_HAND]).with(|w| {
        let fsid = w.slot(FILESTORE).fsid.unwrap();
        w.seen.kube.requests.removals.get_mut(&BY_HAND).unwrap().fsid = fsid;
        w.seen.ceph.emptiable.clear();
    });
    let before = Line { used_bytes: Some(3 << 30), ..line(&World::new(), BY_HAND) };
    assert_eq!(line(&other, BY_HAND), before);
    assert!(!table(&other).contains("removal"), "{}", table(&other));
}

#[test]
fn removal_that_waits_for_its_own_gate_holds_up_no_other() {
    let down = requested(&[CONFORMING]).with(|w| w.slot(CONFORMING).up = false);
    assert!(matches!(now(&down, CONFORMING), Now::Waits(Reason::Down { .. })));
    let refused = requested(&[CONFORMING]).with(|w| w.daemon(CONFORMING).on_pvcs = Some(OnPvcs::default()));
    assert!(matches!(now(&refused, CONFORMING), Now::Refused(Reason::NotRemovable { .. })));
    assert_eq!(now(&refused, BY_HAND), Now::Next);
    // One that finds no place for its data neither.
    let no = requested(&[CONFORMING]).with(|w| {
        w.seen.ceph.emptiable = [(CONFORMING, Emptiable::No("pool 1 is full".to_owned()))].into();
    });
    assert!(matches!(now(&no, CONFORMING), Now::Refused(Reason::CannotBeEmptied { .. })));
    assert_eq!(now(&no, BY_HAND), Now::Next);
}

#[test]
fn approved_plan_has_no_removal() {
    let plan =
        |world: &World| preview::plan_lines(&lines(world), (&Disks::default(), &[]), world.view()).text();
    let world = requested(&[FILESTORE]);
    assert!(plan(&World::new()).contains("osd.2 on "));
    assert!(!plan(&world).contains("osd.2 on ") && plan(&world).contains("osd.0 on "), "{}", plan(&world));
}

fn status(world: &World, stored: &StoredRequests) -> (String, serde_json::Value) {
    let status = Status {
        names: names(),
        ledger: &world.ledger,
        control: None,
        own_pdb: false,
        runner: None,
        requests: Some(stored),
        said: None,
        now: noon() + chrono::TimeDelta::minutes(5),
    };
    (show::status_text(&status, Width::Unknown), show::status_json(&status))
}

fn stored(world: &World) -> StoredRequests {
    StoredRequests { requests: world.seen.kube.requests.clone(), deployed: BTreeMap::new() }
}

#[test]
fn status_shows_each_request_with_its_state() {
    let mut world = removing(CONFORMING, DiskAfter::Wipe);
    let waiting = requested(&[BY_HAND, FILESTORE]).seen.kube.requests;
    world.seen.kube.requests.removals.extend(waiting.removals);
    world.seen.kube.requests.unreadable.insert("osd-x".to_owned());
    let other = world.slot(BY_HAND).fsid.unwrap();
    let stored = StoredRequests { deployed: [(FILESTORE, other), (BY_HAND, other)].into(), ..stored(&world) };
    let (text, json) = status(&world, &stored);
    for expected in [
        "osd.0      is wiped if it is up  5 min ago  waits for a run with --removals",
        "osd.1      is wiped              5 min ago  in progress",
        "osd.2      is wiped if it is up  5 min ago  void: the OSD has another fsid",
        "\nTo delete void requests: osd-migrate -n NAMESPACE keep osd.2\n",
        "\nRequests that can't be read, and are ignored: osd-x. See: kubectl -n NAMESPACE get configmap \
         osd-migrate-requests -o yaml",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    let removals = json["requests"]["removals"].as_array().unwrap();
    let states: Vec<_> = removals.iter().map(|one| (&one["osd"], &one["state"])).collect();
    let expected =
        [(json!(0), json!("waiting")), (json!(1), json!("in-progress")), (json!(2), json!("void"))];
    assert_eq!(states, expected.iter().map(|(osd, state)| (osd, state)).collect::<Vec<_>>());
    assert_eq!((&removals[0]["disk"], &removals[0]["fsid"]), (&json!("wipe"), &json!(other)));
    assert_eq!(json["requests"]["unreadable"], json!(["osd-x"]));
    let quarantine = Quarantine { why: "its disk failed".to_owned(), since: noon() };
    world.record(CONFORMING).quarantine = Some(quarantine);
    assert!(status(&world, &stored).0.contains("osd.1      is wiped              5 min ago  quarantined"));
    let mut of_node = stored.clone();
    for osd in [BY_HAND, FILESTORE] {
        of_node.requests.removals.get_mut(&osd).unwrap().node = Some(NodeName("h1".to_owned()));
    }
    let (text, json) = status(&world, &of_node);
    let expected =
        "\nAll OSDs of node h1: osd.0, osd.2. To keep them: osd-migrate -n NAMESPACE keep --node h1\n";
    assert!(text.contains(expected), "{text}");
    assert_eq!(json["requests"]["removals"][0]["node"], json!("h1"));
    let none = status(&World::new(), &StoredRequests::default());
    assert!(!none.0.contains("TO REMOVE"), "{}", none.0);
    assert_eq!(none.1["requests"], json!({"removals": [], "unreadable": []}));
}

#[test]
fn status_of_an_osd_that_is_removed_names_its_stage() {
    let at = |milestones: &[&str]| {
        let mut world = removing(CONFORMING, DiskAfter::Wipe);
        let record = world.record(CONFORMING);
        record.milestones.extend(milestones.iter().map(|code| ((*code).to_owned(), noon())));
        let (text, json) = status(&world, &stored(&world));
        assert!(text.contains("removal requested"), "{text}");
        json["open"][0]["milestone"].as_str().unwrap().to_owned()
    };
    assert_eq!(at(&[]), "disk proven, emptying is next");
    assert!(at(&["emptying", "marked-out"]).starts_with("emptying"));
    assert_eq!(at(&["emptying", "marked-out", "emptied"]), "emptied, stop is next");
    for last in ["stop", "down", "wipe", "disk-left"] {
        assert_eq!(at(&["emptying", "marked-out", "emptied", "stop", last]), "removing", "{last}");
    }
    assert_eq!(at(&["emptying", "stop", "wipe", "removed"]), "cleaning up");
}

#[test]
fn removal_is_listed_and_requested_only_after_its_confirmation() {
    let world = World::new();
    let one = |osd: OsdId, up| ToRemove {
        keep_id: false,
        node: None,
        osd,
        fsid: world.seen.ceph.slots[&osd].fsid.unwrap(),
        disk: DiskAfter::Mark,
        host: Some("h1".to_owned()),
        devices: Some("/dev/disk/by-id/x".to_owned()),
        used_bytes: Some(3 << 30),
        up,
    };
    let found = vec![one(BY_HAND, true), one(FILESTORE, false)];
    let asked = Asked { found, by: By::Osds, remarks: Vec::new() };
    let listed = show::requested_text(&asked, false, Width::Unknown);
    for expected in [
        &asked.found[0].fsid.to_string(),
        "/dev/disk/by-id/x  3.0 GiB  is wiped and marked",
        "Down: osd.2. Such an OSD is removed when it is out and its data is on other OSDs",
        "osd-migrate -n NAMESPACE plan --remove osd.0,osd.2",
        "Not confirmed: nothing was requested. To request it: osd-migrate -n NAMESPACE remove osd.0,osd.2 --disk mark \
         --confirm yes-really-remove-osds",
    ] {
        assert!(listed.contains(expected), "{expected}: {listed}");
    }
    let done = show::requested_text(&asked, true, Width::Unknown);
    assert!(done.contains("Requested: osd.0, osd.2. A run removes OSDs only with --removals"), "{done}");
    assert!(done.contains("osd-migrate -n NAMESPACE run --removals"), "{done}");
    assert!(done.contains("To withdraw the request: osd-migrate -n NAMESPACE keep osd.0,osd.2"), "{done}");
    // The OSDs of a node are named by it in each command.
    let node = NodeName("h1".to_owned());
    let remarks = show::other_daemons(&node, &["mgr.a".to_owned(), "mon.a".to_owned()].into());
    let of_node = Asked { by: By::Node(node), remarks: remarks.into_iter().collect(), ..asked };
    let listed = show::requested_text(&of_node, false, Width::Unknown);
    for expected in [
        "osd-migrate -n NAMESPACE plan --remove-node h1\n",
        "\nmgr.a, mon.a are on node h1, too, and stay there. Before you turn the node off, drain it, and wait until Rook \
         has started them on other nodes: kubectl drain h1 --ignore-daemonsets --delete-emptydir-data\n",
        "osd-migrate -n NAMESPACE remove --node h1 --disk mark --confirm yes-really-remove-osds",
    ] {
        assert!(listed.contains(expected), "{expected}: {listed}");
    }
    let done = show::requested_text(&of_node, true, Width::Unknown);
    assert!(done.contains("Requested: osd.0, osd.2. ") && done.contains(" keep --node h1"), "{done}");
    assert_eq!(show::other_daemons(&NodeName("h1".to_owned()), &[].into()), None);
    // The ids of undeclared OSDs are found by the program, again after the confirmation.
    let undeclared =
        Asked { by: By::Undeclared, remarks: vec!["osd.0 is not declared".to_owned()], ..of_node };
    let listed = show::requested_text(&undeclared, false, Width::Unknown);
    for expected in
        ["\nosd.0 is not declared\n", " plan --remove osd.0,osd.2\n", " remove --undeclared --disk mark "]
    {
        assert!(listed.contains(expected), "{expected}: {listed}");
    }
    assert!(show::requested_text(&undeclared, true, Width::Unknown).ends_with(" keep osd.0,osd.2"));
    let empty = show::requested_text(&Asked { found: Vec::new(), ..undeclared }, true, Width::Unknown);
    assert_eq!(empty, "osd.0 is not declared\nNo OSD to remove was found: nothing was requested");
}

#[test]
fn keep_says_what_becomes_of_the_osd() {
    let waiting = show::kept(&[BY_HAND], &[]);
    assert_eq!(waiting, "osd.0: the request for its removal is withdrawn");
    let begun = show::kept(&[BY_HAND, FILESTORE], &[FILESTORE]);
    assert!(begun.contains("A run restores the CRUSH weight of osd.2"), "{begun}");
    for (disk, expected) in [
        (DiskAfter::Wipe, "the disk is wiped. "),
        (DiskAfter::Mark, "the disk is wiped and marked. "),
        (DiskAfter::Leave, "the disk stays as it is. "),
    ] {
        let ledger: Ledger = removing(CONFORMING, disk).ledger;
        let late = show::too_late(&ledger.records[&CONFORMING]);
        assert!(late.starts_with("it is too late to keep osd.1") && late.contains(expected), "{late}");
    }
}
