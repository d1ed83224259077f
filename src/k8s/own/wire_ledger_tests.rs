//! The exact requests that save the ledger.

use serde_json::json;

use crate::k8s::wire::{on, play, refusal};
use crate::k8s::{K8sError, LEDGER, ResourceVersion};

#[tokio::test]
async fn ledger_is_saved_against_the_version_that_was_read() {
    let put = "PUT /api/v1/namespaces/rook-ceph/configmaps/osd-migrate-ledger?&fieldManager=osd-migrate";
    let post = "POST /api/v1/namespaces/rook-ceph/configmaps?&fieldManager=osd-migrate";
    let saved = || json!({"metadata": {"name": LEDGER, "resourceVersion": "6"}});
    let script =
        vec![on(put, 200, saved()).with(|body| assert_eq!(body["metadata"]["resourceVersion"], "5"))];
    let version = ResourceVersion("5".to_owned());
    let data = || [("run".to_owned(), "{}".to_owned())].into();
    let result = play(script, async |k8s| k8s.save(data(), Some(&version)).await).await;
    assert_eq!(result.unwrap(), ResourceVersion("6".to_owned()));
    let script = vec![on(post, 409, refusal(409, "AlreadyExists"))];
    let result = play(script, async |k8s| k8s.save(data(), None).await).await;
    assert!(matches!(result, Err(K8sError::Conflict { .. })), "{result:?}");
    let big = || [("osd.1".to_owned(), "x".repeat(900 * 1024))].into();
    let result = play(Vec::new(), async |k8s| k8s.save(big(), None).await).await;
    assert!(matches!(result, Err(K8sError::TooBig { .. })), "{result:?}");
}
