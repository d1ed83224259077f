//! Places without an OSD of one device set.

use std::collections::{BTreeMap, BTreeSet};

use super::{AvailablePvcs, Found, LetRook, Obstacle, Place, Wanted, source};
use crate::domain::classify::{PvcIndex, PvcRefusal, unusable};
use crate::domain::device_set::{DeviceSet, METADATA, WAL};
use crate::domain::gate::{self, Gate};
use crate::domain::guard::{Guard, passes};
use crate::domain::ledger::RecordedPvc;
use crate::domain::observation::{BoundVolume, Pvc};
use crate::domain::osd::pvc::PerPvc;
use crate::domain::osd::{Layout, Mode, NodeName, ObjectStore, OsdId};
use crate::domain::view::View;

/// A device set that the CephCluster declares once and clearly.
pub(super) struct OfSet<'a> {
    pub(super) set: &'a DeviceSet,
    /// PVCs that Deployments of OSDs name.
    pub(super) used: &'a BTreeSet<&'a str>,
    pub(super) index: PvcIndex<'a>,
    pub(super) view: View<'a>,
}

/// An index of a set, with its PVCs for the data.
struct Index<'a> {
    index: u32,
    pvcs: Vec<&'a str>,
}

impl<'a> OfSet<'a> {
    /// Returns the places without an OSD, by index.
    pub(super) fn places(&self) -> Vec<Place> {
        let count = self.set.count.unwrap_or_default();
        let indices = self.indices();
        let (taken, open): (Vec<_>, Vec<_>) = indices.into_iter().partition(|index| self.is_taken(index));
        let in_progress = open.iter().filter(|index| self.recorded(index).is_some()).count();
        let mut room = (count as usize).saturating_sub(taken.len() + in_progress);
        let last = taken.iter().chain(&open).map(|index| index.index).max();
        let missing = (count as usize).saturating_sub(taken.len() + open.len());
        let obstacle = if open.is_empty() { None } else { self.set_obstacle().err() };
        let mut places: Vec<Place> = open
            .iter()
            .map(|index| {
                let found = self.found(index, obstacle.as_ref(), &mut room);
                Place { set: self.set.name.clone(), indices: vec![index.index], found }
            })
            .collect();
        let first = last.map_or(0, |last| last.saturating_add(1));
        for n in 0..u32::try_from(missing).unwrap_or(u32::MAX) {
            let found = Found::Obstructed(Obstacle::NoPvc(LetRook::of(self.view)));
            let indices = vec![first.saturating_add(n)];
            places.push(Place { set: self.set.name.clone(), indices, found });
        }
        places
    }

