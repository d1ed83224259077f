//! The node's disks as the kernel shows them: identity, size, partitions, holders. Reads no content.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::domain::osd::DeviceIdentity;
use crate::node::disk::kubelet;
use crate::node::disk::links::Links;
use crate::node::error::NodeError;
use crate::node::host::Host;
use crate::node::tools::command::{QUICK, blocking};

/// Smallest disk that ceph-volume takes (its inventory: `Insufficient space (<5GB)`).
pub(crate) const MIN_BYTES: u64 = 5_368_709_120;

/// Unit of the kernel's sizes, whatever the disk's own sectors are.
pub(crate) const SECTOR_BYTES: u64 = 512;
/// Number that marks a file, which is no device.
pub(crate) const NO_DEVICE: (u32, u32) = (0, 0);
/// Prefixes of kernel names that are never an OSD's disk: memory, optical and floppy drives, remote volumes,
/// and device-mapper, which lies on disks.
const NO_DISKS: [&str; 7] = ["ram", "zram", "sr", "fd", "dm-", "nbd", "rbd"];

/// A whole disk, or a partition that is to carry an OSD of its own (`parts`), which then counts as a disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Disk {
    /// Current name in the kernel: `sdb`. It is for messages and paths, never to recognise the disk.
    pub(crate) name: String,
    /// Device node in /dev.
    pub(crate) node: PathBuf,
    /// Major and minor number.
    pub(crate) number: (u32, u32),
    pub(crate) identity: DeviceIdentity,
    /// All links below /dev that lead to the disk, as full paths.
    pub(crate) links: BTreeSet<String>,
    /// Disk that this one is a partition of.
    pub(crate) parent: Option<String>,
    pub(crate) rotational: bool,
    pub(crate) read_only: bool,
    /// Kernel devices that lie on the disk or on its partitions (dm, md).
    pub(crate) holders: Vec<String>,
    /// The partitions that the kernel knows, by number.
    pub(crate) partitions: Vec<Partition>,
}

/// A partition as the kernel knows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Partition {
    pub(crate) index: u32,
    pub(crate) name: String,
    pub(crate) node: PathBuf,
    /// In units of 512 bytes.
    pub(crate) start: u64,
    /// In units of 512 bytes.
    pub(crate) sectors: u64,
}

/// Reason for which a device of a PersistentVolume is not inspected. It is no fault.
const MAPPED: &str = "(mapped by the kubelet for PersistentVolume ";

/// Why a disk is not inspected that no program of the node can use: udev makes no node for it.
const NO_NODE: &str = "(it has no node in /dev)";

/// Returns whether a device that can't be inspected is one that nobody expects to be.
pub(crate) fn is_no_fault(unseen: &str) -> bool {
    unseen.contains(MAPPED) || unseen.contains(NO_NODE)
}

/// Result of a listing.
#[derive(Debug, Default)]
pub(crate) struct Disks {
    pub(crate) disks: Vec<Disk>,
    /// Kernel names, with the reasons why the devices can't be inspected.
    pub(crate) unseen: Vec<String>,
}

/// Lists the node's whole disks.
///
/// `sys_block` is `/sys/block`, `dev` is `/dev`.
pub(crate) fn list(sys_block: &Path, dev: &Path) -> Result<Disks, NodeError> {
    let links = Links::read(dev);
    let mut names: Vec<String> = fs::read_dir(sys_block)
        .map_err(NodeError::io("list", sys_block))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| !NO_DISKS.iter().any(|no| name.starts_with(no)))
        .collect();
    names.sort();
    let mut found = Disks::default();
    for name in names {
        let sys = sys_block.join(&name);
        let size_bytes = number(&sys.join("size")).unwrap_or(0).saturating_mul(SECTOR_BYTES);
        let is_hidden = text(&sys.join("hidden")).is_some_and(|hidden| hidden == "1");
        if size_bytes == 0 || is_hidden {
            continue; // an empty card reader, an unused loop, one of several paths to an NVMe
        }
        if let Some(volume) = kubelet::volume_of(&sys) {
            found.unseen.push(format!("{name} {MAPPED}{volume})"));
            continue;
        }
        let node = dev.join(name.replace('!', "/"));
        match same_device(&sys, &node) {
            Err(_) if !node.exists() => found.unseen.push(format!("{name} {NO_NODE}")),
            Err(why) => found.unseen.push(format!("{name} ({why})")),
            Ok(number) => found.disks.push(whole(&sys, &name, number, node, &links, dev)),
        }
    }
    Ok(found)
}

