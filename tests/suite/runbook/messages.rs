//! Each message of a value that the code can create has an entry.

use std::collections::BTreeSet;

use osd_migrate::domain::forecast::{Obstacle, Remark};
use osd_migrate::domain::next::{Summary, Wait};
use osd_migrate::domain::osd::OsdId;
use osd_migrate::report::Event;

use super::entries::{Entry, entries, said};
use super::places::{places, ways_to_rook};
use super::quotes::{assert_all_made, assert_same, assert_told, is_quoted};
use super::sources::{block, is_sentence, literals, longest, plain, read, sentences};
use super::values::{
    coded, errors_with_a_command, fence_outcomes, findings, halts, reasons, refusals, rejections, summaries,
    text, unreadable, waits,
};

#[test]
fn each_halt_wait_and_refusal_is_quoted() {
    assert_all_made("src/domain/next/halt.rs", "Halt", &halts());
    let there: Vec<_> = halts().iter().map(|halt| (halt.code().to_owned(), halt.to_string())).collect();
    assert_told("## Halts", &there, &entries("## Halts"));
    assert_all_made("src/domain/next/wait.rs", "Wait", &waits());
    // The code of a gate is that of its reason; the sentence before the reason has an entry of its own.
    let code = |wait: &Wait| match wait {
        Wait::Gate { .. } => "gate",
        Wait::Node { .. } => "node",
        Wait::Fence { .. } => "fence-waits",
        _ => wait.code(),
    };
    let there: Vec<_> = waits().iter().map(|wait| (code(wait).to_owned(), wait.to_string())).collect();
    assert_told("## Waits", &there, &entries("## Waits"));
    assert_all_made("src/domain/classify/class.rs", "Refusal", &refusals());
    let there: Vec<_> =
        refusals().iter().map(|refusal| (refusal.code().to_owned(), refusal.to_string())).collect();
    assert_told("## Refused", &there, &entries("## Refused"));
}

fn obstacles() -> Vec<Obstacle> {
    let (osd, pgs, without) = (OsdId(7), 3, BTreeSet::from([OsdId(5)]));
    let osds = without.clone();
    vec![
        Obstacle::NoPlacement {
            without: osds.clone(),
            pgs,
            pool: text("rbd"),
            copies: 3,
            domain: text("host"),
        },
        Obstacle::NoSpace { without, osd, percent: 92, limit: 90, ratio: "backfillfull", bytes: 1 << 30 },
        Obstacle::TooManyPgs { osd, pgs: 760, limit: 750 },
        Obstacle::NotUp { osd },
        Obstacle::NoStatistics { osds, pgs },
        Obstacle::OldStatistics { pgs },
        Obstacle::PgCountChanging { pool: text("rbd") },
    ]
}

#[test]
fn each_reason_against_a_removal_and_remark_is_quoted() {
    assert_all_made("src/domain/forecast/obstacle.rs", "Obstacle", &obstacles());
    let remarks = [Remark::ManyPgs { osds: [(OsdId(7), 260)].into(), limit: 250 }];
    assert_all_made("src/domain/forecast/remark.rs", "Remark", &remarks);
    let obstacles = obstacles();
    let obstacles = obstacles.iter().map(|obstacle| (obstacle.code().to_owned(), obstacle.to_string()));
    let remarks = remarks.iter().map(|remark| (remark.code().to_owned(), remark.to_string()));
    let there: Vec<_> = obstacles.chain(remarks).collect();
    assert_told("## Removals", &there, &entries("## Removals"));
}

#[test]
fn each_reason_is_quoted_under_its_code() {
    assert_all_made("src/domain/gate/reason.rs", "Reason", &reasons());
    let there: Vec<_> =
        reasons().iter().map(|reason| (reason.code().to_owned(), reason.to_string())).collect();
    assert_told("## Reasons", &there, &entries("## Reasons"));
}

#[test]
fn each_drift_finding_is_quoted_with_its_fix() {
    assert_all_made("src/domain/drift.rs", "Finding", &findings());
    let there: Vec<_> =
        findings().iter().map(|finding| (finding.code().to_owned(), finding.to_string())).collect();
    let told = entries("## Drift");
    assert_told("## Drift", &there, &told);
    for Entry { key, rest, .. } in &told {
        let fixed = rest.split_once("Fixed ").map(|(_, by)| by);
        let says_by =
            fixed.is_some_and(|by| by.starts_with("by hand") || by.starts_with("by a run that is confirmed"));
        assert!(says_by, "who fixes {key:?}: {rest}");
    }
}

