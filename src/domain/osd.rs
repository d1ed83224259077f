//! The nouns: ids, fsids, weights, CRUSH places, layouts. Parsed on construction, so that a value is right by being there.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Number of an OSD in the osdmap; shown to people as `osd.12`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OsdId(pub u32);

impl fmt::Display for OsdId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "osd.{}", self.0)
    }
}

/// What was given is no OSD id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an OSD: write it as osd.12 or 12")]
pub struct NotAnOsd(pub String);

impl FromStr for OsdId {
    type Err = NotAnOsd;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix("osd.").unwrap_or(text);
        // `parse` takes a leading plus sign; an OSD id has none.
        match digits.parse() {
            Ok(id) if digits.bytes().all(|b| b.is_ascii_digit()) => Ok(Self(id)),
            Ok(_) | Err(_) => Err(NotAnOsd(text.to_owned())),
        }
    }
}

/// What was given is no usable fsid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an fsid (a UUID that is not all zeros)")]
pub struct NotAnFsid(pub String);

macro_rules! fsid {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Uuid);

        impl $name {
            /// Takes a UUID; the nil one means "none" in the osdmap and is refused.
            pub fn new(uuid: Uuid) -> Option<Self> {
                (!uuid.is_nil()).then_some(Self(uuid))
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }
        impl FromStr for $name {
            type Err = NotAnFsid;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text.trim()).ok().and_then(Self::new).ok_or_else(|| NotAnFsid(text.to_owned()))
            }
        }
        impl TryFrom<String> for $name {
            type Error = NotAnFsid;
            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }
        impl From<$name> for String {
            fn from(fsid: $name) -> Self {
                fsid.to_string()
            }
        }
    };
}

fsid! {
    /// The OSD's own uuid: changes when it is prepared again. In the osdmap `uuid`, on the disk `osd_uuid`; all zeros after `osd destroy`.
    OsdFsid
}
fsid! {
    /// The cluster's fsid (`ceph fsid`).
    ClusterFsid
}

/// Name of a Kubernetes node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeName(pub String);

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Epoch of the osdmap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Epoch(pub u64);

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "e{}", self.0)
    }
}

/// A placement group, as Ceph prints it: `2.1f`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PgId(pub String);

impl fmt::Display for PgId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A weight, reweight or primary affinity in Ceph's own 16.16 fixed point (1.0 = 65536), so that equal is equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Weight(pub u32);

impl Weight {
    /// 1.0
    pub const ONE: Self = Self(0x1_0000);

    /// From the decimal number that Ceph prints in JSON; negative and absurd numbers become the nearest bound.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // clamped to the range of u32 first
    pub fn from_decimal(value: f64) -> Self {
        Self((value * 65536.0).round().clamp(0.0, f64::from(u32::MAX)) as u32)
    }

    /// As Ceph weighs a new OSD, by its bytes: 1.0 is a TiB.
    #[expect(clippy::cast_precision_loss, reason = "a weight has 16 bits behind the point")]
    pub fn by_size(bytes: u64) -> Self {
        Self::from_decimal(bytes as f64 / (1_u64 << 40) as f64)
    }

    /// What takes the place of this weight on a device of so many bytes: another one only where it differs by more than 5 %. What
    /// weighs nothing was made so by its owner.
    #[must_use]
    pub fn following(self, bytes: u64) -> Self {
        let by_size = Self::by_size(bytes);
        let is_far = u64::from(self.0.abs_diff(by_size.0)) * 20 > u64::from(self.0);
        if self.0 > 0 && is_far { by_size } else { self }
    }

    /// The decimal number, as Ceph's commands take it.
    pub fn as_decimal(self) -> f64 {
        f64::from(self.0) / 65536.0
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.5}", self.as_decimal())
    }
}

/// An OSD's place in CRUSH: what `osd destroy` keeps and a purge loses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CrushItem {
    /// Bucket type to bucket name, from the root down: `root=default`, `host=h1`.
    pub location: BTreeMap<String, String>,
    /// CRUSH weight.
    pub weight: Weight,
    /// Device class (`hdd`, `ssd`, `nvme`, own ones), where there is one.
    pub device_class: Option<String>,
}

/// One entry of `pg_upmap_items`: in this PG, each first OSD is replaced by the second.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Upmap {
    /// The PG.
    pub pg: PgId,
    /// Pairs (from, to).
    pub mappings: Vec<(OsdId, OsdId)>,
}

/// As `ceph osd pg-upmap-items` takes it: `1.a 2 5`.
impl fmt::Display for Upmap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.pg)?;
        self.mappings.iter().try_for_each(|(from, to)| write!(f, " {} {}", from.0, to.0))
    }
}

/// Name of an object store as `ceph osd metadata` says it in `osd_objectstore`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ObjectStore(pub String);

impl ObjectStore {
    /// The default store since Luminous.
    pub fn bluestore() -> Self {
        Self("bluestore".to_owned())
    }
    /// Files in a local file system; removed in Ceph 18 (Reef).
    pub fn is_filestore(&self) -> bool {
        self.0 == "filestore"
    }
}

impl fmt::Display for ObjectStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How ceph-volume lays the OSD on its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// `ceph-volume raw`: the device itself carries the store.
    Raw,
    /// `ceph-volume lvm`: a logical volume carries it.
    Lvm,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Raw => "raw",
            Self::Lvm => "lvm",
        })
    }
}

