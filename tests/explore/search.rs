//! A breadth-first search through everything that can happen, so that the first violation is the shortest
//! story.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};

use osd_migrate_core::domain::ledger::Ledger;
use osd_migrate_core::domain::next::{Next, Wait};
use osd_migrate_core::domain::policy::Policy;
use osd_migrate_core::domain::shared::Shared;
use osd_migrate_core::sim::{Happening, World};

use super::lag::Lags;
use super::owner::Owner;
use super::state::{Allowance, Done, State};
use super::words::words;
use super::{approval, pace, promises};

/// One step of a story.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Move {
    /// An iteration of a runner.
    Iteration,
    /// An act of a runner that dies after this many of its writes.
    Cut(usize),
    /// An iteration after which a runner may observe partly.
    Keep,
    /// A runner has read the osdmap, or listed the OSDs, and not yet the rest.
    Read,
    /// A save or an act of a runner that decides by parts.
    ByParts(Shared<Next>),
    /// An iteration of a runner whose last act on an OSD failed: others have their turn.
    Turn(Shared<Next>),
    /// A decision of a runner that is frozen before it acts.
    Freeze,
    /// The frozen runner resumes.
    Thaw,
    /// Something happens by itself.
    Happens(Happening),
    /// A fault, or an external change.
    Fault(Happening),
    /// Time passes.
    Leap(u32),
    /// A minute passes for a runner that waits for something shorter.
    Later,
    /// The owner does this, or this happens to the command of the owner.
    Owner(Owner),
    /// A person deletes the ledger.
    Forget,
}

/// Faults that are possible in a world.
pub(crate) type Menu = fn(&World) -> Vec<Happening>;

pub(crate) struct Search {
    pub(crate) name: &'static str,
    pub(crate) world: fn() -> World,
    pub(crate) left: Allowance,
    pub(crate) menu: Menu,
    pub(crate) policy: fn() -> Policy,
    /// Nothing is to be done in this world: a gate stays shut permanently.
    pub(crate) stays_shut: bool,
    /// One OSD of this world cannot be migrated, and the others can.
    pub(crate) has_sick: bool,
    /// See `State`.
    pub(crate) freezes_late: bool,
    /// See `State`.
    pub(crate) lags: Lags,
    /// Any act on an OSD may fail.
    pub(crate) acts_fail: bool,
    /// Seconds that an iteration takes; see `pace`.
    pub(crate) pace: i64,
    /// Progress of the owner at the start; see `owner`.
    pub(crate) owner: Owner,
    /// The stored ledger may be deleted externally, as a fault.
    pub(crate) loses_ledger: bool,
    /// Ledger at the start.
    pub(crate) ledger: fn(&World) -> Ledger,
    /// Course of the run before the search begins.
    pub(crate) earlier: fn(State) -> State,
}

#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) states: usize,
    pub(crate) transitions: usize,
    pub(crate) violation: Option<String>,
}

/// Highest number of states: with more, the bounds must be reduced.
///
/// The search is never cut short.
const TOO_MANY: usize = 3_000_000;

impl Search {
    pub(crate) fn new(name: &'static str, world: fn() -> World, menu: Menu, left: (u8, u8, u8)) -> Self {
        let left = Allowance { faults: left.0, freezes: left.1, leaps: left.2 };
        Self {
            name,
            world,
            left,
            menu,
            policy: Policy::default,
            stays_shut: false,
            has_sick: false,
            freezes_late: false,
            lags: Lags::Never,
            acts_fail: false,
            pace: 0,
            owner: Owner::Absent,
            loses_ledger: false,
            ledger: |_| Ledger::default(),
            earlier: |state| state,
        }
    }

