//! A cluster of ten thousand OSDs is read and planned. How the costs grow with the cluster: `build/growth`.

use std::collections::{BTreeMap, BTreeSet};

use osd_migrate::domain::ledger::Ledger;
use osd_migrate::domain::next::{Next, Saving};
use osd_migrate::domain::observation::{Daemon, FailedActs, Kube, Node, Observation};
use osd_migrate::domain::osd::{NodeName, OsdId};
use osd_migrate::domain::{classify, plan, preview};
use osd_migrate_explore::counted::{counted_by_growth, osds};

use super::answers::answers;
use super::cluster::{self, Cluster, Host, Layout, PACIFIC, Pool, fsid};
use super::pg::Detail;
use super::{RBD, ask, kube, policy};
use crate::support::build::noon;

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
    let mut seen = Observation { at: noon(), ceph, kube, failed: FailedActs::default() };
    ask(cluster, &mut seen);
    seen
}

/// Reads the answers of Ceph for a cluster of the size that `build/growth` asks for.
#[test]
#[ignore = "build/growth runs it"]
fn growth_of_answers() {
    let osds = osds();
    let answers = answers(&with_pool(u32::try_from(osds).unwrap() / 25, &RBD), Detail::Read);
    let ceph = counted_by_growth(|| answers.seen().unwrap());
    assert_eq!(ceph.slots.len(), osds);
}

#[test]
fn ten_thousand_osds_are_read_and_planned() {
    let cluster = with_pool(400, &RBD);
    let seen = seen(&cluster);
    assert_eq!(
        (seen.ceph.slots.len(), seen.ceph.pgs.len(), seen.kube.daemons.len()),
        (10_000, 110_000, 10_000)
    );
    let classes = classify::classify(&seen);
    let legacy = classes.values().filter(|class| class.code() == "Legacy").count();
    assert_eq!(legacy, 5_000);
    let next = plan::plan(&policy(), &Ledger::default(), &seen);
    let lines = preview::lines(&policy(), &Ledger::default(), &seen);
    let Next::Save { osd, why: Saving::Record, .. } = next else { panic!("{next:?}") };
    assert_eq!(osd, Some(OsdId(0)));
    let hosts: BTreeSet<&str> = lines.iter().map(|line| line.host.as_str()).collect();
    assert_eq!((lines.len(), hosts.len()), (10_000, 400));
}
