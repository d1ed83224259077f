//! The CephCluster, read untyped because its schema differs between Rook versions, and the label on it that
//! stops Rook's reconciles.

use chrono::{DateTime, Utc};
use kube::api::DynamicObject;
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::domain::commands::Names;
use crate::domain::expect;
use crate::domain::osd::ObjectStore;
use crate::domain::policy::Declaration;
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::{Elsewhere, K8sError};
use crate::k8s::client::kind::Kind;
use crate::k8s::names::FENCED_AT;
use crate::k8s::own::events::About;
use crate::k8s::rook::storage::{self, is_true};

/// Rook's label: if a CephCluster has it, with any value, Rook (1.19.2 and later) starts no reconcile of it.
pub const FENCE: &str = "ceph.rook.io/do-not-reconcile";

const CONFIRMATION: &str = "yes-really-migrate-osds";
const CONFIRMATION_BEFORE: &str = "yes-really-update-store";

impl K8s {
    pub(in crate::k8s) fn ceph_clusters(&self) -> Kind<'_, DynamicObject> {
        self.untyped(&ceph_cluster_kind())
    }

    pub(super) fn ceph_clusters_everywhere(&self) -> Kind<'_, DynamicObject> {
        self.untyped_everywhere(&ceph_cluster_kind())
    }

    /// Returns the names for commands in messages.
    pub fn names(&self) -> Names {
        Names {
            namespace: self.namespace().to_owned(),
            cluster: self.cluster_name.get().or(self.place.cluster.as_ref()).cloned(),
            operator_namespace: self.place.operator_namespace.clone(),
            access: self.place.access.clone(),
        }
    }

    /// Returns the CephCluster: the one that was named, or else the only one in the namespace.
    pub(crate) async fn ceph_cluster(&self) -> Result<DynamicObject, K8sError> {
        let mut found = match self.ceph_clusters().list("", Some).await {
            Ok(found) => found,
            Err(K8sError::Other { code: 404, .. }) => return Err(K8sError::NoRook),
            Err(error) => return Err(error),
        };
        let namespace = self.namespace().to_owned();
        // Once it was read, another CephCluster that is created beside it does not matter.
        let name = self.place.cluster.as_ref().or_else(|| self.cluster_name.get()).cloned();
        if let Some(name) = &name {
            found.retain(|c| c.metadata.name.as_ref() == Some(name));
        }
        match (found.pop(), found.len()) {
            (Some(only), 0) => {
                let _known = self.cluster_name.set(only.metadata.name.clone().unwrap_or_default());
                Ok(only)
            }
            (None, _) => Err(K8sError::NoCephCluster {
                namespace,
                name,
                elsewhere: Elsewhere::Unknown,
                kubectl: self.server.kubectl(),
            }),
            (Some(last), _) => {
                let mut names: Vec<_> =
                    found.into_iter().chain([last]).filter_map(|c| c.metadata.name).collect();
                names.sort();
                Err(K8sError::SeveralCephClusters { namespace, names })
            }
        }
    }

    /// Returns the CephCluster in the form in which an event refers to it.
    pub async fn about_cluster(&self) -> Result<About, K8sError> {
        Ok(About::cluster(&declaration(&self.ceph_cluster().await?)?))
    }

    /// Sets the fence, and with it the resourceVersion on which it was set, unless another fence exists.
    ///
    /// The patch requires the version that is read here, before the ledger is checked. Otherwise, a runner
    /// that was frozen would set the fence again after another runner removed it (ADR 0024). Rook writes the
    /// CephCluster each minute, so the version of the last observation would often be refused.
    pub async fn fence(&self, value: &str) -> Result<(), K8sError> {
        let cluster = self.ceph_cluster().await?;
        let (name, what) = name_of(&cluster);
        // The check comes after the read: a fence that was set and removed between the two changed the
        // CephCluster, and the patch fails.
        self.expect_ledger().await?;
        let there = fence_of(&cluster);
        if there.as_deref() != Some(value) && !expect::no_fence(there.as_deref()) {
            let found = format!("it already has the label {FENCE}={}", there.unwrap_or_default());
            return Err(K8sError::Unexpected { what, found });
        }
        self.ceph_clusters().json_patch(&name, &fence_patch(&cluster, value)).await
    }

    /// Removes the fence, if it has our value; no fence is success.
    pub async fn unfence(&self, value: &str) -> Result<(), K8sError> {
        let cluster = self.ceph_cluster().await?;
        let (name, what) = name_of(&cluster);
        match fence_of(&cluster) {
            None => Ok(()),
            Some(there) if expect::our_fence(Some(&there), value) => {
                self.ceph_clusters().json_patch(&name, &unfence_patch(&cluster, value)).await
            }
            Some(there) => {
                let found = format!("its label {FENCE} is `{there}`, not `{value}`");
                Err(K8sError::Unexpected { what, found })
            }
        }
    }
}

