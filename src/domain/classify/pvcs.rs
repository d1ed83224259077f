//! PersistentVolumeClaims that an OSD gets when it is recreated.

use super::pvc_refusal::PvcRefusal;
use crate::domain::device_set::{DeviceSet, METADATA, WAL};
use crate::domain::observation::{Daemon, Observation, OnPvcs, Pvc};
use crate::domain::osd::OsdId;
use crate::domain::osd::pvc::PerPvc;

/// An OSD on PVCs, with its declared device set.
pub(super) struct OfSet<'a> {
    pub(super) osd: OsdId,
    pub(super) on: &'a OnPvcs,
    pub(super) set: &'a DeviceSet,
    pub(super) seen: &'a Observation,
}

impl OfSet<'_> {
    /// Returns the PVCs that the OSD gets, by the PVC of its data, or why one of them can't be used.
    ///
    /// The OSD keeps the PVCs that its Deployment names, also if its set no longer has their templates (ADR
    /// 0022).
    pub(super) fn pvcs(&self, data: &str) -> Result<PerPvc<String>, PvcRefusal> {
        expect_usable(data, self.seen)?;
        Ok(PerPvc {
            data: data.to_owned(),
            db: self.part(data, self.on.db.as_deref(), METADATA)?,
            wal: self.part(data, self.on.wal.as_deref(), WAL)?,
        })
    }

    fn part(
        &self,
        data: &str,
        named: Option<&str>,
        template: &'static str,
    ) -> Result<Option<String>, PvcRefusal> {
        match named {
            Some(name) => expect_usable(name, self.seen).map(|()| Some(name.to_owned())),
            None if self.set.has_template(template) => self.of_template(data, template).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the PVC of a template that has the index of the data.
    fn of_template(&self, data: &str, template: &str) -> Result<String, PvcRefusal> {
        let (pvcs, set) = (&self.seen.kube.pvcs, &self.set.name);
        let index = pvcs.get(data).and_then(|pvc| pvc.index.as_ref());
        let refused = |why: &str| PvcRefusal::NoDatabasePvc {
            set: set.clone(),
            index: index.cloned(),
            template: template.to_owned(),
            why: why.to_owned(),
        };
        // By such an id, Rook finds the PVC of the data for each template (`createDeviceSetPVC`, v1.20.6).
        if pvcs.get(data).is_some_and(|pvc| pvc.template.is_none()) {
            let id = format!("{}-{}", set.replace('.', "-"), self.set.data_template());
            return Err(refused(&format!(
                "the label ceph.rook.io/DeviceSetPVCId of PVC {data} names no template (Rook 1.3 and older). Set it: \
                 kubectl -n NAMESPACE label pvc {data} --overwrite ceph.rook.io/DeviceSetPVCId={id}-{}",
                index.map_or("INDEX", String::as_str)
            )));
        }
        let is_it = |pvc: &Pvc| {
            pvc.set.as_ref() == Some(set)
                && pvc.index.as_ref() == index
                && pvc.template.as_deref() == Some(template)
        };
        let found: Vec<&String> =
            pvcs.iter().filter(|(_, pvc)| index.is_some() && is_it(pvc)).map(|(name, _)| name).collect();
        let [name] = found.as_slice() else {
            let names: Vec<&str> = found.iter().map(|name| name.as_str()).collect();
            let several = || format!("there are several ({})", names.join(", "));
            return Err(refused(&if names.is_empty() { "there is none".to_owned() } else { several() }));
        };
        expect_usable(name, self.seen).map_err(|why| match why {
            PvcRefusal::PvcNotBound { pvc, phase } => refused(&format!("PVC {pvc} is {phase}")),
            why @ (PvcRefusal::NoSet { .. }
            | PvcRefusal::SetUnclear { .. }
            | PvcRefusal::PvcNoBlock { .. }
            | PvcRefusal::PvcOnePod { .. }
            | PvcRefusal::LvmOnPvc { .. }
            | PvcRefusal::NoDatabasePvc { .. }
            | PvcRefusal::KeyInKms { .. }
            | PvcRefusal::OldRotation { .. }) => why,
        })?;
        if let Some(osd) = self.other_user(name) {
            return Err(refused(&format!("PVC {name} belongs to {osd}")));
        }
        if let Some(nodes) = self.elsewhere(name) {
            return Err(refused(&format!("PVC {name} is on another node ({nodes})")));
        }
        Ok((*name).clone())
    }

    /// Returns another OSD whose Deployment names the PVC.
    fn other_user(&self, pvc: &str) -> Option<OsdId> {
        let names = |on: &OnPvcs| on.names().any(|name| name == pvc);
        let uses = |daemon: &Daemon| daemon.on_pvcs.as_ref().is_some_and(names);
        let mut others = self.seen.kube.daemons.iter().filter(|(osd, _)| **osd != self.osd);
        others.find(|(_, daemon)| uses(daemon)).map(|(osd, _)| *osd)
    }

    /// Returns the nodes of a PVC, if its PersistentVolume can't be used on the OSD's node.
    fn elsewhere(&self, pvc: &str) -> Option<String> {
        let kube = &self.seen.kube;
        let nodes = kube.pvcs.get(pvc)?.volume.as_ref()?.nodes.as_ref()?;
        let node = kube.daemons.get(&self.osd)?.node.as_ref()?;
        let hostname = kube.nodes.get(node).map_or("", |node| node.hostname.as_str());
        let is_here = nodes.contains(&node.0) || nodes.contains(hostname);
        (!is_here).then(|| nodes.iter().map(String::as_str).collect::<Vec<_>>().join(", "))
    }
}

/// Returns why a pod of the node can't use a PVC as a device.
pub fn unusable(name: &str, seen: &Observation) -> Option<PvcRefusal> {
    expect_usable(name, seen).err()
}

/// Returns why another pod of the node can't use a PVC of an OSD as a device.
fn expect_usable(name: &str, seen: &Observation) -> Result<(), PvcRefusal> {
    let pvc = name.to_owned();
    let phase = match seen.kube.pvcs.get(name) {
        None => "missing",
        Some(found) if found.is_deleted => "being deleted",
        Some(found) if found.phase != "Bound" => found.phase.as_str(),
        Some(found) if found.volume.as_ref().and_then(|volume| volume.uid.as_ref()).is_none() => {
            "bound to a PersistentVolume that does not exist"
        }
        Some(found) if !found.is_block => return Err(PvcRefusal::PvcNoBlock { pvc }),
        Some(found) if found.is_for_one_pod => return Err(PvcRefusal::PvcOnePod { pvc }),
        Some(_) => return Ok(()),
    };
    Err(PvcRefusal::PvcNotBound { pvc, phase: phase.to_owned() })
}
