//! What may happen in the worlds of the searches, and how a search is run.

use osd_migrate_core::domain::guard::{Guard, without};
use osd_migrate_core::domain::observation::SlotState;
use osd_migrate_core::domain::osd::OsdId;
use osd_migrate_core::sim::{Around, Disk, Happening, Stage, Stumble, World};

use super::search::{Menu, Search};
use super::state::Allowance;

pub(crate) const OURS: OsdId = OsdId(0);
pub(crate) const PARTNER: OsdId = OsdId(1);

/// Returns an empty menu.
pub(crate) fn nothing(_: &World) -> Vec<Happening> {
    Vec::new()
}

/// Returns everything that is modelled, for one OSD and one partner (the others are like it).
pub(crate) fn everything(world: &World) -> Vec<Happening> {
    let mut menu = spontaneous(world);
    menu.extend(people(world));
    menu
}

/// Returns the faults that happen by themselves.
pub(crate) fn spontaneous(world: &World) -> Vec<Happening> {
    let mut menu = Vec::new();
    menu.extend(deaths_of(&[OURS, PARTNER], world));
    menu.extend(agents(world));
    menu.extend(world.ceph.pgs.keys().next().map(|pg| Happening::MgrForgets(*pg)));
    let boots = world.progress().into_iter().find(|what| *what == Happening::Boots(OURS));
    menu.extend(boots.map(|_| Happening::BootsUnexpectedly(OURS)));
    let node = world.disks["disk-0"].node.clone();
    if world.kube.nodes[&node].ready {
        menu.push(Happening::PowerLost(node));
    }
    menu
}

/// Returns the death of each of these OSDs that is up.
pub(crate) fn deaths_of(osds: &[OsdId], world: &World) -> Vec<Happening> {
    let is_up = |osd: &&OsdId| world.ceph.slots.get(osd).is_some_and(|slot| slot.up);
    osds.iter().filter(is_up).map(|osd| Happening::Dies(*osd)).collect()
}

/// Returns the faults of node agents.
pub(crate) fn agents(world: &World) -> Vec<Happening> {
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
pub(crate) fn around(_: &World) -> Vec<Happening> {
    let mut menu: Vec<_> = Around::ALL.map(|what| Happening::Around(what, true)).into();
    menu.extend([Happening::FlagSet, Happening::OperatorUp, Happening::OthersFence, Happening::Unconfirmed]);
    menu
}

/// Returns the faults that may come in pairs: faults that happen by themselves, and what people do to an OSD
/// in progress.
///
/// Pairs exclude two combinations of deliberate acts whose outcome is known and described in
/// `docs/concepts/safety.md`: a purge with a start or a stop, and a ceph-volume that bypasses the shim.
pub(crate) fn pairs(world: &World) -> Vec<Happening> {
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
pub(crate) fn people(world: &World) -> Vec<Happening> {
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
pub(crate) fn with_the_osd(world: &World, disk: &Disk) -> Vec<Happening> {
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
pub(crate) fn explored(search: &Search) {
    let found = search.run();
    let Allowance { faults, freezes, leaps } = search.left;
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
pub(crate) fn needs(search: impl Fn() -> Search, guards: &[Guard]) {
    for guard in guards {
        let found = without(Some(*guard), || search().run());
        assert!(found.violation.is_some(), "{guard:?} was taken out, and nothing happened");
    }
}

pub(crate) fn explore(name: &'static str, world: fn() -> World, menu: Menu, left: (u8, u8, u8)) {
    explored(&Search::new(name, world, menu, left));
}

/// Returns whether the wider bounds are searched, which takes minutes: `make lab-full` sets EXPLORE_FULL.
#[expect(clippy::disallowed_methods, reason = "how much time there is, the one who starts the tests says")]
pub(crate) fn has_time() -> bool {
    std::env::var_os("EXPLORE_FULL").is_some()
}
