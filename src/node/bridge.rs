//! The bridge: the init container of an agent's pod that makes a device node for the block device of a PVC.
//!
//! Kubernetes gives a block device only to a container that is not privileged (containerd 1.6 omits it from a
//! privileged one), and the agent is privileged. A copy of the node would keep its group, which needs more
//! capabilities than MKNOD.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

use crate::node::disk::devices;
use crate::node::error::NodeError;

/// Makes the block node `to` for the device of the block node `from`, in place of an older node.
pub fn bridge(from: &Path, to: &Path) -> Result<(), NodeError> {
    let (major, minor) = devices::number_of(from).map_err(NodeError::Refused)?;
    match fs::remove_file(to) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(NodeError::io("remove", to)(error)),
    }
    mknodat(CWD, to, FileType::BlockDevice, Mode::RUSR | Mode::WUSR, makedev(major, minor))
        .map_err(NodeError::io("create the device node", to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bridge_refuses_no_block_device_and_keeps_the_older_node() {
        let root = tempfile::tempdir().unwrap();
        let (from, to) = (root.path().join("from"), root.path().join("to"));
        fs::write(&to, "older").unwrap();
        let why = bridge(&from, &to).unwrap_err();
        assert!(matches!(&why, NodeError::Refused(why) if why.contains("No such file")), "{why}");
        fs::write(&from, "").unwrap();
        for from in [from.as_path(), Path::new("/dev/null"), root.path()] {
            let why = bridge(from, &to).unwrap_err();
            assert_eq!(why.to_string(), format!("{} is not a block device", from.display()));
        }
        assert_eq!(fs::read_to_string(&to).unwrap(), "older");
    }
}