#[test]
fn each_end_without_a_halt_is_quoted() {
    assert_all_made("src/domain/ledger/stored.rs", "Unreadable", &unreadable());
    let mut there: Vec<_> = unreadable().iter().map(|why| (why.code().to_owned(), why.to_string())).collect();
    let (kube, ceph) = ("src/k8s/client/error.rs", "src/ceph/error.rs");
    let words = |text: &str, prefix: &str| -> Vec<String> {
        let name = |rest: &str| rest.chars().take_while(char::is_ascii_alphanumeric).collect();
        text.split(prefix).skip(1).map(name).collect()
    };
    let live = read("src/live/failure.rs");
    let (of_kube, _) = block(&live, "pub fn kube_failure(").split_once("=> Severity::NeedsPerson").unwrap();
    there.extend(words(of_kube, "K8sError::").into_iter().filter(|word| word != "to_string").map(|v| {
        let text = error_text(kube, &v);
        (coded("kube", &v), text)
    }));
    let source = read(ceph);
    let (of_ceph, rest) = block(&source, "pub fn needs_person(").split_once("=> true").unwrap();
    there.extend(words(of_ceph, "Self::").into_iter().map(|v| {
        let text = error_text(ceph, &v);
        (coded("ceph", &v), text)
    }));
    assert!(rest.contains("Self::Read { .. } | Self::Act { .. } => self.is_permission()"), "{rest}");
    there.extend(["Act", "Read"].map(|variant| (coded("ceph", variant), error_text(ceph, variant))));
    let with_a_command = errors_with_a_command();
    there.retain(|(key, _)| !with_a_command.iter().any(|(other, _)| other == key));
    there.extend(with_a_command);
    let told = entries("## Ends without a halt");
    assert_told("## Ends without a halt", &there, &told);
    for key in [
        "ceph-not-allowed",
        "ceph-key-refused",
        "ceph-not-a-key",
        "ceph-no-librados",
        "kube-forbidden",
        "kube-user-forbidden",
    ] {
        for entry in told.iter().filter(|entry| entry.key.as_deref() == Some(key)) {
            let (_, typed) = entry.said.as_ref().and_then(|said| said.rsplit_once(": ")).unwrap();
            assert!(
                ["kubectl ", "ceph "].iter().any(|tool| typed.starts_with(tool)),
                "{key}: what is typed? {typed}"
            );
        }
    }
}

#[test]
fn each_missing_answer_of_the_api_server_is_quoted() {
    let of = |variant: &&str| (coded("kube", variant), error_text("src/k8s/client/error.rs", variant));
    let there: Vec<_> = ["Timeout", "Unreachable"].iter().map(of).collect();
    let heading = "## No answer from the API server";
    assert_told(heading, &there, &entries(heading));
}

#[test]
fn each_failure_that_may_be_temporary_is_quoted() {
    let of = |prefix: &'static str, path: &'static str, variants: &[&str]| {
        let one = |variant: &&str| (coded(prefix, variant), error_text(path, variant));
        variants.iter().map(one).collect::<Vec<_>>()
    };
    let of_kube = ["NotFound", "AlreadyExists", "Conflict", "Unexpected", "Other"];
    let of_ceph = ["NoMon", "Connect", "NoAnswer", "Unexpected", "Unsettled", "Osdmaptool", "Closed"];
    let there = [of("kube", "src/k8s/client/error.rs", &of_kube), of("ceph", "src/ceph/error.rs", &of_ceph)];
    let heading = "## Failures that may be temporary";
    assert_told(heading, &there.concat(), &entries(heading));
}

