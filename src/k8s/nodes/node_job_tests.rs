use serde_json::json;

use super::*;
use crate::domain::osd::{DeviceIdentity, Layout, Mode, NodeName, ObjectStore};
use crate::domain::policy::Declaration;
use crate::domain::removal::DiskAfter;
use crate::domain::storage::Resources;
use crate::k8s::own::own_pod::{More, Own};

pub(crate) fn request() -> NodeRequest {
    NodeRequest {
        record: RecordId("r12-a7".to_owned()),
        attempt: 2,
        task: NodeTask::Rebuild,
        node: NodeName("h1".to_owned()),
        cluster: "6a1b2c3d-0000-4000-8000-000000000001".parse().unwrap(),
        osd: OsdId(12),
        old: "1f0c3b5e-8a52-4a7e-9d2f-3a1f5d0e7b11".parse().unwrap(),
        issued: [].into(),
        mon_host: "[v2:10.0.0.1:3300,v1:10.0.0.1:6789]".to_owned(),
        evidence: None,
        target: Layout { store: ObjectStore::bluestore(), mode: Mode::Raw, encrypted: false },
        device_class: Some("hdd".to_owned()),
        on_file: false,
        db: None,
        after: None,
        directory: None,
        pvcs: None,
        on_new_pvcs: false,
        is_encrypted: false,
    }
}

pub(crate) fn own() -> Own {
    Own {
        pod: "m-x".to_owned(),
        pod_uid: "p".to_owned(),
        node: None,
        job: "m".to_owned(),
        job_uid: "j".to_owned(),
        scheduled: false,
        failed_pods: 0,
        resumes: false,
        image: "osd-migrate:dev".to_owned(),
        pull_policy: Some("Always".to_owned()),
        pull_secrets: vec!["pull".to_owned()],
        more: more(),
    }
}

/// Returns labels and annotations that the owner wants on every pod; one key of them is ours.
fn more() -> More {
    let pairs = |all: &[(&str, &str)]| all.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    More {
        labels: pairs(&[("team", "storage")]),
        pod_labels: pairs(&[("team", "storage"), ("cost-centre", "1"), ("sidecar.istio.io/inject", "true")]),
        pod_annotations: pairs(&[
            ("example.org/logs", "true"),
            (RECORD, "theirs"),
            ("kubectl.kubernetes.io/default-container", "osd-migrate"),
        ]),
    }
}

pub(crate) fn declaration() -> Declaration {
    Declaration { host_network: true, ..crate::k8s::osd::render_osd::tests::declaration() }
}

fn built() -> Value {
    built_of(&request())
}

pub(crate) fn built_of(request: &NodeRequest) -> Value {
    built_by(request, &declaration())
}

fn built_by(request: &NodeRequest, declaration: &Declaration) -> Value {
    let osd_pod = json!({"tolerations": [{"key": "storage", "operator": "Exists"}],
        "priorityClassName": "system-node-critical", "imagePullSecrets": [{"name": "ceph-pull"}, {"name": "pull"}]});
    let own = own();
    build(&Blueprint {
        request,
        base: NodePod { image: "ceph:16.2.15", data_dir: "/var/lib/rook/", declaration, own: &own },
        osd_pod: &osd_pod,
        report_uid: "report",
    })
}

#[test]
fn node_job_requests_zero_of_each_declared_resource() {
    let quantities =
        |all: &[(&str, &str)]| all.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let prepare_resources =
        Resources { requests: quantities(&[("cpu", "500m")]), limits: quantities(&[("memory", "1Gi")]) };
    let job = built_by(&request(), &Declaration { prepare_resources, ..declaration() });
    for container in ["initContainers", "containers"] {
        let resources = job.pointer(&format!("/spec/template/spec/{container}/0/resources"));
        let expected = json!({"requests": {"cpu": "0", "memory": "0"}, "limits": {"memory": "1Gi"}});
        assert_eq!(resources, Some(&expected), "{container}");
    }
    assert_eq!(built().pointer("/spec/template/spec/containers/0/resources"), Some(&json!({})));
}

