//! What people change of the cluster, by values and marks that tell it from what osd-migrate changes.

use crate::domain::osd::Weight;

/// CRUSH weight that a person gives an OSD.
pub const THEIR_WEIGHT: Weight = Weight(0x4000);

/// Value that a person gives the option `osd_max_backfills`.
pub const THEIR_BACKFILLS: &str = "5";

/// How a person left what osd-migrate changes for a while; none if no person touched it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ByPerson {
    /// Whether the flag `noscrub` is set.
    pub noscrub: Option<bool>,
    /// Whether the option `osd_max_backfills` is set.
    pub max_backfills: Option<bool>,
}
