//! Space on OSDs, and the limits that Ceph has for it.

use std::collections::BTreeMap;

use crate::domain::osd::OsdId;

/// Space on the OSDs of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Space {
    /// Space by OSD; an OSD without statistics is missing.
    pub osds: BTreeMap<OsdId, OsdSpace>,
    /// Limits of the cluster.
    pub limits: Limits,
}

/// Space on an OSD, as the mgr reports it (`osd df`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OsdSpace {
    /// Size in bytes (`kb`).
    pub total_bytes: u64,
    /// Bytes used (`kb_used`), which Ceph compares with its ratios.
    pub used_bytes: u64,
    /// Bytes that move with the PGs: data and omap, without the metadata that an empty OSD has, too.
    ///
    /// `None` for Filestore, which does not tell its data from its journal and the rest of its file system.
    pub data_bytes: Option<u64>,
}

/// Limits of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// `nearfull_ratio` of the osdmap in 1/10000.
    pub nearfull: u32,
    /// `backfillfull_ratio` of the osdmap in 1/10000: from there on, no PG is backfilled to the OSD.
    pub backfillfull: u32,
    /// PGs that an OSD should have at the most: `mon_max_pg_per_osd`.
    pub wanted_pgs: u32,
    /// PGs from which on an OSD takes no other: `mon_max_pg_per_osd` times `osd_max_pg_per_osd_hard_ratio`.
    pub pgs: u32,
}
