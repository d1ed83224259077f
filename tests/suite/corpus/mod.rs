//! Whole clusters in the shape of real ones. The complete answers of Ceph and the API server go through the
//! readers, `classify`, the gates and `plan`; the results are stored in `golden`. Everything is generated
//! from a seed; git contains nothing large.
//!
//! To write the current results: `CORPUS_WRITE=1 cargo test --test suite corpus::`, then read the difference.

mod answers;
mod cluster;
mod kube;
mod page;
mod pg;
mod scale;

use std::collections::BTreeSet;

use osd_migrate::domain::ledger::Ledger;
use osd_migrate::domain::observation::{FailedActs, Observation, OkToStop};
use osd_migrate::domain::osd::OsdId;
use osd_migrate::domain::plan;
use osd_migrate::domain::policy::Policy;

use crate::runbook::{read, root};
use crate::support::build::noon;
use cluster::{Cluster, Layout, PACIFIC, Pool, REEF, State, TENTACLE};
use pg::Detail;

fn policy() -> Policy {
    Policy { confirmed: true, run: "run-1".to_owned(), at_once: 1, ..Policy::default() }
}

/// Observes the whole cluster, with Ceph's answers to the questions of a plan without open records.
async fn observe(cluster: &Cluster) -> Observation {
    let ceph = answers::answers(cluster, Detail::Whole).seen().unwrap();
    let mut seen =
        Observation { at: noon(), ceph, kube: kube::observe(cluster).await, failed: FailedActs::default() };
    ask(cluster, &mut seen);
    seen
}

/// Answers `osd ok-to-stop` as Ceph decides it: no PG may fall below its pool's min_size.
fn ask(cluster: &Cluster, seen: &mut Observation) {
    let questions = plan::questions(&policy(), &Ledger::default(), seen);
    let min_size = |pg: &str| {
        let pool: u64 = pg.split('.').next().unwrap().parse().unwrap();
        cluster.pools.iter().find(|one| one.id == pool).unwrap().min_size as usize
    };
    for set in questions.ok_to_stop {
        let left = |pg: &cluster::Pg| pg.acting.iter().filter(|osd| !set.contains(&OsdId(**osd))).count();
        let bad = cluster.pgs.iter().filter(|pg| left(pg) < pg.acting.len() && left(pg) < min_size(&pg.id));
        let bad_pgs = u32::try_from(bad.count()).unwrap();
        seen.ceph.ok_to_stop.insert(set, OkToStop { ok: bad_pgs == 0, bad_pgs });
    }
}

async fn check(name: &str, cluster: &Cluster) {
    let seen = observe(cluster).await;
    let found = page::page(cluster, &policy(), &seen);
    let path = format!("tests/suite/corpus/golden/{name}.txt");
    if option_env!("CORPUS_WRITE").is_some() {
        std::fs::write(root().join(&path), &found).unwrap();
    }
    let expected = read(&path);
    assert!(found == expected, "{path} says\n{expected}\nand it is\n{found}");
}

const RBD: Pool = Pool { id: 1, name: "rbd", size: 3, min_size: 2, data_chunks: None, pgs: 2048 };

/// Returns a cluster with two thirds Filestore or OSDs created by hand, with scrubs and an OSD that never
/// booted.
///
/// Some disks died long ago, the first of them on the first host.
fn pacific() -> Cluster {
    let layout = |osd: &cluster::Osd| [Layout::Filestore, Layout::ByHand, Layout::Raw][osd.id as usize % 3];
    Cluster::new(PACIFIC, 16, 12, 30)
        .layout(layout)
        .state(&[0, 37, 181, 300], State::Dead)
        .state(&[359], State::NeverBooted)
        .pool(RBD)
        .pool(Pool { id: 2, name: "cephfs-metadata", pgs: 64, ..RBD })
        .scrubbing(40)
        .health(&["POOL_NO_REDUNDANCY", "RECENT_CRASH"])
}

