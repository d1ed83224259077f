//! Each text that only the sources contain has an entry: exit codes, events, quarantines, agents, hooks, the
//! Lease.

use std::collections::BTreeSet;
use std::fs;

use clap::Parser;

use osd_migrate::cli::Cli;
use osd_migrate::kube_events::REASONS;

use crate::purity::sources;

use super::entries::{Entry, entries, keys, said};
use super::quotes::assert_same;
use super::sources::{all_texts, block, is_sentence, literals, longest, read, root, said_lines, sentences};
use super::values::text;

#[test]
fn each_exit_code_says_what_the_job_does_then() {
    let source = read("src/exit.rs");
    let of_exit = block(&source, "impl From<Exit> for ExitCode {");
    let code = |line: &str| {
        Some(line.trim().strip_prefix("Exit::")?.split_once(" => ")?.1.trim_end_matches(',').to_owned())
    };
    // The exit code of another pod is passed on, whatever it is.
    let own = of_exit.lines().filter(|line| !line.contains("OfJob"));
    let mut there: BTreeSet<String> = own.filter_map(code).collect();
    assert!(there.len() >= 6, "they moved: {there:?}");
    let usage = Cli::try_parse_from(["osd-migrate", "run", "--no-such-flag"]).unwrap_err();
    there.insert(usage.exit_code().to_string());
    // The code of a process that was killed (128 + SIGKILL) comes from the container runtime.
    there.insert("137".to_owned());
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
fn each_cause_of_a_quarantine_is_quoted() {
    /// Arguments that are passed on: the texts of these functions, or a reason.
    const PASSED_ON: [&str; 6] = [
        "self.agent_trouble()",
        "self.foreign()",
        "why",
        "reason.to_string()",
        "wait.to_string()",
        "self.late(daemon)",
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
    there.insert(longest("src/domain/step/proof.rs", "foreign_data"));
    there.insert(longest("src/domain/step/proof.rs", "other_osd"));
    there.insert(longest("src/domain/step/late.rs", "late"));
    there.insert(longest("src/domain/proof/pieces.rs", "parts_are_found"));
    there.insert(longest("src/domain/classify/database.rs", "lost_database"));
    there.insert(longest("src/domain/step/foreign.rs", "foreign").trim_end_matches("...").to_owned());
    there.insert(longest("src/domain/step/foreign.rs", "revived").trim_end_matches("...").to_owned());
    there.insert(longest("src/domain/step/foreign.rs", "way_to_zap"));
    there.insert(longest("src/domain/step/foreign.rs", "lost_disk"));
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

#[test]
fn lease_messages_are_quoted() {
    assert_same("the Lease", &sentences("src/live/lease.rs"), &said(&entries("## The Lease")));
}
