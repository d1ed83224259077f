//! `docs/reference/messages.md` has an entry for every message of the program that a person has to act on, in
//! the program's own words, and no entry for anything else. Exit codes, events and phases have pages of their
//! own.
//!
//! Entries are list items: the key (a code, or a variant) in bold, then the sentence in italics. If the
//! sentence is long, `...` stands for a part of it. Values that the code can create are asked for their
//! texts; for the rest the sources are read.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::fs;
use std::path::Path;

use clap::Parser;
use serde_json::Value;

use osd_migrate::ceph::CephError;
use osd_migrate::cli::Cli;
use osd_migrate::domain::act::{Act, CephAct};
use osd_migrate::domain::classify::Refusal;
use osd_migrate::domain::drift::Finding;
use osd_migrate::domain::gate::Reason;
use osd_migrate::domain::inspection::{NodeTask, RecordId};
use osd_migrate::domain::inventory::Rejection;
use osd_migrate::domain::ledger::{Ledger, Quarantine, Unreadable};
use osd_migrate::domain::next::{Halt, Next, Summary, Wait};
use osd_migrate::domain::observation::{Control, ControlKind, SlotState};
use osd_migrate::domain::osd::{Epoch, NodeName, OsdId, PgId, Weight};
use osd_migrate::domain::phase::ROWS;
use osd_migrate::k8s::{Call, K8sError};
use osd_migrate::kube_events::REASONS;
use osd_migrate::report::Event;

use crate::purity::sources;
use crate::support::build::{BY_HAND, FILESTORE, World, cluster, noon, old};

const OSD: OsdId = OsdId(5);

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

// ---- messages of the code

fn pg() -> PgId {
    PgId("2.7".to_owned())
}

fn node() -> NodeName {
    NodeName("h1".to_owned())
}

fn text(words: &str) -> String {
    words.to_owned()
}

fn unclean() -> String {
    text("active+undersized+degraded")
}

pub(crate) fn reasons() -> Vec<Reason> {
    let (pg, node, osd) = (pg(), node(), OSD);
    let (since, state) = (Some(noon()), unclean());
    vec![
        Reason::StatisticsIncomplete { known: 96, expected: 97 },
        Reason::StatisticsOld { pg: pg.clone(), reported: Epoch(611), needed: Epoch(614) },
        Reason::NotClean { count: 3, pg: pg.clone(), state: state.clone(), down: BTreeSet::from([OsdId(3)]) },
        Reason::Peering { pg: pg.clone(), state: text("peering") },
        Reason::Merging { pool: text("rbd") },
        Reason::Down { osd },
        Reason::AgentAtWork { job: text("osd-migrate-inspect-5-55ebe299-7-2") },
        Reason::StopReverted { why: text("WHY"), until: noon() },
        Reason::NotOkToStop { bad_pgs: 4 },
        Reason::NotAsked,
        Reason::NoRedundancy { pool: text("rbd") },
        Reason::OtherReplicaMissing { pg: pg.clone(), state: state.clone() },
        Reason::Full { code: text("OSD_NEARFULL") },
        Reason::Flag { flag: text("norecover") },
        Reason::TooSmall { usable: 400, needed: 500 },
        Reason::UsageUnknown,
        Reason::Upgrading,
        Reason::ImageChanged { declared: text("ceph:v20"), known: text("ceph:v18") },
        Reason::RookPrepares { job: text("rook-ceph-osd-prepare-h1") },
        Reason::RookMigrates { osd, name: text("rook-ceph/rook-ceph-operator") },
        Reason::OperatorRuns { name: text("rook-ceph/rook-ceph-operator"), ends: false },
        Reason::OperatorRuns { name: text("rook-ceph/rook-ceph-operator"), ends: true },
        Reason::OperatorNotFound { checked: noon() },
        Reason::FenceNotAcknowledged { name: text("rook-ceph/rook-ceph-operator") },
        Reason::FencedExternally { value: text("true") },
        Reason::FencedExternally { value: text("osd-migrate-3-a7") },
        Reason::PdbExcludesOsd { osd: OsdId(3) },
        Reason::Draining { domain: text("h1") },
        Reason::PdbRejected { why: text("WHY") },
        Reason::AdmissionRefused { osd, why: text("WHY") },
        Reason::AdmissionUnknown { osd, why: None },
        Reason::AdmissionUnknown { osd, why: Some(text("WHY")) },
        Reason::AmbiguousObjects { what: text("osd.5 has two Deployments: a and b") },
        Reason::NodeNotReady { node: node.clone() },
        Reason::NodeCordoned { node: node.clone() },
        Reason::StartedExternally,
        Reason::RolloutInProgress { osd },
        Reason::MonDown,
        Reason::External,
        Reason::RookRemovesOutOsds,
        Reason::NotConfirmed,
        Reason::Paused { since },
        Reason::Cancelled { since },
        Reason::OutsideWindow { windows: vec!["22:00-05:00".parse().unwrap()], opens_at: since },
        Reason::FailureLimit { quarantined: BTreeSet::from([OsdId(3), osd]) },
        Reason::NeedsDevice { node: node.clone(), bytes: 40 << 30, selected: text("useAllDevices") },
        Reason::DisksNotInspected { node: node.clone(), why: None },
        Reason::NoDatabaseDevice { node: node.clone(), why: text("WHY") },
        Reason::DisksNotInspected { node, why: Some(text("its agent sends no heartbeat")) },
        Reason::RemappedPgNotClean { pg, state },
        Reason::BackfillIncomplete { osd },
        Reason::Queued { osd },
    ]
}