/// Returns the whole device that a folder of /sys describes, with that number and node.
pub(crate) fn whole(
    sys: &Path,
    name: &str,
    number: (u32, u32),
    node: PathBuf,
    links: &Links,
    dev: &Path,
) -> Disk {
    // The links of udev lead to the device's own node in /dev, whatever node is used here.
    let own = dev.join(name.replace('!', "/"));
    Disk {
        identity: DeviceIdentity {
            by_id: links.by_id(&own),
            by_path: links.by_path(&own),
            serial: serial(sys),
            wwn: wwn(sys),
            size_bytes: self::number(&sys.join("size")).unwrap_or(0).saturating_mul(SECTOR_BYTES),
        },
        links: links.of(&own),
        parent: None,
        rotational: is_rotational(sys),
        read_only: is_read_only(sys),
        holders: holders(sys),
        partitions: partitions(sys, name, dev),
        name: name.to_owned(),
        node,
        number,
    }
}

/// Returns name and number of the whole device with the number `wanted`, or with a partition that has it.
pub(crate) fn with_number(sys_block: &Path, wanted: (u32, u32)) -> Option<(String, (u32, u32))> {
    let number_of = |sys: &Path| -> Option<(u32, u32)> {
        let (major, minor) = text(&sys.join("dev"))?.split_once(':').map(|(a, b)| (a.parse(), b.parse()))?;
        Some((major.ok()?, minor.ok()?))
    };
    let names = fs::read_dir(sys_block).into_iter().flatten();
    let mut names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.find_map(|name| {
        let sys = sys_block.join(&name);
        let number = number_of(&sys)?;
        let mut parts = partitions(&sys, &name, Path::new("")).into_iter();
        let is_it = number == wanted || parts.any(|part| number_of(&sys.join(part.name)) == Some(wanted));
        is_it.then_some((name, number))
    })
}

impl Disk {
    /// Returns whether this is the file for tests, which is no device.
    pub(crate) fn is_file(&self) -> bool {
        self.number == NO_DEVICE
    }

    /// Returns the disk's text for a message.
    pub(crate) fn described(&self) -> String {
        match self.identity.by_id.first().filter(|_| !self.is_file()) {
            Some(id) => format!("/dev/{} ({id})", self.name),
            None => self.node.display().to_string(),
        }
    }

    /// Returns the size of a logical block, the unit of a partition table.
    ///
    /// A file has no such size; tools then use 512 bytes.
    pub(crate) fn block_bytes(&self, sys_block: &Path) -> u64 {
        let whole = sys_block.join(self.parent.as_ref().unwrap_or(&self.name));
        number(&whole.join("queue/logical_block_size")).unwrap_or(SECTOR_BYTES)
    }

    /// Returns the disk as the kernel shows it now: everything that changes without a change of its bytes.
    pub(crate) fn again(&self, sys_block: &Path, dev: &Path) -> Result<Self, NodeError> {
        let sys = match &self.parent {
            Some(parent) => sys_block.join(parent).join(&self.name),
            None => sys_block.join(&self.name),
        };
        let became =
            |why: String| NodeError::NotDone(format!("{} changed meanwhile: {why}", self.described()));
        let number = same_device(&sys, &self.node).map_err(became)?;
        let size = self::number(&sys.join("size")).unwrap_or(0).saturating_mul(SECTOR_BYTES);
        if number != self.number || size != self.identity.size_bytes {
            return Err(became(format!("it is {}:{} of {size} bytes", number.0, number.1)));
        }
        let partitions = if self.parent.is_none() { partitions(&sys, &self.name, dev) } else { Vec::new() };
        Ok(Self { read_only: is_read_only(&sys), holders: holders(&sys), partitions, ..self.clone() })
    }
}

