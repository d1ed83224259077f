//! OSDs' Deployments: reads and writes. Each write is one PUT of the whole object as it is on the wire, with
//! its uid and resourceVersion: Rook's update manager owns the fields, so none may get lost.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DynamicObject, PropagationPolicy};
use kube::core::ApiResource;
use serde_json::{Value, json};

use crate::domain::expect;
use crate::domain::inspection::RecordId;
use crate::domain::osd::{NodeName, OsdId};
use crate::domain::storage::Toleration;
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;
use crate::k8s::client::kind::Kind;
use crate::k8s::names::{OF_OSDS, backup_name, of_osd};
use crate::k8s::osd::daemon_pvcs::DATA;
use crate::k8s::osd::osd_object;
use crate::k8s::osd::osd_object::{
    FoundDeployment, backup_of, backups, bare, dynamic, parse_backup, running, stopped, text, tolerating,
};
use crate::k8s::tolerations;

impl K8s {
    pub(super) fn osd_deployments(&self) -> Kind<'_, DynamicObject> {
        self.untyped(&ApiResource::erase::<Deployment>(&()))
    }

    /// Returns the Deployment of an OSD, found by label, because the name differs between Rook versions.
    pub(super) async fn osd_deployment(&self, osd: OsdId) -> Result<Option<FoundDeployment>, K8sError> {
        let mut found = self.osd_deployments().list(&of_osd(osd), |d| Some(FoundDeployment::new(d))).await?;
        if found.len() > 1 {
            let names: Vec<_> = found.into_iter().map(|f| f.name).collect();
            let found = format!("{} Deployments run it: {}", names.len(), names.join(", "));
            return Err(K8sError::Unexpected { what: osd.to_string(), found });
        }
        Ok(found.pop())
    }

    /// Saves a backup of the Deployment as found, if spec and annotations are as observed.
    ///
    /// A backup that exists for this record is success. A backup for another record is replaced: that record
    /// is closed, because an OSD has at most one open record.
    pub async fn back_up(
        &self,
        osd: OsdId,
        record: &RecordId,
        uid: &str,
        generation: i64,
    ) -> Result<(), K8sError> {
        let found = self.expect_deployment(osd).await?;
        found.expect_uid(uid)?;
        found.expect_generation(generation)?;
        found.expect_not_managed_externally()?;
        let name = backup_name(osd);
        let maps = self.kind::<ConfigMap>();
        let map = backups(osd, record, &found.object)?;
        match maps.create(&name, &map).await {
            // The backup is created first and the ledger checked afterwards: a runner that closes the record
            // meanwhile either finds the backup, or has saved.
            Ok(created) => match self.expect_ledger().await {
                Ok(()) => Ok(()),
                Err(late) => self.delete_created(&created).await.and(Err(late)),
            },
            Err(K8sError::AlreadyExists(_)) => {
                let there = maps.get(&name).await?;
                if backup_of(&there).as_deref() == Some(record.0.as_str()) {
                    return Ok(());
                }
                let mut map = map;
                map.metadata.uid = there.metadata.uid;
                map.metadata.resource_version = there.metadata.resource_version;
                maps.replace(&name, &map).await.map(drop)
            }
            Err(error) => Err(error),
        }
    }

    /// Fails if the record is no longer open: then its Deployment is neither backed up nor stopped for it.
    ///
    /// No runner would later revert a change that is written for a closed record.
    pub async fn expect_open(&self, osd: OsdId, record: &RecordId) -> Result<(), K8sError> {
        let name = backup_name(osd);
        let backups =
            self.kind::<ConfigMap>().get_opt(&name).await?.as_ref().and_then(backup_of).map(RecordId);
        let stopped_by = if backups.as_ref() == Some(record) {
            None
        } else {
            self.osd_deployment(osd).await?.and_then(|found| found.stopped_by()).map(RecordId)
        };
        if expect::open_record(backups.as_ref(), stopped_by.as_ref(), record) {
            return Ok(());
        }
        let found = format!("it has no backup for record `{record}`: the record is closed");
        Err(K8sError::Unexpected { what: format!("configmap/{name}"), found })
    }

    /// Fails if the OSD is no longer at rest: stopped for this record, at 0 replicas, its pods gone.
    ///
    /// This is checked right before its slot is destroyed: the OSD may have been started meanwhile.
    pub async fn expect_stopped(&self, osd: OsdId, record: &RecordId) -> Result<(), K8sError> {
        self.at_rest(osd, record).await.map(drop)
    }

    async fn at_rest(&self, osd: OsdId, record: &RecordId) -> Result<FoundDeployment, K8sError> {
        let found = self.expect_deployment(osd).await?;
        let has_pods = self.has_osd_pods(osd).await?;
        let stopped_by = found.stopped_by().map(RecordId);
        let replicas = u32::try_from(found.replicas()).unwrap_or(u32::MAX);
        if expect::at_rest(stopped_by.as_ref(), replicas, has_pods, record) {
            return Ok(found);
        }
        Err(found
            .unexpected(format!("it is no longer stopped for record `{record}`, or its pod still exists")))
    }

    /// Stops an OSD with one PUT: replicas 0 and our annotation.
    ///
    /// Already stopped for this record is success.
    ///
    /// The PUT writes the object as it is read here. Its uid and generation must be those of the observation,
    /// and the record must be open.
    pub async fn stop(
        &self,
        osd: OsdId,
        record: &RecordId,
        uid: &str,
        generation: i64,
    ) -> Result<(), K8sError> {
        let found = self.expect_deployment(osd).await?;
        found.expect_uid(uid)?;
        match found.stopped_by() {
            Some(by) if by == record.0 && found.replicas() == 0 => return Ok(()),
            Some(by) if by != record.0 => {
                return Err(found.unexpected(format!("it is stopped for record `{by}`")));
            }
            Some(_) | None => {}
        }
        found.expect_generation(generation)?;
        found.expect_not_managed_externally()?;
        self.expect_open(osd, record).await?;
        self.put(&found.name, stopped(found.object, record)).await
    }

    /// Reverts Stop; if the Deployment was deleted meanwhile, it is created again from the backup.
    pub async fn restart(&self, osd: OsdId, record: &RecordId) -> Result<(), K8sError> {
        let Some(found) = self.osd_deployment(osd).await? else {
            let (name, object) = self.backed_up_deployment(osd, record).await?;
            return self.create_deployment(&name, running(bare(object))).await;
        };
        match found.stopped_by() {
            Some(by) if by == record.0 => self.put(&found.name, running(found.object)).await,
            Some(by) => Err(found.unexpected(format!("it is stopped for record `{by}`, not `{record}`"))),
            None if found.replicas() > 0 => Ok(()),
            None => Err(found.unexpected("it has 0 replicas, and osd-migrate did not stop it".to_owned())),
        }
    }

    /// Deletes the Deployment of an old OSD that is gone, so that Rook creates one.
    ///
    /// It must be the very object that was observed, stopped for this record, and its pods must be gone. Its
    /// backup must exist: if Rook creates no Deployment, osd-migrate creates one from the backup.
    pub async fn drop_deployment(
        &self,
        osd: OsdId,
        record: &RecordId,
        uid: &str,
        generation: i64,
    ) -> Result<(), K8sError> {
        self.backed_up_deployment(osd, record).await?;
        let found = self.at_rest(osd, record).await?;
        found.expect_uid(uid)?;
        found.expect_generation(generation)?;
        let it = (uid, found.version.as_str());
        self.osd_deployments().delete_unchanged(&found.name, it, PropagationPolicy::Background).await
    }

    /// Adds tolerations to an OSD's pods; existing ones are success.
    ///
    /// The write is one PUT of the very object that was observed.
    pub async fn tolerate(
        &self,
        osd: OsdId,
        uid: &str,
        generation: i64,
        add: &[Toleration],
    ) -> Result<(), K8sError> {
        let found = self.expect_deployment(osd).await?;
        found.expect_uid(uid)?;
        found.expect_not_managed_externally()?;
        let Some(object) = tolerating(found.object.clone(), add) else { return Ok(()) };
        found.expect_generation(generation)?;
        self.put(&found.name, object).await
    }

    /// Returns the settings of the OSD's pods that its node Job gets: tolerations, priority class, and the
    /// rights for the device nodes of PVCs.
    ///
    /// If neither its Deployment nor a backup of it exists, these are the tolerations from the placement of
    /// OSDs, and those that the node's taints require. An OSD on PVCs then has the init containers of another
    /// one.
    pub(crate) async fn osd_pod_template(
        &self,
        osd: OsdId,
        on_pvcs: bool,
        node: &NodeName,
        placement: &[Toleration],
    ) -> Result<Value, K8sError> {
        let object = match self.osd_deployment(osd).await? {
            Some(found) => Some(found.object),
            None => match self.kind::<ConfigMap>().get_opt(&backup_name(osd)).await? {
                Some(map) => Some(parse_backup(map)?.1),
                None => None,
            },
        };
        if let Some(object) = object {
            return Ok(object.pointer("/spec/template/spec").cloned().unwrap_or_else(|| json!({})));
        }
        // The Job of a node that is gone fails, and counts. An act that is refused again and again would not.
        let all = match self.node_object_opt(node).await? {
            Some(found) => tolerations::for_node(placement, &found),
            None => placement.to_vec(),
        };
        let mut pod = json!({"tolerations": tolerations::render(&all)});
        if on_pvcs {
            osd_object::set(&mut pod, &["initContainers"], self.init_containers_on_pvcs().await?);
        }
        Ok(pod)
    }

    /// Returns the init containers of an OSD on PVCs; null if there is none.
    ///
    /// One is enough: a setting of Rook's operator decides on the rights for all of them.
    async fn init_containers_on_pvcs(&self) -> Result<Value, K8sError> {
        let mut found = Value::Null;
        let first = |deployment: DynamicObject| {
            let of_pod = deployment.data.pointer("/spec/template/spec/initContainers");
            if let Some(containers) = of_pod.filter(|_| found.is_null()) {
                found = containers.clone();
            }
            None::<()>
        };
        self.osd_deployments().list(&format!("{OF_OSDS},{DATA}"), first).await?;
        Ok(found)
    }

    pub(super) async fn expect_deployment(&self, osd: OsdId) -> Result<FoundDeployment, K8sError> {
        let missing =
            || K8sError::Unexpected { what: osd.to_string(), found: "it has no Deployment".to_owned() };
        self.osd_deployment(osd).await?.ok_or_else(missing)
    }

    pub(super) async fn backed_up_deployment(
        &self,
        osd: OsdId,
        record: &RecordId,
    ) -> Result<(String, Value), K8sError> {
        let name = backup_name(osd);
        let map = self.kind::<ConfigMap>().get(&name).await?;
        let (of, object) = parse_backup(map)?;
        if of != record.0 {
            let found = format!("it is the backup for record `{of}`, not `{record}`");
            return Err(K8sError::Unexpected { what: format!("configmap/{name}"), found });
        }
        Ok((text(&object, "/metadata/name"), object))
    }

    pub(crate) async fn put(&self, name: &str, object: Value) -> Result<(), K8sError> {
        self.osd_deployments().replace(name, &dynamic(name, object)?).await.map(drop)
    }

    pub(super) async fn create_deployment(&self, name: &str, object: Value) -> Result<(), K8sError> {
        self.osd_deployments().create(name, &dynamic(name, object)?).await.map(drop)
    }
}