pub(crate) fn halts() -> Vec<Halt> {
    let (osd, old, node) = (OSD, old(BY_HAND), node());
    let quarantined = vec![(OsdId(3), text("WHY")), (osd, text("WHY"))];
    vec![
        Halt::LedgerLost { place: text("Deployment rook-ceph-osd-5"), record: RecordId(text("55ebe299-7")) },
        Halt::LedgerLost { place: text("the CephCluster"), record: RecordId(text("55ebe299-7")) },
        Halt::PurgedExternally { osd, old },
        Halt::UnsafeToWipe {
            osd,
            old,
            key: text("the key on its disk"),
            reason: Reason::OtherReplicaMissing { pg: pg(), state: unclean() },
        },
        Halt::DiskTaken {
            osd,
            old,
            key: text("the key in /data/osd5/keyring on node h1"),
            node,
            disk: text("/dev/disk/by-id/ata-X"),
            found: text("a LUKS header"),
        },
        Halt::MisplacedInUse { osd, misplaced: OsdId(6) },
        Halt::Quarantined { quarantined: quarantined.clone() },
        Halt::CrashLoop { job: text("55ebe299-1c2d-4f6a-9d6e-0c5a1b7e9f00"), starts: 10 },
        Halt::FailureLimit { quarantined },
    ]
}

pub(crate) fn waits() -> Vec<Wait> {
    let (osd, node, reason) = (OSD, node(), Reason::MonDown);
    let job = text("osd-migrate-rebuild-5-55ebe299-7-2");
    let trouble = Some(text("TROUBLE"));
    vec![
        Wait::Gate { osd, reason: reason.clone() },
        Wait::Node { node: node.clone(), reason: reason.clone() },
        Wait::Inventory { node: node.clone(), trouble: trouble.clone() },
        Wait::Agent { osd, task: NodeTask::Rebuild, job: job.clone(), trouble: trouble.clone() },
        Wait::AgentSilent { osd, job },
        Wait::AgentBusy { osd, node, why: text("WHY") },
        Wait::AgentRests { osd, failures: 2, why: text("WHY"), until: noon() },
        Wait::NotOurStop { osd },
        Wait::Down { osd },
        Wait::UnsafeToWipe { osd, reason },
        Wait::RookDeploys { osd, operator: text("rook-ceph/rook-ceph-operator"), minutes: 10 },
        Wait::Up { osd, trouble },
        Wait::MarkedOutExternally { osd, reweight: Weight(0x8000) },
        Wait::ActiveClean {
            osd,
            pgs: 12,
            objects: 3400,
            bytes: 5 << 30,
            states: [].into(),
            flags: [].into(),
        },
        Wait::FreshView,
    ]
}

pub(crate) fn refusals() -> Vec<Refusal> {
    vec![
        Refusal::NotBuiltYet(text("WHAT")),
        Refusal::TooOld(text("VERSION")),
        Refusal::Orphan,
        Refusal::NoMetadata,
        Refusal::NoDeployment,
        Refusal::NoNode(text("h1")),
        Refusal::NoCrushItem,
        Refusal::ManagedExternally(text("WHAT")),
        Refusal::HostDevice(text("WHAT")),
        Refusal::NoWayBack,
    ]
}

