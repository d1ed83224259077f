//! An OSD in a directory of the host (Rook's `directories`, up to 1.2). It is proven by its small files, and
//! removed when its id lives on another device. The disk under it is the host's own: nothing but the
//! directory is ever touched.
//!
//! The agent's pod sees the directory through the directory's parent, which the kubelet mounts for the pod as
//! it does for the OSD. So links that lead to the parent are the same for both. Below the parent no link is
//! followed, and no mount point is crossed.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::time::Duration;

use rustix::fs::{
    AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, fcntl_lock, fstat, fsync, open, openat, statat,
    unlinkat,
};
use rustix::io::Errno;

use crate::domain::inspection::{NodeRequest, Proof};
use crate::domain::osd::{Kind, OsdFsid, Role};
use crate::node::disk::{label, usage};
use crate::node::error::NodeError;
use crate::node::host::Host;
use crate::node::legacy::files::{self, DataFiles, Lies};
use crate::node::tools::command::{QUICK, blocking};

/// Files by which the directory is recognised, in the sequence of their removal: until the last one is
/// removed, the rest is known to be this OSD's.
const NAMES: [&str; 4] = ["type", "ceph_fsid", "whoami", "fsid"];
/// Limit of a removal: it takes hours to empty a file system with tens of millions of objects.
const REMOVAL: Duration = Duration::from_secs(24 * 60 * 60);

/// Reads the identity of the OSD in the request's directory.
///
/// Returns `Refused` if the identity can't be read, or the directory is no plain one.
pub(crate) async fn prove(request: &NodeRequest, host: &Host) -> Result<Proof, NodeError> {
    let place = DirectoryPath::of(request, host)?;
    let described = place.path.clone();
    blocking("read", described, QUICK, move || {
        let root = place.open()?.ok_or_else(|| place.refused("it does not exist"))?;
        // Deeper directories are inspected only before the removal: there may be millions of files, and their
        // OSD is running.
        place.is_one_file_system(&root, false)?;
        place.proof(&root)
    })
    .await
}

/// Removes the directory after a second proof that it is the old OSD's.
///
/// A missing directory counts as removed; an interrupted removal is finished.
pub(crate) async fn clear(request: &NodeRequest, host: &Host) -> Result<(), NodeError> {
    let place = DirectoryPath::of(request, host)?;
    let wanted = Wanted::of(request);
    blocking("remove", place.path.clone(), REMOVAL, move || {
        let Some(root) = place.open()? else { return Ok(()) };
        place.is_wanted(&root, &wanted)?;
        place.is_unused(&root)?;
        place.is_one_file_system(&root, true)?;
        place.remove(&root)
    })
    .await
}

