//! The Deployment of a BlueStore OSD on a node, in the shape that Rook gives it today, so that Rook adopts
//! it. Every value that Rook reads back from a Deployment is in the place from which Rook reads it. Pure.
//!
//! Settings for scheduling, resources and labels that the owner or an older Rook put on the old Deployment
//! are carried over.

use serde_json::{Map, Value, json};

use crate::domain::act::Deploy;
use crate::domain::osd::{ClusterFsid, Layout, Mode, OsdId};
use crate::domain::policy::Declaration;
use crate::k8s::names::{STOPPED, TEST_ONLY};
use crate::k8s::osd::fields::{env, osd_container};
use crate::k8s::rook::ceph_cluster::owned_by;

/// Context in which a Deployment is rendered.
pub(super) struct Frame<'a> {
    pub(super) namespace: &'a str,
    /// Namespace of Rook's operator, for a Deployment that does not name it yet.
    pub(super) operator_namespace: &'a str,
    pub(super) cluster: ClusterFsid,
    pub(super) declaration: &'a Declaration,
    /// Label `kubernetes.io/hostname` of the node.
    pub(super) hostname: &'a str,
}

/// Annotations that are not carried over.
///
/// Tools compare them with what they would write, so on an object that those tools did not write they are
/// wrong.
const NOT_CARRIED: [&str; 4] = [
    "banzaicloud.com/last-applied",
    "deployment.kubernetes.io/revision",
    "kubectl.kubernetes.io/last-applied-configuration",
    STOPPED,
];

/// Annotation in which Rook (1.18 and later) records the state of the OSD's cephx key.
///
/// `KEY_IS_NEW` is Rook's value for a new key.
///
/// With that value, Rook itself records the generation and the release. Without it, Rook treats the key as
/// older than these records, and reports that of all OSDs in the status of the CephCluster. If the owner asks
/// for a rotation, Rook would then rotate the key once more (pkg/operator/ceph/config/keyring/cephx.go,
/// `UninitializedCephxStatus`; pkg/operator/ceph/cluster/osd/create.go; v1.20.6). An OSD that is only started
/// again has an older key; Rook writes the same value on every Deployment that it creates.
const CEPHX_STATUS: &str = "cephx-status";
const KEY_IS_NEW: &str = r#"{"keyCephVersion":"Uninitialized"}"#;

/// Fields of the old pod that determine on which node and how it may run.
const CARRIED: [&str; 8] = [
    "affinity",
    "imagePullSecrets",
    "preemptionPolicy",
    "priorityClassName",
    "schedulerName",
    "terminationGracePeriodSeconds",
    "tolerations",
    "topologySpreadConstraints",
];

/// Renders the Deployment.
///
/// `old` is the existing Deployment, or its backup. For a new OSD it is the CephCluster's settings for all
/// OSDs, in the same form.
pub(super) fn render(deploy: &Deploy, old: &Value, frame: &Frame<'_>) -> Value {
    let osd = Osd { deploy, old, frame };
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": format!("rook-ceph-osd-{}", osd.id()),
            "namespace": frame.namespace,
            "labels": osd.labels("/metadata/labels"),
            "annotations": carried_annotations(old, "/metadata/annotations"),
            "ownerReferences": osd.owners(),
        },
        "spec": {
            "replicas": 1,
            "revisionHistoryLimit": 0,
            "selector": {"matchLabels": selector(deploy.osd, frame.namespace)},
            "strategy": {"type": "Recreate"},
            "template": {
                "metadata": {
                    "name": "rook-ceph-osd",
                    "labels": osd.labels("/spec/template/metadata/labels"),
                    "annotations": pod_annotations(old),
                },
                "spec": osd.pod(),
            },
        },
    })
}

/// Checks whether a Deployment can start the OSD; the error says why not.
pub(super) fn can_activate(deploy: &Deploy) -> Result<(), String> {
    if deploy.pvcs.is_some() {
        // The key of an encrypted one is in a Secret.
        return match &deploy.fresh {
            Some(fresh) if fresh.source.is_none() => {
                Err("it is on a PVC, and there is no Deployment of its device set to make its own from"
                    .to_owned())
            }
            Some(_) | None => Ok(()),
        };
    }
    match deploy.layout {
        Layout { mode: Mode::Raw, encrypted: true, .. } => {
            Err("it is raw and encrypted: the mons do not store its key, so no Deployment can open it"
                .to_owned())
        }
        Layout { .. } => Ok(()),
    }
}

fn selector(osd: OsdId, namespace: &str) -> Value {
    json!({"app": "rook-ceph-osd", "ceph-osd-id": osd.0.to_string(), "rook_cluster": namespace})
}

/// Returns the annotations of the old object at this path that stay true of the new one.
pub(super) fn carried_annotations(old: &Value, path: &str) -> Map<String, Value> {
    let mut annotations = old.pointer(path).and_then(Value::as_object).cloned().unwrap_or_default();
    annotations.retain(|key, _| !NOT_CARRIED.contains(&key.as_str()));
    annotations
}

/// Returns the annotations of the pod: the recorded state of the old key is not true of the new one.
pub(super) fn pod_annotations(old: &Value) -> Map<String, Value> {
    let mut annotations = carried_annotations(old, "/spec/template/metadata/annotations");
    annotations.insert(CEPHX_STATUS.to_owned(), json!(KEY_IS_NEW));
    annotations
}

pub(super) struct Osd<'a> {
    pub(super) deploy: &'a Deploy,
    pub(super) old: &'a Value,
    pub(super) frame: &'a Frame<'a>,
}

