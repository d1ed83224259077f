//! The rule about PGs before a stop is implemented twice: for one OSD (`gate::before_stop`), and for all OSDs
//! in one pass (`gate::Own`). Both open for the same generated clusters. (Of two PGs, one unknown and one
//! that shuts, `Own` names the first.)

use osd_migrate::domain::gate::{self, Gate, Own};
use osd_migrate::domain::ledger::Run;
use osd_migrate::domain::observation::{Ambiguity, SlotState};
use osd_migrate::domain::osd::{Epoch, OsdId};
use osd_migrate::domain::policy::Accepted;

use crate::support::build::{OSDS, POOL, World, node_of, states};

/// Number of generated clusters, each asked about every OSD that is up: two seconds without optimization.
const CLUSTERS: u64 = 3_000;

/// States of PGs: clean, moving, accepted or not, in transition, and without a copy.
const STATES: [&str; 14] = [
    "active+clean",
    "active+clean+scrubbing+deep",
    "active+clean+remapped",
    "active+remapped+backfill_wait",
    "active+remapped+backfilling",
    "active+clean+inconsistent",
    "active+undersized+degraded",
    "active+recovering+degraded",
    "active+recovery_wait",
    "clean+premerge+peered",
    "active+clean+laggy",
    "peering",
    "unknown",
    "down",
];

/// Returns a cluster in which most PGs are clean; otherwise every gate would be shut.
fn generated(seed: u64) -> (World, Accepted) {
    let mut random = fastrand::Rng::with_seed(seed);
    let world = World::new().with(|w| {
        let ceph = &mut w.seen.ceph;
        let pool = ceph.pools.get_mut(&POOL).unwrap();
        pool.size = if random.u8(..8) == 0 { 2 } else { 3 };
        pool.merges = random.u8(..8) == 0;
        // The mgr may know fewer PGs than the pool has.
        pool.pg_num += u32::from(random.u8(..12) == 0);
        for pg in ceph.pgs.values_mut() {
            if random.u8(..4) != 0 {
                continue;
            }
            pg.state = states(random.choice(STATES).unwrap());
            pg.degraded = random.u64(..2) * random.u64(..3);
            if random.bool() {
                let gone = random.choice(pg.acting.iter().copied().collect::<Vec<_>>()).unwrap();
                pg.acting.remove(&gone);
            }
            if random.bool() {
                pg.up.insert(OsdId(random.u32(..OSDS)));
            }
        }
        if random.u8(..4) == 0 {
            let slot = ceph.slots.get_mut(&OsdId(random.u32(..OSDS))).unwrap();
            // Up for a moment, or down: the statistics may be older.
            (slot.up, slot.up_from, slot.down_at) = (random.bool(), Epoch(9000), Epoch(9000));
        }
        if random.u8(..8) == 0 {
            let one = Ambiguity::of([OsdId(random.u32(..OSDS))], "two Deployments".to_owned());
            w.seen.kube.ambiguities.push(one);
        }
        if random.u8(..8) == 0 {
            ceph.slots.get_mut(&OsdId(random.u32(..OSDS))).unwrap().nodown = Some("h1".to_owned());
        }
        for pg in ceph.pgs.values_mut() {
            pg.reported_epoch = if random.bool() { Epoch(9000) } else { pg.reported_epoch };
        }
    });
    let own_state = |state: &&str| random.bool() && *state != "active+clean";
    let accepted = match seed % 3 {
        0 => Accepted::default(),
        1 => Accepted { any: true, ..Accepted::default() },
        _ => {
            let states = STATES.into_iter().filter(own_state).map(str::to_owned).collect();
            Accepted { states, ..Accepted::default() }
        }
    };
    (world, accepted)
}

/// Returns the kind of a gate without its reason.
fn kind(gate: &Gate) -> &'static str {
    match gate {
        Gate::Open => "open",
        Gate::Shut(_) => "shut",
        Gate::Unknown(_) => "unknown",
    }
}

#[test]
fn gates_of_all_osds_agree_with_the_gate_before_one_stop() {
    let mut kinds = std::collections::BTreeMap::<(u64, &str), u32>::new();
    for seed in 0..CLUSTERS {
        let (world, accepted) = generated(seed);
        let seen = &world.seen;
        let own = Own::of(&accepted, seen);
        let is_up = |osd: &OsdId| {
            let slot = &seen.ceph.slots[osd];
            slot.up && slot.state == SlotState::Exists
        };
        for osd in (0..OSDS).map(OsdId).filter(is_up) {
            let node = node_of(osd);
            let of_one = gate::before_stop(osd, &node, &Run::default(), &accepted, seen);
            let never = own.never(osd).map_or(Gate::Open, |reason| Gate::Shut(reason.clone()));
            let of_all = gate::first_not_open([never, own.all().clone(), own.gate_predicted(osd, &node)]);
            let (opens, all_open) = (of_one == Gate::Open, of_all == Gate::Open);
            assert_eq!(opens, all_open, "seed {seed}, {osd}: {of_one:?}, {of_all:?}");
            *kinds.entry((seed % 3, kind(&of_one))).or_default() += 1;
        }
    }
    // Each way to accept occurs with each answer, many times.
    assert_eq!(kinds.len(), 9, "{kinds:?}");
    assert!(kinds.values().all(|times| *times > 50), "{kinds:?}");
}
