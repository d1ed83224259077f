//! OSDs' Deployments: what they say, and the writes on them. Each write is one PUT of the whole object as it is on the
//! wire, with its uid and resourceVersion: Rook's update manager owns the fields, so none may get lost.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DynamicObject, PropagationPolicy};
use kube::core::ApiResource;
use serde_json::{Map, Value, json};

use crate::domain::act::Deploy;
use crate::domain::expect;
use crate::domain::inspection::RecordId;
use crate::domain::osd::{ClusterFsid, OsdId};
use crate::domain::policy::Declaration;

use super::kind::Kind;
use super::names::{Part, RECORD, STOPPED, kept_name, record_labels};
use super::render_osd::{self, Frame};
use super::{K8s, K8sError};

const DEPLOYMENT: &str = "deployment";

/// How far one call of [`K8s::deploy`] came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deployed {
    /// The Deployment starts the new OSD now.
    Done,
    /// The old Deployment's selector, which can't be changed, is not Rook's present one: it is being deleted. Call again.
    Deleting,
}

impl K8s {
    fn osd_deployments(&self) -> Kind<'_, DynamicObject> {
        self.untyped(&ApiResource::erase::<Deployment>(&()))
    }

    /// The Deployment of an OSD, by label: its name changed with the years.
    async fn osd_deployment(&self, osd: OsdId) -> Result<Option<Found>, K8sError> {
        let selector = format!("app=rook-ceph-osd,ceph-osd-id={}", osd.0);
        let mut found = self.osd_deployments().list(&selector, |d| Some(Found::new(d))).await?;
        if found.len() > 1 {
            let names: Vec<_> = found.into_iter().map(|f| f.name).collect();
            let found = format!("{} Deployments run it: {}", names.len(), names.join(", "));
            return Err(K8sError::Unexpected { what: osd.to_string(), found });
        }
        Ok(found.pop())
    }

    /// Keeps the Deployment as found, if nobody wrote it since it was looked at. Kept already for this record is success; a
    /// copy for another record is of one that is closed (an OSD has one open record at most) and gives way.
    pub async fn keep(
        &self,
        osd: OsdId,
        record: &RecordId,
        uid: &str,
        version: &str,
    ) -> Result<(), K8sError> {
        let found = self.expect_deployment(osd).await?;
        found.expect_uid(uid)?;
        found.expect_version(version)?;
        let name = kept_name(osd);
        let maps = self.kind::<ConfigMap>();
        let map = kept(osd, record, &found.object)?;
        match maps.create(&name, &map).await {
            // Made first and looked after: who closes the record meanwhile either finds the copy, or has saved.
            Ok(made) => match self.expect_ledger().await {
                Ok(()) => Ok(()),
                Err(late) => self.take_back(&made).await.and(Err(late)),
            },
            Err(K8sError::AlreadyExists(_)) => {
                let there = maps.get(&name).await?;
                if kept_for(&there).as_deref() == Some(record.0.as_str()) {
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

    /// Fails where the record is no longer open: its Deployment is neither kept nor stopped for it. What would be set for it
    /// then, nobody would take off again.
    pub async fn expect_open(&self, osd: OsdId, record: &RecordId) -> Result<(), K8sError> {
        let name = kept_name(osd);
        let kept = self.kind::<ConfigMap>().get_opt(&name).await?.as_ref().and_then(kept_for).map(RecordId);
        let stopped_by = if kept.as_ref() == Some(record) {
            None
        } else {
            self.osd_deployment(osd).await?.and_then(|found| found.stopped_by()).map(RecordId)
        };
        if expect::open_record(kept.as_ref(), stopped_by.as_ref(), record) {
            return Ok(());
        }
        let found = format!("it keeps no Deployment for record `{record}`: the record is closed");
        Err(K8sError::Unexpected { what: format!("configmap/{name}"), found })
    }

    /// Fails where the OSD is not at rest any more: stopped for this record, at 0 replicas, its pods gone. Asked right before
    /// its slot is destroyed: somebody may have started it since it was looked at.
    pub async fn expect_stopped(&self, osd: OsdId, record: &RecordId) -> Result<(), K8sError> {
        let found = self.expect_deployment(osd).await?;
        let has_pods = self.has_osd_pods(osd).await?;
        let stopped_by = found.stopped_by().map(RecordId);
        let replicas = u32::try_from(found.replicas()).unwrap_or(u32::MAX);
        if expect::at_rest(stopped_by.as_ref(), replicas, has_pods, record) {
            return Ok(());
        }
        Err(found
            .unexpected(format!("it is not stopped for record `{record}` any more, or its pod is there")))
    }

    /// Stops an OSD: one PUT with replicas 0 and our annotation, of the very object that was looked at. Stopped for this
    /// record already is success.
    pub async fn stop(
        &self,
        osd: OsdId,
        record: &RecordId,
        uid: &str,
        version: &str,
    ) -> Result<(), K8sError> {
        let found = self.expect_deployment(osd).await?;
        found.expect_uid(uid)?;
        match found.stopped_by() {
            Some(by) if by == record.0 && found.replicas() == 0 => return Ok(()),
            Some(by) if by != record.0 => return Err(found.unexpected(format!("stopped for record `{by}`"))),
            Some(_) | None => {}
        }
        found.expect_version(version)?;
        self.put(&found.name, stopped(found.object, record)).await
    }

    /// Undoes Stop. Where somebody deleted the Deployment, it is made again from the kept copy.
    pub async fn restart(&self, osd: OsdId, record: &RecordId) -> Result<(), K8sError> {
        let Some(found) = self.osd_deployment(osd).await? else {
            let (name, object) = self.kept_deployment(osd, record).await?;
            return self.create_deployment(&name, running(bare(object))).await;
        };
        match found.stopped_by() {
            Some(by) if by == record.0 => self.put(&found.name, running(found.object)).await,
            Some(by) => Err(found.unexpected(format!("stopped for record `{by}`, not `{record}`"))),
            None if found.replicas() > 0 => Ok(()),
            None => Err(found.unexpected("at 0 replicas, and not by us".to_owned())),
        }
    }

    /// Brings the Deployment back in Rook's present shape, starting the new fsid. One step a call; done already is success.
    pub async fn deploy(
        &self,
        deploy: &Deploy,
        declaration: &Declaration,
        cluster: &ClusterFsid,
    ) -> Result<Deployed, K8sError> {
        let hostname = self.hostname(&deploy.node).await?;
        let frame =
            Frame { namespace: self.namespace(), cluster: *cluster, declaration, hostname: &hostname };
        let Some(found) = self.osd_deployment(deploy.osd).await? else {
            let (_, old) = self.kept_deployment(deploy.osd, &deploy.record).await?;
            let new = render_osd::render(deploy, &old, &frame);
            let name = text(&new, "/metadata/name");
            return self.create_deployment(&name, new).await.map(|()| Deployed::Done);
        };
        if found.object.pointer("/metadata/deletionTimestamp").is_some() {
            return Ok(Deployed::Deleting);
        }
        let starts = super::daemon::fsid_of(&found.object);
        match found.stopped_by() {
            Some(by) if by == deploy.record.0 => {}
            None if starts == Some(deploy.fsid) => return Ok(Deployed::Done),
            // Somebody may have started the old OSD again, whose slot is gone: what counts is that the record is open.
            Some(_) | None => self.expect_open(deploy.osd, &deploy.record).await?,
        }
        let new = render_osd::render(deploy, &found.object, &frame);
        if text(&new, "/metadata/name") == found.name
            && new.pointer("/spec/selector") == found.object.pointer("/spec/selector")
        {
            return self.put(&found.name, with_identity(new, &found)).await.map(|()| Deployed::Done);
        }
        // Without the copy, a deleted Deployment could not be made again.
        self.kept_deployment(deploy.osd, &deploy.record).await?;
        self.osd_deployments().delete(&found.name, &found.uid, PropagationPolicy::Foreground).await?;
        Ok(Deployed::Deleting)
    }

    /// Tolerations and priority class that let a node Job onto the node where the OSD runs; none where neither the
    /// Deployment nor a copy of it is there.
    pub(super) async fn osd_pod_template(&self, osd: OsdId) -> Result<Value, K8sError> {
        let object = match self.osd_deployment(osd).await? {
            Some(found) => found.object,
            None => match self.kind::<ConfigMap>().get_opt(&kept_name(osd)).await? {
                Some(map) => parse_kept(map)?.1,
                None => return Ok(json!({})),
            },
        };
        Ok(object.pointer("/spec/template/spec").cloned().unwrap_or_else(|| json!({})))
    }

    async fn expect_deployment(&self, osd: OsdId) -> Result<Found, K8sError> {
        let missing =
            || K8sError::Unexpected { what: osd.to_string(), found: "it has no Deployment".to_owned() };
        self.osd_deployment(osd).await?.ok_or_else(missing)
    }

    async fn kept_deployment(&self, osd: OsdId, record: &RecordId) -> Result<(String, Value), K8sError> {
        let name = kept_name(osd);
        let map = self.kind::<ConfigMap>().get(&name).await?;
        let (of, object) = parse_kept(map)?;
        if of != record.0 {
            let found = format!("it keeps the Deployment for record `{of}`, not `{record}`");
            return Err(K8sError::Unexpected { what: format!("configmap/{name}"), found });
        }
        Ok((text(&object, "/metadata/name"), object))
    }

    async fn put(&self, name: &str, object: Value) -> Result<(), K8sError> {
        self.osd_deployments().replace(name, &dynamic(name, object)?).await.map(drop)
    }

    async fn create_deployment(&self, name: &str, object: Value) -> Result<(), K8sError> {
        self.osd_deployments().create(name, &dynamic(name, object)?).await.map(drop)
    }
}

/// A Deployment as found.
struct Found {
    name: String,
    uid: String,
    version: String,
    object: Value,
}

impl Found {
    fn new(deployment: DynamicObject) -> Self {
        let meta = &deployment.metadata;
        let [name, uid, version] =
            [&meta.name, &meta.uid, &meta.resource_version].map(|t| t.clone().unwrap_or_default());
        let mut object = serde_json::to_value(deployment).unwrap_or_default();
        // Items of a list don't say what they are.
        set(&mut object, &["apiVersion"], json!("apps/v1"));
        set(&mut object, &["kind"], json!("Deployment"));
        Self { name, uid, version, object }
    }

    fn stopped_by(&self) -> Option<String> {
        let annotation = self.object.pointer("/metadata/annotations")?.get(STOPPED)?;
        annotation.as_str().map(str::to_owned)
    }

    fn replicas(&self) -> u64 {
        self.object.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1)
    }

    fn expect_uid(&self, uid: &str) -> Result<(), K8sError> {
        if expect::same_deployment(&self.uid, uid) {
            return Ok(());
        }
        Err(self.unexpected(format!("its uid is {}, not {uid}: it was made anew", self.uid)))
    }

    fn expect_version(&self, version: &str) -> Result<(), K8sError> {
        if expect::unchanged_deployment(&self.version, version) {
            return Ok(());
        }
        let now = format!(
            "its resourceVersion is {}, not {version}: it changed since it was looked at",
            self.version
        );
        Err(self.unexpected(now))
    }

    fn unexpected(&self, found: String) -> K8sError {
        K8sError::Unexpected { what: format!("deployment/{}", self.name), found }
    }
}

/// The Deployment that Stop writes.
fn stopped(mut deployment: Value, record: &RecordId) -> Value {
    set(&mut deployment, &["spec", "replicas"], json!(0));
    set(&mut deployment, &["metadata", "annotations", STOPPED], json!(record.0));
    deployment
}

/// The Deployment that Restart writes.
fn running(mut deployment: Value) -> Value {
    set(&mut deployment, &["spec", "replicas"], json!(1));
    if let Some(annotations) = deployment.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut)
    {
        annotations.remove(STOPPED);
    }
    deployment
}

/// A kept Deployment without what only the server may write.
fn bare(mut deployment: Value) -> Value {
    if let Some(object) = deployment.as_object_mut() {
        object.remove("status");
    }
    if let Some(metadata) = deployment.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in [
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "generation",
            "managedFields",
            "selfLink",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "finalizers",
        ] {
            metadata.remove(field);
        }
    }
    deployment
}

