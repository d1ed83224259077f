//! Deployments of an OSD on a PVC as several Rook releases render them, reduced to what osd-migrate reads or
//! changes.
//!
//! Names, order, arguments, mounts and volumes are those of v1.13.10, v1.16.9, v1.18.11, v1.20.6 and master
//! of 2026-08: pkg/operator/ceph/cluster/osd/spec.go (`makeDeployment` and the functions that it calls),
//! volumes.go, envs.go and labels.go. The scripts are not Rook's. Like Rook's, they contain paths and names
//! in their text up to v1.20, and get them as arguments and variables since.

use serde_json::{Value, json};

use crate::domain::osd::{Mode, OsdFsid};

pub(super) const PVC: &str = "set1-data-0a";
const DATA: &str = "/var/lib/ceph/osd/ceph-3";
const MAPPING: &str = "set1-data-0a-block-dmcrypt";

/// Database or log of an OSD on a PVC of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) pvc: &'static str,
    /// End of the names of its containers.
    suffix: &'static str,
    /// File in the folder of the OSD.
    file: &'static str,
    /// Part of the name of its open device.
    kind: &'static str,
}

const BLOCK: Part = Part { pvc: PVC, suffix: "", file: "block", kind: "block" };
pub(super) const DB: Part =
    Part { pvc: "set1-metadata-0b", suffix: "-metadata", file: "block.db", kind: "db" };
pub(super) const WAL: Part = Part { pvc: "set1-wal-0c", suffix: "-wal", file: "block.wal", kind: "wal" };

/// A Rook release; the order is that of the releases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rook {
    V1_13,
    V1_16,
    V1_18,
    V1_20,
    Master,
}

pub(super) const RELEASES: [Rook; 5] = [Rook::V1_13, Rook::V1_16, Rook::V1_18, Rook::V1_20, Rook::Master];

