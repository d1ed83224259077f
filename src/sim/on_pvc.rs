//! What agents, kubelets and people do with the PersistentVolumeClaims of OSDs, and with their encryption.

use crate::domain::guard::{Guard, is_out, passes};
use crate::domain::inspection::{Content, NodeProblem, NodeRequest};
use crate::domain::observation::{BoundVolume, Daemon, OnPvcs};
use crate::domain::osd::pvc::PerPvc;
use crate::domain::osd::{Kind, Mode, OsdFsid, OsdId};
use crate::sim::kube::after;
use crate::sim::pvcs::{PvcChange, SET};
use crate::sim::world::{Disk, World};

impl World {
    /// Returns whether a disk is the one that the agent of a request gets.
    pub(super) fn is_given(&self, request: &NodeRequest, disk: &str) -> bool {
        request.data_pvc().is_none_or(|pvc| self.pvcs.disks.get(pvc).is_some_and(|behind| behind == disk))
    }

    /// Returns whether a Deployment opens the store of an OSD: on the disks behind its PVCs, encrypted as the
    /// Deployment says, with the key of the Secret.
    ///
    /// BlueStore starts only if data and database belong to the same OSD.
    pub(super) fn opens(&self, osd: OsdId, fsid: OsdFsid, disk: &str, daemon: &Daemon) -> bool {
        let Some(pvcs) = self.pvcs.of.get(&osd) else { return true };
        let key = self.pvcs.stores.get(&fsid);
        let of_deployment = daemon.on_pvcs.as_ref().and_then(|on| on.db.as_ref());
        self.pvcs.disks.get(&pvcs.data).is_some_and(|behind| behind == disk)
            && daemon.mode == Some(self.mode_of(fsid))
            && of_deployment.and_then(|pvc| self.pvcs.disks.get(pvc)) == self.databases.get(&fsid)
            && daemon.opens_encryption == key.is_some()
            && key.is_none_or(|key| self.pvcs.keys.get(&pvcs.data) == Some(key))
    }

    /// Returns the mode of ceph-volume in which the store of an OSD was created.
    fn mode_of(&self, fsid: OsdFsid) -> Mode {
        let is_on_lvm = |disk: &Disk| matches!(disk.content, Content::Osd { format: Kind::Lvm, .. });
        if self.disk_of(fsid).is_some_and(|(_, disk)| is_on_lvm(disk)) { Mode::Lvm } else { Mode::Raw }
    }

    /// Opens what device-mapper has on the disks of an OSD that boots: its encryption, or its volume.
    ///
    /// It stays open when the OSD stops.
    pub(super) fn opened(&mut self, fsid: OsdFsid) {
        if (self.pvcs.stores.contains_key(&fsid) || self.mode_of(fsid) == Mode::Lvm)
            && let Some((disk, _)) = self.disk_of(fsid)
        {
            let disk = disk.clone();
            self.pvcs.open.extend(self.databases.get(&fsid).cloned());
            self.pvcs.open.insert(disk);
        }
    }

    /// Gives the written Deployment of an OSD on a PVC the shape of the store that it starts.
    pub(super) fn shape_on_pvc(&self, osd: OsdId, daemon: &mut Daemon) {
        let Some(pvcs) = self.pvcs.of.get(&osd).cloned() else { return };
        let in_slot = self.ceph.slots.get(&osd).and_then(|slot| slot.fsid);
        daemon.fsid = daemon.fsid.or(in_slot);
        let is_encrypted = daemon.fsid.is_some_and(|fsid| self.pvcs.stores.contains_key(&fsid));
        let PerPvc { data, db, wal } = pvcs;
        let set = Some(SET.to_owned());
        daemon.on_pvcs = Some(OnPvcs { data: Some(data), db, wal, set, ..OnPvcs::default() });
        let mode = daemon.fsid.map_or(Mode::Raw, |fsid| self.mode_of(fsid));
        (daemon.activates, daemon.mode) = (true, Some(mode));
        (daemon.mounts_device, daemon.data_dir) = (false, None);
        (daemon.opens_encryption, daemon.encrypted_to_rook) = (is_encrypted, is_encrypted);
        if self.is_portable(osd) {
            daemon.node = daemon.pods.first().and_then(|pod| pod.node.clone());
        }
    }

