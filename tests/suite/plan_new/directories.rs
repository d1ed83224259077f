//! An OSD in a directory: on which available disk its id is recreated, and what happens to its directory.

use osd_migrate::domain::gate::Reason;
use osd_migrate::domain::inspection::NodeTask;
use osd_migrate::domain::next::Halt;
use osd_migrate::domain::osd::Weight;
use osd_migrate::domain::policy::Empty;
use osd_migrate::domain::preview::{self, Line, Now};
use osd_migrate::sim::fsid_on;

use super::*;
use crate::support::build::{nothing_left, states};

const OSD: OsdId = OsdId(0);
const GIB: u64 = 1 << 30;
const PATH: &str = "/var/lib/rook/osd0";

fn onto(record: &Record) -> &str {
    let Strategy::Directory { path, onto } = &record.strategy else { panic!("{:?}", record.strategy) };
    assert!(path.starts_with("/var/lib/rook/osd"), "{path}");
    onto.by_id.first().unwrap()
}

fn line(run: &Run) -> Line {
    let lines = preview::lines(&run.policy, &run.ledger, &run.seen());
    lines.into_iter().find(|line| line.osd == OSD).unwrap()
}

fn table(run: &Run) -> String {
    crate::preview::plan_table(&preview::lines(&run.policy, &run.ledger, &run.seen()))
}

fn is_destroy(act: &Act) -> bool {
    matches!(act, Act::Ceph(CephAct::Destroy { .. }))
}

fn is_task(act: &Act, task: NodeTask) -> bool {
    matches!(act, Act::Node(NodeAct::Agent { request, .. }) if request.task == task)
}

#[test]
fn directory_osd_record_has_the_inventoried_disk_before_an_act() {
    let mut run = Run::of(example::in_directory());
    assert!(matches!(run.next(), Next::Save { why: Saving::Node { .. }, .. }));
    let record = run.recorded();
    assert_eq!((record.osd, onto(&record)), (OSD, "ata-disk-new"));
    assert_eq!((record.former_weight, record.crush.weight), (Some(Weight::ONE), Weight::by_size(6 * GIB)));
    assert!(record.evidence.is_none() && record.attempt.number == 1, "it is proven next");
    let Act::Node(NodeAct::Agent { request, .. }) = run.acts(|act| is_task(act, NodeTask::Inspect)) else {
        panic!()
    };
    assert_eq!(request.directory.unwrap().path, PATH);
    let evidence = {
        run.ledger = run.save(|why| *why == Saving::Proof);
        run.ledger.records[&OSD].evidence.clone().unwrap()
    };
    assert!(evidence.device.by_id.contains("ata-disk-new"));
    assert!(matches!(evidence.proof, Proof::Directory { path, .. } if path == PATH));
}

#[test]
fn directory_is_removed_last_and_osd_retains_id_and_place() {
    let mut run = Run::of(example::in_directory());
    let before = run.world.ceph.slots[&OSD].clone();
    let Act::Ceph(CephAct::RestoreCrush { former, item, .. }) =
        run.acts(|act| matches!(act, Act::Ceph(CephAct::RestoreCrush { .. })))
    else {
        panic!()
    };
    assert_eq!((former, item.weight), (Some(Weight::ONE), Weight::by_size(6 * GIB)));
    assert!(!run.world.ceph.slots[&OSD].up, "before it is started");
    run.acts(|act| is_task(act, NodeTask::Clear));
    let slot = &run.world.ceph.slots[&OSD];
    let pg = run.world.placements.keys().next().unwrap();
    assert!(slot.up && run.world.complete_set(pg).contains(&OSD), "it has its data");
    assert_eq!(run.world.disks["disk-0"].directory(), Some(PATH));
    assert_eq!(run.finished(), []);
    assert_eq!(run.world.disks["disk-0"].directory(), None);
    let slot = &run.world.ceph.slots[&OSD];
    assert_eq!(fsid_on(&run.world.disks["disk-new"].content), slot.fsid);
    let (item, was) = (slot.crush.as_ref().unwrap(), before.crush.unwrap());
    assert_eq!((&item.location, &item.device_class), (&was.location, &was.device_class));
    assert_eq!((slot.reweight, slot.primary_affinity), (before.reweight, before.primary_affinity));
    assert!(run.world.kube.inventories.is_empty());
}

