//! The Deployment of a recreated OSD on a PVC: the found Deployment with the values of the new OSD, and with
//! the containers that its encryption requires. Pure.
//!
//! The found Deployment fits its Rook release, its device set and its PVC, so it is changed and not rendered.
//! Rook reads back the values and renders the rest from its device set.

use serde_json::{Value, json};

use crate::domain::act::Deploy;
use crate::domain::osd::pvc::{PerPvc, block_path};
use crate::k8s::osd::fields::{POD_SPEC, containers, env, field, osd_container, text, volumes};
use crate::k8s::osd::osd_object::{bare, set};
use crate::k8s::osd::pvc_shape::{
    ACTIVATE, COPY, Names, NoShape, all_mut, is_opened, list_mut, reads_from_kms,
};
use crate::k8s::osd::render_osd::{Frame, carried_annotations, pod_annotations};
use crate::k8s::osd::{pvc_encryption, pvc_from_lvm, pvc_parts};

/// Changes the found Deployment, so that it starts the recreated OSD.
///
/// Name, selector, placement and everything that is not named here stay as found.
pub(super) fn reshape(
    deploy: &Deploy,
    pvcs: &PerPvc<String>,
    found: &Value,
    frame: &Frame<'_>,
) -> Result<Value, NoShape> {
    let volume = volume_of(found, &pvcs.data)?;
    let names = Names { pvcs, volume, osd: deploy.osd, cluster: frame.cluster };
    let on_lvm = pvc_from_lvm::is_on_lvm(found).then(|| pvc_from_lvm::to_raw(found.clone(), &names));
    let on_lvm = on_lvm.transpose()?;
    let found = on_lvm.as_ref().unwrap_or(found);
    let missing = pvc_parts::missing(found, pvcs)?;
    for name in [COPY, ACTIVATE] {
        init_container(found, name).ok_or(NoShape::Container(name))?;
    }
    let mut new = bare(found.clone());
    set(&mut new, &["spec", "replicas"], json!(1));
    let annotations = carried_annotations(found, "/metadata/annotations");
    set(&mut new, &["metadata", "annotations"], Value::Object(annotations));
    let annotations = pod_annotations(found);
    set(&mut new, &["spec", "template", "metadata", "annotations"], Value::Object(annotations));
    set_image(&mut new, found, &frame.declaration.image);
    if let Some(pod) = new.pointer_mut(POD_SPEC) {
        let (was, is) = (is_opened(found), deploy.layout.encrypted);
        if is && reads_from_kms(found) {
            return Err(NoShape::KeyInKms);
        }
        if was && !is {
            pvc_encryption::decrypt(pod, &names)?;
        }
        for role in missing {
            pvc_parts::add(pod, &names, role, was && is)?;
            if was && is {
                pvc_parts::add_opening(pod, &names, role)?;
            }
        }
        if !was && is {
            pvc_encryption::encrypt(pod, &names)?;
        }
    }
    set_labels(&mut new, deploy);
    set_values(&mut new, deploy, &pvcs.data)?;
    Ok(new)
}

/// Returns the volume of the PVC.
fn volume_of<'a>(found: &'a Value, pvc: &str) -> Result<&'a str, NoShape> {
    volumes(found)
        .find(|volume| text(volume, "/persistentVolumeClaim/claimName") == Some(pvc))
        .and_then(|volume| field(volume, "name"))
        .ok_or_else(|| NoShape::OtherPvc(pvc.to_owned()))
}

fn init_container<'a>(deployment: &'a Value, name: &str) -> Option<&'a Value> {
    containers(deployment, "initContainers").find(|c| field(c, "name") == Some(name))
}

/// Replaces the image of the OSD by the declared one, with which the OSD was prepared: an older image might
/// not be able to start it.
fn set_image(new: &mut Value, found: &Value, declared: &str) {
    let Some(old) = osd_container(found).and_then(|c| field(c, "image")) else { return };
    if declared.is_empty() {
        return;
    }
    for container in all_mut(new) {
        if field(container, "image") == Some(old) {
            set(container, &["image"], json!(declared));
        }
        // Rook passes the image on to its own programs.
        for variable in list_mut(container, "env") {
            if field(variable, "name") == Some("CONTAINER_IMAGE") && field(variable, "value") == Some(old) {
                set(variable, &["value"], json!(declared));
            }
        }
    }
}

fn set_labels(new: &mut Value, deploy: &Deploy) {
    let is_encrypted = if deploy.layout.encrypted { "true" } else { "false" };
    for metadata in [&["metadata"][..], &["spec", "template", "metadata"]] {
        for (label, value) in [("encrypted", is_encrypted), ("osd-store", deploy.store.as_str())] {
            set(new, &[metadata, &["labels", label]].concat(), json!(value));
        }
    }
}

/// Sets the variables from which Rook reads which OSD this is, and where.
fn set_values(new: &mut Value, deploy: &Deploy, pvc: &str) -> Result<(), NoShape> {
    let block_path = block_path(pvc, deploy.layout.encrypted);
    let has_store = env(new, "ROOK_OSD_STORE_TYPE").is_some();
    let fsid = deploy.fsid.to_string();
    let pod = new.pointer_mut(POD_SPEC).ok_or(NoShape::Container("osd"))?;
    let osd = list_mut(pod, "containers").find(|c| field(c, "name") == Some("osd"));
    let osd = osd.ok_or(NoShape::Container("osd"))?;
    set_variable(osd, "ROOK_OSD_UUID", &fsid);
    set_variable(osd, "ROOK_BLOCK_PATH", &block_path);
    set_variable(osd, "ROOK_CV_MODE", "raw");
    if has_store {
        set_variable(osd, "ROOK_OSD_STORE_TYPE", &deploy.store);
    }
    // Rook reads the block path from either of two variables, and the last one wins.
    if let Some(variables) = osd.get_mut("env").and_then(Value::as_array_mut) {
        variables.retain(|variable| field(variable, "name") != Some("ROOK_LV_PATH"));
    }
    Ok(())
}

/// Sets a variable to a literal value: in its place if it exists, else at the end.
fn set_variable(container: &mut Value, name: &str, value: &str) {
    let variable = json!({"name": name, "value": value});
    if !container.get("env").is_some_and(Value::is_array) {
        set(container, &["env"], json!([]));
    }
    let Some(list) = container.get_mut("env").and_then(Value::as_array_mut) else { return };
    let at = list.iter().position(|v| field(v, "name") == Some(name)).unwrap_or(list.len());
    list.retain(|v| field(v, "name") != Some(name));
    list.insert(at, variable);
}

#[cfg(test)]
#[path = "osd_on_pvc_tests.rs"]
pub(super) mod tests;
