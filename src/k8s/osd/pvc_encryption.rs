//! Containers and volumes that open an encrypted OSD on a PVC: added to a Deployment, or removed. Pure.
//!
//! The names, their order and their mounts are Rook's (pkg/operator/ceph/cluster/osd/spec.go and volumes.go).
//! They are the same in v1.13.10, v1.16.9, v1.18.11, v1.20.6 and master of 2026-08. An added container is a
//! copy of an existing one, with its image, resources and security settings. The script that copies device
//! nodes is the Deployment's own.

use serde_json::{Value, json};

use crate::domain::osd::Role;
use crate::domain::osd::pvc::{KEY_IN_SECRET, key_secret, mapping_name, mapping_path};
use crate::k8s::osd::fields::field;
use crate::k8s::osd::osd_env::literals;
use crate::k8s::osd::osd_object::set;
use crate::k8s::osd::pvc_parts;
use crate::k8s::osd::pvc_shape::{
    ACTIVATE, COPY, COPY_OPENED, Names, NoShape, OPEN, copies, copies_opened, init_container, insert_after,
    list_mut, replace,
};

/// Script of the init container that opens the device. It reads the variables of [`variables`].
const OPEN_SCRIPT: &str = include_str!("open_encrypted.sh");
/// Prefixes of init containers that only an encrypted OSD has, in addition to those that copy device nodes.
/// With a key management system, one of them reads the key (`encryption-kms-get-kek`).
const OF_ENCRYPTION: [&str; 3] = ["encryption-", "encrypted-", "expand-encrypted-"];

/// Volume with the device nodes of open devices.
const MAPPER: &str = "dev-mapper";
const MAPPER_PATH: &str = "/dev/mapper";
/// Volume with the key.
const KEY: &str = "osd-encryption-key";
const KEY_FILE: &str = "luks_key";
/// Volume of the daemon after which Rook mounts that of the open devices.
const UDEV: &str = "run-udev";

/// Adds what opens the devices to a pod spec.
pub(super) fn encrypt(pod: &mut Value, names: &Names<'_>) -> Result<(), NoShape> {
    let copy = init_container(pod, COPY)?;
    let opening = opening(&copy, &init_container(pod, ACTIVATE)?, names)?;
    for container in list_mut(pod, "initContainers") {
        if let Some(role) = copied(container, names) {
            replace(container, &names.path(role), &names.locked_path(role))?;
        }
    }
    let secret = json!({"secretName": key_secret(names.data()), "defaultMode": 0o400,
        "items": [{"key": KEY_IN_SECRET, "path": KEY_FILE}]});
    let of_pvcs = pvc_parts::volumes(&copy, names, &[Role::Db, Role::Wal]);
    insert_after(pod, "volumes", &of_pvcs, json!({"name": KEY, "secret": secret}));
    let mapper = json!({"name": MAPPER, "hostPath": {"path": MAPPER_PATH, "type": ""}});
    insert_after(pod, "volumes", &[UDEV], mapper);
    for list in ["initContainers", "containers"] {
        for container in list_mut(pod, list).filter(|container| mounts(container, UDEV)) {
            insert_after(container, "volumeMounts", &[UDEV], mapper_mount());
        }
    }
    if let Some(list) = pod.get_mut("initContainers").and_then(Value::as_array_mut) {
        let last = list.iter().rposition(|container| copied(container, names).is_some());
        let at = last.map_or(0, |last| last + 1);
        list.splice(at..at, opening);
    }
    for (role, _) in names.pvcs.others() {
        pvc_parts::add_opening(pod, names, role)?;
    }
    // cryptsetup and the host's udev wait for each other by semaphores.
    set(pod, &["hostIPC"], json!(true));
    Ok(())
}

/// Returns whose device node a container copies from its PVC.
fn copied(container: &Value, names: &Names<'_>) -> Option<Role> {
    let name = field(container, "name")?;
    names.pvcs.iter().map(|(role, _)| role).find(|role| copies(*role) == name)
}

