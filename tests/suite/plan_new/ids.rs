//! The id that an available disk gets, and what is recorded of the disk.

use osd_migrate::domain::inventory::{DiskState, NodeInventory};
use osd_migrate::domain::observation::OnPvcs;
use osd_migrate::domain::osd::Mode;
use osd_migrate::domain::storage::DeviceSelection;

use super::*;

/// Removes all data: every gate that asks for data is then open.
fn without_data(mut world: World) -> World {
    world.ceph.pools.clear();
    world.ceph.pgs.clear();
    world.placements.clear();
    world
}

/// Destroys a slot, with its Deployment at 0.
fn destroy(world: &mut World, osd: u32) {
    let osd = OsdId(osd);
    world.osd_down(osd);
    world.osd_destroy(osd).unwrap();
    let daemon = world.kube.daemons.get_mut(&osd).unwrap();
    (daemon.replicas, daemon.pods) = (0, Vec::new());
}

/// Destroys osd.0, whose slot has this device class.
fn of_class(world: &mut World, class: &str) {
    destroy(world, 0);
    let item = world.ceph.slots.get_mut(&OsdId(0)).unwrap().crush.as_mut().unwrap();
    item.device_class = Some(class.to_owned());
}

fn purge(world: &mut World, osd: u32) {
    world.osd_down(OsdId(osd));
    world.osd_purge(OsdId(osd)).unwrap();
}

fn stone(world: &World, osd: u32) -> Content {
    let (old, record) = (example::fsid(OsdId(osd), 0), RecordId("earlier-1".to_owned()));
    Content::Tombstone { cluster: world.ceph.fsid, osd: OsdId(osd), old, record }
}

#[test]
fn available_disk_gets_a_destroyed_id_of_its_node_or_the_lowest() {
    type Change = fn(&mut World);
    let cases: [(&str, u32, Change); 13] = [
        ("three OSDs", 3, |_| {}),
        ("one was purged, with its Deployment", 1, |world| {
            purge(world, 1);
            world.kube.daemons.remove(&OsdId(1));
        }),
        ("one was purged, and its Deployment still starts what has its id", 3, |world| purge(world, 1)),
        ("one was destroyed", 0, |world| destroy(world, 0)),
        ("destroyed, and its pod is still there", 3, |world| {
            let pods = world.kube.daemons[&OsdId(0)].pods.clone();
            destroy(world, 0);
            let daemon = world.kube.daemons.get_mut(&OsdId(0)).unwrap();
            (daemon.replicas, daemon.pods) = (1, pods);
        }),
        ("destroyed, without a Deployment, and CRUSH has it on this host", 0, |world| {
            destroy(world, 0);
            world.kube.daemons.remove(&OsdId(0));
        }),
        ("destroyed, and another client keeps its Deployment", 3, |world| {
            destroy(world, 0);
            world.kube.daemons.get_mut(&OsdId(0)).unwrap().managed_externally = Some("a label".to_owned());
        }),
        ("destroyed, and on a PVC before", 3, |world| {
            destroy(world, 0);
            world.kube.daemons.get_mut(&OsdId(0)).unwrap().on_pvcs = Some(OnPvcs::default());
        }),
        ("destroyed, of a class of other disks", 3, |world| of_class(world, "ssd")),
        ("destroyed, of a class that its owner named", 0, |world| of_class(world, "archive")),
        ("destroyed on another host", 3, |world| destroy(world, 1)),
        ("destroyed here, and moved to another host in CRUSH", 3, |world| {
            destroy(world, 0);
            let item = world.ceph.slots[&OsdId(1)].crush.clone();
            world.ceph.slots.get_mut(&OsdId(0)).unwrap().crush = item;
        }),
        ("two were destroyed here, and the disk is kept for the second", 1, |world| {
            destroy(world, 0);
            destroy(world, 1);
            let host = world.ceph.slots[&OsdId(0)].crush.clone();
            world.ceph.slots.get_mut(&OsdId(1)).unwrap().crush = host;
            let node = world.kube.daemons[&OsdId(0)].node.clone();
            world.kube.daemons.get_mut(&OsdId(1)).unwrap().node = node;
            let stone = stone(world, 1);
            world.disks.get_mut("disk-new").unwrap().content = stone;
        }),
    ];
    for (what, expected, change) in cases {
        let mut world = without_data(example::one_more());
        change(&mut world);
        assert_eq!(Run::of(world).recorded().osd, OsdId(expected), "{what}");
    }
}

#[test]
fn recorded_osd_id_is_never_assigned_twice() {
    let mut world = without_data(example::one_more());
    world.add_disk("disk-other", "h1", 6 << 30);
    let mut run = Run::of(world);
    let first = run.recorded();
    let quarantine = Some(Quarantine { why: "no luck".to_owned(), since: run.world.at });
    run.ledger = run.ledger.with(Record { quarantine, ..first.clone() });
    let second = run.recorded();
    assert_eq!((first.osd, second.osd), (OsdId(3), OsdId(4)));
    assert_ne!(first.evidence.unwrap().device, second.evidence.unwrap().device);
    assert_ne!((first.id, first.old), (second.id, second.old));
}