#[test]
fn smallest_available_disk_that_is_large_enough_is_chosen() {
    let mut world = example::in_directory();
    world.disks.get_mut("disk-new").unwrap().identity.size_bytes = 60 * GIB;
    world.add_disk("a-large", "h1", 50 * GIB);
    world.add_disk("b-small", "h1", GIB + GIB / 4);
    world.add_disk("c-elsewhere", "h2", 2 * GIB);
    world.add_disk("d-unnamed", "h1", 2 * GIB);
    world.disks.get_mut("d-unnamed").unwrap().identity.by_id.clear();
    world.add_disk("e-stone", "h1", 2 * GIB);
    let (old, record) = (example::fsid(OsdId(9), 0), RecordId("earlier-1".to_owned()));
    let stone = Content::Tombstone { cluster: world.ceph.fsid, osd: OsdId(9), old, record };
    world.disks.get_mut("e-stone").unwrap().content = stone;
    assert_eq!(onto(&Run::of(world.clone()).recorded()), "ata-a-large");
    // 1 GiB is used, 1.1 must fit below 85 %.
    world.add_disk("f-just", "h1", GIB * 11 / 10 * 100 / 85 + 20_000);
    assert_eq!(onto(&Run::of(world).recorded()), "ata-f-just");
}

#[test]
fn crush_weight_is_unchanged_if_the_disk_size_is_similar() {
    let mut world = example::in_directory();
    let tib = 1_u64 << 40;
    world.disks.get_mut("disk-new").unwrap().identity.size_bytes = tib + tib / 25;
    let mut run = Run::of(world);
    let record = run.recorded();
    assert_eq!((record.former_weight, record.crush.weight), (None, Weight::ONE));
    run.until(|next| match next {
        Next::Do(Act::Ceph(CephAct::RestoreCrush { .. })) => panic!("{next:?}"),
        _ => matches!(next, Next::Finished(_)),
    });
    assert_eq!(run.world.ceph.slots[&OSD].crush.as_ref().unwrap().weight, Weight::ONE);
}

#[test]
fn crush_weight_that_was_set_externally_is_preserved() {
    for after_it_is_up in [false, true] {
        let mut run = Run::of(example::in_directory());
        if after_it_is_up {
            run.save(|why| *why == Saving::Up);
        } else {
            run.recorded();
        }
        run.world.happen(&Happening::PersonReweighs(OSD));
        assert_eq!(run.finished(), []);
        let weight = run.world.ceph.slots[&OSD].crush.as_ref().unwrap().weight;
        assert_eq!(weight, example::THEIR_WEIGHT, "{after_it_is_up}");
    }
}

#[test]
fn second_directory_osd_is_refused_with_one_available_disk() {
    let mut run = Run::of(example::two_in_directories());
    assert_eq!(onto(&run.recorded()), "ata-disk-new");
    let summary = run.summary();
    let [(osd, why)] = &summary.refused[..] else { panic!("{summary:?}") };
    assert_eq!(*osd, OsdId(1));
    for part in [
        "node h1 has no available disk",
        "1.3 GiB",
        "useAllDevices",
        "osd-migrate -n NAMESPACE plan --inventory",
    ] {
        assert!(why.contains(part), "{part}: {why}");
    }
    assert_eq!(run.world.disks["disk-0"].directory(), None);
    assert_eq!(run.world.disks["disk-1"].directory(), Some("/var/lib/rook/osd1"));
    let other = &run.world.ceph.slots[&OsdId(1)];
    assert!(other.up && other.fsid == Some(example::fsid(OsdId(1), 0)), "it serves as before");
    // With a second disk the next run continues.
    run.world.add_disk("disk-more", "h1", 6 * GIB);
    run.policy.run = "second".to_owned();
    assert_eq!(run.summary(), nothing_left());
    assert_eq!(run.world.disks["disk-1"].directory(), None);
}

