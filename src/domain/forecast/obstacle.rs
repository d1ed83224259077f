//! Reasons against a removal.

use std::collections::BTreeSet;
use std::fmt;

use crate::domain::gate::first_names;
use crate::domain::osd::OsdId;
use crate::domain::units::size_at_least;

/// Number of OSDs that a message names.
const NAMED: usize = 5;

/// Reason against the removal of OSDs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Obstacle {
    /// CRUSH finds too few OSDs for PGs.
    NoPlacement {
        /// removed OSDs
        without: BTreeSet<OsdId>,
        /// number of PGs
        pgs: usize,
        /// name of their pool
        pool: String,
        /// replicas or chunks of a PG
        copies: u32,
        /// failure domain of the pool
        domain: String,
    },
    /// An OSD has too little space.
    NoSpace {
        /// removed OSDs
        without: BTreeSet<OsdId>,
        /// OSD that gets too much
        osd: OsdId,
        /// its usage at the highest, in percent
        percent: u64,
        /// limit in percent
        limit: u64,
        /// name of the limit
        ratio: &'static str,
        /// bytes over the limit
        bytes: u64,
    },
    /// An OSD would get more PGs than Ceph allows.
    TooManyPgs {
        /// OSD that gets them
        osd: OsdId,
        /// its PGs then
        pgs: usize,
        /// most that Ceph allows
        limit: u32,
    },
    /// An OSD that would get PGs is down or out.
    NotUp {
        /// the OSD
        osd: OsdId,
    },
    /// The mgr has no statistics of OSDs or PGs, so that their bytes are unknown.
    NoStatistics {
        /// OSDs without statistics
        osds: BTreeSet<OsdId>,
        /// number of PGs without statistics
        pgs: usize,
    },
    /// OSDs came up or went down since the mgr's statistics of PGs, which do not show what the PGs lack.
    OldStatistics {
        /// number of PGs
        pgs: usize,
    },
    /// The number of PGs of a pool is changing, so that there will be other PGs, or other placements, soon.
    PgCountChanging {
        /// name of the pool
        pool: String,
    },
}

impl Obstacle {
    /// Returns whether the obstacle may disappear without help.
    pub fn passes_by_itself(&self) -> bool {
        match self {
            Self::NotUp { .. }
            | Self::NoStatistics { .. }
            | Self::OldStatistics { .. }
            | Self::PgCountChanging { .. } => true,
            Self::NoPlacement { .. } | Self::NoSpace { .. } | Self::TooManyPgs { .. } => false,
        }
    }

    /// Returns the code: the anchor of the message in its reference.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPlacement { without, pgs, pool, copies, domain } => write!(
                f,
                "without {}, {pgs} PGs of pool {pool} find too few OSDs for {copies} copies, each on another \
                 {domain}. Add an OSD on another {domain}, or lower the size of the pool",
                first_names(without, NAMED)
            ),
            Self::NoSpace { without, osd, percent, limit, ratio, bytes } => write!(
                f,
                "without {}, {osd} would be {percent} % full ({ratio} at {limit} %), {} too much. Add OSDs, or \
                 delete data",
                first_names(without, NAMED),
                size_at_least(*bytes)
            ),
            Self::TooManyPgs { osd, pgs, limit } => write!(
                f,
                "{osd} would get {pgs} PGs, and Ceph allows {limit} (mon_max_pg_per_osd, \
                 osd_max_pg_per_osd_hard_ratio). Add OSDs, or lower pg_num of a pool"
            ),
            Self::NotUp { osd } => {
                write!(
                    f,
                    "{osd} would get PGs, and is down or out. Wait until it is up and in: ceph osd tree"
                )
            }
            Self::NoStatistics { osds, pgs } => {
                let osds = (!osds.is_empty()).then(|| first_names(osds, NAMED));
                let pgs = (*pgs > 0).then(|| format!("{pgs} PGs"));
                let what: Vec<_> = osds.into_iter().chain(pgs).collect();
                write!(
                    f,
                    "the mgr has no statistics of {}. Wait until it has them: ceph osd df; ceph pg stat",
                    what.join(" and ")
                )
            }
            Self::OldStatistics { pgs } => write!(
                f,
                "the statistics of {pgs} PGs are older than the last start or end of their OSDs. Wait until the mgr \
                 has new ones: ceph pg stat"
            ),
            Self::PgCountChanging { pool } => write!(
                f,
                "the number of PGs of pool {pool} is changing. Wait until pg_num and pgp_num are as wanted: ceph osd pool \
                 ls detail"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn obstacle_names_osds_bytes_and_remedy() {
        let without: BTreeSet<OsdId> = (0..7).map(OsdId).collect();
        let ratio = "backfillfull";
        let full =
            Obstacle::NoSpace { without, osd: OsdId(9), percent: 92, limit: 90, ratio, bytes: 41 << 30 };
        assert_eq!(
            full.to_string(),
            "without osd.0, osd.1, osd.2, osd.3, osd.4 and 2 more, osd.9 would be 92 % full (backfillfull at 90 %), \
             41.0 GiB too much. Add OSDs, or delete data"
        );
        assert_eq!(full.code(), "no-space");
        let unknown = Obstacle::NoStatistics { osds: [OsdId(3)].into(), pgs: 2 };
        assert!(unknown.to_string().starts_with("the mgr has no statistics of osd.3 and 2 PGs. "));
    }
}