fn rejections() -> Vec<Rejection> {
    vec![
        Rejection::ReadOnly,
        Rejection::TooSmall { bytes: 4 << 30 },
        Rejection::Partitioned { count: 2 },
        Rejection::Mounted { at: text("/data") },
        Rejection::InUse { by: vec![text("dm-0")] },
        Rejection::ForeignCeph { cluster: Some(cluster()) },
        Rejection::ForeignCeph { cluster: None },
        Rejection::Lvm,
        Rejection::Luks,
        Rejection::Signature { kind: text("ext4") },
        Rejection::Data { what: text("WHERE") },
        Rejection::PersistentVolume { name: text("pv-x"), claim: Some(text("NAMESPACE/NAME")) },
        Rejection::PersistentVolume { name: text("pv-x"), claim: None },
        Rejection::MayBePersistentVolume { name: text("pv-x"), path: text("/mnt/disks/a") },
        Rejection::NoStableName,
        Rejection::Unreadable { why: text("WHY") },
        Rejection::CephVolume { why: vec![text("WHY")] },
    ]
}

fn findings() -> Vec<Finding> {
    let osd = OSD;
    vec![
        Finding::SlotWithoutOsd { osd },
        Finding::UpInDestroyedSlot { osd },
        Finding::OsdWithoutDeployment { osd },
        Finding::DeploymentWithoutOsd { name: text("rook-ceph-osd-5"), osd },
        Finding::FlagsWithoutRecord { osd, flags: vec!["noout", "noin"], reweight: None },
        Finding::FlagsWithoutRecord { osd, flags: vec!["noout", "noin"], reweight: Some(Weight(0x8000)) },
        Finding::FenceWithoutRecord { value: text("osd-migrate-3-a7") },
        Finding::KeyWithoutOsd { osd },
        Finding::DmcryptKeyWithoutOsd { fsid: old(BY_HAND) },
    ]
}

fn unreadable() -> Vec<Unreadable> {
    vec![
        Unreadable::Newer(9),
        Unreadable::Broken { key: text("osd-5"), why: text("WHY") },
        Unreadable::Lost { listed: vec![3, 5], held: vec![3] },
    ]
}

/// Returns summaries with a message of their own, each with the field that causes it.
fn summaries() -> Vec<(&'static str, Summary)> {
    let osds = || BTreeSet::from([OsdId(3), OSD]);
    let nodes = || BTreeSet::from(["h1", "h2"].map(|name| NodeName(text(name))));
    let why = || vec![(OSD, text("WHY"))];
    let operator_at_0 = || Some(text("rook-ceph/rook-ceph-operator"));
    let plain = Summary::default;
    vec![
        ("cancelled", Summary { cancelled: true, ..plain() }),
        ("unconfirmed", Summary { unconfirmed: osds(), ..plain() }),
        ("quarantined", Summary { quarantined: why(), ..plain() }),
        ("refused", Summary { refused: why(), ..plain() }),
        ("skipped", Summary { skipped: why(), ..plain() }),
        ("refused", Summary { refused: (0..30).map(|osd| (OsdId(osd), text("WHY"))).collect(), ..plain() }),
        ("skipped", Summary { skipped: (0..30).map(|osd| (OsdId(osd), text("WHY"))).collect(), ..plain() }),
        ("unconfirmed_nodes", Summary { unconfirmed_nodes: nodes(), ..plain() }),
        ("problems", Summary { problems: vec![(text("h1"), text("WHY"))], ..plain() }),
        ("left_to_rook", Summary { left_to_rook: nodes(), ..plain() }),
        ("withheld_from_rook", Summary { withheld_from_rook: osds(), ..plain() }),
        ("half_way", Summary { half_way: osds(), ..plain() }),
        ("operator_at_0", Summary { operator_at_0: operator_at_0(), ..plain() }),
        (
            "left_to_rook_at_0",
            Summary { operator_at_0: operator_at_0(), left_to_rook_at_0: osds(), ..plain() },
        ),
    ]
}

/// Returns errors that end with a command which other code puts together.
fn errors_with_a_command() -> Vec<(String, String)> {
    let call = Call {
        verb: "list",
        resource: text("deployments.apps"),
        name: None,
        namespace: Some(text("rook-ceph")),
    };
    let refused = |user: &str| CephError::NotAllowed {
        user: text(user),
        command: "osd destroy-actual",
        osd: Some(OSD),
        said: text("access denied"),
    };
    let forbidden = K8sError::Forbidden { call, message: text("MESSAGE") };
    let users = ["client.osd-migrate", "client.mine"].map(|user| refused(user).to_string());
    let of_ceph = users.map(|said| (text("ceph-not-allowed"), said));
    of_ceph.into_iter().chain([(text("kube-forbidden"), forbidden.to_string())]).collect()
}

/// Returns the name of a value's variant.
fn name(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    text.chars().take_while(char::is_ascii_alphanumeric).collect()
}

