//! The small files at the root of an OSD's data: its identity, and the places of its other parts. They lie on
//! a data partition (of ceph-disk, or Rook's `FS-DATA`), or in a directory of the host.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open, openat, readlinkat};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

use crate::domain::osd::{ClusterFsid, NotAnFsid, NotAnOsd, OsdFsid, OsdId, Role};
use crate::node::error::NodeError;

/// Folder of links to partitions that survive a reboot.
const BY_PARTUUID: &str = "/dev/disk/by-partuuid/";

/// Content of the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DataFiles {
    pub(crate) osd_fsid: OsdFsid,
    pub(crate) whoami: OsdId,
    pub(crate) cluster: ClusterFsid,
    /// `bluestore` on the small data partition of a BlueStore OSD; Jewel and earlier releases wrote no
    /// `type`.
    pub(crate) store: Option<String>,
    pub(crate) journal: Lies,
    pub(crate) block: Lies,
    pub(crate) db: Lies,
    pub(crate) wal: Lies,
}

impl DataFiles {
    /// Returns whether the OSD is a Filestore.
    pub(crate) fn is_filestore(&self) -> bool {
        self.store.as_deref().is_none_or(|store| store == "filestore")
    }

    /// Returns the place of a part of the OSD.
    pub(crate) fn part(&self, role: Role) -> &Lies {
        match role {
            Role::Data => &Lies::Here,
            Role::Journal => &self.journal,
            Role::Block => &self.block,
            Role::Db => &self.db,
            Role::Wal => &self.wal,
        }
    }

    /// Returns the OSD's text for a message.
    pub(crate) fn described(&self) -> String {
        format!("OSD {} ({})", self.osd_fsid, self.whoami)
    }
}

/// Place of a part of an OSD, by what lies alongside the small files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lies {
    /// The OSD has no such part.
    Nowhere,
    /// The part is a file in the same directory.
    Here,
    /// The part is the partition with this unique guid.
    Partition(String),
    /// The part is the target of a link, and no file names a partition.
    At(String),
}

/// The OSD that a disk is read for, and how the disk may be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading<'a> {
    /// Folder for mount points.
    pub(crate) scratch: &'a Path,
    pub(crate) sharing: Sharing,
    /// Requested OSD, if a disk may carry several.
    pub(crate) whom: Option<OsdFsid>,
}

/// Permission to read a file system that is mounted elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Allowed, for an inspection: the OSD still runs.
    WithTheDaemon,
    /// Not allowed, before a wipe: any other mount blocks it.
    No,
}

/// Reads the files of a data partition with file system `kind`.
///
/// The file system is mounted without a replay of its journal, so the read changes nothing on the disk. The
/// mount is removed from the tree as soon as its root is open. Only one descriptor is left of it. So the
/// mount can't outlive this process, however the process ends, and can't keep the disk busy for the next one.
///
/// The kernel refuses (EBUSY) a read-only mount of a file system that is mounted for writing elsewhere, in
/// any mount namespace. Only with `Sharing::WithTheDaemon` the mount is then repeated for writing. It shares
/// the existing mount (there is no journal to replay, and its options stay). Nothing is written through it:
/// files are opened for reading, without access times.
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
    // The unmount is lazy: the mount ends when `root` is closed. It is also done if the open failed.
    unmount(&*place.0, UnmountFlags::DETACH).map_err(NodeError::io("unmount", &place.0))?;
    let root = root.map_err(NodeError::io("open the root of", node))?;
    of_root(&root, node)
}

/// Reads the files of an open directory; `subject` is its path, for messages.
pub(crate) fn of_root(root: &impl AsFd, subject: &Path) -> Result<DataFiles, NodeError> {
    parse(
        subject,
        |name| text_of(root, name, subject),
        |name| match readlinkat(root, name, Vec::new()) {
            Ok(target) => Ok(Companion::Link(target.to_string_lossy().into_owned())),
            Err(Errno::NOENT) => Ok(Companion::Nothing),
            Err(Errno::INVAL) => Ok(Companion::File), // no link
            Err(errno) => Err(NodeError::io("read the link", subject.join(name))(errno)),
        },
    )
}

/// Returns the content of a small file, without the line break, or none if there is no such file.
pub(crate) fn text_of(root: &impl AsFd, name: &str, subject: &Path) -> Result<Option<String>, NodeError> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match openat(root, name, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(NodeError::io("open", subject.join(name))(errno)),
    };
    let mut text = String::new();
    file.take(4096).read_to_string(&mut text).map_err(NodeError::io("read", subject.join(name)))?;
    Ok(Some(text.trim().to_owned()))
}

/// Object alongside the files under the name of a part.
enum Companion {
    Nothing,
    File,
    Link(String),
}

