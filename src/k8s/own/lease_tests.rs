use serde_json::json;

use super::*;

fn me() -> Holder {
    Holder {
        job_uid: "j".to_owned(),
        pod_uid: "p".to_owned(),
        pod: "run-x".to_owned(),
        job: "run".to_owned(),
    }
}

fn at(secs: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_700_000_000 + secs, 0).unwrap()
}

#[test]
fn lease_holder_identity_round_trips_and_foreign_is_ignored() {
    assert_eq!(me().identity(), "j/p/run-x/run");
    assert_eq!(Holder::parse("j/p/run-x/run"), Some(me()));
    for foreign in ["", "kube-controller-manager", "a/b/c", "a/b/c/d/e"] {
        assert_eq!(Holder::parse(foreign), None, "{foreign}");
    }
}

#[test]
fn lease_renewal_retains_acquire_time_and_takeover_resets_it() {
    let mut first = written(Lease::default(), &me(), at(0));
    first.metadata.resource_version = Some("5".to_owned());
    let renewed = written(first.clone(), &me(), at(20));
    let other = Holder { pod_uid: "q".to_owned(), ..me() };
    let taken = written(renewed.clone(), &other, at(40));
    let acquired =
        |lease: &Lease| from_jiff(lease.spec.as_ref().unwrap().acquire_time.as_ref().unwrap().0).unwrap();
    assert_eq!((acquired(&first), acquired(&renewed), acquired(&taken)), (at(0), at(0), at(40)));
    assert_eq!(renewed.spec.as_ref().unwrap().lease_transitions, Some(0));
    assert_eq!(taken.spec.as_ref().unwrap().lease_transitions, Some(1));
    assert_eq!(taken.metadata.resource_version.as_deref(), Some("5"), "the precondition stays");
    assert!(!is_expired(&renewed, at(80)) && is_expired(&renewed, at(81)));
}

#[test]
fn lease_without_a_renew_time_is_expired() {
    let lease: Lease =
        serde_json::from_value(json!({"metadata": {}, "spec": {"holderIdentity": "x"}})).unwrap();
    assert!(is_expired(&lease, at(0)));
}
