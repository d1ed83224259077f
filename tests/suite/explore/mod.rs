//! All states: the real `plan`, `step` and `gate` over the simulated cluster, breadth first, with every order in which things may
//! happen, go wrong or be done by others. See `docs/safety.md`.

mod promises;
mod search;
mod state;

use osd_migrate::domain::osd::OsdId;
use osd_migrate::sim::{Happening, Stage, Stumble, World, example};

use search::Search;
use state::Budget;

const OURS: OsdId = OsdId(0);
const PARTNER: OsdId = OsdId(1);

/// Nothing.
fn nothing(_: &World) -> Vec<Happening> {
    Vec::new()
}

/// Everything that is modelled, of one OSD and one partner (the others are like it).
fn everything(world: &World) -> Vec<Happening> {
    let mut menu = machines(world);
    menu.extend(people(world));
    menu
}

/// What breaks by itself.
fn machines(world: &World) -> Vec<Happening> {
    let mut menu = Vec::new();
    for osd in [OURS, PARTNER] {
        if world.ceph.slots.get(&osd).is_some_and(|slot| slot.up) {
            menu.push(Happening::Dies(osd));
        }
    }
    for (job, agent) in &world.agents {
        menu.push(Happening::AgentDies(job.clone()));
        if world.running_jobs().contains(job) {
            menu.push(Happening::AgentLost(job.clone()));
        }
        let at_work = match agent.stage {
            Stage::Buried { .. } | Stage::Claimed { .. } | Stage::Labelled { .. } => true,
            Stage::Waiting | Stage::Looked { .. } | Stage::Proven { .. } | Stage::Reporting { .. } => false,
        };
        let stumbles = [
            Stumble::Fails,
            Stumble::DoesNothing,
            Stumble::RollsBack,
            Stumble::RollsBackPastUs,
            Stumble::IgnoresId,
            Stumble::IgnoresIdPastUs,
        ];
        menu.extend(
            stumbles.into_iter().filter(|_| at_work).map(|how| Happening::AgentStumbles(job.clone(), how)),
        );
    }
    let node = world.disks["disk-0"].node.clone();
    if world.kube.nodes[&node].ready {
        menu.push(Happening::PowerLost(node));
    }
    menu
}

/// What people, and Rook, do.
fn people(world: &World) -> Vec<Happening> {
    let mut menu = vec![
        Happening::DiskSwapped("disk-0".to_owned()),
        Happening::Unconfirmed,
        Happening::OthersFence,
        Happening::FlagSet,
        Happening::OperatorUp,
        Happening::PersonOuts(OURS),
    ];
    let disk = &world.disks["disk-0"];
    if disk.held_by.is_none() && !world.is_run(disk) {
        // Who writes to a disk opens it exclusively too.
        menu.push(Happening::DiskOverwritten("disk-0".to_owned()));
    }
    if let Some(daemon) = world.kube.daemons.get(&OURS) {
        menu.push(match daemon.replicas {
            0 => Happening::PersonStarts(OURS),
            _ => Happening::PersonStops(OURS),
        });
        menu.extend([
            Happening::PersonEdits(OURS),
            Happening::PersonDeletes(OURS),
            Happening::PersonRecreates(OURS),
        ]);
    }
    match world.ceph.slots.get(&OURS) {
        Some(slot) if !slot.up => menu.push(Happening::PersonPurges(OURS)),
        Some(_) => {}
        None => menu.push(Happening::OthersTakeId),
    }
    if world.kube.fence.is_some() {
        menu.push(Happening::PersonUnfences);
    }
    menu
}

const SEARCHES: &[Search] = &[
    Search {
        name: "replicated, nothing goes wrong",
        world: example::replicated,
        left: Budget { faults: 0, freezes: 0, leaps: 1 },
        menu: nothing,
    },
    Search {
        name: "replicated, a runner freezes",
        world: example::replicated,
        left: Budget { faults: 0, freezes: 1, leaps: 0 },
        menu: nothing,
    },
    Search {
        name: "replicated, one fault of any kind",
        world: example::replicated,
        left: Budget { faults: 1, freezes: 0, leaps: 0 },
        menu: everything,
    },
];

#[test]
fn in_every_state_the_promises_hold() {
    for search in SEARCHES {
        let began = std::time::Instant::now();
        let found = search.run();
        println!(
            "{}: {:?}: {} states, {} transitions, {:.1} s",
            search.name,
            search.left,
            found.states,
            found.transitions,
            began.elapsed().as_secs_f64()
        );
        if let Some(story) = found.violation {
            panic!("{story}");
        }
    }
}

/// The same promises, asked of one change of a world by whoever changes it: not of what a runner decided.
pub(crate) fn broken_promise(
    before: &World,
    ledger: &osd_migrate::domain::ledger::Ledger,
    effects: &[osd_migrate::sim::Effect],
    after: &World,
) -> Option<String> {
    let state = |world: &World| state::State {
        ledger: ledger.clone(),
        ..state::State::new(world.clone(), Budget { faults: 0, freezes: 0, leaps: 0 })
    };
    let done = state::Done { effects: effects.to_vec(), ..state::Done::default() };
    promises::always(&state(before), None, &done, &state(after))
}