fn ceph_cluster_kind() -> ApiResource {
    let kind = GroupVersionKind::gvk("ceph.rook.io", "v1", "CephCluster");
    ApiResource::from_gvk_with_plural(&kind, "cephclusters")
}

fn name_of(cluster: &DynamicObject) -> (String, String) {
    let name = cluster.metadata.name.clone().unwrap_or_default();
    let what = format!("cephcluster/{name}");
    (name, what)
}

/// Returns the resourceVersion of the CephCluster.
pub(crate) fn version_of(cluster: &DynamicObject) -> String {
    cluster.metadata.resource_version.clone().unwrap_or_default()
}

/// Returns the value of the fence on a CephCluster, if it has one.
pub(crate) fn fence_of(cluster: &DynamicObject) -> Option<String> {
    cluster.metadata.labels.as_ref()?.get(FENCE).cloned()
}

/// Returns the version on which our fence was set.
pub(crate) fn fenced_at(cluster: &DynamicObject) -> Option<u64> {
    cluster.metadata.annotations.as_ref()?.get(FENCED_AT)?.parse().ok()
}

/// Returns when Rook last wrote Ceph's status.
///
/// Rook writes it once a minute, unless `spec.healthCheck.daemonHealth.status` sets another interval
/// (1.19.10).
pub(crate) fn checked_by_rook(cluster: &DynamicObject) -> Option<DateTime<Utc>> {
    let at = cluster.data.pointer("/status/ceph/lastChecked")?.as_str()?;
    DateTime::parse_from_rfc3339(at).ok().map(|at| at.to_utc())
}

/// Returns the image whose release Rook has detected.
///
/// That is the image of `spec.cephVersion`, once Rook has reconciled it
/// (pkg/operator/ceph/cluster/version.go, `updateClusterCephVersion`, v1.20.6; older versions do the same).
pub(crate) fn image_of_rook(cluster: &DynamicObject) -> Option<String> {
    let image = cluster.data.pointer("/status/version/image")?.as_str()?;
    Some(image.to_owned()).filter(|image| !image.is_empty())
}

/// Builds the patch that sets the fence.
///
/// A JSON patch can't test that a key is absent. So this patch tests that nothing at all changed since the
/// key was read as absent.
fn fence_patch(cluster: &DynamicObject, value: &str) -> Value {
    let mut operations = vec![
        json!({"op": "test", "path": "/metadata/uid", "value": cluster.metadata.uid}),
        json!({"op": "test", "path": "/metadata/resourceVersion", "value": cluster.metadata.resource_version}),
    ];
    let maps = [
        ("labels", cluster.metadata.labels.is_none()),
        ("annotations", cluster.metadata.annotations.is_none()),
    ];
    for (map, _) in maps.iter().filter(|(_, is_missing)| *is_missing) {
        operations.push(json!({"op": "add", "path": format!("/metadata/{map}"), "value": {}}));
    }
    operations.push(json!({"op": "add", "path": label_path(), "value": value}));
    operations
        .push(json!({"op": "add", "path": fenced_at_path(), "value": cluster.metadata.resource_version}));
    Value::Array(operations)
}

fn unfence_patch(cluster: &DynamicObject, value: &str) -> Value {
    let mut operations = vec![
        json!({"op": "test", "path": label_path(), "value": value}),
        json!({"op": "remove", "path": label_path()}),
    ];
    if cluster.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(FENCED_AT)) {
        operations.push(json!({"op": "remove", "path": fenced_at_path()}));
    }
    Value::Array(operations)
}

fn label_path() -> String {
    format!("/metadata/labels/{}", FENCE.replace('/', "~1"))
}

fn fenced_at_path() -> String {
    format!("/metadata/annotations/{}", FENCED_AT.replace('/', "~1"))
}

