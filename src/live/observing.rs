//! Complete and partial observations, and acts, of a real run.

use std::collections::BTreeSet;

use crate::domain::act::Act;
use crate::domain::observation::{self, Age, Kube, Observation};
use crate::domain::osd::OsdId;
use crate::domain::plan::Questions;
use crate::live::adapter::Live;
use crate::live::clock::now;
use crate::live::failure::kube_failure;
use crate::live::kept::Kept;
use crate::ports::{Cluster, Failure};

impl Cluster for Live {
    async fn observe(
        &mut self,
        in_progress: &BTreeSet<OsdId>,
        ask: impl FnOnce(&Observation) -> Questions,
    ) -> Result<Observation, Failure> {
        (self.kept, self.admitted) = (None, None);
        let began = now();
        let kube = self.k8s.observe_all(in_progress, &mut self.lately, began).await.map_err(kube_failure)?;
        let ceph = self.observe_ceph().await?;
        let seen = self.joined(ceph, kube, ask).await?;
        let age = Age::new(began, seen.at, self.age);
        (self.kept, self.age) = (Some(Kept::of(&seen, age)), Some(age));
        Ok(seen)
    }

    fn forget_list(&mut self) -> bool {
        self.lately.forget_list()
    }

    async fn ask_again(
        &mut self,
        seen: Observation,
        ask: impl FnOnce(&Observation) -> Questions,
    ) -> Result<Observation, Failure> {
        let mut seen = seen.unanswered();
        let questions = ask(&seen);
        if !questions.keeps_admission {
            self.admitted = None;
        }
        self.ask(&questions, &mut seen).await?;
        Ok(seen)
    }

    async fn observe_partly(
        &mut self,
        in_progress: &BTreeSet<OsdId>,
        ask: impl FnOnce(&Observation) -> Questions,
    ) -> Result<Option<Observation>, Failure> {
        // An observation that fails keeps nothing.
        let Some(kept) = self.kept.take().filter(|kept| kept.age.is_young(now())) else { return Ok(None) };
        let Some(ceph) = self.observe_ceph_partly(&kept.ceph).await? else { return Ok(None) };
        let kube =
            self.k8s.observe_partly(kept.kube, in_progress, &mut self.lately).await.map_err(kube_failure)?;
        let seen = self.joined(ceph, kube, ask).await?;
        self.kept = Some(Kept::of(&seen, kept.age));
        Ok(Some(seen))
    }

    async fn act(&mut self, act: &Act) -> Result<(), Failure> {
        self.age = None;
        // An act that is refused found something else than was observed.
        let (kept, list) = (self.kept.take(), self.lately.before_act());
        self.k8s.set_acting(true);
        let done = self.act_as_expected(act).await;
        self.k8s.set_acting(false);
        self.failed.note(act.osd(), done.is_ok(), done.as_ref().err().and_then(Failure::denied));
        done?;
        self.kept = kept.filter(|_| act.keeps_observation());
        self.lately.list = list.filter(|_| !act.changes_other_osds());
        Ok(())
    }
}

impl Live {
    /// Joins an observation, and asks the questions that follow from it.
    async fn joined(
        &mut self,
        ceph: observation::Ceph,
        mut kube: Kube,
        ask: impl FnOnce(&Observation) -> Questions,
    ) -> Result<Observation, Failure> {
        kube.pdb_rejected = self.pdb_rejected();
        self.declared = Some((ceph.fsid, (*kube.declaration).clone()));
        let mut seen = Observation { at: now(), ceph, kube, failed: self.failed.clone() };
        let questions = ask(&seen);
        self.ask(&questions, &mut seen).await?;
        Ok(seen)
    }

    async fn observe_ceph_partly(
        &mut self,
        earlier: &observation::Ceph,
    ) -> Result<Option<observation::Ceph>, Failure> {
        let seen = self.session().await?.observe_partly(earlier).await;
        self.reopen(seen)
    }

    pub(super) async fn observe_ceph(&mut self) -> Result<observation::Ceph, Failure> {
        let seen = self.session().await?.observe().await;
        self.reopen(seen)
    }

    fn pdb_rejected(&self) -> Option<String> {
        self.pdb_rejected.as_ref().filter(|(until, _)| now() < *until).map(|(_, why)| why.clone())
    }
}
