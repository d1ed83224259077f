//! A pod of which only the fields are parsed that are read of thousands of pods.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus,
    Pod, PodCondition, PodSpec, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// A pod with the fields that are read of thousands.
///
/// They are those by which pods of OSDs are observed (`src/k8s/osd/daemons.rs`, `src/k8s/pods.rs`). Like
/// those of the API, each may be missing or null.
#[derive(Deserialize)]
#[serde(from = "Fields")]
pub(super) struct ShortPod(pub(super) Pod);

#[derive(Deserialize)]
struct Fields {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: Option<String>,
    uid: Option<String>,
    labels: Option<BTreeMap<String, String>>,
    deletion_timestamp: Option<Time>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    node_name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    phase: Option<String>,
    reason: Option<String>,
    message: Option<String>,
    conditions: Option<Vec<Condition>>,
    init_container_statuses: Option<Vec<Container>>,
    container_statuses: Option<Vec<Container>>,
}

#[derive(Deserialize)]
struct Condition {
    r#type: Option<String>,
    status: Option<String>,
    reason: Option<String>,
    message: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Container {
    name: Option<String>,
    restart_count: Option<i32>,
    state: Option<State>,
    last_state: Option<State>,
}

#[derive(Deserialize)]
struct State {
    waiting: Option<Waiting>,
    running: Option<IgnoredAny>,
    terminated: Option<Terminated>,
}

#[derive(Deserialize)]
struct Waiting {
    reason: Option<String>,
    message: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Terminated {
    exit_code: Option<i32>,
    reason: Option<String>,
    message: Option<String>,
}

impl From<Fields> for ShortPod {
    fn from(Fields { metadata, spec, status }: Fields) -> Self {
        let Metadata { name, uid, labels, deletion_timestamp } = metadata;
        Self(Pod {
            metadata: ObjectMeta { name, uid, labels, deletion_timestamp, ..ObjectMeta::default() },
            spec: Some(PodSpec { node_name: spec.node_name, ..PodSpec::default() }),
            status: status.map(PodStatus::from),
        })
    }
}

impl From<Status> for PodStatus {
    fn from(status: Status) -> Self {
        let all = |containers: Option<Vec<Container>>| -> Option<Vec<ContainerStatus>> {
            Some(containers?.into_iter().map(ContainerStatus::from).collect())
        };
        let condition = |found: Condition| PodCondition {
            type_: found.r#type.unwrap_or_default(),
            status: found.status.unwrap_or_default(),
            reason: found.reason,
            message: found.message,
            ..PodCondition::default()
        };
        Self {
            phase: status.phase,
            reason: status.reason,
            message: status.message,
            conditions: status.conditions.map(|found| found.into_iter().map(condition).collect()),
            init_container_statuses: all(status.init_container_statuses),
            container_statuses: all(status.container_statuses),
            ..Self::default()
        }
    }
}

impl From<Container> for ContainerStatus {
    fn from(container: Container) -> Self {
        Self {
            name: container.name.unwrap_or_default(),
            restart_count: container.restart_count.unwrap_or_default(),
            state: container.state.map(ContainerState::from),
            last_state: container.last_state.map(ContainerState::from),
            ..Self::default()
        }
    }
}

impl From<State> for ContainerState {
    fn from(State { waiting, running, terminated }: State) -> Self {
        let ended = |Terminated { exit_code, reason, message }| ContainerStateTerminated {
            exit_code: exit_code.unwrap_or_default(),
            reason,
            message,
            ..ContainerStateTerminated::default()
        };
        Self {
            waiting: waiting.map(|Waiting { reason, message }| ContainerStateWaiting { reason, message }),
            running: running.map(|_| ContainerStateRunning::default()),
            terminated: terminated.map(ended),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::observation;
    use crate::k8s::pods::{has_begun, has_succeeded, is_terminal, observed};

    /// Pods of real OSDs, as the API server answered.
    const REAL: [&str; 3] = [
        include_str!("../../tests/suite/fixtures/pvc/16.2.15/plain.pod.json"),
        include_str!("../../tests/suite/fixtures/pvc/16.2.15/database.pod.json"),
        include_str!("../../tests/suite/fixtures/pvc/16.2.15/encrypted.pod.json"),
    ];

    /// Asserts that a short pod leads to the same as a complete one, and returns what is observed of it.
    fn same(object: &Value) -> observation::Pod {
        let ShortPod(short) = serde_json::from_value(object.clone()).unwrap();
        let pod: Pod = serde_json::from_value(object.clone()).unwrap();
        let ends = |pod: &Pod| (is_terminal(pod), has_succeeded(pod), has_begun(pod));
        assert_eq!((observed(&short), ends(&short)), (observed(&pod), ends(&pod)), "{object}");
        assert_eq!(short.metadata.labels, pod.metadata.labels);
        assert_eq!(short.metadata.deletion_timestamp, pod.metadata.deletion_timestamp);
        observed(&short)
    }

    #[test]
    fn short_pod_has_what_is_observed_of_a_pod() {
        let last = json!({"terminated": {"exitCode": 1, "reason": "Error", "message": "no such device"}});
        let status = json!({"phase": "Running", "containerStatuses": [{"name": "osd", "restartCount": 4,
            "state": {}, "lastState": last}], "conditions": [{"type": "PodScheduled", "status": "True"}]});
        let object = json!({"metadata": {"name": "p", "uid": "u", "labels": {"ceph-osd-id": "5"},
                "deletionTimestamp": "2026-11-29T12:00:00Z", "managedFields": [{"manager": "kubelet"}]},
            "spec": {"nodeName": "h1", "containers": [{"name": "osd"}]}, "status": status});
        assert_eq!(same(&object).restarts, 4);
        let pending: ShortPod = serde_json::from_value(json!({"metadata": {"name": "p"}})).unwrap();
        assert_eq!(observed(&pending.0).node, None);
    }

    #[test]
    fn real_pod_is_read_as_a_complete_one() {
        for text in REAL {
            let object: Value = serde_json::from_str(text).unwrap();
            assert!(same(&object).node.is_some());
        }
    }

    #[test]
    fn short_pod_is_read_as_a_complete_one_in_each_state() {
        let waiting = |reason: &str| json!({"waiting": {"reason": reason, "message": "back-off 40s"}});
        let ended = |code: i32| {
            json!({"terminated": {"exitCode": code, "reason": "Error", "message": "a\nno such device",
                "startedAt": "2026-11-26T00:20:10Z", "containerID": "containerd://1"}})
        };
        let states = [
            json!({}),
            Value::Null,
            json!({"running": {"startedAt": "2026-11-26T00:20:10Z"}}),
            json!({"running": null, "waiting": {"reason": "PodInitializing"}}),
            waiting("CrashLoopBackOff"),
            waiting("ImagePullBackOff"),
            ended(0),
            ended(137),
        ];
        let unscheduled = json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]);
        let real: Value = serde_json::from_str(REAL[0]).unwrap();
        let mut object =
            json!({"metadata": {"name": "p"}, "spec": {"nodeName": "h1"}, "status": real["status"]});
        for phase in ["Pending", "Running", "Succeeded", "Failed"] {
            (object["status"]["phase"], object["status"]["reason"]) = (json!(phase), json!("Evicted"));
            for (state, last) in states.iter().flat_map(|state| states.iter().map(move |last| (state, last)))
            {
                for kind in ["initContainerStatuses", "containerStatuses"] {
                    let mut changed = object.clone();
                    let container = &mut changed["status"][kind][0];
                    (container["state"], container["lastState"]) = (state.clone(), last.clone());
                    container["restartCount"] = json!(7);
                    assert_eq!(same(&changed).restarts, 7);
                    changed["status"][kind] = Value::Null;
                    same(&changed);
                    changed["status"]["conditions"] = unscheduled.clone();
                    assert!(same(&changed).trouble.is_some());
                }
            }
        }
    }

    #[test]
    fn short_pod_has_no_field_that_is_not_read() {
        // A field that is parsed fails here, as it does in a complete pod.
        let unread =
            json!({"imageID": 0, "containerID": 0, "ready": 0, "name": "osd", "state": {"running": 0}});
        let status = json!({"phase": "Running", "hostIP": 0, "startTime": 0, "containerStatuses": [unread],
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": 0}]});
        let object = json!({"metadata": {"name": "p"}, "status": status});
        assert!(serde_json::from_value::<Pod>(object.clone()).is_err());
        let ShortPod(short) = serde_json::from_value(object).unwrap();
        assert!(has_begun(&short) && !is_terminal(&short));
    }
}
