//! Breadth first through everything that can happen, so that the first violation is the shortest story.

use std::collections::{HashMap, HashSet};

use osd_migrate::domain::next::{Next, Wait};
use osd_migrate::domain::observation::SlotState;
use osd_migrate::domain::policy::Policy;
use osd_migrate::sim::{Happening, World};

use super::promises;
use super::state::{Budget, Done, State};

/// One step of a story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Move {
    /// A runner's turn.
    Turn,
    /// A runner's act that dies after so many of its writes.
    Cut(usize),
    /// A runner decides, and is frozen before it does it.
    Freeze,
    /// It goes on.
    Thaw,
    /// Something happens by itself.
    Happens(Happening),
    /// Something goes wrong, or others do something.
    Fault(Happening),
    /// Time passes.
    Leap(u32),
    /// Somebody deletes the ledger.
    Forget,
}

/// What may go wrong in a world, of all that could.
pub(crate) type Menu = fn(&World) -> Vec<Happening>;

pub(crate) struct Search {
    pub(crate) name: &'static str,
    pub(crate) world: fn() -> World,
    pub(crate) left: Budget,
    pub(crate) menu: Menu,
    pub(crate) policy: fn() -> Policy,
    /// Nothing is to be done in this world: a gate stays shut for good.
    pub(crate) stays_shut: bool,
    /// See `State`.
    pub(crate) freezes_late: bool,
    /// The stored ledger may be deleted by somebody, as a fault.
    pub(crate) loses_ledger: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) states: usize,
    pub(crate) transitions: usize,
    pub(crate) violation: Option<String>,
}

/// More than this is not a small world: the bounds must be made smaller, never the search cut short.
const TOO_MANY: usize = 3_000_000;

/// Turns and happenings after which a run without further faults must have ended.
const BOUND: usize = 600;

impl Search {
    pub(crate) fn new(name: &'static str, world: fn() -> World, menu: Menu, left: (u8, u8, u8)) -> Self {
        let left = Budget { faults: left.0, freezes: left.1, leaps: left.2 };
        Self {
            name,
            world,
            left,
            menu,
            policy: Policy::default,
            stays_shut: false,
            freezes_late: false,
            loses_ledger: false,
        }
    }

    pub(crate) fn run(&self) -> Found {
        let policy = (self.policy)();
        let start = self.start();
        let mut found = Found::default();
        let mut index: HashMap<u128, u32> = HashMap::from([(start.canonical(), 0)]);
        let mut parents: Vec<(u32, Move)> = vec![(0, Move::Turn)];
        let mut settled: HashSet<u128> = HashSet::new();
        let mut layer = vec![(0_u32, start)];
        while !layer.is_empty() {
            let mut next_layer = Vec::new();
            for (at, state) in layer {
                let decided = state.decide(&policy);
                if let Err(why) = self.settles(&state, &policy, &mut settled) {
                    found.violation = Some(self.story(&parents, at, None, &why));
                    found.states = index.len();
                    return found;
                }
                for step in self.moves(&state, &decided) {
                    found.transitions += 1;
                    let (after, done, acted) = take(&state, &step, &decided);
                    let before = State { thaws: step == Move::Thaw, ..state.clone() };
                    let broken = promises::always(&before, acted.as_ref(), &done, &after)
                        .or_else(|| promises::begun(&before, &after, &policy));
                    if let Some(broken) = broken {
                        found.violation = Some(self.story(&parents, at, Some(step), &broken));
                        found.states = index.len();
                        return found;
                    }
                    let key = after.canonical();
                    if let std::collections::hash_map::Entry::Vacant(entry) = index.entry(key) {
                        let number = u32::try_from(parents.len()).unwrap();
                        entry.insert(number);
                        parents.push((at, step));
                        next_layer.push((number, after));
                    }
                }
                assert!(
                    index.len() < TOO_MANY,
                    "{}: more than {TOO_MANY} states: its bounds are too wide",
                    self.name
                );
            }
            layer = next_layer;
        }
        found.states = index.len();
        found
    }

