//! The file that carries a node's OSD if `TEST_ENVIRONMENT_OSD_STORE_ON_FILE` is set: a disk for tests. The
//! file lies in the agents' folder on the host and is sparse, with 10 GiB.
//!
//! An inspection reads the file itself. Only for the rebuild the file becomes a loop device, because
//! ceph-volume takes no file. That loop device is the only one that is ever detached here.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FileType, FlockOperation, Mode, fcntl_lock, flock, makedev, mknodat};
use rustix::io::Errno;

use crate::domain::osd::DeviceIdentity;
use crate::node::disk::devices::{self, Disk, NO_DEVICE};
use crate::node::disk::usage::is_held;
use crate::node::error::NodeError;
use crate::node::host::Host;
use crate::node::tools::command::{QUICK, blocking, run};
use crate::node::tools::query::Query;

/// Name of the file in the agents' folder.
const FILE: &str = "osd-on-file.img";
/// Name of the file in place of a kernel name.
const NAME: &str = "osd-on-file";
/// The kernel's major number of loop devices.
const LOOPS: u32 = 7;
/// Number of tries to find a new loop device: five seconds in total, within `QUICK`.
const TRIES: u32 = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(100);
/// Size of the file.
pub(crate) const BYTES: u64 = 10 << 30;

/// Returns the identity of the file, the same on every node.
fn identity() -> DeviceIdentity {
    DeviceIdentity {
        by_id: ["osd-migrate-file".to_owned()].into(),
        by_path: [].into(),
        serial: Some(format!("file:{FILE}")),
        wwn: None,
        size_bytes: BYTES,
    }
}

fn path(host: &Host) -> PathBuf {
    host.state.join(FILE)
}

/// Returns the file as a disk, whether it exists or not.
///
/// Refuses a file of another size.
pub(crate) fn as_disk(host: &Host) -> Result<Disk, NodeError> {
    let node = path(host);
    match std::fs::symlink_metadata(&node) {
        Ok(meta) if !meta.is_file() || meta.len() != BYTES => {
            return Err(NodeError::Refused(format!("{} is not a file of {BYTES} bytes", node.display())));
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(NodeError::io("inspect", &node)(error)),
    }
    Ok(disk(NAME.to_owned(), node, NO_DEVICE))
}

fn disk(name: String, node: PathBuf, number: (u32, u32)) -> Disk {
    Disk {
        name,
        node,
        number,
        identity: identity(),
        links: BTreeSet::new(),
        parent: None,
        rotational: true,
        read_only: false,
        holders: Vec::new(),
        partitions: Vec::new(),
    }
}

/// The file as a loop device, for this agent alone: the file's OSD does not run.
#[derive(Debug)]
pub(crate) struct Attached {
    pub(crate) disk: Disk,
    /// Lock on the file: an OSD that runs on the file itself locks the file, not the loop device.
    _file: File,
}

impl Attached {
    /// Creates the file if it does not exist, and attaches it as a loop device.
    ///
    /// A loop device that an agent left attached is taken over: two loop devices of one file would not keep
    /// each other's users out.
    pub(crate) async fn attach(host: &Host) -> Result<Self, NodeError> {
        let path = path(host);
        let file = make(&path)?;
        lock(&file, &path)?;
        as_disk(host)?;
        let node = match loops(&path).await?.as_slice() {
            [] => attach(&path).await?,
            [one] => one.clone(),
            several => {
                return Err(NodeError::Refused(format!(
                    "{} is attached {} times",
                    path.display(),
                    several.len()
                )));
            }
        };
        let name = node.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let number = shown(host.sys_block.join(&name), node.clone())
            .await?
            .map_err(|why| NodeError::Refused(format!("{}: {why}", path.display())))?;
        Ok(Self { disk: disk(name, node, number), _file: file })
    }
}

/// Detaches the loop devices of the file, of this agent and of former ones.
///
/// A loop device that is in use stays: detached, it would only be hidden from the next agent.
pub(crate) async fn detach(host: &Host) -> Result<(), NodeError> {
    for node in loops(&path(host)).await? {
        if !is_held(&node)? {
            run("losetup", &["-d".as_ref(), node.as_os_str()], None, QUICK).await?.good()?;
        }
    }
    Ok(())
}

/// Waits until the kernel's folder and the loop device's node agree.
///
/// If the node is itself a container, another program may have to create the device node first.
async fn shown(sys: PathBuf, node: PathBuf) -> Result<Result<(u32, u32), String>, NodeError> {
    blocking("inspect", node.display().to_string(), QUICK, move || Ok(shown_patiently(&sys, &node))).await
}

#[expect(clippy::disallowed_methods, reason = "on a thread that may wait")]
fn shown_patiently(sys: &Path, node: &Path) -> Result<(u32, u32), String> {
    for _ in 1..TRIES {
        if let Ok(number) = devices::same_device(sys, node) {
            return Ok(number);
        }
        std::thread::sleep(BETWEEN_TRIES);
    }
    devices::same_device(sys, node)
}

fn make(path: &Path) -> Result<File, NodeError> {
    match OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path) {
        Ok(file) => {
            file.set_len(BYTES).and_then(|()| file.sync_all()).map_err(NodeError::io("make", path))?;
            Ok(file)
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            OpenOptions::new().read(true).write(true).open(path).map_err(NodeError::io("open", path))
        }
        Err(error) => Err(NodeError::io("create", path)(error)),
    }
}