    /// Creates the Secret with the key for the request's PVC. An existing one stays.
    pub(super) fn create_osd_key(&mut self, request: &NodeRequest) {
        let Some(pvc) = request.pvc_for_new_key().filter(|_| !is_out(Guard::KeyFirst)) else { return };
        let next = self.pvcs.keys.values().chain(self.pvcs.stores.values()).max().map_or(1, |key| key + 1);
        if !self.pvcs.keys.contains_key(pvc) || is_out(Guard::KeyStays) {
            self.pvcs.keys.insert(pvc.to_owned(), next);
        }
    }

    /// Returns the problem that the key of an encrypted OSD does not open its store.
    pub(super) fn key_trouble(&self, request: &NodeRequest) -> Option<NodeProblem> {
        let is_first = request.is_encrypted && request.evidence.is_none();
        let pvc = request.pvc_with_key().filter(|_| is_first)?;
        let opens = self.pvcs.keys.get(pvc) == self.pvcs.stores.get(&request.old);
        let problem = || NodeProblem::Refused("the key does not open the OSD".to_owned());
        (!passes(Guard::KeyOfOld, opens)).then(problem)
    }

    /// Closes what device-mapper has on the disk of a request, before the agent opens the disk exclusively.
    pub(super) fn close_mappings(&mut self, request: &NodeRequest, disk: &str) -> Result<(), NodeProblem> {
        if request.pvcs.is_some() && !is_out(Guard::MappingsClosed) {
            self.pvcs.open.remove(disk);
        }
        let is_open = self.pvcs.open.contains(disk);
        if is_open { Err(NodeProblem::Failed("the disk is in use".to_owned())) } else { Ok(()) }
    }

    /// Formats the disks with the key of the PVC of the data and opens them, if the request wants that.
    pub(super) fn format(
        &mut self,
        request: &NodeRequest,
        disk: &str,
        fsid: OsdFsid,
    ) -> Result<(), NodeProblem> {
        let Some(pvc) = request.pvc_with_key() else { return Ok(()) };
        let Some(key) = self.pvcs.keys.get(pvc).copied() else {
            return Err(NodeProblem::Refused("there is no key".to_owned()));
        };
        let part = self.part_of(request).map(|(_, disk)| disk);
        self.pvcs.stores.insert(fsid, key);
        self.pvcs.open.insert(disk.to_owned());
        self.pvcs.open.extend(part);
        Ok(())
    }

    /// Returns whether a PVC can be deleted now: no pod uses it.
    pub fn is_unused(&self, pvc: &str) -> bool {
        let has = |pvcs: &PerPvc<String>| pvcs.iter().any(|(_, of)| of == pvc);
        let is_agent = self.agents.values().any(|agent| agent.request.pvcs.as_ref().is_some_and(has));
        let osd = self.pvcs.of.iter().find(|(_, of)| has(of)).map(|(osd, _)| osd);
        let has_pod =
            osd.and_then(|osd| self.kube.daemons.get(osd)).is_some_and(|daemon| !daemon.pods.is_empty());
        !is_agent && !has_pod
    }

    pub(super) fn change_pvc(&mut self, what: &PvcChange) {
        match what {
            PvcChange::Recreated(pvc, disk) => self.recreate_pvc(pvc, disk),
            PvcChange::SetEdited(encrypted) => {
                for set in &mut self.kube.declaration.storage.sets {
                    set.encrypted = *encrypted;
                }
            }
            PvcChange::RotationStarts(osd) => drop(self.kube.rotating.insert(*osd)),
            PvcChange::RotationEnds(osd) => drop(self.kube.rotating.remove(osd)),
            PvcChange::PodMoves(osd, node) => self.move_pod(*osd, node),
            PvcChange::KeyDeleted(pvc) => drop(self.pvcs.keys.remove(pvc)),
        }
    }

    /// Recreates a PVC under its name, on another disk.
    fn recreate_pvc(&mut self, pvc: &str, disk: &str) {
        if let Some(found) = self.kube.pvcs.get_mut(pvc) {
            found.uid = after(&found.uid);
            found.volume = Some(BoundVolume {
                name: "pv-other".to_owned(),
                uid: Some("uid-pv-other".to_owned()),
                nodes: None,
            });
        }
        self.pvcs.disks.insert(pvc.to_owned(), disk.to_owned());
    }
}