/// Returns the partitions of a disk that the kernel knows now.
pub(crate) fn partitions(sys: &Path, disk: &str, dev: &Path) -> Vec<Partition> {
    let mut all: Vec<Partition> = fs::read_dir(sys)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with(disk))
        .filter_map(|name| {
            let sys = sys.join(&name);
            Some(Partition {
                index: u32::try_from(number(&sys.join("partition"))?).ok()?,
                start: number(&sys.join("start"))?,
                sectors: number(&sys.join("size"))?,
                node: dev.join(name.replace('!', "/")),
                name,
            })
        })
        .collect();
    all.sort();
    all
}

/// Returns the number of a block device by its node, or why there is none.
pub(crate) fn number_of(node: &Path) -> Result<(u32, u32), String> {
    let meta = fs::metadata(node).map_err(|error| format!("{}: {error}", node.display()))?;
    if !meta.file_type().is_block_device() {
        return Err(format!("{} is not a block device", node.display()));
    }
    Ok((rustix::fs::major(meta.rdev()), rustix::fs::minor(meta.rdev())))
}

/// Returns the device's number if the node in /dev leads to the device that /sys describes, or why it does
/// not.
pub(crate) fn same_device(sys: &Path, node: &Path) -> Result<(u32, u32), String> {
    let here = number_of(node)?;
    let there = text(&sys.join("dev")).unwrap_or_default();
    if format!("{}:{}", here.0, here.1) == there {
        Ok(here)
    } else {
        Err(format!("{} is {}:{}, but the kernel reports {there}", node.display(), here.0, here.1))
    }
}

pub(crate) fn is_read_only(sys: &Path) -> bool {
    text(&sys.join("ro")).is_some_and(|ro| ro == "1")
}

/// Returns whether a disk rotates.
///
/// As in ceph-volume, a disk without an answer counts as rotating.
pub(crate) fn is_rotational(sys: &Path) -> bool {
    text(&sys.join("queue/rotational")).is_none_or(|answer| answer != "0")
}

pub(crate) fn holders(sys: &Path) -> Vec<String> {
    let of = |folder: PathBuf| {
        fs::read_dir(folder.join("holders"))
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
    };
    let parts = fs::read_dir(sys).into_iter().flatten().filter_map(Result::ok).map(|entry| entry.path());
    let all: BTreeSet<String> =
        of(sys.to_owned()).chain(parts.filter(|part| part.join("partition").exists()).flat_map(of)).collect();
    all.into_iter().collect()
}

/// Returns the serial number. virtio shows it in the disk's folder, NVMe in `device`, SCSI and SATA in vital
/// product data page 0x80.
fn serial(sys: &Path) -> Option<String> {
    text(&sys.join("serial")).or_else(|| text(&sys.join("device/serial"))).or_else(|| {
        let page = fs::read(sys.join("device/vpd_pg80")).ok()?;
        let length = usize::from(u16::from_be_bytes(page.get(2..4)?.try_into().ok()?));
        filled(&String::from_utf8_lossy(page.get(4..)?.get(..length)?))
    })
}

/// Returns the world wide name; for a device of device-mapper its uuid, which LVM sets to that of the volume.
fn wwn(sys: &Path) -> Option<String> {
    let mapped = || text(&sys.join("dm/uuid")).map(|uuid| format!("dm-uuid-{uuid}"));
    text(&sys.join("wwid")).or_else(|| text(&sys.join("device/wwid"))).or_else(mapped)
}

fn text(path: &Path) -> Option<String> {
    filled(&fs::read_to_string(path).ok()?)
}

/// Text that drivers print for "none" (User-Mode Linux does).
///
/// It is the same on every disk, so it identifies none.
const NONE: &str = "(null)";

fn filled(text: &str) -> Option<String> {
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    (!text.is_empty() && text != NONE).then(|| text.to_owned())
}

fn number(path: &Path) -> Option<u64> {
    text(path)?.parse().ok()
}