/// Checks that Ceph is not asked about an OSD without a disk: it is asked about one OSD at a time.
#[test]
fn directory_osd_without_a_disk_holds_up_no_other() {
    let mut run = Run::of(example::two_directories_without_a_disk());
    run.policy.empty = Empty::All;
    let refused = run.summary().refused;
    assert_eq!(refused.iter().map(|(osd, _)| *osd).collect::<Vec<_>>(), [OSD, OsdId(1)], "{refused:?}");
    assert!(refused.iter().all(|(_, why)| why.contains("has no available disk")), "{refused:?}");
}

#[test]
fn disk_too_small_for_a_directory_osd_becomes_a_new_osd() {
    let mut world = example::in_directory();
    world.disks.get_mut("disk-new").unwrap().identity.size_bytes = GIB + GIB / 4;
    let mut run = Run::of(world);
    let summary = run.summary();
    assert!(summary.refused[0].1.contains("Attach a whole disk of at least 1.3 GiB"), "{summary:?}");
    assert!(run.world.ceph.slots[&OsdId(3)].up, "new OSDs come after those that are there");
    assert_eq!(run.world.disks["disk-0"].directory(), Some(PATH));
}

#[test]
fn directory_osd_is_refused_after_three_failed_inventories() {
    let mut run = Run::of(example::in_directory());
    for _ in 0..3 {
        run.until(|next| matches!(next, Next::Wait(Wait::Inventory { .. })));
        let job = run.world.inventory_jobs_at_work(&NodeName("h1".to_owned())).pop().unwrap();
        run.world.happen(&Happening::InventoryJobDies(job));
    }
    let summary = run.summary();
    assert!(summary.refused[0].1.contains("3 times"), "{summary:?}");
    assert!(run.ledger.records.is_empty() && run.world.kube.inventories.is_empty());
}

#[test]
fn disk_no_longer_available_is_replaced_before_the_stop() {
    let mut run = Run::of(example::in_directory());
    run.world.add_disk("disk-second", "h1", 7 * GIB);
    assert_eq!(onto(&run.recorded()), "ata-disk-new");
    run.world.happen(&Happening::DiskFormatted("disk-new".to_owned()));
    run.ledger = run.save(|why| *why == Saving::Withdrawn);
    assert!(run.world.ceph.slots[&OSD].up && run.world.kube.daemons[&OSD].stopped_by.is_none());
    let again = run.save(|why| *why == Saving::Record);
    assert_eq!(onto(&again.records[&OSD]), "ata-disk-second");
    let problems = run.finished();
    assert!(problems.iter().any(|(_, why)| why.contains("disk-new") && why.contains("ext4")), "{problems:?}");
    assert!(matches!(run.world.disks["disk-new"].content, Content::Other { .. }));
    assert_eq!(fsid_on(&run.world.disks["disk-second"].content), run.world.ceph.slots[&OSD].fsid);
}

#[test]
fn unproven_directory_osd_is_inspected_again_then_quarantined() {
    let mut run = Run::of(example::in_directory());
    run.recorded();
    // Another path than the one in its Deployment: nothing is found at that path.
    let proof = Proof::Directory {
        format: osd_migrate::domain::osd::Kind::FilestoreDirectory,
        path: "/elsewhere".to_owned(),
        osd_fsid: example::fsid(OSD, 0),
        whoami: OSD,
        cluster: run.world.ceph.fsid,
    };
    run.world.disks.get_mut("disk-0").unwrap().proof = Some(proof);
    let summary = run.summary();
    assert!(summary.quarantined[0].1.contains("a blank disk"), "{summary:?}");
    assert_eq!(run.ledger.records[&OSD].attempt.number, 3);
    assert!(run.world.ceph.slots[&OSD].up);
    // Its disk stays reserved: no other OSD is created on it.
    assert_eq!(run.world.disks["disk-new"].content, Content::Blank);
    assert!(!run.world.ceph.slots.contains_key(&OsdId(3)));
}

