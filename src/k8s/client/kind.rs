//! One kind of object and the calls on it. Each call has a timeout, is counted, and names itself when it
//! fails.

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::AsyncBufRead;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{
    Api, DeleteParams, DynamicObject, LogParams, Patch, PatchParams, PostParams, Preconditions,
    PropagationPolicy,
};
use kube::core::{ApiResource, ClusterResourceScope, NamespaceResourceScope, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::k8s::client::access::{FIELD_MANAGER, K8s};
use crate::k8s::client::call::Call;
use crate::k8s::client::error::K8sError;

/// A kind of object, in our namespace or cluster-scoped.
pub(crate) struct Kind<'a, K> {
    pub(super) k8s: &'a K8s,
    pub(super) api: Api<K>,
    pub(super) resource: String,
    namespace: Option<String>,
}

fn rbac_name(group: &str, plural: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}

impl K8s {
    /// Returns a typed kind in our namespace.
    pub(crate) fn kind<K>(&self) -> Kind<'_, K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        self.kind_in(&self.place.namespace)
    }

    /// Returns a typed kind in another namespace.
    pub(crate) fn kind_in<K>(&self, namespace: &str) -> Kind<'_, K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Kind {
            k8s: self,
            api: Api::namespaced(self.client.clone(), namespace),
            resource: rbac_name(&K::group(&()), &K::plural(&())),
            namespace: Some(namespace.to_owned()),
        }
    }

    /// Returns a typed cluster-scoped kind.
    pub(crate) fn cluster_kind<K>(&self) -> Kind<'_, K>
    where
        K: Resource<DynamicType = (), Scope = ClusterResourceScope>,
    {
        Kind {
            k8s: self,
            api: Api::all(self.client.clone()),
            resource: rbac_name(&K::group(&()), &K::plural(&())),
            namespace: None,
        }
    }

    /// Returns a kind whose objects are read as they are on the wire.
    ///
    /// This is for objects that osd-migrate writes back but does not own: a typed object loses the fields
    /// that this build does not know.
    pub(crate) fn untyped(&self, resource: &ApiResource) -> Kind<'_, DynamicObject> {
        self.untyped_in(resource, &self.place.namespace)
    }

    /// Returns an untyped kind in another namespace.
    pub(crate) fn untyped_in(&self, resource: &ApiResource, namespace: &str) -> Kind<'_, DynamicObject> {
        Kind {
            k8s: self,
            api: Api::namespaced_with(self.client.clone(), namespace, resource),
            resource: rbac_name(&resource.group, &resource.plural),
            namespace: Some(namespace.to_owned()),
        }
    }

    /// Returns an untyped kind in all namespaces.
    pub(crate) fn untyped_everywhere(&self, resource: &ApiResource) -> Kind<'_, DynamicObject> {
        Kind {
            k8s: self,
            api: Api::all_with(self.client.clone(), resource),
            resource: rbac_name(&resource.group, &resource.plural),
            namespace: None,
        }
    }
}