    /// One seeded walk of so many steps, beyond the bounds within which everything is searched: the steps taken, and the
    /// violation that it ran into.
    pub(crate) fn walk(&self, seed: u64, steps: usize) -> (usize, Option<String>) {
        let policy = (self.policy)();
        let mut chance = fastrand::Rng::with_seed(seed);
        let mut state = self.start();
        let mut parents = vec![(0, Move::Turn)];
        for taken in 0..steps {
            let decided = state.decide(&policy);
            // Now and then something goes wrong; else the budget would be spent before anything has begun.
            let rare =
                |step: &Move| matches!(step, Move::Fault(_) | Move::Leap(_) | Move::Cut(_) | Move::Forget);
            let (wrong, usual): (Vec<_>, Vec<_>) = self.moves(&state, &decided).into_iter().partition(rare);
            let goes_wrong = usual.is_empty() || chance.usize(..20) == 0;
            let moves = if goes_wrong && !wrong.is_empty() { wrong } else { usual };
            let Some(step) = (!moves.is_empty()).then(|| moves[chance.usize(..moves.len())].clone()) else {
                return (taken, None);
            };
            let before = State { thaws: step == Move::Thaw, ..state.clone() };
            let (after, done, acted) = take(&state, &step, &decided);
            let at = u32::try_from(parents.len()).unwrap() - 1;
            if let Some(broken) = promises::always(&before, acted.as_ref(), &done, &after) {
                let story = self.story(&parents, at, Some(step), &broken);
                return (taken, Some(format!("walk with seed {seed}:\n{story}")));
            }
            parents.push((at, step));
            state = after;
        }
        (steps, None)
    }

    fn start(&self) -> State {
        State { freezes_late: self.freezes_late, ..State::new((self.world)(), self.left) }
    }

    fn moves(&self, state: &State, decided: &Next) -> Vec<Move> {
        let mut moves: Vec<Move> = state.world.progress().into_iter().map(Move::Happens).collect();
        let acts = matches!(decided, Next::Save { .. } | Next::Do(_));
        if acts {
            moves.push(Move::Turn);
            if state.left.freezes > 0 && state.frozen.is_none() {
                moves.push(Move::Freeze);
            }
        }
        if state.frozen.is_some() {
            moves.push(Move::Thaw);
        }
        if state.left.faults > 0 {
            if let Next::Do(act) = decided {
                moves.extend((1..writes_of(act)).map(Move::Cut));
            }
            // Later our mark is off again: what is left then are flags, which the next drift repair finds.
            let is_marked = state.world.kube.daemons.values().any(|daemon| daemon.stopped_by.is_some());
            if self.loses_ledger && is_marked {
                moves.push(Move::Forget);
            }
            moves.extend((self.menu)(&state.world).into_iter().map(Move::Fault));
        }
        if state.left.leaps > 0 {
            moves.extend([1, 3, 10].map(Move::Leap));
        }
        moves
    }

