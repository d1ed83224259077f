//! New OSDs in the simulation: inventories of a node's disks, and where CRUSH places data when an OSD is
//! added.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::act::{DataPrecondition, Deploy, Fresh};
use crate::domain::inspection::Content;
use crate::domain::inventory::{
    DiskSeen, DiskState, InventoryReport, InventoryRequest, NodeInventory, OsdSeen, Rejection,
};
use crate::domain::observation::{Daemon, Inventory, JobState, SlotState};
use crate::domain::osd::{CrushItem, Mode, NodeName, ObjectStore, OsdId, Weight};
use crate::domain::provision;
use crate::domain::storage::Toleration;
use crate::sim::acts::Done;
use crate::sim::agent;
use crate::sim::happening::Happening;
use crate::sim::world::{Disk, Effect, World};

impl World {
    /// Creates the ConfigMap and the Job of an inventory; existing ones stay.
    pub(super) fn create_inventory(&mut self, request: &InventoryRequest) {
        let name = format!("osd-migrate-disks-{}-{}-{}", request.node, request.run, request.number);
        let job = Inventory {
            uid: format!("uid-{name}"),
            node: request.node.clone(),
            run: request.run.clone(),
            number: request.number,
            state: Some(JobState::Waiting),
            created_at: self.at,
            heartbeat_at: None,
            trouble: None,
            report: None,
        };
        self.kube.inventories.entry(name).or_insert(job);
    }

    pub(super) fn delete_inventory_job(&mut self, name: &str, uid: &str) -> Done {
        if self.kube.inventories.get(name).is_some_and(|job| job.uid != uid) {
            return Err("the Job was recreated".to_owned());
        }
        self.kube.inventories.remove(name);
        Ok(Vec::new())
    }

    /// Applies a happening that concerns inventories or new OSDs.
    #[expect(clippy::wildcard_enum_match_arm, reason = "`happen` names what comes here")]
    pub(super) fn happen_to_new(&mut self, what: &Happening) {
        match what {
            Happening::InventoryJobEnds(job) => self.inventory_job_ends(job),
            Happening::InventoryJobDies(job) => self.inventory_job_dies(job),
            Happening::Unselected => self.kube.declaration.storage.selection.all = Some(false),
            Happening::Selected => self.kube.declaration.storage.selection.all = Some(true),
            Happening::Tainted(node) => {
                if let Some(node) = self.kube.nodes.get_mut(node).filter(|node| node.taints.is_empty()) {
                    node.taints.push(crate::sim::example::taint());
                }
            }
            _ => {}
        }
    }

    /// Returns the inventory Jobs of a node whose agent has not ended.
    pub fn inventory_jobs_at_work(&self, node: &NodeName) -> Vec<String> {
        let at_work =
            |job: &Inventory| job.node == *node && job.report.is_none() && job.state != Some(JobState::Ended);
        self.kube.inventories.iter().filter(|(_, job)| at_work(job)).map(|(name, _)| name.clone()).collect()
    }

    /// Reports the disks of the node.
    ///
    /// The agent only reads, so it is one step.
    fn inventory_job_ends(&mut self, name: &str) {
        let Some(job) = self.kube.inventories.get(name).cloned() else { return };
        let report = InventoryReport {
            run: job.run.clone(),
            number: job.number,
            node: job.node.clone(),
            began_at: self.at,
            ended_at: self.at,
            steps: Vec::new(),
            inventory: Some(self.inventory(&job.node)),
            problem: None,
        };
        self.kube
            .inventories
            .insert(name.to_owned(), Inventory { state: Some(JobState::Ended), report: Some(report), ..job });
    }

    /// Ends an inventory Job without a report.
    pub(super) fn inventory_job_dies(&mut self, name: &str) {
        if let Some(job) = self.kube.inventories.get_mut(name) {
            job.state = Some(JobState::Ended);
        }
    }

    fn inventory(&self, node: &NodeName) -> NodeInventory {
        let here = || self.disks.iter().filter(|(_, disk)| disk.node == *node);
        NodeInventory {
            capability: agent::able(),
            disks: here().map(|(name, disk)| self.disk_seen(name, disk)).collect(),
            osds: here().filter_map(|(_, disk)| self.osd_seen(disk)).collect(),
            database_groups: BTreeMap::new(),
            notes: Vec::new(),
        }
    }

