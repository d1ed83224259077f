//! Containers and volumes that open an encrypted OSD on a PVC: added to a Deployment, or removed. Pure.
//!
//! The names, their order and their mounts are Rook's (pkg/operator/ceph/cluster/osd/spec.go and volumes.go).
//! They are the same in v1.13.10, v1.16.9, v1.18.11 and v1.20.6. An added container is a copy of an existing
//! one, with its image, resources and security settings. The script that copies device nodes is the
//! Deployment's own.

use serde_json::{Value, json};

use crate::domain::osd::pvc::{KEY_IN_SECRET, key_secret, mapping_name, mapping_path};
use crate::domain::osd::{ClusterFsid, OsdId, Role};
use crate::k8s::osd::fields::field;
use crate::k8s::osd::osd_env::literals;
use crate::k8s::osd::osd_object::set;
use crate::k8s::osd::pvc_shape::{ACTIVATE, COPY, NoShape, OPEN, list_mut};

/// Script of the init container that opens the device. It reads the variables of [`variables`].
const OPEN_SCRIPT: &str = include_str!("open_encrypted.sh");
/// Init container that copies the device node of the open device.
const COPY_OPENED: &str = "blkdevmapper-encryption";
/// Prefixes of the init containers that only an encrypted OSD has. With a key management system, one of them
/// reads the key (`encryption-kms-get-kek`).
const OF_ENCRYPTION: [&str; 4] = ["encryption-", COPY_OPENED, "encrypted-", "expand-encrypted-"];

/// Volume with the device nodes of open devices.
const MAPPER: &str = "dev-mapper";
const MAPPER_PATH: &str = "/dev/mapper";
/// Volume with the key.
const KEY: &str = "osd-encryption-key";
const KEY_FILE: &str = "luks_key";
/// Volume of the daemon after which Rook mounts that of the open devices.
const UDEV: &str = "run-udev";

/// Names of an OSD on a PVC.
pub(super) struct Names<'a> {
    pub(super) pvc: &'a str,
    /// Volume of the PVC.
    pub(super) volume: &'a str,
    pub(super) osd: OsdId,
    pub(super) cluster: ClusterFsid,
}

impl Names<'_> {
    /// Returns the path at which the OSD expects its device.
    fn block(&self) -> String {
        format!("/var/lib/ceph/osd/ceph-{}/block", self.osd.0)
    }

    /// Returns the path of the device of the PVC, if `block` is the open device.
    fn locked_block(&self) -> String {
        format!("{}-tmp", self.block())
    }
}

/// Adds what opens the device to a pod spec.
pub(super) fn encrypt(pod: &mut Value, names: &Names<'_>) -> Result<(), NoShape> {
    let copy = init_container(pod, COPY)?;
    let opening = opening(&copy, &init_container(pod, ACTIVATE)?, names)?;
    let mut first = copy.clone();
    replace(&mut first, &names.block(), &names.locked_block())?;
    let bridge = copy.pointer("/volumeMounts/0/name").and_then(Value::as_str).unwrap_or(names.volume);
    let secret = json!({"secretName": key_secret(names.pvc), "defaultMode": 0o400,
        "items": [{"key": KEY_IN_SECRET, "path": KEY_FILE}]});
    insert_after(pod, "volumes", bridge, json!({"name": KEY, "secret": secret}));
    let mapper = json!({"name": MAPPER, "hostPath": {"path": MAPPER_PATH, "type": ""}});
    insert_after(pod, "volumes", UDEV, mapper);
    for list in ["initContainers", "containers"] {
        for container in list_mut(pod, list).filter(|container| mounts(container, UDEV)) {
            insert_after(container, "volumeMounts", UDEV, mapper_mount());
        }
    }
    if let Some(list) = pod.get_mut("initContainers").and_then(Value::as_array_mut) {
        let at = list.iter().position(|c| field(c, "name") == Some(COPY)).unwrap_or_default();
        list.splice(at..=at, std::iter::once(first).chain(opening));
    }
    // cryptsetup and the host's udev wait for each other by semaphores.
    set(pod, &["hostIPC"], json!(true));
    Ok(())
}

