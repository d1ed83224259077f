//! One agent for each OSD: `flock` on a file of the node, kept for the agent's whole life.

use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use rustix::io::{Errno, FdFlags, fcntl_setfd};

use crate::domain::osd::OsdId;
use crate::node::error::NodeError;

/// Lock of one OSD on this node.
///
/// Dropping it releases the lock, unless a child still runs.
#[derive(Debug)]
pub(crate) struct OsdLock {
    _file: File,
}

impl OsdLock {
    /// Takes the node's one lock for changes of volumes.
    ///
    /// LVM's own locks count within one pod only, and two OSDs may share a volume group.
    pub(crate) fn take_lvm(state: &Path) -> Result<Self, NodeError> {
        Self::take_named(state, "lvm.lock")
    }

    /// Takes the lock, or returns that another process has it; never waits.
    ///
    /// The descriptor is *not* closed on exec. The kernel keeps a flock until the last descriptor of that
    /// open file is closed. A ceph-volume that survives its killed agent therefore keeps the next agent out
    /// until it has ended. (It can survive if pods share the host's process ids, or if the agent is not its
    /// container's first process.) Otherwise the next agent would wipe a disk between ceph-volume's `osd new`
    /// and its mkfs. Commands of osd-migrate that inherit the descriptor end within their limits.
    ///
    /// `ceph-osd --mkfs` itself does not inherit the descriptor (Python closes descriptors) and moves to a
    /// session of its own. So it survives even the kill of ceph-volume's group. Its own exclusive open of the
    /// disk protects it from a wipe.
    pub(crate) fn take(state: &Path, osd: OsdId) -> Result<Self, NodeError> {
        Self::take_named(state, &format!("osd-{}.lock", osd.0))
    }

    fn take_named(state: &Path, name: &str) -> Result<Self, NodeError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(state)
            .map_err(NodeError::io("create folder", state))?;
        let path = state.join(name);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(NodeError::io("open", &path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(NodeError::Busy { path: path.display().to_string() }),
            Err(errno) => return Err(NodeError::io("lock", &path)(errno)),
        }
        fcntl_setfd(&file, FdFlags::empty()).map_err(NodeError::io("back-up open for children", &path))?;
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::tools::command::{QUICK, program_named, run};

    /// Returns whether the lock can be taken within about ten seconds.
    ///
    /// Other tests start commands in parallel. A command that was started while a lock was taken keeps the
    /// lock until it ends.
    async fn is_free_soon(state: &Path) -> bool {
        for _ in 0..100 {
            if OsdLock::take(state, OsdId(1)).is_ok() {
                return true;
            }
            run("sleep", &["0.1"], None, QUICK).await.unwrap();
        }
        false
    }

    #[tokio::test]
    async fn osd_lock_is_busy_for_the_same_osd_and_not_for_another() {
        let state = tempfile::tempdir().unwrap();
        let first = OsdLock::take(state.path(), OsdId(1)).unwrap();
        assert!(matches!(OsdLock::take(state.path(), OsdId(1)), Err(NodeError::Busy { .. })));
        assert!(OsdLock::take(state.path(), OsdId(2)).is_ok());
        drop(first);
        assert!(is_free_soon(state.path()).await);
    }

    #[tokio::test]
    async fn osd_lock_is_held_by_a_child_that_outlives_the_agent() {
        let state = tempfile::tempdir().unwrap();
        let lock = OsdLock::take(state.path(), OsdId(1)).unwrap();
        let mut child = program_named("sleep").arg("60").spawn().unwrap();
        drop(lock);
        run("sleep", &["2"], None, QUICK).await.unwrap();
        assert!(matches!(OsdLock::take(state.path(), OsdId(1)), Err(NodeError::Busy { .. })));
        child.kill().await.unwrap();
        assert!(is_free_soon(state.path()).await);
    }
}
