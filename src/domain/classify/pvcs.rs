//! PersistentVolumeClaims that an OSD gets when it is recreated.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use super::pvc_refusal::PvcRefusal;
use crate::domain::device_set::{DeviceSet, METADATA, WAL};
use crate::domain::observation::{Observation, OnPvcs};
use crate::domain::osd::OsdId;
use crate::domain::osd::pvc::PerPvc;

/// PVCs of the device sets and of the OSDs, by what is asked about them.
///
/// All OSDs of a set may ask. The answers are computed once, when the first one does.
pub struct PvcIndex<'a> {
    pub(super) seen: &'a Observation,
    by_place: OnceCell<BTreeMap<[&'a str; 3], Vec<&'a str>>>,
    by_user: OnceCell<BTreeMap<&'a str, Vec<OsdId>>>,
}

impl<'a> PvcIndex<'a> {
    /// Returns the index of an observation.
    pub fn of(seen: &'a Observation) -> Self {
        Self { seen, by_place: OnceCell::new(), by_user: OnceCell::new() }
    }

    /// Returns the PVCs of a template of a set that have an index, by name.
    pub fn at<'b>(&'b self, set: &'b str, index: &'b str, template: &'b str) -> &'b [&'a str] {
        let by_place = self.by_place.get_or_init(|| {
            let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
            for (name, pvc) in &self.seen.kube.pvcs {
                if let (Some(set), Some(index), Some(template)) = (&pvc.set, &pvc.index, &pvc.template) {
                    found.entry([set.as_str(), index, template]).or_default().push(name.as_str());
                }
            }
            found
        });
        by_place.get(&[set, index, template]).map_or(&[], Vec::as_slice)
    }

    /// Returns an OSD other than this one whose Deployment names the PVC.
    fn other_user(&self, osd: OsdId, pvc: &str) -> Option<OsdId> {
        let by_user = self.by_user.get_or_init(|| {
            let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
            for (osd, daemon) in &self.seen.kube.daemons {
                for name in daemon.on_pvcs.iter().flat_map(OnPvcs::names) {
                    found.entry(name).or_default().push(*osd);
                }
            }
            found
        });
        by_user.get(pvc)?.iter().copied().find(|user| *user != osd)
    }
}

/// An OSD on PVCs, with its declared device set.
pub(super) struct OfSet<'a, 'seen> {
    pub(super) osd: OsdId,
    pub(super) on: &'a OnPvcs,
    pub(super) set: &'a DeviceSet,
    pub(super) index: &'a PvcIndex<'seen>,
}

impl OfSet<'_, '_> {
    /// Returns the PVCs that the OSD gets, by the PVC of its data, or why one of them can't be used.
    ///
    /// The OSD keeps the PVCs that its Deployment names, also if its set no longer has their templates (ADR
    /// 0022).
    pub(super) fn pvcs(&self, data: &str) -> Result<PerPvc<String>, PvcRefusal> {
        expect_usable(data, self.index.seen)?;
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
            Some(name) => expect_usable(name, self.index.seen).map(|()| Some(name.to_owned())),
            None if self.set.has_template(template) => self.of_template(data, template).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the PVC of a template that has the index of the data.
    fn of_template(&self, data: &str, template: &str) -> Result<String, PvcRefusal> {
        let (pvcs, set) = (&self.index.seen.kube.pvcs, &self.set.name);
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
        let found = index.map(|index| self.index.at(set, index, template)).unwrap_or_default();
        let [name] = found else {
            let several = || format!("there are several ({})", found.join(", "));
            return Err(refused(&if found.is_empty() { "there is none".to_owned() } else { several() }));
        };
        expect_usable(name, self.index.seen).map_err(|why| match why {
            PvcRefusal::PvcNotBound { pvc, phase } => refused(&format!("PVC {pvc} is {phase}")),
            why @ (PvcRefusal::NoSet { .. }
            | PvcRefusal::SetUnclear { .. }
            | PvcRefusal::PvcNoBlock { .. }
            | PvcRefusal::PvcOnePod { .. }
            | PvcRefusal::LvmOnPvc { .. }
            | PvcRefusal::NoDatabasePvc { .. }
            | PvcRefusal::KeyInKms { .. }
            | PvcRefusal::OldRotation { .. }
            | PvcRefusal::PvcNameTooLong { .. }) => why,
        })?;
        if let Some(osd) = self.index.other_user(self.osd, name) {
            return Err(refused(&format!("PVC {name} belongs to {osd}")));
        }
        if let Some(nodes) = self.elsewhere(name) {
            return Err(refused(&format!("PVC {name} is on another node ({nodes})")));
        }
        Ok((*name).to_owned())
    }

    /// Returns the nodes of a PVC, if its PersistentVolume can't be used on the OSD's node.
    fn elsewhere(&self, pvc: &str) -> Option<String> {
        let kube = &self.index.seen.kube;
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