#[test]
fn record_of_an_available_disk_is_complete_before_any_agent() {
    let mut run = Run::of(example::one_more());
    let record = run.recorded();
    assert_eq!(record.strategy, Strategy::New { initial_weight: None, on_file: false });
    assert_eq!((record.attempt.number, record.node.0.as_str()), (0, "h1"));
    assert_eq!(record.crush.location["host"], "h1");
    assert_eq!(record.crush.weight.to_string(), "0.00586", "6 GiB in TiB");
    let evidence = record.evidence.unwrap();
    assert_eq!(evidence.proof, Proof::Available { tombstone: None });
    assert_eq!(evidence.device, run.world.disks["disk-new"].identity);
    assert!(run.world.ceph.slots.values().all(|slot| slot.fsid != Some(record.old)), "no OSD has it");
}

#[test]
fn refilled_slot_gets_the_weight_of_its_disk() {
    let by_size = Weight::by_size(6 << 30);
    let mut run = Run::of(example::refill());
    let record = run.recorded();
    assert_eq!((record.crush.weight, record.former_weight), (by_size, Some(Weight::ONE)));
    assert_eq!(run.finished(), []);
    let item = run.world.ceph.slots[&OsdId(0)].crush.clone().unwrap();
    assert_eq!((item.weight, item.location), (by_size, record.crush.location));
    // A weight that fits the disk stays.
    let mut world = example::refill();
    let near = Weight(by_size.0 + 1);
    world.ceph.slots.get_mut(&OsdId(0)).unwrap().crush.as_mut().unwrap().weight = near;
    let record = Run::of(world).recorded();
    assert_eq!((record.crush.weight, record.former_weight), (near, None));
}

#[test]
fn refilled_slot_retains_its_place_and_deployment_is_replaced() {
    let mut run = Run::of(example::refill());
    let record = run.recorded();
    assert_eq!((record.osd, record.old), (OsdId(0), example::fsid(OsdId(0), 0)));
    let kept = run.world.ceph.slots[&OsdId(0)].crush.clone().unwrap();
    assert_eq!((&record.crush.location, record.crush.device_class), (&kept.location, kept.device_class));
    let deployed = run.until(|next| matches!(next, Next::Do(Act::Kube(KubeAct::Deploy(_)))));
    let Next::Do(Act::Kube(KubeAct::Deploy(deploy))) = deployed else { panic!() };
    let daemon = &run.world.kube.daemons[&OsdId(0)];
    let replaces = Some((daemon.uid.clone(), daemon.generation));
    assert_eq!(deploy.fresh.unwrap().replaces, replaces);
    assert_eq!(run.finished(), []);
}

#[test]
fn adopted_osd_is_placed_at_its_node_in_crush() {
    let adopted = |host: Option<&str>| {
        let mut world = example::adopt();
        let item = world.ceph.slots.get_mut(&OsdId(0)).unwrap().crush.as_mut().unwrap();
        (item.weight, item.device_class) = (Weight(7), Some("nvme".to_owned()));
        item.location.remove("host");
        item.location.insert("rack".to_owned(), "by-hand".to_owned());
        item.location.extend(host.map(|host| ("host".to_owned(), host.to_owned())));
        let act = Run::of(world).acts(|act| matches!(act, Act::Kube(KubeAct::Adopt(_))));
        let Act::Kube(KubeAct::Adopt(deploy)) = act else { panic!("{act:?}") };
        assert_eq!((deploy.crush.weight, deploy.crush.device_class.as_deref()), (Weight(7), Some("nvme")));
        let place = |kind: &str| deploy.crush.location.get(kind).cloned();
        (place("host"), place("rack"))
    };
    let [h1, by_hand] = ["h1", "by-hand"].map(|name| Some(name.to_owned()));
    assert_eq!(adopted(Some("h1")), (h1.clone(), by_hand.clone()));
    assert_eq!(adopted(None), (None, by_hand));
    assert_eq!(adopted(Some("h2")), (h1, None), "its disk was moved");
}

/// Returns the disks as `plan` shows them when the inventory of h1 has reported, with a change of it.
fn disks_of_h1(world: &World, change: impl Fn(&mut NodeInventory)) -> plan::Disks {
    let mut run = Run::of(world.clone());
    run.save(|why| matches!(why, Saving::Node { status: NodeStatus::Orchestrating, .. }));
    let mut seen = run.seen();
    let reports = seen.kube.inventories.values_mut().filter_map(|job| job.report.as_mut());
    reports.filter_map(|report| report.inventory.as_mut()).for_each(change);
    plan::disks(&run.policy, &run.ledger, &seen)
}