#[test]
fn plan_inspects_the_disks_of_ready_nodes_only() {
    let mut world = example::in_directory();
    let inspected = |world: &World| {
        let run = Run::of(world.clone());
        plan::inspected(&run.policy, &run.seen()).contains(&NodeName("h1".to_owned()))
    };
    assert!(inspected(&world));
    world.happen(&Happening::Around(Around::NotReady, true));
    assert!(!inspected(&world));
}

/// Returns a run in which the slot is destroyed and another client takes the disk before the agent does.
fn taken_past_destroy() -> (Run, Halt) {
    let mut run = Run::of(example::in_directory());
    run.acts(is_destroy);
    run.world.happen(&Happening::DiskFormatted("disk-new".to_owned()));
    let Next::Halt(halt) = run.until(|next| matches!(next, Next::Halt(_))) else { panic!() };
    (run, halt)
}

#[test]
fn disk_taken_after_destroy_halts_with_the_recovery_commands() {
    let (run, halt) = taken_past_destroy();
    let text = halt.to_string();
    let old = example::fsid(OSD, 0);
    for part in [
        format!("ceph osd new {old} 0 -i FILE"),
        format!("{{\"cephx_secret\": \"KEY\"}} with the key in {PATH}/keyring on node h1"),
        "a signature of ext4".to_owned(),
        "/dev/disk/by-id/ata-disk-new on node h1".to_owned(),
        "--replicas=1".to_owned(),
    ] {
        assert!(text.contains(&part), "{part}: {text}");
    }
    assert_eq!(run.world.disks["disk-0"].directory(), Some(PATH));
    assert!(matches!(run.world.disks["disk-new"].content, Content::Other { .. }));
}

#[test]
fn disk_cleared_after_the_halt_is_inspected_again_and_used() {
    let (mut run, _) = taken_past_destroy();
    assert!(matches!(run.next(), Next::Halt(_)), "as long as the last inspection is recent");
    run.world.disks.get_mut("disk-new").unwrap().content = Content::Blank;
    run.world.happen(&Happening::Minutes(3));
    assert_eq!(run.finished(), []);
    assert_eq!(run.world.disks["disk-0"].directory(), None);
}

#[test]
fn slot_restored_after_the_halt_serves_and_record_is_withdrawn() {
    let (mut run, _) = taken_past_destroy();
    run.world.happen(&Happening::PersonReregisters(OSD));
    let summary = run.summary();
    assert_eq!(summary.refused[0].0, OSD);
    let slot = &run.world.ceph.slots[&OSD];
    assert_eq!(
        (slot.up, slot.fsid, slot.noout, slot.noin),
        (true, Some(example::fsid(OSD, 0)), false, false)
    );
    assert!(run.ledger.records.is_empty() && run.world.kube.backups.is_empty());
    assert!(run.world.kube.fence.is_none());
}

#[test]
fn directory_that_can_not_be_removed_is_reported_with_command() {
    let mut run = Run::of(example::in_directory());
    run.save(|why| *why == Saving::Up);
    run.world.happen(&Happening::DirectoryReplaced("disk-0".to_owned()));
    let ledger = run.save(|why| matches!(why, Saving::Uncleared { .. }));
    let record = &ledger.records[&OSD];
    assert!(record.closing && record.quarantine.is_none());
    assert_eq!(
        (record.attempt.task, record.milestones.last().unwrap().0.as_str()),
        (NodeTask::Clear, "uncleared")
    );
    let summary = run.summary();
    let message = format!(
        "the old directory {PATH} is still on node h1. Check it, then remove it on that node: rm -r --one-file-system \
         {PATH} ("
    );
    assert!(summary.problems.iter().any(|(_, why)| why.starts_with(&message)), "{summary:?}");
    assert!(summary.quarantined.is_empty() && run.ledger.records.is_empty());
    assert_eq!(run.world.disks["disk-0"].directory(), Some(PATH), "it contains another OSD now");
    assert!(run.world.ceph.slots[&OSD].up);
}

