//! Environment of the OSD's container: the variables that `ceph-osd` needs, and those that Rook reads back.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::domain::osd::Weight;
use crate::k8s::osd::fields::env;
use crate::k8s::osd::render_osd::Osd;
use crate::k8s::rook::mon_access::mons;

impl Osd<'_> {
    /// Returns the environment of the container `osd`.
    pub(super) fn daemon_env(&self) -> Value {
        let declaration = self.frame.declaration;
        let (id, fsid, block_path) = (self.id(), self.deploy.fsid.to_string(), self.block_path());
        let places: &BTreeMap<String, String> = &self.deploy.crush.location;
        let place = |kind: &str| places.get(kind).map_or("", String::as_str);
        let mut vars = vec![
            ("ROOK_NODE_NAME", self.hostname()),
            ("ROOK_CLUSTER_ID", &declaration.uid),
            ("ROOK_CLUSTER_NAME", &declaration.name),
            ("POD_NAMESPACE", self.frame.namespace),
            ("ROOK_CONFIG_DIR", "/var/lib/rook"),
            ("ROOK_CEPH_CONFIG_OVERRIDE", "/etc/rook/config/override.conf"),
            ("ROOK_CRUSHMAP_ROOT", place("root")),
            ("ROOK_CRUSHMAP_HOSTNAME", place("host")),
            ("CEPH_VOLUME_DEBUG", "1"),
            ("CEPH_VOLUME_SKIP_RESTORECON", "1"),
            ("DM_DISABLE_UDEV", "1"),
            ("ROOK_OSDS_PER_DEVICE", "1"),
            ("ROOK_ENCRYPTED_DEVICE", if self.deploy.layout.encrypted { "true" } else { "false" }),
            ("CONTAINER_IMAGE", self.image()),
            // Each pod starts to number its processes at 1. Without this variable, a daemon that is not the
            // first one would come back under the address of its predecessor.
            ("CEPH_USE_RANDOM_NONCE", "true"),
            ("ROOK_OSD_UUID", &fsid),
            ("ROOK_OSD_ID", &id),
            ("ROOK_BLOCK_PATH", &block_path),
            ("ROOK_CV_MODE", self.mode()),
            ("ROOK_OSD_STORE_TYPE", &self.deploy.store),
            ("ROOK_OSD_DEVICE_CLASS", self.class()),
            ("ROOK_OSD_CRUSH_DEVICE_CLASS", self.class()),
            ("ROOK_OSD_RESTART_INTERVAL", "0"),
        ];
        // Rook's Jobs that prepare OSDs read a requested weight from this variable (provision_spec.go). The
        // slot itself keeps the present weight in CRUSH.
        let declared = self.deploy.initial_weight.map(decimal);
        let initial = declared.as_deref().or_else(|| env(self.old, "ROOK_OSD_CRUSH_INITIAL_WEIGHT"));
        vars.extend(initial.map(|weight| ("ROOK_OSD_CRUSH_INITIAL_WEIGHT", weight)));
        // The devices of database and log are not here. Rook reads them from this container (osd.go,
        // `getOSDInfo`), and writes them to `activate` only (spec.go). With them, its second reconcile would
        // restart the OSD again. An OSD on LVM is activated by the tags of its volumes.
        let store = self.store_flag();
        if self.deploy.layout.encrypted {
            // The script of this container, which activates the OSD, reads this variable.
            vars.push(("ROOK_OSD_STORE_FLAG", &store));
        }
        let mut env = literals(&vars);
        if let Some(list) = env.as_array_mut() {
            list.extend(of_its_pod());
            list.extend(mons());
        }
        env
    }
}

/// Returns the variables that describe the pod itself.
fn of_its_pod() -> [Value; 10] {
    let field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}});
    let resource = |name: &str, of: &str| json!({"name": name, "valueFrom": {"resourceFieldRef": {"containerName": "osd", "resource": of, "divisor": "0"}}});
    [
        field("ROOK_PRIVATE_IP", "status.podIP"),
        field("ROOK_PUBLIC_IP", "status.podIP"),
        field("ROOK_POD_IP", "status.podIP"),
        field("NODE_NAME", "spec.nodeName"),
        field("POD_NAME", "metadata.name"),
        resource("POD_MEMORY_LIMIT", "limits.memory"),
        resource("POD_MEMORY_REQUEST", "requests.memory"),
        resource("POD_CPU_LIMIT", "limits.cpu"),
        resource("POD_CPU_REQUEST", "requests.cpu"),
        json!({"name": "ROOK_MON_ENDPOINTS", "valueFrom": {"configMapKeyRef": {"name": "rook-ceph-mon-endpoints", "key": "data"}}}),
    ]
}

/// Returns a weight as its owner wrote it: the shortest number with the same value.
pub(crate) fn decimal(weight: Weight) -> String {
    let written = (0..=5).map(|places| format!("{:.places$}", weight.as_decimal()));
    let mut same =
        written.filter(|text| text.parse().is_ok_and(|value| Weight::from_decimal(value) == weight));
    same.next().unwrap_or_else(|| weight.to_string())
}

/// Returns variables with literal values.
pub(super) fn literals(vars: &[(&str, &str)]) -> Value {
    vars.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
}
