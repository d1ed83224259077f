//! Ids, names and times of the small world.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use osd_migrate::domain::osd::{ClusterFsid, NodeName, OsdFsid, OsdId, PgId};

/// OSDs of the small world.
pub(crate) const OSDS: u32 = 6;
/// PGs of the small world's pool.
pub(crate) const PGS: u32 = 8;
/// The only pool of the small world.
pub(crate) const POOL: u64 = 1;
/// The BlueStore OSD created by hand.
pub(crate) const BY_HAND: OsdId = OsdId(0);
/// The Filestore OSD.
pub(crate) const FILESTORE: OsdId = OsdId(2);

/// Rook's operator, which a person scaled to 0.
pub(crate) const OPERATOR: &str = "rook-ceph/rook-ceph-operator";

pub(crate) const GIB: u64 = 1 << 30;

pub(crate) fn cluster() -> ClusterFsid {
    ClusterFsid::new(Uuid::from_u128(0xc1)).unwrap()
}

/// Returns the fsid that an OSD has at first.
pub(crate) fn old(osd: OsdId) -> OsdFsid {
    OsdFsid::new(Uuid::from_u128((0x01d0_0000 + u128::from(osd.0)) << 96 | 1)).unwrap()
}

/// Returns the fsid that ceph-volume generates for an OSD in its n-th attempt.
pub(crate) fn issued_fsid(osd: OsdId, n: u32) -> OsdFsid {
    OsdFsid::new(Uuid::from_u128((0xc1a1_0000 + u128::from(osd.0)) << 96 | u128::from(n))).unwrap()
}

/// Returns the fsid of an OSD that osd-migrate did not create.
pub(crate) fn foreign() -> OsdFsid {
    OsdFsid::new(Uuid::from_u128(0xf0_4e16)).unwrap()
}

pub(crate) fn noon() -> DateTime<Utc> {
    DateTime::from_timestamp(1_790_000_000, 0).unwrap()
}

pub(crate) fn host_of(osd: OsdId) -> String {
    format!("h{}", osd.0 / 2 + 1)
}

pub(crate) fn node_of(osd: OsdId) -> NodeName {
    NodeName(host_of(osd))
}

pub(crate) fn pg_id(n: u32) -> PgId {
    PgId { pool: POOL, number: n }
}

/// Returns the OSDs to which CRUSH maps a PG.
pub(crate) fn members(n: u32) -> BTreeSet<OsdId> {
    [n & 1, 2 + (n >> 1 & 1), 4 + (n >> 2 & 1)].map(OsdId).into()
}
