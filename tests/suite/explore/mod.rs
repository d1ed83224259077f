//! All states: the real `plan`, `step` and `gate` over the simulated cluster, searched breadth first.
//!
//! The search takes every order in which things may happen, go wrong or be done externally. See
//! `docs/concepts/safety.md`.

pub(crate) mod approval;
mod canonical;
mod databases;
mod directories;
mod drains;
mod emptying;
mod encrypted;
mod ending;
mod first_for;
pub(crate) mod mutants;
mod new_osds;
mod new_pvcs;
mod noise;
mod operator;
mod owner;
mod pace;
mod promises;
mod pvcs;
mod recovery;
mod removal;
mod rook;
mod scrubs;
mod search;
mod state;
mod unnamed;
mod upmaps;

use osd_migrate::domain::guard::{Guard, without};
use osd_migrate::domain::observation::SlotState;
use osd_migrate::domain::osd::OsdId;
use osd_migrate::sim::{Around, Disk, Happening, Stage, Stumble, World, example};

use search::{Menu, Search};

const OURS: OsdId = OsdId(0);
const PARTNER: OsdId = OsdId(1);

/// Returns an empty menu.
fn nothing(_: &World) -> Vec<Happening> {
    Vec::new()
}

/// Returns a search in which client.bootstrap-osd is missing: Rook from 1.19 on deletes it.
fn keyless(name: &'static str, menu: Menu, left: (u8, u8, u8)) -> Search {
    let world = || {
        let mut world = example::replicated();
        world.ceph.bootstrap = Some(false);
        world
    };
    Search::new(name, world, menu, left)
}

/// Returns everything that is modelled, for one OSD and one partner (the others are like it).
fn everything(world: &World) -> Vec<Happening> {
    let mut menu = spontaneous(world);
    menu.extend(people(world));
    menu
}

/// Returns the faults that happen by themselves.
fn spontaneous(world: &World) -> Vec<Happening> {
    let mut menu = Vec::new();
    menu.extend(deaths_of(&[OURS, PARTNER], world));
    menu.extend(agents(world));
    menu.extend(world.ceph.pgs.keys().next().map(|pg| Happening::MgrForgets(pg.clone())));
    let boots = world.progress().into_iter().find(|what| *what == Happening::Boots(OURS));
    menu.extend(boots.map(|_| Happening::BootsUnexpectedly(OURS)));
    let node = world.disks["disk-0"].node.clone();
    if world.kube.nodes[&node].ready {
        menu.push(Happening::PowerLost(node));
    }
    menu
}

/// Returns the death of each of these OSDs that is up.
fn deaths_of(osds: &[OsdId], world: &World) -> Vec<Happening> {
    let is_up = |osd: &&OsdId| world.ceph.slots.get(osd).is_some_and(|slot| slot.up);
    osds.iter().filter(is_up).map(|osd| Happening::Dies(*osd)).collect()
}

/// Returns the faults of node agents.
fn agents(world: &World) -> Vec<Happening> {
    let mut menu = Vec::new();
    for (job, agent) in &world.agents {
        menu.push(Happening::AgentDies(job.clone()));
        if world.running_jobs().contains(job) {
            menu.push(Happening::AgentLost(job.clone()));
        }
        let at_work = match agent.stage {
            Stage::Buried { .. } | Stage::Registered { .. } | Stage::Labelled { .. } => true,
            Stage::Waiting | Stage::Inspected { .. } | Stage::Proven { .. } | Stage::Reporting { .. } => {
                false
            }
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
    menu
}

/// Returns the changes around the OSDs.
fn around(_: &World) -> Vec<Happening> {
    let mut menu: Vec<_> = Around::ALL.map(|what| Happening::Around(what, true)).into();
    menu.extend([Happening::FlagSet, Happening::OperatorUp, Happening::OthersFence, Happening::Unconfirmed]);
    menu
}

/// Returns the faults that may come in pairs: faults that happen by themselves, and what people do to an OSD
/// in progress.
///
/// Pairs exclude two combinations of deliberate acts whose outcome is known and described in
/// `docs/concepts/safety.md`: a purge with a start or a stop, and a ceph-volume that bypasses the shim.
fn pairs(world: &World) -> Vec<Happening> {
    let mut menu = spontaneous(world);
    menu.retain(|what| !matches!(what, Happening::AgentStumbles(_, Stumble::IgnoresIdPastUs)));
    menu.extend(people(world).into_iter().filter(|what| {
        matches!(
            what,
            Happening::PersonStops(_)
                | Happening::PersonStarts(_)
                | Happening::PersonUnfences
                | Happening::DiskSwapped(_)
                | Happening::IdTakenExternally
        )
    }));
    menu
}

/// Returns what people and Rook do.
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
        // A person who writes to a disk opens it exclusively too.
        menu.push(Happening::DiskOverwritten("disk-0".to_owned()));
    }
    menu.extend(with_the_osd(world, disk));
    menu
}

/// Returns what people do with the Deployment, the slot and the fence of an OSD whose new store is to be on
/// `disk`.
fn with_the_osd(world: &World, disk: &Disk) -> Vec<Happening> {
    let mut menu = Vec::new();
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
        // Excluded while an agent has the disk open: between its last proof and its first write it cannot
        // notice the change.
        Some(slot) if slot.state == SlotState::Destroyed && disk.held_by.is_none() => {
            menu.extend([Happening::PersonReregisters(OURS), Happening::PersonPurges(OURS)]);
        }
        Some(slot) if !slot.up => menu.push(Happening::PersonPurges(OURS)),
        Some(_) => {}
        None => menu.push(Happening::IdTakenExternally),
    }
    if world.kube.fence.is_some() {
        menu.push(Happening::PersonUnfences);
    }
    menu
}

