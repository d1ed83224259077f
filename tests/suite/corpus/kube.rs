//! The same cluster in Kubernetes: objects of the shape that a real API server serves, and a server that
//! lists them in pages.

use std::collections::BTreeMap;

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use osd_migrate::domain::observation::Kube;
use osd_migrate::k8s::{K8s, Place};
use serde_json::{Value, json};

use super::answers::image;
use super::cluster::{CLUSTER, Cluster, Host, Layout, Osd, State, fsid};
use crate::runbook::read;

const NAMESPACE: &str = "rook-ceph";
const CLUSTER_UID: &str = "e9265b0d-5ca1-4e00-8000-00000c0ffee0";
const STARTED: &str = "2026-11-20T06:14:02Z";

/// Observes the cluster through the adapter.
pub(crate) async fn observe(cluster: &Cluster) -> Kube {
    let server = Server::of(cluster);
    let (service, mut handle) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
    let k8s = K8s::with_client(Client::new(service, NAMESPACE), Place::new(NAMESPACE));
    let serving = tokio::spawn(async move {
        while let Some((request, respond)) = handle.next_request().await {
            let (status, answer) = server.answer(&request.uri().to_string());
            let body = Body::from(serde_json::to_vec(&answer).unwrap());
            respond.send_response(Response::builder().status(status).body(body).unwrap());
        }
    });
    let kube = k8s.observe().await.unwrap();
    drop(k8s);
    serving.await.unwrap();
    kube
}

/// Lists by path and label selector.
struct Server {
    lists: BTreeMap<&'static str, Vec<Value>>,
}

impl Server {
    fn of(cluster: &Cluster) -> Self {
        let templates = Templates::read();
        let (mut deployments, mut pods) = (Vec::new(), Vec::new());
        for osd in &cluster.osds {
            let deployment = templates.deployment(cluster, osd);
            pods.push(pod(cluster, osd, &deployment));
            deployments.push(deployment);
        }
        let lists = [
            ("cephclusters", vec![ceph_cluster(cluster)]),
            ("deployments osds", deployments),
            ("pods osds", pods),
            ("nodes", cluster.hosts.iter().map(node).collect()),
            ("deployments others", vec![operator()]),
            ("pods operator", Vec::new()),
        ];
        Self { lists: lists.into() }
    }

    fn answer(&self, uri: &str) -> (u16, Value) {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let parameters: BTreeMap<&str, &str> =
            query.split('&').filter_map(|pair| pair.split_once('=')).collect();
        let selector = parameters.get("labelSelector").copied().unwrap_or("");
        let kind = path.rsplit('/').next().unwrap();
        let list = match (kind, selector) {
            ("cephclusters" | "nodes", _) => kind,
            ("deployments", "app%3Drook-ceph-osd") => "deployments osds",
            ("deployments", _) => "deployments others",
            ("pods", "app%3Drook-ceph-osd") => "pods osds",
            ("pods", "app%3Drook-ceph-operator") => "pods operator",
            ("pods" | "jobs" | "configmaps", _) => "",
            ("rook-ceph-osd", _) => return (200, pdb()),
            (name, _) => return (404, not_found(name)),
        };
        let all = self.lists.get(list).map(Vec::as_slice).unwrap_or_default();
        let limit = parameters.get("limit").map_or(all.len(), |limit| limit.parse().unwrap());
        let from: usize = parameters.get("continue").map_or(0, |from| from.parse().unwrap());
        let items = &all[from..all.len().min(from + limit)];
        let next = from + items.len();
        let go_on = if next < all.len() { next.to_string() } else { String::new() };
        let metadata =
            json!({"resourceVersion": "918273", "continue": go_on, "remainingItemCount": all.len() - next});
        (200, json!({"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items}))
    }
}

fn not_found(name: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 404,
    "reason": "NotFound",
        "message": format!("\"{name}\" not found")})
}

/// Captured Deployments from which those of the cluster are derived.
struct Templates {
    filestore: String,
    by_hand: String,
    raw: String,
}

impl Templates {
    fn read() -> Self {
        let of = |name: &str| read(&format!("tests/suite/fixtures/legacy/16.2.15/{name}.deployment.json"));
        Self { filestore: of("filestore-part"), by_hand: of("bluestore-dev"), raw: of("raw") }
    }

