//! The order of the run's decision: `docs/concepts/how-it-works.md` lists the rules as the code has them.

use osd_migrate::domain::next::Next;
use osd_migrate::domain::plan::{AFTERWARDS, RULES};

use crate::runbook::read;
use crate::support::build::{BY_HAND, FILESTORE, World};

/// Returns the first column of the table with this heading.
fn listed(heading: &str) -> Vec<String> {
    let page = read("docs/concepts/how-it-works.md");
    let (_, rest) = page.split_once(&format!("\n| {heading} | ")).unwrap();
    let rows = rest.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.split('|').nth(1).unwrap_or_default().trim().to_owned()).collect()
}

#[test]
fn rules_are_listed_in_their_order() {
    assert_eq!(listed("rule"), RULES.map(|rule| rule.name));
    assert_eq!(listed("afterwards"), AFTERWARDS.map(|after| after.name));
}

#[test]
fn unconfirmed_new_osds_are_only_named() {
    let world = World::new().with(|w| {
        w.policy.skip = [BY_HAND, FILESTORE].into();
        w.seen.kube.declaration.storage.all_nodes = true;
        w.seen.kube.declaration.storage.selection.all = Some(true);
    });
    let named = |world: &World| match world.plan() {
        Next::Finished(summary) => summary.unconfirmed_nodes.len(),
        other => panic!("{other:?}"),
    };
    assert!(named(&world.clone().with(|w| w.seen.kube.declaration.confirmed = false)) > 0);
    assert!(!matches!(world.plan(), Next::Finished(_)), "confirmed, their disks are inspected");
}