/// Returns the code of an error's variant, as the derive forms it: `NotAKey` is `ceph-not-a-key`.
pub(crate) fn coded(prefix: &str, variant: &str) -> String {
    variant.chars().fold(text(prefix), |code, c| {
        let dash = if c.is_ascii_uppercase() { "-" } else { "" };
        code + dash + &c.to_ascii_lowercase().to_string()
    })
}

// ---- messages in the sources

/// Returns the variants of an enum, as rustfmt formats them.
pub(crate) fn variants(path: &str, of: &str) -> BTreeSet<String> {
    let source = read(path);
    let (_, body) = source.split_once(&format!("pub enum {of} {{\n")).unwrap();
    let (body, _) = body.split_once("\n}").unwrap();
    let variant = |line: &str| {
        let word =
            line.strip_prefix("    ").filter(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))?;
        Some(word.chars().take_while(char::is_ascii_alphanumeric).collect())
    };
    body.lines().filter_map(variant).collect()
}

/// Returns the text from `begins` to the end of its block, such as a function or a `match`.
pub(crate) fn block<'a>(source: &'a str, begins: &str) -> &'a str {
    let (_, rest) = source.split_once(begins).unwrap_or_else(|| panic!("no `{begins}` any more"));
    let line = source[..source.find(begins).unwrap()].rsplit('\n').next().unwrap_or_default();
    let indent = line.chars().take_while(|c| *c == ' ').count();
    let end = format!("\n{}}}", " ".repeat(indent));
    rest.split_once(&end).map_or(rest, |(block, _)| block)
}

/// Returns the texts of a source without its tests, with `...` for what is filled in.
pub(crate) fn literals(source: &str) -> Vec<String> {
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut found = Vec::new();
    let mut chars = source.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '/' if chars.peek() == Some(&'/') => drop(chars.by_ref().find(|c| *c == '\n')),
            '\'' if chars.peek() == Some(&'"') => drop(chars.next()),
            '"' => found.push(literal(&mut chars)),
            _ => {}
        }
    }
    found
}

fn literal(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    let mut text = String::new();
    while let Some(c) = chars.next().filter(|c| *c != '"') {
        match c {
            '\\' => match chars.next().unwrap() {
                '\n' => while chars.next_if(|c| c.is_whitespace()).is_some() {},
                'n' => text.push('\n'),
                escaped => text.push(escaped),
            },
            '{' if chars.next_if_eq(&'{').is_some() => text.push('{'),
            '}' if chars.next_if_eq(&'}').is_some() => text.push('}'),
            '{' => {
                chars.by_ref().find(|c| *c == '}').unwrap();
                text.push_str("...");
            }
            _ => text.push(c),
        }
    }
    plain(&text)
}

/// Joins two neighbouring parts that are left out into one.
fn plain(text: &str) -> String {
    let mut text = text.to_owned();
    while text.contains("......") {
        text = text.replace("......", "...");
    }
    text
}

/// Returns whether a text has at least three words, not counting what is filled in.
fn is_sentence(text: &str) -> bool {
    words(text) >= 3
}

fn words(text: &str) -> usize {
    let is_word = |word: &&str| word.contains(|c: char| c.is_ascii_alphabetic());
    text.split_whitespace().filter(is_word).count()
}

/// Returns the printed lines of at least four words.
///
/// Lines that are indented, or begin with a command, are for the user to type.
fn said_lines(path: &str) -> BTreeSet<String> {
    let is_said =
        |line: &&str| !line.starts_with([' ', '/']) && !line.starts_with("kubectl ") && words(line) >= 4;
    let lines = |text: &String| text.lines().filter(is_said).map(str::to_owned).collect::<Vec<_>>();
    literals(&read(path)).iter().flat_map(lines).collect()
}

fn sentences(path: &str) -> BTreeSet<String> {
    literals(&read(path)).into_iter().filter(|text| is_sentence(text)).collect()
}

/// Returns the longest text of a function: the function's sentence, if other texts are parts of it.
fn longest(path: &str, function: &str) -> String {
    let source = read(path);
    literals(block(&source, &format!("fn {function}("))).into_iter().max_by_key(String::len).unwrap()
}

/// Returns every text in the sources.
fn all_texts() -> BTreeSet<String> {
    let texts = |path: &std::path::PathBuf| literals(&fs::read_to_string(path).unwrap());
    sources(&root().join("src")).iter().flat_map(texts).collect()
}

// ---- entries of the pages

#[derive(Debug)]
struct Entry {
    key: Option<String>,
    said: Option<String>,
    rest: String,
}

/// The pages with entries.
pub(crate) const PAGES: [&str; 4] = [
    "docs/reference/messages.md",
    "docs/reference/exit-codes.md",
    "docs/reference/events.md",
    "docs/guides/recover-by-hand.md",
];

