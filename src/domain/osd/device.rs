//! Identity of a device, independent of its current name.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Prefix of a partition's wwn: the partition's unique id in the table survives every wipe.
pub const PART_UUID: &str = "partuuid-";

/// Identity of a device, independent of its kernel name.
///
/// Kernel names (`/dev/sdb`) never count.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeviceIdentity {
    /// Names under `/dev/disk/by-id` that lead to the device, without the folder.
    pub by_id: BTreeSet<String>,
    /// Names under `/dev/disk/by-path`, for a device without a name by id: they name the place where it is
    /// plugged in, not the device itself.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub by_path: BTreeSet<String>,
    /// Serial number, if the kernel or udev reports one.
    pub serial: Option<String>,
    /// World wide name, if there is one.
    pub wwn: Option<String>,
    /// Size of the whole disk in bytes.
    pub size_bytes: u64,
}

impl DeviceIdentity {
    /// Returns the identity of no device: an OSD in a directory that is removed has no device of its own.
    pub fn none() -> Self {
        let (by_id, by_path) = (BTreeSet::new(), BTreeSet::new());
        Self { by_id, by_path, serial: None, wwn: None, size_bytes: 0 }
    }

    /// Returns whether `seen` is this device.
    ///
    /// Every trait that was known before and is known now must agree, and the size always. If one of by-id,
    /// serial and wwn was known before, at least one must be known now. For a device with none of them only
    /// the size is compared: its contents must prove it (`domain::proof`).
    pub fn is_same_as(&self, seen: &Self) -> bool {
        let known = |a: &Option<String>, b: &Option<String>| match (a, b) {
            (Some(a), Some(b)) => Some(a == b),
            (None, _) | (_, None) => None,
        };
        let by_id =
            (!self.by_id.is_empty() && !seen.by_id.is_empty()).then(|| !self.by_id.is_disjoint(&seen.by_id));
        let traits = [known(&self.serial, &seen.serial), known(&self.wwn, &seen.wwn), by_id];
        self.size_bytes == seen.size_bytes
            && traits.iter().all(|agrees| *agrees != Some(false))
            && (!self.is_named() || traits.contains(&Some(true)))
    }

    /// Returns whether `seen`, the device of a PVC, can be this device of the same PVC.
    ///
    /// A PersistentVolume that is attached again, perhaps to another node, gets another kernel name and
    /// another place, and its names under `/dev/disk` depend on the rules of udev there. So only a serial
    /// number or a wwn that is known of both must agree, and the volume may have grown, but not shrunk. PVC
    /// and PersistentVolume identify the device by their uids (`PvcSame`).
    pub fn is_same_volume_as(&self, seen: &Self) -> bool {
        let differs = |recorded: Option<&str>, seen: Option<&str>| match (recorded, seen) {
            (Some(recorded), Some(seen)) => recorded != seen,
            (None, _) | (_, None) => false,
        };
        let is_same_kind = kind_of_wwn(self.wwn.as_deref()) == kind_of_wwn(seen.wwn.as_deref());
        let wwn = |device: &'_ Self| device.wwn.clone().filter(|wwn| is_same_kind && !names_place(wwn));
        self.size_bytes <= seen.size_bytes
            && !differs(self.serial.as_deref(), seen.serial.as_deref())
            && !differs(wwn(self).as_deref(), wwn(seen).as_deref())
    }

    /// Returns whether anything except its size and its place distinguishes it from another device: virtual
    /// disks often have no serial number.
    pub fn is_named(&self) -> bool {
        self.serial.is_some() || self.wwn.is_some() || !self.by_id.is_empty()
    }

    /// Returns whether `seen` is plugged into the place of this device.
    ///
    /// Another disk may be there tomorrow.
    pub fn is_in_place_of(&self, seen: &Self) -> bool {
        !self.by_path.is_disjoint(&seen.by_path)
    }

