//! The Deployment of an OSD on a volume of LVM on its PVC, changed into that of an OSD in raw mode. Pure.
//!
//! Rook starts such an OSD with its own program, which activates the volume, and calls it deprecated
//! (pkg/operator/ceph/cluster/osd/spec.go, `makeDeployment` if `CVMode` is `lvm`). Both kinds have the same
//! volumes of PVCs. They differ in the containers and mounts that are named here, alike from v1.8.10 to
//! v1.20.6.

use serde_json::{Value, json};

use crate::domain::osd::{Mode, Role};
use crate::k8s::osd::daemon_data;
use crate::k8s::osd::fields::{POD_SPEC, field};
use crate::k8s::osd::osd_object::set;
use crate::k8s::osd::pvc_shape::{
    ACTIVATE, COPY, Names, NoShape, all_mut, init_container, insert_after, list_mut, replace,
};

/// Init containers of an OSD on LVM only: Rook's program is copied, and writes the settings for Ceph.
const OF_LVM: [&str; 2] = ["config-init", "copy-bins"];
/// Volumes of an OSD on LVM only: the devices of the node, and Rook's program.
const VOLUMES_OF_LVM: [&str; 2] = ["devices", "rook-binaries"];
/// Folder in which the containers of an OSD on LVM have the device of the PVC.
const BRIDGE_OF_LVM: &str = "/mnt";
/// Init container that makes the files of an OSD belong to its user.
const CHOWN: &str = "chown-container-data-dir";
/// Init container that enlarges the store when the device has grown.
const EXPAND: &str = "expand-bluefs";
/// Variable that only an OSD on LVM has.
const LV_BACKED: &str = "ROOK_LV_BACKED_PV";

/// Returns whether the Deployment starts an OSD on a volume of LVM on its PVC.
pub(super) fn is_on_lvm(found: &Value) -> bool {
    daemon_data::mode(found) == Some(Mode::Lvm)
}

/// Changes a Deployment of an OSD on LVM into that of an OSD in raw mode, without values of the new OSD.
pub(super) fn to_raw(mut found: Value, names: &Names<'_>) -> Result<Value, NoShape> {
    let folder = Folder::of(found.pointer(POD_SPEC).unwrap_or(&Value::Null), names)?;
    for container in all_mut(&mut found) {
        folder.replace_mounts(container);
    }
    let pod = found.pointer_mut(POD_SPEC).ok_or(NoShape::Container("osd"))?;
    for container in list_mut(pod, "initContainers") {
        match field(container, "name") {
            Some(COPY) => {
                let device = format!("{BRIDGE_OF_LVM}/{}", names.data());
                replace(container, &device, &names.path(Role::Block))?;
            }
            Some(CHOWN) => add_argument(container, &folder.path),
            Some(_) | None => {}
        }
    }
    remove(pod, "initContainers", &OF_LVM);
    remove(pod, "volumes", &VOLUMES_OF_LVM);
    let block = names.path(Role::Block);
    let args = ["bluefs-bdev-expand", "--path", &folder.path];
    let expand = folder.bluestore_tool(pod, EXPAND, &args)?;
    let args = ["prime-osd-dir", "--dev", &block, "--path", &folder.path, "--no-mon-config"];
    let mut activate = folder.bluestore_tool(pod, ACTIVATE, &args)?;
    insert_after(pod, "initContainers", &[COPY], expand);
    set(&mut activate, &["volumeDevices"], json!([{"name": names.volume, "devicePath": block}]));
    insert_after(pod, "initContainers", &[COPY], activate);
    let osd = list_mut(pod, "containers").find(|container| field(container, "name") == Some("osd"));
    start_directly(osd.ok_or(NoShape::Container("osd"))?)?;
    Ok(found)
}

/// Folder of the OSD, in the volume that the containers share.
struct Folder {
    path: String,
    /// Mount of the folder.
    mount: Value,
    /// Volume that an OSD on LVM mounts at [`BRIDGE_OF_LVM`].
    volume: String,
}

impl Folder {
    fn of(pod: &Value, names: &Names<'_>) -> Result<Self, NoShape> {
        let copy = init_container(pod, COPY)?;
        let mounts = copy.get("volumeMounts").and_then(Value::as_array);
        let at_bridge = |mount: &&Value| field(mount, "mountPath") == Some(BRIDGE_OF_LVM);
        let bridge = mounts.into_iter().flatten().find(at_bridge).and_then(|mount| field(mount, "name"));
        let volume = bridge.ok_or_else(|| NoShape::OtherPvc(names.data().to_owned()))?.to_owned();
        let id = format!("ceph-{}", names.osd.0);
        let path = format!("/var/lib/ceph/osd/{id}");
        let mount = json!({"name": volume, "mountPath": path, "subPath": id});
        Ok(Self { path, mount, volume })
    }

    /// Replaces the mount of the device by that of the folder, and removes mounts that only LVM needs.
    fn replace_mounts(&self, container: &mut Value) {
        let Some(mounts) = container.get_mut("volumeMounts").and_then(Value::as_array_mut) else { return };
        mounts.retain(|mount| !field(mount, "name").is_some_and(|name| VOLUMES_OF_LVM.contains(&name)));
        for mount in mounts {
            let is_bridge = field(mount, "name") == Some(self.volume.as_str());
            if is_bridge && field(mount, "mountPath") == Some(BRIDGE_OF_LVM) {
                *mount = self.mount.clone();
            }
        }
    }

    /// Returns an init container that works on the files of the OSD, with the rights of the one that changes
    /// their owner.
    fn bluestore_tool(&self, pod: &Value, name: &str, args: &[&str]) -> Result<Value, NoShape> {
        let mut new = init_container(pod, CHOWN)?;
        for (key, value) in [
            ("name", json!(name)),
            ("command", json!(["ceph-bluestore-tool"])),
            ("args", json!(args)),
            ("volumeMounts", json!([self.mount])),
        ] {
            set(&mut new, &[key], value);
        }
        Ok(new)
    }
}

/// Starts the OSD itself instead of Rook's program, which was given the command of the OSD behind `--`.
///
/// The last word of the command is that program, also within a script that restarts it
/// (`flappingRestartIntervalHours`).
fn start_directly(osd: &mut Value) -> Result<(), NoShape> {
    let missing = || NoShape::Text { container: "osd".to_owned(), text: "ceph osd start --".to_owned() };
    let args = osd.get_mut("args").and_then(Value::as_array_mut).ok_or_else(missing)?;
    let at = args.iter().rposition(|word| word.as_str() == Some("--")).ok_or_else(missing)?;
    let is_start = args.get(at.saturating_sub(1)).and_then(Value::as_str) == Some("start");
    if !is_start {
        return Err(missing());
    }
    args.drain(..=at);
    let command = osd.get_mut("command").and_then(Value::as_array_mut);
    *command.and_then(|words| words.last_mut()).ok_or_else(missing)? = json!("ceph-osd");
    remove(osd, "env", &[LV_BACKED]);
    Ok(())
}

fn add_argument(container: &mut Value, word: &str) {
    let Some(args) = container.get_mut("args").and_then(Value::as_array_mut) else { return };
    if !args.iter().any(|arg| arg.as_str() == Some(word)) {
        args.push(json!(word));
    }
}

/// Removes the objects of these names from a list.
fn remove(value: &mut Value, list: &str, names: &[&str]) {
    let Some(list) = value.get_mut(list).and_then(Value::as_array_mut) else { return };
    list.retain(|item| !field(item, "name").is_some_and(|name| names.contains(&name)));
}

#[cfg(test)]
#[path = "pvc_from_lvm_tests.rs"]
mod tests;
