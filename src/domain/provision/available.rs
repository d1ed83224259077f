//! Decides what each disk of a node becomes.

use std::collections::{BTreeMap, BTreeSet};

use super::database::Databases;
use super::select::{self, Selection, Selector};
use super::wanted::{self, Wanted};
use super::{AvailableDisk, DatabasesAsked, FILE, Processed, Verdict, database_asked};
use crate::domain::inspection::Capability;
use crate::domain::inventory::{DiskSeen, DiskState, NodeInventory};
use crate::domain::observation::Observation;
use crate::domain::osd::{DbDevice, DeviceIdentity, Layout, Mode, NodeName, ObjectStore, OsdId, device_type};
use crate::domain::storage::{DeviceConfig, NamedDevice};

/// Label of a node that names the device class of its OSDs (Rook v1.19.7 and v1.20.1 on:
/// pkg/operator/ceph/cluster/osd/osd.go, `resolveDeviceClass`).
const CLASS_LABEL: &str = "osd.rook.io/device-class";

/// Returns the verdicts for a store on file: only the node's one file can become an OSD, if it is available.
pub(super) fn file(inventory: &NodeInventory) -> Processed {
    let layout = Layout { store: ObjectStore::bluestore(), mode: Mode::Raw, encrypted: false };
    let mut processed = Processed::default();
    for disk in &inventory.disks {
        let verdict = match &disk.state {
            _ if disk.name != FILE => Verdict::NotSelected,
            DiskState::Available | DiskState::Tombstone { .. } => {
                Verdict::New(Box::new(AvailableDisk { on_file: true, ..available(disk, layout.clone()) }))
            }
            DiskState::Ours { fsid, osd } => Verdict::Ours { fsid: *fsid, osd: *osd },
            DiskState::Rejected { why } => {
                processed.problems.push(format!("the file for its OSD cannot be used: {why}"));
                Verdict::Rejected(why.to_string())
            }
        };
        processed.disks.push((disk.clone(), verdict));
    }
    processed
}

/// Returns the verdicts for the disks of a node, by what the CephCluster selects.
pub(super) fn disks(
    node: &NodeName,
    inventory: &NodeInventory,
    asked: &DatabasesAsked,
    seen: &Observation,
) -> Processed {
    let wanted = wanted::on(node, seen);
    let mut problems = wanted.void.clone();
    let selector = Selector::new(wanted.choice).unwrap_or_else(|why| {
        problems.push(why);
        Selector::Nothing
    });
    let named = metadata_devices(&wanted, &selector);
    let all = named.into_iter().chain(asked.values().map(|asked| asked.device.as_str()));
    let databases = Databases::new(all, inventory, seen.ceph.fsid);
    let mut walk = DiskSelection {
        node,
        inventory,
        seen,
        wanted,
        selector,
        databases,
        refused: Vec::new(),
        remarks: BTreeSet::new(),
    };
    let mut disks: Vec<(DiskSeen, Verdict)> =
        inventory.disks.iter().map(|disk| (disk.clone(), walk.verdict(disk))).collect();
    walk.refuse_doubles(&mut disks);
    let databases = walk.share_databases(&mut disks, asked);
    problems.extend(walk.missing());
    problems.extend(walk.sentences());
    Processed { disks, databases, problems }
}

/// Returns every `metadataDevice` that is in effect on the node.
fn metadata_devices<'n>(wanted: &'n Wanted<'_>, selector: &Selector<'n>) -> Vec<&'n str> {
    let of_devices = selector.named().iter().filter_map(|device| device.config.metadata_device.as_deref());
    wanted
        .config
        .metadata_device
        .as_deref()
        .into_iter()
        .chain(of_devices)
        .filter(|name| !name.is_empty())
        .collect()
}

fn available(disk: &DiskSeen, layout: Layout) -> AvailableDisk {
    let tombstone = match &disk.state {
        DiskState::Tombstone { osd, old, record, .. } => Some((*osd, *old, record.clone())),
        DiskState::Available | DiskState::Ours { .. } | DiskState::Rejected { .. } => None,
    };
    AvailableDisk {
        name: disk.name.clone(),
        stable: disk.identity.stable_name(),
        device: disk.identity.clone(),
        tombstone,
        layout,
        device_type: device_type(disk.rotational, &disk.name),
        device_class: None,
        initial_weight: None,
        db: None,
        on_file: false,
    }
}

