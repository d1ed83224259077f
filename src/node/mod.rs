//! The node agent: the only part that touches disks. It runs once, in a privileged pod of the cluster's own Ceph image, does
//! one task for one OSD under that OSD's lock, and reports what the disk then carries.
//!
//! | module | what |
//! | --- | --- |
//! | `rebuild` | the tasks: inspect, rebuild, give back |
//! | `proof` | what may be done with a disk, decided purely |
//! | `find`, `devices`, `content` | which disk, and what is on it |
//! | `label`, `filestore`, `table`, `tombstone` | one reader each |
//! | `wipe` | the only writes to a disk |
//! | `ceph_volume`, `stand_in`, `claims`, `mons` | how a new OSD comes to be, and what is written down first |
//! | `lock`, `command`, `capability`, `redact`, `error` | the rest |

mod capability;
mod ceph_volume;
mod claims;
mod command;
mod content;
mod devices;
mod error;
mod filestore;
mod find;
mod label;
mod lock;
mod mons;
mod proof;
mod rebuild;
mod redact;
pub mod stand_in;
mod table;
mod tombstone;
mod wipe;

use std::fs::{self, File};
use std::future::Future;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use chrono::Utc;

pub use error::NodeError;

use crate::domain::inspection::{NodeReport, NodeRequest, NodeTask};
use crate::domain::osd::NodeName;
use lock::OsdLock;
use rebuild::Outcome;

/// The place an agent runs in. Paths are settings so that tests can have others.
#[derive(Debug, Clone)]
pub struct Host {
    /// Name of the Kubernetes node, from the pod's `spec.nodeName`.
    pub node: NodeName,
    /// The kernel's whole disks.
    pub sys_block: PathBuf,
    /// The host's device nodes.
    pub dev: PathBuf,
    /// Folder of the host that holds locks and claims; it must outlive pods.
    pub state: PathBuf,
    /// Written if it is not there.
    pub ceph_conf: PathBuf,
    /// Keyring of client.bootstrap-osd, where ceph-volume looks for it.
    pub keyring: PathBuf,
    /// For mount points and the stand-ins; may go with the pod.
    pub scratch: PathBuf,
    /// This binary, for the stand-ins.
    pub binary: PathBuf,
    /// PATH of the image.
    pub path: String,
}

impl Host {
    /// As the node Job's pod is made. `path` is the image's PATH.
    pub fn of_pod(node: NodeName, path: String) -> io::Result<Self> {
        Ok(Self {
            node,
            sys_block: "/sys/block".into(),
            dev: "/dev".into(),
            state: "/var/lib/osd-migrate".into(),
            ceph_conf: "/etc/ceph/ceph.conf".into(),
            keyring: "/var/lib/ceph/bootstrap-osd/ceph.keyring".into(),
            scratch: "/tmp".into(),
            binary: std::env::current_exe()?,
            path,
        })
    }
}

/// Does what is asked and reports. Never blocks the runtime; the caller may beat a heart beside it.
pub async fn agent(request: &NodeRequest, host: &Host) -> NodeReport {
    let began_at = Utc::now();
    let steps = Steps::default();
    // Held to the end of this function; see `lock` for what else may hold it.
    let locked = ready(request, host);
    let Outcome { inspection, error } = match &locked {
        Ok(_lock) => match request.task {
            NodeTask::Inspect => rebuild::inspect(request, host, &steps).await,
            NodeTask::Rebuild => rebuild::rebuild(request, host, &steps).await,
            NodeTask::GiveBack => rebuild::give_back(request, host, &steps).await,
        },
        Err(_) => Outcome { inspection: None, error: None },
    };
    let claims = claims::read(&claims::path(&host.state, request.osd, &request.record));
    let (claims, unread) =
        claims.map_or_else(|error| (Default::default(), Some(error)), |claims| (claims, None));
    let problem = locked.as_ref().err().map(|_| ()).is_some();
    let problem = if problem { locked.err() } else { error.or(unread) };
    NodeReport {
        record: request.record.clone(),
        attempt: request.attempt,
        osd: request.osd,
        task: request.task,
        began_at,
        ended_at: Utc::now(),
        steps: steps.into_tenths(),
        claims,
        inspection,
        problem: problem.map(NodeError::into_problem),
    }
}

fn ready(request: &NodeRequest, host: &Host) -> Result<OsdLock, NodeError> {
    if request.node != host.node {
        return Err(NodeError::Refused(format!("meant for node {}, runs on {}", request.node, host.node)));
    }
    let lock = OsdLock::take(&host.state, request.osd)?;
    fs::create_dir_all(&host.scratch).map_err(NodeError::io("create folder", &host.scratch))?;
    mons::configure(host, request)?;
    Ok(lock)
}

/// Copies the running binary to `<folder>/osd-migrate`, so that a pod of another image can run it: whole or not at all.
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

/// Wall time by step.
#[derive(Default)]
pub(crate) struct Steps(Mutex<Vec<(String, u32)>>);

impl Steps {
    pub(crate) async fn time<T>(&self, step: &str, work: impl Future<Output = T>) -> T {
        let since = Instant::now();
        let done = work.await;
        let tenths = u32::try_from(since.elapsed().as_millis() / 100).unwrap_or(u32::MAX);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((step.to_owned(), tenths));
        done
    }

    fn into_tenths(self) -> Vec<(String, u32)> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installed_binary_can_be_run_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let target = install(folder.path()).unwrap();
            assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o755);
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
