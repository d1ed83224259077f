//! A server that does not answer, or has no time for a request.

use std::time::Duration;

use http::{Request, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::client::Body;
use serde_json::json;
use tower_test::mock::Handle;

use crate::k8s::wire::{list, refusal};
use crate::k8s::{K8s, K8sError, Place};

fn served() -> (K8s, Handle<Request<Body>, Response<Body>>) {
    let (service, handle) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
    (K8s::with_client(Client::new(service, "rook-ceph"), Place::new("rook-ceph")), handle)
}

/// Answers so many requests with this status, and the others with an empty list.
async fn answer(mut handle: Handle<Request<Body>, Response<Body>>, refused: usize, status: u16) {
    let mut count = 0;
    while let Some((_, respond)) = handle.next_request().await {
        count += 1;
        let (status, text) = if count <= refused {
            (status, refusal(status, "TooManyRequests"))
        } else {
            (200, list(&[json!({"metadata": {"name": "one"}})]))
        };
        let body = Body::from(text.to_string().into_bytes());
        respond.send_response(Response::builder().status(status).body(body).unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn write_outlasts_the_longest_webhook_and_a_read_does_not() {
    let (k8s, _handle) = served();
    let still = tokio::time::timeout(Duration::from_secs(31), k8s.drop_agent("j", "u")).await;
    assert!(still.is_err(), "{still:?}");
    let result = tokio::time::timeout(Duration::from_secs(36), k8s.drop_agent("j", "u")).await.unwrap();
    assert!(
        matches!(&result, Err(error @ K8sError::Timeout { .. }) if error.is_outcome_unknown()),
        "{result:?}"
    );
    let text = result.unwrap_err().to_string();
    assert!(text.contains("get validatingwebhookconfigurations,mutatingwebhookconfigurations"), "{text}");
    let maps = k8s.kind::<ConfigMap>();
    let read = tokio::time::timeout(Duration::from_secs(11), maps.get("x")).await.unwrap();
    let text = read.unwrap_err().to_string();
    assert!(text.ends_with("cluster-info"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn read_is_repeated_while_the_server_has_no_time() {
    for (status, refused, requests) in [(429, 3, 4), (503, 4, 5), (429, 9, 5), (500, 1, 1)] {
        let (k8s, handle) = served();
        tokio::spawn(answer(handle, refused, status));
        let maps = k8s.kind::<ConfigMap>();
        let listed = maps.list("", |map| map.metadata.name).await;
        assert_eq!(listed.is_ok(), refused < requests, "{status}, {refused} times: {listed:?}");
        assert_eq!(k8s.requests(), requests as u64);
    }
}

#[tokio::test(start_paused = true)]
async fn read_within_an_act_is_not_repeated() {
    let (k8s, handle) = served();
    tokio::spawn(answer(handle, 1, 429));
    k8s.set_acting(true);
    let refused = k8s.kind::<ConfigMap>().get("x").await.unwrap_err();
    assert!(refused.is_transient() && k8s.requests() == 1, "{refused}");
}

#[tokio::test(start_paused = true)]
async fn write_that_the_server_has_no_time_for_is_not_repeated() {
    let (k8s, handle) = served();
    tokio::spawn(answer(handle, 1, 429));
    let refused = k8s.drop_agent("j", "u").await.unwrap_err();
    assert!(refused.is_transient() && k8s.requests() == 1, "{refused}");
}
