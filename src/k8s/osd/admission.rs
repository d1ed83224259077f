//! Dry run of the Deployment that a new OSD would get: admission is asked before the old OSD is stopped, and
//! nothing is stored.

use serde_json::Value;

use crate::domain::act::{Deploy, Fresh};
use crate::domain::observation::Admission;
use crate::domain::osd::ClusterFsid;
use crate::domain::policy::Declaration;
use crate::k8s::client::access::K8s;
use crate::k8s::client::classify::NO_DRY_RUN;
use crate::k8s::client::error::K8sError;
use crate::k8s::osd::deploy_osd::{expect_startable, fits, next_deployment};
use crate::k8s::osd::osd_object::{dynamic, text};

/// Text of the API server's answer if it can't call a webhook whose failure policy is Fail: 500,
/// `InternalError`
/// (`staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/{validating,mutating}/dispatcher.go`).
const NO_WEBHOOK: &str = "failed calling webhook";

/// Text of ResourceQuota's refusal of one object too many
/// (`plugin/pkg/admission/resourcequota/controller.go`).
const OVER_QUOTA: &str = "exceeded quota";

impl K8s {
    /// Asks whether the Deployment of the new OSD would be admitted in place of the OSD's present Deployment.
    ///
    /// If the present Deployment has another selector, which can't be changed, Deploy deletes it and creates
    /// the new one. A create under an existing name is admitted before the name is looked up: `Store.create`
    /// calls `createValidation` before `Storage.Create`
    /// (`staging/src/k8s.io/apiserver/pkg/registry/generic/registry/store.go`). `Storage.Create` answers
    /// `AlreadyExists` in a dry run too (`dryrun.go`).
    ///
    /// `hostname`: of the node, if it was observed. Otherwise the node is read.
    pub async fn admits(
        &self,
        deploy: &Deploy,
        hostname: Option<&str>,
        declaration: &Declaration,
        cluster: &ClusterFsid,
    ) -> Result<Admission, K8sError> {
        if let Err(error) = expect_startable(deploy) {
            return Ok(Admission::Refused(error.to_string()));
        }
        if let (Some(pvcs), Some(Fresh { source: Some(source), .. })) = (deploy.pvc_names(), &deploy.fresh) {
            let hostname = self.hostname_of(&deploy.node, hostname).await?;
            let frame = self.frame(declaration, cluster, &hostname);
            return match self.made_from(source, deploy, &pvcs, &frame).await {
                Ok(new) => self.admits_new(deploy, new).await,
                Err(error @ K8sError::Malformed { .. }) => Ok(Admission::Refused(error.to_string())),
                Err(error) => Err(error),
            };
        }
        let hostname = self.hostname_for(deploy, hostname).await?;
        let frame = self.frame(declaration, cluster, &hostname);
        let found = self.expect_deployment(deploy.osd).await?;
        let new = match next_deployment(deploy, &found.object, &frame) {
            Ok(new) => new,
            Err(error @ K8sError::Malformed { .. }) => return Ok(Admission::Refused(error.to_string())),
            Err(error) => return Err(error),
        };
        let (name, in_place) = (text(&new, "/metadata/name"), fits(&new, &found));
        // The object has no uid and no resourceVersion, so a status written meanwhile causes no conflict.
        let new = dynamic(&name, new)?;
        let deployments = self.osd_deployments();
        if in_place {
            return answer(deployments.try_replace(&name, &new).await);
        }
        match deployments.try_create(&name, &new).await {
            // The present Deployment counts towards the quota, and Deploy deletes it first.
            Err(K8sError::Refused { message, .. }) if message.contains(OVER_QUOTA) => Ok(Admission::Admitted),
            done => answer(done),
        }
    }

    /// Asks whether the Deployment of a new OSD would be admitted, in place of that of a destroyed one or of
    /// none.
    async fn admits_new(&self, deploy: &Deploy, new: Value) -> Result<Admission, K8sError> {
        let found = self.osd_deployment(deploy.osd).await?;
        let (name, in_place) = (text(&new, "/metadata/name"), found.is_some_and(|found| fits(&new, &found)));
        let (new, deployments) = (dynamic(&name, new)?, self.osd_deployments());
        if in_place {
            return answer(deployments.try_replace(&name, &new).await);
        }
        answer(deployments.try_create(&name, &new).await)
    }
}

fn answer<T>(done: Result<T, K8sError>) -> Result<Admission, K8sError> {
    match done {
        Ok(_) | Err(K8sError::AlreadyExists(_)) => Ok(Admission::Admitted),
        Err(K8sError::Other { message, .. }) if message.contains(NO_DRY_RUN) => Ok(Admission::Admitted),
        Err(error @ K8sError::Timeout { .. }) => Ok(Admission::Unanswered(error.to_string())),
        Err(K8sError::Other { message, .. }) if message.contains(NO_WEBHOOK) => {
            Ok(Admission::Unanswered(message))
        }
        // 400 and 422 mean that the object is invalid.
        Err(K8sError::Refused { message, .. } | K8sError::Other { code: 400 | 422, message, .. }) => {
            Ok(Admission::Refused(message))
        }
        Err(error) => Err(error),
    }
}
