//! Location of an OSD's data according to its Deployment: a directory of the host, or a mounted device.

use serde_json::Value;

use crate::domain::osd::Mode;
use crate::k8s::osd::fields::{env, osd_container, volumes};

/// Returns ceph-volume's mode.
///
/// Rook before 1.4 had lvm only, with the volume in `ROOK_LV_PATH`.
pub(crate) fn mode(deployment: &Value) -> Option<Mode> {
    match env(deployment, "ROOK_CV_MODE") {
        Some("raw") => Some(Mode::Raw),
        Some("lvm") => Some(Mode::Lvm),
        Some(_) | None => env(deployment, "ROOK_LV_PATH").map(|_| Mode::Lvm),
    }
}

/// Returns whether the OSD's container mounts a device before it starts the OSD.
///
/// Rook 1.2's wrapper does that (`rook ceph osd filestore-device --source-path /dev/disk/by-partuuid/...`),
/// or a script that names a device.
pub(super) fn mounts_device(deployment: &Value) -> bool {
    let is_device = |word: &str| word == "--source-path" || word.contains("/dev/");
    words(deployment).iter().any(|line| line.split_whitespace().any(is_device))
}

/// Returns the host folder that `--osd-data` leads to, through the container's hostPath volumes.
pub(crate) fn data_dir(deployment: &Value) -> Option<String> {
    let words = words(deployment).join(" ");
    let mut words = words.split_whitespace();
    let path = words.find_map(|word| match word.strip_prefix("--osd-data")?.strip_prefix('=') {
        Some(path) => Some(Some(path.to_owned())),
        None => Some(None),
    })?;
    let path = path.or_else(|| words.next().map(str::to_owned))?;
    on_host(deployment, path.trim_matches(['"', '\'']))
}

/// Returns the path outside of the container; none if no host folder is mounted there.
fn on_host(deployment: &Value, path: &str) -> Option<String> {
    let mounts = osd_container(deployment)?.get("volumeMounts")?.as_array()?;
    let below = |mount: &Value| {
        let at = mount.get("mountPath")?.as_str()?.trim_end_matches('/').to_owned();
        let rest = path.strip_prefix(&at).filter(|rest| rest.is_empty() || rest.starts_with('/'))?;
        Some((at.len(), mount.get("name")?.as_str()?.to_owned(), sub_path(mount), rest.to_owned()))
    };
    let (_, volume, sub, rest) = mounts.iter().filter_map(below).max_by_key(|(length, ..)| *length)?;
    let volume =
        volumes(deployment).find(|found| found.get("name").and_then(Value::as_str) == Some(&volume))?;
    let host = volume.pointer("/hostPath/path")?.as_str()?.trim_end_matches('/');
    Some(format!("{host}{sub}{}", rest.trim_end_matches('/')))
}

fn sub_path(mount: &Value) -> String {
    let sub = mount.get("subPath").and_then(Value::as_str).unwrap_or_default();
    if sub.is_empty() { String::new() } else { format!("/{}", sub.trim_matches('/')) }
}

/// Returns command and arguments of the OSD's container.
fn words(deployment: &Value) -> Vec<&str> {
    let lists = osd_container(deployment).into_iter().flat_map(|container| {
        ["command", "args"].into_iter().filter_map(|key| container.get(key)?.as_array())
    });
    lists.flatten().filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(container: &Value, volumes: &Value) -> Value {
        json!({"spec": {"template": {"spec": {"containers": [container], "volumes": volumes}}}})
    }

    #[test]
    fn host_directory_of_osd_data_is_found_behind_its_mount() {
        let volumes = json!([{"name": "rook-data", "hostPath": {"path": "/var/lib/rook"}},
            {"name": "dir", "hostPath": {"path": "/srv/storage/"}}, {"name": "empty", "emptyDir": {}}]);
        let mounts = json!([{"name": "rook-data", "mountPath": "/var/lib/rook"}, {"name": "dir", "mountPath": "/srv/storage"},
            {"name": "dir", "mountPath": "/mnt/", "subPath": "a"}, {"name": "empty", "mountPath": "/e"}]);
        for (args, found) in [
            (json!(["--osd-data", "/srv/storage/osd3", "--osd-uuid", "x"]), Some("/srv/storage/osd3")),
            (json!(["--osd-data=/var/lib/rook/osd3/"]), Some("/var/lib/rook/osd3")),
            (json!(["--osd-data", "/mnt/osd3"]), Some("/srv/storage/a/osd3")),
            (json!(["--osd-data", "/srv/storage-2/osd3"]), None),
            (json!(["--osd-data", "/e/osd3"]), None),
            (json!(["--foreground"]), None),
        ] {
            let deployment = deployment(&json!({"args": args, "volumeMounts": mounts}), &volumes);
            assert_eq!(data_dir(&deployment).as_deref(), found, "{args}");
            assert!(!mounts_device(&deployment));
        }
    }

    #[test]
    fn daemon_that_mounts_a_device_is_recognised() {
        for container in [
            json!({"command": ["rook"], "args": ["ceph", "osd", "filestore-device", "--source-path", "/dev/disk/by-partuuid/x"]}),
            json!({"command": ["bash", "-c", "mount /dev/sdb1 /data && exec ceph-osd"]}),
        ] {
            assert!(mounts_device(&deployment(&container, &json!([]))));
        }
    }

    #[test]
    fn osd_mode_is_read_from_old_and_new_deployments() {
        let with = |env: &Value| mode(&deployment(&json!({"env": env}), &json!([])));
        assert_eq!(with(&json!([{"name": "ROOK_CV_MODE", "value": "raw"}])), Some(Mode::Raw));
        assert_eq!(with(&json!([{"name": "ROOK_CV_MODE", "value": "lvm"}])), Some(Mode::Lvm));
        assert_eq!(with(&json!([{"name": "ROOK_LV_PATH", "value": "/dev/a/b"}])), Some(Mode::Lvm));
        assert_eq!(with(&json!([])), None);
    }
}
