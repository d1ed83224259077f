//! An existing OSD whose database is to be on another disk: its node is inspected, and the record stores what
//! it gets.

use osd_migrate::domain::gate::Reason;
use osd_migrate::domain::inspection::NodeTask;
use osd_migrate::domain::preview::{self, Line, Now};
use osd_migrate::sim::example::DATABASE_DISK;

use super::*;

const OSD: OsdId = OsdId(0);

fn lines(run: &Run) -> Vec<Line> {
    preview::lines(&run.policy, &run.ledger, &run.seen())
}

fn table(run: &Run) -> String {
    crate::preview::plan_table(&lines(run))
}

#[test]
fn database_disk_is_chosen_by_inventory_and_sent_to_the_agent() {
    let mut run = Run::of(example::to_have_a_database());
    assert!(matches!(run.next(), Next::Save { why: Saving::Node { .. }, .. }));
    assert!(matches!(lines(&run)[0].now, Now::Waits(Reason::DisksNotInspected { .. })));
    let record = run.recorded();
    let db = record.db.clone().unwrap();
    assert!(db.identity.by_id.contains(&format!("ata-{DATABASE_DISK}")) && db.size_mib.is_none(), "{db:?}");
    assert!(table(&run).contains(&format!(
        "osd.0: its database is created on /dev/disk/by-id/ata-{DATABASE_DISK} (the whole device)"
    )));
    for task in [NodeTask::Inspect, NodeTask::Rebuild] {
        let is_it =
            |act: &Act| matches!(act, Act::Node(NodeAct::Agent { request, .. }) if request.task == task);
        let Act::Node(NodeAct::Agent { request, .. }) = run.acts(is_it) else { panic!() };
        assert_eq!(request.db, Some(db.clone()), "{task}");
    }
    assert!(run.finished().iter().all(|(_, problem)| problem.starts_with("no disks are selected")));
    let metadata = run.world.ceph.slots[&OSD].metadata.clone().unwrap();
    assert!(metadata.dedicated_db && metadata.device_mapper);
    assert!(run.world.kube.inventories.is_empty(), "deleted");
}

#[test]
fn database_disk_is_halved_by_two_osds_with_an_inventory_each() {
    let mut run = Run::of(example::two_to_have_databases());
    let first = run.recorded();
    run.save(|why| *why == Saving::Closed);
    let second = run.recorded();
    assert_eq!((first.osd, second.osd), (OSD, OsdId(1)));
    assert_eq!(first.db, second.db);
    assert_eq!(first.db.unwrap().size_mib, Some(3_068), "of 6 GiB without its header");
    assert!(run.ledger.nodes.values().all(|work| work.inventory == 2));
    run.finished();
    assert_eq!(run.world.databases.values().filter(|disk| *disk == DATABASE_DISK).count(), 2);
}

#[test]
fn osd_without_a_disk_for_its_database_is_refused_with_reason() {
    let mut run = Run::of(example::to_have_a_database());
    run.world.disks.remove(DATABASE_DISK);
    let summary = run.summary();
    let [(OSD, why)] = summary.refused.as_slice() else { panic!("{summary:?}") };
    assert_eq!(
        why,
        "its database cannot be created on node h1: its metadataDevice /dev/disk/by-id/ata-disk-db was not found"
    );
    assert!(run.ledger.records.is_empty());
}

#[test]
fn record_is_closed_if_its_database_is_declared_otherwise() {
    for taken_back in [true, false] {
        let mut run = Run::of(example::to_have_a_database());
        run.ledger = run.save(|why| *why == Saving::Proof);
        let config = &mut run.world.kube.declaration.storage.nodes[0].config;
        if taken_back {
            config.metadata_device = None;
        } else {
            config.database_size_mb = Some(1_024);
        }
        let record = {
            run.ledger = run.save(|why| *why == Saving::Closed);
            run.recorded()
        };
        assert_eq!(record.db.map(|db| db.size_mib), (!taken_back).then_some(Some(1_024)));
    }
}