    fn disk_seen(&self, name: &str, disk: &Disk) -> DiskSeen {
        let links = disk.identity.by_id.iter().map(|id| format!("/dev/disk/by-id/{id}")).collect();
        DiskSeen {
            name: name.to_owned(),
            parent: None,
            links,
            identity: disk.identity.clone(),
            rotational: true,
            state: self.disk_state(name, disk),
        }
    }

    fn disk_state(&self, name: &str, disk: &Disk) -> DiskState {
        let signature =
            |kind: &str| DiskState::Rejected { why: Rejection::Signature { kind: kind.to_owned() } };
        match &disk.content {
            _ if disk.held_by.is_some() => {
                DiskState::Rejected { why: Rejection::InUse { by: vec!["an agent".to_owned()] } }
            }
            Content::Blank if self.databases.values().any(|on| on == name) => {
                DiskState::Rejected { why: Rejection::Lvm }
            }
            Content::Blank => DiskState::Available,
            Content::Tombstone { cluster, osd, old, record } if *cluster == self.ceph.fsid => {
                DiskState::Tombstone { osd: *osd, old: *old, record: record.clone(), signature: None }
            }
            Content::Bluestore { osd_fsid, whoami, cluster, .. }
                if cluster.is_none_or(|c| c == self.ceph.fsid) =>
            {
                DiskState::Ours { fsid: *osd_fsid, osd: *whoami }
            }
            Content::Bluestore { cluster, .. } => {
                DiskState::Rejected { why: Rejection::ForeignCeph { cluster: *cluster } }
            }
            Content::Osd { .. } => DiskState::Rejected { why: Rejection::Partitioned { count: 2 } },
            Content::Tombstone { .. } | Content::Other { .. } | Content::NotFound { .. } => {
                signature("something")
            }
        }
    }

    /// Creates an OSD's Deployment if there is none, or replaces exactly the observed one.
    pub(super) fn deploy_fresh(&mut self, deploy: &Deploy, fresh: Option<&Fresh>) -> Done {
        let (osd, replaces) = (deploy.osd, fresh.and_then(|fresh| fresh.replaces.as_ref()));
        self.expect_source(deploy)?;
        let there = self.kube.daemons.get(&osd);
        if there.is_some_and(|daemon| daemon.stopped_by.is_none() && daemon.fsid == Some(deploy.fsid)) {
            return Ok(Vec::new());
        }
        let found = there.map(|daemon| (daemon.uid.as_str(), daemon.generation));
        let expected = replaces.map(|(uid, generation)| (uid.as_str(), *generation));
        if !crate::domain::expect::to_start(self.ceph.slots.get(&osd), deploy.fsid) {
            return Err("its slot holds another OSD, or is up".to_owned());
        }
        if !crate::domain::expect::in_place_of(found, expected) {
            return Err("the Deployment is not the observed one".to_owned());
        }
        self.expect_pvcs(deploy)?;
        self.take_pvcs(deploy);
        self.write_deployment(osd, Some(deploy.fsid), &deploy.node, true);
        Ok(vec![Effect::Deployed(osd, deploy.fsid)])
    }

    /// Changes the pod template: the old pod ends, the new one starts (strategy Recreate).
    pub(super) fn tolerate(
        &mut self,
        osd: OsdId,
        version: (&str, i64),
        add: &[Toleration],
        was_up: bool,
    ) -> Done {
        use crate::domain::expect;
        let is_up = self.ceph.slots.get(&osd).is_some_and(|slot| slot.up);
        if !expect::to_tolerate(is_up, was_up) {
            return Err("it came up since it was observed".to_owned());
        }
        if is_up {
            let verdict = self.ok_to_stop(&BTreeSet::from([osd]));
            if expect::to_stop_by_ceph(osd, &verdict, &self.ceph).is_err() {
                return Err("ok-to-stop refuses".to_owned());
            }
            expect::precondition(&DataPrecondition::AllClean, &self.ceph)
                .map_err(|reason| reason.to_string())?;
        }
        let Some(daemon) = self.kube.daemons.get_mut(&osd) else {
            return Err("it has no Deployment".to_owned());
        };
        if !expect::same_deployment(&daemon.uid, version.0)
            || !expect::unchanged_deployment(daemon.generation, version.1)
        {
            return Err("the Deployment changed since it was observed".to_owned());
        }
        daemon.tolerations.extend(add.iter().cloned());
        // With 0 replicas no new pod is expected.
        daemon.rolled_out = daemon.replicas == 0;
        daemon.pods.clear();
        self.touch(osd);
        Ok(vec![Effect::Restarted(osd)])
    }

