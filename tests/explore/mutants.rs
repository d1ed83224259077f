//! Each guard is taken out by name, and the search must find the harm.

use std::collections::BTreeSet;
use std::time::Duration;

use osd_migrate_core::domain::guard::{Guard, without};
use osd_migrate_core::domain::osd::OsdId;
use osd_migrate_core::domain::policy::Policy;
use osd_migrate_core::sim::{Happening, World, example};

use super::first_for::first_for;
use super::search::Search;
use super::{
    approval, around, batch, databases, directories, emptying, encrypted, everything, keyless, lag, new_osds,
    new_pvcs, noise, nothing, operator, owner, pace, pvcs, recovery, removal, rook, scrubs, unnamed, upmaps,
};

/// Returns the boots of new OSDs that are not as declared.
fn unexpected_boots(world: &World) -> Vec<Happening> {
    let boots = |osd: &OsdId| world.progress().contains(&Happening::Boots(*osd));
    world.ceph.slots.keys().copied().filter(boots).map(Happening::BootsUnexpectedly).collect()
}

/// Returns the deaths that may come while a runner is frozen.
fn deaths(world: &World) -> Vec<Happening> {
    super::deaths_of(&[super::OURS], world)
}

/// Returns what may come while a runner is frozen after its check of the ledger.
fn behind(world: &World) -> Vec<Happening> {
    let mut menu = vec![Happening::OthersFence];
    if world.ceph.slots[&super::PARTNER].up {
        menu.push(Happening::Dies(super::PARTNER));
    }
    menu
}

/// Returns what people may do while a runner is frozen right before it uses an available disk, or starts its
/// OSD.
fn behind_new(world: &World) -> Vec<Happening> {
    let mut menu = vec![Happening::Unselected];
    menu.extend(world.kube.daemons.get(&super::OURS).map(|_| Happening::PersonEdits(super::OURS)));
    menu
}

/// Returns the death of the second OSD to be restarted, which comes back while a runner is frozen.
fn second_dies(world: &World) -> Vec<Happening> {
    let is_up = |osd: &OsdId| world.ceph.slots[osd].up;
    [super::PARTNER].into_iter().filter(is_up).map(Happening::Dies).collect()
}

/// Returns the searches for mutants of the strategy for new OSDs.
fn searches_of_new() -> Vec<Search> {
    let new = Search::new;
    let late = |name, world, menu, left| Search { freezes_late: true, ..new(name, world, menu, left) };
    vec![
        new("an OSD that nothing starts", example::adopt, nothing, (0, 0, 0)),
        new_osds::on_volumes(),
        new("taints that came later", example::tolerate, nothing, (0, 0, 0)),
        new("taints that came later, a freeze and a death", example::tolerate, second_dies, (1, 1, 0)),
        new("one more disk, a fault", example::one_more, new_osds::everything, (1, 0, 0)),
        late("one more disk, a late freeze and a fault", example::one_more, behind_new, (1, 1, 0)),
        late("a slot is filled again, a late freeze and a fault", example::refill, behind_new, (1, 1, 0)),
    ]
}

/// Returns the loss of the disk to which an OSD moved from its directory, after Rook has the CephCluster
/// again.
fn loses_disk(world: &World) -> Vec<Happening> {
    let disk = "disk-new";
    let is_run = world.kube.fence.is_none() && world.is_run(&world.disks[disk]);
    [disk.to_owned()].into_iter().filter(|_| is_run).map(Happening::DiskSwapped).collect()
}

/// Returns the searches for mutants of what an OSD in a directory needs in addition.
fn searches_of_directories() -> Vec<Search> {
    let new = Search::new;
    let lost =
        new("in a directory, a late freeze and a lost disk", example::in_directory, loses_disk, (1, 1, 0));
    let too_small = || {
        let mut world = example::in_directory();
        world.disks.get_mut("disk-new").unwrap().identity.size_bytes = 1 << 30;
        world
    };
    vec![
        new("in a directory", example::in_directory, nothing, (0, 0, 0)),
        Search {
            stays_shut: true,
            ..new("in a directory, its disk is too small", too_small, nothing, (0, 0, 0))
        },
        new("in a directory, a fault", example::in_directory, directories::everything, (1, 0, 0)),
        Search { freezes_late: true, ..lost },
    ]
}

/// Returns a world whose OSDs need 51 ms to commit a write.
fn slow_to_commit() -> World {
    let mut world = example::replicated();
    let osds: Vec<OsdId> = world.ceph.slots.keys().copied().collect();
    world.ceph.commit_latency = Some(osds.into_iter().map(|osd| (osd, Duration::from_millis(51))).collect());
    world
}

