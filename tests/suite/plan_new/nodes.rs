//! The status of each node, and the fate of its disks.

use chrono::TimeDelta;

use osd_migrate::domain::inspection::NodeTask;
use osd_migrate::domain::observation::JobState;
use osd_migrate::sim::{Disturbance, UnusualPg, World};

use super::*;

#[test]
fn nodes_come_in_sequence_and_save_before_each_inventory() {
    let mut run = Run::of(example::empty());
    let mut reported = Vec::new();
    loop {
        let next = run.until(|next| {
            matches!(
                next,
                Next::Save { why: Saving::Node { .. }, .. }
                    | Next::Do(Act::Node(NodeAct::Inventory { .. }))
                    | Next::Finished(_)
            )
        });
        match next {
            Next::Save { ledger, why: Saving::Node { node, status, message, .. }, .. } => {
                reported.push(format!("{node} {} {message}", status.code()).trim().to_owned());
                run.ledger = ledger;
            }
            Next::Do(act) => {
                let Act::Node(NodeAct::Inventory { request, .. }) = &act else { panic!() };
                assert_eq!((request.run.as_str(), request.number), ("first", 1));
                reported.push(format!("inventory of {}", request.node));
                run.world.act(&act).unwrap();
            }
            _ => break,
        }
    }
    let of_node = |node: &str| {
        [
            format!("{node} computingDiff"),
            format!("inventory of {node}"),
            format!("{node} orchestrating 1 disks are to become OSDs"),
            format!("{node} completed created OSDs on 1 disks"),
        ]
    };
    assert_eq!(reported, ["h1", "h2", "h3"].map(of_node).concat());
    assert_eq!(run.world.ceph.slots.len(), 3);
}

#[test]
fn node_with_three_failed_inventories_holds_up_no_other() {
    let mut run = Run::of(example::empty());
    for number in 1..=3 {
        run.until(|next| matches!(next, Next::Wait(Wait::Inventory { node, .. }) if node.0 == "h1"));
        let job = run.world.inventory_jobs_at_work(&NodeName("h1".to_owned())).pop().unwrap();
        assert!(job.ends_with(&format!("-{number}")), "{job}");
        run.world.happen(&Happening::InventoryJobDies(job));
    }
    let problems = run.finished();
    assert_eq!(problems.len(), 1);
    assert!(problems[0].0 == "h1" && problems[0].1.contains("3 times"), "{problems:?}");
    assert_eq!(run.world.ceph.slots.len(), 2);
    assert!(run.world.kube.inventories.is_empty(), "they are deleted");
}

fn open_inventories(run: &Run) -> usize {
    run.ledger.nodes.values().filter(|work| work.status == NodeStatus::ComputingDiff).count()
}

#[test]
fn inventory_that_does_not_start_holds_up_no_other_node() {
    let mut run = Run::of(example::empty_with(&[1, 1, 1, 1, 1, 1]));
    let mut open = 0;
    let stuck = |world: &World| -> BTreeSet<String> {
        let nodes = ["h1", "h2"].map(|node| NodeName(node.to_owned()));
        nodes.iter().flat_map(|node| world.inventory_jobs_at_work(node)).collect()
    };
    let are_up = |run: &Run| run.world.ceph.slots.values().filter(|slot| slot.up).count() == 4;
    let (mut without, began) = (run.clone(), run.world.at);
    while !are_up(&without) {
        without.step_without(&BTreeSet::new());
    }
    while !are_up(&run) {
        run.step_without(&stuck(&run.world));
        open = open.max(open_inventories(&run));
    }
    let minutes = |run: &Run| (run.world.at - began).num_minutes();
    assert!(minutes(&run) - minutes(&without) < 10, "{} {}", minutes(&run), minutes(&without));
    assert_eq!(open, 3, "the two, and one that goes on");
    // If no inventory starts, only a few are open, and all nodes are given up at last.
    let mut none = Run::of(example::empty_with(&[1, 1, 1, 1, 1, 1]));
    let mut open = 0;
    while !matches!(none.next(), Next::Finished(_)) {
        let jobs = none.world.kube.nodes.keys().flat_map(|node| none.world.inventory_jobs_at_work(node));
        none.step_without(&jobs.collect());
        open = open.max(open_inventories(&none));
    }
    assert_eq!(open, 4);
    assert!(none.ledger.nodes.values().all(|work| work.failures == 3), "{:?}", none.ledger.nodes);
}

