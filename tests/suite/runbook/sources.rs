//! Messages in the sources, and the texts and variants that the sources contain.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::purity::sources;

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

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
pub(super) fn plain(text: &str) -> String {
    let mut text = text.to_owned();
    while text.contains("......") {
        text = text.replace("......", "...");
    }
    text
}

/// Returns whether a text has at least three words, not counting what is filled in.
pub(super) fn is_sentence(text: &str) -> bool {
    words(text) >= 3
}

fn words(text: &str) -> usize {
    let is_word = |word: &&str| word.contains(|c: char| c.is_ascii_alphabetic());
    text.split_whitespace().filter(is_word).count()
}

/// Returns the printed lines of at least four words.
///
/// Lines that are indented, or begin with a command, are for the user to type.
pub(super) fn said_lines(path: &str) -> BTreeSet<String> {
    let is_said =
        |line: &&str| !line.starts_with([' ', '/']) && !line.starts_with("kubectl ") && words(line) >= 4;
    let lines = |text: &String| text.lines().filter(is_said).map(str::to_owned).collect::<Vec<_>>();
    literals(&read(path)).iter().flat_map(lines).collect()
}

pub(super) fn sentences(path: &str) -> BTreeSet<String> {
    literals(&read(path)).into_iter().filter(|text| is_sentence(text)).collect()
}

/// Returns the longest text of a function: the function's sentence, if other texts are parts of it.
pub(super) fn longest(path: &str, function: &str) -> String {
    let source = read(path);
    literals(block(&source, &format!("fn {function}("))).into_iter().max_by_key(String::len).unwrap()
}

/// Returns every text in the sources.
pub(super) fn all_texts() -> BTreeSet<String> {
    let texts = |path: &std::path::PathBuf| literals(&fs::read_to_string(path).unwrap());
    sources(&root().join("src")).iter().flat_map(texts).collect()
}