    /// Returns the captured Deployment with another id, host, fsid, image and device, as its controller sees
    /// it.
    fn deployment(&self, cluster: &Cluster, osd: &Osd) -> Value {
        let (template, id, host, old) = match osd.layout {
            Layout::Filestore => (&self.filestore, "7", "h2", "067fb35a-00a7-4f1a-9ad9-2b329c5332a3"),
            Layout::ByHand => (&self.by_hand, "8", "h3", "1da2aa7b-be64-46f3-ae86-fac0f4e02abb"),
            Layout::Raw
            | Layout::NoSerial
            | Layout::Multipath
            | Layout::HostLuks
            | Layout::Lvm
            | Layout::LvmCrypt => (&self.raw, "2", "h3", "198dd222-bbd2-4aaf-b9b7-ef0750c8c510"),
        };
        let number = osd.id;
        let pairs = [
            (format!("\"{id}\""), format!("\"{number}\"")),
            (format!("rook-ceph-osd-{id}\""), format!("rook-ceph-osd-{number}\"")),
            (format!("/ceph-{id}"), format!("/ceph-{number}")),
            (format!("/osd{id}"), format!("/osd{number}")),
            (format!("\"{host}\""), format!("\"{}\"", cluster.host_of(osd).name)),
            (format!("host={host}\""), format!("host={}\"", cluster.host_of(osd).name)),
            (old.to_owned(), fsid(number)),
            ("lab.local/ceph:16.2.15".to_owned(), image(cluster)),
            ("\"/dev/loop2\"".to_owned(), format!("\"{}\"", block_path(osd))),
        ];
        let mut text = template.clone();
        for (from, to) in pairs {
            text = text.replace(&from, &to);
        }
        if matches!(osd.layout, Layout::Lvm | Layout::LvmCrypt) {
            text = text.replace("\"value\": \"raw\"", "\"value\": \"lvm\"");
        }
        if osd.layout == Layout::LvmCrypt {
            text = text.replace("\"encrypted\": \"false\"", "\"encrypted\": \"true\"");
        }
        let mut deployment: Value = serde_json::from_str(&text).unwrap();
        let available = u32::from(osd.state == State::Up);
        deployment["metadata"]["uid"] = json!(uid(number, "d"));
        deployment["metadata"]["resourceVersion"] = json!((700_000 + number).to_string());
        deployment["metadata"]["generation"] = json!(3);
        deployment["metadata"]["creationTimestamp"] = json!("2021-03-02T10:24:45Z");
        deployment["status"] = json!({"observedGeneration": 3, "replicas": 1, "updatedReplicas": 1,
        "readyReplicas": available,
            "availableReplicas": available, "unavailableReplicas": 1 - available, "conditions": [
            {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable",
            "message": "has successfully progressed."},
            {"type": "Available", "status": if available == 1 { "True" } else { "False" },
            "reason": "MinimumReplicasAvailable"},
        ]});
        deployment
    }
}

fn uid(osd: u32, kind: &str) -> String {
    format!("{kind}{osd:07x}-5ca1-4e00-8000-00000c0ffee0")
}

/// Returns the device that the OSD's Deployment names.
fn block_path(osd: &Osd) -> String {
    match osd.layout {
        Layout::Multipath => format!("/dev/mapper/mpath{}", osd.disk),
        Layout::HostLuks => format!("/dev/mapper/luks-{}", osd.disk),
        Layout::Lvm | Layout::LvmCrypt => format!("/dev/ceph-{}/osd-block-{}", fsid(osd.id), fsid(osd.id)),
        Layout::Filestore | Layout::ByHand | Layout::Raw | Layout::NoSerial => {
            format!("/dev/{}", osd.kernel_name())
        }
    }
}

fn pod(cluster: &Cluster, osd: &Osd, deployment: &Value) -> Value {
    let template = &deployment["spec"]["template"];
    let host = cluster.host_of(osd);
    let mut spec = template["spec"].clone();
    spec["nodeName"] = json!(host.name);
    let name = format!("rook-ceph-osd-{}-7d9f6c8b5c-x2x7k", osd.id);
    let runs = json!({"running": {"startedAt": STARTED}});
    let crashes = json!({"waiting": {"reason": "CrashLoopBackOff",
    "message": format!("back-off 5m0s restarting failed container=osd pod={name}")}});
    let (ready, state, restarts) = match osd.state {
        State::Up => (true, runs, 0),
        State::Down => (false, runs, 0), // the last that its kubelet said
        State::Dead | State::NeverBooted => (false, crashes, 812),
    };
    let last = if restarts > 0 {
        json!({"terminated": {"exitCode": 1, "reason": "Error", "startedAt": STARTED, "finishedAt": STARTED}})
    } else {
        json!({})
    };
    let conditions = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"]
        .map(|kind| {
            let status = ready || !kind.contains("Ready") || kind.starts_with("PodReady");
            json!({"type": kind, "status": if status { "True" } else { "False" }, "lastProbeTime": null,
        "lastTransitionTime": STARTED})
        });
    json!({
        "metadata": {"name": name, "namespace": NAMESPACE, "uid": uid(osd.id, "b"),
        "resourceVersion": (800_000 + osd.id).to_string(),
            "creationTimestamp": STARTED, "labels": template["metadata"]["labels"],
            "generateName": format!("rook-ceph-osd-{}-7d9f6c8b5c-", osd.id),
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet",
            "name": format!("rook-ceph-osd-{}-7d9f6c8b5c", osd.id),
                "uid": uid(osd.id, "a"), "controller": true, "blockOwnerDeletion": true}]},
        "spec": spec,
        "status": {"phase": "Running", "hostIP": "10.20.0.1", "podIP": "10.20.0.1", "qosClass": "BestEffort",
        "startTime": STARTED,
            "conditions": conditions,
            "containerStatuses": [{"name": "osd", "image": image(cluster),
            "imageID": "quay.io/ceph/ceph@sha256:9f86d081884c7d659a2feaa0c55ad015",
                "containerID": "cri-o://4f1a9ad92b329c5332a3", "ready": ready, "started": ready,
                "restartCount": restarts, "state": state, "lastState": last}],
        },
    })
}

