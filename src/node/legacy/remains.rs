//! Rook's files of an OSD on the host, apart from the OSD's disk: the folder that the OSD is activated in,
//! named by cluster and OSD fsid, and for the oldest releases a folder named by the OSD's id. The new OSD has
//! another fsid and gets another folder. In the old folder the keyring of the old OSD would stay forever. The
//! old folder is removed when the disk carries the new OSD, if it contains only files that Rook and
//! ceph-volume put there. Otherwise it stays, and the report says why.
//!
//! No data was ever in such a folder. A folder that contains data (a directory, a file in place of a device,
//! a mount) is no such folder, and stays.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, fsync, openat, statat, unlinkat};
use rustix::io::Errno;

use crate::domain::inspection::NodeRequest;
use crate::node::disk::usage;
use crate::node::error::NodeError;
use crate::node::host::Host;
use crate::node::legacy::directory::{FOLDER, children, device, kind_of};
use crate::node::legacy::files;
use crate::node::tools::command::{QUICK, blocking};

/// Small files: of `ceph-bluestore-tool prime-osd-dir` and of `mkfs` (BlueStore and Filestore), of
/// ceph-volume, of Rook.
///
/// `fsid`, which identifies the OSD, is removed last.
const FILES: [&str; 36] = [
    "activate.monmap",
    "active",
    "bfm_blocks",
    "bfm_blocks_per_key",
    "bfm_bytes_per_block",
    "bfm_size",
    "bluefs",
    "btime",
    "ceph_fsid",
    "ceph_version_when_created",
    "created_at",
    "description",
    "elastic_shared_blobs",
    "epoch",
    "fsid",
    "keyring",
    "kv_backend",
    "locations",
    "lockbox.keyring",
    "magic",
    "mkfs_done",
    "multi",
    "osd_key",
    "osd_uuid",
    "osdspec_affinity",
    "path_block",
    "path_block.db",
    "path_block.wal",
    "ready",
    "require_osd_release",
    "rook-ceph.config",
    "store_version",
    "superblock",
    "systemd",
    "type",
    "whoami",
];
/// Links to devices.
const LINKS: [&str; 4] = ["block", "block.db", "block.wal", "journal"];
/// Upper limit of a file's size.
///
/// It is more than any of the files has; a monmap of a large cluster is some KiB.
const LARGEST: i64 = 1 << 20;

/// Removes the existing folders.
///
/// Returns the reason for each folder that stays.
pub(crate) async fn remove(request: &NodeRequest, host: &Host) -> Vec<String> {
    let places = places(request, host);
    let wanted = [
        ("fsid", request.old.to_string()),
        ("whoami", request.osd.0.to_string()),
        ("ceph_fsid", request.cluster.to_string()),
    ];
    let mut left = Vec::new();
    for place in places {
        let (described, wanted) = (place.described.clone(), wanted.clone());
        let done = blocking("remove", described.clone(), QUICK, move || place.remove(&wanted)).await;
        left.extend(done.err().map(|why| format!("{described} stays on the host: {why}")));
    }
    left
}

struct RemainsFolder {
    /// Path in `dataDirHostPath`, for messages.
    described: String,
    parent: PathBuf,
    name: String,
    proc: PathBuf,
    /// Whether the folder's name identifies the OSD; otherwise a file must.
    by_fsid: bool,
}

fn places(request: &NodeRequest, host: &Host) -> [RemainsFolder; 2] {
    let by_fsid = format!("{}_{}", request.cluster, request.old);
    let of = |parent: PathBuf, described: String, name: String, by_fsid| {
        let proc = host.proc.clone();
        RemainsFolder { described, parent, name, proc, by_fsid }
    };
    let activation = format!("{}/{by_fsid}", host.namespace);
    let oldest = request.osd.to_string().replace('.', "");
    [
        of(host.rook.join(&host.namespace), activation, by_fsid, true),
        of(host.rook.clone(), oldest.clone(), oldest, false),
    ]
}