#[test]
fn node_job_runs_once_and_only_on_its_node() {
    let job = built();
    let at = |pointer: &str| job.pointer(pointer).unwrap_or_else(|| panic!("{pointer}"));
    assert_eq!(at("/metadata/name"), "osd-migrate-rebuild-12-r12-a7-2");
    assert_eq!(at("/metadata/ownerReferences/0/uid"), "report");
    assert_eq!(at("/spec/backoffLimit"), 0);
    assert_eq!(at("/spec/podReplacementPolicy"), "Failed");
    assert!(job.pointer("/spec/ttlSecondsAfterFinished").is_none());
    // There is no side-car, which would keep the Job from ending: Istio reads a label, Linkerd an annotation.
    assert_eq!(at("/spec/template/metadata/labels/sidecar.istio.io~1inject"), "false");
    assert_eq!(at("/spec/template/metadata/annotations/linkerd.io~1inject"), "disabled");
    // The runner's Job, whose annotations the owner extends, names its own container.
    assert_eq!(at("/spec/template/metadata/annotations/kubectl.kubernetes.io~1default-container"), "agent");
    let pod = "/spec/template/spec";
    assert_eq!(at(&format!("{pod}/nodeName")), "h1");
    assert_eq!(at(&format!("{pod}/automountServiceAccountToken")), true, "whatever its account says");
    assert_eq!(at(&format!("{pod}/restartPolicy")), "Never");
    assert_eq!(at(&format!("{pod}/hostNetwork")), true);
    assert_eq!(at(&format!("{pod}/priorityClassName")), "system-node-critical");
    assert_eq!(at(&format!("{pod}/tolerations/0/key")), "storage");
    assert_eq!(at(&format!("{pod}/imagePullSecrets")), &json!([{"name": "ceph-pull"}, {"name": "pull"}]));
    assert_eq!(at(&format!("{pod}/containers/0/securityContext/privileged")), true);
    assert!(!job.to_string().contains("mountPropagation"));
    assert!(job.to_string().contains(r#"{"name":"DM_DISABLE_UDEV","value":"1"}"#));
    assert!(job.to_string().contains("/var/lib/rook/osd-migrate"));
}

/// Asserts the values `labels`, `podLabels`, `podAnnotations` of the chart: policies require them first on
/// privileged pods.
pub(crate) fn assert_adorned(job: &Value) {
    let (labels, pod) = (&job["metadata"]["labels"], &job["spec"]["template"]["metadata"]);
    assert_eq!((&labels["team"], labels.get("cost-centre")), (&json!("storage"), None));
    assert_eq!((&pod["labels"]["team"], &pod["labels"]["cost-centre"]), (&json!("storage"), &json!("1")));
    assert_eq!(pod["annotations"]["example.org/logs"], "true");
    assert_eq!(pod["labels"]["sidecar.istio.io/inject"], "false");
    assert_eq!(pod["annotations"]["linkerd.io/inject"], "disabled");
    for ours in labels.as_object().unwrap().iter().filter(|(key, _)| *key != "team") {
        assert_eq!(&pod["labels"][ours.0], ours.1, "by it the pod is found");
    }
}

#[test]
fn node_job_gets_owner_labels_that_replace_none_of_its_own() {
    let job = built();
    assert_adorned(&job);
    assert_eq!(job["spec"]["template"]["metadata"]["annotations"][RECORD], "r12-a7");
}

/// Asserts that only the agent is privileged.
///
/// Runner and hooks have no such right (`tests/suite/chart.rs`). Here one container has it, and the other
/// one, which does not need it, is restricted.
#[test]
fn agent_is_the_only_privileged_container() {
    let job = built();
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!(pod["containers"].as_array().unwrap().len(), 1);
    assert_eq!(pod["containers"][0]["securityContext"], json!({"privileged": true, "runAsUser": 0}));
    let [install] = pod["initContainers"].as_array().unwrap().as_slice() else { panic!("several") };
    let expected = json!({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
        "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}});
    assert_eq!(install["securityContext"], expected);
    assert_eq!(
        (&install["image"], &install["imagePullPolicy"]),
        (&json!("osd-migrate:dev"), &json!("Always")),
        "as the runner's"
    );
    assert_eq!(install["command"], json!(["/install", "/opt/osd-migrate"]));
}

#[test]
fn parent_of_an_osd_directory_is_writable_only_to_clear_it() {
    let onto =
        DeviceIdentity { by_id: [].into(), by_path: [].into(), serial: None, wwn: None, size_bytes: 1 };
    let of = |task, path: &str| {
        let directory = Some(Directory { path: path.to_owned(), onto: Some(onto.clone()) });
        built_of(&NodeRequest { task, directory, ..request() })
    };
    let by_name = |job: &Value, list: &str| {
        let list = job.pointer(&format!("/spec/template/spec/{list}")).unwrap().as_array().unwrap().clone();
        list.into_iter().find(|item| item["name"] == "parent")
    };
    for (task, read_only) in [(NodeTask::Inspect, true), (NodeTask::Rebuild, true), (NodeTask::Clear, false)]
    {
        let job = of(task, "/srv/storage/osd3");
        let volume = by_name(&job, "volumes").unwrap();
        assert_eq!(volume["hostPath"], json!({"path": "/srv/storage", "type": "DirectoryOrCreate"}));
        let mount = by_name(&job, "containers/0/volumeMounts").unwrap();
        assert_eq!(
            (&mount["mountPath"], &mount["readOnly"]),
            (&json!(crate::domain::inspection::PARENT_MOUNT), &json!(read_only))
        );
        assert!(!job.to_string().contains("mountPropagation"));
    }
    for job in [of(NodeTask::Clear, "/osd3"), of(NodeTask::Clear, "/srv/../osd3"), built()] {
        assert_eq!(by_name(&job, "volumes"), None, "never the whole host");
    }
}

#[test]
fn rook_data_dir_is_mounted_only_for_a_rebuild_or_a_wipe() {
    for (task, is_mounted) in [
        (NodeTask::Inspect, false),
        (NodeTask::Rebuild, true),
        (NodeTask::RestoreSlot, false),
        (NodeTask::Clear, false),
        (NodeTask::Wipe, true),
    ] {
        let job = built_of(&NodeRequest { task, ..request() }).to_string();
        assert_eq!(job.contains(crate::domain::inspection::ROOK_MOUNT), is_mounted, "{task}");
        assert_eq!(
            job.contains(r#""path":"/var/lib/rook/","type":"DirectoryOrCreate""#),
            is_mounted,
            "{task}"
        );
    }
}

#[test]
fn node_request_is_read_back_unchanged_from_its_job() {
    let job = built();
    let vars = job.pointer("/spec/template/spec/containers/0/env").and_then(Value::as_array).unwrap();
    let value = vars.iter().find(|v| v["name"] == "OSD_MIGRATE_REQUEST").unwrap()["value"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<NodeRequest>(value).unwrap(), request());
}

/// Asserts that the agent of a wipe gets what that of a rebuild gets: devices, key, locks, Rook's folder.
#[test]
fn wipe_job_differs_from_a_rebuild_job_only_in_its_task() {
    let request = NodeRequest { after: Some(DiskAfter::Mark), ..request() };
    let of = |task| {
        let request = NodeRequest { task, ..request.clone() };
        let asked = serde_json::to_string(&request).unwrap();
        let job = serde_json::to_string(&built_of(&request)).unwrap();
        let job = job.replace(&serde_json::to_string(&asked).unwrap(), "REQUEST");
        assert!(job.contains("REQUEST") && asked.contains(r#""after":"mark""#), "{asked}");
        job.replace("osd-migrate-wipe-", "osd-migrate-rebuild-").replace(r#""wipe""#, r#""rebuild""#)
    };
    assert_eq!(of(NodeTask::Wipe), of(NodeTask::Rebuild));
}

fn seen(uid: &str, status: &Value) -> Result<JobSeen, String> {
    let mut job = built();
    job["metadata"]["uid"] = json!(uid);
    job["metadata"]["creationTimestamp"] = json!("2026-11-21T10:00:00Z");
    job["status"] = status.clone();
    job_seen(&serde_json::from_value(job).unwrap())
}

fn pod_of(uid: &str, status: &Value) -> Pod {
    let mut labels = built().pointer("/spec/template/metadata/labels").unwrap().clone();
    labels["batch.kubernetes.io/job-name"] = json!("osd-migrate-rebuild-12-r12-a7-2");
    labels["batch.kubernetes.io/controller-uid"] = json!(uid);
    let annotations = built().pointer("/spec/template/metadata/annotations").unwrap().clone();
    serde_json::from_value(json!({"metadata": {"name": "x", "labels": labels, "annotations": annotations,
        "creationTimestamp": "2026-11-21T10:00:01Z"}, "status": status}))
    .unwrap()
}

fn state_of(job: &Value, pods: &[Value]) -> JobState {
    state_with(true, job, pods)
}

fn state_with(has_report: bool, job: &Value, pods: &[Value]) -> JobState {
    let pods = pods.iter().filter_map(|status| pod_seen(&pod_of("j", status))).collect();
    let (jobs, notes) = assemble(vec![seen("j", job)], pods, |_| has_report, &BTreeMap::new());
    assert_eq!(notes, Vec::<String>::new());
    jobs[0].state
}

#[test]
fn node_job_ends_by_its_condition_or_a_pod_that_succeeded() {
    let condition = |kind: &str| json!({"conditions": [{"type": kind, "status": "True"}], "failed": 1});
    let container = |state: Value| {
        json!([{"name": "agent", "image": "i", "imageID": "", "ready": false,
        "restartCount": 0, "state": state}])
    };
    let running = json!({"phase": "Running", "containerStatuses": container(json!({"running": {}}))});
    let over = json!({"phase": "Failed"});
    let waiting = json!({"phase": "Pending",
        "containerStatuses": container(json!({"waiting": {"reason": "PodInitializing"}}))});
    let none = json!({});
    assert_eq!(state_of(&none, &[]), JobState::Waiting);
    assert_eq!(state_of(&none, std::slice::from_ref(&waiting)), JobState::Waiting);
    assert_eq!(state_of(&none, std::slice::from_ref(&running)), JobState::Running);
    assert_eq!(
        state_of(&none, std::slice::from_ref(&over)),
        JobState::Running,
        "its controller has not said so yet"
    );
    assert_eq!(state_of(&condition("FailureTarget"), std::slice::from_ref(&over)), JobState::Running);
    let succeeded = json!({"phase": "Succeeded"});
    assert_eq!(state_of(&none, std::slice::from_ref(&succeeded)), JobState::Ended);
    assert_eq!(
        state_with(false, &none, std::slice::from_ref(&succeeded)),
        JobState::Running,
        "no report yet"
    );
    assert_eq!(state_of(&none, &[succeeded, running.clone()]), JobState::Running, "another pod is alive");
    assert_eq!(state_of(&condition("Failed"), &[running]), JobState::Running);
    assert_eq!(state_of(&condition("Failed"), &[waiting]), JobState::Running);
    assert_eq!(state_of(&condition("Failed"), std::slice::from_ref(&over)), JobState::Ended);
    assert_eq!(state_of(&condition("Complete"), &[]), JobState::Ended);
    assert_eq!(state_of(&json!({"failed": 1}), &[]), JobState::Running);
}

#[test]
fn pod_that_outlives_its_job_counts_as_running() {
    let alive = pod_seen(&pod_of("gone", &json!({"phase": "Pending"}))).unwrap();
    let dead = pod_seen(&pod_of("older", &json!({"phase": "Succeeded"}))).unwrap();
    let beat = "2026-11-21T10:00:30Z".parse().unwrap();
    let name = "osd-migrate-rebuild-12-r12-a7-2".to_owned();
    let (jobs, _) = assemble(Vec::new(), vec![alive, dead], |_| true, &[(name, beat)].into());
    assert_eq!(jobs.len(), 1);
    assert_eq!((jobs[0].state, jobs[0].uid.as_str(), jobs[0].osd), (JobState::Running, "gone", OsdId(12)));
    assert_eq!((jobs[0].attempt, jobs[0].task, jobs[0].heartbeat_at), (2, NodeTask::Rebuild, Some(beat)));
}

#[test]
fn invalid_report_is_an_error_and_an_empty_one_is_none() {
    let data = |report: &str| [(REPORT.to_owned(), report.to_owned())].into();
    assert!(report_seen(&BTreeMap::new()).report.is_none());
    assert!(report_seen(&data("")).report.is_none());
    assert!(report_seen(&data("{}")).report.unwrap().is_err());
}
