//! Stage 2: which disks of which nodes become OSDs. Each rule has a test that fails without the rule.

mod config;
mod database;
mod location;
mod nodes;
mod select;
mod volumes;

use std::collections::BTreeSet;

use osd_migrate::domain::inventory::{DiskSeen, DiskState, NodeInventory, OsdSeen, Rejection};
use osd_migrate::domain::observation::{Node, Observation};
use osd_migrate::domain::osd::{DeviceIdentity, Mode, NodeName, ObjectStore, OsdFsid, OsdId};
use osd_migrate::domain::provision::{
    self, AvailableDisk, DatabaseAsked, DatabasesAsked, Processed, Verdict,
};
use osd_migrate::domain::storage::{DeviceConfig, DeviceSelection, NamedDevice, Storage, StorageNode};

use crate::support::build::{self, GIB};

/// Returns an available disk: links and names follow from the kernel's name.
fn free(name: &str) -> DiskSeen {
    DiskSeen {
        name: name.to_owned(),
        parent: None,
        links: [format!("/dev/disk/by-id/ata-{name}"), format!("/dev/disk/by-path/pci-{name}")].into(),
        identity: DeviceIdentity {
            by_id: [format!("ata-{name}")].into(),
            by_path: [].into(),
            serial: Some(format!("S-{name}")),
            wwn: Some(format!("wwn-{name}")),
            size_bytes: 100 * GIB,
        },
        rotational: true,
        state: DiskState::Available,
    }
}

fn free_partition(name: &str, parent: &str) -> DiskSeen {
    DiskSeen { parent: Some(parent.to_owned()), ..free(name) }
}

fn rejected(name: &str, why: Rejection) -> DiskSeen {
    DiskSeen { state: DiskState::Rejected { why }, ..free(name) }
}

fn mounted(name: &str) -> DiskSeen {
    rejected(name, Rejection::Mounted { at: "/srv".to_owned() })
}

fn ours(name: &str, osd: OsdId) -> DiskSeen {
    DiskSeen { state: DiskState::Ours { fsid: fsid(osd), osd: Some(osd) }, ..free(name) }
}

fn fsid(osd: OsdId) -> OsdFsid {
    build::old(osd)
}

/// Returns an OSD on lvm, as the inventory lists it.
fn listed(osd: OsdId, db_disk: Option<&str>) -> OsdSeen {
    OsdSeen {
        fsid: fsid(osd),
        osd,
        cluster: build::cluster(),
        mode: Mode::Lvm,
        store: ObjectStore::bluestore(),
        encrypted: false,
        block_path: format!("/dev/ceph-{}/osd-block", osd.0),
        activatable: true,
        db_path: db_disk.map(|_| format!("/dev/ceph-db/osd-db-{}", osd.0)),
        db_disk: db_disk.map(str::to_owned),
        wal_path: None,
    }
}

fn all() -> DeviceSelection {
    DeviceSelection { all: Some(true), ..DeviceSelection::default() }
}

fn filter(filter: &str) -> DeviceSelection {
    DeviceSelection { filter: Some(filter.to_owned()), ..DeviceSelection::default() }
}

fn path_filter(filter: &str) -> DeviceSelection {
    DeviceSelection { path_filter: Some(filter.to_owned()), ..DeviceSelection::default() }
}

fn devices(names: &[&str]) -> DeviceSelection {
    let device = |name: &&str| NamedDevice { name: (*name).to_owned(), config: DeviceConfig::default() };
    DeviceSelection { devices: names.iter().map(device).collect(), ..DeviceSelection::default() }
}

fn entry(name: &str, selection: DeviceSelection) -> StorageNode {
    StorageNode { name: name.to_owned(), selection, config: DeviceConfig::default() }
}

fn metadata(name: &str) -> DeviceConfig {
    DeviceConfig { metadata_device: Some(name.to_owned()), ..DeviceConfig::default() }
}

/// One change of a case.
type Change<'a> = &'a dyn Fn(&mut Case);

/// A node `h1`, its disks, and the declaration.
#[derive(Clone)]
struct Case {
    seen: Observation,
    inventory: NodeInventory,
    asked: DatabasesAsked,
}

impl Case {
    /// Returns a case in which all nodes are used, with this selection and these disks.
    fn of(selection: DeviceSelection, disks: &[DiskSeen]) -> Self {
        let mut seen = build::observation();
        seen.kube.declaration.storage = Storage { all_nodes: true, selection, ..Storage::default() };
        let (disks, notes) = (disks.to_vec(), Vec::new());
        let inventory = NodeInventory {
            capability: build::able(),
            disks,
            osds: Vec::new(),
            database_groups: [].into(),
            notes,
        };
        Self { seen, inventory, asked: DatabasesAsked::new() }
    }

    /// Returns a case that names only `h1`, with a selection of its own in addition to the cluster's.
    fn named(own: DeviceSelection, cluster: DeviceSelection, disks: &[DiskSeen]) -> Self {
        Self::of(cluster, disks).with(|case| {
            case.storage().all_nodes = false;
            case.storage().nodes = vec![entry("h1", own)];
        })
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn storage(&mut self) -> &mut Storage {
        &mut self.seen.kube.declaration.storage
    }

    fn node(&mut self) -> &mut Node {
        self.seen.kube.nodes.get_mut(&NodeName("h1".to_owned())).unwrap()
    }

    fn process(&self) -> Processed {
        provision::process(&NodeName("h1".to_owned()), &self.inventory, &self.asked, &self.seen, false)
    }

    /// Returns the kernel names of the disks that become OSDs.
    fn new_osds(&self) -> Vec<String> {
        available_disks(&self.process()).iter().map(|available| available.name.clone()).collect()
    }

    fn problems(&self) -> Vec<String> {
        self.process().problems
    }

    /// Returns the one new OSD.
    fn only(&self) -> AvailableDisk {
        let processed = self.process();
        let available_disks = available_disks(&processed);
        assert_eq!(available_disks.len(), 1, "{processed:#?}");
        available_disks[0].clone()
    }

    /// Returns the verdict on a disk.
    fn verdict(&self, name: &str) -> Verdict {
        self.process().disks.into_iter().find(|(disk, _)| disk.name == name).unwrap().1
    }
}

fn available_disks(processed: &Processed) -> Vec<AvailableDisk> {
    let new = |(_, verdict): &(DiskSeen, Verdict)| match verdict {
        Verdict::New(available) => Some((**available).clone()),
        _ => None,
    };
    processed.disks.iter().filter_map(new).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn notes_of_an_inventory_are_problems_of_its_node() {
    let with_notes = |notes: usize| NodeInventory {
        notes: (0..notes).map(|n| format!("could not inspect sd{n} ({})", "x".repeat(400))).collect(),
        capability: build::able(),
        disks: Vec::new(),
        osds: Vec::new(),
        database_groups: [].into(),
    };
    for on_file in [false, true] {
        let problems = |notes| {
            let seen = build::observation();
            let node = NodeName("h1".to_owned());
            provision::process(&node, &with_notes(notes), &DatabasesAsked::new(), &seen, on_file).problems
        };
        assert_eq!(problems(0), [""; 0]);
        let few = problems(2);
        assert!(few.len() == 2 && few[1].starts_with("could not inspect sd1 (") && few[1].len() == 300);
        let many = problems(30);
        assert_eq!((many.len(), many[5].as_str()), (6, "25 more notes of the inventory are not shown"));
    }
}
