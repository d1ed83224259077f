//! Start of a recreated or new OSD: its Deployment is updated to Rook's present shape, or created. On a PVC,
//! the found Deployment is changed.

use kube::api::PropagationPolicy;
use serde_json::Value;

use crate::domain::act::{Deploy, Fresh, SourceDeployment};
use crate::domain::expect;
use crate::domain::osd::pvc::PerPvc;
use crate::domain::osd::{ClusterFsid, NodeName};
use crate::domain::policy::Declaration;
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;
use crate::k8s::osd::daemon;
use crate::k8s::osd::declared_osd;
use crate::k8s::osd::new_on_pvc;
use crate::k8s::osd::osd_object::{FoundDeployment, text, with_identity};
use crate::k8s::osd::osd_on_pvc::reshape;
use crate::k8s::osd::render_osd::{self, Frame};
use crate::k8s::tolerations;

/// Progress of one call of [`K8s::deploy`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deployed {
    /// The Deployment starts the new OSD now.
    Done,
    /// The call deletes the old Deployment, because its selector, which can't be changed, is not Rook's
    /// present one. Call again.
    Deleting,
}

impl K8s {
    /// Updates the Deployment to Rook's present shape, so that it starts the new fsid.
    ///
    /// A call takes one step; a Deployment that is already done is success. While the old Deployment is being
    /// deleted, the call fails, so that the run pauses and other OSDs have their turn.
    pub async fn deploy(
        &self,
        deploy: &Deploy,
        declaration: &Declaration,
        cluster: &ClusterFsid,
    ) -> Result<Deployed, K8sError> {
        expect_startable(deploy)?;
        if let Some(fresh) = &deploy.fresh {
            return self.deploy_fresh(deploy, fresh, declaration, cluster).await;
        }
        let hostname = self.hostname_for(deploy, None).await?;
        let frame = self.frame(declaration, cluster, &hostname);
        let Some(found) = self.osd_deployment(deploy.osd).await? else {
            let (_, old) = self.backed_up_deployment(deploy.osd, &deploy.record).await?;
            let new = next_deployment(deploy, &old, &frame)?;
            let name = text(&new, "/metadata/name");
            return self.create_deployment(&name, new).await.map(|()| Deployed::Done);
        };
        found.expect_not_deleted(self.namespace())?;
        let starts = daemon::fsid_of(&found.object);
        match found.stopped_by() {
            Some(by) if by == deploy.record.0 => {}
            None if starts == Some(deploy.fsid) => return Ok(Deployed::Done),
            // A person or Rook may have started the old OSD again, whose slot is gone: the only condition is
            // that the record is open.
            Some(_) | None => self.expect_open(deploy.osd, &deploy.record).await?,
        }
        let new = next_deployment(deploy, &found.object, &frame)?;
        if fits(&new, &found) {
            return self.put(&found.name, with_identity(new, &found)).await.map(|()| Deployed::Done);
        }
        // Without the backup, a deleted Deployment could not be created again.
        self.backed_up_deployment(deploy.osd, &deploy.record).await?;
        self.osd_deployments().delete(&found.name, &found.uid, PropagationPolicy::Foreground).await?;
        Ok(Deployed::Deleting)
    }

    /// Returns the host name to which the Deployment of an OSD is pinned; empty if the OSD is on PVCs.
    ///
    /// On PVCs the placement stays as found, and the recorded node may be gone: it is not asked for.
    /// `observed`: as in `hostname_of`.
    pub(super) async fn hostname_for(
        &self,
        deploy: &Deploy,
        observed: Option<&str>,
    ) -> Result<String, K8sError> {
        if deploy.pvcs.is_some() {
            return Ok(String::new());
        }
        self.hostname_of(&deploy.node, observed).await
    }

    /// Returns the host name of a node: as it was observed, or else as it is read now.
    pub(super) async fn hostname_of(
        &self,
        node: &NodeName,
        observed: Option<&str>,
    ) -> Result<String, K8sError> {
        match observed {
            Some(hostname) => Ok(hostname.to_owned()),
            None => Ok(self.node_object(node).await?.hostname),
        }
    }

    /// Creates the Deployment of a finished OSD, as `deploy` does for a new one, if there is none.
    ///
    /// A Deployment that starts this very OSD already is success.
    pub async fn adopt(
        &self,
        deploy: &Deploy,
        declaration: &Declaration,
        cluster: &ClusterFsid,
    ) -> Result<Deployed, K8sError> {
        expect_startable(deploy)?;
        self.deploy_fresh(deploy, &Fresh { replaces: None, source: None }, declaration, cluster).await
    }