#[test]
fn plan_says_of_which_nodes_the_inspection_failed_and_why() {
    let mut run = Run::of(example::one_more());
    run.save(|why| matches!(why, Saving::Node { status: NodeStatus::Orchestrating, .. }));
    let mut seen = run.seen();
    let node = NodeName("h1".to_owned());
    let job = seen.kube.inventories.values_mut().find(|job| job.node == node).unwrap();
    let report = job.report.as_mut().unwrap();
    (report.inventory, report.problem) = (None, Some("losetup exited with 1".to_owned()));
    let disks = plan::disks(&run.policy, &run.ledger, &seen);
    let failed = ("h1".to_owned(), "the inspection of its disks failed: losetup exited with 1".to_owned());
    assert!(disks.problems.contains(&failed), "{:?}", disks.problems);
    assert!(!disks.unseen.contains(&node) && disks.lines.iter().all(|line| line.node != node));
}

#[test]
fn node_gets_one_inventory_in_each_run() {
    let mut run = Run::of(example::one_more());
    assert_eq!(run.finished(), []);
    run.world.add_disk("disk-later", "h1", 6 << 30);
    assert_eq!(run.finished(), [], "the same run has its inventory");
    assert_eq!(run.world.ceph.slots.len(), 4);
    run.policy.run = "second".to_owned();
    assert_eq!(run.finished(), []);
    assert_eq!(run.world.ceph.slots.len(), 5);
    assert!(run.world.kube.inventories.is_empty());
}

#[test]
fn inventory_deleted_externally_is_repeated_by_the_same_run() {
    let mut run = Run::of(example::one_more());
    run.save(|why| *why == Saving::Record);
    run.world.kube.inventories.clear();
    let next = run.next();
    assert!(matches!(&next, Next::Save { why: Saving::Node { status: NodeStatus::ComputingDiff, .. }, .. }));
    assert_eq!(run.finished(), []);
    assert_eq!(run.world.ceph.slots.len(), 4);
}

#[test]
fn tainted_node_gets_no_osd_and_not_ready_node_is_waited_for() {
    let mut run = Run::of(example::one_more());
    run.save(|why| *why == Saving::Record);
    let mut away = run.clone();
    run.world.happen(&Happening::Tainted(NodeName("h1".to_owned())));
    run.finished();
    assert_eq!(run.status("h1"), Some((NodeStatus::Completed, "nothing to do".to_owned())));
    assert_eq!(run.world.ceph.slots.len(), 3);

    away.world.happen(&Happening::Around(Around::NotReady, true));
    away.until(|next| matches!(next, Next::Wait(Wait::Node { .. })));
    away.world.happen(&Happening::Around(Around::NotReady, false));
    assert_eq!(away.finished(), []);
    assert_eq!(away.world.ceph.slots.len(), 4);
}

#[test]
fn disk_no_longer_available_is_untouched_and_reported() {
    let mut run = Run::of(example::one_more());
    run.recorded();
    run.world.happen(&Happening::DiskFormatted("disk-new".to_owned()));
    let problems = run.finished();
    assert!(
        problems.iter().any(|(_, why)| why.contains("no longer available") && why.contains("ext4")),
        "{problems:?}"
    );
    assert!(matches!(run.world.disks["disk-new"].content, Content::Other { .. }));
    assert!(run.ledger.records.is_empty());
}

/// Returns a run in a cluster whose PG is in an unusual state.
fn with_a_pg(world: fn() -> World, unusual: UnusualPg) -> Run {
    let mut world = world();
    let pg = *world.placements.keys().next().unwrap();
    world.happen(&Happening::Noise(Disturbance::PgChanges(pg, unusual)));
    Run::of(world)
}

#[test]
fn new_osd_does_not_wait_for_pgs_that_move_or_lack_space() {
    for unusual in [UnusualPg::TooFull, UnusualPg::Remapped, UnusualPg::Inconsistent] {
        let mut run = with_a_pg(example::one_more, unusual);
        assert_eq!(run.finished(), [], "{unusual:?}");
        assert!(run.world.ceph.slots[&OsdId(3)].up, "{unusual:?}");
    }
    for unusual in [UnusualPg::Recovering, UnusualPg::Premerge] {
        let mut run = with_a_pg(example::one_more, unusual);
        run.until(|next| matches!(next, Next::Wait(Wait::Node { .. })));
        assert!(run.ledger.records.is_empty(), "{unusual:?}");
    }
}

#[test]
fn new_osd_is_finished_although_a_pg_of_it_lacks_space() {
    let mut run = with_a_pg(example::refill, UnusualPg::TooFull);
    assert_eq!(run.finished(), []);
    assert!(run.world.ceph.slots[&OsdId(0)].up && run.ledger.records.is_empty());
}