/// OSD that must be in the directory.
struct Wanted {
    osd_fsid: OsdFsid,
    /// Name and expected content of each of the files, if it still exists.
    files: [(&'static str, String); 3],
}

impl Wanted {
    fn of(request: &NodeRequest) -> Self {
        let files = [
            ("fsid", request.old.to_string()),
            ("whoami", request.osd.0.to_string()),
            ("ceph_fsid", request.cluster.to_string()),
        ];
        Self { osd_fsid: request.old, files }
    }
}

/// Location of the directory.
struct DirectoryPath {
    /// path on the host
    path: String,
    /// parent of the directory, as the pod sees it
    parent: PathBuf,
    name: String,
    proc: PathBuf,
}

impl DirectoryPath {
    fn of(request: &NodeRequest, host: &Host) -> Result<Self, NodeError> {
        let directory = request
            .directory
            .as_ref()
            .ok_or_else(|| NodeError::Refused("the request names no directory".to_owned()))?;
        let Some((_, name)) = directory.parent_and_name() else {
            let why = format!("{}: not the plain path of a directory below another one", directory.path);
            return Err(NodeError::Refused(why));
        };
        let (parent, proc) = (host.parent.clone(), host.proc.clone());
        Ok(Self { path: directory.path.clone(), parent, name: name.to_owned(), proc })
    }

    fn refused(&self, why: &str) -> NodeError {
        NodeError::Refused(format!("directory {}: {why}", self.path))
    }

    fn in_pod(&self) -> PathBuf {
        self.parent.join(&self.name)
    }

    /// Opens the directory itself, which must be no link and no mount point.
    ///
    /// Returns none if nothing has that name.
    fn open(&self) -> Result<Option<OwnedFd>, NodeError> {
        let parent = self.open_parent()?;
        let root = match openat(&parent, &self.name, FOLDER, Mode::empty()) {
            Ok(root) => root,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP) => return Err(self.refused("a link, or no directory")),
            Err(errno) => return Err(NodeError::io("open", &self.path)(errno)),
        };
        let at = self.in_pod();
        if let Some(mount) = usage::mount_points(&self.proc)?.into_iter().find(|place| place.starts_with(&at))
        {
            let below = mount.strip_prefix(&at).unwrap_or(&mount).display().to_string();
            let where_ = if below.is_empty() { "it".to_owned() } else { format!("its {below}") };
            return Err(self.refused(&format!("{where_} is a mount point")));
        }
        if device(&parent, &self.path)? != device(&root, &self.path)? {
            return Err(self.refused("a separate file system"));
        }
        Ok(Some(root))
    }

    fn open_parent(&self) -> Result<OwnedFd, NodeError> {
        open(&self.parent, FOLDER, Mode::empty()).map_err(NodeError::io("open the parent of", &self.path))
    }

    fn proof(&self, root: &OwnedFd) -> Result<Proof, NodeError> {
        let files = files::of_root(root, self.path.as_ref())?;
        let kind = self.kind(&files)?;
        let DataFiles { osd_fsid, whoami, cluster, .. } = files;
        Ok(Proof::Directory { format: kind, path: self.path.clone(), osd_fsid, whoami, cluster })
    }

    /// Returns the kind, if all parts of the OSD are in the directory.
    fn kind(&self, files: &DataFiles) -> Result<Kind, NodeError> {
        match files.store.as_deref() {
            Some("filestore") | None => {
                self.is_inside(files, Role::Journal)?;
                Ok(Kind::FilestoreDirectory)
            }
            Some("bluestore") => {
                for role in [Role::Block, Role::Db, Role::Wal] {
                    let is_there = *files.part(role) != Lies::Nowhere;
                    if role == Role::Block || is_there {
                        let file = self.is_inside(files, role)?;
                        let fsid = label::fsid_at_head(&self.in_pod().join(&file))?;
                        if fsid != Some(files.osd_fsid) {
                            let other = fsid.map_or("no OSD".to_owned(), |fsid| format!("OSD {fsid}"));
                            return Err(self.refused(&format!("the label of {role} in {file} names {other}")));
                        }
                    }
                }
                Ok(Kind::BluestoreDirectory)
            }
            Some(other) => Err(self.refused(&format!("its object store is {other}"))),
        }
    }

    /// Returns the name of a part's file, which must be in the directory.
    fn is_inside(&self, files: &DataFiles, role: Role) -> Result<String, NodeError> {
        let name = match role {
            Role::Data | Role::Block => "block",
            Role::Journal => "journal",
            Role::Db => "block.db",
            Role::Wal => "block.wal",
        };
        let file = match files.part(role) {
            Lies::Here => Some(name.to_owned()),
            Lies::At(target) => {
                let below = target.strip_prefix(&self.path).and_then(|rest| rest.strip_prefix('/'));
                below.or(Some(target)).filter(|file| !file.contains('/')).map(str::to_owned)
            }
            Lies::Nowhere | Lies::Partition(_) => None,
        };
        let is_file = |file: &String| {
            std::fs::symlink_metadata(self.in_pod().join(file)).is_ok_and(|meta| meta.is_file())
        };
        file.filter(is_file).ok_or_else(|| self.refused(&format!("its {role} is no file in it")))
    }

    /// Checks that the directory is the old OSD's, or the rest of an interrupted removal.
    ///
    /// In such a rest only the files of `NAMES` exist. Each has the right content, and the last one to be
    /// removed is among them.
    fn is_wanted(&self, root: &OwnedFd, wanted: &Wanted) -> Result<(), NodeError> {
        let mut there = 0;
        for (name, expected) in &wanted.files {
            let Some(found) = files::text_of(root, name, self.path.as_ref())? else { continue };
            if found.to_ascii_lowercase() != *expected {
                return Err(self.refused(&format!("its {name}: expected {expected}, found {found}")));
            }
            there += 1;
        }
        if there == wanted.files.len() {
            return Ok(());
        }
        let left = children(root, &self.path)?;
        let is_left = |name: &&str| left.iter().any(|(child, _)| child.as_bytes() == name.as_bytes());
        let last = NAMES.last().filter(|name| is_left(name));
        let names_alone = left.len() == NAMES.iter().filter(|name| is_left(name)).count();
        if names_alone && (last.is_some() || left.is_empty()) {
            return Ok(());
        }
        Err(self.refused(&format!("not all of its files name OSD {}", wanted.osd_fsid)))
    }

    /// Checks that no directory in it, or deep below it, is on another file system: Filestore created
    /// subvolumes on btrfs.
    fn is_one_file_system(&self, root: &OwnedFd, deep: bool) -> Result<(), NodeError> {
        match other_file_system(root, device(root, &self.path)?, deep, &self.path)? {
            Some(path) => Err(NodeError::Refused(format!("{path} is on another file system"))),
            None => Ok(()),
        }
    }

    /// Checks that no OSD runs in the directory: a running OSD has its `fsid` locked, whatever its store is.
    fn is_unused(&self, root: &OwnedFd) -> Result<(), NodeError> {
        let path = self.in_pod().join("fsid");
        let file =
            match openat(root, "fsid", OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()) {
                Ok(file) => file,
                Err(Errno::NOENT) => return Ok(()),
                Err(errno) => return Err(NodeError::io("open", &path)(errno)),
            };
        match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(()),
            Err(Errno::ACCESS | Errno::AGAIN) => Err(self.refused("in use: its OSD may still be running")),
            Err(errno) => Err(NodeError::io("lock", &path)(errno)),
        }
    }

