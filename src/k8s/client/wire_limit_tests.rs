//! A server that does not answer.

use std::time::Duration;

use http::{Request, Response};
use kube::Client;
use kube::client::Body;

use crate::k8s::{K8s, K8sError, Place};

#[tokio::test(start_paused = true)]
async fn api_server_timeout_leaves_the_outcome_unknown() {
    let (service, _handle) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
    let k8s = K8s::with_client(Client::new(service, "rook-ceph"), Place::new("rook-ceph"));
    let result =
        tokio::time::timeout(Duration::from_secs(11), k8s.drop_agent("j", "u")).await.expect("the limit");
    assert!(
        matches!(&result, Err(error @ K8sError::Timeout { .. }) if error.is_outcome_unknown()),
        "{result:?}"
    );
}