struct DiskSelection<'a> {
    node: &'a NodeName,
    inventory: &'a NodeInventory,
    seen: &'a Observation,
    wanted: Wanted<'a>,
    selector: Selector<'a>,
    databases: Databases<'a>,
    /// Disks that are requested and do not become OSDs, by reason, in the order found.
    refused: Vec<(String, Vec<String>)>,
    /// Settings that are declared for new OSDs and have no effect on them.
    remarks: BTreeSet<String>,
}

impl DiskSelection<'_> {
    fn verdict(&mut self, disk: &DiskSeen) -> Verdict {
        if let DiskState::Ours { fsid, osd } = &disk.state {
            let mut listed = self.inventory.osds.iter();
            let osd = osd.or_else(|| listed.find(|osd| osd.fsid == *fsid).map(|osd| osd.osd));
            return Verdict::Ours { fsid: *fsid, osd };
        }
        let asked = self.selector.asks(disk);
        let is_kept = self.databases.keeps(disk);
        if matches!(asked, Selection::No) && !is_kept {
            return Verdict::NotSelected;
        }
        let entry = asked.by_name();
        let why = match &disk.state {
            _ if is_kept => "it is reserved for the databases of OSDs (metadataDevice)".to_owned(),
            DiskState::Rejected { why } => why.to_string(),
            _ if select::is_rbd(disk) => "a volume of a Ceph cluster".to_owned(),
            DiskState::Available | DiskState::Tombstone { .. } | DiskState::Ours { .. } => {
                return self.available(disk, entry).map_or_else(
                    |why| self.refuse(disk, entry, why),
                    |available| Verdict::New(Box::new(available)),
                );
            }
        };
        // A disk in use that a filter or `useAllDevices` selects is not a problem. A disk that is requested
        // by name is.
        if entry.is_some() { self.refuse(disk, entry, why) } else { Verdict::Rejected(why) }
    }

    /// Rejects a disk that the owner requested, and notes it as a problem.
    fn refuse(&mut self, disk: &DiskSeen, entry: Option<&NamedDevice>, why: String) -> Verdict {
        let name = match entry {
            Some(entry) if entry.name != disk.name => format!("{} ({})", entry.name, disk.name),
            Some(_) | None => disk.name.clone(),
        };
        match self.refused.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, names)) => names.push(name),
            None => self.refused.push((why.clone(), vec![name])),
        }
        Verdict::Rejected(why)
    }

    /// Returns the OSD that an available disk becomes; `Err` is the reason why it can't.
    fn available(&mut self, disk: &DiskSeen, entry: Option<&NamedDevice>) -> Result<AvailableDisk, String> {
        let config = wanted::of_device(entry, &self.wanted.config);
        self.check_supported(&config)?;
        let layout = self.layout(disk, &config)?;
        let device_class = self.device_class(&config)?;
        let db = match database_asked(&config) {
            Some(asked) => {
                let identity = self.databases.usable(&asked.device)?.identity.clone();
                Some(DbDevice { identity, size_mib: asked.size_mib })
            }
            None => None,
        };
        if let (None, Some(size)) = (&db, config.database_size_mb.filter(|size| *size > 0)) {
            self.remarks.insert(format!(
                "databaseSizeMB {size} has no effect without a metadataDevice: the database is stored with \
                 the data"
            ));
        }
        // `walSizeMB` reaches no command of Rook's for OSDs on disks (cmd/rook/ceph/osd.go reads it, nothing
        // uses it, v1.20.6).
        if let Some(size) = config.wal_size_mb.filter(|size| *size > 0) {
            self.remarks.insert(format!(
                "walSizeMB {size} has no effect: OSDs on disks get no separate wal device, and the wal is \
                 stored with the database"
            ));
        }
        Ok(AvailableDisk {
            device_class,
            initial_weight: config.initial_weight,
            db,
            ..available(disk, layout)
        })
    }

    /// Checks whether this version, and the image of the node, can create the requested OSD.
    fn check_supported(&self, config: &DeviceConfig) -> Result<(), String> {
        if !config.unreadable.is_empty() {
            return Err(config.unreadable.join("; "));
        }
        let store = &self.seen.kube.declaration.store;
        if *store != ObjectStore::bluestore() {
            return Err(format!("the declared store is {store}, but this version supports only bluestore"));
        }
        if let Some(count) = config.osds_per_device.filter(|count| *count > 1) {
            return Err(format!(
                "osdsPerDevice is {count}, but this version supports only one OSD per device"
            ));
        }
        // An inventory has no key, so it can't know whether the mons accept the key.
        let Capability { ceph_version, raw_osd_id, missing_tools, tool_trouble, .. } =
            &self.inventory.capability;
        if !missing_tools.is_empty() {
            let tools: Vec<&str> = missing_tools.iter().map(String::as_str).collect();
            return Err(format!("the image of its node is missing {}", tools.join(", ")));
        }
        if let Some(why) = tool_trouble {
            return Err(format!("ceph-volume did not say on its node what it can do: {why}"));
        }
        if !raw_osd_id {
            return Err(format!(
                "ceph-volume of {ceph_version} cannot create an OSD with a given id. Upgrade Ceph first"
            ));
        }
        Ok(())
    }

    /// Returns raw if Rook chooses raw, which needs no encryption and no metadata device; otherwise lvm
    /// (pkg/daemon/ceph/osd/volume.go, `allowRawMode` and `isSafeToUseRawMode`, v1.20.6).
    ///
    /// A partition can't be encrypted in Rook (pkg/daemon/ceph/osd/daemon.go, `getAvailableDevices`), nor
    /// have a metadata device: Rook passes it to `ceph-volume lvm batch`, which refuses partitions (rook/rook
    /// issue 6849).
    fn layout(&self, disk: &DiskSeen, config: &DeviceConfig) -> Result<Layout, String> {
        let encrypted = config.encrypted == Some(true);
        let has_db = database_asked(config).is_some();
        match (&disk.parent, encrypted, has_db) {
            (Some(_), true, _) => return Err("a partition cannot be encrypted (encryptedDevice)".to_owned()),
            (Some(_), false, true) => return Err("a partition cannot have a metadataDevice".to_owned()),
            (Some(_), false, false) | (None, ..) => {}
        }
        // Rook knows `encryptedDevice` of a node only. When Rook starts an OSD on lvm on such a node, it
        // expects an encrypted one (pkg/operator/ceph/cluster/osd/spec.go, `activateOSDOnNodeCode`, v1.20.6).
        if has_db && !encrypted && self.wanted.config.encrypted == Some(true) {
            return Err(
                "encryptedDevice is false for the device and true for its node: Rook could not start the OSD \
                 with a metadataDevice"
                    .to_owned(),
            );
        }
        let mode = if encrypted || has_db { Mode::Lvm } else { Mode::Raw };
        Ok(Layout { store: self.seen.kube.declaration.store.clone(), mode, encrypted })
    }

    /// Returns the class that is declared for the device, its node or the cluster, or by the node's label.
    ///
    /// If cluster or node and the label both name a class, Rook creates no OSD on that node
    /// (`resolveDeviceClass`, v1.20.6).
    fn device_class(&self, config: &DeviceConfig) -> Result<Option<String>, String> {
        let set = |class: &Option<String>| class.clone().filter(|class| !class.is_empty());
        let node = self.seen.kube.nodes.get(self.node);
        let label = node.and_then(|node| node.labels.get(CLASS_LABEL)).filter(|class| !class.is_empty());
        match (set(&self.wanted.config.device_class), label) {
            (Some(class), Some(label)) => Err(format!(
                "deviceClass is {class} and the label {CLASS_LABEL} of its node is {label}: remove one of \
                 them"
            )),
            (_, label) => Ok(set(&config.device_class).or_else(|| label.cloned())),
        }
    }

    /// Rejects disks that share a name, as two paths to one disk do without multipath: two OSDs would be
    /// created on one disk.
    fn refuse_doubles(&mut self, disks: &mut [(DiskSeen, Verdict)]) {
        let mut count: BTreeMap<String, u32> = BTreeMap::new();
        let names =
            |available: &AvailableDisk| [Some(available.stable.clone()), available.device.wwn.clone()];
        for available in disks.iter().filter_map(|(_, verdict)| new(verdict)) {
            for name in names(available).into_iter().flatten() {
                *count.entry(name).or_default() += 1;
            }
        }
        for (disk, verdict) in disks {
            let double = new(verdict).and_then(|available| {
                names(available)
                    .into_iter()
                    .flatten()
                    .find(|name| count.get(name).is_some_and(|count| *count > 1))
            });
            if let Some(name) = double {
                *verdict = self.refuse(
                    disk,
                    None,
                    format!("several disks are {name}: they may be paths to one disk"),
                );
            }
        }
    }

    /// Gives each OSD its part of its metadata device: first the existing OSDs, in the order of their ids,
    /// then the new ones.
    fn share_databases(
        &mut self,
        disks: &mut [(DiskSeen, Verdict)],
        asked: &DatabasesAsked,
    ) -> BTreeMap<OsdId, Result<DbDevice, String>> {
        let db = |verdict: &Verdict| new(verdict).and_then(|available| available.db.clone());
        let mut there: BTreeMap<OsdId, Result<DbDevice, String>> = asked
            .iter()
            .map(|(osd, asked)| {
                let disk = self.databases.usable(&asked.device);
                let db = |disk: &DiskSeen| (disk.identity.clone(), asked.size_mib);
                (*osd, disk.map(db).map(|(identity, size_mib)| DbDevice { identity, size_mib }))
            })
            .collect();
        let wanted: BTreeSet<DeviceIdentity> = there
            .values()
            .flatten()
            .cloned()
            .chain(disks.iter().filter_map(|(_, verdict)| db(verdict)))
            .map(|db| db.identity)
            .collect();
        for identity in wanted {
            let Some(device) = self.inventory.disks.iter().find(|disk| disk.identity == identity) else {
                continue;
            };
            let is_on_it = |db: &DbDevice| db.identity == identity;
            let of_disks = disks.iter().filter_map(|(_, verdict)| db(verdict));
            let sizes: Vec<Option<u64>> = there
                .values()
                .flatten()
                .cloned()
                .chain(of_disks)
                .filter(is_on_it)
                .map(|db| db.size_mib)
                .collect();
            let mut shares = self.databases.shares(device, &sizes).into_iter();
            for found in there.values_mut().filter(|found| found.as_ref().is_ok_and(is_on_it)) {
                if let Some(share) = shares.next() {
                    *found = share;
                }
            }
            let sharing = disks.iter_mut().filter(|(_, verdict)| db(verdict).as_ref().is_some_and(is_on_it));
            for ((disk, verdict), share) in sharing.zip(shares) {
                match (share, verdict) {
                    (Ok(db), Verdict::New(available)) => available.db = Some(db),
                    (Err(why), verdict) => *verdict = self.refuse(disk, None, why),
                    (Ok(_), Verdict::Ours { .. } | Verdict::NotSelected | Verdict::Rejected(_)) => {}
                }
            }
        }
        there
    }

    /// Returns a problem for each device that is named and missing.
    fn missing(&self) -> Vec<String> {
        let is_missing = |device: &&NamedDevice| select::find(&device.name, self.inventory).is_none();
        self.selector
            .named()
            .iter()
            .filter(is_missing)
            .map(|device| match device.name.as_str() {
                "" => "an entry of devices has neither name nor fullpath".to_owned(),
                name => format!("{name} is named in devices, but was not found"),
            })
            .collect()
    }

    fn sentences(self) -> Vec<String> {
        let refused = self
            .refused
            .into_iter()
            .map(|(why, names)| format!("{} cannot become an OSD: {why}", names.join(", ")));
        refused.chain(self.remarks).collect()
    }
}

fn new(verdict: &Verdict) -> Option<&AvailableDisk> {
    match verdict {
        Verdict::New(available) => Some(available),
        Verdict::Ours { .. } | Verdict::NotSelected | Verdict::Rejected(_) => None,
    }
}
