//! The Deployment of a raw BlueStore OSD on a node, in the shape that Rook gives it today, so that Rook adopts it: every
//! value that Rook reads back from a Deployment stands where Rook looks for it. Pure.
//!
//! What its owner or an older Rook put on the old Deployment for scheduling, resources and labels is carried over.

use serde_json::{Map, Value, json};

use crate::domain::act::Deploy;
use crate::domain::osd::{ClusterFsid, OsdId};
use crate::domain::policy::Declaration;

use super::daemon::{env, osd_container};
use super::names::STOPPED;
use super::osd_env::literals;

/// What a Deployment is rendered into.
pub(super) struct Frame<'a> {
    pub(super) namespace: &'a str,
    pub(super) cluster: ClusterFsid,
    pub(super) declaration: &'a Declaration,
    /// Label `kubernetes.io/hostname` of the node.
    pub(super) hostname: &'a str,
}

/// Written by tools that compare with it what they would write: wrong on an object they did not write.
const NOT_CARRIED: [&str; 4] = [
    "banzaicloud.com/last-applied",
    "deployment.kubernetes.io/revision",
    "kubectl.kubernetes.io/last-applied-configuration",
    STOPPED,
];

/// Fields of the old pod that say where and how it may run.
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

/// What the init container `activate` runs.
const ACTIVATE: &str = include_str!("activate_osd.sh");

/// Renders the Deployment. `old` is the one that is there, or the kept copy of it.
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
                    "annotations": carried_annotations(old, "/spec/template/metadata/annotations"),
                },
                "spec": osd.pod(),
            },
        },
    })
}

fn selector(osd: OsdId, namespace: &str) -> Value {
    json!({"app": "rook-ceph-osd", "ceph-osd-id": osd.0.to_string(), "rook_cluster": namespace})
}

fn carried_annotations(old: &Value, path: &str) -> Value {
    let mut annotations = old.pointer(path).and_then(Value::as_object).cloned().unwrap_or_default();
    annotations.retain(|key, _| !NOT_CARRIED.contains(&key.as_str()));
    Value::Object(annotations)
}

pub(super) struct Osd<'a> {
    pub(super) deploy: &'a Deploy,
    pub(super) old: &'a Value,
    pub(super) frame: &'a Frame<'a>,
}

