//! The node agent: the only part of osd-migrate that touches disks. The agent runs once, in a privileged pod
//! with the cluster's own Ceph image. It does one task for one OSD under that OSD's lock, and reports what
//! the disk then carries. For an inventory it only reads all disks.
//!
//! | module | content |
//! | --- | --- |
//! | `inventory` | all disks of a node and the OSDs on them |
//! | `rebuild`, `remake` | the tasks: inspect, rebuild, restore the slot, clear |
//! | `proof` | what may be done with a disk, decided purely |
//! | `find`, `devices`, `parts`, `links`, `usage`, `kubelet`, `file_disk` | the disk, identity and users |
//! | `content`, `marks`, `label`, `table`, `tombstone` | what is on a disk, one reader each |
//! | `legacy` | OSDs on partitions, with parts on other devices, in directories |
//! | `wipe` | the only writes to a disk, except those of LVM |
//! | `volumes` | OSDs on logical volumes: created, found again, removed |
//! | `ceph_volume`, `shim`, `issued`, `mons` | how a new OSD is created, and what is saved before that |
//! | `query`, `command` | programs: the list of those that read, and how any is run |
//! | `lock`, `attempts` | one agent for each OSD, and the sequence of agents |
//! | `capability`, `redact`, `error` | the rest |

mod attempts;
mod capability;
mod ceph_volume;
mod command;
mod content;
mod devices;
mod error;
mod file_disk;
mod find;
mod inventory;
mod issued;
mod kubelet;
mod label;
mod legacy;
mod links;
mod lock;
mod marks;
mod mons;
mod parts;
mod proof;
mod query;
mod rebuild;
mod redact;
mod remake;
#[cfg(test)]
mod samples;
pub mod shim;
mod table;
mod tombstone;
mod usage;
mod volumes;
mod wipe;

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::future::Future;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use chrono::{DateTime, Utc};

pub(crate) use content::DiskFinding;
pub use error::NodeError;
pub use inventory::inventory;
pub(crate) use proof::{
    Verdict, candidates, misplaced_is_purged, old_is_proven, same_device, same_disk, unless_unreadable,
    verdict,
};

use crate::domain::inspection::{NodeReport, NodeRequest, NodeTask};
use crate::domain::osd::NodeName;
use lock::OsdLock;
use rebuild::Outcome;

/// Mount point in the agent's pod of the folder that contains an OSD's directory.
pub const PARENT: &str = "/mnt/osd-migrate-directory";

/// Mount point in the agent's pod of Rook's `dataDirHostPath` during a rebuild.
pub const ROOK: &str = "/mnt/osd-migrate-rook";

/// Environment that an agent runs in. Paths are settings so that tests can use others.
#[derive(Debug, Clone)]
pub struct Host {
    /// Name of the Kubernetes node, from the pod's `spec.nodeName`.
    pub node: NodeName,
    /// The kernel's whole disks.
    pub sys_block: PathBuf,
    /// The host's device nodes.
    pub dev: PathBuf,
    /// The kernel's view of processes: their mounts.
    pub proc: PathBuf,
    /// The kernel's view of mounted file systems.
    pub sys_fs: PathBuf,
    /// Folder of the host for locks and issued fsids; it must outlive pods.
    pub state: PathBuf,
    /// Configuration file of Ceph; written if it does not exist.
    pub ceph_conf: PathBuf,
    /// Keyring of client.bootstrap-osd, at the path that ceph-volume reads.
    pub keyring: PathBuf,
    /// Mount point of the host's folder that contains the directory of the request, if there is one.
    pub parent: PathBuf,
    /// Mount point of Rook's `dataDirHostPath`.
    pub rook: PathBuf,
    /// Namespace of the cluster: the name of the cluster's folder in `rook`.
    pub namespace: String,
    /// Folder for mount points and the shims; it may be deleted with the pod.
    pub scratch: PathBuf,
    /// Path of this binary, for the shims.
    pub binary: PathBuf,
    /// PATH of the image.
    pub path: String,
}

impl Host {
    /// Returns the environment of the node Job's pod. `path` is the image's PATH.
    pub fn of_pod(node: NodeName, namespace: String, path: String) -> io::Result<Self> {
        Ok(Self {
            node,
            sys_block: "/sys/block".into(),
            dev: "/dev".into(),
            proc: "/proc".into(),
            sys_fs: "/sys/fs".into(),
            state: "/var/lib/osd-migrate".into(),
            ceph_conf: "/etc/ceph/ceph.conf".into(),
            keyring: "/var/lib/ceph/bootstrap-osd/ceph.keyring".into(),
            parent: PARENT.into(),
            rook: ROOK.into(),
            namespace,
            scratch: "/tmp".into(),
            binary: std::env::current_exe()?,
            path,
        })
    }
}

