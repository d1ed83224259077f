//! The results for a cluster, as a page that a person can check.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use osd_migrate::domain::classify;
use osd_migrate::domain::gate::state_text;
use osd_migrate::domain::ledger::Ledger;
use osd_migrate::domain::next::Next;
use osd_migrate::domain::observation::Observation;
use osd_migrate::domain::osd::OsdId;
use osd_migrate::domain::plan;
use osd_migrate::domain::policy::Policy;
use osd_migrate::domain::preview::{self, Now};
use osd_migrate::report::Event;

use super::cluster::Cluster;

pub(crate) fn page(cluster: &Cluster, policy: &Policy, seen: &Observation) -> String {
    let mut out = String::new();
    let slots = seen.ceph.slots.values();
    writeln!(
        out,
        "Ceph {}: {} OSDs on {} nodes, {} up, {} in; {} PGs\n\nPGs",
        cluster.release.number,
        seen.ceph.slots.len(),
        seen.kube.nodes.len(),
        slots.clone().filter(|slot| slot.up).count(),
        slots.filter(|slot| slot.is_in).count(),
        seen.ceph.pgs.len()
    )
    .unwrap();
    let mut states: BTreeMap<String, usize> = BTreeMap::new();
    for pg in seen.ceph.pgs.values() {
        *states.entry(state_text(pg)).or_default() += 1;
    }
    for (state, number) in states {
        writeln!(out, "  {number:>5} {state}").unwrap();
    }
    let classes =
        classify::classify(seen).into_iter().map(|(osd, class)| (format!("{}: {class}", class.code()), osd));
    section(&mut out, "Classes", classes);
    let ledger = Ledger::default();
    let lines = preview::lines(policy, &ledger, seen).into_iter().map(|line| (now(&line.now), line.osd));
    section(&mut out, "Preview", lines);
    writeln!(out, "\nNext\n  {}", next(&plan::plan(policy, &ledger, seen))).unwrap();
    out
}

fn section(out: &mut String, title: &str, lines: impl Iterator<Item = (String, OsdId)>) {
    let mut groups: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    for (text, osd) in lines {
        groups.entry(text).or_default().insert(osd.0);
    }
    writeln!(out, "\n{title}").unwrap();
    for (text, osds) in groups {
        writeln!(out, "  {text}\n    {} OSDs: {}", osds.len(), ranges(&osds)).unwrap();
    }
}

/// Returns ranges such as `0-4 7 9-11`, at most a dozen.
fn ranges(osds: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for osd in osds {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *osd => *last = *osd,
            _ => ranges.push((*osd, *osd)),
        }
    }
    let more = if ranges.len() > 12 { " ..." } else { "" };
    let text = |(from, to): &(u32, u32)| if from == to { from.to_string() } else { format!("{from}-{to}") };
    ranges.iter().take(12).map(text).collect::<Vec<_>>().join(" ") + more
}

fn now(now: &Now) -> String {
    match now {
        Now::Nothing => "nothing to do".to_owned(),
        Now::Next => "next".to_owned(),
        Now::InFlight => "in progress".to_owned(),
        Now::Quarantined { why } => format!("quarantined: {why}"),
        Now::Waits(reason) => format!("waits, {}: {reason}", reason.code()),
        Now::Refused(reason) => format!("refused, {}: {reason}", reason.code()),
    }
}

fn next(next: &Next) -> String {
    match next {
        Next::Save { osd, why, ledger } => Event::Saved { osd: *osd, why, ledger }.to_string(),
        Next::Do(act) => format!("does: {}", Event::Done(act)),
        Next::Wait(wait) => format!("waits: {wait}"),
        Next::Finished(summary) => Event::Finished(summary).to_string(),
        Next::Halt(halt) => Event::Halted(halt).to_string(),
    }
}
