//! Requests of people to remove OSDs, in a ConfigMap of their own: one key for each OSD.
//!
//! The ConfigMap can be written wherever kubectl works, and has no owner: no end of a Job deletes it.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ObjectMeta;

use crate::domain::osd::{OsdFsid, OsdId};
use crate::domain::removal::{RemovalRequest, Requests};
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;
use crate::k8s::names::{Part, labels};

/// ConfigMap of the requests.
pub const REQUESTS: &str = "osd-migrate-requests";

/// Beginning of the key of an OSD, which ends with its number.
const OF_OSD: &str = "osd-";

/// Number of tries of a write that conflicts with other writers: the run deletes one request at a time.
const TRIES: usize = 3;

/// Requests as text, by key.
type Texts = BTreeMap<String, String>;

impl K8s {
    /// Returns the requests that stand now.
    pub async fn read_requests(&self) -> Result<Requests, K8sError> {
        let map = self.kind::<ConfigMap>().get_opt(REQUESTS).await?;
        Ok(map.as_ref().map(requests).unwrap_or_default())
    }

    /// Writes requests: all of them, or none.
    ///
    /// A request that stands for the same OSD with the same words stays, with its time.
    pub async fn request_removals(&self, wanted: &BTreeMap<OsdId, RemovalRequest>) -> Result<(), K8sError> {
        let mut texts = Vec::new();
        for (osd, request) in wanted {
            let malformed = |e: serde_json::Error| malformed(&e);
            texts.push((key(*osd), request, serde_json::to_string(request).map_err(malformed)?));
        }
        self.change_requests(|data| {
            for (key, request, text) in &texts {
                let standing = data.get(key).and_then(|text| serde_json::from_str(text).ok());
                if !standing.is_some_and(|standing: RemovalRequest| is_same(&standing, request)) {
                    data.insert(key.clone(), text.clone());
                }
            }
        })
        .await
    }

    /// Deletes the requests for these OSDs, whatever they say: all of them, or none.
    ///
    /// An absent one is success.
    pub async fn withdraw_requests(&self, osds: &BTreeSet<OsdId>) -> Result<(), K8sError> {
        self.change_requests(|data| data.retain(|key, _| osd_of(key).is_none_or(|osd| !osds.contains(&osd))))
            .await
    }

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
        map.data.get_or_insert_default().remove(&key(osd));
        self.kind::<ConfigMap>().replace(REQUESTS, &map).await.map(drop)
    }

    /// Changes the requests as they are now, and again if another client changed them meanwhile.
    ///
    /// Without a change, nothing is written.
    async fn change_requests(&self, change: impl Fn(&mut Texts)) -> Result<(), K8sError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.try_change_requests(&change).await {
                Err(error) if tries < TRIES && error.is_overtaken() => {}
                done => return done,
            }
        }
    }

    async fn try_change_requests(&self, change: &impl Fn(&mut Texts)) -> Result<(), K8sError> {
        let maps = self.kind::<ConfigMap>();
        let found = maps.get_opt(REQUESTS).await?;
        let before = found.as_ref().and_then(|map| map.data.clone()).unwrap_or_default();
        let mut data = before.clone();
        change(&mut data);
        if data == before {
            return Ok(());
        }
        let written = if let Some(mut map) = found {
            // A person may have created it by hand.
            map.metadata.labels.get_or_insert_default().extend(labels(Part::Requests));
            map.data = Some(data);
            maps.replace(REQUESTS, &map).await
        } else {
            let metadata = ObjectMeta {
                name: Some(REQUESTS.to_owned()),
                labels: Some(labels(Part::Requests)),
                ..ObjectMeta::default()
            };
            let map = ConfigMap { metadata, data: Some(data), ..ConfigMap::default() };
            maps.create(REQUESTS, &map).await
        };
        written.map(drop)
    }
}

/// Returns whether both ask for the same, whenever they were written.
fn is_same(one: &RemovalRequest, other: &RemovalRequest) -> bool {
    let undated = |request: &RemovalRequest| RemovalRequest { since: None, ..request.clone() };
    undated(one) == undated(other)
}

fn malformed(error: &serde_json::Error) -> K8sError {
    K8sError::Malformed { what: format!("configmap/{REQUESTS}"), why: error.to_string() }
}

/// Returns the key of an OSD's request.
pub(crate) fn key(osd: OsdId) -> String {
    format!("{OF_OSD}{}", osd.0)
}

