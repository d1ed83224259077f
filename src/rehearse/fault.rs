//! Faults of a rehearsal by name, and the moment at which each fault does most harm.

use std::rc::Rc;

use chrono::TimeDelta;

use crate::domain::classify;
use crate::domain::observation::SlotState;
use crate::domain::osd::OsdId;
use crate::domain::plan::Questions;
use crate::sim::course::Fault;
use crate::sim::{Happening, Stage, Stumble, World, example};

/// Fault that the user requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestedFault {
    /// Kind of the fault.
    pub kind: Kind,
    /// OSD during whose migration the fault strikes.
    pub osd: OsdId,
}

macro_rules! kinds {
    ($($kind:ident $name:literal $help:literal,)+) => {
        /// Kind of fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Kind { $(#[doc = $help] $kind,)+ }

        /// Name, kind and help text of each fault.
        const KINDS: &[(&str, Kind, &str)] = &[$(($name, Kind::$kind, $help),)+];
    };
}

kinds! {
    KillRunner "kill-runner" "the run is killed right after it destroyed the OSD",
    AgentDies "agent-dies" "the node agent is killed after it wiped the disk",
    AgentFreezes "agent-freezes" "Kubernetes ends the agent's Job, but its process still runs",
    CephVolumeFails "ceph-volume-fails" "ceph-volume fails after it registered the id",
    CephVolumeRollsBack "ceph-volume-rolls-back" "ceph-volume fails and tries to purge the id",
    CephVolumePurges "ceph-volume-purges" "ceph-volume purges the id and its CRUSH item, past the shim",
    CephVolumeDoesNothing "ceph-volume-does-nothing" "ceph-volume exits with code 0, but does nothing",
    OsdDies "osd-dies" "an OSD with replicas of the same PGs is down for 3 minutes",
    NodePower "node-power" "the node has no power for 5 minutes",
    SwappedDisk "swapped-disk" "the disk is replaced by another disk, which has data (the rehearsed Ceph marks no OSD out)",
    Purged "purged" "a person purges the OSD after the run destroyed it (no OSD is marked out)",
    RookUp "rook-up" "Rook's operator runs for 5 minutes while the OSD is stopped",
    Norecover "norecover" "the flag norecover is set for 5 minutes while the OSD is down",
}

/// Returns the names for `--help`, one a line.
pub fn help() -> String {
    let lines = KINDS.iter().map(|(name, _, help)| format!("  {name:<26}{help}"));
    let head = "Fault to inject while OSD is migrated, at the moment at which it does most harm. Without \
                @OSD: while the first legacy OSD is migrated. The option can be repeated with these names:\n";
    std::iter::once(head.to_owned()).chain(lines).collect::<Vec<_>>().join("\n")
}

/// Returns all names.
pub fn names() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(name, _, _)| *name)
}

/// Parses `NAME` or `NAME@OSD`.
pub fn parse(words: &str) -> Result<RequestedFault, String> {
    let (name, osd) = words.split_once('@').map_or((words, None), |(name, osd)| (name, Some(osd)));
    let Some((_, kind, _)) = KINDS.iter().find(|(known, _, _)| *known == name) else {
        return Err(format!(
            "no fault has this name. Use one of: {}",
            names().collect::<Vec<_>>().join(", ")
        ));
    };
    let legacy = legacy(&example::twelve());
    let first = legacy.first().copied().ok_or("the simulated cluster has no legacy OSD")?;
    let osd = osd.map_or(Ok(first), |osd| osd.parse::<OsdId>().map_err(|error| error.to_string()))?;
    if legacy.contains(&osd) {
        return Ok(RequestedFault { kind: *kind, osd });
    }
    let legacy: Vec<String> = legacy.iter().map(ToString::to_string).collect();
    Err(format!("the rehearsal does not migrate {osd}. Use one of: {}", legacy.join(", ")))
}

/// Returns the OSDs that are to be migrated.
pub fn legacy(world: &World) -> Vec<OsdId> {
    let classes = classify::classify(&world.observe(|_| Questions::default()));
    classes.into_iter().filter(|(_, class)| class.migrates().is_some()).map(|(osd, _)| osd).collect()
}

impl RequestedFault {
    /// Returns the fault as it is typed.
    pub fn name(&self) -> String {
        let name = KINDS.iter().find(|(_, kind, _)| *kind == self.kind).map_or("", |(name, _, _)| *name);
        format!("{name}@{}", self.osd)
    }

