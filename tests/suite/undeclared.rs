//! `remove --undeclared`: which OSDs the CephCluster no longer declares.
//!
//! Node h1 has osd.0 and osd.1, on sda and sdb.

use std::collections::BTreeSet;

use osd_migrate::domain::inventory::{DiskSeen, DiskState, NodeInventory, OsdSeen};
use osd_migrate::domain::observation::Observation;
use osd_migrate::domain::osd::{DeviceIdentity, Mode, NodeName, ObjectStore, OsdId};
use osd_migrate::domain::storage::{DeviceConfig, DeviceSelection, NamedDevice, Storage, StorageNode};
use osd_migrate::domain::undeclared::{self, CreatedAs, Found, Inventories};
use osd_migrate::show;

use crate::support::build::{self, GIB, old};

const ONE: OsdId = OsdId(0);
const TWO: OsdId = OsdId(1);

fn node(name: &str) -> NodeName {
    NodeName(name.to_owned())
}

/// Returns the disk of an OSD under a kernel name; its link by id is that of the OSD.
fn disk(name: &str, osd: OsdId) -> DiskSeen {
    DiskSeen {
        name: name.to_owned(),
        parent: None,
        links: [format!("/dev/disk/by-id/wwn-{}", osd.0)].into(),
        identity: DeviceIdentity {
            by_id: [format!("wwn-{}", osd.0)].into(),
            by_path: [].into(),
            serial: None,
            wwn: Some(format!("wwn-{}", osd.0)),
            size_bytes: 100 * GIB,
        },
        rotational: true,
        state: DiskState::Ours { fsid: old(osd), osd: Some(osd) },
    }
}

fn filter(filter: &str) -> DeviceSelection {
    DeviceSelection { filter: Some(filter.to_owned()), ..DeviceSelection::default() }
}

fn devices(names: &[&str]) -> DeviceSelection {
    let device = |name: &&str| NamedDevice { name: (*name).to_owned(), config: DeviceConfig::default() };
    DeviceSelection { devices: names.iter().map(device).collect(), ..DeviceSelection::default() }
}

fn entry(name: &str, selection: DeviceSelection) -> StorageNode {
    StorageNode { name: name.to_owned(), selection, config: DeviceConfig::default() }
}

/// A cluster of node h1 with two OSDs: what is declared, seen on the disks, and known of their creation.
struct Case {
    seen: Observation,
    disks: Vec<DiskSeen>,
    osds: Vec<OsdSeen>,
    created_as: CreatedAs,
}

impl Case {
    /// Returns the case in which both OSDs were created as they are named now, with this selection.
    fn of(selection: DeviceSelection) -> Self {
        let mut seen = build::observation();
        let is_there = |osd: &OsdId| [ONE, TWO].contains(osd);
        seen.ceph.slots.retain(|osd, _| is_there(osd));
        seen.kube.daemons.retain(|osd, _| is_there(osd));
        seen.kube.declaration.storage = Storage { all_nodes: true, selection, ..Storage::default() };
        let created = |osd, name: &str| (old(osd), BTreeSet::from([name.to_owned()]));
        Self {
            seen,
            disks: vec![disk("sda", ONE), disk("sdb", TWO)],
            osds: Vec::new(),
            created_as: [created(ONE, "/dev/sda"), created(TWO, "sdb")].into(),
        }
    }

    fn created_as(mut self, osd: OsdId, name: &str) -> Self {
        self.created_as.insert(old(osd), [name.to_owned()].into());
        self
    }

