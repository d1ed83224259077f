//! From each state, without further faults, the run must come to an end.

use std::collections::HashSet;

use osd_migrate_core::domain::ledger::Record;
use osd_migrate_core::domain::next::{Halt, Next, Wait};
use osd_migrate_core::domain::observation::{Slot, SlotState};
use osd_migrate_core::domain::policy::Policy;
use osd_migrate_core::sim::{Happening, Noise};

use super::promises::progress::Watch;
use super::search::Search;
use super::state::{Done, State};
use super::words::decision;
use super::{pace, promises};

/// Number of iterations and happenings after which a run without further faults must have ended.
const BOUND: usize = 600;

impl Search {
    /// Checks that the run ends within a bounded number of steps if nothing more goes wrong and what can be
    /// fixed is fixed.
    ///
    /// The run may also wait for something that it names and that does not recover by itself.
    pub(super) fn settles(
        &self,
        state: &State,
        policy: &Policy,
        settled: &mut HashSet<u128>,
    ) -> Result<(), String> {
        let Err(why) = self.goes_on(state, policy, settled, None) else { return Ok(()) };
        // Replays the run and records its story.
        let mut story = Vec::new();
        self.goes_on(state, policy, &mut HashSet::new(), Some(&mut story)).ok();
        Err(format!("{why}\n  (without more going wrong: {})", story.join("; ")))
    }

    /// Returns whether something is wrong that is never fixed.
    fn is_sick(&self, state: &State) -> bool {
        self.has_sick || *state.world.noise != Noise::default()
    }

    /// Returns what could be done at such an end and is not; a world that stays shut has nothing to do.
    fn left_undone(&self, now: &State, decided: &Next, policy: &Policy) -> Option<String> {
        promises::progress::at_an_end(now, decided, policy).filter(|_| !self.stays_shut)
    }

    fn goes_on(
        &self,
        state: &State,
        policy: &Policy,
        settled: &mut HashSet<u128>,
        mut story: Option<&mut Vec<String>>,
    ) -> Result<(), String> {
        let mut now = state.clone();
        let mut passed = Vec::new();
        fix(&mut now, policy);
        let mut idle = 0;
        let mut watch = Watch::default();
        for _ in 0..BOUND {
            let key = now.canonical();
            if settled.contains(&key) {
                settled.extend(passed);
                return Ok(());
            }
            passed.push(key);
            let mut moved = false;
            for what in now.world.progress() {
                if let Some(story) = &mut story {
                    story.push(what.to_string());
                }
                let before = now.clone();
                let done = Done { effects: now.world.happen(&what), ..Done::default() };
                if let Some(broken) = promises::always(&before, None, &done, &now) {
                    return Err(broken);
                }
                moved = true;
            }
            let is_torn = now.lags.is_torn();
            now.kept.take_if(|_| is_torn);
            let by_parts = now.decide_by_parts(policy);
            now.kept.take_if(|_| by_parts.is_none());
            let decided = by_parts.unwrap_or_else(|| now.decide(policy));
            if let Some(broken) = watch.broken(&now, &decided) {
                return Err(broken);
            }
            pace::pass(&mut now.world, now.pace);
            let before = now.clone();
            if let Some(story) = &mut story {
                story.push(format!("[{}]", decision(&decided)));
            }
            let done = now.perform_by_parts(&decided);
            if let Some(broken) = promises::always(&before, Some(&decided), &done, &now) {
                return Err(broken);
            }
            let owner = now.owner_next(&decided).filter(|_| matches!(decided, Next::Finished(_)) && !moved);
            if let Some(owner) = owner {
                if let Some(story) = &mut story {
                    story.push(owner.said().to_owned());
                }
                let before = now.clone();
                now.owner_does(owner);
                if let Some(broken) = promises::always(&before, None, &Done::default(), &now) {
                    return Err(broken);
                }
                idle = 0;
                continue;
            }
            match &decided {
                Next::Save { .. } | Next::Do(_) => {
                    idle = if done.refused.is_some() && !moved { idle + 1 } else { 0 }
                }
                Next::Halt(_) | Next::Wait(_) if moved => idle = 0,
                Next::Finished(_) if moved || now.frozen.is_some() => idle = 0,
                Next::Finished(_) => {
                    if let Some(broken) = self.left_undone(&now, &decided, policy) {
                        return Err(broken);
                    }
                    let faults = self.stays_shut
                        || self.is_sick(&now)
                        || state.left.faults < self.left.faults
                        || state.left.leaps < self.left.leaps;
                    let stays = promises::new_osds::at_the_end(&now, policy);
                    if let Some(broken) = stays.filter(|_| !self.stays_shut) {
                        return Err(format!("at the end, {broken}"));
                    }
                    let begun = (self.world)();
                    let left = promises::drains_at_the_end(&now, &begun, faults)
                        .or_else(|| promises::bootstrap_at_the_end(&now, &begun))
                        .or_else(|| of_the_cluster(&now));
                    if let Some(broken) = left.or_else(|| promises::at_the_end(&now, faults)) {
                        return Err(format!("at the end, {broken}"));
                    }
                    settled.extend(passed);
                    return Ok(());
                }
                Next::Halt(halt) => {
                    if let Some(broken) = self.left_undone(&now, &decided, policy) {
                        return Err(broken);
                    }
                    let left = promises::drains_at_a_halt(&now, halt);
                    let is_known = !matches!(halt, Halt::LedgerLost { .. });
                    let others = || of_the_cluster(&now).filter(|_| is_known);
                    if let Some(broken) = left.or_else(others) {
                        return Err(format!("at a halt, {broken}"));
                    }
                    settled.extend(passed);
                    return Ok(());
                }
                Next::Wait(wait) => {
                    idle += 1;
                    let nothing_wrong = state.left.faults == self.left.faults
                        && state.left.leaps == self.left.leaps
                        && !self.stays_shut
                        && !self.is_sick(&now);
                    if idle > 12 && nothing_wrong {
                        return Err(format!("nothing went wrong, and it waits: {wait}"));
                    }
                    if idle > 12
                        && let Some(broken) = self.left_undone(&now, &decided, policy)
                    {
                        return Err(broken);
                    }
                    if idle > 12 && (self.stays_shut || self.is_sick(&now) || is_permanent(wait, &now)) {
                        settled.extend(passed);
                        return Ok(());
                    }
                }
            }
            if !moved && matches!(decided, Next::Wait(_)) {
                now.world.happen(&Happening::Minutes(3));
            }
            if let Some((next, version, read)) =
                now.frozen.take_if(|_| idle > 2 || matches!(decided, Next::Finished(_) | Next::Halt(_)))
            {
                let before = State { thaws: true, ..now.clone() };
                let done = now.perform_as_read(&next, version, &read);
                if let Some(broken) = promises::always(&before, Some(&next), &done, &now) {
                    return Err(broken);
                }
                idle = 0;
            }
            if idle > 30 {
                return Err(format!(
                    "it never ends: again and again it {} ({:?})",
                    decision(&decided),
                    done.refused
                ));
            }
        }
        Err(format!(
            "it goes round in circles for {BOUND} steps; the last decision: {}",
            decision(&now.decide(policy))
        ))
    }
}

