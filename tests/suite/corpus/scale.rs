//! The cost of an observation or a decision does not grow much faster than the cluster. The tests measure the
//! processor time of this thread at one size and at sixteen times that size. On a busy computer the ratio is
//! significant, the seconds are not.

use std::collections::{BTreeMap, BTreeSet};

use osd_migrate::domain::ledger::Ledger;
use osd_migrate::domain::next::{Next, Saving};
use osd_migrate::domain::observation::{Daemon, Kube, Node, Observation, OnPvcs};
use osd_migrate::domain::osd::{NodeName, OsdId};
use osd_migrate::domain::{classify, plan, preview};

use super::answers::answers;
use super::cluster::{self, Cluster, Host, Layout, PACIFIC, Pool, fsid};
use super::pg::Detail;
use super::{RBD, ask, kube, policy};
use crate::support::build::noon;

/// The smaller size, in hosts of 25 OSDs.
const HOSTS: u32 = 20;

/// The larger size, as a multiple of the smaller one.
///
/// It is far above 4: at the size at which a cluster no longer fits into a processor's cache, even linear
/// work took 10 times as long for 4 times the cluster.
const TIMES: u32 = 16;

/// Highest cost of the larger size, as a multiple: 16 is linear, 40 is linear with slow memory, 256 is
/// quadratic.
const AT_MOST: f64 = 80.0;

/// Returns the time of this thread on a processor.
///
/// The source is `/proc/<pid>/schedstat`: nanoseconds on a CPU, then waiting, then slices.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

/// Returns the cost of one call: the least of three measurements.
///
/// Each measurement has enough calls to be measurable (the kernel counts by ticks of some milliseconds).
fn cost<T>(mut work: impl FnMut() -> T) -> f64 {
    const LONG_ENOUGH: f64 = 0.06;
    let mut once = || {
        let before = processor_seconds();
        let mut calls = 0.0;
        while processor_seconds() - before < LONG_ENOUGH {
            drop(std::hint::black_box(work()));
            calls += 1.0;
        }
        (processor_seconds() - before) / calls
    };
    (0..3).map(|_| once()).fold(f64::INFINITY, f64::min)
}

fn assert_growth(what: &str, small: f64, large: f64) {
    let ratio = large / small;
    assert!(
        ratio < AT_MOST,
        "{what}: {small:.4} s, {TIMES} times the cluster {large:.4} s, {ratio:.1} times as long"
    );
}

/// Returns a cluster with half its OSDs legacy and 33 PGs on each OSD.
fn shape(hosts: u32) -> Cluster {
    let layout = |osd: &cluster::Osd| {
        [Layout::Filestore, Layout::Raw, Layout::ByHand, Layout::Raw][osd.id as usize % 4]
    };
    Cluster::new(PACIFIC, 7, hosts, 25).layout(layout)
}

fn with_pool(hosts: u32, pool: &Pool) -> Cluster {
    shape(hosts).pool(Pool { pgs: hosts * 25 * 33 / pool.size, ..pool.clone() })
}

