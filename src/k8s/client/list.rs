//! Reads that are repeated while the server has too many requests, and lists, page by page.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::ListParams;
use kube::core::{Request, Resource};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::k8s::client::call::Call;
use crate::k8s::client::error::K8sError;
use crate::k8s::client::kind::Kind;
use crate::k8s::client::page;

/// Number of objects in one page of a list: it bounds the memory that a cluster of many thousand OSDs needs.
///
/// 100 Deployments are 3 MB. With 250, a process that lists 10,000 Deployments and pods has 13 MiB more at
/// its peak, since the buffers leave holes between what is kept.
const PAGE: u32 = 100;

/// Number of objects in one page of metadata, of which each has 1 KB.
const METADATA_PAGE: u32 = 1000;

/// Request for one page, or the reason why it cannot be built.
type BuiltRequest = Result<http::Request<Vec<u8>>, kube::core::request::Error>;

/// Function that builds the request for the page that the parameters name.
type PageRequest = fn(&Request, &ListParams) -> BuiltRequest;

/// Metadata of an object, without what is large in it (`managedFields`).
#[derive(Debug, Deserialize)]
pub(crate) struct ShortMeta {
    pub(crate) name: String,
    #[serde(rename = "resourceVersion")]
    pub(crate) version: String,
    #[serde(default)]
    pub(crate) labels: BTreeMap<String, String>,
}

impl<K> Kind<'_, K>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    /// Sends a read, and repeats it a few times while the server has too many requests.
    ///
    /// Within an act it is not repeated: what Ceph answered right before would be too old for the write.
    pub(super) async fn read<T, F: Future<Output = kube::Result<T>>>(
        &self,
        call: Call,
        mut request: impl FnMut() -> F,
    ) -> Result<T, K8sError> {
        let read = || self.answer(call.clone(), request());
        let is_repeated = |error: &K8sError| error.is_overload() && !self.k8s.is_acting();
        read.retry(pauses()).when(is_repeated).await
    }

    /// Reads all objects that a label selector selects, page by page, and returns their results of `project`.
    pub(crate) async fn list<T>(
        &self,
        selector: &str,
        project: impl FnMut(K) -> Option<T>,
    ) -> Result<Vec<T>, K8sError> {
        self.list_as(selector, project).await
    }

    /// Does the same, and parses the objects as another type: with fewer fields, or as they are on the wire.
    pub(crate) async fn list_as<I: DeserializeOwned, T>(
        &self,
        selector: &str,
        project: impl FnMut(I) -> Option<T>,
    ) -> Result<Vec<T>, K8sError> {
        let label_selector = (!selector.is_empty()).then(|| selector.to_owned());
        let params = ListParams { label_selector, ..ListParams::default() };
        self.list_by(params, project).await
    }

    /// Reads all objects that a field selector selects (`reason=ReconcileSkipped`).
    pub(crate) async fn list_where<T>(
        &self,
        fields: &str,
        project: impl FnMut(K) -> Option<T>,
    ) -> Result<Vec<T>, K8sError> {
        self.list_by(ListParams::default().fields(fields), project).await
    }

    async fn list_by<I: DeserializeOwned, T>(
        &self,
        params: ListParams,
        project: impl FnMut(I) -> Option<T>,
    ) -> Result<Vec<T>, K8sError> {
        self.pages(params.limit(PAGE), Request::list, project).await
    }

    /// Reads all pages of the list that `request` asks for, and returns the results of `project`.
    async fn pages<I: DeserializeOwned, T>(
        &self,
        mut params: ListParams,
        request: PageRequest,
        mut project: impl FnMut(I) -> Option<T>,
    ) -> Result<Vec<T>, K8sError> {
        // All pages have one buffer: one for each would leave holes between the objects that are kept.
        let (mut all, mut text) = (Vec::new(), Vec::new());
        loop {
            let request = request(&Request::new(self.api.resource_url()), &params);
            let (items, next) = self.page(request, &mut text, &mut project).await?;
            all.extend(items);
            match next {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(all),
            }
        }
    }

    /// Reads a page, and returns its objects, reduced, and the token of the next page.
    async fn page<I: DeserializeOwned, T>(
        &self,
        request: BuiltRequest,
        text: &mut Vec<u8>,
        project: impl FnMut(I) -> Option<T>,
    ) -> Result<(Vec<T>, Option<String>), K8sError> {
        let call = self.call("list", None);
        let failed = |message: String| K8sError::Other { call: call.clone(), code: 0, message };
        let request = request.map_err(|error| failed(error.to_string()))?;
        let read = || page::text(self.k8s.client.clone(), request.clone(), std::mem::take(text));
        *text = self.read(call.clone(), read).await?;
        page::parse(text, project).map_err(|error| failed(error.to_string()))
    }

    /// Reads the metadata of all objects, page by page, and returns the results of `project`.
    ///
    /// The contents of the objects are not sent.
    pub(crate) async fn short_metadata<T>(
        &self,
        mut project: impl FnMut(ShortMeta) -> Option<T>,
    ) -> Result<Vec<T>, K8sError> {
        #[derive(Deserialize)]
        struct Object {
            metadata: ShortMeta,
        }
        let params = ListParams::default().limit(METADATA_PAGE);
        self.pages(params, Request::list_metadata, |Object { metadata }| project(metadata)).await
    }

    /// Returns the names of all objects that a label selector selects.
    ///
    /// Large objects are listed this way, because a list would also return their contents.
    pub(crate) async fn names(&self, selector: &str) -> Result<Vec<String>, K8sError> {
        Ok(self.metadata(selector).await?.into_iter().filter_map(|metadata| metadata.name).collect())
    }

    /// Returns the metadata of all objects that a label selector selects.
    pub(crate) async fn metadata(&self, selector: &str) -> Result<Vec<ObjectMeta>, K8sError> {
        let params = ListParams::default().labels(selector);
        let page = self.read(self.call("list", None), || self.api.list_metadata(&params)).await?;
        Ok(page.items.into_iter().map(|object| object.metadata).collect())
    }
}

/// Returns the pauses of a read that the server had no time for: 1, 2, 4 and 8 s, each up to twice as long.
///
/// An observation of 10,000 OSDs is some 200 requests. If one that is refused made all of them void, the load
/// would grow when the server asks for less.
fn pauses() -> ExponentialBuilder {
    ExponentialBuilder::default().with_min_delay(Duration::from_secs(1)).with_max_times(4).with_jitter()
}
