//! The names under `/dev/disk` that udev gives to devices: by-id, by-path, by-partuuid ...

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Prefixes of names under by-id that udev derives from a disk's content.
///
/// They change with a wipe, so they do not identify a disk.
const FROM_CONTENT: [&str; 3] = ["lvm-pv-uuid-", "md-uuid-", "md-name-"];

/// All links, with their targets.
#[derive(Debug, Default)]
pub(crate) struct Links(Vec<Link>);

#[derive(Debug)]
struct Link {
    /// `by-id`
    folder: String,
    name: String,
    path: PathBuf,
    target: PathBuf,
}

impl Links {
    /// Reads the links below `dev`.
    ///
    /// Skips links whose target does not exist.
    pub(crate) fn read(dev: &Path) -> Self {
        let mut all = Vec::new();
        for (folder, path) in children(&dev.join("disk")) {
            for (name, path) in children(&path) {
                if let Ok(target) = path.canonicalize() {
                    all.push(Link { folder: folder.clone(), name, path, target });
                }
            }
        }
        Self(all)
    }

    /// Returns every link that leads to a device, as full paths.
    pub(crate) fn of(&self, node: &Path) -> BTreeSet<String> {
        self.leading_to(node).map(|link| link.path.display().to_string()).collect()
    }

    /// Returns the names under by-id that identify a device, without the folder.
    pub(crate) fn by_id(&self, node: &Path) -> BTreeSet<String> {
        let by_id = self.leading_to(node).filter(|link| link.folder == "by-id");
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
        let by_path = self.leading_to(node).filter(|link| link.folder == "by-path");
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
        for node in ["sda", "sda1", "vda"] {
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
        let links = Links::read(&dev);
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