/// Returns what is left of the changes of the whole cluster.
fn of_the_cluster(now: &State) -> Option<String> {
    promises::scrubs::at_an_end(now).or_else(|| promises::recovery::at_an_end(now))
}

/// Fixes what people and hardware fix sooner or later.
fn fix(state: &mut State, policy: &Policy) {
    let world = &mut state.world;
    let mut fixes: Vec<Happening> = Vec::new();
    let dark = world.kube.nodes.iter().filter(|(_, node)| !node.ready);
    fixes.extend(dark.map(|(name, _)| Happening::PowerBack(name.clone())));
    fixes.push(Happening::FlagUnset);
    // An operator that the fence keeps off may run, and so may one that the run itself is to scale, or has
    // restored.
    let is_ours =
        policy.scales_operator && (state.ledger.run.operator.is_none() || world.scaled_by_osd_migrate);
    if world.kube.running_operator().is_some_and(|operator| !operator.honours_fence) && !is_ours {
        fixes.push(Happening::OperatorDown);
    }
    if world.kube.fence.as_deref() == Some("theirs") {
        fixes.push(Happening::OthersUnfence);
    }
    // A destroyed OSD is not started.
    let is_there = |osd| world.ceph.slots.get(osd).is_some_and(|slot| slot.state != SlotState::Destroyed);
    let stopped = world
        .kube
        .daemons
        .iter()
        .filter(|(osd, daemon)| daemon.replicas == 0 && daemon.stopped_by.is_none() && is_there(osd));
    fixes.extend(stopped.map(|(osd, _)| Happening::PersonStarts(*osd)));
    let records = &state.ledger.records;
    let is_emptied = |osd| records.get(osd).is_some_and(Record::is_marked_out);
    let outs = world.ceph.slots.iter().filter(|(osd, slot)| {
        let is_dead = world.noise.dead.contains(*osd);
        !slot.is_in && slot.state == SlotState::Exists && !is_dead && !is_emptied(osd)
    });
    fixes.extend(outs.map(|(osd, _)| Happening::PersonIns(*osd)));
    fixes.push(if state.by_flag { Happening::Unconfirmed } else { Happening::Confirmed });
    fixes.extend(osd_migrate_core::sim::Around::ALL.map(|what| Happening::Around(what, false)));
    for what in fixes {
        world.happen(&what);
    }
    world.noise_stays();
}

/// Returns whether a wait names a cause that does not recover by itself.
fn is_permanent(wait: &Wait, state: &State) -> bool {
    let world = &state.world;
    let is_ours =
        |osd, slot: &Slot| slot.state == SlotState::Exists || state.ledger.records.contains_key(osd);
    let orphaned = world.ceph.slots.iter().filter(|(osd, slot)| is_ours(osd, slot)).any(|(osd, slot)| {
        let lost = slot.fsid.is_none_or(|fsid| world.disk_of(fsid).is_none());
        !slot.up && (lost || !world.kube.daemons.contains_key(osd) || slot.crush.is_none())
    });
    let gone = world
        .placements
        .values()
        .any(|placement| placement.home.iter().any(|osd| !world.ceph.slots.contains_key(osd)))
        && !world.placements.iter().all(|(pg, placement)| world.crush_set(pg).len() == placement.home.len());
    let out = world.ceph.slots.values().any(|slot| slot.up && !slot.is_in);
    match wait {
        Wait::NotOurStop { osd } => !world.kube.daemons.contains_key(osd) || orphaned,
        Wait::Gate { .. } if world.rejects_pdbs => true,
        Wait::Gate { .. } | Wait::Node { .. } | Wait::Fence { .. } | Wait::UnsafeToWipe { .. } => {
            orphaned || gone || out
        }
        Wait::Inventory { .. } => false,
        Wait::MarkedOutExternally { .. } | Wait::AgentSilent { .. } | Wait::AgentBusy { .. } => true,
        Wait::Agent { .. }
        | Wait::AgentRests { .. }
        | Wait::Emptying { .. }
        | Wait::AgentNodeLost { .. }
        | Wait::Down { .. }
        | Wait::RookDeploys { .. }
        | Wait::Up { .. }
        | Wait::ActiveClean { .. }
        | Wait::FreshView => orphaned || gone,
    }
}
