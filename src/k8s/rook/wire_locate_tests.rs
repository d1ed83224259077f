//! The namespace that a command uses, and what it says if there is no CephCluster.

use serde_json::{Value, json};

use crate::k8s::client::error::K8sError;
use crate::k8s::wire::{CLUSTERS, Exchange, cluster, list, on, play, play_at, refusal};
use crate::k8s::{Context, Server};

const IN_CONTEXT: &str = "GET /apis/ceph.rook.io/v1/namespaces/ceph-a/cephclusters?&limit=100";

const EVERYWHERE: &str = "GET /apis/ceph.rook.io/v1/cephclusters?&limit=100";

/// Returns a laptop whose context has this namespace.
fn laptop(namespace: &str) -> Server {
    let context = Context { name: "lab".to_owned(), user: Some("jane".to_owned()), file: None };
    Server {
        url: "https://10.0.0.1:6443".to_owned(),
        context: Some(context),
        namespace: namespace.to_owned(),
    }
}

fn found(request: &str) -> Exchange {
    on(request, 200, list(&[cluster(&Value::Null)]))
}

fn none(request: &str) -> Exchange {
    on(request, 200, list(&[]))
}

fn forbidden(request: &str) -> Exchange {
    let message = "cephclusters.ceph.rook.io is forbidden: User \"jane\" cannot list resource";
    let answer = json!({"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": message});
    on(request, 403, answer)
}

fn everywhere(all: &[(&str, &str)]) -> Exchange {
    let each =
        all.iter().map(|(namespace, name)| json!({"metadata": {"namespace": namespace, "name": name}}));
    on(EVERYWHERE, 200, list(&each.collect::<Vec<_>>()))
}

/// Returns the namespace that is used without `-n`.
async fn located(context: &str, script: Vec<Exchange>) -> Result<String, K8sError> {
    let namespace = async |k8s: &mut crate::k8s::K8s| k8s.locate().await.map(|()| k8s.namespace().to_owned());
    play_at(laptop(context), script, namespace).await
}

#[tokio::test]
async fn namespace_is_that_of_the_context_if_it_has_a_cephcluster() {
    assert_eq!(located("ceph-a", vec![found(IN_CONTEXT)]).await.unwrap(), "ceph-a");
    let script = vec![none(IN_CONTEXT), found(CLUSTERS)];
    assert_eq!(located("ceph-a", script).await.unwrap(), "rook-ceph");
    // Many people have rights in Rook's namespace only.
    let script = vec![forbidden(IN_CONTEXT), found(CLUSTERS)];
    assert_eq!(located("ceph-a", script).await.unwrap(), "rook-ceph");
    assert_eq!(located("rook-ceph", vec![found(CLUSTERS)]).await.unwrap(), "rook-ceph");
}

#[tokio::test]
async fn missing_cephcluster_lists_those_that_the_user_may_see() {
    let script = vec![
        none(IN_CONTEXT),
        none(CLUSTERS),
        everywhere(&[("store", "b"), ("ceph-b", "c"), ("store", "a")]),
    ];
    let text = located("ceph-a", script).await.unwrap_err().to_string();
    let expected = "no namespace is named (-n), and the namespaces ceph-a and rook-ceph have no CephCluster. \
                    Those that you may see: -n ceph-b (CephCluster c), -n store (CephCluster a), -n store \
                    (CephCluster b). See: kubectl --context lab get cephclusters -A";
    assert_eq!(text, expected);
    let script = vec![none(CLUSTERS), forbidden(EVERYWHERE)];
    let text = located("rook-ceph", script).await.unwrap_err().to_string();
    assert!(text.contains("namespace rook-ceph has no CephCluster. You may not list"), "{text}");
    assert!(text.ends_with("name it with -n. See: kubectl --context lab get cephclusters -A"), "{text}");
    let script = vec![none(CLUSTERS), everywhere(&[])];
    let text = located("rook-ceph", script).await.unwrap_err().to_string();
    assert!(text.contains("No namespace has one: it is probably another Kubernetes cluster"), "{text}");
}

#[tokio::test]
async fn refusal_in_every_namespace_is_reported_as_one() {
    let script = vec![forbidden(IN_CONTEXT), forbidden(CLUSTERS), forbidden(EVERYWHERE)];
    let error = located("ceph-a", script).await.unwrap_err();
    assert!(matches!(&error, K8sError::UserForbidden { .. }), "{error}");
    assert!(error.to_string().starts_with("user jane may not list"), "{error}");
    let no_crd = vec![on(IN_CONTEXT, 404, refusal(404, "Failed to parse error data"))];
    assert!(matches!(located("ceph-a", no_crd).await, Err(K8sError::NoRook)));
}

#[tokio::test]
async fn named_namespace_without_a_cephcluster_lists_others() {
    let script = vec![none(CLUSTERS), everywhere(&[("ceph-a", "store")])];
    let found = play_at(laptop("ceph-a"), script, async |k8s| k8s.find_cluster().await).await;
    let expected = "namespace rook-ceph has no CephCluster. Those that you may see: -n ceph-a (CephCluster \
                    store). See: kubectl --context lab get cephclusters -A";
    assert_eq!(found.unwrap_err().to_string(), expected);
    let exists = vec![self::found(CLUSTERS)];
    play_at(laptop("ceph-a"), exists, async |k8s| k8s.find_cluster().await).await.unwrap();
}

#[tokio::test]
async fn pod_without_a_cephcluster_sends_no_more_requests() {
    let found = play(vec![none(CLUSTERS)], async |k8s| k8s.find_cluster().await).await;
    let expected = "namespace rook-ceph has no CephCluster. See: kubectl get cephclusters -A";
    assert_eq!(found.unwrap_err().to_string(), expected);
}
