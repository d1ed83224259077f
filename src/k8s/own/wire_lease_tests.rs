//! The exact requests for the Lease.

use serde_json::{Value, json};

use crate::k8s::wire::{Exchange, on, play, refusal};
use crate::k8s::{Holder, K8sError, LEASE, LeaseOutcome};

const LEASE_GET: &str = "GET /apis/coordination.k8s.io/v1/namespaces/rook-ceph/leases/osd-migrate";
const LEASE_PUT: &str =
    "PUT /apis/coordination.k8s.io/v1/namespaces/rook-ceph/leases/osd-migrate?&fieldManager=osd-migrate";
const POD_GET: &str = "GET /api/v1/namespaces/rook-ceph/pods/old-x";

fn lease(identity: &str, renewed: &str) -> Value {
    json!({"metadata": {"name": LEASE, "resourceVersion": "3"},
        "spec": {"holderIdentity": identity, "renewTime": renewed, "leaseDurationSeconds": 60}})
}

fn pod(phase: &str, node: Option<&str>) -> Value {
    json!({"metadata": {"name": "old-x", "uid": "old-pod"}, "spec": {"nodeName": node, "containers": []},
        "status": {"phase": phase}})
}

fn me() -> Holder {
    let (job_uid, pod_uid) = ("j".to_owned(), "p".to_owned());
    Holder { job_uid, pod_uid, pod: "x".to_owned(), job: "run".to_owned() }
}

async fn acquire(script: Vec<Exchange>) -> Result<LeaseOutcome, K8sError> {
    let now = "2026-11-21T10:05:00Z".parse().unwrap();
    play(script, async |k8s| k8s.acquire(&me(), now).await).await
}

#[tokio::test]
async fn lease_is_renewed_only_by_its_holder() {
    let now = "2026-11-21T10:05:00Z".parse().unwrap();
    let put = on(LEASE_PUT, 200, lease("j/p/x/run", JUST_NOW)).with(|body| {
        assert_eq!(body["spec"]["renewTime"], json!("2026-11-21T10:05:00.000000Z"));
        assert_eq!(body["metadata"]["resourceVersion"], json!("3"));
    });
    let script = vec![on(LEASE_GET, 200, lease("j/p/x/run", JUST_NOW)), put];
    assert!(play(script, async |k8s| k8s.renew(&me(), now).await).await.unwrap());
    // Another holder keeps it, however old its renewal is.
    let script = vec![on(LEASE_GET, 200, lease(OTHER, LONG_AGO))];
    assert!(!play(script, async |k8s| k8s.renew(&me(), now).await).await.unwrap());
}

#[tokio::test]
async fn lease_is_released_only_by_its_holder() {
    let put = on(LEASE_PUT, 200, lease("", JUST_NOW)).with(|body| {
        assert_eq!(body["spec"]["holderIdentity"], json!(""));
        assert_eq!(body["metadata"]["resourceVersion"], json!("3"));
    });
    let script = vec![on(LEASE_GET, 200, lease("j/p/x/run", JUST_NOW)), put];
    play(script, async |k8s| k8s.release(&me()).await).await.unwrap();
    let script = vec![on(LEASE_GET, 200, lease(OTHER, JUST_NOW))];
    play(script, async |k8s| k8s.release(&me()).await).await.unwrap();
    // Another runner acquires it, although the pod may still wait for its last scrape.
    let put = on(LEASE_PUT, 200, lease("j/p/x/run", JUST_NOW));
    let script = vec![on(LEASE_GET, 200, lease("", JUST_NOW)), put];
    assert_eq!(acquire(script).await.unwrap(), LeaseOutcome::Mine);
}

const OTHER: &str = "other-job/old-pod/old-x/old";
const LONG_AGO: &str = "2026-11-21T10:00:00.000000Z";
const MINUTES_AGO: &str = "2026-11-21T10:03:00.000000Z";
const JUST_NOW: &str = "2026-11-21T10:04:50.000000Z";

#[tokio::test]
async fn lease_of_a_deleted_or_ended_pod_is_taken_over() {
    for (status, answer) in [(404, refusal(404, "NotFound")), (200, pod("Failed", None))] {
        let put = on(LEASE_PUT, 200, lease("j/p/x/run", JUST_NOW)).with(|body| {
            assert_eq!(
                (&body["metadata"]["resourceVersion"], &body["spec"]["holderIdentity"]),
                (&json!("3"), &json!("j/p/x/run"))
            );
        });
        let script = vec![on(LEASE_GET, 200, lease(OTHER, JUST_NOW)), on(POD_GET, status, answer), put];
        assert!(matches!(acquire(script).await.unwrap(), LeaseOutcome::TakenOver { is_lost: false, .. }));
    }
}