    /// Returns the fault of the cluster: when it strikes, and what happens.
    ///
    /// Returns none for a killed run, which the cluster does not cause.
    pub fn in_the_cluster(&self) -> Option<Fault> {
        let (kind, osd) = (self.kind, self.osd);
        let script: fn(&World, OsdId) -> Vec<(i64, Happening)> = match kind {
            Kind::KillRunner => return None,
            Kind::AgentDies => |world, osd| at_stage(world, osd, 3, Happening::AgentDies),
            Kind::AgentFreezes => |world, osd| at_stage(world, osd, 2, Happening::AgentLost),
            Kind::CephVolumeFails => |world, osd| stumbles(world, osd, 4, Stumble::Fails),
            Kind::CephVolumeRollsBack => |world, osd| stumbles(world, osd, 4, Stumble::RollsBack),
            Kind::CephVolumePurges => |world, osd| stumbles(world, osd, 4, Stumble::RollsBackPastUs),
            Kind::CephVolumeDoesNothing => |world, osd| stumbles(world, osd, 3, Stumble::DoesNothing),
            Kind::OsdDies => osd_dies,
            Kind::NodePower => node_power,
            Kind::SwappedDisk => swapped_disk,
            Kind::Purged => |world, osd| {
                if is_destroyed(world, osd) { vec![(0, Happening::PersonPurges(osd))] } else { Vec::new() }
            },
            Kind::RookUp => |world, osd| {
                let begun = world.kube.daemons.get(&osd).is_some_and(|daemon| daemon.stopped_by.is_some());
                let up_and_down = vec![(0, Happening::OperatorUp), (300, Happening::OperatorDown)];
                if begun { up_and_down } else { Vec::new() }
            },
            Kind::Norecover => |world, osd| {
                let set = vec![(0, Happening::FlagSet), (300, Happening::FlagUnset)];
                if is_down(world, osd) { set } else { Vec::new() }
            },
        };
        Some(Rc::new(move |world, _| {
            let seconds = |(after, what)| (TimeDelta::seconds(after), what);
            script(world, osd).into_iter().map(seconds).collect()
        }))
    }
}

fn is_down(world: &World, osd: OsdId) -> bool {
    world.ceph.slots.get(&osd).is_some_and(|slot| !slot.up)
}

fn is_destroyed(world: &World, osd: OsdId) -> bool {
    world.ceph.slots.get(&osd).is_some_and(|slot| slot.state == SlotState::Destroyed)
}

/// Returns the Job whose agent has reached this stage with the OSD: 2 has opened the disk, 3 has wiped it, 4
/// has registered the id.
fn agent_at(world: &World, osd: OsdId, stage: u8) -> Option<String> {
    let far = |stage: &Stage| match stage {
        Stage::Waiting => 0,
        Stage::Inspected { .. } => 1,
        Stage::Proven { .. } => 2,
        Stage::Buried { .. } => 3,
        Stage::Registered { .. } => 4,
        Stage::Labelled { .. } => 5,
        Stage::Reporting { .. } => 6,
    };
    let found = world.agents.iter().find(|(_, agent)| agent.request.osd == osd && far(&agent.stage) == stage);
    found.map(|(job, _)| job.clone())
}

fn at_stage(world: &World, osd: OsdId, stage: u8, what: fn(String) -> Happening) -> Vec<(i64, Happening)> {
    agent_at(world, osd, stage).map(|job| (0, what(job))).into_iter().collect()
}

fn stumbles(world: &World, osd: OsdId, stage: u8, how: Stumble) -> Vec<(i64, Happening)> {
    agent_at(world, osd, stage).map(|job| (0, Happening::AgentStumbles(job, how))).into_iter().collect()
}

/// Lets another OSD die that has replicas of this OSD's data.
fn osd_dies(world: &World, osd: OsdId) -> Vec<(i64, Happening)> {
    if !is_down(world, osd) {
        return Vec::new();
    }
    let shared = world.placements.values().filter(|placement| placement.home.contains(&osd));
    let others = shared.flat_map(|placement| &placement.home).filter(|other| **other != osd);
    let partner = others.min().copied();
    partner
        .map(|other| vec![(0, Happening::Dies(other)), (180, Happening::Recovers(other))])
        .unwrap_or_default()
}

fn node_power(world: &World, osd: OsdId) -> Vec<(i64, Happening)> {
    let Some(job) = agent_at(world, osd, 4) else { return Vec::new() };
    let Some(node) = world.agents.get(&job).map(|agent| agent.request.node.clone()) else {
        return Vec::new();
    };
    vec![(0, Happening::PowerLost(node.clone())), (300, Happening::PowerBack(node))]
}

fn swapped_disk(world: &World, osd: OsdId) -> Vec<(i64, Happening)> {
    let disk = format!("disk-{}", osd.0);
    if is_destroyed(world, osd) { vec![(0, Happening::DiskSwapped(disk))] } else { Vec::new() }
}
