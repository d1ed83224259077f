//! Database and log on PVCs of their own, in the Deployment of an OSD on a PVC: recognised, or added. Pure.
//!
//! The names, their order and their mounts are Rook's (pkg/operator/ceph/cluster/osd/spec.go and volumes.go,
//! the same in v1.13.10, v1.16.9, v1.18.11, v1.20.6 and master of 2026-08). An added container is the one of
//! the data with other paths and names. All of them work in the bridge of the data.

use serde_json::{Value, json};

use crate::domain::osd::Role;
use crate::domain::osd::pvc::{PerPvc, mapping_name, mapping_path};
use crate::k8s::osd::daemon_pvcs::pvc_of_container;
use crate::k8s::osd::fields::{containers, field, text};
use crate::k8s::osd::osd_object::set;
use crate::k8s::osd::pvc_shape::{
    COPY, COPY_OPENED, Names, NoShape, OPEN, before, copies, copies_opened, init_container, insert_after,
    opens, replace,
};

/// Returns the roles that the Deployment has no PVC for; fails if it has another one than the OSD.
pub(super) fn missing(found: &Value, pvcs: &PerPvc<String>) -> Result<Vec<Role>, NoShape> {
    let mut missing = Vec::new();
    for (role, pvc) in [(Role::Db, &pvcs.db), (Role::Wal, &pvcs.wal)] {
        let of_role = [copies(role), opens(role), copies_opened(role)];
        let names: Vec<_> =
            containers(found, "initContainers").filter_map(|container| field(container, "name")).collect();
        let first = of_role.into_iter().find(|name| names.contains(name));
        match (first, pvc) {
            (None, None) => {}
            (None, Some(_)) => missing.push(role),
            (Some(container), None) => return Err(NoShape::SecondPvc(container.to_owned())),
            (Some(_), Some(pvc)) if pvc_of_container(found, copies(role)) == Some(pvc.as_str()) => {}
            (Some(_), Some(pvc)) => return Err(NoShape::OtherPvc(pvc.clone())),
        }
    }
    Ok(missing)
}

/// Adds the volumes of a PVC to a pod spec, and the init container that copies its device node.
///
/// `is_locked`: whether the container of the data copies to [`Names::locked_path`].
pub(super) fn add(pod: &mut Value, names: &Names<'_>, role: Role, is_locked: bool) -> Result<(), NoShape> {
    let Some(pvc) = pvc_of(names, role) else { return Ok(()) };
    let of_data = init_container(pod, COPY)?;
    let path = |role: Role| if is_locked { names.locked_path(role) } else { names.path(role) };
    let device = format!("/{pvc}");
    let changes = [(names.device_path(&of_data), device.clone()), (path(Role::Block), path(role))];
    let mut copying = derived(&of_data, copies(role), &changes)?;
    set(&mut copying, &["volumeDevices"], json!([{"name": pvc, "devicePath": device}]));
    insert_after(pod, "initContainers", &of_earlier(role, copies), copying);
    let earlier = volumes(&of_data, names, before(role));
    let bridge = bridge(pod, names, pvc);
    let volume = json!({"name": pvc, "persistentVolumeClaim": {"claimName": pvc}});
    insert_after(pod, "volumes", &earlier, volume);
    if let Some(bridge) = bridge {
        insert_after(pod, "volumes", &[pvc], bridge);
    }
    Ok(())
}

/// Adds the init containers that open the encrypted device of a PVC and copy its node: those of the data with
/// other names.
///
/// The key is that of the data.
pub(super) fn add_opening(pod: &mut Value, names: &Names<'_>, role: Role) -> Result<(), NoShape> {
    let Some(pvc) = pvc_of(names, role) else { return Ok(()) };
    let mapping = (mapping_path(names.data(), Role::Block), mapping_path(pvc, role));
    let changes = [
        (names.locked_path(Role::Block), names.locked_path(role)),
        mapping.clone(),
        (mapping_name(names.data(), Role::Block), mapping_name(pvc, role)),
        (names.data().to_owned(), pvc.to_owned()),
    ];
    let open = derived(&init_container(pod, OPEN)?, opens(role), &changes)?;
    insert_after(pod, "initContainers", &of_earlier(role, opens), open);
    let changes = [mapping, (names.path(Role::Block), names.path(role))];
    let copying = derived(&init_container(pod, COPY_OPENED)?, copies_opened(role), &changes)?;
    insert_after(pod, "initContainers", &of_earlier(role, copies_opened), copying);
    Ok(())
}

/// Returns the names of the volumes of these roles, and of their bridges.
pub(super) fn volumes(copy_of_data: &Value, names: &Names<'_>, roles: &[Role]) -> Vec<String> {
    let bridge = text(copy_of_data, "/volumeMounts/0/name").unwrap_or(names.volume);
    let of_data = [names.volume.to_owned(), bridge.to_owned()];
    let others = roles.iter().filter(|role| **role != Role::Block).filter_map(|role| pvc_of(names, *role));
    of_data.into_iter().chain(others.flat_map(|pvc| [pvc.to_owned(), bridge_name(pvc)])).collect()
}

/// Returns a container with another name and other texts.
fn derived(container: &Value, name: &str, changes: &[(String, String)]) -> Result<Value, NoShape> {
    let mut derived = container.clone();
    for (text, with) in changes {
        replace(&mut derived, text, with)?;
    }
    set(&mut derived, &["name"], json!(name));
    Ok(derived)
}

/// Returns the bridge of another PVC: that of the data, with another name.
///
/// Rook adds one for each PVC, and mounts only that of the data. It is `None` if the data has none of Rook's.
fn bridge(pod: &Value, names: &Names<'_>, pvc: &str) -> Option<Value> {
    let list = pod.get("volumes").and_then(Value::as_array);
    let of_data = bridge_name(names.data());
    let mut bridge = list?.iter().find(|volume| field(volume, "name") == Some(of_data.as_str()))?.clone();
    set(&mut bridge, &["name"], json!(bridge_name(pvc)));
    if let Some(path) = text(&bridge, "/hostPath/path") {
        let path = format!("{}{pvc}", path.strip_suffix(names.data())?);
        set(&mut bridge, &["hostPath", "path"], json!(path));
    }
    Some(bridge)
}

fn bridge_name(pvc: &str) -> String {
    format!("{pvc}-bridge")
}

fn of_earlier(role: Role, name: fn(Role) -> &'static str) -> Vec<&'static str> {
    before(role).iter().map(|role| name(*role)).collect()
}

fn pvc_of<'a>(names: &Names<'a>, role: Role) -> Option<&'a str> {
    names.pvcs.others().find(|(of, _)| *of == role).map(|(_, pvc)| pvc.as_str())
}