/// Returns an observation of a cluster that is too large for whole objects.
///
/// Each Deployment and node is one that was read, with other names.
fn seen(cluster: &Cluster) -> Observation {
    let ceph = answers(cluster, Detail::Read).seen().unwrap();
    let kinds = [Layout::Filestore, Layout::Raw, Layout::ByHand];
    let small = Cluster::new(PACIFIC, 1, 1, 3).layout(|osd| kinds[osd.id as usize]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let read: Kube = runtime.block_on(kube::observe(&small));
    let by_kind: BTreeMap<Layout, &Daemon> = kinds.into_iter().zip(read.daemons.values()).collect();
    let node = read.nodes.values().next().unwrap();
    let daemons = cluster.osds.iter().map(|osd| {
        let name = format!("rook-ceph-osd-{}", osd.id);
        let daemon = Daemon {
            uid: name.clone(),
            fsid: fsid(osd.id).parse().ok(),
            node: Some(NodeName(cluster.host_of(osd).name.clone())),
            name,
            ..by_kind[&osd.layout].clone()
        };
        (OsdId(osd.id), daemon)
    });
    let named =
        |host: &Host| (NodeName(host.name.clone()), Node { hostname: host.name.clone(), ..node.clone() });
    let nodes = cluster.hosts.iter().map(named).collect();
    let kube = Kube { daemons: daemons.collect(), nodes, ..read.clone() };
    let mut seen = Observation { at: noon(), ceph, kube };
    ask(cluster, &mut seen);
    seen
}

/// Returns the costs of a plan and of a preview, with the decision.
fn decisions(seen: &Observation) -> (f64, f64, Next) {
    let (policy, ledger) = (policy(), Ledger::default());
    let next = plan::plan(&policy, &ledger, seen);
    (cost(|| plan::plan(&policy, &ledger, seen)), cost(|| preview::lines(&policy, &ledger, seen)), next)
}

fn assert_decisions_grow_with_the_cluster(of: impl Fn(u32) -> Observation, expected: impl Fn(&Next) -> bool) {
    let (plan, preview, next) = decisions(&of(HOSTS));
    assert!(expected(&next), "{next:?}");
    let (plan_of_large, preview_of_large, next) = decisions(&of(TIMES * HOSTS));
    assert!(expected(&next), "{next:?}");
    assert_growth("plan", plan, plan_of_large);
    assert_growth("preview", preview, preview_of_large);
}

#[test]
fn join_with_filestore_grows_with_the_pgs() {
    let of = |hosts| {
        let answers = answers(&with_pool(hosts, &RBD), Detail::Read);
        cost(|| answers.seen().unwrap())
    };
    assert_growth("join", of(HOSTS), of(TIMES * HOSTS));
}

#[test]
fn plan_of_a_clean_cluster_grows_with_the_osds() {
    let is_begun = |next: &Next| matches!(next, Next::Save { why: Saving::Record, .. });
    assert_decisions_grow_with_the_cluster(|hosts| seen(&with_pool(hosts, &RBD)), is_begun);
}

#[test]
fn plan_with_a_pool_of_size_2_grows_with_the_osds() {
    let scratch = || Pool { size: 2, min_size: 1, ..RBD };
    // No OSD is started: available disks are next.
    let is_all_refused = |next: &Next| matches!(next, Next::Save { osd: None, .. } | Next::Finished(_));
    assert_decisions_grow_with_the_cluster(|hosts| seen(&with_pool(hosts, &scratch())), is_all_refused);
}

#[test]
fn plan_of_osds_on_pvcs_grows_with_the_osds() {
    let of = |hosts| {
        let mut seen = seen(&with_pool(hosts, &RBD));
        let on = OnPvcs {
            data: Some("set1-data-0a".to_owned()),
            set: Some("set1".to_owned()),
            ..OnPvcs::default()
        };
        seen.kube.daemons.values_mut().for_each(|daemon| daemon.on_pvcs = Some(on.clone()));
        seen
    };
    assert_decisions_grow_with_the_cluster(of, |next| matches!(next, Next::Save { .. } | Next::Finished(_)));
}

#[test]
fn ten_thousand_osds_are_read_and_planned_in_seconds() {
    let cluster = with_pool(400, &RBD);
    let before = processor_seconds();
    let seen = seen(&cluster);
    let (read, before) = (processor_seconds() - before, processor_seconds());
    assert_eq!(
        (seen.ceph.slots.len(), seen.ceph.pgs.len(), seen.kube.daemons.len()),
        (10_000, 110_000, 10_000)
    );
    let classes = classify::classify(&seen);
    let legacy = classes.values().filter(|class| class.code() == "Legacy").count();
    assert_eq!(legacy, 5_000);
    let next = plan::plan(&policy(), &Ledger::default(), &seen);
    let lines = preview::lines(&policy(), &Ledger::default(), &seen);
    let decided = processor_seconds() - before;
    let Next::Save { osd, why: Saving::Record, .. } = next else { panic!("{next:?}") };
    assert_eq!(osd, Some(OsdId(0)));
    let hosts: BTreeSet<&str> = lines.iter().map(|line| line.host.as_str()).collect();
    assert_eq!((lines.len(), hosts.len()), (10_000, 400));
    // The limit holds without optimization too; the promise is a second for a plan.
    assert!(decided < 20.0, "read in {read} s, decided in {decided} s");
}