    /// Without further faults, and with what can be mended mended, the run ends within a bounded number of steps, or waits for
    /// something that it names and that does not mend by itself.
    fn settles(&self, state: &State, policy: &Policy, settled: &mut HashSet<u128>) -> Result<(), String> {
        let mut now = state.clone();
        let mut passed = Vec::new();
        mend(&mut now);
        let mut idle = 0;
        for _ in 0..BOUND {
            let key = now.canonical();
            if settled.contains(&key) {
                settled.extend(passed);
                return Ok(());
            }
            passed.push(key);
            let mut moved = false;
            for what in now.world.progress() {
                let before = now.clone();
                let done = Done { effects: now.world.happen(&what), ..Done::default() };
                if let Some(broken) = promises::always(&before, None, &done, &now) {
                    return Err(broken);
                }
                moved = true;
            }
            let decided = now.decide(policy);
            let before = now.clone();
            let version = now.version;
            let done = now.perform(&decided, version);
            if let Some(broken) = promises::always(&before, Some(&decided), &done, &now) {
                return Err(broken);
            }
            match &decided {
                Next::Save { .. } | Next::Do(_) => {
                    idle = if done.refused.is_some() && !moved { idle + 1 } else { 0 }
                }
                Next::Halt(_) | Next::Wait(_) if moved => idle = 0,
                Next::Finished(_) if moved || now.frozen.is_some() => idle = 0,
                Next::Finished(_) => {
                    let faults = self.stays_shut
                        || state.left.faults < self.left.faults
                        || state.left.leaps < self.left.leaps;
                    if let Some(broken) = promises::at_the_end(&now, faults) {
                        return Err(format!("at the end, {broken}"));
                    }
                    settled.extend(passed);
                    return Ok(());
                }
                Next::Halt(_) => {
                    settled.extend(passed);
                    return Ok(());
                }
                Next::Wait(wait) => {
                    idle += 1;
                    if idle > 12 && (self.stays_shut || is_for_others(wait, &now)) {
                        settled.extend(passed);
                        return Ok(());
                    }
                }
            }
            if !moved && matches!(decided, Next::Wait(_)) {
                now.world.happen(&Happening::Minutes(3));
            }
            if let Some((next, version)) =
                now.frozen.take_if(|_| idle > 2 || matches!(decided, Next::Finished(_) | Next::Halt(_)))
            {
                let before = State { thaws: true, ..now.clone() };
                let done = now.perform(&next, version);
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

    /// The story of a violation, told from the start.
    fn story(&self, parents: &[(u32, Move)], mut at: u32, last: Option<Move>, broken: &str) -> String {
        let mut steps: Vec<Move> = last.into_iter().collect();
        while at != 0 {
            let (parent, step) = &parents[at as usize];
            steps.push(step.clone());
            at = *parent;
        }
        steps.reverse();
        let policy = (self.policy)();
        let mut state = self.start();
        let mut told = vec![format!("world {}:", self.name)];
        for step in steps {
            let decided = state.decide(&policy);
            told.push(format!("  - {}", words(&step, &decided, &state)));
            let (after, done, _) = take(&state, &step, &decided);
            if let Some(why) = done.refused {
                told.push(format!("      refused: {why}"));
            }
            state = after;
        }
        told.push(format!("  => {broken}"));
        told.join("\n")
    }
}

fn take(state: &State, step: &Move, decided: &Next) -> (State, Done, Option<Next>) {
    let mut after = state.clone();
    let version = state.version;
    match step {
        Move::Turn => {
            let done = after.perform(decided, version);
            (after, done, Some(decided.clone()))
        }
        Move::Cut(writes) => {
            after.left.faults -= 1;
            let done = after.perform_until(decided, version, *writes);
            (after, done, Some(decided.clone()))
        }
        Move::Freeze => {
            after.left.freezes -= 1;
            after.frozen = Some((Box::new(decided.clone()), version));
            (after, Done::default(), None)
        }
        Move::Thaw => {
            let Some((next, version)) = after.frozen.take() else { return (after, Done::default(), None) };
            let done = after.perform(&next, version);
            (after, done, Some(*next))
        }
        Move::Happens(what) => {
            let effects = after.world.happen(what);
            (after, Done { effects, ..Done::default() }, None)
        }
        Move::Fault(what) => {
            after.left.faults -= 1;
            let effects = after.world.happen(what);
            (after, Done { effects, ..Done::default() }, None)
        }
        Move::Forget => {
            after.left.faults -= 1;
            after.ledger = osd_migrate::domain::ledger::Ledger::default();
            after.version += 1;
            (after, Done::default(), None)
        }
        Move::Leap(minutes) => {
            after.left.leaps -= 1;
            // Statistics lag by seconds, not by minutes.
            for pg in after.world.lagging() {
                after.world.happen(&Happening::Hear(pg));
            }
            after.world.happen(&Happening::Minutes(*minutes));
            (after, Done::default(), None)
        }
    }
}

fn writes_of(act: &osd_migrate::domain::act::Act) -> usize {
    use osd_migrate::domain::act::Act;
    match act {
        Act::Unhush { noin: true, .. } => 2,
        Act::RestoreCrush { .. } => 4,
        _ => 1,
    }
}

fn words(step: &Move, decided: &Next, state: &State) -> String {
    match step {
        Move::Turn => format!("the runner: {}", decision(decided)),
        Move::Cut(writes) => format!("the runner dies after {writes} writes of: {}", decision(decided)),
        Move::Freeze => format!("a runner freezes right before: {}", decision(decided)),
        Move::Thaw => match &state.frozen {
            Some((next, _)) => format!("the frozen runner thaws: {}", decision(next)),
            None => "nobody thaws".to_owned(),
        },
        Move::Happens(what) => what.to_string(),
        Move::Fault(what) => format!("! {what}"),
        Move::Forget => "! somebody deletes the ledger".to_owned(),
        Move::Leap(minutes) => format!("{minutes} minutes pass"),
    }
}

pub(crate) fn decision(next: &Next) -> String {
    match next {
        Next::Save { why, .. } => format!("saves {}", why.word()),
        Next::Do(act) => {
            let value = serde_json::to_value(act).unwrap();
            let (name, fields) = value.as_object().unwrap().iter().next().unwrap();
            let osd = fields.get("osd").or(fields.get("request").and_then(|r| r.get("osd")));
            let task = fields.get("request").and_then(|r| r.get("task"));
            format!(
                "{name} {} {}",
                osd.map(ToString::to_string).unwrap_or_default(),
                task.map(ToString::to_string).unwrap_or_default()
            )
        }
        Next::Wait(wait) => format!("waits: {wait}"),
        Next::Finished(_) => "is finished".to_owned(),
        Next::Halt(halt) => format!("halts: {halt}"),
    }
}

/// What people and machines mend sooner or later.
fn mend(state: &mut State) {
    let world = &mut state.world;
    let mut mended: Vec<Happening> = Vec::new();
    let dark = world.kube.nodes.iter().filter(|(_, node)| !node.ready);
    mended.extend(dark.map(|(name, _)| Happening::PowerBack(name.clone())));
    mended.push(Happening::FlagUnset);
    mended.push(Happening::OperatorDown);
    if world.kube.fence.as_deref() == Some("theirs") {
        mended.push(Happening::OthersUnfence);
    }
    let stopped =
        world.kube.daemons.iter().filter(|(_, daemon)| daemon.replicas == 0 && daemon.stopped_by.is_none());
    mended.extend(stopped.map(|(osd, _)| Happening::PersonStarts(*osd)));
    let outs = world.ceph.slots.iter().filter(|(_, slot)| !slot.is_in && slot.state == SlotState::Exists);
    mended.extend(outs.map(|(osd, _)| Happening::PersonIns(*osd)));
    mended.push(Happening::Confirmed);
    mended.extend(osd_migrate::sim::Around::ALL.map(|what| Happening::Around(what, false)));
    for what in mended {
        world.happen(&what);
    }
}

/// A wait for what does not mend by itself, named.
fn is_for_others(wait: &Wait, state: &State) -> bool {
    let world = &state.world;
    let orphaned = world.ceph.slots.iter().any(|(osd, slot)| {
        let lost = slot.fsid.is_none_or(|fsid| world.disk_of(fsid).is_none());
        !slot.up && (lost || !world.kube.daemons.contains_key(osd) || slot.crush.is_none())
    });
    let gone = world
        .placements
        .values()
        .any(|placement| placement.home.iter().any(|osd| !world.ceph.slots.contains_key(osd)));
    let out = world.ceph.slots.values().any(|slot| slot.up && !slot.is_in);
    match wait {
        Wait::NotOurStop { osd } => !world.kube.daemons.contains_key(osd) || orphaned,
        Wait::Gate { .. } | Wait::Node { .. } | Wait::UnsafeToWipe { .. } => orphaned || gone || out,
        Wait::Look { .. } => false,
        Wait::OutByOthers { .. } | Wait::AgentSilent { .. } | Wait::AgentBusy { .. } => true,
        Wait::Agent { .. }
        | Wait::Down { .. }
        | Wait::Up { .. }
        | Wait::ActiveClean { .. }
        | Wait::FreshView => orphaned || gone,
    }
}