/// Lists the whole disks of this node.
pub(crate) async fn of_host(host: &Host) -> Result<Disks, NodeError> {
    let (sys_block, dev) = (host.sys_block.clone(), host.dev.clone());
    blocking("list", sys_block.display().to_string(), QUICK, move || list(&sys_block, &dev)).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(path: PathBuf, bytes: &[u8]) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    #[test]
    fn disk_serial_and_wwn_are_read_for_each_bus() {
        let root = tempfile::tempdir().unwrap();
        let scsi = root.path().join("sda");
        put(scsi.join("device/vpd_pg80"), b"\0\x80\0\x08  WD-123 tail");
        put(scsi.join("device/wwid"), b"naa.50014ee2b5e7c5d4\n");
        assert_eq!(serial(&scsi).as_deref(), Some("WD-123"));
        assert_eq!(wwn(&scsi).as_deref(), Some("naa.50014ee2b5e7c5d4"));
        let nvme = root.path().join("nvme0n1");
        put(nvme.join("device/serial"), b"S3X  \n");
        put(nvme.join("wwid"), b"eui.0025\n");
        assert_eq!((serial(&nvme).as_deref(), wwn(&nvme).as_deref()), (Some("S3X"), Some("eui.0025")));
        let virtio = root.path().join("vda");
        put(virtio.join("serial"), b"");
        assert_eq!((serial(&virtio), wwn(&virtio)), (None, None));
        put(scsi.join("device/vpd_pg80"), b"\0\x80\xff");
        assert_eq!(serial(&scsi), None, "a page cut short is no serial number");
        put(virtio.join("serial"), b"(null)\n");
        assert_eq!(serial(&virtio), None, "all disks without one would be the same");
    }

    #[test]
    fn partitions_and_holders_are_read_from_sysfs_of_the_disk() {
        let root = tempfile::tempdir().unwrap();
        let sys = root.path().join("nvme0n1");
        for (n, start) in [(10, 4096), (2, 2048)] {
            let part = sys.join(format!("nvme0n1p{n}"));
            put(part.join("partition"), format!("{n}\n").as_bytes());
            put(part.join("start"), format!("{start}\n").as_bytes());
            put(part.join("size"), b"2048\n");
            put(part.join("holders").join(format!("dm-{n}")), b"");
        }
        put(sys.join("holders/md0"), b"");
        put(sys.join("nvme0n1x/size"), b"1");
        let parts = partitions(&sys, "nvme0n1", Path::new("/dev"));
        assert_eq!(
            parts.iter().map(|part| (part.index, part.start)).collect::<Vec<_>>(),
            [(2, 2048), (10, 4096)]
        );
        assert_eq!(parts[0].node, Path::new("/dev/nvme0n1p2"));
        assert_eq!(holders(&sys), ["dm-10", "dm-2", "md0"]);
    }

    #[test]
    fn unusable_disk_is_listed_as_unseen_and_non_disks_are_omitted() {
        let root = tempfile::tempdir().unwrap();
        let (sys, dev) = (root.path().join("sys"), root.path().join("dev"));
        for (name, size) in [("sda", "100"), ("sdb", "100"), ("loop0", "0"), ("dm-0", "9"), ("zram0", "9")] {
            put(sys.join(name).join("size"), size.as_bytes());
        }
        put(dev.join("sdb"), b"a plain file");
        put(sys.join("loop1/size"), b"9");
        put(sys.join("loop1/loop/backing_file"), b"/var/lib/kubelet/x/volumeDevices/pv1/uid\n");
        put(sys.join("nvme0c0n1/size"), b"9");
        put(sys.join("nvme0c0n1/hidden"), b"1\n");
        let found = list(&sys, &dev).unwrap();
        assert!(found.disks.is_empty());
        assert_eq!(found.unseen.len(), 3, "{:?}", found.unseen);
        assert_eq!(found.unseen[0], "loop1 (mapped by the kubelet for PersistentVolume pv1)");
        assert_eq!(found.unseen[1], "sda (it has no node in /dev)");
        assert!(found.unseen[2].contains("not a block device"));
        assert_eq!(found.unseen.iter().filter(|what| is_no_fault(what)).count(), 2);
    }
}