/// Returns the searches for mutants, the small searches first.
fn searches() -> Vec<Search> {
    let replicated = example::replicated;
    let new = Search::new;
    let shut = |name, world| Search { stays_shut: true, ..new(name, world, nothing, (0, 0, 0)) };
    let closed = || Policy { windows: "03:00-03:01".parse().unwrap(), ..Policy::default() };
    let limited = || Policy { max_commit_latency: Some(Duration::from_millis(50)), ..Policy::default() };
    let mut searches = vec![
        shut("two replicas", || example::replicated_as(2, 1, 1)),
        shut("min_size as size", || example::replicated_as(3, 3, 1)),
        shut("too full", || example::replicated_as(3, 2, 6)),
        Search { policy: closed, ..shut("outside of the window", replicated) },
        Search { policy: limited, ..shut("commits are slow", slow_to_commit) },
        new("replicated, something around it changes", replicated, around, (1, 0, 0)),
        Search { freezes_late: true, ..new("replicated, a late freeze", replicated, nothing, (0, 1, 0)) },
        Search {
            loses_ledger: true,
            ..new("replicated, the ledger is deleted", replicated, nothing, (1, 0, 0))
        },
        new("three to do, some not as declared", example::three_to_do, unexpected_boots, (2, 0, 0)),
        new("replicated, a fault", replicated, everything, (1, 0, 0)),
        new("replicated, a freeze and a death", replicated, deaths, (1, 1, 0)),
        Search {
            freezes_late: true,
            ..new("replicated, a late freeze and a fault", replicated, behind, (1, 1, 0))
        },
    ];
    searches.push(upmaps::searched());
    searches.push(databases::searched());
    searches.push(encrypted::on_a_host_mapping());
    searches.push(unnamed::disks_move());
    searches.push(keyless("no bootstrap key", nothing, (0, 0, 0)));
    searches.push(rook::alongside("alongside Rook", nothing, (0, 0, 0)));
    searches.push(rook::both_confirmed("alongside Rook, both confirmed", nothing, (0, 0, 0)));
    searches.push(operator::frozen_late());
    searches.push(operator::paused());
    searches.push(pace::slow());
    searches.extend(noise::searches());
    searches.extend(approval::searches());
    searches.extend(pvcs::searches());
    searches.extend(emptying::searches());
    searches.extend(removal::searches());
    searches.extend(recovery::searches());
    searches.extend(batch::searches());
    searches.extend(scrubs::searches());
    searches.extend(lag::searches());
    searches.extend([new_pvcs::of_a_destroyed_osd(), new_pvcs::quarantined(), new_pvcs::recreated_late()]);
    searches.push(owner::fences(0, 0));
    searches.extend(searches_of_new());
    searches.extend(searches_of_directories());
    searches
}

/// Checks every n-th search without a mutant: tests run in parallel.
fn nothing_is_found(part: usize) {
    // The explored searches already include these.
    let explored = [
        "one more disk, a fault",
        "in a directory, a fault",
        "upmaps, purges and the balancer",
        databases::SEARCHED,
        encrypted::ON_A_HOST_MAPPING,
        unnamed::PULLED,
        new_osds::ON_VOLUMES,
        emptying::EMPTIED,
        emptying::FROZEN,
        removal::REMOVED,
        removal::FROZEN,
        removal::DIRECTORY,
        removal::NODE,
        removal::NODE_FAULT,
        recovery::OF_A_PERSON,
        scrubs::OF_A_PERSON,
        batch::ALONE,
        batch::APART,
        batch::TWO,
        batch::COMMON,
        batch::KINDS,
        batch::SOAKS,
        batch::FAILS,
        lag::AROUND,
        lag::ON_A_PVC,
        lag::ONE_MORE,
    ];
    let searches = searches().into_iter().filter(|search| !explored.contains(&search.name));
    for search in searches.skip(part).step_by(2) {
        let found = search.run();
        assert_eq!(found.violation, None, "{}", search.name);
    }
}

#[test]
fn searches_with_every_guard_find_nothing_part_1() {
    nothing_is_found(0);
}

#[test]
fn searches_with_every_guard_find_nothing_part_2() {
    nothing_is_found(1);
}

/// Number of tests among which the guards are divided: they run in parallel, and the longest one should not
/// run alone at the end.
const PARTS: usize = 4;

