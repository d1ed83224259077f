//! Containers of an OSD's pod, their volumes and mounts. Pure.

use serde_json::{Value, json};

use crate::k8s::osd::fields::osd_container;
use crate::k8s::osd::osd_env::decimal;
use crate::k8s::osd::render_osd::Osd;

/// Name of Rook's ConfigMap with the owner's settings of Ceph, and of its volume.
const CONFIG: &str = "rook-config-override";

/// Options with the addresses of an OSD that is exported to other Kubernetes clusters.
const ADDRESSES: [&str; 3] = ["--public-addr=", "--public-bind-addr=", "--cluster-addr="];

impl Osd<'_> {
    /// Returns the ConfigMap that the old Deployment mounted, else the one of all nodes.
    ///
    /// A node may have one of its own, `rook-config-override-NODE` (pkg/operator/ceph/cluster/osd/spec.go,
    /// `updateCephConfigVolume`, v1.18 and later).
    fn config_map(&self) -> &str {
        let volumes = self.old.pointer("/spec/template/spec/volumes").and_then(Value::as_array);
        let of_old = volumes.into_iter().flatten().find(|volume| volume["name"] == CONFIG);
        let name = of_old.and_then(|volume| volume.pointer("/projected/sources/0/configMap/name"));
        name.and_then(Value::as_str).unwrap_or(CONFIG)
    }

    pub(crate) fn volumes(&self) -> Value {
        let data_dir = &self.frame.declaration.data_dir;
        let namespace = self.frame.namespace;
        let osd_dir = format!("{data_dir}/{namespace}/{}_{}", self.frame.cluster, self.deploy.fsid);
        let folder = |name: &str, path: &str| json!({"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}});
        json!([
            folder("rook-data", data_dir),
            // It is optional: it may be missing in a cluster that Rook does not, or no longer, manage.
            {"name": CONFIG, "projected": {"defaultMode": 420, "sources": [{"configMap": {
                "name": self.config_map(), "optional": true,
                "items": [{"key": "config", "path": "ceph.conf", "mode": 292}]}}]}},
            folder("rook-ceph-log", &format!("{data_dir}/{namespace}/log")),
            folder("rook-ceph-crash", &format!("{data_dir}/{namespace}/crash")),
            folder("ceph-daemons-sock-dir", &format!("{data_dir}/exporter")),
            {"name": "devices", "hostPath": {"path": "/dev"}},
            {"name": "run-udev", "hostPath": {"path": "/run/udev"}},
            folder("activate-osd", &osd_dir),
        ])
    }

    pub(crate) fn mounts(&self, with: &[&str]) -> Vec<Value> {
        let data = self.data_dir();
        let all = [
            ("rook-data", "/var/lib/rook", false),
            (CONFIG, "/etc/ceph", true),
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

    pub(crate) fn container(
        &self,
        name: &str,
        command: &[&str],
        args: &[&str],
        env: &Value,
        mounts: &[Value],
    ) -> Value {
        let resources =
            osd_container(self.old).and_then(|c| c.get("resources")).cloned().unwrap_or_else(|| json!({}));
        json!({
            "name": name, "image": self.image(), "command": command, "args": args, "env": env, "volumeMounts": mounts,
            "resources": resources, "securityContext": {"privileged": true, "runAsUser": 0, "readOnlyRootFilesystem": false,
                "capabilities": {"drop": ["NET_RAW"]}},
        })
    }

    /// Builds the container that expands the store to the present size of its device.
    pub(super) fn expand_bluefs(&self) -> Value {
        let data = self.data_dir();
        let mounts = self.mounts(&self.mounts_of_activation());
        self.container(
            "expand-bluefs",
            &["ceph-bluestore-tool"],
            &["bluefs-bdev-expand", "--path", &data],
            &json!([]),
            &mounts,
        )
    }

    pub(super) fn chown(&self) -> Value {
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

    /// Returns the arguments with the addresses of an OSD that is exported to other Kubernetes clusters.
    ///
    /// Rook adds them if `network.multiClusterService` is enabled, with the address of a Service of the OSD
    /// (pkg/operator/ceph/cluster/osd/spec.go, `ExportService`, v1.11 and later).
    fn exported_addresses(&self) -> impl Iterator<Item = &str> {
        let args = osd_container(self.old).and_then(|container| container.get("args")?.as_array());
        let args = args.into_iter().flatten().filter_map(Value::as_str);
        args.filter(|arg| ADDRESSES.iter().any(|option| arg.starts_with(option)))
    }

    pub(crate) fn daemon(&self, host_network: bool) -> Value {
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
        // Rook passes this setting only here (pkg/operator/ceph/controller/spec.go, `NetworkBindingFlags`,
        // v1.20.6).
        if let Some((ipv4, ipv6)) = self.frame.declaration.binds {
            args.push(if ipv4 { "--ms-bind-ipv4=true" } else { "--ms-bind-ipv4=false" });
            args.push(if ipv6 { "--ms-bind-ipv6=true" } else { "--ms-bind-ipv6=false" });
        }
        if !host_network {
            args.push("--ms-learn-addr-from-peer=false");
        }
        let weight = self.deploy.initial_weight.map(|w| format!("--osd-crush-initial-weight={}", decimal(w)));
        args.extend(weight.as_deref());
        args.extend(self.exported_addresses());
        let command = self.start_command();
        let command: Vec<_> = command.iter().map(String::as_str).collect();
        let mut container = self.container("osd", &command, &args, &self.daemon_env(), &self.mounts(&[]));
        if let Some(object) = container.as_object_mut() {
            if let Some(lifecycle) = self.lifecycle() {
                object.insert("lifecycle".to_owned(), lifecycle);
            }
            object.insert("workingDir".to_owned(), json!("/var/log/ceph"));
            object.insert("startupProbe".to_owned(), probe(&id, 10, 720));
            // A probe costs a second of CPU and a busy node answers late: so the probe is rare, and several
            // failures are tolerated.
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
