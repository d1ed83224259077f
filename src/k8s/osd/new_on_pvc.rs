//! The Deployment of a new OSD on PVCs: that of another OSD of the same device set, with the names of the new
//! one. Pure.
//!
//! The Deployments of one set in one Rook release differ only in ids, fsid, names of PVCs, node, and place in
//! CRUSH. Rook reads back the values of the new OSD, and renders the rest from its device set.

use serde_json::{Value, json};

use crate::domain::act::Deploy;
use crate::domain::osd::OsdId;
use crate::domain::osd::pvc::PerPvc;
use crate::k8s::osd::daemon_pvcs::on_pvcs;
use crate::k8s::osd::fields::{POD_SPEC, field, label, text};
use crate::k8s::osd::osd_object::{bare, set};
use crate::k8s::osd::osd_on_pvc::reshape;
use crate::k8s::osd::pvc_shape::{NoShape, list_mut};
use crate::k8s::osd::render_osd::{Frame, Osd};
use crate::k8s::osd::{daemon, rename::Renames};
use crate::k8s::rook::ceph_cluster::FENCE;

/// Prefix of the annotations with which a person orders something of Rook for one OSD, such as its
/// replacement (`osd.rook.io/replace`, Rook's main branch after v1.20).
const ORDERS: &str = "osd.rook.io/";

/// Node label that pins the pods of an OSD that is not portable.
const HOSTNAME: &str = "kubernetes.io/hostname";
/// Volume with the settings for Ceph, and prefix of the ConfigMaps of single nodes
/// (pkg/operator/k8sutil/volume.go, `ConfigOverrideName`, v1.20.6).
const CONFIG_OVERRIDE: &str = "rook-config-override";
/// Labels that contain the id of the OSD (pkg/operator/ceph/controller/spec.go, `CephDaemonAppLabels`, and
/// pkg/operator/ceph/cluster/osd/labels.go, v1.20.6).
const ID_LABELS: [&str; 4] = ["app.kubernetes.io/instance", "ceph-osd-id", "ceph_daemon_id", "osd"];

/// Returns the Deployment of a new OSD, made from that of another OSD of its device set.
pub(super) fn made_from(
    source: &Value,
    deploy: &Deploy,
    pvcs: &PerPvc<String>,
    frame: &Frame<'_>,
) -> Result<Value, NoShape> {
    let of_source = Source::read(source, pvcs)?;
    let mut new = bare(source.clone());
    of_source.renames(deploy, pvcs).apply(&mut new);
    let osd = Osd { deploy, old: source, frame };
    set_identity(&mut new, &osd);
    set_node(&mut new, &of_source, &osd)?;
    reshape(deploy, pvcs, &new, frame)
}

/// Names of the OSD of the source.
struct Source<'a> {
    osd: OsdId,
    fsid: String,
    pvcs: PerPvc<String>,
    /// Node that its pods are pinned to.
    hostname: &'a str,
}

impl<'a> Source<'a> {
    /// Reads the source, and checks that it has the PVCs of the new OSD and stays on its node.
    fn read(source: &'a Value, pvcs: &PerPvc<String>) -> Result<Self, NoShape> {
        let parsed = daemon::parse(source).map_err(|_| NoShape::Container("osd"))?;
        let fsid = parsed.daemon.fsid.ok_or(NoShape::Container("osd"))?.to_string();
        let on = on_pvcs(source).unwrap_or_default();
        let data = on.data.ok_or(NoShape::Container("blkdevmapper"))?;
        let found = PerPvc { data, db: on.db, wal: on.wal };
        if (found.db.is_some(), found.wal.is_some()) != (pvcs.db.is_some(), pvcs.wal.is_some()) {
            return Err(NoShape::OtherParts);
        }
        // Rook's names of PVCs have no dots (`deviceSetPVCID`), the label has the set's own name.
        let set = on.set.unwrap_or_default().replace('.', "-");
        if set.is_empty() || found.iter().any(|(_, pvc)| !pvc.starts_with(&format!("{set}-"))) {
            return Err(NoShape::PvcName);
        }
        let hostname =
            source.pointer(POD_SPEC).and_then(|pod| pod.get("nodeSelector")?.get(HOSTNAME)?.as_str());
        let is_portable = label(source, "portable") == Some("true");
        let hostname = hostname.filter(|_| !is_portable).ok_or(NoShape::Portable)?;
        Ok(Self { osd: parsed.osd, fsid, pvcs: found, hostname })
    }

