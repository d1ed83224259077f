//! Runs with an approved plan, and runs of selected OSDs, hosts and device classes.

use std::collections::BTreeSet;

use osd_migrate::domain::approval::{Approval, PlanLines};
use osd_migrate::domain::gate::Reason;
use osd_migrate::domain::next::{Next, Saving};
use osd_migrate::domain::osd::OsdId;
use osd_migrate::domain::plan;
use osd_migrate::domain::preview::{self, Now};
use osd_migrate::domain::view::View;
use osd_migrate::sim::{World, example};

use super::Run;
use crate::support::build::{self, BY_HAND, FILESTORE};
use crate::support::check;

/// Returns the lines that `plan` stores in this state of a run.
fn plan_lines(run: &Run) -> PlanLines {
    let seen = run.seen();
    let view = View { policy: &run.policy, ledger: &run.ledger, seen: &seen };
    let disks = plan::disks(&run.policy, &run.ledger, &seen);
    preview::plan_lines(&preview::lines(&run.policy, &run.ledger, &seen), (&disks, &[]), view)
}

/// Returns the lines of the small world, as `plan` stores them.
fn lines_of(world: &build::World) -> PlanLines {
    let lines = preview::lines(&world.policy, &world.ledger, &world.seen);
    preview::plan_lines(&lines, (&plan::Disks::default(), &[]), world.view())
}

fn approval(lines: PlanLines) -> Option<Approval> {
    Some(Approval { hash: lines.hash(), lines })
}

/// Returns the small world, with its plan approved.
fn approved() -> build::World {
    let world = build::World::new();
    let lines = lines_of(&world);
    world.with(|w| w.policy.approval = approval(lines))
}

fn state(world: &build::World, osd: OsdId) -> Now {
    let lines = preview::lines(&world.policy, &world.ledger, &world.seen);
    lines.into_iter().find(|line| line.osd == osd).unwrap().now
}

#[test]
fn plan_has_one_line_for_each_osd_to_migrate() {
    let plan = lines_of(&build::World::new());
    assert_eq!(plan.osds().collect::<Vec<_>>(), [BY_HAND, FILESTORE]);
    for osd in plan.osds() {
        let line = plan.of_osd(osd).unwrap();
        assert!(
            line.starts_with(&format!("{osd} on ")) && line.contains("fsid ") && line.contains("->"),
            "{line}"
        );
    }
}

#[test]
fn approved_osd_is_started_and_the_preview_does_not_change() {
    check!(approved().plan(), Next::Save { why: Saving::Record, osd: Some(BY_HAND), .. });
    assert_eq!(lines_of(&approved()), lines_of(&build::World::new()));
    assert_eq!(state(&approved(), BY_HAND), Now::Next);
}

#[test]
fn osd_that_changed_since_the_plan_is_refused_and_the_next_is_started() {
    let other = "00000000-0000-4000-8000-0000000000ff".parse().unwrap();
    let changed = approved().with(|w| w.slot(BY_HAND).fsid = Some(other));
    check!(state(&changed, BY_HAND), Now::Refused(Reason::ChangedSincePlan { .. }));
    check!(changed.plan(), Next::Save { why: Saving::Record, osd: Some(FILESTORE), .. });
    assert_ne!(lines_of(&changed).hash(), lines_of(&approved()).hash());
    // The plan of the changed state can be approved.
    let lines = lines_of(&changed);
    check!(
        changed.with(|w| w.policy.approval = approval(lines)).plan(),
        Next::Save { osd: Some(BY_HAND), .. }
    );
}

#[test]
fn recorded_osd_that_changed_is_given_up_before_its_stop() {
    let recorded = approved().saved("record");
    assert_eq!(recorded.ledger.in_flight().count(), 1);
    let moved = recorded.clone().with(|w| {
        let crush = w.slot(BY_HAND).crush.as_mut().unwrap();
        crush.location.insert("host".to_owned(), "other".to_owned());
    });
    check!(moved.plan(), Next::Save { why: Saving::Withdrawn | Saving::Closing, .. });
}

#[test]
fn osd_that_is_not_in_the_approved_plan_is_left_as_it_is() {
    let world = build::World::new();
    let all = lines_of(&world);
    let one = PlanLines::parse(all.of_osd(FILESTORE).unwrap());
    let world = world.with(|w| w.policy.approval = approval(one));
    assert_eq!(state(&world, BY_HAND), Now::Nothing);
    check!(world.plan(), Next::Save { why: Saving::Record, osd: Some(FILESTORE), .. });
}

#[test]
fn approved_plan_with_a_missing_osd_reports_it() {
    let gone = PlanLines::parse("osd.99 on h9");
    let world = build::World::new().with(|w| w.policy.approval = approval(gone));
    check!(
        world.plan(),
        Next::Finished(summary) if summary.unmatched.iter().any(|what| what.starts_with("osd.99 of plan"))
    );
}

#[test]
fn plan_that_is_not_stored_approves_nothing() {
    let hash = PlanLines::default().hash();
    let world = build::World::new().with(|w| w.policy.approval = Some(Approval::unread(hash)));
    check!(world.plan(), Next::Finished(summary) if summary.refused.is_empty());
}

/// Returns a run on a world with a disk whose inventory was made.
fn inventoried(world: World) -> Run {
    let mut run = Run::of(world);
    run.ledger = run.save(|why| matches!(why, Saving::Node { status, .. } if *status == osd_migrate::domain::ledger::NodeStatus::Orchestrating));
    run
}

#[test]
fn new_osd_is_created_only_on_a_disk_of_the_approved_plan() {
    let plan = plan_lines(&inventoried(example::one_more()));
    assert!(plan.text().contains("disk /dev/disk/by-id/"), "{}", plan.text());
    let mut run = Run::of(example::one_more());
    run.policy.approval = approval(plan);
    assert!(run.recorded().is_new());
    let mut run = Run::of(example::one_more());
    run.policy.approval =
        approval(PlanLines::parse("disk /dev/disk/by-id/other on h1, 1 bytes -> bluestore raw"));
    let before: BTreeSet<_> = run.world.ceph.slots.keys().copied().collect();
    run.summary();
    assert_eq!(run.world.ceph.slots.keys().copied().collect::<BTreeSet<_>>(), before);
}

#[test]
fn host_and_device_class_select_osds() {
    let world = build::World::new();
    let host = world.seen.ceph.slots[&FILESTORE].crush.as_ref().unwrap().location["host"].clone();
    let of_host = world.clone().with(|w| w.policy.hosts = [host].into());
    check!(of_host.plan(), Next::Save { osd: Some(FILESTORE), .. });
    let class = |class: &str| {
        let mut world = world.clone();
        world.slot(FILESTORE).crush.as_mut().unwrap().device_class = Some("ssd".to_owned());
        world.policy.device_classes = [class.to_owned()].into();
        world.plan()
    };
    check!(class("ssd"), Next::Save { osd: Some(FILESTORE), .. });
    check!(class("nvme"), Next::Finished(summary) if summary.unmatched.len() == 1);
}

#[test]
fn selected_osd_or_host_that_does_not_exist_is_reported() {
    let world = build::World::new().with(|w| {
        w.policy.select = [OsdId(99)].into();
        w.policy.hosts = ["nowhere".to_owned()].into();
    });
    check!(world.plan(), Next::Finished(summary) if summary.unmatched.len() == 2);
}
