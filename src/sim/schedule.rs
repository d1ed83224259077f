//! Times at which things happen by themselves: each happening that has become possible gets a due time.
//!
//! The same seed gives the same times: everything here is ordered, and drawn in that order.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};

use crate::domain::osd::{OsdFsid, OsdId, PgId};
use crate::sim::happening::Happening;
use crate::sim::stage::Stage;
use crate::sim::world::World;

/// Shortest and longest time in milliseconds; the time observed in the lab is in the middle.
type Range = (u64, u64);

/// Delay of statistics, which reach the mgr once in 5 s (`mgr_stats_period`); up to 7 s late was observed.
const STATISTICS: Range = (1_000, 7_000);
/// Time in which a PG peers: about a second.
const PEER: Range = (500, 1_500);
/// Start of a Deployment's pod: scheduled, with its image already on the node.
const POD_STARTS: Range = (1_000, 3_000);
/// Time from the container's start to `up`: 4 s.
const BOOTS: Range = (3_000, 5_000);
/// Time from replicas 0 to `down`: SIGTERM, the kubelet, and the mons: 2 s.
const GOES_DOWN: Range = (1_500, 2_500);
/// Time until the pod's object is deleted after its last container.
const POD_GONE: Range = (200, 800);
/// Time until a reconcile of Rook finds a Deployment at 0.
const ROOK: Range = (10_000, 60_000);
/// Start of a node Job's pod: its init container first copies the agent's program.
const AGENT_POD: Range = (1_500, 2_500);
/// Inventory of a node's disks, from its Job to its report: 5 s (`ceph-volume inventory` alone takes 1 to 2).
const INVENTORY: Range = (4_000, 6_000);
/// Time in which an agent opens the disk.
///
/// An agent takes 5 s in all (its pod's start excluded). ceph-volume takes 3.6 s of it: issued fsid, label,
/// mkfs.
const AGENT_OPENS: Range = (150, 250);
/// Tombstone, and the wipe of the signatures of labels and file systems.
const AGENT_BURIES: Range = (450, 750);
/// Start of ceph-volume until it asks for the id.
const AGENT_ISSUES: Range = (1_000, 1_400);
/// `ceph-osd --mkfs` until its label is written.
const AGENT_LABELS: Range = (1_300, 1_900);
/// Rest of mkfs.
const AGENT_FINISHES: Range = (650, 950);
/// Last inspection, and the report.
const AGENT_REPORTS: Range = (400, 800);

/// Bytes that one OSD takes in a second of backfill, one PG after the other (`osd_max_backfills` 1 on a hard
/// disk): declared, not measured.
pub const BACKFILL_RATE: u64 = 100 << 20;

/// Divisor for the data written meanwhile.
///
/// A store that was complete before its absence needs only this part: declared.
const WRITTEN_MEANWHILE: u64 = 100;

/// Pending happenings with their times.
#[derive(Debug, Clone)]
pub struct Schedule {
    rng: fastrand::Rng,
    due: BTreeMap<Happening, DateTime<Utc>>,
    /// Stores that had all of a PG once.
    whole: BTreeSet<(PgId, OsdFsid)>,
    /// Bytes a second of backfill onto one OSD.
    pub rate: u64,
    /// Whether the world was changed since the times were drawn.
    stale: bool,
}

impl Schedule {
    /// Creates the schedule of this seed.
    pub fn new(seed: u64) -> Self {
        let (due, whole) = (BTreeMap::new(), BTreeSet::new());
        Self { rng: fastrand::Rng::with_seed(seed), due, whole, rate: BACKFILL_RATE, stale: true }
    }

    /// Marks the world as changed.
    pub fn changed(&mut self) {
        self.stale = true;
    }

    /// Returns what happens next by itself.
    pub fn next(&mut self, world: &World) -> Option<(DateTime<Utc>, Happening)> {
        if self.stale {
            self.draw(world);
        }
        let (what, due) = self.due.iter().min_by_key(|(_, due)| **due)?;
        Some((*due, what.clone()))
    }