/// Returns a cluster with all kinds of devices that a host may put below an OSD, and with a cordoned node.
fn reef() -> Cluster {
    let layout = |osd: &cluster::Osd| match (osd.host % 6, osd.disk) {
        (0, _) => Layout::Multipath,
        (1, _) => Layout::HostLuks,
        (2, _) => Layout::NoSerial,
        (3, _) => Layout::Lvm,
        (4, _) => Layout::LvmCrypt,
        (_, 0..4) => Layout::ByHand,
        (_, _) => Layout::Raw,
    };
    Cluster::new(REEF, 18, 12, 24)
        .layout(layout)
        .host(5, |host| host.cordoned = true)
        .pool(RBD)
        .pool(Pool { id: 2, name: "ec", size: 6, min_size: 5, data_chunks: Some(4), pgs: 512 })
        .scrubbing(25)
}

/// Returns a cluster whose balancer moves PGs, with a scratch pool of two copies on some hosts.
///
/// Legacy OSDs are among others.
fn tentacle() -> Cluster {
    let layout = |osd: &cluster::Osd| if osd.disk < 3 { Layout::ByHand } else { Layout::Raw };
    Cluster::new(TENTACLE, 20, 20, 20)
        .layout(layout)
        .pool(RBD)
        .pool_on(Pool { id: 2, name: "scratch", size: 2, min_size: 1, pgs: 128, ..RBD }, |osd| osd.host < 4)
        .balancing(200)
        .scrubbing(50)
}

/// Returns a cluster with a node that is away: its OSDs are down, and PGs have missing copies.
fn node_lost() -> Cluster {
    let layout = |osd: &cluster::Osd| if osd.disk < 3 { Layout::ByHand } else { Layout::Raw };
    let lost: Vec<u32> = (60..80).collect();
    Cluster::new(REEF, 21, 20, 20)
        .layout(layout)
        .state(&lost, State::Down)
        .host(3, |host| host.ready = false)
        .pool(RBD)
        .health(&["OSD_DOWN", "OSD_HOST_DOWN", "PG_DEGRADED"])
}

#[tokio::test]
async fn pacific_with_dead_disks_is_planned_as_written() {
    check("pacific-dead-disks", &pacific()).await;
}

#[tokio::test]
async fn reef_on_mapped_and_virtio_devices_is_planned_as_written() {
    check("reef-devices", &reef()).await;
}

#[tokio::test]
async fn tentacle_with_a_balancer_at_work_is_planned_as_written() {
    check("tentacle-balancer", &tentacle()).await;
}

#[tokio::test]
async fn reef_with_a_lost_node_is_planned_as_written() {
    check("reef-node-lost", &node_lost()).await;
}

/// Checks the size of PG entries: a mgr prints 2.2-2.6 KB for each, and the corpus must not be smaller.
#[test]
fn pg_entries_are_of_full_size_in_each_release() {
    for (release, at_least) in [(PACIFIC, 2_000), (REEF, 2_200), (TENTACLE, 2_200)] {
        let cluster = Cluster::new(release, 1, 4, 4).pool(Pool { pgs: 256, ..RBD });
        let bytes = answers::pg_dump(&cluster, Detail::Whole).len() / 256;
        assert!((at_least..2_700).contains(&bytes), "{}: {bytes}", release.number);
    }
}

#[test]
fn corpus_readers_observe_what_the_generator_created() {
    for cluster in [pacific(), reef(), tentacle(), node_lost()] {
        let seen = answers::answers(&cluster, Detail::Whole).seen().unwrap();
        assert_eq!((seen.slots.len(), seen.pgs.len()), (cluster.osds.len(), cluster.pgs.len()));
        assert_eq!(seen.upmaps.len(), cluster.upmaps.len());
        let up: BTreeSet<u32> = seen.slots.iter().filter(|(_, slot)| slot.up).map(|(osd, _)| osd.0).collect();
        let expected = cluster.osds.iter().filter(|osd| osd.state == State::Up).map(|osd| osd.id);
        assert_eq!(up, expected.collect());
        assert!(
            seen.slots
                .values()
                .all(|slot| slot.crush.as_ref().is_some_and(|item| item.location["root"] == "default"))
        );
        assert!(seen.pools.values().all(|pool| pool.failure_domain == "host"));
        let brief = answers::answers(&cluster, Detail::Read).seen().unwrap();
        assert_eq!(brief, seen, "what is printed for large clusters is what is read");
    }
}
