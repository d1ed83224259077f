//! Each osd-migrate command in the documents, the chart or the messages of the program is valid.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use clap::{CommandFactory, Parser};
use regex::Regex;

use osd_migrate::cli::Cli;
use osd_migrate::domain::commands::Names;
use osd_migrate::k8s::CRON_JOB;

use crate::pages::pages;
use crate::purity::sources;
use crate::runbook::{literals, read, remarks, root};

/// Words after a colon and the name if the name is the subject of a sentence.
const NO_COMMAND: [&str; 2] = ["does", "scales"];

/// Options of kubectl, Helm, Ceph and others that occur in sentences and in the documents alongside
/// osd-migrate's.
const OF_OTHERS: [&str; 32] = [
    "--all-containers",
    "--as",
    "--block",
    "--crush-location",
    "--dmcrypt",
    "--follow",
    "--force",
    "--from",
    "--grace-period",
    "--delete-emptydir-data",
    "--destroy",
    "--ignore-daemonsets",
    "--ignore-not-found",
    "--kube-context",
    "--minify",
    "--no-hooks",
    "--one-file-system",
    "--osd-data",
    "--osd-fsid",
    "--osd-id",
    "--osd-uuid",
    "--overwrite",
    "--prefix",
    "--replicas",
    "--reset-then-reuse-values",
    "--set",
    "--show-labels",
    "--show-managed-fields",
    "--subresource",
    "--tail",
    "--type",
    "--yes-i-really-mean-it",
];

/// Text that Helm prints after an install.
const NOTES: &str = "charts/osd-migrate/templates/NOTES.txt";

fn documents() -> Vec<(String, String)> {
    // ADRs and the changelog are history; the command line page is generated from the commands.
    let is_history = |path: &str| path.contains("/adr/") || path == "CHANGELOG.md";
    let is_generated = |path: &str| path == "docs/reference/command-line.md";
    let mut documents: Vec<_> =
        pages().into_iter().filter(|(path, _)| !is_history(path) && !is_generated(path)).collect();
    documents.push((NOTES.to_owned(), read(NOTES).replace("{{ .Release.Namespace }}", "rook-ceph")));
    documents
}

/// Returns the code of a document: the text between backticks, and lines indented by four columns (in the
/// chart's notes: two).
fn code(path: &str, document: &str) -> Vec<String> {
    let indent = if path == NOTES { "  " } else { "    " };
    let indented = document.lines().filter(|line| line.starts_with(indent)).map(str::to_owned);
    let spans = document
        .split('`')
        .skip(1)
        .step_by(2)
        .map(|span| span.split_whitespace().collect::<Vec<_>>().join(" "));
    spans.chain(indented).collect()
}

/// Returns the texts of the program, without tests and the texts that only the lab and the rehearsal print.
fn texts() -> Vec<(String, String)> {
    let is_said = |path: &&PathBuf| {
        let path = path.to_string_lossy();
        !path.ends_with("_tests.rs") && !path.contains("/samples") && !path.ends_with("src/failpoint.rs")
    };
    let of = |path: &PathBuf| {
        let source = fs::read_to_string(path).unwrap();
        literals(&source).into_iter().map(|text| (path.display().to_string(), text)).collect::<Vec<_>>()
    };
    sources(&root().join("src")).iter().filter(is_said).flat_map(of).collect()
}

/// Returns whether a command follows this part of a sentence.
///
/// (Elsewhere the name is the subject of a sentence.)
fn is_introduced(before: &str) -> bool {
    let last = before.split_whitespace().next_back().unwrap_or_default();
    last.ends_with([':', ';', '`', '|', '(', '$']) || ["run", "type", "with", "see", "by"].contains(&last)
}