/// Removes what opens the devices from a pod spec.
pub(super) fn decrypt(pod: &mut Value, names: &Names<'_>) -> Result<(), NoShape> {
    let is_of_encryption = |container: &Value| {
        field(container, "name").is_some_and(|name| {
            OF_ENCRYPTION.iter().any(|prefix| name.starts_with(prefix))
                || [Role::Block, Role::Db, Role::Wal].into_iter().any(|role| copies_opened(role) == name)
        })
    };
    let mut unused = vec![MAPPER.to_owned(), KEY.to_owned()];
    if let Some(list) = pod.get_mut("initContainers").and_then(Value::as_array_mut) {
        for container in list.extract_if(.., |container| is_of_encryption(container)) {
            unused.extend(used_volumes(&container));
        }
    }
    for list in ["initContainers", "containers"] {
        for container in list_mut(pod, list) {
            if let Some(mounts) = container.get_mut("volumeMounts").and_then(Value::as_array_mut) {
                mounts.retain(|mount| !matches!(field(mount, "name"), Some(MAPPER | KEY)));
            }
            if let Some(role) = copied(container, names) {
                replace(container, &names.locked_path(role), &names.path(role))?;
            }
        }
    }
    for list in ["initContainers", "containers"] {
        for container in list_mut(pod, list) {
            let used = used_volumes(container);
            unused.retain(|name| !used.contains(name));
        }
    }
    if let Some(volumes) = pod.get_mut("volumes").and_then(Value::as_array_mut) {
        volumes.retain(|volume| !field(volume, "name").is_some_and(|name| unused.iter().any(|u| u == name)));
    }
    if let Some(pod) = pod.as_object_mut() {
        pod.remove("hostIPC");
    }
    Ok(())
}

/// Builds the four containers that open the device of the data, copy its node, print its state, and expand it
/// to its present size.
fn opening(copy: &Value, activate: &Value, names: &Names<'_>) -> Result<[Value; 4], NoShape> {
    let mounts = copy.get("volumeMounts").and_then(Value::as_array).cloned().unwrap_or_default();
    let with = |more: &[Value]| [mounts.as_slice(), more].concat();
    let key = json!({"name": KEY, "mountPath": "/etc/ceph", "readOnly": true});
    let mapping = mapping_name(names.data(), Role::Block);
    let mut open = copy_of(activate, OPEN, &with(&[mapper_mount(), key]));
    set(&mut open, &["command"], json!(["/bin/bash", "-c", OPEN_SCRIPT]));
    set(&mut open, &["env"], variables(names));
    let mut copying = copy.clone();
    replace(&mut copying, &names.device_path(copy), &mapping_path(names.data(), Role::Block))?;
    let mut copy_opened = copy_of(copy, COPY_OPENED, &with(&[mapper_mount()]));
    for list in ["command", "args"] {
        if let Some(words) = copying.get(list) {
            set(&mut copy_opened, &[list], words.clone());
        }
    }
    let cryptsetup = |name: &str, action: &str, mounts: &[Value]| {
        let mut container = copy_of(activate, name, mounts);
        set(&mut container, &["command"], json!(["cryptsetup"]));
        set(&mut container, &["args"], json!(["--verbose", action, mapping]));
        container
    };
    let status = cryptsetup("encrypted-block-status", "status", &with(&[]));
    let expand = cryptsetup("expand-encrypted-bluefs", "resize", &with(&[mapper_mount()]));
    Ok([open, copy_opened, status, expand])
}

/// Returns the variables that the script reads.
fn variables(names: &Names<'_>) -> Value {
    literals(&[
        ("ROOK_PVC_NAME", names.data()),
        ("ROOK_CEPH_FSID", &names.cluster.to_string()),
        ("ROOK_ENCRYPTION_KEY_FILE_PATH", &format!("/etc/ceph/{KEY_FILE}")),
        ("ROOK_ENCRYPTION_BLOCK_PATH", &names.locked_path(Role::Block)),
        ("ROOK_ENCRYPTION_DM_NAME", &mapping_name(names.data(), Role::Block)),
        ("ROOK_ENCRYPTION_DM_PATH", &mapping_path(names.data(), Role::Block)),
    ])
}

/// Returns a container with the image, resources and security settings of another one.
fn copy_of(container: &Value, name: &str, mounts: &[Value]) -> Value {
    let mut copy = container.clone();
    if let Some(copy) = copy.as_object_mut() {
        for field in ["command", "args", "volumeDevices"] {
            copy.remove(field);
        }
    }
    set(&mut copy, &["name"], json!(name));
    set(&mut copy, &["volumeMounts"], json!(mounts));
    copy
}

fn mapper_mount() -> Value {
    json!({"name": MAPPER, "mountPath": MAPPER_PATH})
}

/// Returns the volumes that a container mounts, or has as devices.
fn used_volumes(container: &Value) -> Vec<String> {
    let lists = ["volumeMounts", "volumeDevices"].map(|key| container.get(key).and_then(Value::as_array));
    let used = lists.into_iter().flatten().flatten();
    used.filter_map(|volume| field(volume, "name")).map(str::to_owned).collect()
}

fn mounts(container: &Value, volume: &str) -> bool {
    used_volumes(container).iter().any(|name| name == volume)
}
