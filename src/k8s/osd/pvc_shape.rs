//! What the Deployment of an OSD on a PVC has in every Rook release, and what may be wrong with it.

use serde_json::{Map, Value};

use crate::domain::osd::pvc::PerPvc;
use crate::domain::osd::{ClusterFsid, OsdId, Role};
use crate::k8s::osd::fields::{POD_SPEC, containers, field};

/// Init container that copies the device node of the data's PVC to the folder of the OSD.
pub(super) const COPY: &str = copies(Role::Block);
/// Init container that creates the files of the OSD from the label of its device.
pub(super) const ACTIVATE: &str = "activate";
/// Init container that opens the encrypted device of the data, and prefix of those that open the others
/// (pkg/operator/ceph/cluster/osd/spec.go, v1.20.6).
pub(super) const OPEN: &str = opens(Role::Block);
/// Init container that copies the device node of the open device of the data.
pub(super) const COPY_OPENED: &str = copies_opened(Role::Block);

/// Init container that reads the key of the OSD from a key management service (the same file).
const READ_FROM_KMS: &str = "encryption-kms-get-kek";

/// Returns the init container that copies the device node of a PVC to the folder of the OSD (the same file).
pub(super) const fn copies(role: Role) -> &'static str {
    match role {
        Role::Db => "blkdevmapper-metadata",
        Role::Wal => "blkdevmapper-wal",
        Role::Block | Role::Data | Role::Journal => "blkdevmapper",
    }
}

/// Returns the init container that opens the encrypted device of a PVC (the same file).
pub(super) const fn opens(role: Role) -> &'static str {
    match role {
        Role::Db => "encryption-open-metadata",
        Role::Wal => "encryption-open-wal",
        Role::Block | Role::Data | Role::Journal => "encryption-open",
    }
}

/// Returns the init container that copies the device node of the open device (the same file).
pub(super) const fn copies_opened(role: Role) -> &'static str {
    match role {
        Role::Db => "blkdevmapper-metadata-encryption",
        Role::Wal => "blkdevmapper-wal-encryption",
        Role::Block | Role::Data | Role::Journal => "blkdevmapper-encryption",
    }
}

/// Returns the roles whose containers and volumes come before those of a role.
pub(super) const fn before(role: Role) -> &'static [Role] {
    match role {
        Role::Db => &[Role::Block],
        Role::Wal => &[Role::Block, Role::Db],
        Role::Block | Role::Data | Role::Journal => &[],
    }
}

/// A Deployment that cannot be changed to start a recreated OSD.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoShape {
    /// A container is missing.
    #[error("it has no container `{0}`, which Rook gives an OSD in raw mode on a PVC")]
    Container(&'static str),
    /// The OSD, its database or its log is on another PVC.
    #[error("its init containers do not use PVC {0}")]
    OtherPvc(String),
    /// The Deployment has a container for a database or a log, and none is recorded for the OSD.
    #[error("its init container `{0}` is for a database or a log on a PVC that is not recorded for the OSD")]
    SecondPvc(String),
    /// A new OSD has other PVCs than the OSD from whose Deployment its own is made.
    #[error("its OSD does not have the same PVCs as the new OSD: for data, database and log")]
    OtherParts,
    /// Names of PVCs can't be told from other text.
    #[error("the names of its PVCs do not begin with the name of its device set")]
    PvcName,
    /// The pods read their key from a key management service, and the new OSD would have another key.
    #[error("its init container `{READ_FROM_KMS}` reads another key than that of the new OSD")]
    KeyInKms,
    /// The pods may run on several nodes.
    #[error("its pods are not pinned to a node")]
    Portable,
    /// A container works in another way.
    #[error("its init container `{container}` does not contain `{text}`")]
    Text { container: String, text: String },
}

/// Returns whether the pods of a Deployment read their key from a key management service.
pub(super) fn reads_from_kms(deployment: &Value) -> bool {
    containers(deployment, "initContainers").any(|c| field(c, "name") == Some(READ_FROM_KMS))
}

