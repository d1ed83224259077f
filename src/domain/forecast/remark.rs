//! Consequences of a removal that are no reason against it.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use crate::domain::gate::first_names;
use crate::domain::osd::OsdId;

/// Number of OSDs that a remark names.
const NAMED: usize = 5;

/// Consequence of a removal that is no reason against it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum Remark {
    /// OSDs would get more PGs than an OSD should have, and fewer than Ceph refuses.
    ManyPgs {
        /// OSDs that get them, with their PGs then
        osds: BTreeMap<OsdId, usize>,
        /// most that an OSD should have
        limit: u32,
    },
}

impl Remark {
    /// Returns the code: the anchor of the message in its reference.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ManyPgs { osds, limit } => write!(
                f,
                "{} would get more PGs than an OSD should have, {limit} (mon_max_pg_per_osd). The removal is possible. For \
                 fewer PGs, add OSDs, or lower pg_num of a pool",
                most_first(osds)
            ),
        }
    }
}

/// Returns the names of OSDs with their numbers of PGs: of the first ones, and the number of the others.
fn most_first(osds: &BTreeMap<OsdId, usize>) -> String {
    let mut sorted: Vec<_> = osds.iter().collect();
    sorted.sort_by_key(|(osd, pgs)| (Reverse(**pgs), **osd));
    let named: Vec<_> = sorted.into_iter().map(|(osd, pgs)| format!("{osd} ({pgs} PGs)")).collect();
    first_names(&named, NAMED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remark_names_the_osds_with_the_most_pgs_first() {
        let osds: BTreeMap<OsdId, usize> = (0..7).map(|id| (OsdId(id), 251 + id as usize)).collect();
        assert_eq!(
            most_first(&osds),
            "osd.6 (257 PGs), osd.5 (256 PGs), osd.4 (255 PGs), osd.3 (254 PGs), osd.2 (253 PGs) and 2 more"
        );
        assert_eq!(Remark::ManyPgs { osds, limit: 250 }.code(), "many-pgs");
    }
}
