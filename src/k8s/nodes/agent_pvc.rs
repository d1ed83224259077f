//! Parts of an agent's pod for an OSD on PVCs: their devices, and the key of the encryption. Pure.
//!
//! A privileged container does not get the devices of PVCs (`volumeDevices`; measured with containerd 1.6).
//! So an init container without privileges, the bridge, gets the devices and creates the same device nodes in
//! a volume in memory, and the agent's container mounts that volume. On nodes with SELinux, only a privileged
//! container may create device nodes. Rook's operator has a setting for such nodes
//! (`ROOK_HOSTPATH_REQUIRES_PRIVILEGED`), which shows in the pods of its OSDs.

use serde_json::{Value, json};

use crate::domain::inspection::{KEY_MOUNT, NodeRequest, PVC_MOUNT, pvc_node};
use crate::domain::osd::Role;
use crate::domain::osd::pvc::{PerPvc, key_secret};

/// Policy by which the status of a container that failed has the last lines of its log: the reason of an
/// agent that could not report.
pub(super) const LAST_LINES: &str = "FallbackToLogsOnError";

/// Name of the init container and of the volume that it writes to.
const BRIDGE: &str = "bridge";
/// Name of the volume of the Secret with the OSD's key.
const KEY: &str = "pvc-key";
/// Folder in the bridge in which Kubernetes creates the devices of the PVCs.
const DEVICES: &str = "/osd-migrate-pvc";
/// Prefix of the names of the init containers in which Rook does the same (`blkdevmapper-metadata`, ...;
/// pkg/operator/ceph/cluster/osd/spec.go, `getBlockDevMapperContext`, v1.7-v1.20).
const MAPPER: &str = "blkdevmapper";

/// The PVCs of an agent.
#[derive(Debug, Clone, Copy)]
pub(super) struct AgentPvcs<'a> {
    pvcs: &'a PerPvc<String>,
    has_key: bool,
}

impl<'a> AgentPvcs<'a> {
    /// Returns the PVCs that a request names.
    pub(super) fn of(request: &'a NodeRequest) -> Option<Self> {
        let pvcs = request.pvcs.as_ref()?;
        Some(Self { pvcs, has_key: request.pvc_with_key().is_some() })
    }

    /// Returns the mounts of the agent's container.
    pub(super) fn mounts(self) -> Vec<Value> {
        let mut mounts = vec![json!({"name": BRIDGE, "mountPath": PVC_MOUNT})];
        if self.has_key {
            mounts.push(json!({"name": KEY, "mountPath": KEY_MOUNT, "readOnly": true}));
        }
        mounts
    }

    /// Returns the volumes: one for each PVC, the bridge, and the key, which is that of the data for all.
    ///
    /// The Secret is optional and mounted without a list of keys: if it or its key is missing, the pod starts
    /// and the agent reports that.
    pub(super) fn volumes(self) -> Vec<Value> {
        let of_pvc = |(role, pvc): (Role, &String)| json!({"name": volume(role), "persistentVolumeClaim": {"claimName": pvc}});
        let mut volumes: Vec<_> = self.pvcs.iter().map(of_pvc).collect();
        volumes.push(json!({"name": BRIDGE, "emptyDir": {"medium": "Memory"}}));
        if self.has_key {
            let secret =
                json!({"secretName": key_secret(&self.pvcs.data), "defaultMode": 0o400, "optional": true});
            volumes.push(json!({"name": KEY, "secret": secret}));
        }
        volumes
    }

    /// Builds the init container that creates the device nodes for the agent: `node bridge FROM TO [FROM
    /// TO]...`.
    ///
    /// `MKNOD` is the only right that it needs, except on nodes where Rook's OSDs need a privileged container
    /// for it.
    pub(super) fn bridge(self, image: &str, resources: &Value, osd_pod: &Value) -> Value {
        let mut command = ["/opt/osd-migrate/osd-migrate", "node", "bridge"].map(str::to_owned).to_vec();
        let mut devices = Vec::new();
        for (role, _) in self.pvcs.iter() {
            let device = format!("{DEVICES}/{}", pvc_node(role));
            command.extend([device.clone(), format!("{PVC_MOUNT}/{}", pvc_node(role))]);
            devices.push(json!({"name": volume(role), "devicePath": device}));
        }
        json!({
            "name": BRIDGE,
            "image": image,
            "terminationMessagePolicy": LAST_LINES,
            "command": command,
            "resources": resources,
            "volumeDevices": devices,
            "volumeMounts": [
                {"name": "program", "mountPath": "/opt/osd-migrate", "readOnly": true},
                {"name": BRIDGE, "mountPath": PVC_MOUNT},
            ],
            "securityContext": rights(maps_privileged(osd_pod)),
        })
    }
}

