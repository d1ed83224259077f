//! Persistent problems that begin: what each does to the world.

use crate::domain::observation::JobState;
use crate::domain::osd::{NodeName, OsdId, PgId};
use crate::sim::noise::{Noise, UnusualPg};
use crate::sim::world::World;
use std::fmt;

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
    /// The number of PGs of a pool is doubled: each PG is split in two on the OSDs that have it.
    PoolSplits(u64),
    /// `pgp_num` of a pool changes: CRUSH places the PG where the first PG of the cluster is.
    PgPlaced(PgId),
    /// A pool is created on the OSDs of the first PG.
    PoolCreated,
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
            Self::PoolSplits(pool) => write!(f, "the PGs of pool {pool} are split"),
            Self::PgPlaced(pg) => write!(f, "CRUSH places PG {pg} on the OSDs of the first PG"),
            Self::PoolCreated => f.write_str("a pool is created"),
            Self::MgrAway => f.write_str("the mgr fails over, and its successor has no PG statistics yet"),
            Self::MgrBack => f.write_str("the new mgr receives the PG statistics"),
        }
    }
}

impl World {
    /// Returns the temporary problems that may end now.
    pub(super) fn noise_passes(&self) -> impl Iterator<Item = Disturbance> {
        let passing = self.noise.unusual.iter().filter(|(_, unusual)| unusual.passes());
        let settles = passing.map(|(pg, _)| Disturbance::PgSettles(*pg));
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
            Disturbance::PgChanges(pg, unusual) => drop(noise.unusual.insert(*pg, *unusual)),
            Disturbance::PgSettles(pg) => drop(noise.unusual.remove(pg)),
            Disturbance::PoolSplits(pool) => self.split(*pool),
            Disturbance::PgPlaced(pg) => self.place_as_first(pg),
            Disturbance::PoolCreated => self.create_pool(),
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
        if **noise == Noise::default() {
            return; // so that clones of the world go on sharing what would be written unchanged
        }
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