/// The rendered Deployment as a PUT of the one that is there.
fn with_identity(mut new: Value, found: &Found) -> Value {
    set(&mut new, &["metadata", "uid"], json!(found.uid));
    set(&mut new, &["metadata", "resourceVersion"], json!(found.version));
    new
}

/// The ConfigMap that keeps a Deployment. Managed fields stay out: they are half of the size and mean nothing later.
fn kept(osd: OsdId, record: &RecordId, deployment: &Value) -> Result<ConfigMap, K8sError> {
    let mut deployment = deployment.clone();
    if let Some(metadata) = deployment.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    let map = json!({
        "metadata": {
            "name": kept_name(osd),
            "labels": record_labels(Part::Kept, osd, record),
            "annotations": {RECORD: record.0},
        },
        "data": {DEPLOYMENT: deployment.to_string()},
    });
    serde_json::from_value(map).map_err(|e| K8sError::Malformed { what: kept_name(osd), why: e.to_string() })
}

fn kept_for(map: &ConfigMap) -> Option<String> {
    map.metadata.annotations.as_ref()?.get(RECORD).cloned()
}

fn parse_kept(map: ConfigMap) -> Result<(String, Value), K8sError> {
    let what = format!("configmap/{}", map.metadata.name.unwrap_or_default());
    let malformed = |why: String| K8sError::Malformed { what: what.clone(), why };
    let record = map.metadata.annotations.unwrap_or_default().remove(RECORD);
    let record = record.ok_or_else(|| malformed(format!("it has no annotation {RECORD}")))?;
    let text = map.data.unwrap_or_default().remove(DEPLOYMENT);
    let text = text.ok_or_else(|| malformed(format!("it has no key `{DEPLOYMENT}`")))?;
    let object: Value = serde_json::from_str(&text).map_err(|e| malformed(e.to_string()))?;
    Ok((record, object))
}

