//! PGs per OSD, by device class, and advice if they are far from what Ceph aims at. Nothing is decided by it.
//!
//! The PG autoscaler of the mgr raises and lowers the number of PGs of a pool. So the advice is about pools
//! without it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::forecast::Placement;
use super::gate::names;
use super::observation::{Autoscale, Ceph, Pg, Pool};
use super::osd::{OsdId, PgId};

/// PGs per OSD that Ceph aims at (`mon_target_pg_per_osd`).
const TARGET: u64 = 100;

/// Factor by which a number of PGs may differ from the target: the autoscaler leaves smaller differences
/// alone, too (`threshold` of its module).
const FACTOR: u64 = 3;

/// PGs per OSD above which the mons create no pool (`mon_max_pg_per_osd`).
const MOST: u64 = 250;

/// Pools that a sentence names.
const NAMED: usize = 3;

/// PGs per OSD of one device class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PgCounts {
    /// Device class; none for OSDs without one.
    pub class: Option<String>,
    /// Number of OSDs to which CRUSH may map PGs.
    pub osds: u64,
    /// The smallest number of PGs on one of them.
    pub lowest: u64,
    /// Sum of the PGs on all of them.
    pub all: u64,
    /// The largest number of PGs on one of them, and that OSD.
    pub highest: (u64, OsdId),
    /// Pools with PGs on them that the autoscaler leaves alone: their names, and numbers of PGs.
    pub fixed: BTreeMap<String, u32>,
}

impl PgCounts {
    /// Returns the mean number of PGs, in tenths.
    pub fn mean_tenths(&self) -> u64 {
        (self.all * 10).checked_div(self.osds).unwrap_or(0)
    }

    /// Returns what is counted: PGs per OSD, with the device class if there is one.
    pub fn subject(&self) -> String {
        let of = self.class.as_ref().map(|class| format!(" of class {class}")).unwrap_or_default();
        format!("PGs per OSD{of}")
    }

    /// Returns the lowest, the highest and the mean number of PGs.
    pub fn range(&self) -> String {
        let (mean, (highest, osd)) = (self.mean_tenths(), self.highest);
        format!("{} to {highest} ({osd}), mean {}.{}", self.lowest, mean / 10, mean % 10)
    }

    /// Returns the advice; `None` if all is well, or if the autoscaler sees to it.
    pub fn advice(&self) -> Option<String> {
        let (mean, (highest, _)) = (self.mean_tenths(), self.highest);
        let is_far = mean * FACTOR < TARGET * 10 || mean > MOST * 10;
        if highest <= MOST && (!is_far || self.fixed.is_empty()) {
            return None;
        }
        let counts = format!("{}: {}; about {TARGET} are usual", self.subject(), self.range());
        let Some(first) = self.fixed.keys().next() else {
            return Some(format!("{counts}, and above {MOST} the mons create no pool"));
        };
        let named = self.fixed.iter().take(NAMED).map(|(name, pgs)| format!("{name} ({pgs} PGs)"));
        let more = self.fixed.len().checked_sub(NAMED).filter(|more| *more > 0);
        let more = more.map(|more| format!(" and {more} more")).unwrap_or_default();
        Some(format!(
            "{counts}. The PG autoscaler does not change {}{more}. To see what it would do: ceph osd pool \
             autoscale-status. To let it: ceph osd pool set {first} pg_autoscale_mode on",
            names(&named.collect::<BTreeSet<_>>())
        ))
    }
}

/// Returns the PGs per OSD of each device class, by the name of the class.
pub fn by_class(ceph: &Ceph) -> Vec<PgCounts> {
    counted(ceph, &BTreeSet::new(), |_, pg| &pg.up)
}

/// Returns the PGs per OSD of each device class once the PGs of a changed placement have moved.
pub fn by_class_after(placement: &Placement, ceph: &Ceph) -> Vec<PgCounts> {
    counted(ceph, &placement.without, |id, pg| placement.moves.get(id).map_or(&pg.up, |moved| &moved.then))
}

/// Counts the PGs on the OSDs that get data, without certain OSDs, by the OSDs of each PG.
fn counted<'a>(
    ceph: &'a Ceph,
    without: &BTreeSet<OsdId>,
    up: impl Fn(&PgId, &'a Pg) -> &'a BTreeSet<OsdId>,
) -> Vec<PgCounts> {
    let gets_data = ceph.slots.iter().filter(|(osd, slot)| slot.gets_data() && !without.contains(osd));
    let mut counts: BTreeMap<OsdId, u64> = gets_data.map(|(osd, _)| (*osd, 0)).collect();
    let mut pools: BTreeMap<Option<&str>, BTreeSet<u64>> = BTreeMap::new();
    for (pg, found) in &ceph.pgs {
        for osd in up(pg, found) {
            counts.entry(*osd).and_modify(|count| *count += 1);
            pools.entry(class_of(*osd, ceph)).or_default().insert(pg.pool);
        }
    }
    let mut classes: BTreeMap<Option<&str>, Vec<(u64, OsdId)>> = BTreeMap::new();
    for (osd, count) in counts {
        classes.entry(class_of(osd, ceph)).or_default().push((count, osd));
    }
    let is_fixed = |pool: &&Pool| pool.autoscale == Autoscale::Off;
    let counted = classes.into_iter().filter_map(|(class, osds)| {
        let on_it = pools.get(&class).into_iter().flatten().filter_map(|pool| ceph.pools.get(pool));
        Some(PgCounts {
            class: class.map(str::to_owned),
            osds: osds.len() as u64,
            lowest: osds.iter().map(|(count, _)| *count).min()?,
            all: osds.iter().map(|(count, _)| *count).sum(),
            highest: osds.iter().copied().max_by_key(|(count, osd)| (*count, Reverse(*osd)))?,
            fixed: on_it.filter(is_fixed).map(|pool| (pool.name.clone(), pool.pg_num)).collect(),
        })
    });
    counted.collect()
}

fn class_of(osd: OsdId, ceph: &Ceph) -> Option<&str> {
    ceph.slots.get(&osd)?.crush.as_ref()?.device_class.as_deref()
}