/// Takes out every n-th guard.
#[expect(clippy::print_stdout, reason = "the figures")]
fn take_out(part: usize) {
    let (mut missed, mut late) = (BTreeSet::new(), BTreeSet::new());
    for guard in Guard::ALL.iter().skip(part).step_by(PARTS) {
        let mut searches = searches();
        searches.sort_by_key(|search| search.name != first_for(*guard));
        let found = searches.into_iter().find_map(|search| {
            let found = without(Some(*guard), || search.run());
            found.violation.map(|story| (search.name, found.states, story))
        });
        if let Some((name, states, story)) = found {
            let last = story.lines().find(|line| line.starts_with("  =>")).unwrap_or_default();
            println!("mutant {guard:?} found in `{name}` after {states} states:{last}");
            if name != first_for(*guard) {
                late.insert((*guard, name));
            }
        } else {
            println!("mutant {guard:?} not found");
            missed.insert(*guard);
        }
    }
    assert!(missed.is_empty(), "taken out, and nothing happened: {missed:?}");
    assert!(late.is_empty(), "found, but not in the search that first_for names: {late:?}");
}

/// Checks guards that both strategies need, with a search for new OSDs.
#[test]
fn mutants_of_guards_are_found_by_searches_for_new_osds() {
    let guards = [
        Guard::AllClean,
        Guard::AttemptSavedFirst,
        Guard::CleanAtTheEnd,
        Guard::Confirmed,
        Guard::ConformsAtTheEnd,
        Guard::FailuresEnd,
        Guard::NewSavedFirst,
        Guard::NodeNotCordoned,
        Guard::NodeReady,
        Guard::NotPaused,
        Guard::OneAgent,
        Guard::OperatorAway,
        Guard::ReportedAtTheEnd,
        Guard::RookPreparesNone,
        Guard::StatisticsFresh,
        Guard::StillWanted,
    ];
    for guard in guards {
        let found = searches_of_new().into_iter().find_map(|search| {
            let found = without(Some(guard), || search.run());
            found.violation.map(|story| (search.name, found.states, story))
        });
        let (name, states, story) = found.unwrap_or_else(|| panic!("{guard:?}: nothing happened"));
        let last = story.lines().find(|line| line.starts_with("  =>")).unwrap_or_default();
        println!("mutant {guard:?} found in `{name}` after {states} states:{last}");
    }
}

/// Checks guards that all strategies need, with a search of OSDs in directories.
#[test]
fn mutants_of_guards_are_found_by_searches_of_directories() {
    let guards = [
        Guard::AgentProvesAgain,
        Guard::AgentSlotDestroyed,
        Guard::CleanAtTheEnd,
        Guard::ConformsAtTheEnd,
        Guard::EnoughSpace,
        Guard::ProofNames,
        Guard::ProvenFirst,
        Guard::StillWanted,
        Guard::DiskAvailable,
    ];
    let mut missed = BTreeSet::new();
    for guard in guards {
        let found = searches_of_directories().into_iter().find_map(|search| {
            let found = without(Some(guard), || search.run());
            found.violation.map(|story| (search.name, found.states, story))
        });
        let Some((name, states, story)) = found else {
            missed.insert(guard);
            continue;
        };
        let last = story.lines().find(|line| line.starts_with("  =>")).unwrap_or_default();
        println!("mutant {guard:?} found in `{name}` after {states} states:{last}");
    }
    assert!(missed.is_empty(), "taken out, and nothing happened: {missed:?}");
}

#[test]
fn mutant_of_each_guard_is_found_part_1() {
    take_out(0);
}

#[test]
fn mutant_of_each_guard_is_found_part_2() {
    take_out(1);
}

#[test]
fn mutant_of_each_guard_is_found_part_3() {
    take_out(2);
}

#[test]
fn mutant_of_each_guard_is_found_part_4() {
    take_out(3);
}

/// Checks that the search about a rule of progress finds a violation when the rule is taken out.
#[test]
fn mutant_of_each_progress_rule_is_found_by_its_own_search() {
    let rules = [
        Guard::AdmittedFirst,
        Guard::AgentRetriesSpaced,
        Guard::DownIsNoCandidate,
        Guard::InProgressIsRead,
        Guard::IntentOutlivesSlowIterations,
        Guard::LimitPastStopOnly,
        Guard::ListExpires,
        Guard::NooutHasAnEnd,
        Guard::OperatorRestored,
        Guard::OperatorRestoreSavedFirst,
        Guard::PartsExpire,
        Guard::PassingStatesWait,
        Guard::PlacedSinceExcused,
        Guard::PoolQuotaIsNoFull,
        Guard::SkipsSickCandidate,
        Guard::StartHasALimit,
        Guard::StopHasALimit,
    ];
    let mut missed = Vec::new();
    for rule in rules {
        let own = searches().into_iter().find(|search| search.name == first_for(rule)).unwrap();
        let found = without(Some(rule), || own.run());
        let story = found.violation.unwrap_or_else(|| {
            missed.push(rule);
            String::new()
        });
        let last = story.lines().find(|line| line.starts_with("  =>")).unwrap_or_default();
        println!("mutant {rule:?} found in `{}` after {} states:{last}", own.name, found.states);
    }
    assert!(missed.is_empty(), "taken out, and nothing happened: {missed:?}");
}
