//! State of a pod: whether it has ended, whether its container has started, what it waits for.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use crate::domain::observation;
use crate::domain::osd::NodeName;

/// Returns whether the phase is Succeeded or Failed: no container of the pod runs or will run again.
pub(super) fn is_terminal(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|s| s.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Returns whether the phase is Succeeded: all containers of the pod have ended without an error.
pub(super) fn has_succeeded(pod: &Pod) -> bool {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Succeeded")
}

/// Returns whether the main container has started, or may have: an unknown state counts as started.
pub(super) fn has_begun(pod: &Pod) -> bool {
    let Some(status) = &pod.status else { return false };
    let containers = status.container_statuses.iter().flatten();
    let began = |c: &ContainerStatus| {
        let waits = c.state.as_ref().is_none_or(|s| s.running.is_none() && s.terminated.is_none());
        let never_ran = c.last_state.as_ref().is_none_or(|s| s.terminated.is_none());
        !(waits && never_ran && c.restart_count == 0)
    };
    is_terminal(pod) || containers.into_iter().any(began)
}

/// Returns the reason why the pod waits or failed, for people; none if there is no trouble.
pub(super) fn trouble(pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let mut containers =
        status.init_container_statuses.iter().flatten().chain(status.container_statuses.iter().flatten());
    let of_container = containers.find_map(container_trouble);
    let of_pod = || {
        let failed = status.phase.as_deref() == Some("Failed");
        let unscheduled =
            status.conditions.iter().flatten().find(|c| c.type_ == "PodScheduled" && c.status == "False");
        match (unscheduled, failed) {
            (Some(c), _) => Some(said(c.reason.as_deref().unwrap_or("Unschedulable"), c.message.as_deref())),
            (None, true) => {
                Some(said(status.reason.as_deref().unwrap_or("Failed"), status.message.as_deref()))
            }
            (None, false) => None,
        }
    };
    of_container.or_else(of_pod)
}

fn container_trouble(container: &ContainerStatus) -> Option<String> {
    let state = container.state.as_ref()?;
    let ended = state.terminated.as_ref().or_else(|| container.last_state.as_ref()?.terminated.as_ref());
    let exit = ended.filter(|e| e.exit_code != 0).map(|e| {
        let reason =
            e.reason.as_deref().filter(|r| *r != "Error").map(|r| format!(" ({r})")).unwrap_or_default();
        said(&format!("exit {}{reason}", e.exit_code), e.message.as_deref())
    });
    // Every container has these two reasons while it starts.
    let waits = state
        .waiting
        .as_ref()
        .filter(|w| !matches!(w.reason.as_deref(), None | Some("ContainerCreating" | "PodInitializing")));
    let waits = waits.map(|w| match (&exit, w.reason.as_deref().unwrap_or_default()) {
        (Some(exit), "CrashLoopBackOff") => format!("CrashLoopBackOff, {exit}"),
        (_, reason) => said(reason, w.message.as_deref()),
    });
    waits.or(exit).map(|text| format!("container {}: {text}", container.name))
}

/// Returns the reason, and the last line of the message: a kubelet's message can be a whole log.
pub(super) fn said(reason: &str, message: Option<&str>) -> String {
    match message.and_then(|m| m.trim().lines().last()) {
        Some(line) => format!("{reason}: {line}"),
        None => reason.to_owned(),
    }
}

/// Returns the pod in the form of an observation.
pub(super) fn observed(pod: &Pod) -> observation::Pod {
    observation::Pod {
        name: pod.metadata.name.clone().unwrap_or_default(),
        uid: pod.metadata.uid.clone().unwrap_or_default(),
        node: pod.spec.as_ref().and_then(|s| s.node_name.clone()).map(NodeName),
        restarts: restarts(pod),
        trouble: trouble(pod),
    }
}

/// Returns the restarts of the container that restarted most often, an init container or not.
///
/// It is no sum: if the sandbox of a pod is created again (a reboot of the node), the kubelet runs every init
/// container once more and counts it.
fn restarts(pod: &Pod) -> u32 {
    let status = pod.status.as_ref();
    let init = status.into_iter().flat_map(|s| s.init_container_statuses.iter().flatten());
    let main = status.into_iter().flat_map(|s| s.container_statuses.iter().flatten());
    init.chain(main).map(|c| u32::try_from(c.restart_count).unwrap_or(0)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(status: &Value) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "p", "uid": "u"}, "spec": {"nodeName": "h1", "containers": []}, "status": status,
        }))
        .unwrap()
    }

    fn container(state: &Value, last: &Value, restarts: u32) -> Value {
        json!({"name": "osd", "image": "i", "imageID": "", "ready": false, "restartCount": restarts,
            "state": state, "lastState": last})
    }

    #[test]
    fn container_waiting_for_its_image_has_not_started() {
        let waiting =
            json!({"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image \"x\""}});
        let pod =
            pod(&json!({"phase": "Pending", "containerStatuses": [container(&waiting, &json!({}), 0)]}));
        assert!(!has_begun(&pod) && !is_terminal(&pod));
        assert_eq!(trouble(&pod).unwrap(), "container osd: ImagePullBackOff: Back-off pulling image \"x\"");
    }

    #[test]
    fn crashed_container_has_started_and_reports_its_exit() {
        let waiting = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}});
        let last =
            json!({"terminated": {"exitCode": 1, "reason": "Error", "message": "a\nno such device\n"}});
        let pod = pod(&json!({"phase": "Running", "containerStatuses": [container(&waiting, &last, 4)]}));
        assert!(has_begun(&pod));
        let seen = observed(&pod);
        assert_eq!((seen.restarts, seen.node), (4, Some(NodeName("h1".to_owned()))));
        assert_eq!(seen.trouble.unwrap(), "container osd: CrashLoopBackOff, exit 1: no such device");
    }

    #[test]
    fn restarts_of_init_containers_are_counted_but_not_summed() {
        let waiting = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 40s"}});
        let last = json!({"terminated": {"exitCode": 1, "reason": "Error"}});
        let initializing = json!({"waiting": {"reason": "PodInitializing"}});
        let failing = pod(&json!({"phase": "Pending",
            "initContainerStatuses": [container(&waiting, &last, 3)],
            "containerStatuses": [container(&initializing, &json!({}), 0)]}));
        let seen = observed(&failing);
        assert_eq!(seen.restarts, 3);
        assert_eq!(seen.trouble.unwrap(), "container osd: CrashLoopBackOff, exit 1");
        // After a reboot of the node, each container of the pod has run once more.
        let running = json!({"running": {}});
        let done = json!({"terminated": {"exitCode": 0}});
        let once = |state: &Value| container(state, &json!({}), 1);
        let rebooted = pod(&json!({"phase": "Running",
            "initContainerStatuses": [once(&done), once(&done), once(&done)],
            "containerStatuses": [once(&running)]}));
        assert_eq!(observed(&rebooted).restarts, 1);
    }

    #[test]
    fn pending_pod_reports_why_it_cannot_start() {
        let config =
            json!({"waiting": {"reason": "CreateContainerConfigError", "message": "secret \"x\" not found"}});
        let of_init =
            pod(&json!({"phase": "Pending", "initContainerStatuses": [container(&config, &json!({}), 0)]}));
        let text = "container osd: CreateContainerConfigError: secret \"x\" not found";
        assert_eq!(observed(&of_init).trouble.unwrap(), text);
        let unscheduled =
            pod(&json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": "0/3 nodes are available: 3 Insufficient memory."}]}));
        let text = "Unschedulable: 0/3 nodes are available: 3 Insufficient memory.";
        assert_eq!(observed(&unscheduled).trouble.unwrap(), text);
    }

    #[test]
    fn starting_pod_has_no_trouble_and_evicted_pod_has() {
        let creating = json!({"waiting": {"reason": "ContainerCreating"}});
        let starting =
            pod(&json!({"phase": "Pending", "containerStatuses": [container(&creating, &json!({}), 0)]}));
        assert_eq!(trouble(&starting), None);
        assert!(!has_begun(&pod(&json!({"phase": "Pending"}))));
        let evicted = pod(&json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}));
        assert!(is_terminal(&evicted) && has_begun(&evicted));
        assert_eq!(trouble(&evicted).unwrap(), "Evicted: low on memory");
    }
}
