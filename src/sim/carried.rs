//! Agent's view of disks and directories: its inventory, its inspection, and the verdict of the real
//! `domain::proof`.

use std::collections::BTreeSet;

use crate::domain::inspection::{Content, Evidence, Inspection, KernelDisk, NodeRequest, Volume};
use crate::domain::observation::SlotState;
use crate::domain::osd::{DeviceIdentity, Mode, OsdFsid};
use crate::domain::proof::finding::DiskFinding;
use crate::domain::proof::same_disk::{candidates, same_content_for, same_for};
use crate::domain::proof::verdict::{Verdict, unless_unreadable, verdict};
use crate::sim::agent::able;
use crate::sim::world::{Disk, World, fsid_on};

/// Returns a disk as its kernel shows it.
pub fn kernel_disk(name: &str, disk: &Disk) -> KernelDisk {
    KernelDisk {
        node: format!("/dev/{name}"),
        device_type: "hdd".to_owned(),
        links: disk.identity.by_id.iter().map(|id| format!("/dev/disk/by-id/{id}")).collect(),
    }
}

impl World {
    pub(super) fn inspect(&self, request: &NodeRequest) -> Inspection {
        if request.looks_for_blank() {
            return self.inspect_new(request);
        }
        let is_removed = request.after.is_some();
        let found = match (&request.evidence, &request.directory) {
            (_, Some(_)) if is_removed => self.directory_of(request),
            (None, None) => {
                self.disks.iter().filter(|(name, _)| self.is_given(request, name)).find(|(_, disk)| {
                    disk.node == request.node && fsid_on(&disk.content) == Some(request.old)
                })
            }
            (Some(_), _) | (_, Some(_)) => self.recorded_disk(request),
        };
        let mut content = found.map_or_else(
            || Content::NotFound { inspected: "all disks".to_owned() },
            |(_, disk)| disk.content.clone(),
        );
        let carrier = if request.directory.is_some() { self.directory_of(request) } else { found };
        let carrier = carrier.filter(|(_, disk)| fsid_on(&disk.content) == Some(request.old));
        let evidence = found.zip(carrier).and_then(|((_, disk), (_, carrier))| {
            let is_directory = is_removed && request.directory.is_some();
            let device = if is_directory { DeviceIdentity::none() } else { disk.identity.clone() };
            let usable_bytes = device.size_bytes;
            Some(Evidence { device, proof: carrier.proof.clone()?, usable_bytes, auxiliary: Vec::new() })
        });
        // A refused inspection proves nothing.
        let evidence = evidence.filter(|_| self.key_trouble(request).is_none());
        let evidence = evidence.and_then(|evidence| match self.with_part(request, evidence) {
            Ok(evidence) => Some(evidence),
            Err(other) => {
                content = other;
                None
            }
        });
        let on_volume = request.target.mode == Mode::Lvm && matches!(content, Content::Bluestore { .. });
        let volume = on_volume.then(|| Volume {
            block_path: format!("/dev/ceph/{}", request.osd),
            db_path: None,
            wal_path: None,
        });
        // The kernel's view of the disk matters only for what the CephCluster selects.
        let of_removed = found.filter(|_| is_removed && request.directory.is_none());
        let kernel = of_removed.map(|(name, disk)| kernel_disk(name, disk));
        Inspection { content, evidence, capability: able(), volume, kernel }
    }

    pub(super) fn recorded_disk(&self, request: &NodeRequest) -> Option<(&String, &Disk)> {
        let device = match (&request.directory, &request.evidence) {
            (Some(directory), _) => directory.onto.as_ref()?,
            (None, Some(evidence)) => &evidence.device,
            (None, None) => return None,
        };
        let here = self
            .disks
            .iter()
            .filter(|(name, disk)| disk.node == request.node && self.is_given(request, name));
        let mut fitting: Vec<_> =
            here.filter(|(_, disk)| same_for(request, device, &disk.identity).is_ok()).collect();
        let is_only = fitting.len() == 1;
        fitting.retain(|(_, disk)| same_content_for(request, device, &disk.identity, &disk.content).is_ok());
        let is_ours = |found: &(&String, &Disk)| !matches!(self.judge(request, found.1), Verdict::Refuse(_));
        match candidates(fitting, is_only, |(_, disk)| &disk.content, is_ours).as_slice() {
            [one] => Some(*one),
            _ => None,
        }
    }

    /// Returns the disk that contains the request's directory.
    pub(super) fn directory_of(&self, request: &NodeRequest) -> Option<(&String, &Disk)> {
        let path = request.directory.as_ref()?.path.as_str();
        self.disks.iter().find(|(_, disk)| disk.node == request.node && disk.directory() == Some(path))
    }

    pub(super) fn issued_written(&self, request: &NodeRequest) -> BTreeSet<OsdFsid> {
        self.issued.get(&(request.osd, request.record.clone())).cloned().unwrap_or_default()
    }

    pub(super) fn judge(&self, request: &NodeRequest, disk: &Disk) -> Verdict {
        let Some(evidence) = &request.evidence else {
            return Verdict::Refuse("no proof".to_owned());
        };
        let about = match &disk.content {
            Content::Tombstone { old, .. } => Some(*old),
            content @ (Content::Bluestore { .. }
            | Content::Osd { .. }
            | Content::Blank
            | Content::Other { .. }
            | Content::NotFound { .. }) => fsid_on(content),
        };
        let finding =
            DiskFinding { proof: disk.proof.clone(), ..DiskFinding::plain(disk.content.clone(), about) };
        let verdict = verdict(request, evidence, &self.issued_written(request), &finding);
        let is_destroyed =
            self.ceph.slots.get(&request.osd).is_some_and(|slot| slot.state == SlotState::Destroyed);
        unless_unreadable(verdict, request, is_destroyed.then_some("destroyed"))
    }

    /// Returns whether a daemon has the disk open: an OSD of 16.2 opens it exclusively for the whole kernel,
    /// a Filestore OSD by its mount.
    pub fn is_run(&self, disk: &Disk) -> bool {
        let fsid = fsid_on(&disk.content);
        fsid.is_some() && self.ceph.slots.values().any(|slot| slot.up && slot.fsid == fsid)
    }
}