fn parse(
    subject: &Path,
    described: impl Fn(&str) -> Result<Option<String>, NodeError>,
    auxiliary: impl Fn(&str) -> Result<Companion, NodeError>,
) -> Result<DataFiles, NodeError> {
    let must = |name: &'static str| -> Result<String, NodeError> {
        described(name)?.ok_or_else(|| NodeError::Unreadable {
            subject: format!("the data at {}", subject.display()),
            why: format!("it has no file `{name}`, so it is not the data of an OSD"),
        })
    };
    let wrong = |name: &'static str, why: String| NodeError::Unreadable {
        subject: format!("file `{name}` at {}", subject.display()),
        why,
    };
    // ceph-disk writes the partition's guid alongside the link; Rook has the link alone.
    let lies = |name: &str| -> Result<Lies, NodeError> {
        if let Some(uuid) = described(&format!("{name}_uuid"))?.filter(|uuid| !uuid.is_empty()) {
            return Ok(Lies::Partition(uuid.to_ascii_lowercase()));
        }
        Ok(match auxiliary(name)? {
            Companion::Nothing => Lies::Nowhere,
            Companion::File => Lies::Here,
            Companion::Link(target) => match target.strip_prefix(BY_PARTUUID) {
                Some(uuid) => Lies::Partition(uuid.to_ascii_lowercase()),
                None => Lies::At(target),
            },
        })
    };
    Ok(DataFiles {
        osd_fsid: must("fsid")?.parse().map_err(|error: NotAnFsid| wrong("fsid", error.to_string()))?,
        whoami: must("whoami")?.parse().map_err(|error: NotAnOsd| wrong("whoami", error.to_string()))?,
        cluster: must("ceph_fsid")?
            .parse()
            .map_err(|error: NotAnFsid| wrong("ceph_fsid", error.to_string()))?,
        store: described("type")?,
        journal: lies("journal")?,
        block: lies("block")?,
        db: lies("block.db")?,
        wal: lies("block.wal")?,
    })
}

/// A folder of this agent, removed when dropped.
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
    use std::os::unix::fs::symlink;

    use super::*;

    const PART: &str = "f76b1738-2c9a-4244-8217-3604b053e471";

    /// Reads the files from a folder.
    fn read_from(files: &[(&str, &str)], links: &[(&str, &str)]) -> Result<DataFiles, NodeError> {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("fsid", "7bcafb1e-936a-4173-8093-4789e2f5cb9f"),
            ("whoami", "1"),
            ("ceph_fsid", "5f382147-dc61-408c-ad68-8e6a2e37590b"),
        ]
        .iter()
        .chain(files)
        {
            match *text {
                "(none)" => std::fs::remove_file(root.path().join(name)).unwrap(),
                text => std::fs::write(root.path().join(name), format!("{text}\n")).unwrap(),
            }
        }
        for (name, target) in links {
            symlink(target, root.path().join(name)).unwrap();
        }
        of_root(&File::open(root.path()).unwrap(), Path::new("/dev/x1"))
    }

    #[test]
    fn ceph_disk_files_are_read() {
        let upper = PART.to_ascii_uppercase();
        let read = read_from(&[("journal_uuid", &upper)], &[("journal", "/dev/sdb2")]).unwrap();
        assert_eq!((read.whoami, read.store.as_deref()), (OsdId(1), None));
        assert!(read.is_filestore());
        assert_eq!(read.journal, Lies::Partition(PART.to_owned()));
        let files =
            [("type", "bluestore"), ("block_uuid", PART), ("block.db_uuid", "d"), ("block.wal_uuid", "w")];
        let read = read_from(&files, &[]).unwrap();
        assert!(!read.is_filestore());
        let named = |uuid: &str| Lies::Partition(uuid.to_owned());
        assert_eq!((read.block, read.db, read.wal), (named(PART), named("d"), named("w")));
        assert_eq!(read.journal, Lies::Nowhere);
    }

    #[test]
    fn ceph_disk_link_is_read_if_its_uuid_file_is_missing() {
        let by_uuid = format!("/dev/disk/by-partuuid/{PART}");
        let read =
            read_from(&[("journal", "bytes")], &[("block", &by_uuid), ("block.db", "/dev/sdc")]).unwrap();
        assert_eq!(read.journal, Lies::Here);
        assert_eq!(read.block, Lies::Partition(PART.to_owned()));
        assert_eq!(read.db, Lies::At("/dev/sdc".to_owned()));
    }

    #[test]
    fn ceph_disk_file_that_is_missing_or_wrong_is_named() {
        let without = read_from(&[("whoami", "(none)")], &[]);
        assert!(without.unwrap_err().to_string().contains("`whoami`"));
        let nil = read_from(&[("fsid", "")], &[]);
        assert!(nil.unwrap_err().to_string().contains("file `fsid` at /dev/x1"));
        let link = read_from(&[("fsid", "(none)")], &[("fsid", "whoami")]);
        assert!(link.unwrap_err().to_string().contains("/dev/x1/fsid"), "a link is not followed");
    }
}
