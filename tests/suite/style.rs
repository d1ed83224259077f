//! The rules of STYLE.md that a program can check: sources, their comments, and the messages of the program.

use std::collections::BTreeSet;
use std::path::Path;

use crate::commands::names_the_namespace;
use crate::purity::sources;
use crate::runbook::{halts, literals, read, reasons, refusals, root, waits};
use osd_migrate::domain::next::Wait;

/// Words that STYLE.md forbids. Pages are checked by `pages_use_no_forbidden_words`.
const FORBIDDEN: [&str; 12] = [
    "anew",
    "by others",
    "by us",
    "for good",
    "hushed",
    "is told",
    "mend",
    "mended",
    "mends",
    "somebody",
    "whoever",
    "whilst",
];

/// Widest line of a comment.
const WIDTH: usize = 110;

/// Most lines of a file.
const LINES: usize = 400;

/// A documented item: the first paragraph of its doc comment, and the first line of its code.
struct Documented {
    place: String,
    first: String,
    code: String,
}

/// Returns all sources with their text; paths are relative to the repository.
fn texts() -> Vec<(String, String)> {
    let folders = ["src", "tests/suite", "tests/explore"].map(|folder| sources(&root().join(folder)));
    let relative = |path: &Path| path.strip_prefix(root()).unwrap().display().to_string();
    folders.iter().flatten().map(|path| relative(path)).map(|path| (path.clone(), read(&path))).collect()
}

/// Returns the doc comments of a source, each with the code that follows its attributes.
fn documented(path: &str, text: &str) -> Vec<Documented> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_comment = |at: usize| lines.get(at).is_some_and(|line| line.starts_with("///"));
    let starts = (0..lines.len()).filter(|at| is_comment(*at) && (*at == 0 || !is_comment(at - 1)));
    let of = |at: usize| {
        let first: Vec<_> = lines[at..].iter().map_while(|line| line.strip_prefix("/// ")).collect();
        let is_code = |line: &&&str| !line.starts_with("///") && !line.starts_with("#[") && !line.is_empty();
        let code = lines[at..].iter().find(is_code).copied().unwrap_or_default();
        Documented { place: format!("{path}:{}", at + 1), first: first.join(" "), code: code.to_owned() }
    };
    starts.map(of).collect()
}

/// Returns the words of the code without visibility and qualifiers.
fn item(code: &str) -> Option<&str> {
    let qualifiers = ["pub", "pub(crate)", "pub(super)", "async", "const", "unsafe", "extern"];
    code.split_whitespace().find(|word| !qualifiers.contains(word) && !word.starts_with("pub("))
}

fn all_documented() -> Vec<Documented> {
    // clap prints the comments of the command line in its own form.
    let texts = texts().into_iter().filter(|(path, _)| !path.starts_with("src/cli/"));
    texts.flat_map(|(path, text)| documented(&path, &text)).collect()
}

/// Returns whether a sentence ends within the paragraph and another one follows.
fn has_two_sentences(first: &str) -> bool {
    let ends = first.match_indices(". ").filter(|(at, _)| {
        let before = first[..*at].chars().next_back().unwrap_or(' ');
        let after = first[at + 2..].chars().next().unwrap_or(' ');
        (before.is_ascii_lowercase() || before.is_ascii_digit() || ")`]\"".contains(before))
            && (after.is_ascii_uppercase() || after == '`')
    });
    ends.count() > 0
}

#[test]
fn doc_comments_of_functions_begin_with_a_verb() {
    let is_verb = |word: &str| word.starts_with(|c: char| c.is_ascii_uppercase()) && word.ends_with('s');
    let wrong: Vec<_> = all_documented()
        .into_iter()
        .filter(|documented| item(&documented.code) == Some("fn"))
        .filter(|documented| {
            !is_verb(documented.first.split([' ', ',', ':', '.']).next().unwrap_or_default())
        })
        .map(|documented| format!("{}: {}", documented.place, documented.first))
        .collect();
    assert!(wrong.is_empty(), "STYLE.md, Comments: {wrong:#?}");
}

#[test]
fn first_paragraph_of_a_doc_comment_is_one_sentence() {
    let items = ["fn", "struct", "enum", "trait", "type", "mod", "static"];
    let wrong: Vec<_> = all_documented()
        .into_iter()
        .filter(|documented| item(&documented.code).is_some_and(|item| items.contains(&item)))
        .filter(|documented| !documented.first.ends_with(['.', ':']) || has_two_sentences(&documented.first))
        .map(|documented| format!("{}: {}", documented.place, documented.first))
        .collect();
    assert!(wrong.is_empty(), "STYLE.md, Comments: {wrong:#?}");
}

#[test]
fn sources_use_no_forbidden_words() {
    let mut found = Vec::new();
    // Partition names of a captured table contain such a word.
    let exceptions = ["tests/suite/style.rs", "src/node/disk/table.rs"];
    for (path, text) in texts().into_iter().filter(|(path, _)| !exceptions.contains(&path.as_str())) {
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.contains("FORBIDDEN")) {
            let words: Vec<&str> =
                line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
            let padded = format!(" {} ", words.join(" ").to_lowercase());
            let forbidden = FORBIDDEN.iter().filter(|word| padded.contains(&format!(" {word} ")));
            found.extend(forbidden.map(|word| format!("{path}:{}: {word}", number + 1)));
        }
    }
    assert!(found.is_empty(), "STYLE.md, Language: {found:#?}");
}

