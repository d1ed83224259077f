//! Known words near to a mistyped one: tips that are safe to type.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use strsim::osa_distance;

/// Commands that change nothing: a tip may name them.
///
/// Every other command may change something, also one that is added later.
const READING: [&str; 10] = [
    "completion",
    "explain",
    "follow",
    "help",
    "plan",
    "preflight",
    "rehearse",
    "report",
    "status",
    "version",
];

/// Words of other programs, and the commands that they mean here.
const GUESSES: [(&str, &[&str]); 4] =
    [("logs", &["follow"]), ("stop", &["pause", "cancel"]), ("unpause", &["resume"]), ("watch", &["follow"])];

/// Largest distance of a tip, in letters that are added, removed, replaced or exchanged with the next one.
const FAR: usize = 2;

/// Largest distance of a tip that names a command that changes something.
const CLOSE: usize = 1;

/// Fewest letters of a word that is looked for inside of others.
const PART: usize = 4;

/// Returns the known words that may have been meant, the nearest first.
pub fn near<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let word = word.to_lowercase();
    let distance = |known: &str| {
        let is_part = word.len() >= PART && known.to_lowercase().contains(&word);
        let distance = osa_distance(&word, &known.to_lowercase());
        (distance <= FAR || is_part).then_some(distance)
    };
    let mut found: Vec<_> = known.into_iter().filter_map(|known| Some((distance(known)?, known))).collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(|(_, known)| known).collect()
}

/// Replaces the tips of clap in the error of a mistyped command.
///
/// A command that changes something is named only if a single letter is wrong, and if no command that changes
/// nothing is near; or if the word is a usual one for it.
pub(super) fn safe_tips(mut error: clap::Error, known: &[&str]) -> clap::Error {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return error;
    }
    error.remove(ContextKind::SuggestedSubcommand);
    error.remove(ContextKind::Suggested);
    let typed = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(typed)) => typed.clone(),
        _ => return error,
    };
    let tips = tips(&typed, known);
    if !tips.is_empty() {
        let tips = tips.into_iter().map(str::to_owned).collect();
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(tips));
    }
    error
}

fn tips<'a>(typed: &str, known: &[&'a str]) -> Vec<&'a str> {
    if let Some((_, meant)) = GUESSES.iter().find(|(word, _)| *word == typed) {
        return meant.to_vec();
    }
    let within = |most: usize| move |name: &&&str| osa_distance(typed, name) <= most;
    let reads = |name: &&&str| READING.contains(*name);
    let found: Vec<&str> = known.iter().filter(reads).filter(within(FAR)).copied().collect();
    if !found.is_empty() {
        return found;
    }
    known.iter().filter(|name| !reads(name)).filter(within(CLOSE)).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 11] = [
        "keep",
        "plan",
        "provision",
        "remove",
        "resume",
        "run",
        "start",
        "status",
        "uninstall",
        "version",
        "pause",
    ];

    #[test]
    fn tips_name_changing_commands_only_if_one_letter_is_wrong() {
        for (typed, expected) in [
            ("statsu", &["status"][..]),
            ("stat", &["status"]),
            ("statr", &["status"]),
            ("versoin", &["version"]),
            ("provison", &["provision"]),
            ("provisoin", &["provision"]),
            ("provis", &[]),
            ("rn", &["run"]),
            ("ran", &["plan"]),
            ("resme", &["resume"]),
            ("reume", &["resume"]),
            ("remov", &["remove"]),
            ("revome", &[]),
            ("kep", &["keep"]),
            ("install", &[]),
            ("unistall", &["uninstall"]),
            ("migrate", &[]),
            ("unpause", &["resume"]),
            ("stop", &["pause", "cancel"]),
        ] {
            assert_eq!(tips(typed, &KNOWN), expected, "{typed}");
        }
    }

    #[test]
    fn near_words_are_those_within_two_letters_or_that_contain_the_word() {
        let known = ["not-clean", "quarantined-not-clean", "down", "full", "node"];
        assert_eq!(near("not-claen", known), ["not-clean"]);
        assert_eq!(near("clean", known), ["not-clean", "quarantined-not-clean"]);
        assert_eq!(near("Down", known), ["down"]);
        assert_eq!(near("xyz-unknown", known), [""; 0]);
    }
}
