//! The comparison of messages with the entries that quote them.

use std::collections::BTreeSet;
use std::fmt::Debug;

use super::entries::{Entry, keys};
use super::sources::variants;
use super::values::name;

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

pub(super) fn assert_same(what: &str, there: &BTreeSet<String>, told: &BTreeSet<String>) {
    let missing: Vec<_> = there.difference(told).collect();
    let unknown: Vec<_> = told.difference(there).collect();
    assert!(missing.is_empty(), "{what}, not in docs/reference/messages.md: {missing:#?}");
    assert!(unknown.is_empty(), "{what}, in docs/reference/messages.md and not in the code: {unknown:#?}");
}

/// Asserts that each key has an entry, each entry quotes a message of its key, and each message is quoted.
pub(super) fn assert_told(what: &str, there: &[(String, String)], told: &[Entry]) {
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

pub(super) fn assert_all_made(path: &str, of: &str, made: &[impl Debug]) {
    assert_same(&format!("{of} that is made here"), &variants(path, of), &made.iter().map(name).collect());
}

#[test]
fn quote_is_the_whole_sentence_except_for_its_ellipses() {
    assert!(is_quoted("a b", "a b") && is_quoted("a ... c", "a b c") && is_quoted("... b: ...", "x b: y"));
    for (quote, text) in [("a b", "a b c"), ("a ... c", "a b"), ("b ...", "a b c"), ("... b ... a", "a b c")]
    {
        assert!(!is_quoted(quote, text), "{quote} is not {text}");
    }
}
