//! Deployments of an OSD on a PVC as several Rook releases render them, reduced to what osd-migrate reads or
//! changes.
//!
//! Names, order, arguments, mounts and volumes are those of v1.13.10, v1.16.9, v1.18.11 and v1.20.6:
//! pkg/operator/ceph/cluster/osd/spec.go (`makeDeployment` and the functions that it calls), volumes.go,
//! envs.go and labels.go. The scripts are not Rook's; like Rook's, they contain source and destination in
//! their text.

use serde_json::{Value, json};

use crate::domain::osd::OsdFsid;

pub(super) const PVC: &str = "set1-data-0a";
const DATA: &str = "/var/lib/ceph/osd/ceph-3";
const MAPPING: &str = "set1-data-0a-block-dmcrypt";

/// A Rook release; the order is that of the releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rook {
    V1_13,
    V1_16,
    V1_18,
    V1_20,
}

pub(super) const RELEASES: [Rook; 4] = [Rook::V1_13, Rook::V1_16, Rook::V1_18, Rook::V1_20];

/// Properties that a Deployment is built from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) rook: Rook,
    pub(super) encrypted: bool,
    /// The key of the encryption is in Vault.
    pub(super) vault: bool,
    pub(super) portable: bool,
    pub(super) fsid: OsdFsid,
}