/// Names of an OSD on PVCs.
pub(super) struct Names<'a> {
    pub(super) pvcs: &'a PerPvc<String>,
    /// Volume of the data's PVC.
    pub(super) volume: &'a str,
    pub(super) osd: OsdId,
    pub(super) cluster: ClusterFsid,
}

impl Names<'_> {
    /// Returns the PVC of the data.
    pub(super) fn data(&self) -> &str {
        &self.pvcs.data
    }

    /// Returns the path at which the OSD expects a device.
    pub(super) fn path(&self, role: Role) -> String {
        let file = match role {
            Role::Db => "block.db",
            Role::Wal => "block.wal",
            Role::Block | Role::Data | Role::Journal => "block",
        };
        format!("/var/lib/ceph/osd/ceph-{}/{file}", self.osd.0)
    }

    /// Returns the path of the device of a PVC, if the open device is at [`Names::path`].
    pub(super) fn locked_path(&self, role: Role) -> String {
        format!("{}-tmp", self.path(role))
    }

    /// Returns the path at which a container has the device of the data's PVC: Rook's is `/PVC`.
    pub(super) fn device_path(&self, container: &Value) -> String {
        let devices = container.get("volumeDevices").and_then(Value::as_array);
        let mut of_pvc = devices.into_iter().flatten().filter(|d| field(d, "name") == Some(self.volume));
        let path = of_pvc.next().and_then(|device| field(device, "devicePath"));
        path.map_or_else(|| format!("/{}", self.data()), str::to_owned)
    }
}

/// Returns all containers of a Deployment.
pub(super) fn all_mut(deployment: &mut Value) -> impl Iterator<Item = &mut Value> {
    let pod = deployment.pointer_mut(POD_SPEC).and_then(Value::as_object_mut);
    let lists = pod.into_iter().flat_map(Map::iter_mut);
    let of_containers = lists.filter(|(key, _)| matches!(key.as_str(), "containers" | "initContainers"));
    of_containers.filter_map(|(_, list)| list.as_array_mut()).flatten()
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

/// Returns a copy of an init container of a pod spec.
pub(super) fn init_container(pod: &Value, name: &'static str) -> Result<Value, NoShape> {
    let list = pod.get("initContainers").and_then(Value::as_array);
    let found = list.into_iter().flatten().find(|container| field(container, "name") == Some(name));
    found.cloned().ok_or(NoShape::Container(name))
}

/// Inserts a named object behind the last of several ones, or at the end of the list; one of the same name is
/// replaced.
pub(super) fn insert_after<S: AsRef<str>>(value: &mut Value, list: &str, names: &[S], new: Value) {
    let Some(list) = value.get_mut(list).and_then(Value::as_array_mut) else { return };
    list.retain(|item| field(item, "name") != field(&new, "name"));
    let is_named = |item: &Value| names.iter().any(|name| field(item, "name") == Some(name.as_ref()));
    let at = list.iter().rposition(is_named);
    list.insert(at.map_or(list.len(), |at| at + 1), new);
}

/// Replaces a text in the command and the variables of an init container.
///
/// Rook writes paths and names into the text of a script (v1.20.6 and older), or passes them as arguments and
/// variables.
pub(super) fn replace(container: &mut Value, text: &str, with: &str) -> Result<(), NoShape> {
    let mut is_replaced = false;
    let mut change = |word: &mut Value| {
        if let Some(new) = word.as_str().and_then(|word| replaced(word, text, with)) {
            *word = Value::String(new);
            is_replaced = true;
        }
    };
    for list in ["command", "args"] {
        list_mut(container, list).for_each(&mut change);
    }
    list_mut(container, "env").filter_map(|variable| variable.get_mut("value")).for_each(change);
    if is_replaced {
        return Ok(());
    }
    let container = field(container, "name").unwrap_or_default().to_owned();
    Err(NoShape::Text { container, text: text.to_owned() })
}

/// Returns a text with a path or a name replaced, except if it is a part of a longer one; `None` if the text
/// does not contain it.
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