/// Returns whether Rook creates the device nodes of an OSD on PVCs in a privileged container.
fn maps_privileged(osd_pod: &Value) -> bool {
    let containers = osd_pod.get("initContainers").and_then(Value::as_array);
    let is_mapper = |container: &&Value| {
        container.get("name").and_then(Value::as_str).is_some_and(|name| name.starts_with(MAPPER))
    };
    let mut mappers = containers.into_iter().flatten().filter(is_mapper);
    mappers.any(|mapper| mapper.pointer("/securityContext/privileged") == Some(&Value::Bool(true)))
}

/// Returns the security context of the bridge.
fn rights(is_privileged: bool) -> Value {
    if is_privileged {
        return json!({"privileged": true, "runAsUser": 0});
    }
    json!({
        "privileged": false,
        "allowPrivilegeEscalation": false,
        "runAsUser": 0,
        "capabilities": {"drop": ["ALL"], "add": ["MKNOD"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    })
}

/// Returns the name of the volume of a PVC.
fn volume(role: Role) -> String {
    format!("pvc-{}", pvc_node(role))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::inspection::NodeTask;
    use crate::domain::osd::{Layout, Mode, ObjectStore};
    use crate::k8s::nodes::node_job::tests::{built_of, request};

    /// Returns the request of an agent for an OSD on a PVC that is to be encrypted or plain.
    fn on_pvc(encrypted: bool) -> NodeRequest {
        let target = Layout { store: ObjectStore::bluestore(), mode: Mode::Raw, encrypted };
        NodeRequest { pvcs: Some(PerPvc::of_data("set1-data-0a".to_owned())), target, ..request() }
    }

    fn spec(request: &NodeRequest) -> Value {
        built_of(request)["spec"]["template"]["spec"].take()
    }

    fn named(list: &Value, name: &str) -> Vec<Value> {
        list.as_array().unwrap().iter().filter(|item| item["name"] == name).cloned().collect()
    }

    #[test]
    fn bridge_copies_the_device_of_the_pvc_with_mknod_alone() {
        let spec = spec(&on_pvc(false));
        let [install, bridge] = spec["initContainers"].as_array().unwrap().as_slice() else { panic!("two") };
        assert_eq!(install["name"], "install", "it brings the program of the bridge");
        let expected = json!({
            "name": "bridge",
            "image": "ceph:16.2.15",
            "terminationMessagePolicy": "FallbackToLogsOnError",
            "command": ["/opt/osd-migrate/osd-migrate", "node", "bridge", "/osd-migrate-pvc/data", "/mnt/osd-migrate-pvc/data"],
            "resources": {},
            "volumeDevices": [{"name": "pvc-data", "devicePath": "/osd-migrate-pvc/data"}],
            "volumeMounts": [
                {"name": "program", "mountPath": "/opt/osd-migrate", "readOnly": true},
                {"name": "bridge", "mountPath": "/mnt/osd-migrate-pvc"},
            ],
            "securityContext": {"privileged": false, "allowPrivilegeEscalation": false, "runAsUser": 0,
                "capabilities": {"drop": ["ALL"], "add": ["MKNOD"]}, "seccompProfile": {"type": "RuntimeDefault"}},
        });
        assert_eq!(bridge, &expected);
        assert_eq!(
            named(&spec["volumes"], "pvc-data"),
            [json!({"name": "pvc-data", "persistentVolumeClaim": {"claimName": "set1-data-0a"}})]
        );
        assert_eq!(
            named(&spec["volumes"], "bridge"),
            [json!({"name": "bridge", "emptyDir": {"medium": "Memory"}})]
        );
        let agent = &spec["containers"][0];
        assert_eq!(
            named(&agent["volumeMounts"], "bridge"),
            [json!({"name": "bridge", "mountPath": "/mnt/osd-migrate-pvc"})]
        );
        assert_eq!(agent.get("volumeDevices"), None, "a privileged container does not get them");
        assert_eq!(agent["securityContext"]["privileged"], true);
    }

    #[test]
    fn bridge_has_the_resources_that_a_quota_requires() {
        let resources = json!({"requests": {"cpu": "0"}});
        let request = on_pvc(false);
        let bridge = AgentPvcs::of(&request).unwrap().bridge("ceph:16", &resources, &json!({}));
        assert_eq!(bridge["resources"], resources);
    }

    #[test]
    fn bridge_is_privileged_exactly_if_rooks_mapper_is() {
        let request = on_pvc(false);
        let rights = |osd_pod: &Value| {
            let bridge = AgentPvcs::of(&request).unwrap().bridge("ceph:16", &json!({}), osd_pod);
            bridge["securityContext"].clone()
        };
        let pod = |name: &str, privileged: bool| {
            let context = json!({"privileged": privileged, "capabilities": {"add": ["MKNOD"]}});
            json!({"initContainers": [{"name": "activate", "securityContext": {"privileged": true}},
                {"name": name, "securityContext": context}]})
        };
        for name in ["blkdevmapper", "blkdevmapper-metadata", "blkdevmapper-wal-encryption"] {
            assert_eq!(rights(&pod(name, true)), json!({"privileged": true, "runAsUser": 0}), "{name}");
            assert_eq!(rights(&pod(name, false))["privileged"], false, "{name}");
        }
        for other in [pod("chown-container-data-dir", true), json!({"initContainers": null}), json!({})] {
            assert_eq!(rights(&other)["capabilities"], json!({"drop": ["ALL"], "add": ["MKNOD"]}));
        }
    }

    #[test]
    fn one_bridge_copies_all_devices_and_one_key_is_mounted() {
        let mut request = on_pvc(true);
        let name = |template: &str| Some(format!("set1-{template}-0b"));
        request.pvcs = request.pvcs.map(|pvcs| PerPvc { db: name("metadata"), wal: name("wal"), ..pvcs });
        let spec = spec(&request);
        let [_, bridge] = spec["initContainers"].as_array().unwrap().as_slice() else { panic!("two") };
        let nodes = ["data", "db", "wal"];
        let paths = nodes
            .iter()
            .flat_map(|node| [format!("/osd-migrate-pvc/{node}"), format!("/mnt/osd-migrate-pvc/{node}")]);
        let command: Vec<_> = bridge["command"].as_array().unwrap().iter().skip(3).cloned().collect();
        assert_eq!(command, paths.map(|path| json!(path)).collect::<Vec<_>>());
        let devices =
            nodes.map(|n| json!({"name": format!("pvc-{n}"), "devicePath": format!("/osd-migrate-pvc/{n}")}));
        assert_eq!(bridge["volumeDevices"], json!(devices));
        for (node, pvc) in nodes.into_iter().zip(["set1-data-0a", "set1-metadata-0b", "set1-wal-0b"]) {
            let volume = format!("pvc-{node}");
            let expected = json!({"name": volume, "persistentVolumeClaim": {"claimName": pvc}});
            assert_eq!(named(&spec["volumes"], &volume), [expected]);
        }
        assert_eq!(spec.to_string().matches("rook-ceph-osd-encryption-key-").count(), 1);
        assert_eq!(
            named(&spec["volumes"], "pvc-key")[0]["secret"]["secretName"],
            "rook-ceph-osd-encryption-key-set1-data-0a"
        );
    }

    #[test]
    fn key_is_mounted_by_the_agent_alone_if_the_target_is_encrypted() {
        let with_key = spec(&on_pvc(true));
        let volume = json!({"name": "pvc-key", "secret": {
            "secretName": "rook-ceph-osd-encryption-key-set1-data-0a", "defaultMode": 256, "optional": true}});
        assert_eq!(named(&with_key["volumes"], "pvc-key"), [volume]);
        assert_eq!(
            named(&with_key["containers"][0]["volumeMounts"], "pvc-key"),
            [json!({"name": "pvc-key", "mountPath": "/mnt/osd-migrate-key", "readOnly": true})]
        );
        assert!(!with_key["initContainers"].to_string().contains("pvc-key"));
        let without = NodeRequest { task: NodeTask::Inspect, ..on_pvc(false) };
        assert!(!spec(&without).to_string().contains("encryption-key"));
    }

    #[test]
    fn agent_of_a_host_osd_has_no_part_of_a_pvc() {
        let target = Layout { encrypted: true, ..on_pvc(true).target };
        let spec = spec(&NodeRequest { target, ..request() });
        assert_eq!(spec["initContainers"].as_array().map(Vec::len), Some(1));
        for part in
            ["volumeDevices", "persistentVolumeClaim", "bridge", "encryption-key", KEY_MOUNT, PVC_MOUNT]
        {
            assert!(!spec.to_string().contains(part), "{part}");
        }
    }
}