impl Shape {
    pub(super) fn deployment(self) -> Value {
        let encrypted = if self.encrypted { "true" } else { "false" };
        let mut labels = json!({"app": "rook-ceph-osd", "ceph-osd-id": "3", "rook_cluster": "rook-ceph", "osd-store": "bluestore",
            "ceph.rook.io/pvc": PVC, "ceph.rook.io/DeviceSet": "set1", "device-class": "hdd", "topology-location-root": "default",
            "topology-location-host": "h1", "portable": if self.portable { "true" } else { "false" }});
        let mut annotations = json!({});
        if self.rook >= Rook::V1_18 {
            labels["encrypted"] = json!(encrypted);
            annotations = json!({"cephx-status": r#"{"keyGeneration":1,"keyCephVersion":"19.2.3-0"}"#});
        }
        let mut pod = json!({
            "initContainers": self.init_containers(), "containers": self.containers(), "volumes": self.volumes(),
            "serviceAccountName": "rook-ceph-osd", "hostNetwork": true, "restartPolicy": "Always",
        });
        if self.encrypted {
            pod["hostIPC"] = json!(true);
        }
        if self.portable {
            pod["affinity"] = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z1"]}]}]}}});
        } else {
            pod["nodeSelector"] = json!({"kubernetes.io/hostname": "h1"});
        }
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "rook-ceph-osd-3", "namespace": "rook-ceph", "labels": labels, "annotations": {},
                "ownerReferences": [{"kind": "CephCluster", "uid": "c-uid"}]},
            "spec": {"replicas": 1, "strategy": {"type": "Recreate"},
                "selector": {"matchLabels": {"app": "rook-ceph-osd", "ceph-osd-id": "3", "rook_cluster": "rook-ceph"}},
                "template": {"metadata": {"labels": labels, "annotations": annotations}, "spec": pod}},
        })
    }

    fn init_containers(self) -> Vec<Value> {
        let device = format!("/{PVC}");
        let block = format!("{DATA}/block");
        let first = if self.encrypted { format!("{DATA}/block-tmp") } else { block.clone() };
        let mut copy = copying("blkdevmapper", &device, &first, &json!([bridge()]));
        copy["volumeDevices"] = json!([{"name": PVC, "devicePath": device}]);
        let mut all = vec![copy];
        if self.encrypted {
            all.extend(self.opening(&block));
        }
        let args = json!(["prime-osd-dir", "--dev", block, "--path", DATA, "--no-mon-config"]);
        let mut activate =
            self.container("activate", &json!(["ceph-bluestore-tool"]), &args, &json!([bridge()]));
        activate["volumeDevices"] = json!([{"name": PVC, "devicePath": block}]);
        all.push(activate);
        let args = json!(["bluefs-bdev-expand", "--path", DATA]);
        all.push(self.container("expand-bluefs", &json!(["ceph-bluestore-tool"]), &args, &json!([bridge()])));
        if self.rook >= Rook::V1_18 {
            let mounts = json!([config(), {"name": "rook-ceph-admin-keyring", "mountPath": "/etc/ceph/admin-keyring-store/"}, bridge()]);
            all.push(self.container(
                "cephx-keyring-update",
                &json!(["/bin/bash", "-c", "KEY"]),
                &json!([]),
                &mounts,
            ));
        }
        let args = json!(["--verbose", "--recursive", "ceph:ceph", "/var/log/ceph", DATA]);
        all.push(self.container("chown-container-data-dir", &json!(["chown"]), &args, &self.mounts()));
        all
    }

    fn opening(self, block: &str) -> Vec<Value> {
        let key = json!({"name": "osd-encryption-key", "mountPath": "/etc/ceph", "readOnly": !self.vault});
        let opened = json!([bridge(), mapper()]);
        let cryptsetup = |name: &str, action: &str, mounts: &Value| {
            self.container(name, &json!(["cryptsetup"]), &json!(["--verbose", action, MAPPING]), mounts)
        };
        let mut open = self.container(
            "encryption-open",
            &json!(["/bin/bash", "-c", "OPEN"]),
            &json!([]),
            &json!([bridge(), mapper(), key]),
        );
        open.as_object_mut().unwrap().remove("args");
        let mut all = Vec::new();
        if self.vault {
            let mounts = json!([key, {"name": "vault", "mountPath": "/etc/vault"}]);
            let args = json!(["key-management", "get", PVC, "/etc/ceph/luks_key"]);
            all.push(json!({"name": "encryption-kms-get-kek", "image": "rook", "command": ["rook"], "args": args, "volumeMounts": mounts}));
        }
        all.extend([
            open,
            copying("blkdevmapper-encryption", &format!("/dev/mapper/{MAPPING}"), block, &opened),
            cryptsetup("encrypted-block-status", "status", &json!([bridge()])),
            cryptsetup("expand-encrypted-bluefs", "resize", &opened),
        ]);
        all
    }

    fn container(self, name: &str, command: &Value, args: &Value, mounts: &Value) -> Value {
        let mut security = json!({"privileged": true, "runAsUser": 0});
        if self.rook >= Rook::V1_16 {
            security["capabilities"] = json!({"drop": ["NET_RAW"]});
        }
        json!({"name": name, "image": "ceph:old", "imagePullPolicy": "IfNotPresent", "command": command, "args": args,
            "volumeMounts": mounts, "resources": {"limits": {"memory": "4Gi"}}, "securityContext": security})
    }

    fn containers(self) -> Vec<Value> {
        let block_path =
            if self.encrypted { format!("/dev/mapper/{MAPPING}") } else { format!("/mnt/{PVC}") };
        let value = |name: &str, value: &str| json!({"name": name, "value": value});
        let mut env = vec![
            value("ROOK_NODE_NAME", if self.portable { PVC } else { "h1" }),
            value("CONTAINER_IMAGE", "ceph:old"),
            value("ROOK_OSD_UUID", &self.fsid.to_string()),
            value("ROOK_OSD_ID", "3"),
            value("ROOK_BLOCK_PATH", &block_path),
            value("ROOK_CV_MODE", "raw"),
            value("ROOK_OSD_DEVICE_CLASS", "hdd"),
        ];
        if self.rook >= Rook::V1_20 {
            env.push(value("ROOK_OSD_CRUSH_DEVICE_CLASS", "hdd"));
        }
        env.push(value("ROOK_OSD_PVC_SIZE", "6Gi"));
        if self.portable {
            env.push(value("ROOK_TOPOLOGY_AFFINITY", "topology.kubernetes.io/zone=z1"));
        }
        env.push(value("ROOK_PVC_BACKED_OSD", "true"));
        let args = json!(["--foreground", "--id", "3", "--crush-location=root=default host=h1"]);
        let mut osd = self.container("osd", &json!(["ceph-osd"]), &args, &self.mounts());
        osd["env"] = json!(env);
        let logs = json!({"name": "log-collector", "image": "ceph:old", "volumeMounts": [{"name": "rook-ceph-log", "mountPath": "/var/log/ceph"}]});
        vec![osd, logs]
    }

    /// Returns the mounts of the daemon, and of the container that gives it its files.
    fn mounts(self) -> Value {
        let mut mounts = vec![config(), json!({"name": "run-udev", "mountPath": "/run/udev"})];
        if self.encrypted {
            mounts.push(mapper());
        }
        mounts.push(bridge());
        json!(mounts)
    }

    fn volumes(self) -> Vec<Value> {
        let mut volumes = vec![
            json!({"name": "rook-config-override", "projected": {"sources": []}}),
            json!({"name": PVC, "persistentVolumeClaim": {"claimName": PVC}}),
            json!({"name": format!("{PVC}-bridge"), "hostPath": {"path": format!("/var/lib/rook/rook-ceph/{PVC}"), "type": "DirectoryOrCreate"}}),
        ];
        if self.encrypted && self.vault {
            volumes.push(json!({"name": "osd-encryption-key", "emptyDir": {"medium": "Memory"}}));
            volumes.push(json!({"name": "vault", "projected": {"sources": []}}));
        } else if self.encrypted {
            let items = json!([{"key": "dmcrypt-key", "path": "luks_key"}]);
            volumes.push(json!({"name": "osd-encryption-key", "secret": {
                "secretName": format!("rook-ceph-osd-encryption-key-{PVC}"), "items": items, "defaultMode": 256}}));
        }
        volumes.push(json!({"name": "run-udev", "hostPath": {"path": "/run/udev", "type": ""}}));
        if self.encrypted {
            volumes.push(json!({"name": "dev-mapper", "hostPath": {"path": "/dev/mapper", "type": ""}}));
        }
        if self.rook >= Rook::V1_18 {
            volumes.push(json!({"name": "rook-ceph-admin-keyring", "secret": {"secretName": "rook-ceph-admin-keyring"}}));
        }
        volumes
    }
}

fn copying(name: &str, source: &str, destination: &str, mounts: &Value) -> Value {
    let script = format!("from={source}\nto={destination}\ncp \"$from\" \"$to\"\n");
    json!({"name": name, "image": "ceph:old", "imagePullPolicy": "IfNotPresent", "command": ["/bin/bash", "-c", script],
        "volumeMounts": mounts, "resources": {"limits": {"memory": "4Gi"}},
        "securityContext": {"privileged": false, "capabilities": {"add": ["MKNOD"], "drop": ["NET_RAW"]}}})
}

fn bridge() -> Value {
    json!({"name": format!("{PVC}-bridge"), "mountPath": DATA, "subPath": "ceph-3"})
}

fn mapper() -> Value {
    json!({"name": "dev-mapper", "mountPath": "/dev/mapper"})
}

fn config() -> Value {
    json!({"name": "rook-config-override", "mountPath": "/etc/ceph", "readOnly": true})
}