    pub(crate) fn run(&self) -> Found {
        let policy = (self.policy)();
        let start = self.start();
        let mut found = Found::default();
        let mut index: HashMap<u128, u32> = HashMap::from([(start.canonical(), 0)]);
        let mut parents: Vec<(u32, Move)> = vec![(0, Move::Iteration)];
        let mut settled: HashSet<u128> = HashSet::new();
        let mut layer = vec![(0_u32, Box::new(start))];
        while !layer.is_empty() {
            let mut next_layer = Vec::new();
            for (at, state) in layer {
                let decided = state.decide(&policy);
                if let Err(why) = self.settles(&state, &policy, &mut settled) {
                    found.violation = Some(self.story(&parents, at, None, &why));
                    found.states = index.len();
                    return found;
                }
                for step in self.moves(&state, &decided, &policy) {
                    found.transitions += 1;
                    let (after, done, acted) = take(&state, &step, &decided);
                    let thawing = state.is_late(&step).then(|| State { thaws: true, ..State::clone(&state) });
                    let before = thawing.as_ref().unwrap_or(&state);
                    let broken = promises::always(before, acted.as_deref(), &done, &after)
                        .or_else(|| promises::begun(before, &after, &policy))
                        .or_else(|| approval::begun(before, &after, &policy));
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
                        next_layer.push((number, Box::new(after)));
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

    /// Takes one seeded walk of `steps` steps, beyond the bounds of the exhaustive search.
    ///
    /// Returns the number of steps taken, and the violation if the walk found one.
    pub(crate) fn walk(&self, seed: u64, steps: usize) -> (usize, Option<String>) {
        let policy = (self.policy)();
        let mut chance = fastrand::Rng::with_seed(seed);
        let mut state = self.start();
        let mut parents = vec![(0, Move::Iteration)];
        for taken in 0..steps {
            let decided = state.decide(&policy);
            // Faults are rare; otherwise the allowance would be spent before any OSD is in progress.
            let rare =
                |step: &Move| matches!(step, Move::Fault(_) | Move::Leap(_) | Move::Cut(_) | Move::Forget);
            let (wrong, usual): (Vec<_>, Vec<_>) =
                self.moves(&state, &decided, &policy).into_iter().partition(rare);
            let goes_wrong = usual.is_empty() || chance.usize(..20) == 0;
            let moves = if goes_wrong && !wrong.is_empty() { wrong } else { usual };
            let Some(step) = (!moves.is_empty()).then(|| moves[chance.usize(..moves.len())].clone()) else {
                return (taken, None);
            };
            let before = State { thaws: state.is_late(&step), ..state.clone() };
            let (after, done, acted) = take(&state, &step, &decided);
            let at = u32::try_from(parents.len()).unwrap() - 1;
            if let Some(broken) = promises::always(&before, acted.as_deref(), &done, &after) {
                let story = self.story(&parents, at, Some(step), &broken);
                return (taken, Some(format!("walk with seed {seed}:\n{story}")));
            }
            parents.push((at, step));
            state = after;
        }
        (steps, None)
    }

    fn start(&self) -> State {
        let by_flag = (self.policy)().confirmed;
        let world = (self.world)();
        let ledger = (self.ledger)(&world).into();
        let state = State { ledger, ..State::new(world, self.left) };
        (self.earlier)(State {
            freezes_late: self.freezes_late,
            lags: self.lags,
            pace: self.pace,
            owner: self.owner,
            by_flag,
            ..state
        })
    }

    fn moves(&self, state: &State, decided: &Next, policy: &Policy) -> Vec<Move> {
        let mut moves: Vec<Move> = state.world.progress().into_iter().map(Move::Happens).collect();
        let acts = matches!(decided, Next::Save { .. } | Next::Do(_));
        if matches!(decided, Next::Wait(Wait::ActiveClean { .. } | Wait::Emptying { .. })) && is_young(state)
        {
            moves.push(Move::Later);
        }
        if acts {
            moves.push(Move::Iteration);
            if state.left.freezes > 0 && state.frozen.is_none() {
                moves.push(Move::Freeze);
            }
        }
        if state.frozen.is_some() {
            moves.push(Move::Thaw);
        }
        if self.acts_fail {
            let turn = state.decide_after_failure(decided, policy);
            moves.extend(turn.map(|next| Move::Turn(next.into())));
        }
        moves.extend(state.lagging_moves(decided, policy));
        moves.extend(state.owner_moves(decided));
        if state.left.faults > 0 {
            if let Next::Do(act) = decided {
                moves.extend((1..writes_of(act)).map(Move::Cut));
            }
            // Later osd-migrate's mark is removed: only flags remain then, which the next drift repair finds.
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

    /// Returns the story of a violation from the start.
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
        let mut lines = vec![format!("world {}, an iteration takes {} s:", self.name, self.pace)];
        for step in steps {
            let decided = state.decide(&policy);
            lines.push(format!("  - {}", words(&step, &decided, &state)));
            let (after, done, _) = take(&state, &step, &decided);
            if let Some(why) = done.refused {
                lines.push(format!("      refused: {why}"));
            }
            state = after;
        }
        lines.push(format!("  => {broken}"));
        lines.join("\n")
    }
}

fn take<'a>(state: &State, step: &Move, decided: &'a Next) -> (State, Done, Option<Cow<'a, Next>>) {
    let mut after = state.clone();
    let version = state.version;
    match step {
        Move::Iteration => {
            pace::pass(&mut after.world, state.pace);
            let done = after.perform(decided, version);
            after.kept = None;
            (after, done, Some(Cow::Borrowed(decided)))
        }
        Move::Turn(next) => {
            let done = after.perform(next, version);
            (after, done, Some(Cow::Owned(Next::clone(next))))
        }
        Move::Keep => {
            let done = after.perform_and_keep(decided);
            (after, done, Some(Cow::Borrowed(decided)))
        }
        Move::Read => {
            after.keep();
            (after, Done::default(), None)
        }
        Move::ByParts(next) => {
            let done = after.perform_by_parts(next);
            (after, done, Some(Cow::Owned(Next::clone(next))))
        }
        Move::Cut(writes) => {
            after.left.faults -= 1;
            pace::pass(&mut after.world, state.pace);
            let done = after.perform_until(decided, version, *writes);
            (after, done, Some(Cow::Borrowed(decided)))
        }
        Move::Freeze => {
            after.left.freezes -= 1;
            after.frozen = Some((decided.clone().into(), version, state.world.read()));
            (after, Done::default(), None)
        }
        Move::Thaw => {
            let Some((next, version, read)) = after.frozen.take() else {
                return (after, Done::default(), None);
            };
            let done = after.perform_as_read(&next, version, &read);
            (after, done, Some(Cow::Owned(Next::clone(&next))))
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
        Move::Owner(what) => {
            after.owner_does(*what);
            (after, Done::default(), None)
        }
        Move::Forget => {
            after.left.faults -= 1;
            after.ledger = Shared::default();
            after.version += 1;
            (after, Done::default(), None)
        }
        Move::Leap(minutes) => {
            after.left.leaps -= 1;
            minutes_pass(&mut after.world, *minutes);
            (after, Done::default(), None)
        }
        Move::Later => {
            minutes_pass(&mut after.world, 1);
            (after, Done::default(), None)
        }
    }
}

/// Lets minutes pass; statistics lag by seconds, not by minutes.
fn minutes_pass(world: &mut World, minutes: u32) {
    for pg in world.lagging() {
        world.happen(&Happening::PgReports(pg));
    }
    world.happen(&Happening::Minutes(minutes));
}

/// Returns whether a new OSD came up, or an old one was marked out, less than a minute ago.
fn is_young(state: &State) -> bool {
    let is_young = |at: DateTime<Utc>| (state.world.at - at).num_minutes() < 1;
    state.ledger.in_flight().any(|record| {
        let out = record.empty.as_ref().and_then(|empty| empty.out_since);
        record.up_seen.map(|(_, at)| at).into_iter().chain(out).any(is_young)
    })
}

fn writes_of(act: &osd_migrate_core::domain::act::Act) -> usize {
    use osd_migrate_core::domain::act::{Act, CephAct};
    match act {
        Act::Ceph(CephAct::UnsetOsdFlags { noin: true, .. }) => 2,
        Act::Ceph(CephAct::RestoreCrush { .. }) => 4,
        Act::Ceph(CephAct::RestoreUpmaps { upmaps, .. }) => upmaps.len(),
        _ => 1,
    }
}