#[test]
fn each_end_of_a_run_is_quoted() {
    /// Fields that the problem of the node, and metrics, report.
    const OTHERWISE: [&str; 4] = ["unseen_nodes", "changes", "unremoved", "down"];
    let source = read("src/domain/next/summary.rs");
    let field = |line: &str| Some(line.trim().strip_prefix("pub ")?.split_once(':')?.0.to_owned());
    let fields = block(&source, "pub struct Summary {").lines().filter_map(field).collect();
    let made = summaries().iter().map(|(field, _)| text(field)).chain(OTHERWISE.map(text)).collect();
    assert_same("what a summary tells that is made here", &fields, &made);

    let of = |summary: &Summary| {
        let text = Event::Finished(summary).to_string();
        text.rsplit_once(" [").map(|(text, _)| text.to_owned()).unwrap()
    };
    let finished = of(&Summary::default());
    let added = |text: String| text.strip_prefix(&finished).map_or_else(|| text.clone(), str::to_owned);
    let there: Vec<String> =
        summaries().iter().map(|(_, summary)| added(of(summary))).chain([finished.clone()]).collect();
    let told = said(&entries("## How a run ends"));
    let untold: Vec<_> =
        there.iter().filter(|text| !told.iter().any(|quote| is_quoted(quote, text))).collect();
    let unknown: Vec<_> =
        told.iter().filter(|quote| !there.iter().any(|text| is_quoted(quote, text))).collect();
    assert!(
        untold.is_empty() && unknown.is_empty(),
        "not in docs/reference/messages.md: {untold:#?}; not said: {unknown:#?}"
    );

    assert_all_made("src/domain/next/fence_outcome.rs", "FenceOutcome", &fence_outcomes());
    let of_code = |entry: &Entry, code: &str| entry.key.as_deref() == Some(code);
    let ends = entries("## How a run ends");
    for outcome in fence_outcomes() {
        let code = outcome.code();
        assert!(ends.iter().any(|entry| of_code(entry, code)), "no entry has the code {code}");
    }
    // Every sentence of these functions is produced by a summary above.
    let source = read("src/report/summary.rs");
    for function in [
        "finished",
        "some_of",
        "quarantined_in_progress",
        "withheld_from_rook",
        "reshaped_by_rook",
        "rotations_left",
        "fenced_by_its_owner",
        "operator_at_0",
        "not_migrated",
        "on_pvcs",
    ] {
        for sentence in
            literals(block(&source, &format!("fn {function}("))).iter().filter(|text| is_sentence(text))
        {
            let part = plain(&format!("...{sentence}..."));
            assert!(
                there.iter().any(|text| is_quoted(&part, text)),
                "{function}: which summary says {sentence}?"
            );
        }
    }
}

#[test]
fn each_place_that_gets_no_osd_is_quoted() {
    assert_all_made("src/domain/places/obstacle.rs", "Obstacle", &places());
    assert_all_made("src/domain/places/rook.rs", "LetRook", &ways_to_rook());
    let (coded, ways): (Vec<_>, Vec<_>) =
        entries("## Places of device sets").into_iter().partition(|entry| entry.key.is_some());
    let there: Vec<_> = places().iter().map(|one| (one.code().to_owned(), one.to_string())).collect();
    assert_told("places", &there, &coded);
    let there: BTreeSet<String> = ways_to_rook().iter().map(ToString::to_string).collect();
    assert_same("ways to Rook", &there, &said(&ways));
}

/// Returns the sentence of an error's variant.
fn error_text(path: &str, variant: &str) -> String {
    let source = read(path);
    let at = [" {", "(", ","].iter().find_map(|end| source.find(&format!("\n    {variant}{end}")));
    let before = &source[..at.unwrap_or_else(|| panic!("no {variant} in {path}"))];
    let attribute = &before[before.rfind("#[error(").unwrap()..];
    literals(attribute).into_iter().next().unwrap()
}

#[test]
fn each_rejection_of_a_disk_or_node_is_quoted() {
    assert_all_made("src/domain/inventory.rs", "Rejection", &rejections());
    let (disks, told): (Vec<_>, Vec<_>) =
        entries("## Disks and nodes").into_iter().partition(|entry| entry.key.is_some());
    let of_disks: Vec<_> = rejections().iter().map(|one| (one.code().to_owned(), one.to_string())).collect();
    assert_told("disks", &of_disks, &disks);
    let files = ["available", "database", "placement", "process", "select", "volumes", "wanted"];
    let mut there: BTreeSet<String> =
        files.iter().flat_map(|file| sentences(&format!("src/domain/provision/{file}.rs"))).collect();
    there.extend(sentences("src/domain/plan/former.rs"));
    there.extend([
        longest("src/domain/plan/inventories.rs", "inventory_failed"),
        longest("src/domain/plan/disks.rs", "disks"),
        longest("src/domain/plan/provisioner.rs", "message_of"),
        longest("src/k8s/nodes/inventory_report.rs", "shortened"),
        longest("src/node/inventory/read.rs", "read"),
        // `Notes::add`
        "ceph-volume ...: ...".to_owned(),
        "the fsids that this node issued: ...".to_owned(),
        "the volume groups for databases: ...".to_owned(),
    ]);
    assert_same("disks and nodes", &there, &said(&told));
}