    /// Returns the indices that PVCs of the set have.
    fn indices(&self) -> Vec<Index<'a>> {
        let mut found: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
        let of_set = |pvc: &Pvc| pvc.set.as_ref() == Some(&self.set.name);
        let template = self.set.data_template();
        for (name, pvc) in self.view.seen.kube.pvcs.iter().filter(|(_, pvc)| of_set(pvc)) {
            let Some(index) = pvc.index.as_ref().and_then(|index| index.parse().ok()) else { continue };
            let pvcs = found.entry(index).or_default();
            // The labels of Rook 1.3 and older name no template.
            if pvc.template.as_deref().is_none_or(|name| name == template) {
                pvcs.push(name.as_str());
            }
        }
        found.into_iter().map(|(index, pvcs)| Index { index, pvcs }).collect()
    }

    /// Returns whether the Deployment of an OSD names a PVC of the index.
    fn is_taken(&self, index: &Index<'_>) -> bool {
        !passes(Guard::PvcUnused, !index.pvcs.iter().any(|pvc| self.used.contains(pvc)))
    }

    /// Returns the OSD of a record that has a PVC of the index, and the PVC.
    fn recorded(&self, index: &Index<'_>) -> Option<(OsdId, String)> {
        index.pvcs.iter().find_map(|pvc| Some((self.record_of(pvc)?, (*pvc).to_owned())))
    }

    /// Returns the OSD of a record that has a PVC.
    fn record_of(&self, name: &str) -> Option<OsdId> {
        let has = |pvcs: &PerPvc<RecordedPvc>| pvcs.iter().any(|(_, pvc)| pvc.name == name);
        let mut records = self.view.ledger.records.values();
        let record = records.find(|record| record.pvcs.as_ref().is_some_and(has))?;
        (!passes(Guard::PvcOnce, false)).then_some(record.osd)
    }

    fn found(&self, index: &Index<'_>, obstacle: Option<&Obstacle>, room: &mut usize) -> Found {
        if let Some((osd, pvc)) = self.recorded(index) {
            return Found::InProgress { pvc, osd };
        }
        if let Some(obstacle) = obstacle {
            return Found::Obstructed(obstacle.clone());
        }
        match self.available(index) {
            Ok(available) if *room > 0 => {
                *room -= 1;
                Found::Available(Box::new(available))
            }
            Ok(AvailablePvcs { pvcs, .. }) => {
                let count = self.set.count.unwrap_or_default();
                Found::Obstructed(Obstacle::Surplus { pvc: pvcs.data, count })
            }
            Err(obstacle) => Found::Obstructed(obstacle),
        }
    }

    /// Returns the PVCs of an index that become an OSD, or why they do not, if nothing concerns each index.
    fn available(&self, index: &Index<'_>) -> Result<AvailablePvcs, Obstacle> {
        let data = match index.pvcs.as_slice() {
            [] => return Err(Obstacle::NoPvc(LetRook::of(self.view))),
            [only] => *only,
            several => {
                let pvcs = several.iter().map(|pvc| (*pvc).to_owned()).collect();
                let (set, index) = (self.set.name.clone(), index.index);
                return Err(Obstacle::SeveralPvcs { set, index, pvcs });
            }
        };
        if let Some(refusal) = unusable(data, self.view.seen) {
            return Err(self.refused(data, refusal));
        }
        if let Some(found) = self.left(data) {
            return Err(Obstacle::Left { pvc: data.to_owned(), found });
        }
        let (node, volume_uid) = self.node_of(data)?;
        if let Gate::Shut(why) | Gate::Unknown(why) = gate::of_node(&node, self.view.seen) {
            return Err(Obstacle::Node { pvc: data.to_owned(), why: why.to_string() });
        }
        let part = |template: &str| {
            let part = self.set.has_template(template).then(|| self.part(index.index, &node, template));
            part.transpose().map_err(Obstacle::Pvc)
        };
        let pvcs = PerPvc { data: data.to_owned(), db: part(METADATA)?, wal: part(WAL)? };
        let store = self.view.seen.kube.declaration.store.clone();
        let layout = Layout { store, mode: Mode::Raw, encrypted: self.set.encrypted };
        Ok(AvailablePvcs { pvcs, node, layout, device_class: self.set.device_class.clone(), volume_uid })
    }

    /// Checks what concerns each index of the set.
    fn set_obstacle(&self) -> Result<(), Obstacle> {
        let (set, rook) = (self.set, || LetRook::of(self.view));
        let declaration = &self.view.seen.kube.declaration;
        if declaration.store != ObjectStore::bluestore() {
            return Err(Obstacle::Store(declaration.store.to_string()));
        }
        if set.portable {
            return Err(Obstacle::Portable(rook()));
        }
        if let Some(kms) = declaration.kms.clone().filter(|_| set.encrypted) {
            return Err(Obstacle::Kms { kms, rook: rook() });
        }
        let (db, wal) = (set.has_template(METADATA), set.has_template(WAL));
        let wanted = Wanted { set: &set.name, encrypted: set.encrypted, db, wal };
        match source(wanted, None, false, self.view.seen) {
            Some(_) => Ok(()),
            None => Err(Obstacle::NoSource(rook())),
        }
    }

    fn refused(&self, data: &str, refusal: PvcRefusal) -> Obstacle {
        match &refusal {
            PvcRefusal::PvcNotBound { phase, .. } if phase == "Pending" => {
                Obstacle::Pending { pvc: data.to_owned(), rook: LetRook::of(self.view) }
            }
            PvcRefusal::PvcNotBound { .. }
            | PvcRefusal::PvcNoBlock { .. }
            | PvcRefusal::PvcOnePod { .. }
            | PvcRefusal::NoSet { .. }
            | PvcRefusal::SetUnclear { .. }
            | PvcRefusal::NoDatabasePvc { .. }
            | PvcRefusal::LvmOnPvc { .. }
            | PvcRefusal::KeyInKms { .. }
            | PvcRefusal::OldRotation { .. }
            | PvcRefusal::PvcNameTooLong { .. } => Obstacle::Pvc(refusal),
        }
    }

    /// Returns what this run has found on the device of a PVC, if it leaves the device unchanged.
    fn left(&self, name: &str) -> Option<String> {
        let uid = &self.view.seen.kube.pvcs.get(name)?.uid;
        self.view.ledger.left_pvc(name, uid, &self.view.policy.run).map(str::to_owned)
    }

    /// Returns the only node on which a PVC can be used, and the uid of its PersistentVolume.
    fn node_of(&self, data: &str) -> Result<(NodeName, String), Obstacle> {
        let volume = self.volume(data);
        let found = volume.map(|volume| self.nodes_of(volume)).unwrap_or_default();
        match (found.as_slice(), volume) {
            ([only], Some(BoundVolume { uid: Some(uid), .. })) => Ok(((*only).clone(), uid.clone())),
            (nodes, _) => Err(Obstacle::NoNode {
                pvc: data.to_owned(),
                volume: volume.map(|volume| volume.name.clone()).unwrap_or_default(),
                nodes: nodes.iter().map(ToString::to_string).collect(),
            }),
        }
    }

    fn volume(&self, pvc: &str) -> Option<&'a BoundVolume> {
        self.view.seen.kube.pvcs.get(pvc)?.volume.as_ref()
    }

    /// Returns the nodes of this cluster that a PersistentVolume names.
    fn nodes_of(&self, volume: &BoundVolume) -> Vec<&'a NodeName> {
        let Some(named) = &volume.nodes else { return Vec::new() };
        let nodes = self.view.seen.kube.nodes.iter();
        nodes
            .filter(|(name, node)| named.contains(&name.0) || named.contains(&node.hostname))
            .map(|(name, _)| name)
            .collect()
    }

    /// Returns the PVC of the index for database or log, on the node of the data.
    fn part(&self, index: u32, node: &NodeName, template: &str) -> Result<String, PvcRefusal> {
        let index = index.to_string();
        let refused = |why: String| PvcRefusal::NoDatabasePvc {
            set: self.set.name.clone(),
            index: Some(index.clone()),
            template: template.to_owned(),
            why,
        };
        let name = match self.index.at(&self.set.name, &index, template) {
            [only] => *only,
            [] => return Err(refused("there is none".to_owned())),
            several => return Err(refused(format!("there are several ({})", several.join(", ")))),
        };
        match unusable(name, self.view.seen) {
            Some(PvcRefusal::PvcNotBound { pvc, phase }) => {
                return Err(refused(format!("PVC {pvc} is {phase}")));
            }
            Some(refusal) => return Err(refusal),
            None => {}
        }
        if !passes(Guard::PvcUnused, !self.used.contains(name)) {
            return Err(refused(format!("PVC {name} belongs to another OSD")));
        }
        if let Some(osd) = self.record_of(name) {
            return Err(refused(format!("PVC {name} belongs to {osd}")));
        }
        // A PersistentVolume that names no node can be used on each.
        match self.volume(name) {
            Some(volume) if volume.nodes.is_some() && !self.nodes_of(volume).contains(&node) => {
                Err(refused(format!("PVC {name} is on another node")))
            }
            Some(_) | None => Ok(name.to_owned()),
        }
    }
}
