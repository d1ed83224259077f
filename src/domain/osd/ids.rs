//! Ids, fsids, names and epochs.

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

/// Error: the input is not an OSD id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an OSD: write it as osd.12 or 12")]
pub struct NotAnOsd(pub String);

impl FromStr for OsdId {
    type Err = NotAnOsd;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix("osd.").unwrap_or(text);
        // `parse` accepts a leading plus sign; an OSD id has none.
        match digits.parse() {
            Ok(id) if digits.bytes().all(|b| b.is_ascii_digit()) => Ok(Self(id)),
            Ok(_) | Err(_) => Err(NotAnOsd(text.to_owned())),
        }
    }
}

/// OSDs as a person selects them: one, or a range of numbers, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OsdRange {
    first: OsdId,
    last: OsdId,
}

/// Largest number of OSDs in a range: larger than any cluster, and small enough for a set.
const LARGEST_RANGE: u32 = 100_000;

/// Error: the input is neither an OSD nor a range of OSDs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotARange {
    /// An end of the range is not an OSD.
    #[error(transparent)]
    End(#[from] NotAnOsd),
    /// The range ends before it begins, or is larger than a cluster can be.
    #[error("the range {0} to {1} has no OSD or more than {LARGEST_RANGE}: write it as osd.1-osd.5")]
    Size(OsdId, OsdId),
}

impl OsdRange {
    /// Returns the OSDs of the range, whether they exist or not.
    pub fn osds(&self) -> impl Iterator<Item = OsdId> + use<> {
        (self.first.0..=self.last.0).map(OsdId)
    }
}

impl FromStr for OsdRange {
    type Err = NotARange;

    fn from_str(text: &str) -> Result<Self, NotARange> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last): (OsdId, OsdId) = (first.parse()?, last.parse()?);
        let size = last.0.checked_sub(first.0).filter(|size| *size < LARGEST_RANGE);
        size.map(|_| Self { first, last }).ok_or(NotARange::Size(first, last))
    }
}

/// Error: the input is not a usable fsid.
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
            /// Returns the fsid of a UUID; `None` for the nil UUID, which stands for "none" in the osdmap.
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
    /// The OSD's own uuid, which changes when the OSD is prepared again.
    ///
    /// In the osdmap it is `uuid`, on the disk `osd_uuid`; all zeros after `osd destroy`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn osd_id_is_parsed_as_name_or_number_and_nothing_else() {
        assert_eq!("osd.12".parse(), Ok(OsdId(12)));
        assert_eq!("12".parse(), Ok(OsdId(12)));
        for bad in ["", "osd.", "osd.-1", "+1", "osd.1x", "mon.1"] {
            assert_eq!(bad.parse::<OsdId>(), Err(NotAnOsd(bad.to_owned())), "{bad}");
        }
    }

    #[test]
    fn osd_fsid_is_never_the_nil_uuid() {
        assert!("00000000-0000-0000-0000-000000000000".parse::<OsdFsid>().is_err());
        assert!(serde_json::from_str::<OsdFsid>("\"00000000-0000-0000-0000-000000000000\"").is_err());
    }
}