/// Reads the declaration in the CephCluster.
pub(crate) fn declaration(cluster: &DynamicObject) -> Result<Declaration, K8sError> {
    let (name, what) = name_of(cluster);
    let spec = cluster.data.get("spec").cloned().unwrap_or_default();
    let text = |path: &str| spec.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let yes = |path: &str| spec.pointer(path).is_some_and(is_true);
    let data_dir = text("/dataDirHostPath");
    let missing = |why: &str| K8sError::Malformed { what: what.clone(), why: why.to_owned() };
    let external = yes("/external/enable");
    if !external && !data_dir.starts_with('/') {
        return Err(missing("spec.dataDirHostPath is not an absolute path"));
    }
    let uid = cluster.metadata.uid.clone().ok_or_else(|| missing("it has no uid"))?;
    let store = text("/storage/store/type");
    let regex = text("/disruptionManagement/pgHealthyRegex");
    let kms = text("/security/kms/connectionDetails/KMS_PROVIDER");
    Ok(Declaration {
        name,
        uid,
        api_version: cluster
            .types
            .as_ref()
            .map_or_else(|| "ceph.rook.io/v1".to_owned(), |t| t.api_version.clone()),
        store: if store.is_empty() { ObjectStore::bluestore() } else { ObjectStore(store) },
        confirmed: text("/storage/migration/confirmation") == CONFIRMATION
            || text("/storage/store/updateStore") == CONFIRMATION_BEFORE,
        data_dir: data_dir.trim_end_matches('/').to_owned(),
        image: text("/cephVersion/image"),
        external,
        removes_out_osds: yes("/removeOSDsIfOutAndSafeToRemove"),
        resets_weights: yes("/storage/allowOsdCrushWeightUpdate"),
        // Before Rook 1.1, the field was `hostNetwork: true`.
        host_network: text("/network/provider") == "host" || yes("/network/hostNetwork"),
        binds: match (yes("/network/dualStack"), text("/network/ipFamily").as_str()) {
            (true, _) => Some((true, true)),
            (false, "IPv4") => Some((true, false)),
            (false, "IPv6") => Some((false, true)),
            (false, _) => None,
        },
        prepare_resources: storage::resources(spec.pointer("/resources/prepareosd")),
        storage: storage::declared(&spec),
        pg_healthy_regex: (!regex.is_empty()).then_some(regex),
        kms: (!kms.is_empty()).then_some(kms),
        rotates_keys: yes("/security/keyRotation/enabled"),
    })
}

