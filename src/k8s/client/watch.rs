//! Watches of the API server: only what has changed is sent.

use std::fmt::Debug;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{ListParams, WatchParams};
use kube::core::{PartialObjectMeta, Resource, WatchEvent};
use serde::de::DeserializeOwned;

use crate::k8s::client::error::K8sError;
use crate::k8s::client::kind::Kind;

/// Time after which the server ends a watch: the API server accepts 300 s.
const LASTS: u32 = 290;

/// Time after which a watch of which nothing is heard counts as broken: a connection may be lost silently.
const LIMIT: Duration = Duration::from_secs(LASTS as u64 + 5);

/// Objects of a watch; all of the kind by default.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Which<'a> {
    /// Label selector.
    pub(crate) labels: Option<&'a str>,
    /// Name of the only one.
    pub(crate) name: Option<&'a str>,
}

impl Which<'_> {
    /// Returns label selector and field selector.
    fn selectors(self) -> (Option<String>, Option<String>) {
        (self.labels.map(str::to_owned), self.name.map(|name| format!("metadata.name={name}")))
    }
}

impl<K> Kind<'_, K>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    /// Returns the version of the collection, from which a watch may begin.
    ///
    /// Nothing of the objects is read.
    pub(crate) async fn collection_version(&self, which: Which<'_>) -> Result<String, K8sError> {
        let (label_selector, field_selector) = which.selectors();
        let params = ListParams { label_selector, field_selector, limit: Some(1), ..ListParams::default() };
        let page = self.answer(self.call("list", which.name), self.api.list_metadata(&params)).await?;
        let version = page.metadata.resource_version.filter(|version| !version.is_empty());
        version.ok_or_else(|| K8sError::Unexpected {
            what: self.resource.clone(),
            found: "the list has no version".to_owned(),
        })
    }

    /// Watches objects until the server ends the watch, and returns the version from which to go on.
    ///
    /// `begun` is called when the watch is there, and `changed` for each object that was created, changed or
    /// deleted since the version.
    pub(crate) async fn watch(
        &self,
        which: Which<'_>,
        from: String,
        begun: impl FnOnce(),
        changed: impl FnMut(&ObjectMeta),
    ) -> Result<String, K8sError> {
        let (label_selector, field_selector) = which.selectors();
        let params =
            WatchParams { label_selector, field_selector, timeout: Some(LASTS), ..WatchParams::default() };
        let call = || self.call("watch", which.name);
        let events = self.answer(call(), self.api.watch_metadata(&params, &from)).await?;
        begun();
        match tokio::time::timeout(LIMIT, until_end(events, from, changed)).await {
            Ok(end) => end.map_err(|error| K8sError::of(call(), error, LIMIT, &self.k8s.server)),
            Err(_) => {
                Err(K8sError::Timeout { call: call(), limit: LIMIT, server: Arc::clone(&self.k8s.server) })
            }
        }
    }
}

async fn until_end<K>(
    events: impl Stream<Item = kube::Result<WatchEvent<PartialObjectMeta<K>>>>,
    mut version: String,
    mut changed: impl FnMut(&ObjectMeta),
) -> kube::Result<String> {
    let mut events = pin!(events);
    while let Some(event) = events.next().await {
        match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                changed(&object.metadata);
                version = object.metadata.resource_version.unwrap_or(version);
            }
            WatchEvent::Bookmark(bookmark) => version = bookmark.metadata.resource_version,
            // 410, for example: the version is too old.
            WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
        }
    }
    Ok(version)
}