/// Returns the words after each occurrence of the name as a word, up to the end of the sentence or the span.
///
/// With `is_code`, each occurrence is a command; in a sentence, only one that is introduced.
fn commands(text: &str, is_code: bool) -> Vec<Vec<String>> {
    const NAME: &str = "osd-migrate ";
    let is_word = |at: usize| {
        text[..at].chars().next_back().is_none_or(|c| !(c.is_alphanumeric() || "/.=-_".contains(c)))
    };
    let of_helm = |at: usize| {
        let before = text[..at].split_whitespace().next_back().unwrap_or_default();
        ["install", "uninstall", "template", "rollback", "upgrade", "cronjob"].contains(&before)
    };
    let is_typed = |at: usize| is_code || is_introduced(&text[..at]);
    let is_command = |at: &usize| is_word(*at) && !of_helm(*at) && is_typed(*at);
    let starts = text.match_indices(NAME).map(|(at, _)| at).filter(is_command);
    starts
        .map(|at| without_namespace(words(&text[at + NAME.len()..])))
        .filter(|words| !words.is_empty())
        .collect()
}

/// Returns the words of a command without `-n NAMESPACE` before the subcommand.
fn without_namespace(words: Vec<String>) -> Vec<String> {
    let skips = if words.first().is_some_and(|word| word == "-n") { 2 } else { 0 };
    words.into_iter().skip(skips).collect()
}

/// Splits a line at spaces, except between double quotes.
fn split(line: &str) -> Vec<&str> {
    let (mut found, mut rest) = (Vec::new(), line.trim_start());
    while !rest.is_empty() {
        let quoted = rest.strip_prefix('"').and_then(|after| after.split_once('"'));
        let (word, left) = quoted.or_else(|| rest.split_once(char::is_whitespace)).unwrap_or((rest, ""));
        found.push(word);
        rest = left.trim_start();
    }
    found
}

fn words(rest: &str) -> Vec<String> {
    let mut found = Vec::new();
    for word in split(rest.lines().next().unwrap_or_default()) {
        let bare = word.trim_end_matches(['.', ',', ';', ':', ')', '\'', '`', '"', '*', '|', ']']);
        let ends = bare.len() < word.len() && !word.ends_with("...");
        let (bare, ends) =
            bare.split_once('|').map_or((if ends { bare } else { word }, ends), |(bare, _)| (bare, true));
        if bare.is_empty() {
            break;
        }
        found.push(match found.last().map(String::as_str) {
            Some("--approve") => "0123456789abcdef".to_owned(),
            _ if word.starts_with("osd.") || bare == "..." => "osd.5".to_owned(),
            _ => bare.to_owned(),
        });
        if ends {
            break;
        }
    }
    found
}

/// Returns whether these words begin with a command, without an option left over, whatever words follow.
fn begins_with_a_command(words: &[String]) -> bool {
    let parses = |upto: &usize| {
        let parsed = Cli::try_parse_from(
            std::iter::once("osd-migrate").chain(words[..*upto].iter().map(String::as_str)),
        );
        parsed.map_or_else(|error| !error.use_stderr(), |_| true)
    };
    (1..=words.len())
        .rev()
        .find(parses)
        .is_some_and(|upto| words.get(upto).is_none_or(|next| !next.starts_with('-')))
}

#[test]
fn documented_osd_migrate_commands_are_valid() {
    let of_documents = documents().into_iter().flat_map(|(path, text)| {
        code(&path, &text)
            .iter()
            .flat_map(|code| commands(code, true))
            .map(|words| (path.clone(), words))
            .collect::<Vec<_>>()
    });
    let of_texts = texts().into_iter().flat_map(|(path, text)| {
        commands(&text, false).into_iter().map(|words| (path.clone(), words)).collect::<Vec<_>>()
    });
    let all: Vec<_> = of_documents.chain(of_texts).collect();
    let is_there = |word: &&str| all.iter().any(|(_, words)| words[0] == **word);
    assert_eq!(NO_COMMAND.iter().find(|word| !is_there(word)), None, "no exception is needed for it");
    let typed: Vec<_> = all.iter().filter(|(_, words)| !NO_COMMAND.contains(&words[0].as_str())).collect();
    let subcommands: BTreeSet<&str> = typed.iter().map(|(_, words)| words[0].as_str()).collect();
    for word in ["plan", "status", "retry", "cancel", "resume", "preflight"] {
        assert!(subcommands.contains(word), "none is `{word}`: {subcommands:?}");
    }
    let wrong: Vec<_> = typed.iter().filter(|(_, words)| !begins_with_a_command(words)).collect();
    assert!(wrong.is_empty(), "no command of ours: {wrong:#?}");
}

