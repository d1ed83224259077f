//! The names below `/dev` that udev gives to devices: in `/dev/disk` by-id, by-path, by-partuuid ..., and
//! where the owner's own rules put them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Folders of `/dev` with one link for each device, which the kernel's number names, or without links to
/// disks. udev's list of a device's links (`DEVLINKS`) has none of them.
const NOT_READ: [&str; 8] = ["block", "char", "cpu", "fd", "hugepages", "mqueue", "pts", "shm"];

/// Depth of the folders that are read: `/dev/disk/azure/scsi1/lun0` is at 4.
const DEPTH: u32 = 5;

/// Prefixes of names under by-id that udev derives from a disk's content.
///
/// They change with a wipe, so they do not identify a disk.
const FROM_CONTENT: [&str; 3] = ["lvm-pv-uuid-", "md-uuid-", "md-name-"];

/// All links, with their targets.
#[derive(Debug, Default)]
pub(crate) struct Links(Vec<Link>);

#[derive(Debug)]
struct Link {
    /// Folder below `/dev`: `disk/by-id`.
    folder: PathBuf,
    name: String,
    path: PathBuf,
    target: PathBuf,
}

impl Links {
    /// Reads the links below `dev`.
    ///
    /// Skips links whose target does not exist.
    pub(crate) fn read(dev: &Path) -> Self {
        let mut links = Self::default();
        links.read_folder(dev, Path::new(""), DEPTH);
        links
    }

    fn read_folder(&mut self, dev: &Path, folder: &Path, depth: u32) {
        for (name, path) in children(&dev.join(folder)) {
            let Ok(meta) = path.symlink_metadata() else { continue };
            let is_read = depth > 1 && (folder != Path::new("") || !NOT_READ.contains(&name.as_str()));
            if meta.is_dir() && is_read {
                self.read_folder(dev, &folder.join(&name), depth - 1);
            } else if meta.is_symlink()
                && let Ok(target) = path.canonicalize()
            {
                self.0.push(Link { folder: folder.to_owned(), name, path, target });
            }
        }
    }

    /// Returns every link that leads to a device, as full paths.
    pub(crate) fn of(&self, node: &Path) -> BTreeSet<String> {
        self.leading_to(node).map(|link| link.path.display().to_string()).collect()
    }

    /// Returns the names under by-id that identify a device, without the folder.
    pub(crate) fn by_id(&self, node: &Path) -> BTreeSet<String> {
        let by_id = self.leading_to(node).filter(|link| link.folder == Path::new("disk/by-id"));
        by_id
            .filter(|link| !FROM_CONTENT.iter().any(|no| link.name.starts_with(no)))
            .map(|link| link.name.clone())
            .collect()
    }

    /// Returns the names under by-path of a device that has none under by-id, without the folder.
    pub(crate) fn by_path(&self, node: &Path) -> BTreeSet<String> {
        if !self.by_id(node).is_empty() {
            return BTreeSet::new();
        }
        let by_path = self.leading_to(node).filter(|link| link.folder == Path::new("disk/by-path"));
        by_path.map(|link| link.name.clone()).collect()
    }

    fn leading_to(&self, node: &Path) -> impl Iterator<Item = &Link> {
        self.0.iter().filter(move |link| link.target == node)
    }
}

fn children(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path()))).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn device_links_are_all_listed_but_only_lasting_ones_identify() {
        let root = tempfile::tempdir().unwrap();
        let dev = root.path().canonicalize().unwrap();
        for folder in ["by-id", "by-path", "by-uuid"] {
            fs::create_dir_all(dev.join("disk").join(folder)).unwrap();
        }
        for node in ["sda", "sda1", "sdb", "vda"] {
            fs::write(dev.join(node), "").unwrap();
        }
        for (link, to) in [
            ("by-id/lvm-pv-uuid-x", "sda"),
            ("by-id/ata-A", "sda"),
            ("by-id/wwn-0x5", "sda"),
            ("by-id/ata-A-part1", "sda1"),
            ("by-id/ata-gone", "sdz"),
            ("by-path/pci-0", "sda"),
            ("by-path/pci-1", "vda"),
            ("by-uuid/1234", "sda"),
        ] {
            symlink(Path::new("../..").join(to), dev.join("disk").join(link)).unwrap();
        }
        for (link, to) in [("osd/slots/1", "../../sdb"), ("slot1", "sdb"), ("block/8:16", "../sdb")] {
            let link = dev.join(link);
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(to, link).unwrap();
        }
        let links = Links::read(&dev);
        let own = ["osd/slots/1", "slot1"].map(|link| dev.join(link).display().to_string());
        assert_eq!(links.of(&dev.join("sdb")), own.into());
        let by_id = |name: &str| links.by_id(&dev.join(name)).into_iter().collect::<Vec<_>>();
        assert_eq!(by_id("sda"), ["ata-A", "wwn-0x5"]);
        assert_eq!(by_id("sda1"), ["ata-A-part1"]);
        assert_eq!(links.of(&dev.join("sda")).len(), 5);
        assert!(links.of(&dev.join("sda")).contains(&dev.join("disk/by-path/pci-0").display().to_string()));
        assert_eq!(by_id("sdz"), [""; 0]);
        assert_eq!(links.by_path(&dev.join("vda")), ["pci-1".to_owned()].into());
        assert_eq!(links.by_path(&dev.join("sda")), BTreeSet::new());
    }
}