    /// Returns the path that most likely leads to the device after a reboot too: by id, for a partition by
    /// its unique id, otherwise by path.
    pub fn stable_path(&self) -> Option<String> {
        let by_id = self.by_id.first().map(|name| format!("/dev/disk/by-id/{name}"));
        let part = self.wwn.as_deref().and_then(|wwn| wwn.strip_prefix(PART_UUID));
        let by_part = part.map(|uuid| format!("/dev/disk/by-partuuid/{uuid}"));
        by_id.or(by_part).or_else(|| Some(format!("/dev/disk/by-path/{}", self.by_path.first()?)))
    }

    /// Returns whether the device is a partition: its `wwn` is then the partition's own uuid, `partuuid-...`.
    pub fn is_partition(&self) -> bool {
        self.wwn.as_deref().is_some_and(|wwn| wwn.starts_with(PART_UUID))
    }

    /// Returns the name for people: the first by-id name, otherwise the serial, otherwise the place.
    pub fn stable_name(&self) -> String {
        match (self.by_id.first(), &self.serial, self.by_path.first()) {
            (Some(name), ..) => format!("/dev/disk/by-id/{name}"),
            (None, Some(serial), _) => format!("serial {serial}"),
            (None, None, Some(path)) => format!("/dev/disk/by-path/{path}"),
            (None, None, None) => format!("unnamed disk of {} bytes", self.size_bytes),
        }
    }
}

/// Writes every trait for people, as `serial S1, wwn naa.5, 4000787030016 bytes`.
impl fmt::Display for DeviceIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.by_id.iter().map(|name| format!("/dev/disk/by-id/{name}"));
        let places = self.by_path.iter().map(|path| format!("/dev/disk/by-path/{path}"));
        let serial = self.serial.iter().map(|serial| format!("serial {serial}"));
        let wwn = self.wwn.iter().map(|wwn| format!("wwn {wwn}"));
        for text in serial.chain(wwn).chain(names).chain(places) {
            write!(f, "{text}, ")?;
        }
        write!(f, "{} bytes", self.size_bytes)
    }
}

/// Returns the kind of a wwn: `naa.`, `eui.`, `dm-uuid-`, `partuuid-`.
///
/// A volume has another kind of wwn on a node that reaches it by multipath than on one that does not.
fn kind_of_wwn(wwn: Option<&str>) -> Option<&str> {
    wwn.and_then(|wwn| wwn.split(['.', '-']).next())
}

/// Returns whether a wwn names the place where a device is attached.
///
/// Of an NVMe namespace without an identifier of its own, the kernel composes it: vendor, serial number and
/// model of the controller, and the number of the namespace (Linux 4.6, commit 118472ab8532). Where all
/// volumes of a node are namespaces of one controller, the number is that of the attachment.
fn names_place(wwn: &str) -> bool {
    wwn.starts_with("nvme.")
}

/// Returns what Rook calls a disk's type in the label `device-type` of a raw OSD's Deployment
/// (pkg/util/sys/device.go, `GetDiskDeviceType`; pkg/operator/ceph/cluster/osd/labels.go, `getOSDLabels`;
/// main of August 2026).
pub fn device_type(rotational: bool, kernel_name: &str) -> &'static str {
    match (rotational, kernel_name.contains("nvme")) {
        (true, _) => "hdd",
        (false, true) => "nvme",
        (false, false) => "ssd",
    }
}