/// Removes what opens the device from a pod spec.
pub(super) fn decrypt(pod: &mut Value, names: &Names<'_>) -> Result<(), NoShape> {
    let is_of_encryption = |container: &Value| {
        field(container, "name").is_some_and(|name| OF_ENCRYPTION.iter().any(|p| name.starts_with(p)))
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
            if field(container, "name") == Some(COPY) {
                replace(container, &names.locked_block(), &names.block())?;
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

/// Builds the four containers that follow the copying one: they open the device, copy its node, print its
/// state, and expand it to its present size.
fn opening(copy: &Value, activate: &Value, names: &Names<'_>) -> Result<[Value; 4], NoShape> {
    let mounts = copy.get("volumeMounts").and_then(Value::as_array).cloned().unwrap_or_default();
    let with = |more: &[Value]| [mounts.as_slice(), more].concat();
    let key = json!({"name": KEY, "mountPath": "/etc/ceph", "readOnly": true});
    let mapping = mapping_name(names.pvc, Role::Block);
    let mut open = copy_of(activate, OPEN, &with(&[mapper_mount(), key]));
    set(&mut open, &["command"], json!(["/bin/bash", "-c", OPEN_SCRIPT]));
    set(&mut open, &["env"], variables(names));
    let mut copy_opened = copy_of(copy, COPY_OPENED, &with(&[mapper_mount()]));
    for list in ["command", "args"] {
        if let Some(words) = copy.get(list) {
            set(&mut copy_opened, &[list], words.clone());
        }
    }
    replace(&mut copy_opened, &device_path(copy, names), &mapping_path(names.pvc, Role::Block))?;
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
        ("ROOK_PVC_NAME", names.pvc),
        ("ROOK_CEPH_FSID", &names.cluster.to_string()),
        ("ROOK_ENCRYPTION_KEY_FILE_PATH", &format!("/etc/ceph/{KEY_FILE}")),
        ("ROOK_ENCRYPTION_BLOCK_PATH", &names.locked_block()),
        ("ROOK_ENCRYPTION_DM_NAME", &mapping_name(names.pvc, Role::Block)),
        ("ROOK_ENCRYPTION_DM_PATH", &mapping_path(names.pvc, Role::Block)),
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

/// Returns the path at which a container has the device of the PVC: Rook's is `/PVC`.
fn device_path(container: &Value, names: &Names<'_>) -> String {
    let devices = container.get("volumeDevices").and_then(Value::as_array);
    let mut of_pvc = devices.into_iter().flatten().filter(|d| field(d, "name") == Some(names.volume));
    let path = of_pvc.next().and_then(|device| field(device, "devicePath"));
    path.map_or_else(|| format!("/{}", names.pvc), str::to_owned)
}

fn init_container(pod: &Value, name: &'static str) -> Result<Value, NoShape> {
    let list = pod.get("initContainers").and_then(Value::as_array);
    let found = list.into_iter().flatten().find(|container| field(container, "name") == Some(name));
    found.cloned().ok_or(NoShape::Container(name))
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

/// Inserts a named object behind another one of a list, or at its end; one of the same name is replaced.
fn insert_after(value: &mut Value, list: &str, name: &str, new: Value) {
    let Some(list) = value.get_mut(list).and_then(Value::as_array_mut) else { return };
    list.retain(|item| field(item, "name") != field(&new, "name"));
    let at = list.iter().position(|item| field(item, "name") == Some(name));
    list.insert(at.map_or(list.len(), |at| at + 1), new);
}

/// Replaces a path in the command of the copying container.
///
/// Rook writes source and destination into the text of a script.
fn replace(container: &mut Value, path: &str, with: &str) -> Result<(), NoShape> {
    let mut is_replaced = false;
    for list in ["command", "args"] {
        for word in list_mut(container, list) {
            if let Some(new) = word.as_str().and_then(|text| replaced(text, path, with)) {
                *word = json!(new);
                is_replaced = true;
            }
        }
    }
    if is_replaced { Ok(()) } else { Err(NoShape::Copy(path.to_owned())) }
}

/// Returns the text with a path replaced, except if the path is a part of a longer one; `None` if the text
/// does not contain the path.
fn replaced(text: &str, path: &str, with: &str) -> Option<String> {
    let is_of_path = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let (mut new, mut done) = (String::new(), 0);
    for (at, _) in text.match_indices(path) {
        let end = at + path.len();
        let before = text.get(..at)?.chars().next_back();
        let after = text.get(end..)?.chars().next();
        if !before.is_some_and(is_of_path) && !after.is_some_and(is_of_path) {
            new.push_str(text.get(done..at)?);
            new.push_str(with);
            done = end;
        }
    }
    new.push_str(text.get(done..)?);
    (done > 0).then_some(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_is_replaced_only_where_it_stands_alone() {
        let block = "/var/lib/ceph/osd/ceph-3/block";
        let script = format!("DEST={block}\n[ -b \"{block}\" ] # {block}.db {block}-tmp /x{block}");
        let expected = format!("DEST=NEW\n[ -b \"NEW\" ] # {block}.db {block}-tmp /x{block}");
        assert_eq!(replaced(&script, block, "NEW"), Some(expected));
        assert_eq!(replaced("SOURCE=/mnt/set1-data-0", "/set1-data-0", "NEW"), None);
        assert_eq!(replaced("/set1-data-0", "/set1-data-0", "NEW").as_deref(), Some("NEW"));
    }
}
