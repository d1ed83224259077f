//! The exact requests that save the ledger.

use std::collections::BTreeMap;

use serde_json::json;

use crate::domain::history::Entry;
use crate::k8s::wire::{Exchange, on, play, refusal};
use crate::k8s::{K8sError, LEDGER, ResourceVersion};

#[tokio::test]
async fn ledger_is_saved_against_the_version_that_was_read() {
    let put = "PUT /api/v1/namespaces/rook-ceph/configmaps/osd-migrate-ledger?&fieldManager=osd-migrate";
    let post = "POST /api/v1/namespaces/rook-ceph/configmaps?&fieldManager=osd-migrate";
    let saved = || json!({"metadata": {"name": LEDGER, "resourceVersion": "6"}, "data": {"run": "{}"}});
    let script =
        vec![on(put, 200, saved()).with(|body| assert_eq!(body["metadata"]["resourceVersion"], "5"))];
    let version = ResourceVersion("5".to_owned());
    let data = || BTreeMap::from([("run".to_owned(), "{}".to_owned())]);
    let result = play(script, async |k8s| k8s.save(data(), Some(&version)).await).await;
    assert_eq!(result.unwrap(), (data(), ResourceVersion("6".to_owned())));
    let script = vec![on(post, 409, refusal(409, "AlreadyExists"))];
    let result = play(script, async |k8s| k8s.save(data(), None).await).await;
    assert!(matches!(result, Err(K8sError::Conflict { .. })), "{result:?}");
    let big = || [("osd.1".to_owned(), "x".repeat(1000 * 1024))].into();
    let result = play(Vec::new(), async |k8s| k8s.save(big(), None).await).await;
    assert!(matches!(result, Err(K8sError::TooBig { .. })), "{result:?}");
}

const SHARDS: &str = "GET /api/v1/namespaces/rook-ceph/configmaps?&labelSelector=app.kubernetes.io%2Fname%3Dosd-migrate\
                      %2Cosd-migrate.io%2Fpart%3Dhistory";
const LAST: &str = "/api/v1/namespaces/rook-ceph/configmaps/osd-migrate-history-1";

fn entry(osd: u32) -> Entry {
    serde_json::from_value(json!({"osd": osd, "id": "r1", "attempt": 2, "outcome": "migrated", "node": "h1",
        "class": {"class": "available"}, "target": {"store": "bluestore", "mode": "raw", "encrypted": false},
        "milestones": []}))
    .unwrap()
}

/// Returns the reads before an append, with these lines in the last of two shards.
fn shards(lines: &str) -> Vec<Exchange> {
    let names = ["osd-migrate-history-0", "osd-migrate-history-1", "osd-migrate-history-x"];
    let items = names.map(|name| json!({"metadata": {"name": name}}));
    let found = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": {}, "items": items});
    let last = json!({"metadata": {"name": names[1], "resourceVersion": "7"}, "data": {"lines": lines}});
    vec![on(SHARDS, 200, found), on(&format!("GET {LAST}"), 200, last)]
}

#[tokio::test]
async fn history_is_appended_to_its_last_shard_once() {
    let line = serde_json::to_string(&entry(5)).unwrap();
    let mut script = shards(&format!("{line}\n"));
    script.push(on(&format!("PUT {LAST}?&fieldManager=osd-migrate"), 200, json!({"metadata": {}})).with(
        |body| {
            assert_eq!(body["metadata"]["resourceVersion"], "7", "another writer is noticed");
            assert_eq!(body["data"]["lines"].as_str().map(|lines| lines.lines().count()), Some(2));
        },
    ));
    play(script, async |k8s| k8s.append_history(&[entry(5), entry(6)]).await).await.unwrap();
    play(shards(&line), async |k8s| k8s.append_history(&[entry(5)]).await).await.unwrap();
}
