//! The Job in which an agent runs on a node: the same for agents of a record and for inventories. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::domain::inspection::{PARENT_MOUNT, ROOK_MOUNT};
use crate::domain::osd::NodeName;
use crate::domain::policy::Declaration;
use crate::domain::storage::Resources;
use crate::k8s::names::INSTALL;
use crate::k8s::nodes::agent_pvc::{AgentPvcs, LAST_LINES};
use crate::k8s::own::own_pod::Own;

/// ServiceAccount of the agents: it may patch ConfigMaps and nothing else.
const SERVICE_ACCOUNT: &str = "osd-migrate-node";

/// Name of the agent's container: that of the runner's pod has another one.
const AGENT: &str = "agent";

/// Folder of the host for the agents' locks and issued fsids, below `dataDirHostPath`.
const HOST_FOLDER: &str = "osd-migrate";

/// Settings of all pods on nodes, whatever they do there.
#[derive(Debug, Clone, Copy)]
pub struct NodePod<'a> {
    /// Ceph image that the agent runs in.
    pub image: &'a str,
    /// Host folder `dataDirHostPath`.
    pub data_dir: &'a str,
    /// Declaration of the CephCluster. It says whether the daemons are on the host's network, where the mons
    /// are then reached, and which resources Rook gives the containers of its own Jobs: a quota of the
    /// namespace may require them.
    pub declaration: &'a Declaration,
    /// Pod of the runner: the image of its init container contains our program.
    pub own: &'a Own,
}

/// Everything that the pod of an agent is built from.
pub(super) struct AgentPod<'a> {
    /// Node of the pod; the pod runs on no other.
    pub(super) node: &'a NodeName,
    /// Settings that all pods on nodes share.
    pub(super) base: NodePod<'a>,
    /// Pod spec whose tolerations, priority class and pull secrets let the agent's pod onto that node, and
    /// whose init containers show which rights are needed to create the device nodes of PVCs.
    pub(super) osd_pod: &'a Value,
    /// Name of the ConfigMap that the agent reports to, and of the Job.
    pub(super) report: &'a str,
    /// Subcommand of our program below `node`: `agent` or `inventory`.
    pub(super) part: &'a str,
    /// Environment variable that contains the request.
    pub(super) ask: (&'a str, String),
    /// Secret with the agent's keyring, if it needs one.
    pub(super) key_secret: Option<&'a str>,
    /// Host folder that contains the directory in the request, if the request names one.
    pub(super) parent: Option<Parent<'a>>,
    /// True if the agent removes what Rook left of the old OSD, in addition to its disk.
    pub(super) clears_remains: bool,
    /// PVCs whose devices the agent works on, if the OSD is on PVCs.
    pub(super) pvcs: Option<AgentPvcs<'a>>,
}

/// A folder of the host.
#[derive(Clone, Copy)]
pub(super) struct Parent<'a> {
    pub(super) path: &'a str,
    /// False only for the agent that removes the directory.
    pub(super) read_only: bool,
}

/// Returns an owner reference to the ConfigMap of that name: the owned object is deleted with it.
pub(crate) fn owner(map: &str, uid: &str) -> Value {
    json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": map, "uid": uid}])
}

