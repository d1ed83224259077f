//! A stored ledger reads back unchanged, and an unreadable one is refused with a message that names the key.

use std::collections::{BTreeMap, BTreeSet};

use osd_migrate::domain::ledger::{
    FORMAT, FenceOrder, Ledger, NodeStatus, NodeWork, Quarantine, Record, Unreadable,
};
use osd_migrate::domain::osd::{NodeName, OsdId, PgId, Upmap};

use crate::support::build::{BY_HAND, FILESTORE, World, issued_fsid, noon};
use crate::support::check;

/// Returns a ledger with two records, with everything in them that a record can contain.
fn full() -> Ledger {
    let mut ledger = World::deployed(BY_HAND).ledger;
    let mut other = World::deployed(FILESTORE).ledger.records.remove(&FILESTORE).unwrap();
    other.quarantine = Some(Quarantine { why: "its \"daemon\"\ndoes not stay up".to_owned(), since: noon() });
    other.upmaps = vec![Upmap { pg: "1.a".parse().unwrap(), mappings: vec![(OsdId(2), OsdId(3))] }];
    ledger.records.insert(FILESTORE, other);
    ledger
}

fn keys() -> BTreeMap<String, String> {
    full().to_keys().unwrap()
}

fn read(keys: &BTreeMap<String, String>) -> Result<Ledger, Unreadable> {
    Ledger::from_keys(keys)
}

#[test]
fn ledger_is_read_back_as_it_was_stored() {
    let ledger = full();
    assert!(ledger.records.values().all(|r| r.new.is_some() && r.evidence.is_some() && !r.issued.is_empty()));
    assert_eq!(read(&ledger.to_keys().unwrap()).unwrap(), ledger);
    assert_eq!(read(&Ledger::default().to_keys().unwrap()).unwrap(), Ledger::default());
}

#[test]
fn record_of_each_phase_survives_being_stored() {
    for osd in [BY_HAND, FILESTORE] {
        for world in [
            World::recorded(osd),
            World::proven(osd),
            World::stopped(osd),
            World::prepared(osd),
            World::filled(osd),
        ] {
            assert_eq!(read(&world.ledger.to_keys().unwrap()).unwrap(), world.ledger);
        }
    }
}

#[test]
fn owners_fence_survives_being_stored_and_may_be_missing() {
    let mut ledger = full();
    ledger.run.fence_order = Some(FenceOrder { since: noon(), declared: "0123456789abcdef".to_owned() });
    assert_eq!(read(&ledger.to_keys().unwrap()).unwrap(), ledger);
    // A ledger of an earlier program has no such field.
    assert!(!keys()["run"].contains("fence_order"));
}

#[test]
fn unencrypted_osds_survive_being_stored_and_are_of_one_job() {
    let mut ledger = full();
    for osd in [BY_HAND, FILESTORE] {
        ledger.run.note_unencrypted(osd, "job-1");
    }
    assert_eq!(read(&ledger.to_keys().unwrap()).unwrap(), ledger);
    assert_eq!(ledger.run.unencrypted_by("job-1"), [BY_HAND, FILESTORE].into());
    assert!(ledger.run.unencrypted_by("job-2").is_empty() && !keys()["run"].contains("unencrypted"));
    ledger.run.note_unencrypted(BY_HAND, "job-2");
    assert_eq!(ledger.run.unencrypted_by("job-2"), [BY_HAND].into());
    assert!(ledger.run.unencrypted_by("job-1").is_empty());
}

#[test]
fn ledger_without_keys_is_empty() {
    assert_eq!(read(&BTreeMap::new()).unwrap(), Ledger::default());
}

#[test]
fn ledger_has_a_key_per_record_and_the_run_lists_them() {
    let keys = keys();
    assert_eq!(keys.keys().collect::<Vec<_>>(), ["format", "nodes", "osd-0", "osd-2", "run"]);
    assert_eq!(keys["format"], FORMAT.to_string());
    assert!(keys["run"].contains("\"open\":[0,2]"), "{}", keys["run"]);
}

#[test]
fn ledger_of_a_newer_format_is_refused_before_it_is_read() {
    let mut newer = keys();
    newer.insert("format".to_owned(), (FORMAT + 1).to_string());
    newer.insert("run".to_owned(), "{\"whatever\":1}".to_owned());
    assert_eq!(read(&newer), Err(Unreadable::Newer(FORMAT + 1)));
}

