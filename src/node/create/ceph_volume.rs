//! `ceph-volume raw|lvm prepare`, fenced by the shims.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use crate::domain::inspection::NodeRequest;
use crate::domain::osd::Role;
use crate::node::create::shim;
use crate::node::error::NodeError;
use crate::node::host::Host;
use crate::node::state::issued;
use crate::node::tools::command::{Group, program_named, words};
use crate::node::tools::redact::last_lines;
use crate::node::volumes::make::NewVolumes;

const CEPH_VOLUME: &str = "ceph-volume";
/// Limit of one prepare.
///
/// Four seconds are usual; a mon election or a slow disk make it minutes. A longer run hangs.
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// Last output of ceph-volume.
///
/// It does not say whether the OSD exists: only the disk says that.
pub(crate) struct Prepared {
    pub(crate) status: ExitStatus,
    pub(crate) last: String,
}

/// Target of a prepare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Given<'a> {
    /// Devices of the parts, for `raw prepare`.
    Devices(&'a [(Role, PathBuf)]),
    /// Existing volumes, for `lvm prepare`.
    Volumes(&'a NewVolumes),
}

fn args(request: &NodeRequest, given: &Given<'_>) -> Vec<String> {
    let mode = match given {
        Given::Devices(_) => "raw",
        Given::Volumes(_) => "lvm",
    };
    let mut args: Vec<String> = [mode, "prepare", "--bluestore"].map(str::to_owned).into();
    match given {
        Given::Devices(devices) => args.extend(
            devices.iter().flat_map(|(role, node)| [option(*role).to_owned(), node.display().to_string()]),
        ),
        Given::Volumes(volumes) => args.extend(["--data".to_owned(), volumes.data.clone()]),
    }
    args.extend(["--osd-id".to_owned(), request.osd.0.to_string()]);
    if let Given::Volumes(volumes) = given {
        args.extend(["--osd-fsid".to_owned(), volumes.fsid.to_string()]);
        args.extend(volumes.db.iter().flat_map(|db| ["--block.db".to_owned(), db.clone()]));
        args.extend(volumes.wal.iter().flat_map(|wal| ["--block.wal".to_owned(), wal.clone()]));
        args.extend(request.target.encrypted.then(|| "--dmcrypt".to_owned()));
    }
    if let Some(class) = &request.device_class {
        args.extend(["--crush-device-class".to_owned(), class.clone()]);
    }
    args
}

/// Returns the option for the device of a part.
fn option(role: Role) -> &'static str {
    match role {
        Role::Db => "--block.db",
        Role::Wal => "--block.wal",
        Role::Block | Role::Data | Role::Journal => "--data",
    }
}

/// Prepares the OSD.
///
/// ceph-volume is not killed when this future is dropped. In the middle of its work it has the slot but no
/// store, and another destroy would be needed. If it is not killed, it finishes and keeps the lock until
/// then. For the same reason its output goes to a file: a write to the pipe of a dead agent would end it.
/// Only after `LIMIT` its process group is killed. Then an issued fsid is left, and a mkfs may still finish
/// its store (see `lock`).
pub(crate) async fn prepare(
    host: &Host,
    request: &NodeRequest,
    given: Given<'_>,
) -> Result<Prepared, NodeError> {
    let folder = Folder::make(host)?;
    let said = folder.0.join("ceph-volume.out");
    let args = args(request, &given);
    let command = words(CEPH_VOLUME, &args);
    let out = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(&said)
        .map_err(NodeError::io("open", &said))?;
    let err = out.try_clone().map_err(NodeError::io("open", &said))?;
    let mut program = program_named(CEPH_VOLUME);
    if request.on_file {
        program.env("CEPH_VOLUME_ALLOW_LOOP_DEVICES", "1");
    }
    let mut child = program
        .args(&args)
        .process_group(0)
        .env("PATH", format!("{}:{}", folder.0.display(), host.path))
        .env(shim::REAL_PATH_ENV, &host.path)
        .env(shim::OSD_ENV, request.osd.0.to_string())
        .env(shim::ISSUED_ENV, issued::path(&host.state, request.osd, &request.record))
        // LVM in a pod would wait forever for the host's udevd. SELinux labels of a pod's own folders are not
        // osd-migrate's to set.
        .env("DM_DISABLE_UDEV", "1")
        .env("CEPH_VOLUME_SKIP_RESTORECON", "1")
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err)
        .kill_on_drop(false)
        .spawn()
        .map_err(|source| NodeError::Start { command: command.clone(), source })?;
    let leader = child.id();
    let Ok(ended) = tokio::time::timeout(LIMIT, child.wait()).await else {
        Group(leader).kill();
        return Err(NodeError::TimedOut { command, secs: LIMIT.as_secs() });
    };
    let status = ended.map_err(|source| NodeError::Start { command, source })?;
    Ok(Prepared { status, last: last_words(&said) })
}

/// Returns the last output of ceph-volume, without the commands that it prints: they are long and say
/// nothing.
fn last_words(said: &Path) -> String {
    let bytes = std::fs::read(said).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("Running command:")).collect();
    last_lines(&lines.join("\n"))
}

/// A folder with the shims and the output, removed when dropped.
///
/// If ceph-volume outlives the agent, the folder stays.
struct Folder(PathBuf);

impl Folder {
    fn make(host: &Host) -> Result<Self, NodeError> {
        let folder = Self(host.scratch.join(format!("osd-migrate-{}", uuid::Uuid::new_v4())));
        shim::make_folder(&folder.0, &host.binary)?;
        Ok(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::samples::request;

    #[test]
    fn ceph_volume_prepare_arguments_are_exact() {
        let mut request = request("n1");
        let said = |request: &NodeRequest, given: Given<'_>| words(CEPH_VOLUME, &args(request, &given));
        let mut devices = vec![(Role::Block, PathBuf::from("/dev/sdb1"))];
        let disk = Given::Devices(&devices);
        assert_eq!(said(&request, disk), "ceph-volume raw prepare --bluestore --data /dev/sdb1 --osd-id 1");
        devices.extend([(Role::Db, PathBuf::from("/pvc/db")), (Role::Wal, PathBuf::from("/pvc/wal"))]);
        assert_eq!(
            said(&request, Given::Devices(&devices)),
            "ceph-volume raw prepare --bluestore --data /dev/sdb1 --block.db /pvc/db --block.wal /pvc/wal \
             --osd-id 1"
        );
        let fsid = request.old;
        let mut volumes = NewVolumes { fsid, data: "ceph-F/osd-block-F".into(), db: None, wal: None };
        request.device_class = Some("nvme".into());
        let line = format!(
            "ceph-volume lvm prepare --bluestore --data ceph-F/osd-block-F --osd-id 1 --osd-fsid {fsid}"
        );
        assert_eq!(said(&request, Given::Volumes(&volumes)), format!("{line} --crush-device-class nvme"));
        (volumes.db, volumes.wal) = (Some("ceph-g/osd-db-F".into()), Some("ceph-g/osd-wal-F".into()));
        (request.target.encrypted, request.device_class) = (true, None);
        assert_eq!(
            said(&request, Given::Volumes(&volumes)),
            format!("{line} --block.db ceph-g/osd-db-F --block.wal ceph-g/osd-wal-F --dmcrypt")
        );
    }
}