impl<K> Kind<'_, K>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    pub(in crate::k8s) fn call(&self, verb: &'static str, name: Option<&str>) -> Call {
        Call {
            verb,
            resource: self.resource.clone(),
            name: name.map(str::to_owned),
            namespace: self.namespace.clone(),
        }
    }

    pub(super) async fn answer<T>(
        &self,
        call: Call,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, K8sError> {
        let limit = self.k8s.limit_of(&call);
        self.k8s.count_request();
        match tokio::time::timeout(limit, request).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(K8sError::of(call, error, limit, &self.k8s.server)),
            Err(_) => Err(K8sError::Timeout { call, limit, server: Arc::clone(&self.k8s.server) }),
        }
    }

    /// Reads one object.
    pub(crate) async fn get(&self, name: &str) -> Result<K, K8sError> {
        self.read(self.call("get", Some(name)), || self.api.get(name)).await
    }

    /// Reads one object, if it exists.
    pub(crate) async fn get_opt(&self, name: &str) -> Result<Option<K>, K8sError> {
        match self.get(name).await {
            Ok(object) => Ok(Some(object)),
            Err(K8sError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads the resourceVersion of an object without its contents.
    pub(crate) async fn version(&self, name: &str) -> Result<Option<String>, K8sError> {
        match self.read(self.call("get", Some(name)), || self.api.get_metadata(name)).await {
            Ok(object) => Ok(object.metadata.resource_version),
            Err(K8sError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Deletes an object, if it has this uid; an object that is already deleted is success.
    ///
    /// Another object of that name is a conflict.
    pub(crate) async fn delete(
        &self,
        name: &str,
        uid: &str,
        policy: PropagationPolicy,
    ) -> Result<(), K8sError> {
        let it = Preconditions { resource_version: None, uid: Some(uid.to_owned()) };
        self.delete_where(name, it, policy).await
    }

    /// Deletes an object, if it has this uid and was not written since this version.
    pub(crate) async fn delete_unchanged(
        &self,
        name: &str,
        (uid, version): (&str, &str),
        policy: PropagationPolicy,
    ) -> Result<(), K8sError> {
        let it = Preconditions { resource_version: Some(version.to_owned()), uid: Some(uid.to_owned()) };
        self.delete_where(name, it, policy).await
    }

    async fn delete_where(
        &self,
        name: &str,
        it: Preconditions,
        policy: PropagationPolicy,
    ) -> Result<(), K8sError> {
        let params = DeleteParams {
            propagation_policy: Some(policy),
            preconditions: Some(it),
            ..DeleteParams::default()
        };
        match self.answer(self.call("delete", Some(name)), self.api.delete(name, &params)).await {
            Ok(_) | Err(K8sError::NotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Applies a merge patch.
    pub(crate) async fn merge(&self, name: &str, patch: &Value) -> Result<K, K8sError> {
        let patch = Patch::Merge(patch);
        self.answer(self.call("patch", Some(name)), self.api.patch(name, &patch_params(), &patch)).await
    }

    /// Applies a merge patch to the status of an object.
    pub(crate) async fn merge_status(&self, name: &str, patch: &Value) -> Result<(), K8sError> {
        let mut call = self.call("patch", Some(name));
        call.resource = format!("{}/status", call.resource);
        let patch = Patch::Merge(patch);
        self.answer(call, self.api.patch_status(name, &patch_params(), &patch)).await.map(drop)
    }

    /// Applies server-side an object that only osd-migrate writes: creates it, or takes over its fields.
    pub(crate) async fn apply(&self, name: &str, object: &Value) -> Result<K, K8sError> {
        let params = PatchParams::apply(FIELD_MANAGER).force();
        self.answer(self.call("patch", Some(name)), self.api.patch(name, &params, &Patch::Apply(object)))
            .await
    }
}

impl Kind<'_, Pod> {
    /// Opens the log of a container.
    ///
    /// The call has no timeout, because the server may answer only when there is a line.
    pub(crate) async fn log(
        &self,
        name: &str,
        params: &LogParams,
    ) -> Result<impl AsyncBufRead + use<>, K8sError> {
        let mut call = self.call("get", Some(name));
        call.resource = format!("{}/log", call.resource);
        self.k8s.count_request();
        self.api
            .log_stream(name, params)
            .await
            .map_err(|error| K8sError::of(call, error, Duration::MAX, &self.k8s.server))
    }
}

impl Kind<'_, DynamicObject> {
    /// Applies a JSON patch; a failed `test` is a conflict.
    pub(crate) async fn json_patch(&self, name: &str, operations: &Value) -> Result<(), K8sError> {
        self.json_patch_of(None, name, operations).await
    }

    /// Applies a JSON patch to an object or to a subresource.
    pub(crate) async fn json_patch_of(
        &self,
        subresource: Option<&str>,
        name: &str,
        operations: &Value,
    ) -> Result<(), K8sError> {
        let mut call = self.call("patch", Some(name));
        if let Some(part) = subresource {
            call.resource = format!("{}/{part}", call.resource);
        }
        let failed = |message: String| K8sError::Other { call: call.clone(), code: 0, message };
        // kube's own `Patch::Json` costs one more crate; only the content type differs.
        let (request, params) = (kube::core::Request::new(self.api.resource_url()), patch_params());
        let patch = Patch::Merge(operations);
        let request = match subresource {
            None => request.patch(name, &params, &patch),
            Some(subresource) => request.patch_subresource(subresource, name, &params, &patch),
        };
        let mut request = request.map_err(|e| failed(e.to_string()))?;
        let content_type =
            "application/json-patch+json".parse().map_err(|_| failed("bad content type".to_owned()))?;
        request.headers_mut().insert("content-type", content_type);
        match self.answer(call.clone(), self.k8s.client.request::<Value>(request)).await {
            Ok(_) => Ok(()),
            // The server answers a failed `test` with 422 Invalid.
            Err(K8sError::Other { code: 422, message, .. }) => Err(K8sError::Conflict { call, message }),
            Err(error) => Err(error),
        }
    }
}

impl<K> Kind<'_, K>
where
    K: Resource + Clone + DeserializeOwned + Debug + Serialize,
{
    /// Creates an object.
    pub(crate) async fn create(&self, name: &str, object: &K) -> Result<K, K8sError> {
        self.answer(self.call("create", Some(name)), self.api.create(&post(false), object)).await
    }

    /// Asks whether an object could be created: `dryRun=All`, nothing is stored.
    pub(crate) async fn try_create(&self, name: &str, object: &K) -> Result<K, K8sError> {
        self.answer(self.call("create", Some(name)), self.api.create(&post(true), object)).await
    }

    /// Replaces an object: PUT. Its resourceVersion and uid, if set, are preconditions.
    pub(crate) async fn replace(&self, name: &str, object: &K) -> Result<K, K8sError> {
        self.answer(self.call("update", Some(name)), self.api.replace(name, &post(false), object)).await
    }

    /// Asks whether an object could be replaced: `dryRun=All`, nothing is stored.
    pub(crate) async fn try_replace(&self, name: &str, object: &K) -> Result<K, K8sError> {
        self.answer(self.call("update", Some(name)), self.api.replace(name, &post(true), object)).await
    }
}

/// Returns patch parameters with our field manager: `managedFields` shows which client wrote which field.
fn patch_params() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

fn post(dry_run: bool) -> PostParams {
    PostParams { dry_run, field_manager: Some(FIELD_MANAGER.to_owned()) }
}

/// Converts an object to its type in the API.
pub(crate) fn typed<T: serde::de::DeserializeOwned>(name: &str, object: Value) -> Result<T, K8sError> {
    serde_json::from_value(object)
        .map_err(|e| K8sError::Malformed { what: name.to_owned(), why: e.to_string() })
}