    /// Returns whether the scheduler would place the daemon's pod on its node.
    pub(super) fn tolerates(&self, daemon: &Daemon) -> bool {
        let node_object = daemon.node.as_ref().and_then(|node| self.kube.nodes.get(node));
        node_object.is_none_or(|node_object| {
            provision::missing_tolerations(&daemon.tolerations, node_object).is_empty()
        })
    }

    /// Adds an OSD without a CRUSH item to CRUSH at its first boot, where its daemon says
    /// (`--crush-location`, `osd_crush_update_on_start`).
    ///
    /// CRUSH then places data on the OSD: PGs that miss a replica that its host may have, and a part of the
    /// PGs already on its host.
    pub(super) fn place_new(&mut self, osd: OsdId, node: &NodeName) {
        let Some(slot) = self.ceph.slots.get_mut(&osd).filter(|slot| slot.crush.is_none()) else { return };
        let location = [("root", "default"), ("host", node.0.as_str())];
        slot.crush = Some(CrushItem {
            location: location.map(|(kind, name)| (kind.to_owned(), name.to_owned())).into(),
            weight: Weight::ONE,
            device_class: Some("hdd".to_owned()),
        });
        self.give_data(osd, &node.0);
    }

    fn give_data(&mut self, osd: OsdId, host: &str) {
        let host_of = |osd: &OsdId| self.ceph.slots.get(osd)?.crush.as_ref()?.host().map(String::as_str);
        let here: BTreeSet<OsdId> =
            self.ceph.slots.keys().filter(|osd| host_of(osd) == Some(host)).copied().collect();
        let epoch = self.ceph.epoch;
        for (n, placement) in self.placements.values_mut().enumerate() {
            let size = self.ceph.pools.get(&placement.pool).map_or(0, |pool| pool.size as usize);
            let there = placement.home.iter().position(|home| here.contains(home));
            match there {
                Some(at) if n % here.len() == 0 && placement.home.get(at) != Some(&osd) => {
                    if let Some(home) = placement.home.get_mut(at) {
                        *home = osd;
                    }
                }
                None if placement.home.len() < size => placement.home.push(osd),
                Some(_) | None => continue,
            }
            (placement.peered, placement.changed) = (false, epoch);
        }
    }

    /// Returns whether the mons would let the OSD be adopted: for checks of promises.
    pub fn is_adopted_rightly(&self, osd: OsdId) -> bool {
        let slot = self.ceph.slots.get(&osd);
        let starts = self.kube.daemons.get(&osd).and_then(|daemon| daemon.fsid);
        slot.is_some_and(|slot| slot.state != SlotState::Destroyed && slot.fsid == starts)
    }

    /// Returns the OSD that ceph-volume would list.
    fn osd_seen(&self, disk: &Disk) -> Option<OsdSeen> {
        let Content::Bluestore {
            osd_fsid,
            whoami: Some(osd),
            cluster: Some(cluster),
            finished: true,
            activatable,
        } = disk.content
        else {
            return None;
        };
        let db_disk = self.databases.get(&osd_fsid).cloned();
        Some(OsdSeen {
            fsid: osd_fsid,
            osd,
            cluster,
            mode: if db_disk.is_some() { Mode::Lvm } else { Mode::Raw },
            store: ObjectStore::bluestore(),
            encrypted: false,
            block_path: disk.identity.stable_path()?,
            activatable,
            db_path: None,
            wal_path: None,
            db_disk,
        })
    }
}