#[test]
fn osd_id_taken_externally_is_left_and_the_next_id_is_used() {
    for after_the_tombstone in [false, true] {
        let mut run = Run::of(example::one_more());
        assert_eq!(run.recorded().osd, OsdId(3));
        if after_the_tombstone {
            run.until(|next| matches!(next, Next::Wait(Wait::Agent { .. })));
            while !matches!(run.world.disks["disk-new"].content, Content::Tombstone { .. }) {
                let job = run.world.agents.keys().next().unwrap().clone();
                run.world.happen(&Happening::AgentSteps(job));
            }
        }
        run.world.happen(&Happening::IdTakenExternally);
        let theirs = run.world.ceph.slots[&OsdId(3)].fsid;
        assert_eq!(run.finished(), []);
        assert_eq!(run.world.ceph.slots[&OsdId(3)].fsid, theirs);
        assert!(run.world.ceph.slots[&OsdId(4)].up, "{after_the_tombstone}");
    }
}

#[test]
fn osd_is_adopted_before_new_disks_and_not_while_rook_prepares() {
    let mut world = example::adopt();
    world.add_disk("disk-new", "h1", 6 << 30);
    world.happen(&Happening::Around(Around::RookPrepares, true));
    let mut run = Run::of(world);
    run.policy.only_new = true;
    run.until(|next| matches!(next, Next::Wait(Wait::Node { .. })));
    run.world.happen(&Happening::Around(Around::RookPrepares, false));
    run.until(|next| matches!(next, Next::Do(Act::Kube(KubeAct::Adopt(_)))));
    let Next::Do(Act::Kube(KubeAct::Adopt(deploy))) = run.next() else { panic!("{:?}", run.next()) };
    assert_eq!((deploy.osd, deploy.fsid), (OsdId(0), example::fsid(OsdId(0), 0)), "and not the old disk's");
    let problems = run.finished();
    assert!(
        matches!(&problems[..], [(_, why)] if why.starts_with("a-disk carries the former OSD")),
        "{problems:?}"
    );
    assert!(run.world.ceph.slots[&OsdId(0)].up && run.world.ceph.slots[&OsdId(3)].up);
}

#[test]
fn new_osds_in_parallel_are_limited_and_on_one_host_only() {
    for (at_once, expected) in [(0, 1), (1, 1), (2, 2), (9, 2)] {
        let mut run = Run::of(example::empty_with(&[2, 2]));
        run.policy.at_once = at_once;
        run.recorded();
        run.until(|next| matches!(next, Next::Wait(Wait::Agent { .. })));
        let nodes: BTreeSet<_> = run.ledger.records.values().map(|record| record.node.0.as_str()).collect();
        assert_eq!((run.ledger.records.len(), nodes), (expected, BTreeSet::from(["h1"])), "{at_once}");
    }
}

#[test]
fn second_disk_is_not_recorded_on_a_node_that_takes_no_osd() {
    let mut world = example::one_more();
    world.add_disk("disk-other", "h1", 6 << 30);
    let mut run = Run::of(world);
    run.recorded();
    loop {
        run.until(|next| matches!(next, Next::Wait(_)));
        if run.world.ceph.slots.get(&OsdId(3)).is_some_and(|slot| slot.up) {
            break;
        }
        run.time_passes();
    }
    run.policy.at_once = 2;
    let is_record = |run: &Run| matches!(run.next(), Next::Save { why: Saving::Record, .. });
    assert!(is_record(&run));
    for what in [
        Happening::Tainted(NodeName("h1".to_owned())),
        Happening::Around(Around::Cordoned, true),
        Happening::Around(Around::NotReady, true),
        Happening::Around(Around::RookPrepares, true),
    ] {
        let mut run = run.clone();
        run.world.happen(&what);
        assert!(!is_record(&run), "{what:?}");
    }
}

/// Returns a run of another Job, over what the previous run left.
fn replaced(run: &Run, name: &str) -> Run {
    let mut next = run.clone();
    name.clone_into(&mut next.policy.run);
    next
}

#[test]
fn young_inventory_serves_the_next_run_and_an_old_one_does_not() {
    let mut first = Run::of(example::one_more());
    first.save(|why| matches!(why, Saving::Node { status: NodeStatus::Orchestrating, .. }));
    let inventories: Vec<_> = first.world.kube.inventories.keys().cloned().collect();
    assert_eq!(inventories.len(), 1);
    // Jobs that are replaced every few seconds: in progress, and reported.
    for under_way in [true, false] {
        let mut run = Run::of(example::one_more());
        run.until(|next| matches!(next, Next::Wait(Wait::Inventory { .. })));
        if !under_way {
            run.time_passes();
        }
        for name in ["second", "third"] {
            run = replaced(&run, name);
            run.ledger = run.save(|why| matches!(why, Saving::Node { .. }));
        }
        run.recorded();
        assert_eq!(
            run.world.kube.inventories.keys().cloned().collect::<Vec<_>>(),
            inventories,
            "{under_way}"
        );
        assert_eq!(run.finished(), []);
        assert_eq!(run.world.ceph.slots.len(), 4);
        assert!(run.world.kube.inventories.is_empty(), "it is deleted at the end");
    }
    let mut late = replaced(&first, "second");
    late.world.happen(&Happening::Minutes(10));
    late.recorded();
    assert_ne!(late.world.kube.inventories.keys().cloned().collect::<Vec<_>>(), inventories);
}

