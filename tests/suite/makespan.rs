//! Makespan of a host's OSDs in virtual time, beside the time of their backfills.
//!
//! The loop and its decisions are those of a run. The cluster is simulated: the durations of acts, pods and
//! backfills are those of `src/sim/schedule.rs`, which were observed on small clusters.

use osd_migrate::domain::in_parallel::InParallel;
use osd_migrate::domain::policy::Policy;
use osd_migrate::sim::World;
use osd_migrate::sim::course::Sim;
use osd_migrate::sim::example::{Kind, PoolShape, Shape};
use osd_migrate_explore::counted::osds;

use crate::story::play::{Play, print_figures};

/// OSDs of each host. All OSDs of the first host are migrated: one alone, then two times three.
const PER_HOST: usize = 7;

/// PGs of an OSD, as Ceph's autoscaler aims at a third of 100 for one of three pools.
const PGS_PER_OSD: usize = 33;

/// GiB of a PG: 400 GiB on an OSD, whose backfill takes 68 minutes at 100 MiB a second.
const GIB: u64 = 12;

fn world(hosts: usize) -> World {
    let pgs = u32::try_from(hosts * PER_HOST * PGS_PER_OSD / 3).unwrap();
    let pool = PoolShape { pgs, size: 3, min_size: 2, data_chunks: None, gib: GIB };
    let kinds = |host| vec![if host == 0 { Kind::ByHand } else { Kind::Raw }; PER_HOST];
    Shape { hosts: (0..hosts).map(kinds).collect(), pools: vec![pool], disk_gib: 1000 }.world()
}

/// Migrates the first host of so many, and checks that it takes little more than its backfills.
///
/// The first OSD is alone, because it is the first of its kind. Others are in parallel when it has soaked.
fn migrate(hosts: usize, in_parallel: u32) {
    let sim = Sim::new(world(hosts), 1);
    let (begun, rate) = (sim.world.at, sim.schedule.rate);
    let policy = Policy { in_parallel: InParallel::Count(in_parallel), ..Policy::default() };
    let play = Play { policy, ..Play::of(sim) };
    assert_eq!(play.run(), Play::finished());
    let sim = play.sim.borrow();
    let took = (sim.world.at - begun).num_seconds();
    let rounds = 1 + (PER_HOST as u64 - 1).div_ceil(u64::from(in_parallel));
    let backfills = i64::try_from(rounds * sim.copied / rate / PER_HOST as u64).unwrap();
    let soak = if in_parallel > 1 { play.policy.limits.soak.num_seconds() } else { 0 };
    let percent = took * 100 / (backfills + soak);
    print_figures(&format!(
        "makespan: {} OSDs, {PER_HOST} of them migrated, {in_parallel} in parallel: {} min, backfills {} min, soak {} min, {percent} %",
        hosts * PER_HOST,
        took / 60,
        backfills / 60,
        soak / 60
    ));
    assert!(percent <= 105, "{in_parallel} in parallel: {percent} %");
}

#[test]
fn makespan_is_little_more_than_that_of_the_backfills() {
    migrate(3, 3);
}

/// Prints the makespans in a cluster of the size that `build/makespan` asks for.
#[test]
#[ignore = "build/makespan runs it"]
fn makespans() {
    (1..=3).for_each(|in_parallel| migrate(osds() / PER_HOST, in_parallel));
}
