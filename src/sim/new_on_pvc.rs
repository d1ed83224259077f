//! New OSDs on PVCs in the simulation: the first inspection of their disks, and their Deployments.

use crate::domain::act::{Deploy, Fresh};
use crate::domain::expect::to_start_on;
use crate::domain::inspection::{Content, Evidence, Inspection, NodeRequest, Proof};
use crate::domain::ledger::RecordedPvc;
use crate::domain::osd::pvc::PerPvc;
use crate::domain::proof::pieces::PieceSeen;
use crate::sim::agent;
use crate::sim::world::World;

impl World {
    /// Inspects the disks behind PVCs that are to become an OSD.
    pub(super) fn inspect_new(&self, request: &NodeRequest) -> Inspection {
        let (capability, volume) = (agent::able(), None);
        let given = self.disks.iter().find(|(name, disk)| {
            request.data_pvc().is_some() && disk.node == request.node && self.is_given(request, name)
        });
        let Some((_, disk)) = given else {
            let content = Content::NotFound { inspected: "no device of the PVC".to_owned() };
            return Inspection { content, evidence: None, capability, volume, kernel: None };
        };
        let tombstone = disk.content.tombstone_of(request.cluster);
        let is_blank = tombstone.is_some() || disk.content == Content::Blank;
        let part = self.part_of(request).map(|(_, disk)| self.part_seen(request, &disk));
        let is_usable = is_blank && part.is_none_or(|seen| seen == PieceSeen::Blank);
        let evidence = is_usable.then(|| Evidence {
            device: disk.identity.clone(),
            proof: Proof::Available { tombstone },
            usable_bytes: disk.identity.size_bytes,
            auxiliary: Vec::new(),
        });
        let content = disk.content.clone();
        Inspection { content, evidence, capability, volume, kernel: None }
    }

    /// Checks that the Deployment from which that of a new OSD on PVCs is made is the observed one.
    pub(super) fn expect_source(&self, deploy: &Deploy) -> Result<(), String> {
        if deploy.pvcs.is_none() {
            return Ok(());
        }
        let Some(Fresh { source: Some(source), .. }) = &deploy.fresh else {
            return Err("there is no Deployment to make its own from".to_owned());
        };
        let found = self.kube.daemons.get(&source.osd).map(|daemon| daemon.uid.as_str());
        if found == Some(source.deployment.as_str()) {
            return Ok(());
        }
        Err("the Deployment of the other OSD was recreated".to_owned())
    }

    /// Checks that the PVCs are the recorded ones.
    pub(super) fn expect_pvcs(&self, deploy: &Deploy) -> Result<(), String> {
        let is_it = |pvc: &RecordedPvc| to_start_on(pvc, self.kube.pvcs.get(&pvc.name));
        match deploy.pvcs.iter().flat_map(PerPvc::iter).find(|(_, pvc)| !is_it(pvc)) {
            None => Ok(()),
            Some((_, pvc)) => Err(format!("PVC {} is not the recorded one", pvc.name)),
        }
    }

    /// Notes the PVCs that the Deployment of an OSD names.
    pub(super) fn take_pvcs(&mut self, deploy: &Deploy) {
        self.pvcs.of.extend(deploy.pvc_names().map(|pvcs| (deploy.osd, pvcs)));
    }
}