/// Checks comments; rustfmt breaks the code, except texts and macros.
#[test]
fn comments_of_sources_fit() {
    let mut long = Vec::new();
    for (path, text) in texts() {
        let is_comment = |line: &str| line.trim_start().starts_with("//") && !line.contains("| ");
        let wide =
            text.lines().enumerate().filter(|(_, line)| line.chars().count() > WIDTH && is_comment(line));
        long.extend(wide.map(|(number, _)| format!("{path}:{}", number + 1)));
    }
    assert!(long.is_empty(), "wider than {WIDTH} columns: {long:#?}");
}

#[test]
fn files_are_short() {
    let long: Vec<_> = texts()
        .into_iter()
        .map(|(path, text)| (text.lines().count(), path))
        .filter(|(lines, _)| *lines > LINES)
        .collect();
    assert!(long.is_empty(), "split them: {long:#?}");
}

#[test]
fn paths_named_in_comments_exist() {
    let mut missing = Vec::new();
    for (path, text) in texts() {
        let comments = text.lines().filter_map(|line| line.split_once("//").map(|(_, comment)| comment));
        for comment in comments.filter(|comment| !comment.contains("://")) {
            let words = comment.split(|c: char| c.is_whitespace() || "`(),;\"".contains(c));
            let folders = ["src/", "tests/", "docs/", "build/", "charts/"];
            let named = words.filter(|word| folders.iter().any(|folder| word.starts_with(folder)));
            let named =
                named.map(|word| word.trim_end_matches(['.', ':', '/'])).filter(|word| !word.contains('*'));
            let there = |word: &&str| !root().join(word.split('#').next().unwrap_or_default()).exists();
            missing.extend(named.filter(there).map(|word| format!("{path}: {word}")));
            if comment.contains("shared/") || comment.contains("../") {
                missing.push(format!("{path}: points outside of the repository: {comment}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// Returns the codes of all messages that stop or delay something, each once for each kind of message.
fn codes() -> Vec<String> {
    // A wait for a gate has the code of its reason.
    let is_own = |wait: &&Wait| {
        !matches!(
            wait,
            Wait::Gate { .. } | Wait::Node { .. } | Wait::Fence { .. } | Wait::UnsafeToWipe { .. }
        )
    };
    let reasons: BTreeSet<_> = reasons().iter().map(|reason| reason.code().to_owned()).collect();
    let waits: BTreeSet<_> = waits().iter().filter(is_own).map(|wait| wait.code().to_owned()).collect();
    let halts: BTreeSet<_> = halts().iter().map(|halt| halt.code().to_owned()).collect();
    let refusals: BTreeSet<_> = refusals().iter().map(|refusal| refusal.code().to_owned()).collect();
    [reasons, waits, halts, refusals].into_iter().flatten().collect()
}

#[test]
fn codes_of_messages_are_unique() {
    let mut seen = BTreeSet::new();
    let twice: Vec<String> = codes().into_iter().filter(|code| !seen.insert(code.clone())).collect();
    assert!(twice.is_empty(), "{twice:?}");
    let is_code =
        |code: &String| code.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    assert!(seen.len() > 70 && seen.iter().all(is_code), "{seen:?}");
}

/// Checks the commands in texts of the program; `Names` replaces the placeholders NAMESPACE and CEPHCLUSTER.
#[test]
fn commands_in_messages_are_complete() {
    const KUBECTL: &str = "kubectl ";
    let is_of_program =
        |path: &str| path.starts_with("src/") && !path.contains("_tests") && !path.contains("/samples");
    let mut wrong = Vec::new();
    let mut count = 0;
    for (path, source) in texts().into_iter().filter(|(path, _)| is_of_program(path)) {
        for text in literals(&source) {
            for (at, _) in text.match_indices(KUBECTL) {
                let rest = text[at + KUBECTL.len()..].split(['`', ';']).next().unwrap_or_default();
                count += 1;
                let is_open =
                    rest.split(|c: char| !c.is_alphanumeric()).any(|word| word == "NAME" || word == "FILE");
                if !names_the_namespace(rest) || is_open {
                    wrong.push(format!("{path}: kubectl {rest}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 40, "{count}");
}

#[test]
fn style_of_samples_is_checked() {
    let source = "/// Returns it. It is new.\n#[must_use]\npub fn it() {}\n\n/// What it is.\nstruct It;\n";
    let found = documented("sample.rs", source);
    let [it, other] = found.as_slice() else { panic!("two are documented") };
    assert!(item(&it.code) == Some("fn") && has_two_sentences(&it.first));
    assert!(item(&other.code) == Some("struct") && !has_two_sentences(&other.first));
    assert!(!has_two_sentences("Returns `a.b`, of 16.2.15."));
}