#[test]
fn osd_migrate_command_is_distinguished_from_prose() {
    let is_one = |text: &str| commands(text, true).iter().all(|words| begins_with_a_command(words));
    for text in [
        "osd-migrate retry osd.N",
        "repair them: osd-migrate plan --inventory shows why",
        "type osd-migrate retry osd.5.",
    ] {
        assert!(!commands(text, true).is_empty() && is_one(text), "{text}");
    }
    for text in ["osd-migrate again osd.5", "osd-migrate plan --watch", "osd-migrate -n x retry"] {
        assert!(!is_one(text), "{text}");
    }
    for text in
        ["cronjob/osd-migrate look", "helm uninstall osd-migrate -n rook-ceph", "client.osd-migrate may not"]
    {
        assert!(commands(text, false).is_empty(), "{text}");
    }
}

/// Checks Job names: two Jobs of one name cannot exist, so typing all examples one after the other must work.
#[test]
fn example_job_names_are_unique() {
    let texts = [
        "README.md",
        "docs/guides/run.md",
        "docs/guides/new-osds.md",
        "docs/guides/recover-by-hand.md",
        "docs/reference/messages.md",
    ]
    .map(read)
    .join("\n");
    let mut names = Vec::new();
    let begins = "create job --from=cronjob/osd-migrate ";
    for (at, _) in texts.match_indices(begins) {
        let (name, _) = texts[at + begins.len()..].split_once([' ', '\n', ';', '`', ')']).unwrap();
        names.push(name);
    }
    assert!(names.contains(&"NAME") && names.contains(&"$job"), "{names:?}");
    // A name with the time is another one each time.
    names.retain(|name| *name != "NAME" && !name.ends_with("-$(date"));
    let once: BTreeSet<_> = names.iter().collect();
    assert_eq!(once.len(), names.len(), "{names:?}");
}

#[test]
fn documented_options_belong_to_the_program_or_other_tools() {
    let command = Cli::command();
    let all =
        std::iter::once(&command).chain(command.get_subcommands()).flat_map(clap::Command::get_arguments);
    let ours: BTreeSet<String> =
        all.filter_map(clap::Arg::get_long).chain(["help"]).map(|long| format!("--{long}")).collect();
    let option = |word: &str| {
        let word: String = word.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
        (word.starts_with("--") && word.len() > 2).then_some(word)
    };
    let spans = documents().into_iter().flat_map(|(path, text)| {
        let spans: Vec<_> = text.split('`').skip(1).step_by(2).filter_map(option).collect();
        spans.into_iter().map(move |word| (path.clone(), word)).collect::<Vec<_>>()
    });
    // Files with sentences for people; elsewhere, options are those of the called tools.
    let is_for_people = |path: &str| {
        ["/domain/", "/show/", "/gate/", "/commands/", "report/event.rs", "k8s/client/", "own/lease.rs"]
            .iter()
            .any(|part| path.contains(part))
    };
    let sentences = texts().into_iter().filter(|(path, _)| is_for_people(path)).flat_map(|(path, text)| {
        let words: Vec<_> = text.split([' ', '(', '`']).filter_map(option).collect();
        words.into_iter().map(move |word| (path.clone(), word)).collect::<Vec<_>>()
    });
    let documented: BTreeSet<_> = spans.chain(sentences).collect();
    let unknown: Vec<_> = documented
        .iter()
        .filter(|(_, word)| !ours.contains(word) && !OF_OTHERS.contains(&word.as_str()))
        .collect();
    assert!(unknown.is_empty(), "neither ours nor of others: {unknown:#?}");
    let is_there = |word: &&str| documented.iter().any(|(_, other)| other == *word);
    assert_eq!(OF_OTHERS.iter().find(|word| !is_there(word)), None, "no exception is needed for it");
    assert!(["--scale-operator", "--operator-namespace", "--at-once"].iter().all(is_there));
}