#[test]
fn ledger_key_that_does_not_parse_is_named() {
    for (key, text) in [
        ("format", "one"),
        ("format", ""),
        ("run", "{}"),
        ("run", "no json"),
        ("osd-0", "{}"),
        ("osd-2", "{\"id\":\"x\""),
    ] {
        let mut broken = keys();
        broken.insert(key.to_owned(), text.to_owned());
        let error = read(&broken).unwrap_err();
        assert!(matches!(&error, Unreadable::Broken { key: named, .. } if named == key), "{error}");
        assert!(error.to_string().contains("kubectl"), "{error}");
    }
    for missing in ["format", "run", "nodes"] {
        let mut broken = keys();
        broken.remove(missing);
        check!(read(&broken), Err(Unreadable::Broken { key, .. }) if key == missing);
    }
}

#[test]
fn record_lost_added_or_swapped_by_hand_is_noticed() {
    let mut lost = keys();
    lost.remove("osd-0");
    assert_eq!(read(&lost), Err(Unreadable::Lost { listed: vec![0, 2], held: vec![2] }));

    let mut put_in = keys();
    let without = put_in["run"].replace("\"open\":[0,2]", "\"open\":[0]");
    put_in.insert("run".to_owned(), without);
    assert_eq!(read(&put_in), Err(Unreadable::Lost { listed: vec![0], held: vec![0, 2] }));

    let mut swapped = keys();
    let (a, b) = (swapped["osd-0"].clone(), swapped["osd-2"].clone());
    swapped.insert("osd-0".to_owned(), b);
    swapped.insert("osd-2".to_owned(), a);
    check!(read(&swapped), Err(Unreadable::Broken { .. }));

    // The nil fsid is no fsid, also if a person typed it.
    let mut nil = keys();
    let text =
        nil["osd-0"].replace(&issued_fsid(BY_HAND, 1).to_string(), "00000000-0000-0000-0000-000000000000");
    nil.insert("osd-0".to_owned(), text);
    check!(read(&nil), Err(Unreadable::Broken { key, .. }) if key == "osd-0");
}

/// Checks the size of a record: 100 PGs on an OSD are Ceph's own advice, 300 are a crowded OSD.
#[test]
fn record_of_an_osd_with_300_pgs_stays_below_eight_kib() {
    let mut ledger = full();
    let record = ledger.records.get_mut(&BY_HAND).unwrap();
    record.pgs = (0..300).map(|n| PgId { pool: 12, number: n }).collect();
    record.upmaps = (0..20)
        .map(|n| Upmap {
            pg: PgId { pool: 12, number: n },
            mappings: vec![(OsdId(10), OsdId(11)), (OsdId(12), OsdId(13))],
        })
        .collect();
    record.issued = (0..5).map(|n| issued_fsid(BY_HAND, n)).collect();
    record.milestones = (0..20).map(|_| ("quarantine".to_owned(), noon())).collect();
    let device = &mut record.evidence.as_mut().unwrap().device;
    device.by_id =
        (0..6).map(|n| format!("scsi-SATA_ST16000NM001G-2KK103_ZL2A{n:04}")).collect::<BTreeSet<_>>();
    let keys = ledger.to_keys().unwrap();
    assert!(keys["osd-0"].len() < 8 * 1024, "{} bytes", keys["osd-0"].len());
}

/// Checks records of OSDs with 300 PGs and 150 upmaps, as a balancer and a paused backfill leave them.
#[test]
fn ledger_has_no_place_beyond_half_a_mebibyte_of_records() {
    let mut one = full().records.remove(&BY_HAND).unwrap();
    one.pgs = (0..300).map(|n| PgId { pool: 12, number: n }).collect();
    let upmap = |number| Upmap {
        pg: PgId { pool: 12, number },
        mappings: vec![(OsdId(10), OsdId(11)), (OsdId(12), OsdId(13))],
    };
    one.upmaps = (0..150).map(upmap).collect();
    let size = serde_json::to_string(&one).unwrap().len();
    let most = 512 * 1024 / size;
    assert!((20..60).contains(&most), "{size} bytes");
    let with = |number: usize, quarantine: Option<&Quarantine>| {
        let record = |osd| Record { osd: OsdId(osd), quarantine: quarantine.cloned(), ..one.clone() };
        let ids = (0_u32..).take(number).map(|n| 100 + n);
        Ledger { records: ids.map(|osd| (OsdId(osd), record(osd))).collect(), ..Ledger::default() }
    };
    assert!(with(most - 1, None).has_place() && !with(most + 1, None).has_place());
    // OSDs in progress can be completed.
    assert!(bytes(&with(most + 10, None)) < 1000 * 1024);
    let quarantine = Quarantine { why: "WHY".to_owned(), since: noon() };
    assert_eq!(with(most - 1, Some(&quarantine)).full_of_quarantined(), None);
    let why = with(most + 1, Some(&quarantine)).full_of_quarantined().unwrap();
    assert!(why.starts_with(&format!("{} OSDs are quarantined", most + 1)), "{why}");
    assert_eq!(with(most + 1, None).full_of_quarantined(), None, "they end by themselves");
}