    /// Removes a happening that occurred, and returns how many bytes were copied for it.
    pub fn take(&mut self, what: &Happening, world: &World) -> u64 {
        self.due.remove(what);
        self.stale = true;
        if let Happening::Fill(pg, osd) = what { self.bytes_to_fill(pg, *osd, world) } else { 0 }
    }

    /// Draws times for what became possible, and drops what is no longer possible.
    fn draw(&mut self, world: &World) {
        self.stale = false;
        for (pg, placement) in &world.placements {
            self.whole.extend(placement.complete.iter().map(|fsid| (*pg, *fsid)));
        }
        let possible = world.progress();
        let still: BTreeSet<&Happening> = possible.iter().collect();
        self.due.retain(|what, _| still.contains(what));
        for what in possible {
            if !self.due.contains_key(&what) {
                let due = self.begins(&what, world) + self.takes(&what, world);
                self.due.insert(what, due);
            }
        }
    }

    /// Returns the start of a happening: backfills onto one OSD come one after the other; everything else
    /// starts now.
    fn begins(&self, what: &Happening, world: &World) -> DateTime<Utc> {
        let Happening::Fill(_, osd) = what else { return world.at };
        let onto = |(other, due): (&Happening, &DateTime<Utc>)| {
            let is_onto = matches!(other, Happening::Fill(_, other) if other == osd);
            is_onto.then_some(*due)
        };
        self.due.iter().filter_map(onto).max().map_or(world.at, |busy| busy.max(world.at))
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "faults and people come when they are asked for")]
    fn takes(&mut self, what: &Happening, world: &World) -> TimeDelta {
        let (from, to) = match what {
            Happening::PgReports(_) => STATISTICS,
            Happening::Peer(_) => PEER,
            Happening::PodStarts(_) => POD_STARTS,
            Happening::Boots(_) => BOOTS,
            Happening::GoesDown(_) => GOES_DOWN,
            Happening::PodGone(_) => POD_GONE,
            Happening::Rook(_) => ROOK,
            Happening::InventoryJobEnds(_) => INVENTORY,
            Happening::AgentSteps(job) => agent(world, job),
            Happening::Fill(pg, osd) => {
                let bytes = self.bytes_to_fill(pg, *osd, world);
                let millis = bytes.saturating_mul(1_000) / self.rate.max(1);
                (millis - millis / 10, millis + millis / 10)
            }
            _ => (0, 0),
        };
        let millis = self.rng.u64(from.max(1)..=to.max(1));
        TimeDelta::milliseconds(i64::try_from(millis).unwrap_or(i64::MAX / 1_000_000))
    }

    fn bytes_to_fill(&self, pg: &PgId, osd: OsdId, world: &World) -> u64 {
        let Some(placement) = world.placements.get(pg) else { return 0 };
        let fsid = world.ceph.slots.get(&osd).and_then(|slot| slot.fsid);
        let was_whole = fsid.is_some_and(|fsid| self.whole.contains(&(*pg, fsid)));
        if was_whole { placement.bytes / WRITTEN_MEANWHILE } else { placement.bytes }
    }
}

fn agent(world: &World, job: &str) -> Range {
    match world.agents.get(job).map(|agent| &agent.stage) {
        Some(Stage::Waiting) | None => AGENT_POD,
        Some(Stage::Inspected { .. }) => AGENT_OPENS,
        Some(Stage::Proven { .. }) => AGENT_BURIES,
        Some(Stage::Buried { .. }) => AGENT_ISSUES,
        Some(Stage::Registered { .. }) => AGENT_LABELS,
        Some(Stage::Labelled { .. }) => AGENT_FINISHES,
        Some(Stage::Reporting { .. }) => AGENT_REPORTS,
    }
}
