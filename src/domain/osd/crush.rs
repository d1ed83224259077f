//! Places and weights of OSDs in CRUSH.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{OsdId, PgId};

/// A weight, reweight or primary affinity in Ceph's own 16.16 fixed point (1.0 = 65536), so that equal values
/// compare equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Weight(pub u32);

impl Weight {
    /// 1.0
    pub const ONE: Self = Self(0x1_0000);

    /// Returns the weight for the decimal number that Ceph prints in JSON.
    ///
    /// Numbers out of range become the nearest bound.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // clamped to the range of u32 first
    pub fn from_decimal(value: f64) -> Self {
        Self((value * 65536.0).round().clamp(0.0, f64::from(u32::MAX)) as u32)
    }

    /// Returns the weight that Ceph gives to a new OSD of this many bytes: 1.0 is a TiB.
    #[expect(clippy::cast_precision_loss, reason = "a weight has 16 bits behind the point")]
    pub fn by_size(bytes: u64) -> Self {
        Self::from_decimal(bytes as f64 / (1_u64 << 40) as f64)
    }

    /// Returns the weight that replaces this one on a device of this many bytes.
    ///
    /// It changes only if it differs by more than 5 %. A weight of zero was set by its owner and stays.
    #[must_use]
    pub fn following(self, bytes: u64) -> Self {
        let by_size = Self::by_size(bytes);
        let is_far = u64::from(self.0.abs_diff(by_size.0)) * 20 > u64::from(self.0);
        if self.0 > 0 && is_far { by_size } else { self }
    }

    /// Returns the decimal number, as Ceph's commands take it.
    pub fn as_decimal(self) -> f64 {
        f64::from(self.0) / 65536.0
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.5}", self.as_decimal())
    }
}

/// An OSD's place in CRUSH: `osd destroy` keeps it, and a purge loses it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CrushItem {
    /// Bucket type to bucket name, from the root down: `root=default`, `host=h1`.
    pub location: BTreeMap<String, String>,
    /// CRUSH weight.
    pub weight: Weight,
    /// Device class (`hdd`, `ssd`, `nvme`, own ones), if there is one.
    pub device_class: Option<String>,
}

impl CrushItem {
    /// Returns the name of the host bucket that the item is below; `None` if there is none.
    pub fn host(&self) -> Option<&String> {
        self.location.get("host")
    }
}

/// One entry of `pg_upmap_items`: in this PG, each first OSD is replaced by the second.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Upmap {
    /// PG of the entry.
    pub pg: PgId,
    /// Pairs (from, to).
    pub mappings: Vec<(OsdId, OsdId)>,
}

/// Format of `ceph osd pg-upmap-items`: `1.a 2 5`.
impl fmt::Display for Upmap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.pg)?;
        self.mappings.iter().try_for_each(|(from, to)| write!(f, " {} {}", from.0, to.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crush_weight_survives_conversion_to_decimal_and_back() {
        assert_eq!(Weight::from_decimal(0.899_993_896_484_375).0, 58982);
        assert_eq!(Weight::from_decimal(Weight(58982).as_decimal()), Weight(58982));
        assert_eq!(Weight::from_decimal(-1.0), Weight(0));
    }

    #[test]
    fn crush_weight_follows_the_size_only_beyond_five_percent() {
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
}