impl RemainsFolder {
    fn remove(&self, wanted: &[(&str, String); 3]) -> Result<(), NodeError> {
        let Some((parent, folder)) = self.open()? else { return Ok(()) };
        let found = children(&folder, &self.described)?;
        self.is_of_the_old(&folder, wanted, found.is_empty())?;
        for (name, kind) in &found {
            let kind = kind_of(&folder, name, *kind, &self.described)?;
            self.is_known(&folder, &name.to_string_lossy(), kind)?;
        }
        let last = |name: &str| name == "fsid";
        let mut names: Vec<_> = found.iter().map(|(name, _)| name.to_string_lossy()).collect();
        names.sort_by_key(|name| last(name));
        for name in names {
            match unlinkat(&folder, &*name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => {
                    return Err(NodeError::io("remove", Path::new(&self.described).join(&*name))(errno));
                }
            }
            fsync(&folder).map_err(NodeError::io("fsync", &self.described))?;
        }
        unlinkat(&parent, &self.name, AtFlags::REMOVEDIR)
            .map_err(NodeError::io("remove", &self.described))?;
        fsync(&parent).map_err(NodeError::io("fsync", &self.described))
    }

    /// Opens the folder and its parent.
    ///
    /// The folder must be no link and no mount point, with nothing mounted in it, on the file system of its
    /// parent.
    fn open(&self) -> Result<Option<(OwnedFd, OwnedFd)>, NodeError> {
        let parent = match rustix::fs::open(&self.parent, FOLDER, Mode::empty()) {
            Ok(parent) => parent,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(NodeError::io("open the folder of", &self.described)(errno)),
        };
        let folder = match openat(&parent, &self.name, FOLDER, Mode::empty()) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::NOTDIR | Errno::LOOP) => return Err(refused("a link, or no directory")),
            Err(errno) => return Err(NodeError::io("open", &self.described)(errno)),
        };
        let at = self.parent.join(&self.name);
        if usage::mount_points(&self.proc)?.iter().any(|place| place.starts_with(&at)) {
            return Err(refused("something is mounted there"));
        }
        if device(&parent, &self.described)? != device(&folder, &self.described)? {
            return Err(refused("a separate file system"));
        }
        Ok(Some((parent, folder)))
    }

    /// Checks that every file that identifies an OSD names the old OSD.
    ///
    /// A folder named by the id alone must contain such a file; another OSD of that id may have followed. An
    /// empty folder was left by an interrupted removal.
    fn is_of_the_old(
        &self,
        folder: &OwnedFd,
        wanted: &[(&str, String); 3],
        is_empty: bool,
    ) -> Result<(), NodeError> {
        let mut says = self.by_fsid || is_empty;
        for (name, expected) in wanted {
            // A name that is no plain small file is reported by `is_known`.
            let Ok(Some(found)) = files::text_of(folder, name, self.described.as_ref()) else { continue };
            if found.to_ascii_lowercase() != *expected {
                return Err(refused(&format!("its {name}: expected {expected}, found {found}")));
            }
            says |= *name == "fsid";
        }
        if says { Ok(()) } else { Err(refused("no file fsid in it names its OSD")) }
    }

    fn is_known(&self, folder: &OwnedFd, name: &str, kind: FileType) -> Result<(), NodeError> {
        let is_link = kind == FileType::Symlink && LINKS.contains(&name);
        let is_file = kind == FileType::RegularFile && FILES.contains(&name);
        if is_file {
            let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
                .map_err(NodeError::io("stat", Path::new(&self.described).join(name)))?;
            if stat.st_size > LARGEST {
                return Err(refused(&format!("its {name} is large: {} bytes", stat.st_size)));
            }
        }
        if is_link || is_file {
            Ok(())
        } else {
            Err(refused(&format!("{name} in it does not belong to Rook")))
        }
    }
}

fn refused(why: &str) -> NodeError {
    NodeError::Refused(why.to_owned())
}

#[cfg(test)]
#[path = "remains_tests.rs"]
mod tests;