    fn renames(&self, deploy: &Deploy, pvcs: &PerPvc<String>) -> Renames {
        let of = |from: &Option<String>, to: &Option<String>| from.clone().zip(to.clone());
        let data = Some((self.pvcs.data.clone(), pvcs.data.clone()));
        let names = [data, of(&self.pvcs.db, &pvcs.db), of(&self.pvcs.wal, &pvcs.wal)];
        let fsid = (self.fsid.clone(), deploy.fsid.to_string());
        Renames::new(names.into_iter().flatten().chain([fsid]).collect(), self.osd, deploy.osd)
    }
}

/// Sets name, selector and labels of the new OSD.
fn set_identity(new: &mut Value, osd: &Osd<'_>) {
    let (id, location) = (osd.id(), &osd.deploy.crush.location);
    set(new, &["metadata", "name"], json!(format!("rook-ceph-osd-{id}")));
    set(new, &["spec", "selector", "matchLabels", "ceph-osd-id"], json!(id));
    for metadata in [&["metadata"][..], &["spec", "template", "metadata"]] {
        let pointer = format!("/{}/labels", metadata.join("/"));
        let Some(labels) = new.pointer_mut(&pointer).and_then(Value::as_object_mut) else { continue };
        // A place that is that of the other OSD must not stay, and neither must what was ordered for it.
        labels.retain(|key, _| !key.starts_with("topology-location-") && key != FENCE);
        for key in ID_LABELS.iter().filter(|key| labels.contains_key(**key)).collect::<Vec<_>>() {
            labels.insert((**key).to_owned(), json!(id));
        }
        labels.insert("failure-domain".to_owned(), json!(osd.frame.hostname));
        labels.extend(location.iter().map(|(kind, name)| (format!("topology-location-{kind}"), json!(name))));
        if let Some(class) = &osd.deploy.crush.device_class {
            labels.insert("device-class".to_owned(), json!(class));
        }
        let pointer = format!("/{}/annotations", metadata.join("/"));
        if let Some(annotations) = new.pointer_mut(&pointer).and_then(Value::as_object_mut) {
            annotations.retain(|key, _| !key.starts_with(ORDERS));
        }
    }
}

/// Pins the pods to the node of the new OSD, and sets its place in CRUSH.
fn set_node(new: &mut Value, source: &Source<'_>, osd: &Osd<'_>) -> Result<(), NoShape> {
    let hostname = osd.frame.hostname;
    set(new, &["spec", "template", "spec", "nodeSelector", HOSTNAME], json!(hostname));
    let pod = new.pointer_mut(POD_SPEC).ok_or(NoShape::Container("osd"))?;
    let mut is_placed = false;
    for list in ["initContainers", "containers"] {
        for container in list_mut(pod, list) {
            for word in list_mut(container, "args") {
                let is_location = word.as_str().is_some_and(|word| word.starts_with("--crush-location="));
                if is_location {
                    *word = json!(format!("--crush-location={}", osd.crush_location()));
                    is_placed = true;
                }
            }
            for variable in list_mut(container, "env") {
                let value = match field(variable, "name") {
                    Some("ROOK_NODE_NAME") => Some(hostname),
                    Some("ROOK_CRUSHMAP_HOSTNAME") if field(variable, "value").is_some() => {
                        osd.deploy.crush.host().map(String::as_str)
                    }
                    Some("ROOK_OSD_DEVICE_CLASS" | "ROOK_OSD_CRUSH_DEVICE_CLASS") => {
                        osd.deploy.crush.device_class.as_deref()
                    }
                    Some(_) | None => None,
                };
                if let Some(value) = value {
                    set(variable, &["value"], json!(value));
                }
            }
        }
    }
    if !is_placed {
        return Err(NoShape::Text { container: "osd".to_owned(), text: "--crush-location=".to_owned() });
    }
    if hostname != source.hostname {
        // The ConfigMap of the other node. Rook names that of this node when it adopts the OSD.
        let of_node = format!("{CONFIG_OVERRIDE}-{}", source.hostname);
        for volume in list_mut(pod, "volumes") {
            let Some(projected) = volume.get_mut("projected") else { continue };
            for from in list_mut(projected, "sources") {
                if text(from, "/configMap/name") == Some(of_node.as_str()) {
                    set(from, &["configMap", "name"], json!(CONFIG_OVERRIDE));
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "new_on_pvc_tests.rs"]
pub(super) mod tests;
