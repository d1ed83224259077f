//! What the Deployment of an OSD on a PVC has in every Rook release, and what may be wrong with it.

use serde_json::Value;

use crate::k8s::osd::fields::{containers, field};

/// Init container that copies the device node of the PVC to the folder of the OSD.
pub(super) const COPY: &str = "blkdevmapper";
/// Init container that creates the files of the OSD from the label of its device.
pub(super) const ACTIVATE: &str = "activate";

/// Init container that opens an encrypted device, and prefix of those that open others of the OSD
/// (pkg/operator/ceph/cluster/osd/spec.go, v1.20.6).
pub(super) const OPEN: &str = "encryption-open";

/// A Deployment that cannot be changed to start a recreated OSD.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoShape {
    /// A container is missing.
    #[error("it has no container `{0}`, which Rook gives an OSD in raw mode on a PVC")]
    Container(&'static str),
    /// The OSD is on another PVC.
    #[error("its pods have no volume of PVC {0}")]
    OtherPvc(String),
    /// The database or the log of the OSD is on a PVC of its own.
    #[error("its init container `{0}` uses a second PVC, for a database or a log")]
    SecondPvc(String),
    /// The copying container works in another way.
    #[error("its init container `blkdevmapper` does not contain the path {0}")]
    Copy(String),
}

/// Returns the objects of a list below a value.
pub(super) fn list_mut<'a>(value: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> {
    value.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten()
}

/// Returns whether the pods of a Deployment open an encrypted device.
pub(super) fn is_opened(deployment: &Value) -> bool {
    containers(deployment, "initContainers")
        .filter_map(|container| field(container, "name"))
        .any(|name| name.starts_with(OPEN))
}