impl Osd<'_> {
    pub(crate) fn id(&self) -> String {
        self.deploy.osd.0.to_string()
    }

    pub(crate) fn class(&self) -> &str {
        self.deploy.crush.device_class.as_deref().unwrap_or_default()
    }

    pub(crate) fn data_dir(&self) -> String {
        format!("/var/lib/ceph/osd/ceph-{}", self.id())
    }

    fn of_pod(&self, field: &str) -> Option<&Value> {
        self.old.pointer("/spec/template/spec")?.get(field).filter(|value| !value.is_null())
    }

    /// Returns the CRUSH hostname, as Rook calls it: the node's name, including dots.
    pub(crate) fn hostname(&self) -> &str {
        env(self.old, "ROOK_NODE_NAME").unwrap_or(self.frame.hostname)
    }

    /// Returns the image that the OSD was prepared with: an older one might not be able to start it.
    pub(crate) fn image(&self) -> &str {
        let old = || {
            osd_container(self.old).and_then(|c| c.get("image")).and_then(Value::as_str).unwrap_or_default()
        };
        let declared = self.frame.declaration.image.as_str();
        if declared.is_empty() { old() } else { declared }
    }

    /// Returns the CRUSH location, `root` and `host` first, as Rook writes it.
    pub(super) fn crush_location(&self) -> String {
        let mut places: Vec<_> = self.deploy.crush.location.iter().collect();
        places.sort_by_key(|(kind, _)| match kind.as_str() {
            "root" => 0,
            "host" => 1,
            _ => 2,
        });
        places.into_iter().map(|(kind, name)| format!("{kind}={name}")).collect::<Vec<_>>().join(" ")
    }

    fn labels(&self, path: &str) -> Map<String, Value> {
        let mut labels = self.old.pointer(path).and_then(Value::as_object).cloned().unwrap_or_default();
        // A location that is no longer true must not stay.
        labels.retain(|key, _| !key.starts_with("topology-location-"));
        let id = self.id();
        let cluster = self.frame.declaration.name.as_str();
        let ours = [
            ("app", "rook-ceph-osd"),
            ("rook_cluster", self.frame.namespace),
            ("ceph_daemon_type", "osd"),
            ("ceph_daemon_id", &id),
            ("osd", &id),
            ("ceph-osd-id", &id),
            ("app.kubernetes.io/name", "ceph-osd"),
            ("app.kubernetes.io/instance", &id),
            ("app.kubernetes.io/component", "cephclusters.ceph.rook.io"),
            ("app.kubernetes.io/part-of", cluster),
            ("app.kubernetes.io/managed-by", "rook-ceph-operator"),
            ("app.kubernetes.io/created-by", "rook-ceph-operator"),
            ("failure-domain", self.hostname()),
            ("portable", "false"),
            ("device-class", self.class()),
            ("osd-store", &self.deploy.store),
            ("encrypted", if self.deploy.layout.encrypted { "true" } else { "false" }),
        ];
        labels.extend(ours.map(|(key, value)| (key.to_owned(), json!(value))));
        labels.entry("rook.io/operator-namespace").or_insert_with(|| json!(self.frame.operator_namespace));
        if let Some(device_type) = &self.deploy.device_type {
            labels.insert("device-type".to_owned(), json!(device_type));
        }
        if self.deploy.on_file {
            labels.insert(TEST_ONLY.to_owned(), json!("store-on-file"));
        }
        let places = &self.deploy.crush.location;
        labels.extend(places.iter().map(|(kind, name)| (format!("topology-location-{kind}"), json!(name))));
        labels
    }

    /// Returns the old owner references; a Deployment without any becomes owned by the CephCluster.
    fn owners(&self) -> Value {
        let old = self.old.pointer("/metadata/ownerReferences");
        let found = old.filter(|owners| owners.as_array().is_some_and(|owners| !owners.is_empty()));
        found.cloned().unwrap_or_else(|| owned_by(self.frame.declaration))
    }

    fn pod(&self) -> Map<String, Value> {
        let host_network = self
            .of_pod("hostNetwork")
            .and_then(Value::as_bool)
            .unwrap_or(self.frame.declaration.host_network);
        let mut pod = Map::new();
        for field in CARRIED {
            if let Some(value) = self.of_pod(field) {
                pod.insert(field.to_owned(), value.clone());
            }
        }
        // Rook reads the node from here, even if an affinity names it, too.
        let mut nodes = self.of_pod("nodeSelector").and_then(Value::as_object).cloned().unwrap_or_default();
        nodes.insert("kubernetes.io/hostname".to_owned(), json!(self.frame.hostname));
        pod.insert("nodeSelector".to_owned(), Value::Object(nodes));
        let account = self.of_pod("serviceAccountName").cloned().unwrap_or_else(|| json!("rook-ceph-osd"));
        if self.deploy.layout.encrypted {
            // Rook sets this, too: cryptsetup and the host's udev wait for each other by semaphores.
            pod.insert("hostIPC".to_owned(), json!(true));
        }
        let rest = [
            ("serviceAccountName", account),
            ("restartPolicy", json!("Always")),
            ("hostNetwork", json!(host_network)),
            ("dnsPolicy", json!(if host_network { "ClusterFirstWithHostNet" } else { "ClusterFirst" })),
            ("securityContext", json!({})),
            ("volumes", self.volumes()),
            ("initContainers", json!([self.activate(), self.expand_bluefs(), self.chown()])),
            ("containers", json!([self.daemon(host_network)])),
        ];
        pod.extend(rest.map(|(key, value)| (key.to_owned(), value)));
        pod
    }
}

#[cfg(test)]
#[path = "render_osd_tests.rs"]
pub(crate) mod tests;