/// Returns the entry of a completed node: `disks` disks that became OSDs, and ten problems of the stored
/// length.
pub(crate) fn completed(run: &str, disks: usize) -> NodeWork {
    let disk = |disk| format!("/dev/disk/by-id/ata-ST18000NM000J-2TV103_ZR5{disk:05}");
    let problem = |number| format!("{number}: {}", "x".repeat(297));
    // As it is read: fields that were added later have their default.
    let stored = serde_json::json!({
        "status": "completed", "since": noon(), "message": format!("created OSDs on {disks} disks"),
        "run": run, "inventory": 1, "failures": 0,
        "done": (0..disks).map(disk).collect::<BTreeSet<_>>(),
        "left": {"/dev/disk/by-id/wwn-0x5000c500": "a file system (xfs)"},
        "problems": (0..10).map(problem).collect::<Vec<_>>(),
    });
    serde_json::from_value(stored).unwrap()
}

pub(crate) fn with_nodes(number: usize, work: &NodeWork) -> Ledger {
    let mut ledger = full();
    let name = |node| NodeName(format!("storage-{node:05}.rack-17.example.org"));
    ledger.nodes = (0..number).map(|node| (name(node), work.clone())).collect();
    ledger
}

fn bytes(ledger: &Ledger) -> usize {
    ledger.to_keys().unwrap().iter().map(|(key, value)| key.len() + value.len()).sum()
}

#[test]
fn ledger_of_300_nodes_with_10_problems_each_can_be_saved() {
    let work = completed("run-1", 60);
    let raw = serde_json::to_string(&with_nodes(300, &work).nodes).unwrap().len();
    assert!(raw > 2 * 900 * 1024, "{raw}");
    for nodes in [1, 100, 300, 1_000] {
        let stored = bytes(&with_nodes(nodes, &work));
        assert!(stored < 400 * 1024, "{nodes} nodes: {stored} bytes");
    }
}

#[test]
fn shortened_ledger_has_each_node_and_counts_what_it_omits() {
    let ledger = with_nodes(300, &completed("run-1", 60));
    let mut stored = ledger.clone();
    // Each save shortens what the previous save has left, as in a run that goes from node to node.
    for _ in 0..3 {
        stored = read(&stored.to_keys().unwrap()).unwrap();
    }
    assert!(stored.nodes.keys().eq(ledger.nodes.keys()));
    assert_eq!(stored.records, ledger.records);
    for work in stored.nodes.values() {
        assert_eq!((work.status, work.run.as_str()), (NodeStatus::Completed, "run-1"));
        // Otherwise a disk could be taken twice: the earlier inventory is not the one of this number.
        assert!(work.done.is_empty() && work.left.is_empty() && work.inventory == 2, "{work:?}");
        assert_eq!(work.problems.len(), 4);
        assert_eq!(work.problems[3], "and 7 more: see the log of the run");
    }
}

#[test]
fn shortened_ledger_retains_disks_of_orchestrating_nodes() {
    let at_work = NodeWork { status: NodeStatus::Orchestrating, ..completed("run-1", 24) };
    let mut ledger = with_nodes(300, &completed("run-1", 60));
    let node = NodeName("storage-at-work".to_owned());
    ledger.nodes.insert(node.clone(), at_work.clone());
    let stored = read(&ledger.to_keys().unwrap()).unwrap();
    let backups = &stored.nodes[&node];
    assert_eq!(
        (&backups.done, &backups.left, backups.inventory),
        (&at_work.done, &at_work.left, at_work.inventory)
    );
}
