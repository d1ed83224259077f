//! ceph-disk's Filestore: who the OSD is says a file system on the data partition, in small files at its root.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open, openat};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use super::error::NodeError;
use crate::domain::osd::{ClusterFsid, OsdFsid, OsdId};

/// The files that ceph-disk wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DataFiles {
    pub(crate) osd_fsid: OsdFsid,
    pub(crate) whoami: OsdId,
    pub(crate) cluster: ClusterFsid,
    /// `bluestore` on the small data partition of a BlueStore OSD; Jewel and before wrote no `type`.
    pub(crate) store: Option<String>,
    /// The journal's partition; none where the journal is a file.
    pub(crate) journal_uuid: Option<String>,
}

/// May a file system that is mounted elsewhere be read?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// At an inspection: the OSD still runs.
    WithTheDaemon,
    /// Before a wipe: whoever has it mounted is in the way.
    No,
}

/// Reads the files of a data partition with file system `kind`, of those that ceph-disk made.
///
/// The file system is mounted without replaying its journal, so reading changes nothing on the disk. The mount is taken out of
/// the tree as soon as its root is open: what is left of it is one descriptor, so it can't outlive this process, however
/// that ends, and keep the disk busy for the next.
///
/// The kernel refuses (EBUSY) a read-only mount of what is mounted for writing elsewhere, in whatever mount namespace. Only
/// with `Sharing::WithTheDaemon` the mount is then repeated for writing: it shares the one that is there (no journal to replay,
/// its options stay) and nothing is written through it: files are opened for reading, without access times.
pub(crate) fn read(
    node: &Path,
    kind: &str,
    scratch: &Path,
    sharing: Sharing,
) -> Result<DataFiles, NodeError> {
    let no_replay = match kind {
        "xfs" => c"norecovery",
        "ext4" => c"noload",
        other => {
            return Err(NodeError::Refused(format!("{} carries {other}, not xfs or ext4", node.display())));
        }
    };
    let place = tempfile_dir(scratch)?;
    let quiet = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::NOATIME;
    let mounted = match mount(node, &*place.0, kind, quiet | MountFlags::RDONLY, no_replay) {
        Err(Errno::BUSY) if sharing == Sharing::WithTheDaemon => mount(node, &*place.0, kind, quiet, None),
        other => other,
    };
    match mounted {
        Ok(()) => {}
        Err(Errno::BUSY) => {
            return Err(NodeError::Refused(format!(
                "{} is in use: mounted, or open exclusively",
                node.display()
            )));
        }
        Err(errno) => return Err(NodeError::io("mount", node)(errno)),
    }
    let root = open(&*place.0, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    // Lazily: it goes when `root` is closed. Also when opening failed.
    unmount(&*place.0, UnmountFlags::DETACH).map_err(NodeError::io("unmount", &place.0))?;
    let root = root.map_err(NodeError::io("open the root of", node))?;
    let told = |name: &str| -> Result<Option<String>, NodeError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match openat(&root, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(NodeError::io("open", node.join(name))(errno)),
        };
        let mut text = String::new();
        file.take(4096).read_to_string(&mut text).map_err(NodeError::io("read", node.join(name)))?;
        Ok(Some(text.trim().to_owned()))
    };
    parse(node, told)
}

fn parse(
    node: &Path,
    told: impl Fn(&str) -> Result<Option<String>, NodeError>,
) -> Result<DataFiles, NodeError> {
    let must = |name: &'static str| -> Result<String, NodeError> {
        told(name)?.ok_or_else(|| NodeError::Unreadable {
            subject: format!("the file system on {}", node.display()),
            why: format!("no file `{name}`: no OSD's data"),
        })
    };
    let wrong = |name: &'static str, why: String| NodeError::Unreadable {
        subject: format!("file `{name}` on {}", node.display()),
        why,
    };
    Ok(DataFiles {
        osd_fsid: must("fsid")?
            .parse()
            .map_err(|e: crate::domain::osd::NotAnFsid| wrong("fsid", e.to_string()))?,
        whoami: must("whoami")?
            .parse()
            .map_err(|e: crate::domain::osd::NotAnOsd| wrong("whoami", e.to_string()))?,
        cluster: must("ceph_fsid")?
            .parse()
            .map_err(|e: crate::domain::osd::NotAnFsid| wrong("ceph_fsid", e.to_string()))?,
        store: told("type")?,
        journal_uuid: told("journal_uuid")?.map(|uuid| uuid.to_ascii_lowercase()),
    })
}

/// A folder of our own, removed when dropped.
struct Folder(std::path::PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir(&self.0).ok();
    }
}

fn tempfile_dir(scratch: &Path) -> Result<Folder, NodeError> {
    let path = scratch.join(format!("mount-{}", uuid::Uuid::new_v4()));
    std::fs::create_dir_all(&path).map_err(NodeError::io("create folder", &path))?;
    Ok(Folder(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(name: &str) -> Option<String> {
        Some(
            match name {
                "fsid" => "7bcafb1e-936a-4173-8093-4789e2f5cb9f",
                "whoami" => "1",
                "ceph_fsid" => "5f382147-dc61-408c-ad68-8e6a2e37590b",
                "journal_uuid" => "F76B1738-2c9a-4244-8217-3604b053e471",
                _ => return None,
            }
            .to_owned(),
        )
    }

    #[test]
    fn the_four_files_of_ceph_disk() {
        let read = parse(Path::new("/dev/x1"), |name| Ok(files(name))).unwrap();
        assert_eq!(read.whoami, OsdId(1));
        assert_eq!(read.journal_uuid.as_deref(), Some("f76b1738-2c9a-4244-8217-3604b053e471"));
        assert_eq!(read.store, None);
    }

    #[test]
    fn a_missing_or_wrong_file_is_named() {
        let without = parse(Path::new("/dev/x1"), |name| Ok(files(name).filter(|_| name != "whoami")));
        assert!(without.unwrap_err().to_string().contains("`whoami`"));
        let nil = parse(Path::new("/dev/x1"), |name| {
            Ok(if name == "fsid" { Some(String::new()) } else { files(name) })
        });
        assert!(nil.unwrap_err().to_string().contains("file `fsid` on /dev/x1"));
    }
}