fn dynamic(name: &str, object: Value) -> Result<DynamicObject, K8sError> {
    serde_json::from_value(object)
        .map_err(|e| K8sError::Malformed { what: format!("deployment/{name}"), why: e.to_string() })
}

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Sets a field, making the objects on the way to it.
fn set(value: &mut Value, path: &[&str], to: Value) {
    let Some((first, rest)) = path.split_first() else {
        *value = to;
        return;
    };
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    if let Some(object) = value.as_object_mut() {
        set(object.entry((*first).to_owned()).or_insert(Value::Null), rest, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deployment() -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "rook-ceph-osd-3", "uid": "u", "resourceVersion": "9", "generation": 2,
                "managedFields": [{"manager": "rook"}], "ownerReferences": [{"uid": "c"}]},
            "spec": {"replicas": 1, "futureField": {"a": 1}}, "status": {"replicas": 1}})
    }

    #[test]
    fn stop_changes_replicas_and_one_annotation_and_restart_takes_both_back() {
        let record = RecordId("r1".to_owned());
        let down = stopped(deployment(), &record);
        assert_eq!(down.pointer("/spec/replicas"), Some(&json!(0)));
        assert_eq!(down.pointer("/metadata/annotations/osd-migrate.io~1stopped"), Some(&json!("r1")));
        assert_eq!(down.pointer("/metadata/resourceVersion"), Some(&json!("9")));
        let mut up = running(down);
        up.get_mut("metadata").and_then(Value::as_object_mut).unwrap().remove("annotations");
        assert_eq!(up, deployment());
    }

    #[test]
    fn a_kept_deployment_comes_back_without_what_the_server_wrote() {
        let record = RecordId("Long-Record-2026-11-21T10:00:00Z".to_owned());
        let map = kept(OsdId(3), &record, &deployment()).unwrap();
        assert_eq!(map.metadata.name.as_deref(), Some("osd-migrate-osd-3"));
        let (of, object) = parse_kept(map).unwrap();
        assert_eq!(of, record.0);
        let expected = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "rook-ceph-osd-3", "ownerReferences": [{"uid": "c"}]},
            "spec": {"replicas": 1, "futureField": {"a": 1}}});
        assert_eq!(bare(object), expected);
    }
}
