//! Texts of `plan` and `status` at several sizes of a cluster, for `build/growth`, which counts their
//! instructions. Decisions: `tests/explore/growth.rs`.

use std::collections::{BTreeMap, BTreeSet};

use osd_migrate::domain::commands::Names;
use osd_migrate::domain::ledger::{Ledger, MAX_OPEN, MAX_RECORDS, Quarantine, Record};
use osd_migrate::domain::osd::OsdId;
use osd_migrate::domain::plan::questions;
use osd_migrate::domain::policy::Policy;
use osd_migrate::domain::preview::{self, Line};
use osd_migrate::domain::removal::{RemovalRequest, Requests};
use osd_migrate::layout::Width;
use osd_migrate::show::{self, Plan, PlanDetail, Status, StoredRequests};
use osd_migrate::sim::example::{Kind, PoolShape, Shape};
use osd_migrate_explore::counted::{counted_by_growth, osds};

use crate::ledger::{completed, with_nodes};
use crate::support::build::{BY_HAND, issued_fsid, noon};
use crate::support::with_plan;

/// OSDs of a host.
const PER_HOST: usize = 25;

/// Returns the lines of a plan in which every second OSD is to be migrated.
fn lines() -> Vec<Line> {
    let pgs = u32::try_from(osds() * 11).unwrap();
    let pool = PoolShape { pgs, size: 3, min_size: 2, data_chunks: None, gib: 1 };
    let kinds = [Kind::Filestore, Kind::Raw, Kind::ByHand, Kind::Raw];
    let host = |host: usize| (0..PER_HOST).map(|osd| kinds[(host * PER_HOST + osd) % 4]).collect();
    let hosts = (0..osds() / PER_HOST).map(host).collect();
    let world = Shape { hosts, pools: vec![pool], disk_gib: 1000 }.world();
    let (policy, ledger) = (Policy::default(), Ledger::default());
    let seen = world.observe(|seen| questions(&policy, &ledger, seen));
    preview::lines(&policy, &ledger, &seen)
}

/// Prints a plan.
fn planned<T>(print: impl FnOnce(&Plan<'_>) -> T) -> T {
    let lines = lines();
    assert_eq!(lines.len(), osds());
    with_plan(&lines, |plan| counted_by_growth(|| print(plan)))
}

#[test]
#[ignore = "build/growth runs it"]
fn table_of_plan() {
    let detail = PlanDetail { all: true, ..PlanDetail::default() };
    let text = planned(|plan| show::plan_text(plan, detail));
    assert!(text.lines().count() > osds());
}

#[test]
#[ignore = "build/growth runs it"]
fn json_of_plan() {
    let json = planned(show::plan_json);
    assert_eq!(json["osds"].as_array().unwrap().len(), osds());
}

fn osd(number: usize) -> OsdId {
    OsdId(u32::try_from(number).unwrap())
}

/// Returns a ledger with records of a tenth of the OSDs, at most as many as it may have, and with each node.
fn ledger() -> Ledger {
    let ledger = with_nodes(osds() / PER_HOST, &completed("run-1", PER_HOST));
    let one = &ledger.records[&BY_HAND];
    let record = |number: usize| {
        let quarantine = Quarantine { why: "its daemon does not stay up".to_owned(), since: noon() };
        let quarantine = (number >= MAX_OPEN).then_some(quarantine);
        (osd(number), Record { osd: osd(number), quarantine, ..one.clone() })
    };
    let records = (0..(osds() / 10).min(MAX_RECORDS)).map(record).collect();
    Ledger { records, ..ledger.clone() }
}

/// Prints a status in which the removal of each OSD is requested.
fn observed<T>(print: impl FnOnce(&Status<'_>) -> T) -> T {
    let (names, ledger) = (Names::default(), ledger());
    let request = |number: usize| {
        let request = RemovalRequest::of(issued_fsid(osd(number), 1));
        (osd(number), RemovalRequest { since: Some(noon()), ..request })
    };
    let removals = (0..osds()).map(request).collect();
    let requests = Requests { removals, unreadable: BTreeSet::new() };
    let requests = StoredRequests { requests, deployed: BTreeMap::new() };
    let status = Status {
        names: &names,
        ledger: &ledger,
        control: None,
        own_pdb: true,
        runner: None,
        requests: Some(&requests),
        said: None,
        now: noon(),
    };
    counted_by_growth(|| print(&status))
}

#[test]
#[ignore = "build/growth runs it"]
fn text_of_status() {
    let text = observed(|status| show::status_text(status, Width::Unknown));
    assert!(text.lines().count() > osds());
}

#[test]
#[ignore = "build/growth runs it"]
fn json_of_status() {
    let json = observed(show::status_json);
    assert_eq!(json["requests"]["removals"].as_array().unwrap().len(), osds());
}
