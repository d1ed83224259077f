//! Proof that a device holds the OSD of the record, from the first inspection.

use super::Step;
use crate::domain::classify;
use crate::domain::gate::{self, Gate};
use crate::domain::inspection::{Evidence, NodeProblem, NodeReport, NodeTask};
use crate::domain::ledger::Record;
use crate::domain::next::{Next, Saving};
use crate::domain::observation::Daemon;
use crate::domain::osd::Weight;
use crate::domain::phase::{self, DiskFact, SlotFact};
use crate::domain::proof::pieces;

impl Step<'_> {
    /// Proves the device: nothing is known of it, or the proof is not in the record yet.
    pub(super) fn prove(&self) -> Next {
        let report =
            phase::last_inspection(self.record, self.view.seen).filter(|_| self.image_trouble().is_none());
        if let (DiskFact::Old | DiskFact::Blank, Some(report)) = (self.facts.disk, report) {
            return self.save_proof(report);
        }
        let foreign = self.foreign_data();
        if foreign.is_some() || self.failed_too_often() {
            // The OSD is stopped, but nothing is lost yet: it is started again first, and quarantined
            // afterwards.
            return if self.facts.slot == SlotFact::Old && self.facts.stopped {
                self.restart()
            } else {
                let why = foreign.unwrap_or_else(|| self.agent_trouble());
                self.quarantine(why)
            };
        }
        if self.record.attempt.task == NodeTask::Inspect && !phase::is_created(self.record, self.view.seen) {
            return self.make_agent(NodeTask::Inspect);
        }
        self.save_attempt(NodeTask::Inspect)
    }

    /// Returns why the OSD can't be proven, if a device that it is to get carries data of another owner.
    ///
    /// Another inspection would find the same. Any other failure may pass, and is retried.
    pub(super) fn foreign_data(&self) -> Option<String> {
        let report = self.report().filter(|_| self.record.evidence.is_none())?;
        let Some(NodeProblem::Foreign(why)) = &report.problem else { return None };
        let osd = self.record.osd;
        Some(format!(
            "a device that it is to get carries foreign data: {why}. Make the device blank if nothing on it is needed, \
             or give the PVC another PersistentVolume; then: osd-migrate -n NAMESPACE retry {osd}"
        ))
    }

    /// Saves the proof of the first inspection, which must be read again later.
    ///
    /// Quarantines the OSD if the node can't create the new one (P7).
    pub(super) fn save_proof(&self, report: &NodeReport) -> Next {
        let Some((inspection, evidence)) = report
            .inspection
            .as_ref()
            .and_then(|inspection| Some((inspection, inspection.evidence.clone()?)))
        else {
            return self.not_proven(report);
        };
        if self.facts.removal {
            return self.save_identity(report, evidence);
        }
        let can = &inspection.capability;
        if !can.missing_tools.is_empty() {
            let tools: Vec<_> = can.missing_tools.iter().map(String::as_str).collect();
            return self
                .quarantine(format!("the image or the node's kernel is missing {}", tools.join(", ")));
        }
        if !can.raw_osd_id {
            return self.quarantine(format!(
                "ceph-volume raw prepare of {} does not support --osd-id",
                can.ceph_version
            ));
        }
        let store = &self.record.target.store;
        if !can.stores.contains(store) {
            return self.quarantine(format!("ceph-volume of {} cannot create {store}", can.ceph_version));
        }
        if self.record.is_new() {
            return self.save_available(report, evidence);
        }
        if let Some(why) = self.other_osd(&evidence) {
            return self.quarantine(why);
        }
        if let Some(why) = classify::contradicts(&self.record.class, &evidence.proof) {
            return self.quarantine(why);
        }
        if let Some(why) = classify::excludes(&evidence, &self.record.target) {
            return self.quarantine(why);
        }
        let (osd, gets) = (self.record.osd, (&evidence, &self.record.target));
        if let Some(why) = classify::lost_database(osd, gets, self.record.db.as_ref(), self.view.seen) {
            return self.quarantine(why);
        }
        if let Some(why) = self.missing_part(&evidence) {
            return self.quarantine(why);
        }
        let proven = Record { evidence: Some(evidence.clone()), ..self.record.clone() };
        if let Gate::Shut(reason) = gate::enough_space(&proven, self.view.seen) {
            return self.quarantine(reason.to_string());
        }
        self.save_evidence(report, evidence)
    }

    /// Quarantines an OSD whose device was found, but whose agent proved nothing.
    fn not_proven(&self, report: &NodeReport) -> Next {
        match (&report.problem, self.foreign_data()) {
            (_, Some(why)) => self.quarantine(why),
            (Some(problem), None) => {
                self.quarantine(format!("its device was found, but is not proven: {}", problem.message()))
            }
            (None, None) => {
                self.quarantine("its device was found, but the proof of its identity is missing".to_owned())
            }
        }
    }

    /// Saves the proof of an OSD that is removed: only its identity counts.
    fn save_identity(&self, report: &NodeReport, evidence: Evidence) -> Next {
        match self.other_osd(&evidence) {
            Some(why) => self.quarantine(why),
            None => self.save_evidence(report, evidence),
        }
    }

    /// Describes the OSD on the device, if it is not that of the record.
    fn other_osd(&self, evidence: &Evidence) -> Option<String> {
        let of_record = (self.record.old, self.record.osd, self.view.seen.ceph.fsid);
        let proven = evidence.proof.names();
        if proven == Some(of_record) {
            return None;
        }
        let found = proven.map_or_else(
            || "an available disk".to_owned(),
            |(fsid, osd, cluster)| format!("{osd} {fsid} of cluster {cluster}"),
        );
        Some(format!(
            "its device is {found}, not {} {} of cluster {}",
            self.record.osd, self.record.old, self.view.seen.ceph.fsid
        ))
    }

    fn save_evidence(&self, report: &NodeReport, evidence: Evidence) -> Next {
        let mut issued = phase::issued_of(self.record, self.view.seen);
        issued.extend(report.issued.iter().copied());
        self.save(Saving::Proof, |record| {
            record.evidence = Some(evidence);
            record.issued = issued;
            record.attempt.failures = 0;
        })
    }

    /// Saves that the devices of the PVCs that become an OSD are blank.
    fn save_available(&self, report: &NodeReport, evidence: Evidence) -> Next {
        let issued = report.issued.clone();
        let by_size = Weight::by_size(evidence.device.size_bytes);
        // An owner may have chosen other weights for the set (`crushInitialWeight`).
        let is_usual =
            self.weights_of_set().any(|weight| weight.following(evidence.device.size_bytes) == weight);
        self.save(Saving::Proof, |record| {
            let former = record.crush.weight;
            // The volume may have another size than that of the destroyed OSD whose id it gets.
            record.crush.weight = if former == Weight(0) || is_usual { by_size } else { former };
            record.former_weight =
                Some(former).filter(|former| *former != Weight(0) && *former != record.crush.weight);
            record.evidence = Some(evidence);
            record.issued = issued;
            record.attempt.failures = 0;
        })
    }

    /// Returns the CRUSH weights of the OSDs of the device set that the OSD becomes part of.
    fn weights_of_set(&self) -> impl Iterator<Item = Weight> {
        let (seen, data) = (self.view.seen, self.record.pvcs.as_ref().map(|pvcs| &pvcs.data.name));
        let set = data.and_then(|data| seen.kube.pvcs.get(data)?.set.as_ref());
        let is_of_set = move |daemon: &Daemon| {
            let on = daemon.on_pvcs.as_ref();
            on.and_then(|on| classify::set_of(on, seen)).is_some_and(|found| Some(&found.name) == set)
        };
        let others = seen.kube.daemons.iter().filter(|(osd, _)| **osd != self.record.osd);
        let of_set = others.filter(move |(_, daemon)| is_of_set(daemon));
        of_set.filter_map(|(osd, _)| Some(seen.ceph.slots.get(osd)?.crush.as_ref()?.weight))
    }

    /// Returns which part of an OSD on PVCs was not found where its Deployment says.
    fn missing_part(&self, evidence: &Evidence) -> Option<String> {
        let on = self.view.daemon(self.record.osd)?.on_pvcs.as_ref()?;
        pieces::parts_are_found(on, evidence).err()
    }
}