    fn on(mut self, disks: &[DiskSeen]) -> Self {
        self.disks = disks.to_vec();
        self
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn storage(&mut self) -> &mut Storage {
        &mut self.seen.kube.declaration.storage
    }

    fn found(&self) -> Found {
        let (disks, osds) = (self.disks.clone(), self.osds.clone());
        let inventory = NodeInventory {
            capability: build::able(),
            disks,
            osds,
            database_groups: [].into(),
            notes: Vec::new(),
        };
        undeclared::find(&[(node("h1"), Ok(inventory))].into(), &self.created_as, &self.seen)
    }

    fn undeclared(&self) -> Vec<OsdId> {
        let found = self.found();
        assert_eq!(found.unknown, [].into());
        found.undeclared.into_keys().collect()
    }

    /// Returns why nothing is known of osd.0; it is not undeclared.
    fn unknown(&self) -> String {
        let found = self.found();
        assert!(!found.undeclared.contains_key(&ONE), "{found:?}");
        found.unknown[&ONE].clone()
    }
}

#[test]
fn renamed_disk_stays_declared_if_the_filter_did_not_change() {
    // NOT SAFE: Device name has changed, but filter has not been updated by the user:
    //
    // User initially specifies sda via device filter or list. Rook configures sda and gets an OSD up and
    // running.
    // The node reboots which causes the OSD pod to restart.
    // The filter still specifies sda, but the device has changed its name to sdb. The device is now out of
    // the filter.
    // We look at the node's saved OSD config and see that we originally set up sda with device UUID
    // wxyz-1234.
    // The user's filter still says to use sda, so going by the saved config and not what the current devices
    // names are, we know that the old sda (device UUID wxyz-1234), which is now sdb should NOT be removed.
    for selection in [filter("^sda$"), devices(&["sda"]), devices(&["/dev/sda"])] {
        for created in ["sda", "/dev/sda"] {
            let case = Case::of(selection.clone()).on(&[disk("sdb", ONE)]).created_as(ONE, created);
            let found = case.with(|case| drop(case.seen.ceph.slots.remove(&TWO))).found();
            assert_eq!(found, Found::default(), "{selection:?}, {created}");
        }
    }
    // Two disks have exchanged their names, and both are still meant.
    let swapped = [disk("sdb", ONE), disk("sda", TWO)];
    assert_eq!(Case::of(filter("^sda$")).on(&swapped).undeclared(), []);
}

#[test]
fn osd_is_undeclared_if_the_filter_changed_and_its_name_did_not() {
    // SAFE: User has updated the filter and the device name has not changed:
    //
    // User initially specifies sda via device filter or list. Rook configures sda and gets an OSD up and
    // running.
    // User updates the Cluster CRD to change the device filter or list to now be sdb.
    // The OSD pod restarts and when it comes back up it sees that the previously configured sda is no longer
    // in the filter.
    // The pod checks the device UUID of sda in its saved config and compares that to the device UUID of the
    // current sda.
    // The two match, so the pod knows it's a safe (user intended) operation to remove the OSD from sda.
    for selection in [filter("^sdb$"), devices(&["sdb"]), devices(&["/dev/sdb"])] {
        assert_eq!(Case::of(selection.clone()).undeclared(), [ONE], "{selection:?}");
        // Another disk is sda now: the fsid in its label is not that of osd.0.
        let case = Case::of(selection).on(&[disk("sda", OsdId(9)), disk("sdb", TWO)]);
        assert!(case.unknown().starts_with("no disk of node h1 has its fsid"), "{}", case.unknown());
    }
    let why = Case::of(filter("^sdb$")).found().undeclared[&ONE].clone();
    let expected = "its disk sda (created as /dev/sda) on node h1 is not selected. The CephCluster selects deviceFilter \
                    ^sdb$";
    assert_eq!(why, expected);
}

#[test]
fn names_that_survive_a_reboot_need_no_name_of_the_creation() {
    let by_id =
        |case: Case| case.created_as(ONE, "/dev/disk/by-id/wwn-0").created_as(TWO, "/dev/disk/by-id/wwn-1");
    assert_eq!(by_id(Case::of(devices(&["/dev/disk/by-id/wwn-1"]))).undeclared(), [ONE]);
    let path_filter =
        |filter: &str| DeviceSelection { path_filter: Some(filter.to_owned()), ..DeviceSelection::default() };
    assert_eq!(by_id(Case::of(path_filter("^/dev/disk/by-id/wwn-1$"))).undeclared(), [ONE]);
    // Such a name may be found by a kernel name, which another boot gave to the disk.
    for selection in [filter("^sdb$"), devices(&["sdb"]), path_filter("^/dev/sdb$"), path_filter("sdb|sdc")] {
        let why = by_id(Case::of(selection)).unknown();
        assert!(why.starts_with("the kernel name under which it was created is not known"), "{why}");
    }
    let none = Case::of(filter("^sdb$")).with(|case| case.created_as.clear());
    assert!(none.unknown().starts_with("the kernel name under which it was created is not known"));
    // A link that leads nowhere may be a former link of the disk.
    let lost = by_id(Case::of(devices(&["/dev/disk/by-id/wwn-1", "/dev/disk/by-path/pci-7"]))).unknown();
    assert!(lost.starts_with("/dev/disk/by-path/pci-7 in devices leads to no disk of node h1"), "{lost}");
}

#[test]
fn link_outside_of_dev_disk_counts_as_a_link() {
    let with_links = |case: Case| {
        let slot = |name: &str, osd: OsdId| {
            let mut disk = disk(name, osd);
            disk.links.insert(format!("/dev/osd/slot{}", osd.0));
            disk
        };
        case.on(&[slot("sda", ONE), slot("sdb", TWO)])
    };
    let path_filter =
        |filter: &str| DeviceSelection { path_filter: Some(filter.to_owned()), ..DeviceSelection::default() };
    for selection in [devices(&["/dev/osd/slot1"]), path_filter("^/dev/osd/slot1$")] {
        assert_eq!(with_links(Case::of(selection)).undeclared(), [ONE]);
    }
    let unknown_name =
        with_links(Case::of(devices(&["/dev/osd/slot1"]))).with(|case| case.created_as.clear());
    assert_eq!(unknown_name.undeclared(), [ONE], "no kernel name is needed");
    // No link is known that the CephCluster names: nothing is undeclared.
    for (selection, expected) in [
        (devices(&["/dev/osd/slot1"]), "/dev/osd/slot1 in devices leads to no disk of node h1"),
        (devices(&["/dev/slot1", "/dev/sdb"]), "/dev/slot1 in devices leads to no disk of node h1"),
        (path_filter("/dev/osd/.*"), "devicePathFilter /dev/osd/.* leads to no disk of node h1"),
    ] {
        let found = Case::of(selection).found();
        assert_eq!(found.undeclared, [].into());
        assert!(found.unknown[&ONE].starts_with(expected), "{:?}", found.unknown);
    }
    assert_eq!(Case::of(devices(&["sdb", "/dev/sdz"])).undeclared(), [ONE]);
}

#[test]
fn disk_is_selected_by_any_of_its_names() {
    let part = || DiskSeen { parent: Some("sda".to_owned()), ..disk("sda1", ONE) };
    let whole = || DiskSeen { state: DiskState::Available, links: [].into(), ..disk("sda", ONE) };
    let on_part = |selection| Case::of(selection).on(&[whole(), part(), disk("sdb", TWO)]);
    for selection in [filter("^sd[ab]$"), filter("^sda1|sdb$"), devices(&["sda", "sdb"])] {
        assert_eq!(on_part(selection.clone()).undeclared(), [], "{selection:?}");
    }
    assert_eq!(on_part(filter("^sdb$")).undeclared(), [ONE]);
    // The logical volume, as `devices` may name it.
    let volume = |db_disk: Option<&str>| OsdSeen {
        fsid: old(ONE),
        osd: ONE,
        cluster: build::cluster(),
        mode: Mode::Lvm,
        store: ObjectStore::bluestore(),
        encrypted: false,
        block_path: "/dev/vg/lv".to_owned(),
        activatable: true,
        db_path: None,
        db_disk: db_disk.map(str::to_owned),
        wal_path: None,
    };
    let on_volume = Case::of(devices(&["/dev/vg/lv", "sdb"])).with(|case| case.osds.push(volume(None)));
    assert_eq!(on_volume.undeclared(), []);
    // The disk of the database is not the OSD's: it does not keep the OSD declared.
    let with_db = Case::of(filter("^sdb|nvme0n1$")).with(|case| {
        case.disks.push(disk("nvme0n1", ONE));
        case.osds.push(volume(Some("nvme0n1")));
    });
    assert_eq!(with_db.undeclared(), [ONE]);
}

#[test]
fn osds_of_a_node_that_is_no_longer_named_are_undeclared() {
    let of = |nodes: Vec<StorageNode>| {
        Case::of(filter("^sdb$")).with(|case| {
            case.storage().all_nodes = false;
            case.storage().nodes = nodes;
        })
    };
    let named = of(vec![entry("h2", DeviceSelection::default())]);
    assert_eq!(named.undeclared(), [ONE, TWO]);
    assert_eq!(named.found().undeclared[&TWO], "the CephCluster does not select node h1");
    assert_eq!(undeclared::to_inspect(&named.seen), [].into(), "nothing of its disks is needed");
    // A selection of the node's own counts first.
    assert_eq!(of(vec![entry("h1", filter("^sda$"))]).undeclared(), [TWO]);
    // A node without any selection: that may be an error of its owner.
    let nothing = of(vec![entry("h1", DeviceSelection::default()), entry("h2", filter("sdb"))])
        .with(|case| case.storage().selection = DeviceSelection::default());
    assert_eq!(undeclared::refused(&nothing.seen), None);
    assert!(nothing.unknown().starts_with("no disk of node h1 is selected"), "{}", nothing.unknown());
}

#[test]
fn what_is_not_known_counts_as_declared_and_is_reported() {
    let case = Case::of(filter("^sdz$"));
    let without = undeclared::find(&Inventories::new(), &case.created_as, &case.seen);
    assert_eq!((without.undeclared.len(), without.unknown.len()), (0, 2));
    assert_eq!(without.unknown[&ONE], "the disks of node h1 were not inspected");
    let failed = [(node("h1"), Err("no disk could be read".to_owned()))].into();
    let failed = undeclared::find(&failed, &case.created_as, &case.seen);
    assert_eq!(failed.unknown[&TWO], "the disks of node h1 were not inspected: no disk could be read");
    let unreadable = Case::of(filter("sd[")).found();
    assert_eq!((unreadable.undeclared.len(), unreadable.unknown.len()), (0, 2));
    assert!(unreadable.unknown[&ONE].contains("deviceFilter `sd[` is not a valid regular expression"));
    let directory = Case::of(filter("^sdz$")).with(|case| {
        case.seen.kube.daemons.get_mut(&ONE).unwrap().data_dir = Some("/var/lib/rook/osd0".to_owned());
    });
    assert_eq!(directory.unknown(), "it is in a directory of its node");
    let gone = Case::of(filter("^sdz$")).with(|case| drop(case.seen.kube.daemons.remove(&ONE)));
    assert_eq!(gone.unknown(), "it has no Deployment, so its node is not known");
    let text = show::undeclared(&Found { unknown: failed.unknown, ..case.found() }).join("\n");
    for expected in [
        "osd.0 is not declared: its disk sda (created as /dev/sda) on node h1 is not selected. ",
        "\nNot compared, and kept: osd.0, osd.1: the disks of node h1 were not inspected: no disk could be read",
    ] {
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn osds_stay_declared_if_all_disks_are_selected() {
    let all = DeviceSelection { all: Some(true), ..DeviceSelection::default() };
    let case = Case::of(all).with(|case| case.created_as.clear());
    assert_eq!(case.undeclared(), []);
    assert_eq!(undeclared::to_inspect(&case.seen), [].into());
    let some = Case::of(filter("^sdb$"));
    assert_eq!(undeclared::to_inspect(&some.seen), [node("h1")].into());
    let not_ready = some.with(|case| case.seen.kube.nodes.get_mut(&node("h1")).unwrap().ready = false);
    assert_eq!(undeclared::to_inspect(&not_ready.seen), [].into(), "its Job would not start");
}

#[test]
fn nothing_is_undeclared_if_nothing_at_all_is_declared() {
    let refused = |case: Case| undeclared::refused(&case.seen);
    let nodes = |nodes: Vec<StorageNode>| {
        Case::of(DeviceSelection::default()).with(|case| {
            case.storage().all_nodes = false;
            case.storage().nodes = nodes;
        })
    };
    // "If there are no individual nodes listed under the nodes field, then updating this field to false will
    // not be allowed."
    let why = refused(nodes(Vec::new())).unwrap();
    assert!(why.starts_with("useAllNodes is false, and spec.storage.nodes names no node"), "{why}");
    // "However, if this value is updated to false, the operator will only allow OSDs to be removed if there
    // is a value set for deviceFilter."
    let no = || DeviceSelection { all: Some(false), ..DeviceSelection::default() };
    for case in [Case::of(no()), nodes(vec![entry("h1", no()), entry("h2", DeviceSelection::default())])] {
        let why = refused(case).unwrap();
        assert!(
            why.starts_with("useAllDevices is false, and spec.storage has neither devices nor "),
            "{why}"
        );
    }
    for selection in [filter("sdb"), devices(&["sdb"])] {
        assert_eq!(refused(Case::of(selection.clone())), None);
        assert_eq!(refused(nodes(vec![entry("h2", selection)])), None, "a node has its own");
    }
    let unreadable = Case::of(filter("sdb")).with(|case| {
        case.storage().config.unreadable.push("spec.storage.useAllNodes `x` is not true or false".to_owned());
    });
    assert!(refused(unreadable).unwrap().starts_with("spec.storage can't be read: "));
}

/// Checks a node whose object is missing, so that its label `kubernetes.io/hostname` is not known.
#[test]
fn osds_of_a_missing_node_stay_if_an_entry_may_mean_it() {
    let case = Case::of(devices(&["sda", "sdb"])).with(|case| {
        case.seen.kube.nodes.remove(&node("h1"));
        let storage = case.storage();
        (storage.all_nodes, storage.nodes) = (false, vec![entry("h1.example", DeviceSelection::default())]);
    });
    assert!(case.unknown().contains("The entry h1.example of spec.storage.nodes"), "{}", case.unknown());
    // With ROOK_CUSTOM_HOSTNAME_LABEL, it may mean a node that exists, too: a label has it as its value.
    let labelled = Case::of(devices(&["sda", "sdb"])).with(|case| {
        let labels = &mut case.seen.kube.nodes.get_mut(&node("h1")).unwrap().labels;
        labels.insert("example.com/host".to_owned(), "stor1".to_owned());
        let storage = case.storage();
        (storage.all_nodes, storage.nodes) = (false, vec![entry("stor1", DeviceSelection::default())]);
    });
    assert!(labelled.unknown().contains("The entry stor1 of spec.storage.nodes"), "{}", labelled.unknown());
    // All entries name nodes: this one was taken out.
    let other = case.with(|case| {
        let known = case.seen.kube.nodes.keys().next().expect("another node").0.clone();
        case.storage().nodes = vec![entry(&known, DeviceSelection::default())];
    });
    assert_eq!(other.undeclared(), [ONE, TWO]);
}