#[test]
fn documented_runs_are_created_from_the_charts_cronjob() {
    let mut count = 0;
    let of_chart = read("charts/osd-migrate/templates/cronjob.yaml");
    let texts = texts().into_iter().chain(documents()).chain([("cronjob.yaml".to_owned(), of_chart.clone())]);
    for (path, text) in texts {
        for (_, rest) in
            text.match_indices("--from=cronjob/").map(|(at, from)| (at, &text[at + from.len()..]))
        {
            let name: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
            assert_eq!(name, CRON_JOB, "{path}");
            count += 1;
        }
    }
    assert!(count > 10, "{count}");
    assert!(of_chart.contains(&format!("\n  name: {CRON_JOB}\n")));
}

/// Commands of kubectl that need no namespace: cluster-wide, local, or with a namespace in the manifest.
const WITHOUT_NAMESPACE: [&str; 11] = [
    "apply",
    "auth",
    "config",
    "cordon",
    "delete node",
    "drain",
    "get node",
    "get pv",
    "patch --local",
    "taint",
    "uncordon",
];

pub(crate) fn names_the_namespace(command: &str) -> bool {
    let is_short = command.split_whitespace().count() < 4; // a mention, not a command to type
    let has_one = command.split_whitespace().any(|word| word == "-n" || word == "-A");
    is_short || has_one || WITHOUT_NAMESPACE.iter().any(|verb| command.starts_with(verb))
}

#[test]
fn kubectl_commands_in_pages_name_the_namespace() {
    const MESSAGES: &str = "docs/reference/messages.md"; // quotes the program
    let remarks = (MESSAGES.to_owned(), remarks().join("\n"));
    let pages = documents().into_iter().filter(|(path, _)| path != MESSAGES).chain([remarks]);
    let mut count = 0;
    let mut without = Vec::new();
    for (path, text) in pages {
        for code in code(&path, &text).iter().filter(|code| !code.starts_with("text ")) {
            for (at, name) in code.match_indices("kubectl ") {
                let command = code[at + name.len()..].trim_start();
                if !names_the_namespace(command) {
                    without.push(format!("{path}: {command}"));
                }
                count += 1;
            }
        }
    }
    assert!(without.is_empty(), "{without:#?}");
    assert!(count > 120, "{count}");
}

/// Verbs of kubectl that reach no cluster, and words after its name in a sentence.
const OF_NO_CLUSTER: [&str; 4] = ["config", "gets", "plugin", "reads"];

#[test]
fn commands_of_kubectl_in_messages_keep_the_context() {
    let page = read("docs/reference/messages.md").split_whitespace().collect::<Vec<_>>().join(" ");
    let command = Regex::new("kubectl ([a-z][a-z-]*) ").unwrap();
    let verbs: BTreeSet<String> = texts()
        .into_iter()
        .map(|(_, text)| text)
        .chain([page])
        .flat_map(|text| command.captures_iter(&text).map(|one| one[1].to_owned()).collect::<Vec<_>>())
        .filter(|verb| !OF_NO_CLUSTER.contains(&verb.as_str()))
        .collect();
    assert!(verbs.contains("taint") && verbs.len() > 6, "{verbs:?}");
    let names = Names { access: "--context lab".to_owned(), ..Names::default() };
    for verb in verbs {
        assert_eq!(names.complete(&format!("kubectl {verb} x")), format!("kubectl --context lab {verb} x"));
    }
}
