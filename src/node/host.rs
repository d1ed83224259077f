//! Environment of an agent on its node: paths, name of the node, this binary.

use std::io;
use std::path::PathBuf;

use crate::domain::inspection::{KEY_MOUNT, PARENT_MOUNT, PVC_MOUNT, ROOK_MOUNT, pvc_node};
use crate::domain::osd::pvc::KEY_IN_SECRET;
use crate::domain::osd::{NodeName, Role};

/// Environment that an agent runs in.
///
/// Paths are settings so that tests can use others.
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
    /// Folder with the device nodes of the OSD's PVCs, if the OSD is on PVCs.
    pub pvc: PathBuf,
    /// File with the key of an encrypted OSD on a PVC. Its content is passed on by this path only.
    pub key: PathBuf,
    /// Folder for mount points and the shims; it may be deleted with the pod.
    pub scratch: PathBuf,
    /// Path of this binary, for the shims.
    pub binary: PathBuf,
    /// PATH of the image.
    pub path: String,
}

impl Host {
    /// Returns the environment of the node Job's pod.
    ///
    /// `path` is the image's PATH.
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
            parent: PARENT_MOUNT.into(),
            rook: ROOK_MOUNT.into(),
            namespace,
            pvc: PVC_MOUNT.into(),
            key: PathBuf::from(KEY_MOUNT).join(KEY_IN_SECRET),
            scratch: "/tmp".into(),
            binary: std::env::current_exe()?,
            path,
        })
    }

    /// Returns the path of a PVC's device node, which the pod's init container made (`bridge`).
    pub(crate) fn pvc_device(&self, role: Role) -> PathBuf {
        self.pvc.join(pvc_node(role))
    }
}