/// In which way an OSD was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Filestore in a directory of the host's file system (Rook 1.2's `directories`).
    FilestoreDirectory,
    /// Filestore on a partition: ceph-disk's data and journal, or Rook 1.2's `ROOK-OSD<id>-FS-DATA`.
    FilestorePartition,
    /// Filestore on a logical volume (`ceph-volume lvm prepare --filestore`).
    FilestoreLvm,
    /// BlueStore in files of a directory (Rook 1.2's `directories`).
    BluestoreDirectory,
    /// BlueStore on ceph-disk's partitions, or on Rook 1.2's (`ROOK-OSD<id>-BLOCK`).
    BluestorePartition,
    /// BlueStore on a whole device or partition, made without ceph-volume.
    BluestoreByHand,
    /// `ceph-volume raw`
    Raw,
    /// `ceph-volume raw --dmcrypt`: taken over, never made, since no mon keeps its key.
    RawCrypt,
    /// `ceph-volume lvm`
    Lvm,
    /// `ceph-volume lvm --dmcrypt`
    LvmCrypt,
}

impl Kind {
    /// Made in a way that is no longer made: migrated whatever is wanted.
    pub fn is_legacy(self) -> bool {
        match self {
            Self::FilestoreDirectory
            | Self::FilestorePartition
            | Self::FilestoreLvm
            | Self::BluestoreDirectory
            | Self::BluestorePartition
            | Self::BluestoreByHand => true,
            Self::Raw | Self::RawCrypt | Self::Lvm | Self::LvmCrypt => false,
        }
    }

    /// It has no device of its own: its id is made anew on another.
    pub fn in_directory(self) -> bool {
        matches!(self, Self::FilestoreDirectory | Self::BluestoreDirectory)
    }

    /// Its data is encrypted at rest.
    pub fn is_encrypted(self) -> bool {
        matches!(self, Self::RawCrypt | Self::LvmCrypt)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FilestoreDirectory => "Filestore in a directory",
            Self::FilestorePartition => "Filestore on partitions",
            Self::FilestoreLvm => "Filestore on LVM",
            Self::BluestoreDirectory => "BlueStore in a directory",
            Self::BluestorePartition => "BlueStore on partitions of ceph-disk or Rook 1.2",
            Self::BluestoreByHand => "BlueStore made by hand",
            Self::Raw => "BlueStore raw",
            Self::RawCrypt => "BlueStore raw, encrypted",
            Self::Lvm => "BlueStore on LVM",
            Self::LvmCrypt => "BlueStore on LVM, encrypted",
        })
    }
}

/// What a part of an OSD is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Filestore's files, or the small file system beside BlueStore that says who the OSD is.
    Data,
    /// BlueStore's main device.
    Block,
    /// BlueStore's database.
    Db,
    /// BlueStore's write-ahead log.
    Wal,
    /// Filestore's journal.
    Journal,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Data => "data",
            Self::Block => "block",
            Self::Db => "block.db",
            Self::Wal => "block.wal",
            Self::Journal => "journal",
        })
    }
}

/// How an OSD is, or is to be, laid on its devices.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Layout {
    /// Object store.
    pub store: ObjectStore,
    /// ceph-volume's mode.
    pub mode: Mode,
    /// Data encrypted at rest by dm-crypt.
    pub encrypted: bool,
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.store, self.mode, if self.encrypted { ", encrypted" } else { "" })
    }
}

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

    #[test]
    fn an_osd_is_written_both_ways_and_nothing_else() {
        assert_eq!("osd.12".parse(), Ok(OsdId(12)));
        assert_eq!("12".parse(), Ok(OsdId(12)));
        for bad in ["", "osd.", "osd.-1", "+1", "osd.1x", "mon.1"] {
            assert_eq!(bad.parse::<OsdId>(), Err(NotAnOsd(bad.to_owned())), "{bad}");
        }
    }

    #[test]
    fn the_nil_uuid_is_no_fsid() {
        assert!("00000000-0000-0000-0000-000000000000".parse::<OsdFsid>().is_err());
        assert!(serde_json::from_str::<OsdFsid>("\"00000000-0000-0000-0000-000000000000\"").is_err());
    }

    #[test]
    fn weights_survive_the_way_through_decimals() {
        assert_eq!(Weight::from_decimal(0.899_993_896_484_375).0, 58982);
        assert_eq!(Weight::from_decimal(Weight(58982).as_decimal()), Weight(58982));
        assert_eq!(Weight::from_decimal(-1.0), Weight(0));
    }

    #[test]
    fn a_weight_follows_the_size_only_where_it_differs_by_more_than_a_twentieth() {
        const TIB: u64 = 1 << 40;
        assert_eq!(Weight::by_size(TIB / 2), Weight(0x8000));
        for (weight, bytes, follows) in [
            (Weight::ONE, TIB, false),
            // The weight of 5 % more, rounded up, is a bit more than 5 % more.
            (Weight::ONE, TIB / 20 * 21 - (TIB >> 15), false),
            (Weight::ONE, TIB / 20 * 21 + (TIB >> 15), true),
            (Weight::ONE, TIB / 20 * 19 - (TIB >> 15), true),
            (Weight(0), TIB, false),
        ] {
            let expected = if follows { Weight::by_size(bytes) } else { weight };
            assert_eq!(weight.following(bytes), expected, "{weight} {bytes}");
        }
    }

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
