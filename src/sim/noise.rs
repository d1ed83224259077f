//! Persistent problems somewhere in the cluster: nothing fixes them, and the rest must proceed in spite of
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::World;
use crate::domain::observation::{Admission, JobState};
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
}

impl UnusualPg {
    /// Returns whether the state passes by itself, within seconds or minutes.
    pub fn passes(self) -> bool {
        match self {
            Self::Remapped | Self::Inconsistent => false,
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

/// Start of a persistent problem, or end of a temporary one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Disturbance {
    /// A node is lost permanently: its daemons end, its agents and their Jobs never do.
    NodeLost(NodeName),
    /// A node is cordoned permanently.
    Cordons(NodeName),
    /// The pods of this OSD fail in an init container from now on.
    InitFails(OsdId),
    /// The new Deployment of this OSD is refused from now on.
    Refuses(OsdId),
    /// Each agent on this node fails from now on.
    AgentsFail(NodeName),
    /// A health code is raised permanently.
    Raised(&'static str),
    /// A PG takes an unusual state.
    PgChanges(PgId, UnusualPg),
    /// A PG leaves its unusual state.
    PgSettles(PgId),
    /// The mgr fails over.
    MgrAway,
    /// The mgr's successor receives the statistics of the PGs.
    MgrBack,
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NodeLost(node) => write!(f, "node {node} is lost permanently"),
            Self::Cordons(node) => write!(f, "node {node} is cordoned permanently"),
            Self::InitFails(osd) => write!(f, "an init container of {osd} fails from now on"),
            Self::Refuses(osd) => write!(f, "a policy refuses the new Deployment of {osd} from now on"),
            Self::AgentsFail(node) => write!(f, "agents on node {node} fail from now on"),
            Self::Raised(code) => write!(f, "the health code {code} is raised permanently"),
            Self::PgChanges(pg, unusual) => write!(f, "PG {pg} becomes {unusual:?}"),
            Self::PgSettles(pg) => write!(f, "PG {pg} leaves its unusual state"),
            Self::MgrAway => f.write_str("the mgr fails over, and its successor has no PG statistics yet"),
            Self::MgrBack => f.write_str("the new mgr receives the PG statistics"),
        }
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

impl World {
    /// Returns the temporary problems that may end now.
    pub(super) fn noise_passes(&self) -> impl Iterator<Item = Disturbance> {
        let passing = self.noise.unusual.iter().filter(|(_, unusual)| unusual.passes());
        let settles = passing.map(|(pg, _)| Disturbance::PgSettles(pg.clone()));
        settles.chain(self.noise.mgr_away.then_some(Disturbance::MgrBack))
    }

    /// Applies a disturbance.
    pub(super) fn disturb(&mut self, what: &Disturbance) {
        let noise = &mut self.noise;
        match what {
            Disturbance::NodeLost(node) => {
                noise.not_ready.insert(node.clone());
                self.daemons_end_on(node);
            }
            Disturbance::Cordons(node) => drop(noise.cordoned.insert(node.clone())),
            Disturbance::InitFails(osd) => drop(noise.init_fails.insert(*osd)),
            Disturbance::Refuses(osd) => drop(noise.refused.insert(*osd)),
            Disturbance::AgentsFail(node) => drop(noise.agents_fail.insert(node.clone())),
            Disturbance::Raised(code) => drop(noise.health.insert((*code).to_owned())),
            Disturbance::PgChanges(pg, unusual) => drop(noise.unusual.insert(pg.clone(), *unusual)),
            Disturbance::PgSettles(pg) => drop(noise.unusual.remove(pg)),
            Disturbance::MgrAway => {
                noise.mgr_away = true;
                self.ceph.pgs.clear();
            }
            Disturbance::MgrBack => noise.mgr_away = false,
        }
        self.noise_stays();
    }

    /// Writes the heartbeats of agents whose processes and nodes are alive, every 15 s.
    pub fn agents_say_that_they_live(&mut self) {
        let World { at, kube, agents, .. } = self;
        for job in kube.node_jobs.iter_mut().filter(|job| job.state == JobState::Running) {
            let node = agents.get(&job.name).and_then(|agent| kube.nodes.get(&agent.request.node));
            if node.is_some_and(|node| node.ready) {
                job.heartbeat_at = Some(*at);
            }
        }
    }

    /// Applies the persistent problems to the world again, also after everything else was fixed.
    pub fn noise_stays(&mut self) {
        let World { noise, kube, ceph, .. } = self;
        for (name, node) in &mut kube.nodes {
            node.cordoned |= noise.cordoned.contains(name);
            node.ready &= !noise.not_ready.contains(name);
        }
        ceph.health.extend(noise.health.iter().cloned());
        for (osd, daemon) in kube.daemons.iter_mut().filter(|(osd, _)| noise.init_fails.contains(*osd)) {
            let trouble = noise.pod_trouble(*osd);
            // A running daemon has left its init containers behind.
            let is_up = ceph.slots.get(osd).is_some_and(|slot| slot.up);
            daemon.pods.iter_mut().filter(|_| !is_up).for_each(|pod| pod.trouble.clone_from(&trouble));
        }
    }
}
