//! `explain` knows every code of the program.

use std::collections::BTreeSet;

use osd_migrate::domain::classify::Refusal;
use osd_migrate::domain::drift::Finding;
use osd_migrate::domain::gate::Reason;
use osd_migrate::domain::inspection::NodeTask;
use osd_migrate::domain::inventory::Rejection;
use osd_migrate::domain::ledger::Unreadable;
use osd_migrate::domain::next::{Halt, Saving, Summary, Wait};
use osd_migrate::explain::Pages;
use osd_migrate::kube_events::REASONS;
use osd_migrate::report::Event;

use crate::runbook::{
    block, coded, findings, halts, places, read, reasons, refusals, rejections, unreadable, variants, waits,
};

/// Codes of acts that are not formed from the names of their variants.
const NAMED: [(&str, &str); 2] = [("stop", "stop-osd"), ("agent", "create-agent")];

/// Returns the code of a variant as the derive forms it.
fn kebab(variant: &str) -> String {
    coded("", variant).trim_start_matches('-').to_owned()
}

/// Returns the codes of all acts.
fn acts() -> BTreeSet<String> {
    let files = [("ceph", "CephAct"), ("kubernetes", "KubeAct"), ("node", "NodeAct")];
    let all = files.iter().flat_map(|(file, of)| variants(&format!("src/domain/act/{file}.rs"), of));
    let code = |variant: String| {
        let code = kebab(&variant);
        let named = NAMED.iter().find(|(name, _)| *name == code);
        named.map_or(code.clone(), |(_, named)| (*named).to_owned())
    };
    all.map(code).collect()
}

/// Returns the codes of all saves, except for those of an agent's tasks and of a node's states.
fn saves() -> BTreeSet<String> {
    let of_others = ["attempt", "node"];
    let all = variants("src/domain/next/saving.rs", "Saving").into_iter().map(|variant| kebab(&variant));
    let mut found: BTreeSet<String> = all.filter(|code| !of_others.contains(&code.as_str())).collect();
    assert!(found.remove("purged"), "its code is that of the halt");
    found.extend([Saving::Purged.code(), Saving::Bootstrap { ours: false }.code()].map(str::to_owned));
    found
}

fn steps() -> BTreeSet<String> {
    use NodeTask::{Clear, Inspect, Rebuild, RestoreSlot, Wipe};
    use osd_migrate::domain::ledger::NodeStatus::{Completed, ComputingDiff, Orchestrating};
    let tasks = [Inspect, Rebuild, RestoreSlot, Clear, Wipe].map(|task| task.code().to_owned());
    let states = [ComputingDiff, Orchestrating, Completed].map(|state| state.code().to_owned());
    let other = [Event::Conflict.code().to_owned()];
    acts().into_iter().chain(saves()).chain(tasks).chain(states).chain(other).collect()
}

fn codes() -> BTreeSet<String> {
    let errors =
        [("kube", "src/k8s/client/error.rs", "K8sError"), ("ceph", "src/ceph/error.rs", "CephError")];
    let of_errors = errors.iter().flat_map(|(prefix, path, of)| {
        variants(path, of).into_iter().map(move |variant| coded(prefix, &variant)).collect::<Vec<_>>()
    });
    let (done, cancelled) = (Summary::default(), Summary { cancelled: true, ..Summary::default() });
    let ends =
        [Event::Finished(&done), Event::Finished(&cancelled), Event::Lease("")].map(|event| event.code());
    let own = [
        halts().iter().map(Halt::code).collect::<Vec<_>>(),
        waits().iter().map(Wait::code).collect(),
        reasons().iter().map(Reason::code).collect(),
        refusals().iter().map(Refusal::code).collect(),
        rejections().iter().map(Rejection::code).collect(),
        places().iter().map(osd_migrate::domain::places::Obstacle::code).collect(),
        findings().iter().map(Finding::code).collect(),
        unreadable().iter().map(Unreadable::code).collect(),
        ends.to_vec(),
        vec!["run-not-confirmed"],
        REASONS.to_vec(),
    ];
    let own = own.concat().into_iter().map(str::to_owned);
    let rules = read("charts/osd-migrate/files/alerts.yaml");
    let alerts: Vec<_> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).map(str::to_owned).collect();
    assert!(alerts.len() > 5, "they moved: {alerts:?}");
    steps().into_iter().chain(of_errors).chain(own).chain(alerts).collect()
}

#[test]
fn each_code_of_the_program_is_explained() {
    let pages = Pages::embedded();
    let codes = codes();
    assert!(codes.len() > 200, "they moved: {}", codes.len());
    let missing: Vec<_> = codes.iter().filter(|code| pages.find(code).is_empty()).collect();
    assert!(missing.is_empty(), "not in docs/reference/messages.md: {missing:#?}");
    let bare: Vec<_> = pages.entries().iter().filter(|entry| entry.remark.is_empty()).collect();
    assert!(bare.is_empty(), "no remedy: {bare:#?}");
}

#[test]
fn each_explained_step_is_a_step_of_the_program() {
    let pages = Pages::embedded();
    let of_steps = |entry: &&osd_migrate::explain::Entry| {
        pages.sections_of(entry).iter().any(|section| section.heading == "Steps of a run")
    };
    let told: BTreeSet<String> =
        pages.entries().iter().filter(of_steps).map(|entry| entry.code.clone()).collect();
    let unknown: Vec<_> = told.difference(&steps()).cloned().collect();
    assert!(told.len() > 50 && unknown.is_empty(), "{unknown:#?}");
}

/// Checks that the codes of acts are formed as this test forms them.
#[test]
fn codes_of_acts_are_formed_from_their_names() {
    let subject = read("src/domain/act/subject.rs");
    let of_code = block(&subject, "pub fn code(&self)");
    assert_eq!(of_code.matches("act.into()").count(), 3, "{of_code}");
    for file in ["ceph", "kubernetes", "node"] {
        let source = read(&format!("src/domain/act/{file}.rs"));
        let named = source.matches("strum(serialize = ").count();
        let expected = NAMED.iter().filter(|(_, code)| source.contains(&format!("\"{code}\""))).count();
        assert_eq!(named, expected, "{file}");
        assert!(source.contains("serialize_all = \"kebab-case\""), "{file}");
    }
}
