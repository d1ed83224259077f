//! Whether the node's folder for the issued fsids outlives a restart of the node.

use std::path::Path;

use rustix::fs::statfs;

use crate::node::error::NodeError;

/// File systems in memory, and one that may write to memory, by their number in `statfs`
/// (include/uapi/linux/magic.h, Linux 6.12).
const IN_MEMORY: [(u32, &str); 3] =
    [(0x0102_1994, "tmpfs"), (0x8584_58f6, "ramfs"), (0x794c_7630, "overlay")];

/// Returns the file system of a folder, if a restart of the node may lose it.
pub(crate) fn lost_on_restart(folder: &Path) -> Result<Option<&'static str>, NodeError> {
    let found = statfs(folder).map_err(NodeError::io("stat", folder))?;
    Ok(u32::try_from(found.f_type).ok().and_then(in_memory))
}

fn in_memory(number: u32) -> Option<&'static str> {
    IN_MEMORY.iter().find(|(of, _)| *of == number).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_system_in_memory_is_recognised_by_its_number() {
        // ext4, xfs, btrfs.
        for number in [0xef53, 0x5846_5342, 0x9123_683e] {
            assert_eq!(in_memory(number), None);
        }
        assert_eq!(lost_on_restart(Path::new("/dev/shm")).unwrap(), Some("tmpfs"));
        assert_eq!(lost_on_restart(Path::new("/proc")).unwrap(), None);
        assert!(lost_on_restart(Path::new("/nonexistent")).is_err());
    }
}
