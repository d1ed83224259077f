//! Questions, most of them about single OSDs, after everything was observed.

use crate::domain::act::Deploy;
use crate::domain::observation::{Admission, Observation};
use crate::domain::plan::Questions;
use crate::live::adapter::Live;
use crate::live::failure::kube_failure;
use crate::ports::Failure;

impl Live {
    /// Asks the questions, and adds the answers to the observation.
    pub(super) async fn ask(&mut self, questions: &Questions, seen: &mut Observation) -> Result<(), Failure> {
        if let Some(deploy) = &questions.admission {
            let answer = self.admission(deploy, seen).await?;
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

    /// Asks the API server whether it admits a Deployment, unless it has admitted this one since the last
    /// complete observation began.
    async fn admission(&mut self, deploy: &Deploy, seen: &Observation) -> Result<Admission, Failure> {
        if self.admitted.as_ref() == Some(deploy) {
            return Ok(Admission::Admitted);
        }
        let (fsid, declaration) = self.declared()?;
        let hostname = seen.kube.nodes.get(&deploy.node).map(|node| node.hostname.as_str());
        let answer = self.k8s.admits(deploy, hostname, &declaration, &fsid).await.map_err(kube_failure)?;
        self.admitted = (answer == Admission::Admitted).then(|| deploy.clone());
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::k8s::wire::{
        Exchange, FIND, PUT, deployment, list, on, play_shared, refusal, rendered, unreachable,
    };
    use crate::ports::Cluster;
    use crate::sim::example;

    /// Returns the requests of one dry run, with its answer.
    fn asked(status: u16) -> [Exchange; 2] {
        let answer = if status == 200 { deployment() } else { refusal(status, "Invalid") };
        let dry = on(&PUT.replace("?&", "?&dryRun=All&"), status, answer).with(|body| {
            assert_eq!(body["spec"]["template"]["spec"]["nodeSelector"]["kubernetes.io/hostname"], "h1");
        });
        [on(FIND, 200, list(&[deployment()])), dry]
    }

    /// Checks when the API server is asked: the script has no other requests.
    #[tokio::test]
    async fn admission_is_asked_again_unless_an_answer_may_be_kept() {
        let (deploy, declaration) = rendered();
        let mut seen = example::replicated().observe(|_| Questions::default());
        let mut node = seen.kube.nodes.values().next().unwrap().clone();
        node.hostname = "h1".to_owned();
        seen.kube.nodes.insert(deploy.node.clone(), node);
        let other = Deploy { store: "other".to_owned(), ..deploy.clone() };
        let script = [asked(200), asked(200), asked(422), asked(200)].into_iter().flatten().collect();
        play_shared(script, async |k8s| {
            let mut live = Live::new(Arc::clone(&k8s), Duration::from_secs(1));
            live.declared = Some((seen.ceph.fsid, declaration));
            let mut ask = async |deploy: &Deploy, keeps_admission: bool, count: u64| {
                let admission = Some(deploy.clone());
                let questions = Questions { admission, keeps_admission, ..Questions::default() };
                let answered = live.ask_again(seen.clone(), |_| questions).await.unwrap();
                assert_eq!(k8s.requests(), count, "{keeps_admission}");
                answered.kube.admission[&deploy.osd].clone()
            };
            assert_eq!(ask(&deploy, true, 2).await, Admission::Admitted);
            assert_eq!(ask(&deploy, true, 2).await, Admission::Admitted);
            assert_eq!(ask(&deploy, false, 4).await, Admission::Admitted);
            assert!(matches!(ask(&other, true, 6).await, Admission::Refused(_)));
            assert_eq!(ask(&other, true, 8).await, Admission::Admitted, "a refusal is not kept");
        })
        .await;
    }

    #[tokio::test]
    async fn admission_is_asked_again_in_each_complete_observation() {
        let mut live = Live::new(unreachable(), Duration::from_secs(1));
        live.admitted = Some(rendered().0);
        // The first request fails, and the answer is forgotten before it.
        assert!(live.observe(&BTreeSet::new(), |_| Questions::default()).await.is_err());
        assert_eq!(live.admitted, None);
    }
}