/// Returns the OSD of a key.
///
/// A key that osd-migrate would not write itself, such as `osd-05`, names none.
fn osd_of(key_of_osd: &str) -> Option<OsdId> {
    let osd = key_of_osd.strip_prefix(OF_OSD)?.parse().ok().map(OsdId)?;
    (key(osd) == key_of_osd).then_some(osd)
}

/// Reads the requests from the map.
///
/// A key that can't be read is reported, and the others count.
pub(crate) fn requests(map: &ConfigMap) -> Requests {
    let mut found = Requests::default();
    for (key, text) in map.data.iter().flatten() {
        match (osd_of(key), serde_json::from_str::<RemovalRequest>(text)) {
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::removal::DiskAfter;
    use crate::k8s::wire::{Exchange, on, play, refusal};

    const MAP: &str = "/api/v1/namespaces/rook-ceph/configmaps/osd-migrate-requests";
    const CREATE: &str = "POST /api/v1/namespaces/rook-ceph/configmaps?&fieldManager=osd-migrate";
    const ONE: &str = "11111111-1111-1111-1111-111111111111";
    const OTHER: &str = "22222222-2222-2222-2222-222222222222";

    fn text(fsid: &str) -> String {
        format!(r#"{{"fsid":"{fsid}","disk":"wipe","since":"2026-03-01T12:00:00Z"}}"#)
    }

    fn read(data: &Value) -> Exchange {
        let map = json!({"metadata": {"name": REQUESTS, "resourceVersion": "7"}, "data": data});
        on(&format!("GET {MAP}"), 200, map)
    }

    fn absent() -> Exchange {
        on(&format!("GET {MAP}"), 404, refusal(404, "NotFound"))
    }

    /// Expects a replacement by this data.
    fn put(data: Value) -> Exchange {
        on(&format!("PUT {MAP}?&fieldManager=osd-migrate"), 200, json!({"metadata": {}})).with(move |body| {
            assert_eq!(body["metadata"]["resourceVersion"], "7", "another writer is noticed");
            assert_eq!(body["data"], data);
        })
    }

    fn conflict() -> Exchange {
        on(&format!("PUT {MAP}?&fieldManager=osd-migrate"), 409, refusal(409, "Conflict"))
    }

    fn request(fsid: &str, disk: DiskAfter) -> RemovalRequest {
        let since = "2026-03-02T12:00:00Z".parse().ok();
        RemovalRequest { disk, since, ..RemovalRequest::of(fsid.parse().unwrap()) }
    }

    fn wanted(osds: &[(u32, RemovalRequest)]) -> BTreeMap<OsdId, RemovalRequest> {
        osds.iter().map(|(osd, request)| (OsdId(*osd), request.clone())).collect()
    }

    #[test]
    fn request_that_cannot_be_read_is_reported_and_others_count() {
        let data = [
            ("osd-5", text(ONE)),
            ("osd-6", "wipe".to_owned()),
            ("osd-07", text(ONE)),
            ("osd-+8", text(ONE)),
            ("osd-x", text(ONE)),
            ("node-h1", text(ONE)),
            ("osd-9", format!(r#"{{"fsid":"{ONE}","disk":"burn"}}"#)),
            // As a person may write it with kubectl.
            ("osd-10", format!(r#"{{"fsid": "{OTHER}"}}"#)),
        ];
        let data = data.into_iter().map(|(key, text)| (key.to_owned(), text)).collect();
        let found = requests(&ConfigMap { data: Some(data), ..ConfigMap::default() });
        assert_eq!(found.removals.keys().collect::<Vec<_>>(), [&OsdId(5), &OsdId(10)]);
        let by_hand = &found.removals[&OsdId(10)];
        assert_eq!((by_hand.disk, by_hand.since), (DiskAfter::Wipe, None));
        let unreadable: Vec<&str> = found.unreadable.iter().map(String::as_str).collect();
        assert_eq!(unreadable, ["node-h1", "osd-+8", "osd-07", "osd-6", "osd-9", "osd-x"]);
    }

    #[tokio::test]
    async fn requests_are_written_together_and_read_back() {
        let two = || wanted(&[(5, request(ONE, DiskAfter::Wipe)), (7, request(OTHER, DiskAfter::Leave))]);
        let script = vec![
            absent(),
            on(CREATE, 201, json!({"metadata": {"name": REQUESTS}})).with(|body| {
                assert_eq!(body["metadata"]["labels"]["osd-migrate.io/part"], "requests");
                assert!(body["metadata"].get("ownerReferences").is_none(), "it outlives every Job");
                let seven: Value = serde_json::from_str(body["data"]["osd-7"].as_str().unwrap()).unwrap();
                assert_eq!(seven, json!({"fsid": OTHER, "disk": "leave", "since": "2026-03-02T12:00:00Z"}));
            }),
        ];
        play(script, async |k8s| k8s.request_removals(&two()).await).await.unwrap();
        let stored: serde_json::Map<String, Value> = two()
            .iter()
            .map(|(osd, request)| (key(*osd), serde_json::to_string(request).unwrap().into()))
            .collect();
        let found = play(vec![read(&stored.into())], async |k8s| k8s.read_requests().await).await.unwrap();
        assert_eq!((found.removals, found.unreadable.len()), (two(), 0));
        assert_eq!(
            play(vec![absent()], async |k8s| k8s.read_requests().await).await.unwrap(),
            Requests::default()
        );
    }

    #[tokio::test]
    async fn standing_request_keeps_its_time_and_other_keys_stay() {
        let same = wanted(&[(5, request(ONE, DiskAfter::Wipe))]);
        let before = json!({"osd-5": text(ONE), "node-h1": "x"});
        play(vec![read(&before)], async |k8s| k8s.request_removals(&same).await).await.unwrap();
        // Another fsid, another end of the disk, or a kept id is another request.
        let kept = RemovalRequest { keep_id: true, ..request(ONE, DiskAfter::Wipe) };
        for changed in [request(OTHER, DiskAfter::Wipe), request(ONE, DiskAfter::Mark), kept] {
            let text = serde_json::to_string(&changed).unwrap();
            let script = vec![read(&before), put(json!({"osd-5": text, "node-h1": "x"}))];
            let wanted = wanted(&[(5, changed)]);
            play(script, async |k8s| k8s.request_removals(&wanted).await).await.unwrap();
        }
    }

    #[tokio::test]
    async fn withdrawn_request_is_deleted_whatever_it_says() {
        let before = json!({"osd-5": "unreadable", "osd-6": text(ONE), "osd-65": text(ONE)});
        let script = vec![read(&before), put(json!({"osd-65": text(ONE)}))];
        let osds = || [OsdId(5), OsdId(6), OsdId(7)].into();
        play(script, async |k8s| k8s.withdraw_requests(&osds()).await).await.unwrap();
        play(vec![absent()], async |k8s| k8s.withdraw_requests(&osds()).await).await.unwrap();
    }

    #[tokio::test]
    async fn conflicting_writes_are_tried_again_three_times() {
        let osds = || [OsdId(5)].into();
        let before = || json!({"osd-5": text(ONE)});
        let script = vec![read(&before()), conflict(), read(&before()), put(json!({}))];
        play(script, async |k8s| k8s.withdraw_requests(&osds()).await).await.unwrap();
        let script = (0..TRIES).flat_map(|_| [read(&before()), conflict()]).collect();
        let result = play(script, async |k8s| k8s.withdraw_requests(&osds()).await).await;
        assert!(matches!(result, Err(K8sError::Conflict { .. })), "{result:?}");
        // Another client created the map between the read and the write.
        let new = wanted(&[(6, request(OTHER, DiskAfter::Wipe))]);
        let text_of_6 = serde_json::to_string(&new[&OsdId(6)]).unwrap();
        let script = vec![
            absent(),
            on(CREATE, 409, refusal(409, "AlreadyExists")),
            read(&before()),
            put(json!({"osd-5": text(ONE), "osd-6": text_of_6})),
        ];
        play(script, async |k8s| k8s.request_removals(&new).await).await.unwrap();
    }

    #[tokio::test]
    async fn request_for_another_fsid_is_not_dropped() {
        let before = json!({"osd-5": text(ONE), "osd-6": text(ONE)});
        let of_one = ONE.parse().unwrap();
        let script = vec![read(&before), put(json!({"osd-6": text(ONE)}))];
        play(script, async |k8s| k8s.drop_request(OsdId(5), of_one).await).await.unwrap();
        let other = OTHER.parse().unwrap();
        play(vec![read(&before)], async |k8s| k8s.drop_request(OsdId(5), other).await).await.unwrap();
        play(vec![read(&before)], async |k8s| k8s.drop_request(OsdId(7), of_one).await).await.unwrap();
        play(vec![absent()], async |k8s| k8s.drop_request(OsdId(5), of_one).await).await.unwrap();
        // A person writes a request meanwhile: the next iteration reads again.
        let script = vec![read(&before), conflict()];
        let result = play(script, async |k8s| k8s.drop_request(OsdId(5), of_one).await).await;
        assert!(matches!(result, Err(K8sError::Conflict { .. })), "{result:?}");
    }
}