    /// Deploys a new OSD, rendered from the CephCluster's settings for OSDs.
    ///
    /// The Deployment in its place is read last, so that little time lies between the read and the write.
    async fn deploy_fresh(
        &self,
        deploy: &Deploy,
        fresh: &Fresh,
        declaration: &Declaration,
        cluster: &ClusterFsid,
    ) -> Result<Deployed, K8sError> {
        let (node_object, owner) = tokio::try_join!(self.node_object(&deploy.node), self.ceph_cluster())?;
        if owner.metadata.uid.as_ref() != Some(&declaration.uid) {
            let what = format!("cephcluster/{}", declaration.name);
            return Err(K8sError::Unexpected {
                what,
                found: "it was recreated since it was observed".to_owned(),
            });
        }
        let frame = self.frame(declaration, cluster, &node_object.hostname);
        let new = if let (Some(pvcs), Some(source)) = (deploy.pvc_names(), &fresh.source) {
            self.made_from(source, deploy, &pvcs, &frame).await?
        } else {
            let tolerated = tolerations::for_node(&declaration.storage.placement.tolerations, &node_object);
            let class = deploy.crush.device_class.as_deref();
            let base = declared_osd::base(&owner, self.namespace(), class, &tolerated)?;
            render_osd::render(deploy, &base, &frame)
        };
        let found = self.osd_deployment(deploy.osd).await?;
        if let Some(found) = &found {
            found.expect_not_deleted(self.namespace())?;
            if found.stopped_by().is_none() && daemon::fsid_of(&found.object) == Some(deploy.fsid) {
                return Ok(Deployed::Done);
            }
        }
        expect_in_place(deploy, fresh, found.as_ref())?;
        match found {
            None => {
                // There is no object whose state could be compared. So without this check, a runner that was
                // frozen until here would create a Deployment for an OSD that was removed since.
                self.expect_ledger().await?;
                let name = text(&new, "/metadata/name");
                self.create_deployment(&name, new).await.map(|()| Deployed::Done)
            }
            Some(found) if fits(&new, &found) => {
                self.put(&found.name, with_identity(new, &found)).await.map(|()| Deployed::Done)
            }
            // The OSD that it started is gone, and its replacement is rendered from the CephCluster: no
            // backup is needed.
            Some(found) => {
                self.osd_deployments().delete(&found.name, &found.uid, PropagationPolicy::Foreground).await?;
                Ok(Deployed::Deleting)
            }
        }
    }

    /// Returns the Deployment of a new OSD on PVCs, made from that of another OSD of its device set.
    pub(super) async fn made_from(
        &self,
        source: &SourceDeployment,
        deploy: &Deploy,
        pvcs: &PerPvc<String>,
        frame: &Frame<'_>,
    ) -> Result<Value, K8sError> {
        let found = self.expect_deployment(source.osd).await?;
        found.expect_uid(&source.deployment)?;
        new_on_pvc::made_from(&found.object, deploy, pvcs, frame).map_err(|cause| {
            let (name, namespace, osd) = (&found.name, frame.namespace, deploy.osd);
            let why = format!(
                "{cause}, so osd-migrate cannot make the Deployment of the new {osd} from it. Rook's operator finds \
                 {osd} on its PVC if it reconciles, and creates the Deployment. To see the Deployment: kubectl -n \
                 {namespace} get deployment {name} -o yaml"
            );
            K8sError::Malformed { what: format!("deployment/{name}"), why }
        })
    }

    pub(super) fn frame<'a>(
        &'a self,
        declaration: &'a Declaration,
        cluster: &ClusterFsid,
        hostname: &'a str,
    ) -> Frame<'a> {
        Frame {
            namespace: self.namespace(),
            operator_namespace: self.operator_namespace(),
            cluster: *cluster,
            declaration,
            hostname,
        }
    }
}

pub(super) fn expect_startable(deploy: &Deploy) -> Result<(), K8sError> {
    render_osd::can_activate(deploy)
        .map_err(|found| K8sError::Unexpected { what: deploy.osd.to_string(), found })
}

/// Returns the Deployment that starts the recreated OSD. `old` is the existing Deployment, or its backup.
pub(super) fn next_deployment(deploy: &Deploy, old: &Value, frame: &Frame<'_>) -> Result<Value, K8sError> {
    let Some(pvcs) = deploy.pvc_names() else {
        return Ok(render_osd::render(deploy, old, frame));
    };
    reshape(deploy, &pvcs, old, frame).map_err(|cause| {
        let (name, namespace) = (text(old, "/metadata/name"), frame.namespace);
        let why = format!(
            "{cause}, so osd-migrate cannot change it to start the recreated {}. Rook's operator restores \
             Rook's shape if it reconciles. To see the Deployment: kubectl -n {namespace} get deployment \
             {name} -o yaml",
            deploy.osd
        );
        K8sError::Malformed { what: format!("deployment/{name}"), why }
    })
}

/// Returns whether the found Deployment can become the new one: name and selector can't be changed.
pub(super) fn fits(new: &Value, found: &FoundDeployment) -> bool {
    text(new, "/metadata/name") == found.name
        && new.pointer("/spec/selector") == found.object.pointer("/spec/selector")
}

fn expect_in_place(deploy: &Deploy, fresh: &Fresh, found: Option<&FoundDeployment>) -> Result<(), K8sError> {
    let there = found.map(|found| (found.uid.as_str(), found.generation()));
    let expected = fresh.replaces.as_ref().map(|(uid, generation)| (uid.as_str(), *generation));
    if expect::in_place_of(there, expected) {
        return Ok(());
    }
    Err(match found {
        Some(found) if expected.is_none() => {
            found.unexpected("it exists, but the OSD had no Deployment when it was observed".to_owned())
        }
        Some(found) => found.unexpected("it was changed or recreated since it was observed".to_owned()),
        None => K8sError::Unexpected {
            what: deploy.osd.to_string(),
            found: "its Deployment, which was to be replaced, no longer exists".to_owned(),
        },
    })
}