#[tokio::test]
async fn lease_stays_with_a_live_holder_of_another_job() {
    let script =
        vec![on(LEASE_GET, 200, lease(OTHER, JUST_NOW)), on(POD_GET, 200, pod("Running", Some("n1")))];
    let held = LeaseOutcome::OwnedByLiveJob { job: "old".to_owned(), pod: "old-x".to_owned() };
    assert_eq!(acquire(script).await.unwrap(), held);
}

#[tokio::test]
async fn lease_of_a_former_pod_of_our_own_job_is_taken_over() {
    let script = vec![
        on(LEASE_GET, 200, lease("j/old-pod/old-x/run", JUST_NOW)),
        on(POD_GET, 200, pod("Running", Some("n1"))),
        on(LEASE_PUT, 200, lease("j/p/x/run", JUST_NOW)),
    ];
    assert!(matches!(acquire(script).await.unwrap(), LeaseOutcome::TakenOver { is_lost: false, .. }));
}

/// Returns the requests up to the delete of the silent holder's pod, which is on a node that is ready or not.
fn silent(ready: &str) -> Vec<Exchange> {
    let delete = on("DELETE /api/v1/namespaces/rook-ceph/pods/old-x?", 200, pod("Running", None));
    let delete = delete.with(|body| {
        assert_eq!(body["preconditions"], json!({"uid": "old-pod"}));
        assert!(body.get("gracePeriodSeconds").is_none());
    });
    vec![
        on(LEASE_GET, 200, lease(OTHER, MINUTES_AGO)),
        on(POD_GET, 200, pod("Running", Some("n1"))),
        delete,
        on("GET /api/v1/nodes/n1", 200, node(ready)),
    ]
}

fn node(ready: &str) -> Value {
    json!({"metadata": {"name": "n1"}, "status": {"conditions": [{"type": "Ready", "status": ready}]}})
}

#[tokio::test]
async fn silent_lease_holder_is_deleted_but_never_by_force() {
    assert!(matches!(acquire(silent("True")).await.unwrap(), LeaseOutcome::WaitForOldPod { .. }));
    let LeaseOutcome::OldRunnerNodeLost { until, command, .. } = acquire(silent("Unknown")).await.unwrap()
    else {
        panic!("the node is not ready");
    };
    assert_eq!(until.to_rfc3339(), "2026-11-21T10:08:00+00:00");
    assert_eq!(command, "kubectl -n rook-ceph delete pod old-x --force --grace-period=0");
}

#[tokio::test]
async fn lease_of_a_deleted_pod_that_never_ends_is_taken_over() {
    let mut terminating = pod("Running", Some("n1"));
    terminating["metadata"]["deletionTimestamp"] = json!("2026-11-21T10:04:40Z");
    let begin =
        |renewed| vec![on(LEASE_GET, 200, lease(OTHER, renewed)), on(POD_GET, 200, terminating.clone())];
    // A pod of a drained node renews the Lease until it ends.
    for renewed in [JUST_NOW, MINUTES_AGO, LONG_AGO] {
        let mut script = begin(renewed);
        script.push(on("GET /api/v1/nodes/n1", 200, node("Unknown")));
        assert!(matches!(acquire(script).await.unwrap(), LeaseOutcome::OldRunnerNodeLost { .. }));
    }
    let mut script = begin("2026-11-21T09:59:59.000000Z");
    script.push(on(LEASE_PUT, 200, lease("j/p/x/run", JUST_NOW)));
    assert!(matches!(acquire(script).await.unwrap(), LeaseOutcome::TakenOver { is_lost: true, .. }));
    // A pod that is not being deleted is deleted first, however silent it is.
    let mut script = silent("Unknown");
    script[0] = on(LEASE_GET, 200, lease(OTHER, "2026-11-21T08:00:00.000000Z"));
    assert!(matches!(acquire(script).await.unwrap(), LeaseOutcome::OldRunnerNodeLost { .. }));
}

#[tokio::test]
async fn runner_is_alive_with_a_pod_that_renews_its_lease() {
    let runner = async |script| {
        let now = "2026-11-21T10:05:00Z".parse().unwrap();
        play(script, async |k8s| k8s.runner(now).await).await.unwrap()
    };
    let held = |renewed| on(LEASE_GET, 200, lease(OTHER, renewed));
    let running = || on(POD_GET, 200, pod("Running", Some("n1")));
    for (renewed, answer, expected) in [
        (JUST_NOW, running(), (true, true)),
        (LONG_AGO, running(), (true, false)),
        (JUST_NOW, on(POD_GET, 200, pod("Succeeded", None)), (false, false)),
        (JUST_NOW, on(POD_GET, 404, refusal(404, "NotFound")), (false, false)),
    ] {
        let found = runner(vec![held(renewed), answer]).await.unwrap();
        assert_eq!((found.has_pod, found.is_alive), expected);
        assert_eq!((found.job.as_str(), found.pod.as_str()), ("old", "old-x"));
    }
    assert_eq!(runner(vec![on(LEASE_GET, 404, refusal(404, "NotFound"))]).await, None);
}