/// Properties that a Deployment is built from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) rook: Rook,
    pub(super) encrypted: bool,
    /// The key of the encryption is in Vault.
    pub(super) vault: bool,
    pub(super) portable: bool,
    /// Mode of ceph-volume: in `lvm`, the OSD is on a volume on its PVC.
    pub(super) mode: Mode,
    pub(super) fsid: OsdFsid,
    /// Database and log on PVCs of their own.
    pub(super) others: &'static [Part],
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

    fn is_on_lvm(self) -> bool {
        self.mode == Mode::Lvm
    }

    fn parts(self) -> impl Iterator<Item = Part> {
        std::iter::once(BLOCK).chain(self.others.iter().copied())
    }

    fn init_containers(self) -> Vec<Value> {
        let block = format!("{DATA}/block");
        if self.is_on_lvm() {
            return self.init_containers_of_lvm();
        }
        let mut all: Vec<_> = self.parts().map(|part| self.copying_pvc(part)).collect();
        if self.encrypted {
            all.extend(self.opening());
        }
        let args = json!(["prime-osd-dir", "--dev", block, "--path", DATA, "--no-mon-config"]);
        let mut activate =
            self.container("activate", &json!(["ceph-bluestore-tool"]), &args, &json!([bridge()]));
        activate["volumeDevices"] = json!([{"name": PVC, "devicePath": block}]);
        all.push(activate);
        let args = json!(["bluefs-bdev-expand", "--path", DATA]);
        all.push(self.container("expand-bluefs", &json!(["ceph-bluestore-tool"]), &args, &json!([bridge()])));
        all.extend(self.updating_key());
        let args = json!(["--verbose", "--recursive", "ceph:ceph", "/var/log/ceph", DATA]);
        all.push(self.container("chown-container-data-dir", &json!(["chown"]), &args, &self.mounts()));
        all
    }

    fn init_containers_of_lvm(self) -> Vec<Value> {
        let device = format!("/{PVC}");
        let mut copy =
            self.copying("blkdevmapper", &device, &format!("/mnt{device}"), &json!([bridge_of_lvm()]));
        copy["volumeDevices"] = json!([{"name": PVC, "devicePath": device}]);
        let binaries = json!([rook_binaries()]);
        let mut all = vec![
            json!({"name": "config-init", "image": "rook", "args": ["ceph", "osd", "init"], "volumeMounts": [config()]}),
            json!({"name": "copy-bins", "image": "rook", "command": ["cp"], "args": ["/usr/local/bin/rook", "/rook"],
                "volumeMounts": binaries}),
            copy,
        ];
        all.extend(self.updating_key());
        let args = json!(["--verbose", "--recursive", "ceph:ceph", "/var/log/ceph"]);
        all.push(self.container("chown-container-data-dir", &json!(["chown"]), &args, &self.mounts()));
        all
    }

    fn updating_key(self) -> Option<Value> {
        let mounts = json!([config(), {"name": "rook-ceph-admin-keyring", "mountPath": "/etc/ceph/admin-keyring-store/"}, bridge()]);
        let command = json!(["/bin/bash", "-c", "KEY"]);
        (self.rook >= Rook::V1_18)
            .then(|| self.container("cephx-keyring-update", &command, &json!([]), &mounts))
    }

    fn copying_pvc(self, part: Part) -> Value {
        let device = format!("/{}", part.pvc);
        let to = format!("{DATA}/{}{}", part.file, if self.encrypted { "-tmp" } else { "" });
        let name = format!("blkdevmapper{}", part.suffix);
        let mut copy = self.copying(&name, &device, &to, &json!([bridge()]));
        copy["volumeDevices"] = json!([{"name": part.pvc, "devicePath": device}]);
        copy
    }

    fn opening(self) -> Vec<Value> {
        let key = json!({"name": "osd-encryption-key", "mountPath": "/etc/ceph", "readOnly": !self.vault});
        let opened = json!([bridge(), mapper()]);
        let cryptsetup = |name: &str, action: &str, mounts: &Value| {
            self.container(name, &json!(["cryptsetup"]), &json!(["--verbose", action, MAPPING]), mounts)
        };
        let mut all = Vec::new();
        if self.vault {
            let mounts = json!([key, {"name": "vault", "mountPath": "/etc/vault"}]);
            let args = json!(["key-management", "get", PVC, "/etc/ceph/luks_key"]);
            all.push(json!({"name": "encryption-kms-get-kek", "image": "rook", "command": ["rook"], "args": args, "volumeMounts": mounts}));
        }
        all.extend(self.parts().map(|part| self.opening_pvc(part, &json!([bridge(), mapper(), key]))));
        all.extend(self.parts().map(|part| {
            let name = format!("blkdevmapper{}-encryption", part.suffix);
            let from = format!("/dev/mapper/{}-{}-dmcrypt", part.pvc, part.kind);
            self.copying(&name, &from, &format!("{DATA}/{}", part.file), &opened)
        }));
        all.extend([
            cryptsetup("encrypted-block-status", "status", &json!([bridge()])),
            cryptsetup("expand-encrypted-bluefs", "resize", &opened),
        ]);
        all
    }

    fn opening_pvc(self, part: Part, mounts: &Value) -> Value {
        let mapping = format!("{}-{}-dmcrypt", part.pvc, part.kind);
        let (block, path) = (format!("{DATA}/{}-tmp", part.file), format!("/dev/mapper/{mapping}"));
        let name = format!("encryption-open{}", part.suffix);
        let script = format!("of={}\ndevice={block}\nname={mapping}\nopen={path}\n", part.pvc);
        let script = if self.rook >= Rook::Master { "OPEN" } else { &script };
        let mut open = self.container(&name, &json!(["/bin/bash", "-c", script]), &json!([]), mounts);
        open.as_object_mut().unwrap().remove("args");
        if self.rook >= Rook::Master {
            open["env"] = json!([
                {"name": "ROOK_PVC_NAME", "value": part.pvc},
                {"name": "ROOK_ENCRYPTION_BLOCK_PATH", "value": block},
                {"name": "ROOK_ENCRYPTION_DM_NAME", "value": mapping},
                {"name": "ROOK_ENCRYPTION_DM_PATH", "value": path},
            ]);
        }
        open
    }

    fn copying(self, name: &str, source: &str, destination: &str, mounts: &Value) -> Value {
        let script = format!("from={source}\nto={destination}\ncp \"$from\" \"$to\"\n");
        let command = if self.rook >= Rook::Master {
            json!(["/bin/bash", "-c", "cp \"$1\" \"$2\"", "--", source, destination])
        } else {
            json!(["/bin/bash", "-c", script])
        };
        json!({"name": name, "image": "ceph:old", "imagePullPolicy": "IfNotPresent", "command": command,
            "volumeMounts": mounts, "resources": {"limits": {"memory": "4Gi"}},
            "securityContext": {"privileged": false, "capabilities": {"add": ["MKNOD"], "drop": ["NET_RAW"]}}})
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
        let block_path = match (self.is_on_lvm(), self.encrypted) {
            (true, _) => "/dev/ceph-1f/osd-block-1f".to_owned(),
            (false, true) => format!("/dev/mapper/{MAPPING}"),
            (false, false) => format!("/mnt/{PVC}"),
        };
        let value = |name: &str, value: &str| json!({"name": name, "value": value});
        let mut env = vec![
            value("ROOK_NODE_NAME", if self.portable { PVC } else { "h1" }),
            value("CONTAINER_IMAGE", "ceph:old"),
            value("ROOK_OSD_UUID", &self.fsid.to_string()),
            value("ROOK_OSD_ID", "3"),
            value("ROOK_BLOCK_PATH", &block_path),
            value("ROOK_CV_MODE", &self.mode.to_string()),
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
        let mut args = vec!["--foreground", "--id", "3", "--crush-location=root=default host=h1"];
        let mut command = "ceph-osd";
        if self.is_on_lvm() {
            env.push(value("ROOK_LV_BACKED_PV", "true"));
            command = "/rook/rook";
            args.splice(..0, ["ceph", "osd", "start", "--"]);
        }
        let mut osd = self.container("osd", &json!([command]), &json!(args), &self.mounts());
        osd["env"] = json!(env);
        let logs = json!({"name": "log-collector", "image": "ceph:old", "volumeMounts": [{"name": "rook-ceph-log", "mountPath": "/var/log/ceph"}]});
        vec![osd, logs]
    }

    /// Returns the mounts of the daemon, and of the container that gives it its files.
    fn mounts(self) -> Value {
        let mut mounts = vec![config()];
        if self.is_on_lvm() {
            mounts.push(json!({"name": "devices", "mountPath": "/dev"}));
        }
        mounts.push(json!({"name": "run-udev", "mountPath": "/run/udev"}));
        if self.encrypted {
            mounts.push(mapper());
        }
        if self.is_on_lvm() {
            mounts.push(rook_binaries());
        }
        mounts.push(if self.is_on_lvm() { bridge_of_lvm() } else { bridge() });
        json!(mounts)
    }

    fn volumes(self) -> Vec<Value> {
        let mut volumes = vec![json!({"name": "rook-config-override", "projected": {"sources": []}})];
        if self.is_on_lvm() {
            volumes.push(json!({"name": "devices", "hostPath": {"path": "/dev", "type": ""}}));
        }
        for Part { pvc, .. } in self.parts() {
            let folder =
                json!({"path": format!("/var/lib/rook/rook-ceph/{pvc}"), "type": "DirectoryOrCreate"});
            volumes.push(json!({"name": pvc, "persistentVolumeClaim": {"claimName": pvc}}));
            volumes.push(json!({"name": format!("{pvc}-bridge"), "hostPath": folder}));
        }
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
        if self.is_on_lvm() {
            volumes.push(json!({"name": "rook-binaries", "emptyDir": {}}));
        }
        if self.rook >= Rook::V1_18 {
            volumes.push(json!({"name": "rook-ceph-admin-keyring", "secret": {"secretName": "rook-ceph-admin-keyring"}}));
        }
        volumes
    }
}

fn bridge() -> Value {
    json!({"name": format!("{PVC}-bridge"), "mountPath": DATA, "subPath": "ceph-3"})
}

/// Returns the mount of the device of an OSD on LVM.
fn bridge_of_lvm() -> Value {
    json!({"name": format!("{PVC}-bridge"), "mountPath": "/mnt"})
}

fn rook_binaries() -> Value {
    json!({"name": "rook-binaries", "mountPath": "/rook"})
}

fn mapper() -> Value {
    json!({"name": "dev-mapper", "mountPath": "/dev/mapper"})
}

fn config() -> Value {
    json!({"name": "rook-config-override", "mountPath": "/etc/ceph", "readOnly": true})
}
