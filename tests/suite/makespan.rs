//! Makespan of the OSDs of one host, or of several, in virtual time, beside the time of their backfills.
//!
//! The loop and its decisions are those of a run. The cluster is simulated: the durations of acts, pods and
//! backfills are those of `src/sim/schedule.rs`, which were observed on small clusters.

use osd_migrate::domain::in_parallel::InParallel;
use osd_migrate::domain::osd::OsdId;
use osd_migrate::domain::policy::Policy;
use osd_migrate::sim::World;
use osd_migrate::sim::course::Sim;
use osd_migrate::sim::example::{Kind, PoolShape, Shape};
use osd_migrate_explore::counted::osds;

use crate::story::play::{Play, print_figures};

/// OSDs of each host: in the first host that is migrated one alone, then two times three.
const PER_HOST: usize = 7;

/// PGs of an OSD, as Ceph's autoscaler aims at a third of 100 for one of three pools.
const PGS_PER_OSD: usize = 33;

/// GiB of a PG: 400 GiB on an OSD, whose backfill takes 68 minutes at 100 MiB a second.
const GIB: u64 = 12;

/// Hosts of the cluster, and those of them whose OSDs are migrated.
#[derive(Clone, Copy)]
struct Hosts {
    all: usize,
    migrated: usize,
}

fn world(hosts: Hosts) -> World {
    let pgs = u32::try_from(hosts.all * PER_HOST * PGS_PER_OSD / 3).unwrap();
    let pool = PoolShape { pgs, size: 3, min_size: 2, data_chunks: None, gib: GIB };
    let kinds = |host| vec![if host < hosts.migrated { Kind::ByHand } else { Kind::Raw }; PER_HOST];
    Shape { hosts: (0..hosts.all).map(kinds).collect(), pools: vec![pool], disk_gib: 1000 }.world()
}

/// Returns the seconds that the backfills take, one host after the other, by the data before the run.
///
/// The OSDs of a host are filled in rounds, each as long as the backfill of the OSD with the most data. The
/// first OSD is alone, because it is the first of its kind. Others are in parallel when it has soaked.
fn backfills(world: &World, hosts: Hosts, in_parallel: u32, rate: u64) -> i64 {
    let of = |osds: usize| (osds as u64).div_ceil(u64::from(in_parallel));
    let of_host = |host: usize| {
        let osds = (host * PER_HOST..(host + 1) * PER_HOST).map(|osd| OsdId(u32::try_from(osd).unwrap()));
        let most = osds.filter_map(|osd| world.ceph.slots[&osd].used_bytes).max().unwrap();
        let rounds = if host == 0 { 1 + of(PER_HOST - 1) } else { of(PER_HOST) };
        rounds * most / rate
    };
    i64::try_from((0..hosts.migrated).map(of_host).sum::<u64>()).unwrap()
}

/// Migrates these hosts, and checks that it takes little more than their backfills.
fn migrate(hosts: Hosts, in_parallel: u32) {
    let sim = Sim::new(world(hosts), 1);
    let begun = sim.world.at;
    let backfills = backfills(&sim.world, hosts, in_parallel, sim.schedule.rate);
    let policy = Policy { in_parallel: InParallel::Count(in_parallel), ..Policy::default() };
    let play = Play { policy, ..Play::of(sim) };
    assert_eq!(play.run(), Play::finished());
    let took = (play.sim.borrow().world.at - begun).num_seconds();
    let osds = hosts.migrated * PER_HOST;
    let soak = if in_parallel > 1 { play.policy.limits.soak.num_seconds() } else { 0 };
    let percent = took * 100 / (backfills + soak);
    print_figures(&format!(
        "makespan: {} OSDs, {osds} of them migrated, {in_parallel} in parallel: {} min, backfills {} min, soak {} min, {percent} %",
        hosts.all * PER_HOST,
        took / 60,
        backfills / 60,
        soak / 60
    ));
    assert!(percent <= 105, "{in_parallel} in parallel: {percent} %");
}

#[test]
fn makespan_is_little_more_than_that_of_the_backfills() {
    migrate(Hosts { all: 3, migrated: 2 }, 3);
}

/// Prints the makespans of one host and of three in a cluster of the size that `build/makespan` asks for.
#[test]
#[ignore = "build/makespan runs it"]
fn makespans() {
    for migrated in [1, 3] {
        (1..=3).for_each(|in_parallel| migrate(Hosts { all: osds() / PER_HOST, migrated }, in_parallel));
    }
}
