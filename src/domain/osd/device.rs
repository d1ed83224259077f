//! Which device, whatever name it has today.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// Who a device is, however the kernel names it today. Kernel names (`/dev/sdb`) never count.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DeviceIdentity {
    /// Names under `/dev/disk/by-id` that lead to it, without the folder.
    pub by_id: BTreeSet<String>,
    /// Serial number, where the kernel or udev tells one.
    pub serial: Option<String>,
    /// World wide name, where there is one.
    pub wwn: Option<String>,
    /// Size of the whole disk in bytes.
    pub size_bytes: u64,
}

impl DeviceIdentity {
    /// Whether `seen` is this device: every trait that was known before and is known now must agree, the size always,
    /// and at least one of by-id, serial, wwn must be known where one was known before.
    pub fn is_same_as(&self, seen: &Self) -> bool {
        let known = |a: &Option<String>, b: &Option<String>| match (a, b) {
            (Some(a), Some(b)) => Some(a == b),
            (None, _) | (_, None) => None,
        };
        let by_id =
            (!self.by_id.is_empty() && !seen.by_id.is_empty()).then(|| !self.by_id.is_disjoint(&seen.by_id));
        let traits = [known(&self.serial, &seen.serial), known(&self.wwn, &seen.wwn), by_id];
        let named_before = self.serial.is_some() || self.wwn.is_some() || !self.by_id.is_empty();
        self.size_bytes == seen.size_bytes
            && traits.iter().all(|agrees| *agrees != Some(false))
            && (!named_before || traits.contains(&Some(true)))
    }

    /// It is a partition: its `wwn` is then the partition's own uuid, `partuuid-...`.
    pub fn is_partition(&self) -> bool {
        self.wwn.as_deref().is_some_and(|wwn| wwn.starts_with("partuuid-"))
    }

    /// The name to show to people: the first by-id name, else the serial.
    pub fn stable_name(&self) -> String {
        match (self.by_id.first(), &self.serial) {
            (Some(name), _) => format!("/dev/disk/by-id/{name}"),
            (None, Some(serial)) => format!("serial {serial}"),
            (None, None) => format!("unnamed disk of {} bytes", self.size_bytes),
        }
    }
}

/// A device that holds the database of new OSDs (`metadataDevice`), perhaps of several: each gets a volume of its own on it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DbDevice {
    /// Who it is.
    pub identity: DeviceIdentity,
    /// Size of the volume in MiB (`databaseSizeMB`); ceph-volume decides where none is declared.
    pub size_mib: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(by_id: &[&str], serial: Option<&str>, size_bytes: u64) -> DeviceIdentity {
        DeviceIdentity {
            by_id: by_id.iter().map(|s| (*s).to_owned()).collect(),
            serial: serial.map(str::to_owned),
            wwn: None,
            size_bytes,
        }
    }

    #[test]
    fn a_device_is_the_same_only_when_all_that_is_known_agrees() {
        let recorded = identity(&["ata-a", "wwn-1"], Some("S1"), 100);
        assert!(recorded.is_same_as(&identity(&["wwn-1"], Some("S1"), 100)));
        assert!(recorded.is_same_as(&identity(&[], Some("S1"), 100)));
        assert!(!recorded.is_same_as(&identity(&["wwn-1"], Some("S2"), 100)));
        assert!(!recorded.is_same_as(&identity(&["wwn-1"], Some("S1"), 101)));
        assert!(!recorded.is_same_as(&identity(&[], None, 100)), "nothing that names it is known any more");
        assert!(identity(&[], None, 7).is_same_as(&identity(&[], None, 7)));
    }
}