#[test]
fn selected_directory_osd_leaves_no_inventory_and_no_new_osd() {
    let mut run = Run::of(example::in_directory());
    run.policy.select = [OSD].into();
    run.world.add_disk("disk-second", "h1", 7 * GIB);
    assert_eq!(run.summary(), nothing_left());
    assert!(run.world.kube.inventories.is_empty());
    assert_eq!(
        (run.world.disks["disk-second"].content.clone(), run.world.ceph.slots.len()),
        (Content::Blank, 3)
    );
}

#[test]
fn plan_of_a_directory_osd_names_inventory_then_disk_or_refusal() {
    let mut run = Run::of(example::two_in_directories());
    let unseen = line(&run);
    assert!(matches!(&unseen.now, Now::Waits(Reason::DisksNotInspected { why: None, .. })), "{unseen:?}");
    assert_eq!((unseen.directory.as_deref(), unseen.onto), (Some(PATH), None));
    assert!(
        table(&run).contains("needs another disk of node h1, whose disks were not inspected yet"),
        "{}",
        table(&run)
    );

    run.ledger = run.save(|why| matches!(why, Saving::Node { status: NodeStatus::Orchestrating, .. }));
    assert_eq!(line(&run).now, Now::Next);
    let text = table(&run);
    for part in [
        "osd.0: recreated with its id on /dev/disk/by-id/ata-disk-new (6.0 GiB); CRUSH weight 1.00000 -> 0.00586",
        "/var/lib/rook/osd0 is removed when the new OSD has all its data",
        "refused: needs-device",
        "its data is in a directory, and node h1 has no available disk for it",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let record = run.recorded();
    assert_eq!(line(&run).onto.unwrap().device.by_id.first().map(String::as_str), Some(onto(&record)));
}

/// Checks PGs that CRUSH moves because of the OSD's new weight while it is down: its boot does not affect
/// them.
#[test]
fn pgs_remapped_by_the_new_weight_are_waited_for_elsewhere() {
    use osd_migrate::domain::gate::is_filled;
    let world = example::in_directory();
    let mut ceph = run_ceph(world);
    let slot = ceph.slots[&OSD].clone();
    let pg = *ceph.pgs.keys().next().unwrap();
    let before = BTreeSet::from([pg]);
    let filled = |ceph: &osd_migrate::domain::observation::Ceph, moves| {
        is_filled((OSD, &slot), &before, moves, |_| false, ceph)
    };
    assert!(filled(&ceph, false) && filled(&ceph, true));
    let moved = ceph.pgs.get_mut(&pg).unwrap();
    (moved.up, moved.acting) = ([OsdId(1), OsdId(2), OsdId(9)].into(), [OsdId(1), OsdId(2), OsdId(9)].into());
    moved.reported_epoch = osd_migrate::domain::osd::Epoch(1);
    assert!(filled(&ceph, true) && filled(&ceph, false));
    ceph.pgs.get_mut(&pg).unwrap().state = states("active+remapped+backfilling");
    assert!(!filled(&ceph, true) && filled(&ceph, false));
    let moved = ceph.pgs.get_mut(&pg).unwrap();
    moved.state = states("active+clean");
    moved.up = [OsdId(1), OsdId(2)].into();
    assert!(!filled(&ceph, true), "from when it was down");
}

fn run_ceph(world: World) -> osd_migrate::domain::observation::Ceph {
    Run::of(world).seen().ceph
}
