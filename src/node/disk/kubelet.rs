//! Block volumes as a kubelet maps them for pods: while a pod uses one, a loop device of the kubelet lies on
//! it.
//!
//! Such a loop device is another name for the disk below, and is never inspected. Source:
//! pkg/volume/util/volumepathhandler/volume_path_handler_linux.go, `AttachFileDevice`. The backing file is
//! `plugins/kubernetes.io/PLUGIN/volumeDevices/VOLUME/...` in the kubelet's folder:
//! pkg/volume/csi/csi_block.go, pkg/volume/local/local.go, `GetGlobalMapPath`; v1.34.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::node::error::NodeError;
use crate::node::host::Host;
use crate::node::tools::query::Query;

const FOLDER: &str = "/volumeDevices/";

/// Returns the PersistentVolume that a kubelet created a loop device for.
pub(crate) fn volume_of(sys: &Path) -> Option<String> {
    let file = fs::read_to_string(sys.join("loop/backing_file")).ok()?;
    let (_, rest) = file.split_once(FOLDER)?;
    // CSI has more folders there, each with one folder for every volume.
    let mut parts = rest.trim_end().split('/').skip_while(|part| matches!(*part, "staging" | "publish"));
    parts.next().map(str::to_owned)
}

/// Returns the names of the kubelet's loop devices, in their order as texts.
pub(crate) fn loops(host: &Host) -> Vec<String> {
    let entries = fs::read_dir(&host.sys_block).into_iter().flatten().filter_map(Result::ok);
    let of_kubelet = entries.filter(|entry| volume_of(&entry.path()).is_some());
    let mut names: Vec<_> = of_kubelet.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// PersistentVolumes that pods of this node use as devices.
///
/// The key is the number of the file system and the inode of the device node below.
#[derive(Debug, Default)]
pub(crate) struct Mapped(BTreeMap<(u32, u32, u64), String>);

impl Mapped {
    /// Reads the device below each loop device of a kubelet.
    pub(crate) async fn read(host: &Host) -> Result<Self, NodeError> {
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(&host.sys_block).into_iter().flatten().filter_map(Result::ok) {
            let Some(volume) = volume_of(&entry.path()) else { continue };
            let node = host.dev.join(entry.file_name());
            let answer = Query::LoopBacking(&node).ask_well().await?;
            let below = parsed(&answer.stdout).ok_or_else(|| NodeError::Unreadable {
                subject: answer.command,
                why: answer.stdout.trim().to_owned(),
            })?;
            found.insert(below, volume);
        }
        Ok(Self(found))
    }

    /// Returns the volume that a disk is, by its node.
    pub(crate) fn of(&self, node: &Path) -> Option<String> {
        let meta = fs::metadata(node).ok()?;
        let at = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()), meta.ino());
        self.0.get(&at).cloned()
    }
}

/// Parses `148662 0:5`, both padded with blanks.
fn parsed(line: &str) -> Option<(u32, u32, u64)> {
    let mut words = line.split_whitespace();
    let inode = words.next()?.parse().ok()?;
    let (major, minor) = words.next()?.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?, inode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::samples;

    fn backed_by(file: &str) -> Option<String> {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("loop")).unwrap();
        fs::write(root.path().join("loop/backing_file"), format!("{file}\n")).unwrap();
        volume_of(root.path())
    }

    #[test]
    fn loop_device_of_a_kubelet_names_its_volume() {
        let plugins = "/var/lib/kubelet/plugins/kubernetes.io";
        for (file, volume) in [
            (format!("{plugins}/local-volume/volumeDevices/pv1/1b2c"), Some("pv1")),
            (format!("{plugins}/csi/volumeDevices/pvc-7d/dev/1b2c"), Some("pvc-7d")),
            (format!("{plugins}/csi/volumeDevices/staging/pvc-7d/1b2c"), Some("pvc-7d")),
            ("/srv/disk.img".to_owned(), None),
        ] {
            assert_eq!(backed_by(&file).as_deref(), volume, "{file}");
        }
    }

    #[test]
    fn disk_below_a_kubelet_volume_is_found_by_its_device_node() {
        let root = tempfile::NamedTempFile::new().unwrap();
        let meta = root.as_file().metadata().unwrap();
        let (major, minor) = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
        // As losetup of util-linux 2.38 prints it.
        let at = parsed(&format!("{:>8} {major:>8}:{minor:<3}\n", meta.ino())).unwrap();
        let mapped = Mapped([(at, "pv1".to_owned())].into());
        assert_eq!(mapped.of(root.path()).as_deref(), Some("pv1"));
        assert_eq!(mapped.of(Path::new("/dev/null")), None);
        assert_eq!((parsed(""), parsed("x 0:5")), (None, None));
    }

    #[test]
    fn captured_loop_devices_lead_to_the_disks_of_volumes() {
        for node in ["h2", "u1"] {
            let text = samples::on_claims(&format!("{node}.loops.txt"));
            let (loops, disks) = text.split_once("$ stat").unwrap();
            let disks: Vec<&str> = disks.lines().skip(1).collect();
            // Each device has three commands, each with an answer of one line.
            let answers: Vec<&str> = loops.lines().skip(1).step_by(2).collect();
            assert!(!answers.is_empty());
            for device in answers.chunks(3) {
                let volume = backed_by(device[0]).unwrap();
                let at = parsed(device[1]).unwrap();
                let line = disks.iter().find(|line| line.ends_with(&format!("/by-id/{volume}"))).unwrap();
                assert_eq!(parsed(line), Some(at), "{volume}");
                assert_eq!(parsed(device[2]), None, "with --raw");
            }
        }
    }
}
