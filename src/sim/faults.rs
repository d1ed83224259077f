//! Faults and recoveries of daemons, nodes, and disks that are overwritten externally.

use crate::domain::inspection::{Content, Proof};
use crate::domain::observation::Slot;
use crate::domain::osd::{Kind, NodeName, OsdFsid, OsdId};
use crate::sim::happening::Happening;
use crate::sim::world::{World, fsid_on};

/// Fsid and cluster of a foreign OSD.
const FOREIGN: u128 = 0xf0_4e16_0000_4000_8000_0000_0000_0001;

pub(super) fn foreign_fsid(n: u128) -> Option<OsdFsid> {
    OsdFsid::new(uuid::Uuid::from_u128(FOREIGN + n))
}

impl World {
    #[expect(clippy::wildcard_enum_match_arm, reason = "`happen` names what comes here")]
    pub(super) fn break_or_repair(&mut self, what: &Happening) {
        match what {
            Happening::Dies(osd) => {
                self.broken.insert(*osd);
                self.osd_down(*osd);
            }
            Happening::Recovers(osd) => {
                self.broken.remove(osd);
            }
            Happening::PowerLost(node) => self.power(node, false),
            Happening::PowerBack(node) => self.power(node, true),
            Happening::DiskMoved(one, Some(other)) => self.change_places(one, other),
            Happening::DiskMoved(name, None) => {
                self.unplug(name);
                self.disks.remove(name);
            }
            Happening::DiskSwapped(name) => {
                self.put_foreign(name);
                if let Some(disk) = self.disks.get_mut(name) {
                    disk.identity.by_id = [format!("ata-foreign-{name}")].into();
                    disk.identity.serial = Some(format!("foreign-{name}"));
                    disk.held_by = None;
                }
            }
            Happening::DiskOverwritten(name) => self.put_foreign(name),
            Happening::DirectoryReplaced(name) => self.replace_directory(name),
            Happening::DiskFormatted(name) => {
                self.put_foreign(name);
                if let Some(disk) = self.disks.get_mut(name) {
                    (disk.content, disk.proof) =
                        (Content::Other { what: "a signature of ext4".to_owned() }, None);
                }
            }
            _ => {}
        }
    }

    fn power(&mut self, node: &NodeName, on: bool) {
        if let Some(found) = self.kube.nodes.get_mut(node) {
            found.ready = on;
        }
        if on {
            return;
        }
        let disks = &self.disks;
        self.pvcs.open.retain(|disk| disks.get(disk).is_some_and(|disk| disk.node != *node));
        self.daemons_end_on(node);
        let jobs = self.agents.iter().filter(|(_, agent)| agent.request.node == *node);
        for job in jobs.map(|(job, _)| job.clone()).collect::<Vec<_>>() {
            self.agent_dies(&job);
        }
        for job in self.inventory_jobs_at_work(node) {
            self.inventory_job_dies(&job);
        }
    }

    pub(super) fn daemons_end_on(&mut self, node: &NodeName) {
        let here = |daemon: &crate::domain::observation::Daemon| daemon.node.as_ref() == Some(node);
        let osds: Vec<OsdId> =
            self.kube.daemons.iter().filter(|(_, daemon)| here(daemon)).map(|(osd, _)| *osd).collect();
        for osd in osds {
            self.osd_down(osd);
        }
    }

    /// Removes a disk: the process that has it open loses it.
    fn unplug(&mut self, name: &str) {
        let Some(disk) = self.disks.get_mut(name) else { return };
        disk.held_by = None;
        let fsid = fsid_on(&disk.content);
        let runs = |slot: &Slot| slot.up && fsid.is_some() && slot.fsid == fsid;
        let osd = self.ceph.slots.iter().find(|(_, slot)| runs(slot)).map(|(osd, _)| *osd);
        if let Some(osd) = osd {
            self.osd_down(osd);
        }
    }

    fn change_places(&mut self, one: &str, other: &str) {
        let place = |disk: &str| self.disks.get(disk).map(|disk| disk.identity.by_path.clone());
        let (Some(first), Some(second)) = (place(one), place(other)) else { return };
        for (name, place) in [(one, second), (other, first)] {
            self.unplug(name);
            if let Some(disk) = self.disks.get_mut(name) {
                disk.identity.by_path = place;
            }
        }
    }

    pub(super) fn put_foreign(&mut self, name: &str) {
        let Some(disk) = self.disks.get_mut(name) else { return };
        let part = self.databases.iter().find(|(_, on)| *on == name).map(|(fsid, _)| *fsid);
        let lost = fsid_on(&disk.content).or(part);
        let (Some(osd_fsid), Some(cluster)) =
            (foreign_fsid(1), crate::domain::osd::ClusterFsid::new(uuid::Uuid::from_u128(FOREIGN)))
        else {
            return;
        };
        let whoami = OsdId(0);
        disk.content = Content::Bluestore {
            osd_fsid,
            whoami: Some(whoami),
            cluster: Some(cluster),
            finished: true,
            activatable: true,
        };
        disk.proof = Some(Proof::BluestoreLabel { osd_fsid, whoami, cluster, activatable: true });
        let Some(fsid) = lost else { return };
        let served = self.ceph.slots.iter().find(|(_, slot)| slot.up && slot.fsid == Some(fsid));
        if let Some(osd) = served.map(|(osd, _)| *osd) {
            self.osd_down(osd); // its daemon ends with input/output errors
        }
        self.databases.retain(|_, on| on != name);
        self.forget_store(fsid);
    }

    /// Replaces the directory at the same path by that of another cluster's OSD.
    fn replace_directory(&mut self, name: &str) {
        let path = self.disks.get(name).and_then(crate::sim::world::Disk::directory).map(str::to_owned);
        self.put_foreign(name);
        let Some((path, disk)) = path.zip(self.disks.get_mut(name)) else { return };
        if let Some((osd_fsid, whoami, cluster)) = disk.proof.as_ref().and_then(Proof::names) {
            let format = Kind::FilestoreDirectory;
            disk.content = Content::Osd { format, osd_fsid, whoami, cluster };
            disk.proof = Some(Proof::Directory { format, path, osd_fsid, whoami, cluster });
        }
    }
}