impl Osd<'_> {
    pub(super) fn id(&self) -> String {
        self.deploy.osd.0.to_string()
    }

    pub(super) fn class(&self) -> &str {
        self.deploy.crush.device_class.as_deref().unwrap_or_default()
    }

    fn data_dir(&self) -> String {
        format!("/var/lib/ceph/osd/ceph-{}", self.id())
    }

    fn of_pod(&self, field: &str) -> Option<&Value> {
        self.old.pointer("/spec/template/spec")?.get(field).filter(|value| !value.is_null())
    }

    /// Rook calls it the CRUSH hostname: the node's name, dots and all.
    pub(super) fn hostname(&self) -> &str {
        env(self.old, "ROOK_NODE_NAME").unwrap_or(self.frame.hostname)
    }

    /// The image that the OSD was prepared with: an older one might not be able to start it.
    pub(super) fn image(&self) -> &str {
        let old = || {
            osd_container(self.old).and_then(|c| c.get("image")).and_then(Value::as_str).unwrap_or_default()
        };
        let declared = self.frame.declaration.image.as_str();
        if declared.is_empty() { old() } else { declared }
    }

    /// `root` and `host` first, as Rook writes it.
    fn crush_location(&self) -> String {
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
            ("encrypted", "false"),
        ];
        labels.extend(ours.map(|(key, value)| (key.to_owned(), json!(value))));
        labels.entry("rook.io/operator-namespace").or_insert_with(|| json!(self.frame.namespace));
        let places = &self.deploy.crush.location;
        labels.extend(places.iter().map(|(kind, name)| (format!("topology-location-{kind}"), json!(name))));
        labels
    }

    /// As they were; a Deployment that had none becomes the CephCluster's.
    fn owners(&self) -> Value {
        let declaration = self.frame.declaration;
        self.old.pointer("/metadata/ownerReferences").filter(|o| o.as_array().is_some_and(|o| !o.is_empty())).cloned().unwrap_or_else(|| {
            json!([{"apiVersion": declaration.api_version, "kind": "CephCluster", "name": declaration.name,
                "uid": declaration.uid, "controller": true, "blockOwnerDeletion": true}])
        })
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
        // Rook reads the node from here, also where an affinity says it too.
        let mut nodes = self.of_pod("nodeSelector").and_then(Value::as_object).cloned().unwrap_or_default();
        nodes.insert("kubernetes.io/hostname".to_owned(), json!(self.frame.hostname));
        pod.insert("nodeSelector".to_owned(), Value::Object(nodes));
        let account = self.of_pod("serviceAccountName").cloned().unwrap_or_else(|| json!("rook-ceph-osd"));
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

    fn volumes(&self) -> Value {
        let data_dir = &self.frame.declaration.data_dir;
        let namespace = self.frame.namespace;
        let osd_dir = format!("{data_dir}/{namespace}/{}_{}", self.frame.cluster, self.deploy.fsid);
        let folder = |name: &str, path: &str| json!({"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}});
        json!([
            folder("rook-data", data_dir),
            // Optional: a cluster that is not (or no longer) looked after by Rook may lack it.
            {"name": "rook-config-override", "projected": {"defaultMode": 420, "sources": [{"configMap": {
                "name": "rook-config-override", "optional": true,
                "items": [{"key": "config", "path": "ceph.conf", "mode": 292}]}}]}},
            folder("rook-ceph-log", &format!("{data_dir}/{namespace}/log")),
            folder("rook-ceph-crash", &format!("{data_dir}/{namespace}/crash")),
            folder("ceph-daemons-sock-dir", &format!("{data_dir}/exporter")),
            {"name": "devices", "hostPath": {"path": "/dev"}},
            {"name": "run-udev", "hostPath": {"path": "/run/udev"}},
            folder("activate-osd", &osd_dir),
        ])
    }

    fn mounts(&self, with: &[&str]) -> Vec<Value> {
        let data = self.data_dir();
        let all = [
            ("rook-data", "/var/lib/rook", false),
            ("rook-config-override", "/etc/ceph", true),
            ("rook-ceph-log", "/var/log/ceph", false),
            ("rook-ceph-crash", "/var/lib/ceph/crash", false),
            ("ceph-daemons-sock-dir", "/run/ceph", false),
            ("devices", "/dev", false),
            ("run-udev", "/run/udev", false),
            ("activate-osd", data.as_str(), false),
        ];
        let mount = |(name, path, read_only): (&str, &str, bool)| {
            let mut mount = json!({"name": name, "mountPath": path});
            if let (true, Some(mount)) = (read_only, mount.as_object_mut()) {
                mount.insert("readOnly".to_owned(), json!(true));
            }
            mount
        };
        all.into_iter().filter(|(name, ..)| with.is_empty() || with.contains(name)).map(mount).collect()
    }

    fn container(&self, name: &str, command: &[&str], args: &[&str], env: &Value, mounts: &[Value]) -> Value {
        let resources =
            osd_container(self.old).and_then(|c| c.get("resources")).cloned().unwrap_or_else(|| json!({}));
        json!({
            "name": name, "image": self.image(), "command": command, "args": args, "env": env, "volumeMounts": mounts,
            "resources": resources, "securityContext": {"privileged": true, "runAsUser": 0, "readOnlyRootFilesystem": false},
        })
    }

    fn activate(&self) -> Value {
        let id = self.id();
        let fsid = self.deploy.fsid.to_string();
        let vars = [
            ("CEPH_VOLUME_DEBUG", "1"),
            ("CEPH_VOLUME_SKIP_RESTORECON", "1"),
            ("DM_DISABLE_UDEV", "1"),
            ("ROOK_BLOCK_PATH", self.deploy.block_path.as_str()),
            ("ROOK_CV_MODE", "raw"),
            ("ROOK_ENCRYPTED_DEVICE", "false"),
            ("ROOK_METADATA_DEVICE", ""),
            ("ROOK_OSD_ID", &id),
            ("ROOK_OSD_STORE_FLAG", "--bluestore"),
            ("ROOK_OSD_UUID", &fsid),
            ("ROOK_WAL_DEVICE", ""),
        ];
        let mounts =
            self.mounts(&["rook-config-override", "rook-ceph-log", "devices", "run-udev", "activate-osd"]);
        self.container("activate", &["/bin/bash", "-c", ACTIVATE], &[], &literals(&vars), &mounts)
    }

    /// Makes the store as large as its device is now.
    fn expand_bluefs(&self) -> Value {
        let data = self.data_dir();
        let mounts =
            self.mounts(&["rook-config-override", "rook-ceph-log", "devices", "run-udev", "activate-osd"]);
        self.container(
            "expand-bluefs",
            &["ceph-bluestore-tool"],
            &["bluefs-bdev-expand", "--path", &data],
            &json!([]),
            &mounts,
        )
    }

    fn chown(&self) -> Value {
        let data = self.data_dir();
        let args = ["--recursive", "ceph:ceph", "/var/log/ceph", "/var/lib/ceph/crash", "/run/ceph", &data];
        let mounts = self.mounts(&[
            "rook-ceph-log",
            "rook-ceph-crash",
            "ceph-daemons-sock-dir",
            "devices",
            "activate-osd",
        ]);
        self.container("chown-container-data-dir", &["chown"], &args, &json!([]), &mounts)
    }

    fn daemon(&self, host_network: bool) -> Value {
        let (id, cluster) = (self.id(), self.frame.cluster.to_string());
        let location = format!("--crush-location={}", self.crush_location());
        let mut args = vec![
            "--foreground",
            "--id",
            &id,
            "--fsid",
            &cluster,
            "--setuser",
            "ceph",
            "--setgroup",
            "ceph",
            &location,
            "--default-log-to-stderr=true",
            "--default-err-to-stderr=true",
            "--default-mon-cluster-log-to-stderr=true",
            "--default-log-stderr-prefix=debug ",
            "--default-log-to-file=false",
            "--default-mon-cluster-log-to-file=false",
        ];
        if !host_network {
            args.push("--ms-learn-addr-from-peer=false");
        }
        let mut container =
            self.container("osd", &["ceph-osd"], &args, &self.daemon_env(), &self.mounts(&[]));
        if let Some(object) = container.as_object_mut() {
            object.insert("workingDir".to_owned(), json!("/var/log/ceph"));
            object.insert("startupProbe".to_owned(), probe(&id, 10, 720));
            // A question costs a second of CPU and a busy machine answers late: ask seldom, and end nothing in haste.
            object.insert("livenessProbe".to_owned(), probe(&id, 60, 3));
            object.insert(
                "envFrom".to_owned(),
                json!([{"configMapRef": {"name": "rook-ceph-osd-env-override", "optional": true}}]),
            );
        }
        container
    }
}

fn probe(id: &str, period: u32, failures: u32) -> Value {
    let socket = format!("/run/ceph/ceph-osd.{id}.asok");
    let ask = format!("exec env -i PATH=\"$PATH\" ceph --admin-daemon {socket} status");
    json!({"exec": {"command": ["sh", "-c", ask]}, "initialDelaySeconds": 10, "periodSeconds": period,
        "timeoutSeconds": 30, "failureThreshold": failures})
}

#[cfg(test)]
#[path = "render_osd_tests.rs"]
pub(crate) mod tests;