fn runbook() -> String {
    PAGES.map(read).join("\n")
}

/// Returns the list items below a heading, including those of its subheadings.
fn entries(heading: &str) -> Vec<Entry> {
    let document = runbook();
    let level = heading.split(' ').next().unwrap().len();
    let is_end = |line: &str| {
        line.starts_with('#') && line.split(' ').next().is_some_and(|marks| marks.len() <= level)
    };
    let below = document.lines().skip_while(|line| *line != heading).skip(1).take_while(|line| !is_end(line));
    let mut items: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in below {
        if let Some(item) = line.strip_prefix("- ") {
            items.push(item.to_owned());
            is_open = true;
        } else if is_open && line.starts_with("  ") {
            let item = items.last_mut().unwrap();
            *item = format!("{item} {}", line.trim());
        } else {
            is_open = false;
        }
    }
    assert!(!items.is_empty(), "no entries below `{heading}`");
    items.iter().map(|item| entry(item)).collect()
}

fn entry(item: &str) -> Entry {
    let item =
        item.strip_prefix("<a id=").and_then(|rest| rest.split_once("</a> ")).map_or(item, |(_, item)| item);
    let (key, rest) = match item.strip_prefix("**`").and_then(|rest| rest.split_once("`**")) {
        Some((key, rest)) => (Some(key.to_owned()), rest.trim()),
        None => (None, item),
    };
    let (said, rest) = match rest.strip_prefix('*').and_then(italics) {
        Some((said, rest)) => (Some(said.replace("\\<", "<").replace("\\*", "*")), rest.trim()),
        None => (None, rest),
    };
    Entry { key, said, rest: rest.to_owned() }
}

/// Splits a text at the asterisk that ends the italics; an escaped asterisk has a backslash.
fn italics(rest: &str) -> Option<(&str, &str)> {
    let (end, _) = rest.match_indices('*').find(|(at, _)| !rest[..*at].ends_with('\\'))?;
    Some((&rest[..end], &rest[end + 1..]))
}

fn keys(entries: &[Entry]) -> BTreeSet<String> {
    entries.iter().map(|entry| entry.key.clone().unwrap_or_else(|| panic!("no key: {entry:?}"))).collect()
}

fn said(entries: &[Entry]) -> BTreeSet<String> {
    let plain_of =
        |entry: &Entry| plain(entry.said.as_ref().unwrap_or_else(|| panic!("nothing said: {entry:?}")));
    entries.iter().map(plain_of).collect()
}

