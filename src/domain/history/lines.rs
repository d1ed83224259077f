//! Entries as lines of text: each is JSON.

use std::collections::BTreeSet;

use super::{Entry, Key};

/// Returns the lines of the entries that a text does not have yet.
///
/// An earlier write of an entry may have succeeded although no answer came. The times of an entry may differ
/// then, so entries are compared by their key. A line that cannot be read is never an entry's.
pub fn missing(written: &str, entries: &[Entry]) -> Vec<String> {
    let keys: BTreeSet<Key> =
        written.lines().filter_map(|line| serde_json::from_str::<Key>(line).ok()).collect();
    let missing = entries.iter().filter(|entry| !keys.contains(&entry.key));
    missing.filter_map(|entry| serde_json::to_string(entry).ok()).collect()
}

/// Reads the entries of a text, and counts the lines that cannot be read.
pub fn read(text: &str) -> (Vec<Entry>, usize) {
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let entries: Vec<Entry> = lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let unread = lines.len() - entries.len();
    (entries, unread)
}
