//! This binary, copied into a folder that a pod of another image mounts.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::node::error::NodeError;

/// Copies the running binary to `<folder>/osd-migrate`, so that a pod of another image can run it.
///
/// The copy is complete or does not exist.
pub fn install(folder: &Path) -> Result<PathBuf, NodeError> {
    let target = folder.join("osd-migrate");
    let young = folder.join(".osd-migrate.new");
    let mut from = File::open("/proc/self/exe").map_err(NodeError::io("open", "/proc/self/exe"))?;
    let mut to = File::create(&young).map_err(NodeError::io("create", &young))?;
    io::copy(&mut from, &mut to).map_err(NodeError::io("write", &young))?;
    to.set_permissions(fs::Permissions::from_mode(0o755)).map_err(NodeError::io("chmod", &young))?;
    to.sync_all().map_err(NodeError::io("fsync", &young))?;
    drop(to); // a file that is open for writing can't be run
    fs::rename(&young, &target).map_err(NodeError::io("rename", &young))?;
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_binary_is_installed_idempotently_and_executable() {
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let target = install(folder.path()).unwrap();
            assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o755);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