/// Returns the owner references of an object that belongs to the CephCluster, as Rook sets them.
pub(crate) fn owned_by(declaration: &Declaration) -> Value {
    json!([{"apiVersion": declaration.api_version, "kind": "CephCluster", "name": declaration.name,
        "uid": declaration.uid, "controller": true, "blockOwnerDeletion": true}])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::storage::Resources;

    fn cluster(spec: &Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "ceph.rook.io/v1", "kind": "CephCluster",
            "metadata": {"name": "rook-ceph", "namespace": "rook-ceph", "uid": "u1", "resourceVersion": "7"},
            "spec": spec,
        }))
        .unwrap()
    }

    fn declared(spec: &Value) -> Declaration {
        declaration(&cluster(spec)).unwrap()
    }

    #[test]
    fn last_checked_is_read_from_the_cephcluster_status() {
        let checked = |status: Value| {
            let mut cluster = cluster(&json!({}));
            cluster.data["status"] = status;
            checked_by_rook(&cluster).map(|at| at.to_rfc3339())
        };
        let said = checked(json!({"ceph": {"lastChecked": "2026-11-02T23:59:10Z", "health": "HEALTH_OK"}}));
        assert_eq!(said.as_deref(), Some("2026-11-02T23:59:10+00:00"));
        for silent in [json!({}), json!({"ceph": {"lastChecked": ""}}), Value::Null] {
            assert_eq!(checked(silent), None);
        }
    }

    #[test]
    fn minimal_cephcluster_declares_bluestore() {
        let spec = json!({"dataDirHostPath": "/var/lib/rook/", "cephVersion": {"image": "quay.io/ceph/ceph:v16.2.15"},
            "storage": {"useAllNodes": true, "config": {"osdsPerDevice": "1", "databaseSizeMB": "0"}}});
        let found = declared(&spec);
        assert_eq!(found.store, ObjectStore::bluestore());
        assert_eq!(found.data_dir, "/var/lib/rook");
        assert_eq!(found.image, "quay.io/ceph/ceph:v16.2.15");
        assert_eq!(found.api_version, "ceph.rook.io/v1");
        assert!(!found.confirmed && !found.external && !found.host_network);
        assert_eq!(found.pg_healthy_regex, None);
        assert_eq!(found.prepare_resources, Resources::default());
    }

    #[test]
    fn prepare_resources_are_read_as_numbers_and_as_text() {
        let resources = json!({"prepareosd": {"requests": {"cpu": "500m"}, "limits": {"cpu": 2, "memory": "1Gi"}}, "osd": {}});
        let found = declared(&json!({"dataDirHostPath": "/r", "resources": resources})).prepare_resources;
        let text =
            |all: &[(&str, &str)]| all.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        assert_eq!(found.requests, text(&[("cpu", "500m")]));
        assert_eq!(found.limits, text(&[("cpu", "2"), ("memory", "1Gi")]));
    }

    #[test]
    fn network_spec_decides_which_ip_families_daemons_bind() {
        let binds = |network: Value| declared(&json!({"dataDirHostPath": "/r", "network": network})).binds;
        assert_eq!(binds(json!({"provider": "host"})), None);
        assert_eq!(binds(json!({"ipFamily": "IPv4"})), Some((true, false)));
        assert_eq!(binds(json!({"ipFamily": "IPv6", "dualStack": false})), Some((false, true)));
        assert_eq!(binds(json!({"ipFamily": "IPv6", "dualStack": true})), Some((true, true)));
    }

    #[test]
    fn ceph_image_of_rook_is_read_from_the_cephcluster_status() {
        let known = |status: Value| {
            let mut cluster = cluster(&json!({}));
            cluster.data["status"] = status;
            image_of_rook(&cluster)
        };
        let version = json!({"image": "quay.io/ceph/ceph:v18.2.7", "version": "18.2.7-0"});
        assert_eq!(known(json!({"version": version})).as_deref(), Some("quay.io/ceph/ceph:v18.2.7"));
        assert_eq!((known(json!({})), known(json!({"version": {"image": ""}}))), (None, None));
    }

    #[test]
    fn confirmation_counts_in_both_spellings_and_in_no_other() {
        let with = |storage: Value| declared(&json!({"dataDirHostPath": "/r", "storage": storage})).confirmed;
        assert!(with(json!({"migration": {"confirmation": "yes-really-migrate-osds"}})));
        assert!(with(json!({"store": {"updateStore": "yes-really-update-store"}})));
        assert!(!with(json!({"migration": {"confirmation": "yes"}})));
        assert!(!with(json!({"store": {"updateStore": "yes-really-migrate-osds"}})));
    }

    #[test]
    fn data_dir_may_be_missing_only_in_an_external_cluster() {
        assert!(matches!(declaration(&cluster(&json!({}))), Err(K8sError::Malformed { .. })));
        assert!(declared(&json!({"external": {"enable": true}})).external);
    }

    #[test]
    fn fence_is_set_only_on_the_observed_uid_and_version() {
        let expected = json!([
            {"op": "test", "path": "/metadata/uid", "value": "u1"},
            {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
            {"op": "add", "path": "/metadata/labels", "value": {}},
            {"op": "add", "path": "/metadata/annotations", "value": {}},
            {"op": "add", "path": "/metadata/labels/ceph.rook.io~1do-not-reconcile", "value": "osd-migrate-1"},
            {"op": "add", "path": "/metadata/annotations/osd-migrate.io~1fenced-at", "value": "7"},
        ]);
        assert_eq!(fence_patch(&cluster(&json!({})), "osd-migrate-1"), expected);
    }

    #[test]
    fn fence_is_removed_only_if_it_has_our_value() {
        let path = "/metadata/labels/ceph.rook.io~1do-not-reconcile";
        let test = json!({"op": "test", "path": path, "value": "osd-migrate-1"});
        let remove = |path: &str| json!({"op": "remove", "path": path});
        let mut found = cluster(&json!({}));
        assert_eq!(unfence_patch(&found, "osd-migrate-1"), json!([test, remove(path)]));
        // The annotation with the version on which the fence was set is removed with the fence.
        found.metadata.annotations = Some([(FENCED_AT.to_owned(), "7".to_owned())].into());
        assert_eq!(fenced_at(&found), Some(7));
        let at = "/metadata/annotations/osd-migrate.io~1fenced-at";
        assert_eq!(unfence_patch(&found, "osd-migrate-1"), json!([test, remove(path), remove(at)]));
    }
}
