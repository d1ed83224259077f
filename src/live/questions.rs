//! Questions, most of them about single OSDs, after everything was observed.

use crate::domain::observation::Observation;
use crate::domain::plan::Questions;
use crate::live::adapter::Live;
use crate::live::failure::kube_failure;
use crate::ports::Failure;

impl Live {
    /// Asks the questions, and adds the answers to the observation.
    pub(super) async fn ask(&mut self, questions: &Questions, seen: &mut Observation) -> Result<(), Failure> {
        if let Some(deploy) = &questions.admission {
            let (fsid, declaration) = self.declared()?;
            let answer = self.k8s.admits(deploy, &declaration, &fsid).await.map_err(kube_failure)?;
            seen.kube.admission.insert(deploy.osd, answer);
        }
        let ceph = &mut seen.ceph;
        for set in &questions.ok_to_stop {
            let verdict = self.session().await?.ok_to_stop(set).await;
            ceph.ok_to_stop.insert(set.clone(), self.reopen(verdict)?);
        }
        for osd in &questions.auth {
            let has = self.session().await?.has_auth(*osd).await;
            ceph.auth.insert(*osd, self.reopen(has)?);
        }
        if questions.bootstrap {
            let has = self.session().await?.has_bootstrap().await;
            ceph.bootstrap = Some(self.reopen(has)?);
        }
        if questions.recovery {
            let config = self.session().await?.recovery_config().await;
            ceph.recovery = Some(self.reopen(config)?);
        }
        if questions.commit_latency {
            let latency = self.session().await?.commit_latency().await;
            ceph.commit_latency = Some(self.reopen(latency)?);
        }
        for osd in &questions.safe_to_destroy {
            let safe = self.session().await?.safe_to_destroy(*osd).await;
            ceph.safe_to_destroy.insert(*osd, self.reopen(safe)?);
        }
        if let Some(osd) = questions.emptiable {
            let answer = self.emptiable(osd, ceph).await?;
            ceph.emptiable.insert(osd, answer);
        }
        if !questions.removable.is_empty() {
            let answer = self.removable(&questions.removable, ceph).await?;
            ceph.emptiable.extend(questions.removable.iter().map(|osd| (*osd, answer.clone())));
        }
        Ok(())
    }
}