#[expect(clippy::print_stdout, reason = "the figures")]
fn explored(search: &Search) {
    let found = search.run();
    let state::Allowance { faults, freezes, leaps } = search.left;
    println!(
        "explored {}: at most {faults} faults, {freezes} freezes, {leaps} leaps in time: \
         {} states, {} transitions",
        search.name, found.states, found.transitions,
    );
    if let Some(story) = found.violation {
        panic!("{story}");
    }
}

/// Asserts that the search finds a violation when any one of the guards is taken out.
fn needs(search: impl Fn() -> Search, guards: &[Guard]) {
    for guard in guards {
        let found = without(Some(*guard), || search().run());
        assert!(found.violation.is_some(), "{guard:?} was taken out, and nothing happened");
    }
}

fn explore(name: &'static str, world: fn() -> World, menu: Menu, left: (u8, u8, u8)) {
    explored(&Search::new(name, world, menu, left));
}

#[test]
fn replicated_cluster_survives_leaps_in_time() {
    explore("replicated", example::replicated, nothing, (0, 0, 2));
}

#[test]
fn replicated_cluster_survives_a_fault_of_any_kind() {
    explore("replicated", example::replicated, everything, (1, 0, 0));
}

#[test]
fn replicated_cluster_survives_a_change_around_the_osds() {
    explore("replicated", example::replicated, around, (1, 0, 0));
}

#[test]
fn two_osds_on_a_host_survive_a_freeze() {
    explore("two on a host", example::two_on_a_host, nothing, (0, 1, 0));
}

#[test]
fn run_without_bootstrap_key_survives_a_fault_or_a_freeze() {
    explored(&keyless("no bootstrap key, a fault", agents, (1, 0, 0)));
    explored(&keyless("no bootstrap key, a freeze", nothing, (0, 1, 0)));
}

/// Returns a search in which a person removes the fence, and a runner that is to set it again sleeps right
/// before it writes.
#[test]
fn replicated_cluster_survives_a_late_fence() {
    let unfenced = |_: &World| vec![Happening::PersonUnfences];
    let late = Search::new("replicated, a late fence", example::replicated, unfenced, (1, 1, 0));
    explored(&Search { freezes_late: true, ..late });
}

#[test]
fn erasure_coded_cluster_survives_a_fault_of_any_kind() {
    explore("erasure coded", example::erasure_coded, everything, (1, 0, 0));
}

/// Returns whether the wider bounds are searched, which takes minutes: `make lab-full` sets EXPLORE_FULL.
#[expect(clippy::disallowed_methods, reason = "how much time there is, the one who starts the tests says")]
fn has_time() -> bool {
    std::env::var_os("EXPLORE_FULL").is_some()
}

/// Checks seeded walks with many faults one after the other, deeper than the exhaustive search can go.
#[test]
fn random_walks_with_many_faults_find_no_violation() {
    let walks = if has_time() { 30_000 } else { 300 };
    let mut steps = 0;
    for search in [
        Search::new("two on a host", example::two_on_a_host, spontaneous, (5, 0, 4)),
        Search::new("erasure coded", example::erasure_coded, spontaneous, (5, 0, 4)),
    ] {
        for seed in 0..walks {
            let (taken, violation) = search.walk(seed, 250);
            steps += taken;
            assert_eq!(violation, None, "{}", violation.as_deref().unwrap_or_default());
        }
    }
    println!("walked {steps} steps on {} walks with at most 5 faults and 4 leaps in time", 2 * walks);
}

#[test]
fn migrations_wider_if_there_is_time() {
    if !has_time() {
        println!("wider bounds: in `make lab-full` (EXPLORE_FULL)");
        return;
    }
    explore("replicated", example::replicated, pairs, (1, 1, 0));
    explore("replicated", example::replicated, pairs, (2, 0, 0));
    explore("replicated", example::replicated, everything, (1, 1, 0));
    explore("replicated", example::replicated, everything, (1, 0, 1));
    explore("two on a host", example::two_on_a_host, everything, (1, 0, 0));
    explore("replicated", example::replicated, spontaneous, (1, 0, 1));
    explore("replicated", example::replicated, around, (1, 0, 1));
    explore("erasure coded", example::erasure_coded, everything, (1, 0, 1));
}

/// Returns the promise that a change of the world breaks, whatever caused the change.
///
/// The check does not know what a runner decided.
pub(crate) fn broken_promise(
    (before, after): (&World, &World),
    ledger: &osd_migrate::domain::ledger::Ledger,
    effects: &[osd_migrate::sim::Effect],
    by_flag: bool,
) -> Option<String> {
    let state = |world: &World| state::State {
        ledger: ledger.clone().into(),
        by_flag,
        ..state::State::new(world.clone(), state::Allowance { faults: 0, freezes: 0, leaps: 0 })
    };
    let done = state::Done { effects: effects.to_vec(), ..state::Done::default() };
    promises::always(&state(before), None, &done, &state(after))
}
