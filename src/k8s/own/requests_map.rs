//! Requests of people to remove OSDs, in a ConfigMap of their own: one key for each OSD.

use k8s_openapi::api::core::v1::ConfigMap;

use crate::domain::osd::{OsdFsid, OsdId};
use crate::domain::removal::{RemovalRequest, Requests};
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;

/// ConfigMap of the requests.
pub(crate) const REQUESTS: &str = "osd-migrate-requests";

/// Beginning of the key of an OSD, which ends with its number.
const OF_OSD: &str = "osd-";

impl K8s {
    /// Returns the requests that stand now.
    pub async fn read_requests(&self) -> Result<Requests, K8sError> {
        let map = self.kind::<ConfigMap>().get_opt(REQUESTS).await?;
        Ok(map.as_ref().map(requests).unwrap_or_default())
    }
}

impl K8s {
    /// Deletes the request for this OSD, if it names this fsid.
    ///
    /// An absent one is success. The API server compares the resourceVersion: a request that a person writes
    /// meanwhile stays.
    pub async fn drop_request(&self, osd: OsdId, fsid: OsdFsid) -> Result<(), K8sError> {
        let Some(map) = self.kind::<ConfigMap>().get_opt(REQUESTS).await? else { return Ok(()) };
        if requests(&map).of(osd, fsid).is_none() {
            return Ok(());
        }
        let mut map = map;
        map.data.get_or_insert_default().remove(&format!("{OF_OSD}{}", osd.0));
        self.kind::<ConfigMap>().replace(REQUESTS, &map).await.map(drop)
    }
}

/// Reads the requests from the map.
///
/// A key that can't be read is reported, and the others count.
pub(crate) fn requests(map: &ConfigMap) -> Requests {
    let mut found = Requests::default();
    for (key, text) in map.data.iter().flatten() {
        let osd = key.strip_prefix(OF_OSD).and_then(|number| number.parse().ok()).map(OsdId);
        match (osd, serde_json::from_str::<RemovalRequest>(text)) {
            (Some(osd), Ok(request)) => {
                found.removals.insert(osd, request);
            }
            (Some(_) | None, _) => {
                found.unreadable.insert(key.clone());
            }
        }
    }
    found
}
