//! The bridge: the init container of an agent's pod that makes device nodes for the block devices of PVCs.
//!
//! Kubernetes gives a block device only to a container that is not privileged (containerd 1.6 omits it from a
//! privileged one), and the agent is privileged. A copy of the node would keep its group, which needs more
//! capabilities than MKNOD.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

use crate::node::disk::devices;
use crate::node::error::NodeError;

/// Makes the second block node of each pair for the device of the first one, in place of an older node.
///
/// All devices are found before the first node is made.
pub fn bridge(paths: &[PathBuf]) -> Result<(), NodeError> {
    let (pairs, rest) = paths.as_chunks::<2>();
    if pairs.is_empty() || !rest.is_empty() {
        return Err(NodeError::Refused(format!("{} paths are not pairs of FROM and TO", paths.len())));
    }
    let mut nodes = Vec::new();
    for [from, to] in pairs {
        nodes.push((devices::number_of(from).map_err(NodeError::Refused)?, to));
    }
    nodes.into_iter().try_for_each(|(number, to)| make(number, to))
}

fn make((major, minor): (u32, u32), to: &Path) -> Result<(), NodeError> {
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
        let bridge = |from: &Path| bridge(&[from.to_owned(), to.clone()]);
        let why = bridge(&from).unwrap_err();
        assert!(matches!(&why, NodeError::Refused(why) if why.contains("No such file")), "{why}");
        fs::write(&from, "").unwrap();
        for from in [from.as_path(), Path::new("/dev/null"), root.path()] {
            let why = bridge(from).unwrap_err();
            assert_eq!(why.to_string(), format!("{} is not a block device", from.display()));
        }
        assert_eq!(fs::read_to_string(&to).unwrap(), "older");
    }

    #[test]
    fn bridge_without_a_pair_of_paths_is_refused() {
        for (count, said) in [(0, "0 paths"), (1, "1 paths"), (3, "3 paths")] {
            let paths = vec![PathBuf::from("/dev/null"); count];
            let why = bridge(&paths).unwrap_err().to_string();
            assert_eq!(why, format!("{said} are not pairs of FROM and TO"));
        }
    }
}