fn node(host: &Host) -> Value {
    let zone = "topology.kubernetes.io/zone";
    let mut taints = Vec::new();
    if host.cordoned {
        taints.push(
            json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": STARTED}),
        );
    }
    if !host.ready {
        taints.push(
            json!({"key": "node.kubernetes.io/unreachable", "effect": "NoExecute", "timeAdded": STARTED}),
        );
    }
    let condition = |kind: &str| {
        let status = match (kind, host.ready) {
            (_, false) => "Unknown",
            ("Ready", true) => "True",
            (_, true) => "False",
        };
        json!({"type": kind, "status": status, "reason": "Kubelet", "message": "kubelet says so",
        "lastHeartbeatTime": STARTED, "lastTransitionTime": STARTED})
    };
    let conditions = ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"].map(condition);
    json!({
        "metadata": {"name": host.name, "uid": format!("node-{}", host.name), "resourceVersion": "900001",
        "creationTimestamp": STARTED, "labels": {
            "beta.kubernetes.io/arch": "amd64", "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux",
            "kubernetes.io/hostname": host.name,
            "node-role.kubernetes.io/storage": "", zone: host.rack, "topology.rook.io/rack": host.rack},
            "annotations": {"node.alpha.kubernetes.io/ttl": "0",
            "volumes.kubernetes.io/controller-managed-attach-detach": "true"}},
        "spec": {"podCIDR": "10.244.3.0/24", "unschedulable": host.cordoned, "taints": taints},
        "status": {"capacity": {"cpu": "64", "memory": "394772348Ki", "pods": "250"},
        "allocatable": {"cpu": "63", "memory": "393621372Ki", "pods": "250"},
            "conditions": conditions,
            "addresses": [{"type": "InternalIP", "address": "10.20.0.1"}, {"type": "Hostname",
            "address": host.name}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {"machineID": "m", "systemUUID": "s", "bootID": "b",
            "kernelVersion": "5.14.0-427.13.1.el9_4.x86_64", "osImage": "CentOS Stream 9",
                "containerRuntimeVersion": "cri-o://1.29.4", "kubeletVersion": "v1.29.6",
                "kubeProxyVersion": "v1.29.6", "operatingSystem": "linux", "architecture": "amd64"},
            "images": [{"names": ["quay.io/ceph/ceph@sha256:9f86d081884c7d659a2feaa0c55ad015"],
            "sizeBytes": 1_325_400_064}]},
    })
}

fn ceph_cluster(cluster: &Cluster) -> Value {
    let image = image(cluster);
    json!({
        "apiVersion": "ceph.rook.io/v1", "kind": "CephCluster",
        "metadata": {"name": "rook-ceph", "namespace": NAMESPACE, "uid": CLUSTER_UID,
        "resourceVersion": "918273", "generation": 12, "finalizers": ["cephcluster.ceph.rook.io"]},
        "spec": {"cephVersion": {"image": image}, "dataDirHostPath": "/var/lib/rook", "mon": {"count": 5},
        "mgr": {"count": 2},
            "network": {"provider": "host"}, "crashCollector": {},
            "disruptionManagement": {"managePodBudgets": true, "osdMaintenanceTimeout": 30},
            "storage": {"useAllNodes": true, "useAllDevices": false,
            "deviceFilter": "^(sd[b-z]|sda[a-z]|vd[b-z])$", "store": {}}},
        "status": {"phase": "Ready", "state": "Created", "version": {"image": image,
        "version": format!("{}-0", cluster.release.number)},
            "ceph": {"fsid": CLUSTER, "health": "HEALTH_OK", "lastChecked": "2026-09-21T14:03:20Z"}},
    })
}

/// Returns the operator at 0: the run, or a person, scaled it.
fn operator() -> Value {
    json!({
        "metadata": {"name": "rook-ceph-operator", "namespace": NAMESPACE, "uid": "operator",
        "resourceVersion": "1", "generation": 4},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "rook-ceph-operator"}},
        "template": {"metadata": {"labels": {"app": "rook-ceph-operator"}},
            "spec": {"containers": [{"name": "rook-ceph-operator", "image": "rook/ceph:v1.16.9"}]}}},
        "status": {"observedGeneration": 4},
    })
}

fn pdb() -> Value {
    json!({
        "metadata": {"name": "rook-ceph-osd", "namespace": NAMESPACE, "uid": "pdb", "resourceVersion": "2",
        "generation": 1},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "rook-ceph-osd"}}},
        "status": {"currentHealthy": 1, "desiredHealthy": 1, "disruptionsAllowed": 1, "expectedPods": 1},
    })
}