/// Builds the Job.
pub(super) fn job(
    pod: &AgentPod<'_>,
    labels: &BTreeMap<String, String>,
    annotations: &Value,
    owner_uid: &str,
) -> Value {
    // Our own labels take precedence over those of the owner: osd-migrate finds its objects by them.
    let with = |more: &BTreeMap<String, String>| {
        more.clone().into_iter().chain(labels.clone()).collect::<BTreeMap<_, _>>()
    };
    let mut pod_labels = with(&pod.base.own.more.pod_labels);
    let mut pod_annotations = json!(pod.base.own.more.pod_annotations);
    // A side-car would keep the Job from ending; an autoscaler would end it in the middle.
    pod_labels.insert("sidecar.istio.io/inject".to_owned(), "false".to_owned());
    if let Some(all) = pod_annotations.as_object_mut() {
        all.extend(annotations.as_object().cloned().unwrap_or_default());
        all.insert("cluster-autoscaler.kubernetes.io/safe-to-evict".to_owned(), json!("false"));
        all.insert("linkerd.io/inject".to_owned(), json!("disabled"));
        all.insert("kubectl.kubernetes.io/default-container".to_owned(), json!(AGENT));
    }
    json!({
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": pod.report,
            "labels": with(&pod.base.own.more.labels),
            "annotations": annotations,
            "ownerReferences": owner(pod.report, owner_uid),
        },
        "spec": {
            // The Job starts only once: the runner decides whether to try again, after an observation.
            "backoffLimit": 0,
            // A second pod must not start while the first may still write.
            "podReplacementPolicy": "Failed",
            "template": {
                "metadata": {"labels": pod_labels, "annotations": pod_annotations},
                "spec": pod_spec(pod),
            },
        },
    })
}

fn pod_spec(pod: &AgentPod<'_>) -> Value {
    let of_osd = |field: &str| pod.osd_pod.get(field).filter(|value| !value.is_null()).cloned();
    let mut secrets = pod.base.own.pull_secrets.clone();
    let theirs = of_osd("imagePullSecrets").and_then(|s| s.as_array().cloned()).unwrap_or_default();
    secrets.extend(theirs.iter().filter_map(|s| s.get("name")?.as_str()).map(str::to_owned));
    secrets.sort();
    secrets.dedup();
    let host_network = pod.base.declaration.host_network;
    let resources = resources(&pod.base.declaration.prepare_resources);
    let mut init_containers = vec![install(pod.base.own, &resources)];
    init_containers.extend(pod.pvcs.map(|pvcs| pvcs.bridge(pod.base.image, &resources, pod.osd_pod)));
    let mut spec = json!({
        "restartPolicy": "Never",
        // A drain of the node lets the agent finish: a rebuild takes seconds to a few minutes.
        "terminationGracePeriodSeconds": 300,
        // The node is set by name: without a scheduler, no taint and no full node keeps the pod away from the
        // only node with the disk.
        "nodeName": pod.node.0,
        "tolerations": of_osd("tolerations").unwrap_or_else(|| json!([])),
        "serviceAccountName": SERVICE_ACCOUNT,
        // The agent reports with its token. Policies that harden namespaces set the account's default to
        // false.
        "automountServiceAccountToken": true,
        "enableServiceLinks": false,
        "hostNetwork": host_network,
        "dnsPolicy": if host_network { "ClusterFirstWithHostNet" } else { "ClusterFirst" },
        "imagePullSecrets": secrets.into_iter().map(|name| json!({"name": name})).collect::<Vec<_>>(),
        "initContainers": init_containers,
        "containers": [agent(pod, &resources)],
        "volumes": volumes(pod),
    });
    if let (Some(class), Some(spec)) = (of_osd("priorityClassName"), spec.as_object_mut()) {
        spec.insert("priorityClassName".to_owned(), class);
    }
    spec
}

/// Returns the resources for every container, because the namespace's quota may require them.
///
/// Rook does the same in its own Jobs (pkg/operator/ceph/cluster/osd/provision_spec.go,
/// `applyResourcesToAllContainers`). The limits are Rook's, but the requests are 0: a kubelet rejects a pod
/// that does not fit, and an agent has to run on a full node, too. Without an explicit request, Kubernetes
/// would set it to the limit.
fn resources(declared: &Resources) -> Value {
    let names: BTreeSet<&String> = declared.requests.keys().chain(declared.limits.keys()).collect();
    if names.is_empty() {
        return json!({});
    }
    let requests: BTreeMap<&String, &str> = names.into_iter().map(|name| (name, "0")).collect();
    json!({"requests": requests, "limits": declared.limits})
}

