//! Persistent problems somewhere in the cluster: nothing fixes them, and the rest must proceed in spite of
//! them.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::observation::Admission;
use crate::domain::osd::{NodeName, OsdId, PgId};

/// Persistent problems.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Noise {
    /// OSDs whose disks died: they never boot again.
    pub dead: BTreeSet<OsdId>,
    /// OSDs whose pods repeatedly fail in an init container.
    pub init_fails: BTreeSet<OsdId>,
    /// OSDs whose new Deployment a policy refuses.
    pub refused: BTreeSet<OsdId>,
    /// Cordoned nodes.
    pub cordoned: BTreeSet<NodeName>,
    /// Nodes that are not Ready: lost, or without connection to the API server while their daemons are
    /// running.
    pub not_ready: BTreeSet<NodeName>,
    /// Nodes on which each agent fails.
    pub agents_fail: BTreeSet<NodeName>,
    /// Health codes that stay raised.
    pub health: BTreeSet<String>,
    /// PGs in an unusual state.
    pub unusual: BTreeMap<PgId, UnusualPg>,
    /// Whether no OSD has space for the data of another one.
    pub no_space: bool,
    /// Whether the mgr failed over, and its successor has no statistics yet.
    pub mgr_away: bool,
}

/// Unusual state of a PG without a missing replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnusualPg {
    /// The PG is on other OSDs than CRUSH says, for months: `active+clean+remapped`.
    Remapped,
    /// A scrub found a replica that differs.
    Inconsistent,
    /// `ceph pg repair` is running: a deep scrub with the word `repair`.
    Repair,
    /// The PG waits to be merged, and serves nothing for a moment: `clean+premerge+peered` (measured,
    /// 20.2.4).
    Premerge,
    /// Writes from before a stop are replayed from the PG's log: `active+recovering` (observed for 1 s,
    /// 16.2.15).
    Recovering,
    /// An OSD has no space for the PG: `active+remapped+backfill_toofull`.
    TooFull,
}

impl UnusualPg {
    /// Returns whether the state passes by itself, within seconds or minutes.
    pub fn passes(self) -> bool {
        match self {
            Self::Remapped | Self::Inconsistent | Self::TooFull => false,
            Self::Repair | Self::Premerge | Self::Recovering => true,
        }
    }

    /// Applies the unusual state to the words of a PG's state.
    fn words(self, mut state: BTreeSet<String>) -> BTreeSet<String> {
        let (without, with): (&[&str], &[&str]) = match self {
            Self::Remapped => (&[], &["remapped"]),
            Self::Inconsistent => (&[], &["inconsistent"]),
            Self::Repair => (&[], &["scrubbing", "deep", "repair"]),
            Self::Premerge => (&["active"], &["premerge", "peered"]),
            Self::Recovering => (&["clean"], &["recovering"]),
            Self::TooFull => (&["clean"], &["remapped", "backfill_toofull"]),
        };
        // A peering PG reports no other word.
        if state.contains("peering") {
            return state;
        }
        state.retain(|word| !without.contains(&word.as_str()));
        state.extend(with.iter().map(|word| (*word).to_owned()));
        state
    }
}

impl Noise {
    /// Returns whether the OSD cannot boot, whatever is done.
    pub(super) fn keeps_down(&self, osd: OsdId) -> bool {
        self.dead.contains(&osd) || self.init_fails.contains(&osd)
    }

    /// Returns the API server's answer to the OSD's new Deployment.
    pub(super) fn admission(&self, osd: OsdId) -> Admission {
        let is_refused = self.refused.contains(&osd);
        if is_refused { Admission::Refused("no such container here".to_owned()) } else { Admission::Admitted }
    }

    /// Returns why a pod of the OSD does not run.
    pub(super) fn pod_trouble(&self, osd: OsdId) -> Option<String> {
        let fails = self.init_fails.contains(&osd);
        fails.then(|| "Init:CrashLoopBackOff: init container activate".to_owned())
    }

    /// Returns a PG's state as its primary reports it.
    pub(super) fn state_of(&self, pg: &PgId, state: BTreeSet<String>) -> BTreeSet<String> {
        match self.unusual.get(pg) {
            Some(unusual) => unusual.words(state),
            None => state,
        }
    }
}
