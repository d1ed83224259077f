//! Devices that LVM is not to see: the loop devices of the kubelet.
//!
//! Such a loop device is another name for the disk of a PersistentVolume (`disk::kubelet`). If LVM finds a
//! physical volume under two names, it activates no volume of it ("Cannot activate LVs in VG while PVs appear
//! on duplicate devices").

use std::sync::OnceLock;

use crate::node::disk::kubelet;
use crate::node::host::Host;

/// Setting of LVM that rejects the devices, if there are any.
static SETTING: OnceLock<Option<String>> = OnceLock::new();

/// Hides the loop devices of the kubelet from all commands of LVM that this process starts.
///
/// Pods that use the volume of an OSD exist before its agent does.
pub(crate) fn hide_loops(host: &Host) {
    SETTING.get_or_init(|| setting(&kubelet::loops(host)));
}

/// Returns the options for a command of LVM.
pub(super) fn options() -> Vec<&'static str> {
    SETTING.get().and_then(Option::as_deref).map_or_else(Vec::new, |setting| vec!["--config", setting])
}

fn setting(loops: &[String]) -> Option<String> {
    let rejected: Vec<_> = loops.iter().map(|name| format!("\"r|^/dev/{name}$|\"")).collect();
    (!rejected.is_empty()).then(|| format!("devices/global_filter=[{}]", rejected.join(", ")))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::node::samples::host;

    #[test]
    fn loop_devices_of_the_kubelet_are_hidden_from_lvm() {
        let root = tempfile::tempdir().unwrap();
        let host = host(root.path());
        assert_eq!(setting(&kubelet::loops(&host)), None);
        let plugins = "/var/lib/kubelet/plugins/kubernetes.io";
        for (name, file) in [
            ("loop3", format!("{plugins}/csi/volumeDevices/pvc-7d/dev/1b2c")),
            ("loop4", "/srv/disk.img".to_owned()),
            ("loop12", format!("{plugins}/local-volume/volumeDevices/pv1/1b2c")),
        ] {
            let folder = host.sys_block.join(name).join("loop");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("backing_file"), file).unwrap();
        }
        let expected = r#"devices/global_filter=["r|^/dev/loop12$|", "r|^/dev/loop3$|"]"#;
        assert_eq!(setting(&kubelet::loops(&host)).as_deref(), Some(expected));
    }
}