/// A device for the databases of new OSDs (`metadataDevice`), perhaps of several: each gets a volume of its
/// own on it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DbDevice {
    /// Identity of the device.
    pub identity: DeviceIdentity,
    /// Size of the volume in MiB (`databaseSizeMB`). If none is declared, ceph-volume decides.
    pub size_mib: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(by_id: &[&str], serial: Option<&str>, size_bytes: u64) -> DeviceIdentity {
        DeviceIdentity {
            by_id: by_id.iter().map(|s| (*s).to_owned()).collect(),
            by_path: BTreeSet::new(),
            serial: serial.map(str::to_owned),
            wwn: None,
            size_bytes,
        }
    }

    #[test]
    fn device_is_the_same_only_if_all_known_traits_agree() {
        let recorded = identity(&["ata-a", "wwn-1"], Some("S1"), 100);
        assert!(recorded.is_same_as(&identity(&["wwn-1"], Some("S1"), 100)));
        assert!(recorded.is_same_as(&identity(&[], Some("S1"), 100)));
        assert!(!recorded.is_same_as(&identity(&["wwn-1"], Some("S2"), 100)));
        assert!(!recorded.is_same_as(&identity(&["wwn-1"], Some("S1"), 101)));
        assert!(!recorded.is_same_as(&identity(&[], None, 100)), "nothing that names it is known any more");
        assert!(identity(&[], None, 7).is_same_as(&identity(&[], None, 7)));
    }

    #[test]
    fn device_is_printed_with_every_trait_and_its_size() {
        let named = DeviceIdentity { wwn: Some("naa.5".to_owned()), ..identity(&["ata-a"], Some("S1"), 100) };
        assert_eq!(named.to_string(), "serial S1, wwn naa.5, /dev/disk/by-id/ata-a, 100 bytes");
        assert_eq!(identity(&[], None, 7).to_string(), "7 bytes");
    }

    #[test]
    fn device_of_a_pvc_is_the_same_wherever_it_is_attached() {
        let at = |path: &str, serial: Option<&str>, wwn: Option<&str>| DeviceIdentity {
            by_path: [path.to_owned()].into(),
            wwn: wwn.map(str::to_owned),
            ..identity(&["scsi-0QEMU_a"], serial, 7)
        };
        let recorded = at("pci-4", Some("vol0a"), Some("naa.6a"));
        let elsewhere = DeviceIdentity { by_id: ["nvme-b".to_owned()].into(), ..at("pci-5", None, None) };
        assert!(recorded.is_same_volume_as(&elsewhere) && elsewhere.is_same_volume_as(&recorded));
        assert!(recorded.is_same_volume_as(&at("pci-5", Some("vol0a"), Some("naa.6a"))));
        for other in [at("pci-4", Some("vol0b"), None), at("pci-4", Some("vol0a"), Some("naa.6b"))] {
            assert!(!recorded.is_same_volume_as(&other), "{other:?}");
        }
        let of_size = |size_bytes: u64| DeviceIdentity { size_bytes, ..recorded.clone() };
        assert!(!recorded.is_same_volume_as(&of_size(6)));
        assert!(recorded.is_same_volume_as(&of_size(8)), "its PVC was resized");
        let nvme = |number: &str| at("pci-4", Some("S"), Some(&format!("nvme.1414-53-4d-{number}")));
        assert!(nvme("00000001").is_same_volume_as(&nvme("00000002")), "the number of the attachment");
        let multipath = at("pci-4", None, Some("dm-uuid-mpath-36a"));
        assert!(recorded.is_same_volume_as(&multipath), "another kind of wwn says nothing");
        assert!(!multipath.is_same_volume_as(&at("pci-4", None, Some("dm-uuid-mpath-36b"))));
    }

    #[test]
    fn device_without_serial_is_found_by_path_but_not_identified() {
        let at = |path: &str| DeviceIdentity { by_path: [path.to_owned()].into(), ..identity(&[], None, 7) };
        assert!(!at("pci-4").is_named() && identity(&[], Some("S"), 7).is_named());
        assert!(at("pci-4").is_same_as(&at("pci-5")), "what is on it decides");
        assert!(at("pci-4").is_in_place_of(&at("pci-4")) && !at("pci-4").is_in_place_of(&at("pci-5")));
        assert!(!identity(&[], None, 7).is_in_place_of(&identity(&[], None, 7)));
        assert_eq!(at("pci-4").stable_path().as_deref(), Some("/dev/disk/by-path/pci-4"));
        assert_eq!(at("pci-4").stable_name(), "/dev/disk/by-path/pci-4");
        assert_eq!(identity(&["ata-a"], None, 7).stable_path().as_deref(), Some("/dev/disk/by-id/ata-a"));
        let part = DeviceIdentity { wwn: Some("partuuid-u".to_owned()), ..at("pci-4-part1") };
        assert_eq!(part.stable_path().as_deref(), Some("/dev/disk/by-partuuid/u"));
        assert_eq!(identity(&[], None, 7).stable_path(), None);
    }
}