/// Returns whether a quote matches a text; `...` stands for any part.
pub(crate) fn is_quoted(quote: &str, text: &str) -> bool {
    let mut parts = quote.split("...");
    let first = parts.next().unwrap_or_default();
    let parts: Vec<&str> = parts.collect();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

fn assert_same(what: &str, there: &BTreeSet<String>, told: &BTreeSet<String>) {
    let missing: Vec<_> = there.difference(told).collect();
    let unknown: Vec<_> = told.difference(there).collect();
    assert!(missing.is_empty(), "{what}, not in docs/reference/messages.md: {missing:#?}");
    assert!(unknown.is_empty(), "{what}, in docs/reference/messages.md and not in the code: {unknown:#?}");
}

/// Asserts that each key has an entry, each entry quotes a message of its key, and each message is quoted.
fn assert_told(what: &str, there: &[(String, String)], told: &[Entry]) {
    assert_same(what, &there.iter().map(|(key, _)| key.clone()).collect(), &keys(told));
    let quotes = |entry: &Entry, (key, text): &(String, String)| {
        entry.key.as_ref() == Some(key) && entry.said.as_ref().is_some_and(|quote| is_quoted(quote, text))
    };
    for entry in told {
        let of_key: Vec<_> = there.iter().filter(|(key, _)| entry.key.as_ref() == Some(key)).collect();
        assert!(of_key.iter().any(|one| quotes(entry, one)), "{:?} is none of {of_key:#?}", entry.said);
    }
    for one in there {
        assert!(told.iter().any(|entry| quotes(entry, one)), "{what}: nothing quotes {one:?}");
    }
}

fn assert_all_made(path: &str, of: &str, made: &[impl Debug]) {
    assert_same(&format!("{of} that is made here"), &variants(path, of), &made.iter().map(name).collect());
}

// ---- tests

#[test]
fn quote_is_the_whole_sentence_except_for_its_ellipses() {
    assert!(is_quoted("a b", "a b") && is_quoted("a ... c", "a b c") && is_quoted("... b: ...", "x b: y"));
    for (quote, text) in [("a b", "a b c"), ("a ... c", "a b"), ("b ...", "a b c"), ("... b ... a", "a b c")]
    {
        assert!(!is_quoted(quote, text), "{quote} is not {text}");
    }
}

#[test]
fn each_exit_code_says_what_the_job_does_then() {
    let source = read("src/exit.rs");
    let of_exit = block(&source, "impl From<Exit> for ExitCode {");
    let code = |line: &str| {
        Some(line.trim().strip_prefix("Exit::")?.split_once(" => ")?.1.trim_end_matches(',').to_owned())
    };
    let mut there: BTreeSet<String> = of_exit.lines().filter_map(code).collect();
    assert!(there.len() >= 6, "they moved: {there:?}");
    let usage = Cli::try_parse_from(["osd-migrate", "run", "--no-such-flag"]).unwrap_err();
    there.insert(usage.exit_code().to_string());
    let told = entries("# Exit codes");
    assert_same("exit codes", &there, &keys(&told));

    let job = read("job/cronjob.yaml");
    let (_, ends) =
        job.split_once("onExitCodes:").and_then(|(_, rest)| rest.split_once("values: [")).unwrap();
    let ends: BTreeSet<&str> = ends.split_once(']').unwrap().0.split(", ").collect();
    for Entry { key, rest, .. } in &told {
        let expected = match key.as_deref().unwrap() {
            "0" => "Job: Complete.",
            code if ends.contains(code) => "Job: Failed.",
            _ => "Job: starts again",
        };
        assert!(rest.starts_with(expected), "{key:?}: expected `{expected}`, found {rest}");
    }
    assert!(ends.iter().all(|code| there.contains(*code)), "{ends:?}");
}

#[test]
fn each_event_has_its_entry() {
    let there: BTreeSet<String> = REASONS.iter().map(|reason| text(reason)).collect();
    let named = |line: &str| Some(line.split_once(": &str = \"")?.1.trim_end_matches("\";").to_owned());
    let source = read("src/kube_events.rs");
    assert_eq!(source.lines().filter_map(named).collect::<BTreeSet<_>>(), there);
    assert_same("events", &there, &keys(&entries("# Events")));
    // Nothing else publishes events.
    let publishes = |path: &&std::path::PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        text.contains(".publish(") || text.contains(".warn_once(") && !path.ends_with("own/events.rs")
    };
    let paths = sources(&root().join("src"));
    let is_test = |path: &&std::path::PathBuf| path.to_string_lossy().ends_with("_tests.rs");
    let told_by: Vec<_> = paths.iter().filter(|path| !is_test(path) && publishes(path)).collect();
    assert!(matches!(told_by.as_slice(), [one] if one.ends_with("src/event_reporter.rs")), "{told_by:?}");
}

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
        _ => wait.code(),
    };
    let there: Vec<_> = waits().iter().map(|wait| (code(wait).to_owned(), wait.to_string())).collect();
    assert_told("## Waits", &there, &entries("## Waits"));
    assert_all_made("src/domain/classify/class.rs", "Refusal", &refusals());
    let there: Vec<_> =
        refusals().iter().map(|refusal| (refusal.code().to_owned(), refusal.to_string())).collect();
    assert_told("## Refused", &there, &entries("## Refused"));
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
    for key in
        ["ceph-not-allowed", "ceph-key-refused", "ceph-not-a-key", "ceph-no-librados", "kube-forbidden"]
    {
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
fn each_end_of_a_run_is_quoted() {
    /// Variant that the problem of the node reports.
    const OTHERWISE: &str = "unseen_nodes";
    let source = read("src/domain/next/summary.rs");
    let field = |line: &str| Some(line.trim().strip_prefix("pub ")?.split_once(':')?.0.to_owned());
    let fields = block(&source, "pub struct Summary {").lines().filter_map(field).collect();
    let made = summaries().iter().map(|(field, _)| text(field)).chain([text(OTHERWISE)]).collect();
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

    // Every sentence of these functions is produced by a summary above.
    let source = read("src/report/summary.rs");
    for function in [
        "finished",
        "some_of",
        "quarantined_in_progress",
        "withheld_from_rook",
        "operator_at_0",
        "not_migrated",
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

/// Returns the sentence of an error's variant.
fn error_text(path: &str, variant: &str) -> String {
    let source = read(path);
    let at = [" {", "(", ","].iter().find_map(|end| source.find(&format!("\n    {variant}{end}")));
    let before = &source[..at.unwrap_or_else(|| panic!("no {variant} in {path}"))];
    let attribute = &before[before.rfind("#[error(").unwrap()..];
    literals(attribute).into_iter().next().unwrap()
}

#[test]
fn each_cause_of_a_quarantine_is_quoted() {
    /// Arguments that are passed on: the texts of these functions, or a reason.
    const PASSED_ON: [&str; 6] = [
        "self.agent_trouble()",
        "self.foreign()",
        "why",
        "reason.to_string()",
        "wait.to_string()",
        "late(osd, daemon)",
    ];
    let classify = "src/domain/classify/device.rs";
    let steps = "src/domain/step";
    let mut there = BTreeSet::new();
    for path in sources(&root().join(steps)) {
        let source = fs::read_to_string(path).unwrap();
        for (at, call) in source.match_indices(".quarantine(") {
            let argument = argument(&source[at + call.len()..]);
            match literals(argument).into_iter().next() {
                Some(text) => drop(there.insert(text)),
                None => assert!(PASSED_ON.contains(&argument.trim()), "whose words are {argument}?"),
            }
        }
    }
    assert!(there.len() > 8, "they moved: {there:?}");
    there.insert(longest("src/domain/step/agents.rs", "agent_trouble"));
    there.insert(longest("src/domain/step/up.rs", "late"));
    there.insert(longest("src/domain/step/foreign.rs", "foreign").trim_end_matches("...").to_owned());
    there.insert(longest("src/domain/step/foreign.rs", "revived").trim_end_matches("...").to_owned());
    there.insert(longest("src/domain/step/foreign.rs", "way_to_zap"));
    let source = read(classify);
    for function in ["contradicts", "excludes"] {
        there.extend(literals(block(&source, &format!("pub fn {function}("))));
    }
    let told: Vec<Entry> = [
        "### Before the stop: no data is lost",
        "### At any time",
        "### After the rebuild: the old data no longer exists",
    ]
    .into_iter()
    .flat_map(entries)
    .collect();
    assert_same("causes", &there, &said(&told));
}

/// Returns the text up to the closing bracket.
fn argument(rest: &str) -> &str {
    let mut depth = 1;
    let end = rest.find(|c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        depth == 0
    });
    &rest[..end.unwrap()]
}

#[test]
fn quoted_messages_of_agents_and_in_passing_are_in_the_code() {
    let there = all_texts();
    for heading in ["### What an agent says", "### Reported in passing"] {
        let unknown: Vec<_> =
            said(&entries(heading)).into_iter().filter(|text| !there.contains(text)).collect();
        assert!(
            unknown.is_empty(),
            "{heading}: in docs/reference/messages.md and not in the code: {unknown:#?}"
        );
    }
}

/// Checks the reasons of an agent that failed repeatedly.
///
/// The agent's own message is among these, or in the agent's log.
#[test]
fn agent_failure_is_quoted_if_the_agent_does_not_report_it() {
    let agents = "src/domain/step/agents.rs";
    let source = read(agents);
    let mut there: BTreeSet<String> =
        literals(block(&source, "fn last_trouble(")).into_iter().filter(|text| is_sentence(text)).collect();
    there.insert(longest(agents, "key_trouble"));
    assert!(there.len() >= 3, "they moved: {there:?}");
    let told = said(&entries("### What an agent says"));
    let untold: Vec<_> = there.difference(&told).collect();
    assert!(untold.is_empty(), "not in docs/reference/messages.md: {untold:#?}");
}

#[test]
fn helm_hook_messages_are_quoted() {
    let commands = ["preflight", "start", "uninstall"].map(|name| format!("src/commands/{name}.rs"));
    let files =
        commands.iter().map(String::as_str).chain(["src/show/preflight.rs", "src/k8s/own/run_job.rs"]);
    let there = files.flat_map(said_lines).collect();
    assert_same("hooks", &there, &said(&entries("## Hooks of Helm")));
}

/// Returns the entries of all pages.
fn all_entries() -> Vec<Entry> {
    let document = runbook();
    let has_entries = |heading: &&str| {
        let (_, below) = document.split_once(&format!("{heading}\n")).unwrap();
        let ends = ["\n## ", "\n# "].iter().filter_map(|heading| below.find(heading)).min();
        below[..ends.unwrap_or(below.len())].contains("\n- ")
    };
    let headings = document.lines().filter(|line| line.starts_with("## ") || line.starts_with("# E"));
    headings.filter(has_entries).flat_map(entries).collect()
}

/// Returns what the entries say in addition to the program's messages.
pub(crate) fn remarks() -> Vec<String> {
    all_entries().into_iter().map(|entry| entry.rest).collect()
}

/// Checks that no entry only repeats its sentence.
#[test]
fn each_entry_says_more_than_the_sentence() {
    let all = all_entries();
    assert!(all.len() > 200, "they moved: {}", all.len());
    let bare: Vec<_> = all.iter().filter(|entry| entry.rest.is_empty()).collect();
    assert!(bare.is_empty(), "no remedy: {bare:#?}");
}

#[test]
fn lease_messages_are_quoted() {
    assert_same("the Lease", &sentences("src/live/lease.rs"), &said(&entries("## The Lease")));
}

#[test]
fn each_rejection_of_a_disk_or_node_is_quoted() {
    assert_all_made("src/domain/inventory.rs", "Rejection", &rejections());
    let (disks, told): (Vec<_>, Vec<_>) =
        entries("## Disks and nodes").into_iter().partition(|entry| entry.key.is_some());
    let of_disks: Vec<_> = rejections().iter().map(|one| (one.code().to_owned(), one.to_string())).collect();
    assert_told("disks", &of_disks, &disks);
    let files = ["available", "database", "placement", "select", "volumes", "wanted"];
    let mut there: BTreeSet<String> =
        files.iter().flat_map(|file| sentences(&format!("src/domain/provision/{file}.rs"))).collect();
    there.extend([
        longest("src/domain/plan/inventories.rs", "inventory_failed"),
        longest("src/domain/plan/provisioner.rs", "message_of"),
    ]);
    assert_same("disks and nodes", &there, &said(&told));
}

#[test]
fn each_phase_can_be_finished_or_undone_by_hand() {
    let there = variants("src/domain/phase/phases.rs", "Phase");
    assert!(ROWS.iter().all(|(phase, _)| there.contains(&name(phase))));
    assert_same("phases", &there, &keys(&entries("## Phase by phase")));
    let document = runbook();
    let (_, rest) = document.split_once("\n## Where it stands\n").unwrap();
    let (table, _) = rest.split_once("\n## ").unwrap();
    let unseen: Vec<_> = there.iter().filter(|phase| !table.contains(&format!("`{phase}`"))).collect();
    assert!(unseen.is_empty(), "how are these seen: {unseen:?}");
}

/// Checks that the ledger without a record, removed as the runbook describes, reads as if the record never
/// existed.
#[test]
fn record_removed_by_hand_leaves_a_readable_ledger() {
    let document = runbook();
    assert!(document.contains("del(.data[\"osd-\\($id)\"])"), "the command changed");
    assert!(document.contains(".data.run |= (fromjson | .open -= [$id] | tojson)"), "the command changed");
    let mut ledger = World::destroyed(BY_HAND).ledger;
    ledger.records.extend(World::deployed(FILESTORE).ledger.records);
    let mut keys = ledger.to_keys().unwrap();
    keys.remove(&format!("osd-{}", BY_HAND.0)).unwrap();
    assert!(Ledger::from_keys(&keys).is_err(), "half of it is noticed");
    let mut run: Value = serde_json::from_str(&keys["run"]).unwrap();
    run["open"].as_array_mut().unwrap().retain(|id| *id != BY_HAND.0);
    keys.insert("run".to_owned(), run.to_string());
    assert_eq!(Ledger::from_keys(&keys).unwrap(), ledger.without(BY_HAND));
}

/// Checks that a cancelled run closes the record of an OSD that a person restored, one act an iteration.
#[test]
fn osd_restored_by_hand_is_withdrawn_by_a_cancelled_run() {
    let world = World::destroyed(BY_HAND).with(|w| {
        let slot = w.slot(BY_HAND);
        (slot.fsid, slot.state) = (Some(old(BY_HAND)), SlotState::Exists);
        let daemon = w.daemon(BY_HAND);
        (daemon.replicas, daemon.stopped_by) = (1, None);
        w.record(BY_HAND).quarantine = Some(Quarantine { why: text("WHY"), since: noon() });
        w.seen.kube.control = Some(Control { kind: ControlKind::Cancel, since: Some(noon()) });
    });
    let world = world.up(BY_HAND).minutes_later(2);
    let quarantined = world.plan();
    assert!(!matches!(quarantined, Next::Save { .. }), "not while it is left alone: {quarantined:?}");
    let world = world.with(|w| w.ledger = w.ledger.retried(BY_HAND).unwrap());
    let world = world.saved("up").saved("withdrawn").cleaned_up(BY_HAND);
    assert!(
        matches!(
            world.plan(),
            Next::Do(Act::Ceph(CephAct::UnsetOsdFlags { osd: BY_HAND, noout: true, noin: true }))
        ),
        "{:?}",
        world.plan()
    );
}

#[test]
fn messages_page_lines_have_at_most_120_columns() {
    let document = runbook();
    let long: Vec<_> = document.lines().filter(|line| line.chars().count() > 120).collect();
    assert!(long.is_empty(), "longer than 120 columns: {long:#?}");
}
