//! Users of a device, apart from what lies on it: mounts and swap. The source is the kernel's state in /proc
//! and /sys; only `is_held` opens a device.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::node::disk::devices::Disk;
use crate::node::error::NodeError;
use crate::node::host::Host;
use crate::node::tools::command::{QUICK, blocking};

/// File systems that name their devices in /sys/fs while they are mounted, in any mount namespace.
///
/// A pod does not see the host's own mounts.
const NAMED_IN_SYS: [&str; 4] = ["ext4", "xfs", "f2fs", "bcachefs"];
/// Place of a mount whose mount point this process does not see.
const OUT_OF_SIGHT: &str = "a path that is visible only on the host";

/// The visible mounts, read once.
#[derive(Debug, Default)]
pub(crate) struct Mounts {
    seen: Vec<Mount>,
    /// Devices that the kernel swaps to.
    swaps: Vec<String>,
}

impl Mounts {
    /// Reads the mounts of the first process and of this one.
    pub(crate) fn read(proc: &Path) -> Self {
        let text = |name: &str| fs::read_to_string(proc.join(name)).unwrap_or_default();
        let seen = ["1/mountinfo", "self/mountinfo"].iter().flat_map(|name| parse(&text(name))).collect();
        let swaps = text("swaps")
            .lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
            .collect();
        Self { seen, swaps }
    }

    /// Returns the mount point of a device, if it is mounted.
    pub(crate) fn of(&self, disk: &Disk, sys_fs: &Path) -> Option<String> {
        let number = format!("{}:{}", disk.number.0, disk.number.1);
        let is_it = |mount: &&Mount| mount.number == number || Path::new(&mount.source) == disk.node;
        let at = self.seen.iter().find(is_it).map(|mount| mount.place.clone());
        let swap = || self.swaps.iter().any(|path| Path::new(path) == disk.node).then(|| "swap".to_owned());
        let kernel = || {
            let named = NAMED_IN_SYS.iter().any(|kind| sys_fs.join(kind).join(&disk.name).is_dir());
            named.then(|| OUT_OF_SIGHT.to_owned())
        };
        at.or_else(swap).or_else(kernel)
    }
}

#[derive(Debug)]
struct Mount {
    /// Number of the file system; for some file systems (btrfs) it is not a device's number.
    number: String,
    place: String,
    source: String,
}

/// Parses `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`.
fn parse(mountinfo: &str) -> Vec<Mount> {
    let line = |line: &str| {
        let (before, after) = line.split_once(" - ")?;
        let mut words = before.split_whitespace();
        let (number, root) = (words.nth(2)?.to_owned(), words.next()?);
        // The mount of a folder (a pod's /etc/hosts) does not show the mount point of the file system.
        let place = if root == "/" { words.next()?.replace("\\040", " ") } else { OUT_OF_SIGHT.to_owned() };
        Some(Mount { number, place, source: after.split_whitespace().nth(1)?.to_owned() })
    };
    mountinfo.lines().filter_map(line).collect()
}

/// Returns the mount points that this process sees.
pub(crate) fn mount_points(proc: &Path) -> Result<Vec<PathBuf>, NodeError> {
    let path = proc.join("self/mountinfo");
    let text = fs::read_to_string(&path).map_err(NodeError::io("read", &path))?;
    Ok(text.lines().filter_map(|line| line.split(' ').nth(4)).map(unescaped).collect())
}

/// Decodes `\040`: the kernel writes blanks and similar characters in a path as three octal digits.
fn unescaped(path: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| *first == b'\\');
        let byte = octal.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { after.get(3..).unwrap_or_default() } else { after };
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// Returns whether a device is open exclusively: by a mount, device-mapper, an OSD, or a mkfs.
///
/// The device is opened for reading, exclusively, for an instant. That writes nothing, but in that instant
/// nothing else can open it exclusively. So only a device with nothing on it may be asked: then no start or
/// mount is to be expected in that instant.
pub(crate) fn is_held(node: &Path) -> Result<bool, NodeError> {
    let flags = i32::try_from((OFlags::EXCL | OFlags::NOFOLLOW).bits()).unwrap_or(0);
    match OpenOptions::new().read(true).custom_flags(flags).open(node) {
        Ok(_) => Ok(false),
        Err(error) if error.raw_os_error() == Some(Errno::BUSY.raw_os_error()) => Ok(true),
        Err(error) => Err(NodeError::io("open exclusively", node)(error)),
    }
}

/// Calls `is_held` on a thread that may block, with a limit.
pub(crate) async fn is_in_use(disk: &Disk) -> Result<bool, NodeError> {
    let node = disk.node.clone();
    blocking("open", disk.described(), QUICK, move || is_held(&node)).await
}

/// Returns the mounts as this host shows them.
pub(crate) fn mounts(host: &Host) -> Mounts {
    Mounts::read(&host.proc)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::samples::bare_disk;

    fn disk(name: &str, number: (u32, u32)) -> Disk {
        Disk { name: name.into(), node: Path::new("/dev").join(name), number, ..bare_disk(&[], 1) }
    }

    #[test]
    fn mount_is_found_by_number_by_name_and_by_sysfs() {
        let root = tempfile::tempdir().unwrap();
        let (proc, sys_fs) = (root.path().join("proc"), root.path().join("fs"));
        fs::create_dir_all(proc.join("1")).unwrap();
        fs::create_dir_all(sys_fs.join("xfs/sdc1")).unwrap();
        let mounts = "22 27 0:21 / /proc rw - proc proc rw\n\
                      40 22 8:16 / /my\\040data rw,relatime shared:1 - ext4 /dev/sdb rw\n\
                      42 22 254:0 /var/lib/x/hosts /etc/hosts rw - ext4 /dev/root rw\n\
                      41 22 0:50 / /pool rw - btrfs /dev/sde rw\n";
        fs::write(proc.join("1/mountinfo"), mounts).unwrap();
        fs::write(proc.join("swaps"), "Filename Type Size Used Priority\n/dev/sdd partition 1 0 -2\n")
            .unwrap();
        let mounts = Mounts::read(&proc);
        let at = |name: &str, number| mounts.of(&disk(name, number), &sys_fs);
        assert_eq!(at("sdb", (8, 16)).as_deref(), Some("/my data"));
        assert_eq!(at("sde", (8, 64)).as_deref(), Some("/pool"));
        assert_eq!(at("sdc1", (8, 33)).as_deref(), Some(OUT_OF_SIGHT));
        assert_eq!(at("sdd", (8, 48)).as_deref(), Some("swap"));
        assert_eq!(at("sdf", (8, 80)), None);
        assert_eq!(at("vda", (254, 0)).as_deref(), Some(OUT_OF_SIGHT));
    }

    #[test]
    fn mount_points_are_unescaped_from_mountinfo() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("self")).unwrap();
        let mounts = "40 22 8:16 / /my\\040data\\134x rw,relatime shared:1 - ext4 /dev/sdb rw\n\
                      41 22 8:16 /a /b rw - ext4 /dev/sdb rw\n";
        fs::write(root.path().join("self/mountinfo"), mounts).unwrap();
        let found = mount_points(root.path()).unwrap();
        assert_eq!(found, [Path::new("/my data\\x"), Path::new("/b")]);
        assert!(mount_points(&root.path().join("none")).is_err());
    }

    #[test]
    fn missing_device_cannot_be_checked_for_exclusive_use() {
        let root = tempfile::tempdir().unwrap();
        assert!(is_held(&root.path().join("none")).is_err());
    }
}