#[test]
fn inventory_deleted_externally_is_repeated_by_the_next_run() {
    let mut run = Run::of(example::one_more());
    run.until(|next| matches!(next, Next::Wait(Wait::Inventory { .. })));
    let mut next = replaced(&run, "second");
    next.ledger = next.save(|why| matches!(why, Saving::Node { .. }));
    next.world.kube.inventories.clear();
    assert_eq!(next.finished(), []);
    assert_eq!(next.world.ceph.slots.len(), 4);
}

#[test]
fn cordoned_node_holds_up_no_other_and_is_given_up_at_last() {
    let mut run = Run::of(example::empty());
    run.until(|next| matches!(next, Next::Do(Act::Node(NodeAct::Inventory { request, .. })) if request.node.0 == "h1"));
    run.world.happen(&Happening::Around(Around::Cordoned, true));
    // The first node has a problem; the other two get their OSDs all the same.
    let problems = run.finished();
    assert_eq!(run.world.ceph.slots.len(), 2);
    assert!(problems.iter().any(|(node, why)| node == "h1" && why.contains("cordon")), "{problems:?}");
    // If nothing else is left to do, the run waits for the node. A node that is back in time gets its OSD.
    let mut back = Run::of(example::one_more());
    back.until(|next| matches!(next, Next::Do(Act::Node(NodeAct::Inventory { .. }))));
    back.world.happen(&Happening::Around(Around::Cordoned, true));
    back.until(|next| matches!(next, Next::Wait(Wait::Node { .. })));
    back.world.happen(&Happening::Around(Around::Cordoned, false));
    assert_eq!(back.finished(), []);
    assert_eq!(back.world.ceph.slots.len(), 4);
}

#[test]
fn node_is_given_up_15_minutes_after_it_is_away() {
    let mut run = Run::of(example::one_more());
    run.save(|why| *why == Saving::Record);
    run.world.happen(&Happening::Minutes(60));
    let waits = |next: &Next| matches!(next, Next::Wait(Wait::Node { .. }));
    for _ in 0..2 {
        run.world.happen(&Happening::Around(Around::NotReady, true));
        run.until(waits);
        run.world.happen(&Happening::Minutes(14));
        assert!(waits(&run.next()), "{:?}", run.next());
        run.world.happen(&Happening::Around(Around::NotReady, false));
        run.save(|why| *why == Saving::Record);
        assert_eq!(run.ledger.nodes[&NodeName("h1".to_owned())].away_since, None);
    }
    run.world.happen(&Happening::Around(Around::NotReady, true));
    run.until(waits);
    run.world.happen(&Happening::Minutes(15));
    assert!(run.finished().iter().any(|(node, why)| node == "h1" && why.contains("not Ready")));
    assert_eq!(run.world.ceph.slots.len(), 3);
}

#[test]
fn job_of_rook_holds_up_new_osds_on_its_node_only() {
    let mut run = Run::of(example::empty());
    run.world.happen(&Happening::Around(Around::RookPrepares, true));
    let problems = run.finished();
    assert_eq!(run.world.ceph.slots.len(), 2);
    let is_named = |(node, why): &(String, String)| node == "h1" && why.contains("Rook is preparing OSDs");
    assert!(problems.iter().any(is_named), "{problems:?}");
}

#[test]
fn silent_agent_quarantines_its_new_osd_after_30_minutes() {
    let mut run = Run::of(example::one_more());
    let is_rebuild = |act: &Act| matches!(act, Act::Node(NodeAct::Agent { request, .. }) if request.task == NodeTask::Rebuild);
    run.acts(is_rebuild);
    let silent_for = |minutes| {
        let mut seen = run.seen();
        let job = seen.kube.node_jobs.iter_mut().find(|job| job.task == NodeTask::Rebuild).unwrap();
        (job.state, job.heartbeat_at) = (JobState::Running, None);
        seen.at = job.created_at + TimeDelta::minutes(minutes);
        plan::plan(&run.policy, &run.ledger, &seen)
    };
    assert!(matches!(silent_for(29), Next::Wait(Wait::AgentSilent { .. })), "{:?}", silent_for(29));
    assert!(matches!(silent_for(30), Next::Save { why: Saving::Quarantine { .. }, .. }));
}
