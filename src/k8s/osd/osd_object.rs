//! An OSD's Deployment as an object: as found, as written, as backed up. Pure; fields that this build does
//! not know are not lost.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::DynamicObject;
use serde_json::{Map, Value, json};

use crate::domain::expect;
use crate::domain::inspection::RecordId;
use crate::domain::osd::OsdId;
use crate::domain::storage::Toleration;
use crate::k8s::client::error::K8sError;
use crate::k8s::names::{Part, RECORD, STOPPED, backup_name, record_labels};
use crate::k8s::osd::daemon;
use crate::k8s::tolerations;

const DEPLOYMENT: &str = "deployment";

/// A Deployment as found.
pub(super) struct FoundDeployment {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) version: String,
    pub(super) object: Value,
}

impl FoundDeployment {
    pub(crate) fn new(deployment: DynamicObject) -> Self {
        let meta = &deployment.metadata;
        let [name, uid, version] =
            [&meta.name, &meta.uid, &meta.resource_version].map(|t| t.clone().unwrap_or_default());
        let mut object = serde_json::to_value(deployment).unwrap_or_default();
        // Items of a list do not contain their kind and version.
        set(&mut object, &["apiVersion"], json!("apps/v1"));
        set(&mut object, &["kind"], json!("Deployment"));
        Self { name, uid, version, object }
    }

    pub(super) fn stopped_by(&self) -> Option<String> {
        let annotation = self.object.pointer("/metadata/annotations")?.get(STOPPED)?;
        annotation.as_str().map(str::to_owned)
    }

    pub(crate) fn replicas(&self) -> u64 {
        self.object.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1)
    }

    pub(super) fn expect_uid(&self, uid: &str) -> Result<(), K8sError> {
        if expect::same_deployment(&self.uid, uid) {
            return Ok(());
        }
        Err(self.unexpected(format!("its uid is {}, not {uid}: it was recreated", self.uid)))
    }

    pub(crate) fn generation(&self) -> i64 {
        self.object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default()
    }

    /// Fails if spec or annotations changed since the observation.
    ///
    /// No act depends on the status.
    pub(super) fn expect_generation(&self, generation: i64) -> Result<(), K8sError> {
        let now = self.generation();
        if expect::unchanged_deployment(now, generation) {
            return Ok(());
        }
        Err(self.unexpected(format!(
            "its generation is {now}, not {generation}: it changed since it was observed"
        )))
    }

    /// Fails if a label says that another client works on the OSD: labels are not part of the generation.
    pub(super) fn expect_not_managed_externally(&self) -> Result<(), K8sError> {
        daemon::managed_externally(&self.object)
            .map_or(Ok(()), |by| Err(self.unexpected(format!("another client works on it: {by}"))))
    }

    /// Fails if the Deployment is being deleted, which ends when its ReplicaSets are gone.
    pub(super) fn expect_not_deleted(&self, namespace: &str) -> Result<(), K8sError> {
        if self.object.pointer("/metadata/deletionTimestamp").is_none() {
            return Ok(());
        }
        Err(self.unexpected(format!(
            "it is still being deleted, and then created again. If this takes minutes, see its finalizers: \
             kubectl -n {namespace} get deployment {} -o yaml",
            self.name
        )))
    }

    pub(super) fn unexpected(&self, found: String) -> K8sError {
        K8sError::Unexpected { what: format!("deployment/{}", self.name), found }
    }
}

/// Returns the Deployment that Stop writes.
pub(crate) fn stopped(mut deployment: Value, record: &RecordId) -> Value {
    set(&mut deployment, &["spec", "replicas"], json!(0));
    set(&mut deployment, &["metadata", "annotations", STOPPED], json!(record.0));
    deployment
}

/// Returns the Deployment that Restart writes.
pub(crate) fn running(mut deployment: Value) -> Value {
    set(&mut deployment, &["spec", "replicas"], json!(1));
    if let Some(annotations) = deployment.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut)
    {
        annotations.remove(STOPPED);
    }
    deployment
}

/// Returns the Deployment with these tolerations added to its pods; none if it has them all.
pub(super) fn tolerating(mut deployment: Value, add: &[Toleration]) -> Option<Value> {
    let list = deployment.pointer("/spec/template/spec/tolerations");
    let all = tolerations::with_added(list, add)?;
    set(&mut deployment, &["spec", "template", "spec", "tolerations"], all);
    Some(deployment)
}

/// Removes from a backed up Deployment the fields that only the server may write.
pub(crate) fn bare(mut deployment: Value) -> Value {
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

/// Returns the rendered Deployment as a PUT of the existing one.
pub(super) fn with_identity(mut new: Value, found: &FoundDeployment) -> Value {
    set(&mut new, &["metadata", "uid"], json!(found.uid));
    set(&mut new, &["metadata", "resourceVersion"], json!(found.version));
    new
}

/// Builds the ConfigMap with the backup of a Deployment.
///
/// Managed fields are left out: they are half of the size and mean nothing later.
pub(crate) fn backups(osd: OsdId, record: &RecordId, deployment: &Value) -> Result<ConfigMap, K8sError> {
    let mut deployment = deployment.clone();
    if let Some(metadata) = deployment.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    let map = json!({
        "metadata": {
            "name": backup_name(osd),
            "labels": record_labels(Part::Backup, osd, record),
            "annotations": {RECORD: record.0},
        },
        "data": {DEPLOYMENT: deployment.to_string()},
    });
    serde_json::from_value(map)
        .map_err(|e| K8sError::Malformed { what: backup_name(osd), why: e.to_string() })
}

pub(super) fn backup_of(map: &ConfigMap) -> Option<String> {
    map.metadata.annotations.as_ref()?.get(RECORD).cloned()
}

pub(super) fn parse_backup(map: ConfigMap) -> Result<(String, Value), K8sError> {
    let what = format!("configmap/{}", map.metadata.name.unwrap_or_default());
    let malformed = |why: String| K8sError::Malformed { what: what.clone(), why };
    let record = map.metadata.annotations.unwrap_or_default().remove(RECORD);
    let record = record.ok_or_else(|| malformed(format!("it has no annotation {RECORD}")))?;
    let text = map.data.unwrap_or_default().remove(DEPLOYMENT);
    let text = text.ok_or_else(|| malformed(format!("it has no key `{DEPLOYMENT}`")))?;
    let object: Value = serde_json::from_str(&text).map_err(|e| malformed(e.to_string()))?;
    Ok((record, object))
}

pub(super) fn dynamic(name: &str, object: Value) -> Result<DynamicObject, K8sError> {
    serde_json::from_value(object)
        .map_err(|e| K8sError::Malformed { what: format!("deployment/{name}"), why: e.to_string() })
}

pub(crate) fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Sets a field, and creates the objects on the path to it.
pub(crate) fn set(value: &mut Value, path: &[&str], to: Value) {
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
    fn stop_sets_replicas_and_annotation_and_restart_reverts_both() {
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
    fn deployment_backup_is_restored_without_server_fields() {
        let record = RecordId("Long-Record-2026-11-21T10:00:00Z".to_owned());
        let map = backups(OsdId(3), &record, &deployment()).unwrap();
        assert_eq!(map.metadata.name.as_deref(), Some("osd-migrate-osd-3"));
        let (of, object) = parse_backup(map).unwrap();
        assert_eq!(of, record.0);
        let expected = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "rook-ceph-osd-3", "ownerReferences": [{"uid": "c"}]},
            "spec": {"replicas": 1, "futureField": {"a": 1}}});
        assert_eq!(bare(object), expected);
    }
}