/// Checks a disk whose wipe left a tombstone, and which another client may have made a member of an md array
/// since.
#[test]
fn tombstoned_disk_with_a_signature_becomes_no_osd() {
    let mut world = without_data(example::one_more());
    let buried = stone(&world, 9);
    world.disks.get_mut("disk-new").unwrap().content = buried;
    let verdict = |shown: plan::Disks| {
        let line = shown.lines.into_iter().find(|line| line.disk == "disk-new").unwrap();
        (line.verdict, line.why)
    };
    let with = |name: Option<&str>| {
        verdict(disks_of_h1(&world, |inventory| {
            for disk in &mut inventory.disks {
                if let DiskState::Tombstone { signature, .. } = &mut disk.state {
                    *signature = name.map(str::to_owned);
                }
            }
        }))
    };
    assert_eq!(with(None), ("new", None));
    let why = "a signature of linux_raid_member next to osd-migrate's tombstone for osd.9";
    assert_eq!(with(Some("linux_raid_member")), ("rejected", Some(why.to_owned())));
    // An interrupted wipe of an open record leaves remains.
    let mut run = Run::of(without_data(example::one_more()));
    let Record { osd, old, id: record, .. } = run.recorded();
    let mut seen = run.seen();
    let reports = seen.kube.inventories.values_mut().filter_map(|job| job.report.as_mut());
    for disk in reports.filter_map(|report| report.inventory.as_mut()).flat_map(|found| &mut found.disks) {
        let (record, signature) = (record.clone(), Some("LVM2_member".to_owned()));
        if disk.name == "disk-new" {
            disk.state = DiskState::Tombstone { osd, old, record, signature };
        }
    }
    let shown = plan::disks(&run.policy, &run.ledger, &seen);
    assert_eq!(verdict(shown), ("in-flight", Some(osd.to_string())));
}

#[test]
fn disk_of_a_former_osd_is_reported_with_the_way_out() {
    // Another disk has an old store with the id of an existing OSD.
    let world = example::adopt();
    let old = example::fsid(OsdId(0), 9);
    let carries = format!(
        "a-disk carries the former OSD {old} (osd.0), which is not in the cluster, and becomes no OSD. "
    );
    let zap = "If its data is not needed, make it blank, on node h1 in Ceph's image: ceph-volume lvm zap";
    let mut run = Run::of(world.clone());
    let problem = ("h1".to_owned(), format!("{carries}{zap} /dev/disk/by-id/ata-a-disk"));
    assert_eq!(run.finished(), [problem]);
    let shown = disks_of_h1(&world, |_| {});
    let line = |disk: &str| shown.lines.iter().find(|line| line.disk == disk).unwrap();
    let former = format!("the former OSD {old} (osd.0), which is not in the cluster");
    assert_eq!((line("a-disk").verdict, line("a-disk").why.as_ref()), ("rejected", Some(&former)));
    assert_eq!((line("disk-0").verdict, line("disk-0").why.as_deref()), ("ours", Some("osd.0")));
    // On volumes, only those of the OSD may be wiped; of an OSD that is not listed, nothing is known.
    let problems = |change: &dyn Fn(&mut NodeInventory)| {
        let problems = disks_of_h1(&world, change).problems;
        problems.into_iter().map(|(_, problem)| problem).collect::<Vec<_>>()
    };
    let on_volumes = problems(&|inventory| inventory.osds.iter_mut().for_each(|osd| osd.mode = Mode::Lvm));
    assert_eq!(on_volumes, [format!("{carries}{zap} --destroy --osd-fsid {old}")]);
    let unlisted = problems(&|inventory| inventory.osds.retain(|osd| osd.fsid != old));
    assert_eq!(unlisted, [format!("{carries}See on node h1 in Ceph's image: ceph-volume lvm list")]);
    // Nor a disk that has databases of existing OSDs, or a partition of a disk that has others.
    let shared = problems(&|inventory| {
        inventory.osds.iter_mut().for_each(|osd| osd.db_disk = Some("a-disk".to_owned()));
    });
    assert_eq!(shared, [""; 0]);
    let partitioned = problems(&|inventory| {
        let mut part = inventory.disks.iter().find(|disk| disk.name == "a-disk").unwrap().clone();
        (part.name, part.parent) = ("a-disk1".to_owned(), Some("a-disk".to_owned()));
        inventory.disks.push(part);
    });
    assert!(partitioned.len() == 1 && partitioned[0].starts_with("a-disk1 carries"), "{partitioned:?}");
    // An existing OSD uses the disk: it was created again since the inventory.
    let mut again = world.clone();
    let metadata = again.ceph.slots.get_mut(&OsdId(0)).unwrap().metadata.as_mut().unwrap();
    metadata.stable_devices.push("a-disk".to_owned());
    assert_eq!(disks_of_h1(&again, |_| {}).problems, []);
    // Nothing selects the disk.
    let mut other = world.clone();
    other.kube.declaration.storage.nodes[0].selection =
        DeviceSelection { filter: Some("^disk".to_owned()), ..DeviceSelection::default() };
    assert_eq!(disks_of_h1(&other, |_| {}).problems, []);
}