/// Locks the file as BlueStore locks what it opens.
fn lock(file: &File, path: &Path) -> Result<(), NodeError> {
    for lock in [
        flock(file, FlockOperation::NonBlockingLockExclusive),
        fcntl_lock(file, FlockOperation::NonBlockingLockExclusive),
    ] {
        match lock {
            Ok(()) => {}
            Err(Errno::ACCESS | Errno::AGAIN) => {
                return Err(NodeError::Refused(format!(
                    "{} is in use: its OSD may still be running",
                    path.display()
                )));
            }
            Err(errno) => return Err(NodeError::io("lock", path)(errno)),
        }
    }
    Ok(())
}

async fn loops(path: &Path) -> Result<Vec<PathBuf>, NodeError> {
    let answer = Query::Loops(path).ask_well().await?;
    Ok(answer.stdout.lines().map(str::trim).filter(|line| !line.is_empty()).map(PathBuf::from).collect())
}

async fn attach(path: &Path) -> Result<PathBuf, NodeError> {
    let args = ["--find".as_ref(), "--show".as_ref(), path.as_os_str()];
    let mut answer = run("losetup", &args, None, QUICK).await?;
    if !answer.status.success() && make_node().await? {
        answer = run("losetup", &args, None, QUICK).await?;
    }
    Ok(PathBuf::from(answer.good()?.stdout.trim()))
}

/// Creates the device node of the next unused loop device, if it does not exist.
///
/// If the node is itself a container, as in clusters for tests, nothing else creates nodes for new loop
/// devices.
async fn make_node() -> Result<bool, NodeError> {
    let answer = Query::FreeLoop.ask_well().await?;
    let node = Path::new(answer.stdout.trim());
    let name = node.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some(number) = name.strip_prefix("loop").and_then(|number| number.parse().ok()) else {
        return Ok(false);
    };
    if node.exists() {
        return Ok(false);
    }
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP;
    mknodat(CWD, node, FileType::BlockDevice, mode, makedev(LOOPS, number))
        .map_err(NodeError::io("create the device node", node))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "waits for the exec of another test's program")]
    fn file_disk_is_created_once_sparse_and_locked_as_by_an_osd() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(FILE);
        let first = make(&path).unwrap();
        lock(&first, &path).unwrap();
        let second = make(&path).unwrap();
        let meta = second.metadata().unwrap();
        assert_eq!(meta.len(), BYTES);
        assert!(std::os::unix::fs::MetadataExt::blocks(&meta) < 100);
        let refused = lock(&second, &path).unwrap_err();
        assert!(refused.to_string().contains("in use"), "{refused}");
        drop(first);
        // A program that another test starts at this moment has the descriptor until its exec.
        let is_freed = (0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            lock(&second, &path).is_ok()
        });
        assert!(is_freed, "{}", lock(&second, &path).unwrap_err());
    }
}