    /// Removes everything below the directory, then the files of `NAMES`, then the directory; each is on the
    /// disk before the next.
    fn remove(&self, root: &OwnedFd) -> Result<(), NodeError> {
        let io = |operation| NodeError::io(operation, &self.path);
        let device = device(root, &self.path)?;
        for (name, kind) in children(root, &self.path)? {
            if !NAMES.iter().any(|kept| kept.as_bytes() == name.as_bytes()) {
                remove_child(root, &name, kind, device, &self.path)?;
            }
        }
        fsync(root).map_err(io("fsync"))?;
        for name in NAMES {
            match unlinkat(root, name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(NodeError::io("remove", self.in_pod().join(name))(errno)),
            }
            fsync(root).map_err(io("fsync"))?;
        }
        let parent = self.open_parent()?;
        unlinkat(&parent, &self.name, AtFlags::REMOVEDIR).map_err(io("remove"))?;
        fsync(&parent).map_err(io("fsync"))
    }
}

/// Flags to open a directory that is not reached by a link.
pub(super) const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

pub(super) fn device(folder: &impl AsFd, path: &str) -> Result<u64, NodeError> {
    fstat(folder).map(|stat| stat.st_dev).map_err(NodeError::io("stat", path))
}

/// Returns names and kinds in a directory, all read before any is removed.
pub(super) fn children(folder: &OwnedFd, path: &str) -> Result<Vec<(CString, FileType)>, NodeError> {
    let entries = Dir::read_from(folder).map_err(NodeError::io("list", path))?;
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(NodeError::io("list", path))?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            found.push((entry.file_name().to_owned(), entry.file_type()));
        }
    }
    Ok(found)
}

/// Returns the kind of a name in a directory: some file systems do not return kinds when they list names.
pub(super) fn kind_of(
    folder: &OwnedFd,
    name: &CString,
    listed: FileType,
    path: &str,
) -> Result<FileType, NodeError> {
    if listed != FileType::Unknown {
        return Ok(listed);
    }
    let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).map_err(NodeError::io("stat", path))?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

/// Returns the first directory below that is on another file system.
fn other_file_system(folder: &OwnedFd, on: u64, deep: bool, path: &str) -> Result<Option<String>, NodeError> {
    for (name, kind) in children(folder, path)? {
        let path = format!("{path}/{}", name.to_string_lossy());
        if kind_of(folder, &name, kind, &path)? != FileType::Directory {
            continue;
        }
        let below = openat(folder, &name, FOLDER, Mode::empty()).map_err(NodeError::io("open", &path))?;
        if device(&below, &path)? != on {
            return Ok(Some(path));
        }
        if deep && let Some(found) = other_file_system(&below, on, deep, &path)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn remove_child(
    folder: &OwnedFd,
    name: &CString,
    kind: FileType,
    on: u64,
    path: &str,
) -> Result<(), NodeError> {
    let path = format!("{path}/{}", name.to_string_lossy());
    let io = |operation| NodeError::io(operation, &path);
    let kind = kind_of(folder, name, kind, &path)?;
    if kind != FileType::Directory {
        return unlinkat(folder, name, AtFlags::empty()).map_err(io("remove"));
    }
    let below = openat(folder, name, FOLDER, Mode::empty()).map_err(io("open"))?;
    if device(&below, &path)? != on {
        return Err(NodeError::Refused(format!("{path} is on another file system")));
    }
    for (name, kind) in children(&below, &path)? {
        remove_child(&below, &name, kind, on, &path)?;
    }
    unlinkat(folder, name, AtFlags::REMOVEDIR).map_err(io("remove"))
}

#[cfg(test)]
#[path = "directory_tests.rs"]
mod tests;