/// Does the requested task and reports.
///
/// Never blocks the runtime; the caller may run a heartbeat in parallel.
pub async fn agent(request: &NodeRequest, host: &Host) -> NodeReport {
    let began_at = now();
    let steps = Steps::default();
    // The lock stays locked to the end of this function; see `lock` for what else may keep it locked.
    let (_lock, outcome) = match ready(request, host) {
        Ok(lock) => {
            let outcome = match request.task {
                NodeTask::Inspect => rebuild::inspect(request, host, &steps).await,
                NodeTask::Rebuild => rebuild::rebuild(request, host, &steps).await,
                NodeTask::RestoreSlot => rebuild::restore_slot(request, host, &steps).await,
                NodeTask::Clear => rebuild::clear(request, host, &steps).await,
            };
            (Some(lock), outcome)
        }
        Err(error) => (None, Outcome::failed(error)),
    };
    let (issued, unread) = match issued::read(&issued::path(&host.state, request.osd, &request.record)) {
        Ok(issued) => (issued, None),
        Err(error) => (BTreeSet::new(), Some(error)),
    };
    NodeReport {
        record: request.record.clone(),
        attempt: request.attempt,
        osd: request.osd,
        task: request.task,
        began_at,
        ended_at: now(),
        steps: steps.into_tenths(),
        issued,
        inspection: outcome.inspection,
        left: outcome.left,
        problem: outcome.error.or(unread).map(NodeError::into_problem),
    }
}

fn ready(request: &NodeRequest, host: &Host) -> Result<OsdLock, NodeError> {
    if request.node != host.node {
        return Err(NodeError::Refused(format!(
            "the request is for node {}, but the agent runs on node {}",
            request.node, host.node
        )));
    }
    let lock = OsdLock::take(&host.state, request.osd)?;
    attempts::check_in(&host.state, request.osd, &request.record, request.attempt)?;
    fs::create_dir_all(&host.scratch).map_err(NodeError::io("create folder", &host.scratch))?;
    mons::configure(host, request)?;
    Ok(lock)
}

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

#[expect(clippy::disallowed_methods, reason = "the agent's one look at the wall clock: its report says when")]
fn now() -> DateTime<Utc> {
    Utc::now()
}

/// Wall time of each step.
#[derive(Default)]
pub(crate) struct Steps(Mutex<Vec<(String, u32)>>);

impl Steps {
    #[expect(clippy::disallowed_methods, reason = "durations for the report; nothing is decided by them")]
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
pub(crate) mod tests {
    use super::*;
    use crate::domain::inspection::{NodeProblem, RecordId};
    use crate::domain::osd::{Layout, Mode, ObjectStore, OsdId};

    pub(crate) fn host(root: &Path) -> Host {
        Host {
            node: NodeName("n1".into()),
            sys_block: root.join("sys"),
            dev: root.join("dev"),
            proc: root.join("proc"),
            sys_fs: root.join("sys_fs"),
            state: root.join("state"),
            ceph_conf: root.join("etc/ceph.conf"),
            keyring: root.join("keyring"),
            parent: root.join("parent"),
            rook: root.join("rook"),
            namespace: "rook-ceph".into(),
            scratch: root.join("tmp"),
            binary: "/proc/self/exe".into(),
            path: String::new(),
        }
    }

    pub(crate) fn request(node: &str) -> NodeRequest {
        NodeRequest {
            record: RecordId("r".into()),
            attempt: 2,
            task: NodeTask::Rebuild,
            node: NodeName(node.into()),
            cluster: "5f382147-dc61-408c-ad68-8e6a2e37590b".parse().unwrap(),
            osd: OsdId(1),
            old: "55ebe299-c0ce-4341-960a-ddfd22d5b5bf".parse().unwrap(),
            mon_host: "[v2:10.0.0.1:3300,v1:10.0.0.1:6789]".into(),
            evidence: None,
            target: Layout { store: ObjectStore::bluestore(), mode: Mode::Raw, encrypted: false },
            device_class: None,
            on_file: false,
            db: None,
            directory: None,
        }
    }

    #[tokio::test]
    async fn an_agent_on_another_node_leaves_nothing_behind() {
        let root = tempfile::tempdir().unwrap();
        let report = agent(&request("n2"), &host(root.path())).await;
        assert!(matches!(report.problem, Some(NodeProblem::Refused(why)) if why.contains("n2")));
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_second_agent_is_busy_and_tells_the_claims_all_the_same() {
        let root = tempfile::tempdir().unwrap();
        let (host, request) = (host(root.path()), request("n1"));
        let _lock = OsdLock::take(&host.state, request.osd).unwrap();
        issued::add(&issued::path(&host.state, request.osd, &request.record), request.old).unwrap();
        let report = agent(&request, &host).await;
        assert!(matches!(report.problem, Some(NodeProblem::Busy(_))));
        assert_eq!((report.issued, report.inspection), (BTreeSet::from([request.old]), None));
    }

    #[tokio::test]
    async fn without_proof_nothing_is_rebuilt_and_a_foreign_configuration_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let host = host(root.path());
        let report = agent(&request("n1"), &host).await;
        assert!(matches!(report.problem, Some(NodeProblem::Refused(why)) if why.contains("no proof")));
        let conf = fs::read_to_string(&host.ceph_conf).unwrap();
        assert!(conf.contains("mon_host = [v2:10.0.0.1:3300,v1:10.0.0.1:6789]\n"), "{conf}");
        let mut other = request("n1");
        other.cluster = "6f382147-dc61-408c-ad68-8e6a2e37590b".parse().unwrap();
        let report = agent(&other, &host).await;
        assert!(
            matches!(report.problem, Some(NodeProblem::Refused(why)) if why.contains("is of cluster 5f38"))
        );
    }

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