/// Builds the init container that copies our program to the volume that the agent's container mounts
/// (`image/install.rs`).
fn install(own: &Own, resources: &Value) -> Value {
    let mut container = json!({
        "name": INSTALL,
        "image": own.image,
        "terminationMessagePolicy": LAST_LINES,
        "command": ["/install", "/opt/osd-migrate"],
        "resources": resources,
        "volumeMounts": [{"name": "program", "mountPath": "/opt/osd-migrate"}],
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    });
    if let (Some(policy), Some(container)) = (&own.pull_policy, container.as_object_mut()) {
        container.insert("imagePullPolicy".to_owned(), json!(policy));
    }
    container
}

fn agent(pod: &AgentPod<'_>, resources: &Value) -> Value {
    let (variable, ask) = &pod.ask;
    // Mounts are not passed on to the host: what the agent mounts to prove an OSD ends with the agent.
    let mut mounts = vec![
        json!({"name": "program", "mountPath": "/opt/osd-migrate", "readOnly": true}),
        json!({"name": "state", "mountPath": "/var/lib/osd-migrate"}),
        json!({"name": "devices", "mountPath": "/dev"}),
        json!({"name": "run-udev", "mountPath": "/run/udev"}),
    ];
    if pod.key_secret.is_some() {
        mounts.push(
            json!({"name": "bootstrap-key", "mountPath": "/var/lib/ceph/bootstrap-osd", "readOnly": true}),
        );
    }
    if let Some(parent) = pod.parent {
        // The mount includes what is mounted below it, so that the agent sees mount points. Later mounts of
        // the host do not appear in it.
        mounts.push(json!({"name": "parent", "mountPath": PARENT_MOUNT, "readOnly": parent.read_only}));
    }
    if pod.clears_remains {
        mounts.push(json!({"name": "rook", "mountPath": ROOK_MOUNT}));
    }
    mounts.extend(pod.pvcs.into_iter().flat_map(AgentPvcs::mounts));
    json!({
        "name": AGENT,
        "image": pod.base.image,
        "terminationMessagePolicy": LAST_LINES,
        "command": ["/opt/osd-migrate/osd-migrate", "node", pod.part],
        "env": [
            {"name": variable, "value": ask.replace("$(", "$$(")},
            {"name": "OSD_MIGRATE_REPORT", "value": pod.report},
            {"name": "OSD_MIGRATE_RUNNER", "value": env!("CARGO_PKG_VERSION")},
            {"name": "OSD_MIGRATE_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            // LVM and cryptsetup would wait forever for the host's udevd, whose semaphores a pod does not
            // share.
            {"name": "DM_DISABLE_UDEV", "value": "1"},
            {"name": "CEPH_VOLUME_SKIP_RESTORECON", "value": "1"},
        ],
        "resources": resources,
        "securityContext": {"privileged": true, "runAsUser": 0},
        "volumeMounts": mounts,
    })
}

fn volumes(pod: &AgentPod<'_>) -> Value {
    let state = format!("{}/{HOST_FOLDER}", pod.base.data_dir.trim_end_matches('/'));
    let mut volumes = vec![
        json!({"name": "program", "emptyDir": {}}),
        json!({"name": "state", "hostPath": {"path": state, "type": "DirectoryOrCreate"}}),
        json!({"name": "devices", "hostPath": {"path": "/dev"}}),
        json!({"name": "run-udev", "hostPath": {"path": "/run/udev"}}),
    ];
    if let Some(secret) = pod.key_secret {
        volumes.push(json!({"name": "bootstrap-key", "secret": {"secretName": secret, "defaultMode": 256}}));
    }
    if let Some(parent) = pod.parent {
        // A folder that is gone with all its content is created again, empty. Otherwise the agent could not
        // start and report that.
        let path = json!({"path": parent.path, "type": "DirectoryOrCreate"});
        volumes.push(json!({"name": "parent", "hostPath": path}));
    }
    if pod.clears_remains {
        let path = json!({"path": pod.base.data_dir, "type": "DirectoryOrCreate"});
        volumes.push(json!({"name": "rook", "hostPath": path}));
    }
    volumes.extend(pod.pvcs.into_iter().flat_map(AgentPvcs::volumes));
    Value::Array(volumes)
}
