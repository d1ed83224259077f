//! Sentences, wrapped between words. A command is never broken: it is copied from the output.

use std::ops::Range;

use textwrap::core::Word;
use textwrap::{Options, WordSeparator, WordSplitter};

use super::Width;

/// Programs whose commands messages contain, as their commands begin.
const PROGRAMS: [&str; 5] = ["kubectl ", "osd-migrate -", "ceph ", "helm ", LOOP];

/// Beginning of a loop of the shell, and its end.
const LOOP: &str = "until kubectl ";
const DONE: &str = "; done";

/// Text before a command in a sentence.
const INTRODUCED: [&str; 6] = [": ", "; ", "then ", "&& ", "or ", "and "];

/// Text after a command in a sentence; a sentence ends a command, too.
const ENDS: [&str; 5] = ["; ", " [", ", or ", ", and ", ", then "];

/// Indentation of the further lines of a sentence.
const INDENT: &str = "  ";

/// Returns lines of at most this width; a command or a name that is longer has a line of its own.
///
/// The first line begins with `first`, the others with `rest`.
pub fn wrapped(text: &str, width: usize, first: &str, rest: &str) -> String {
    let options = Options::new(width)
        .initial_indent(first)
        .subsequent_indent(rest)
        .break_words(false)
        .word_splitter(WordSplitter::NoHyphenation)
        .word_separator(WordSeparator::Custom(words));
    textwrap::wrap(text, options).join("\n")
}

/// Returns a text for this width: unchanged if the width is not known, otherwise each line wrapped.
pub fn fitted(text: &str, width: Width) -> String {
    let Width::Columns(_) = width else { return text.to_owned() };
    let line = |line: &str| {
        let indent: String = line.chars().take_while(|c| *c == ' ').collect();
        wrapped(line.trim_start(), width.columns(), &indent, &format!("{indent}{INDENT}"))
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn words(line: &str) -> Box<dyn Iterator<Item = Word<'_>> + '_> {
    let whole: Vec<Range<usize>> = spans(line).chain(commands(line)).collect();
    let is_within = |at: usize| whole.iter().any(|range| range.contains(&at));
    let is_last = |at: usize| !line.get(at + 1..).is_some_and(|rest| rest.starts_with(' '));
    let spaces = line.match_indices(' ').map(|(at, _)| at);
    let ends: Vec<usize> = spaces.filter(|at| is_last(*at) && !is_within(*at)).map(|at| at + 1).collect();
    let starts = std::iter::once(0).chain(ends.clone());
    let words = starts.zip(ends.into_iter().chain([line.len()])).filter_map(|(from, to)| line.get(from..to));
    Box::new(words.filter(|word| !word.is_empty()).map(Word::from).collect::<Vec<_>>().into_iter())
}

/// Returns the code spans between backticks.
fn spans(line: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut marks = line.match_indices('`').map(|(at, _)| at);
    std::iter::from_fn(move || Some(marks.next()?..marks.next()?))
}

/// Returns the commands in a sentence.
fn commands(line: &str) -> impl Iterator<Item = Range<usize>> + '_ {
    let starts = PROGRAMS.iter().flat_map(|program| line.match_indices(program).map(|(at, _)| at));
    let is_introduced = |at: &usize| {
        let before = line.get(..*at).unwrap_or_default();
        before.is_empty() || INTRODUCED.iter().any(|text| before.ends_with(text))
    };
    starts.filter(is_introduced).map(|at| at..at + end(line.get(at..).unwrap_or_default()))
}

/// Returns the length of the command at the beginning of a text.
fn end(text: &str) -> usize {
    if let Some(at) = text.find(DONE).filter(|_| text.starts_with(LOOP)) {
        return at + DONE.len();
    }
    let ends = ENDS.iter().filter_map(|end| text.find(end));
    let is_sentence =
        |at: &usize| text.get(at + 2..).and_then(|rest| rest.chars().next()).is_some_and(char::is_uppercase);
    let sentence = text.match_indices(". ").map(|(at, _)| at).find(is_sentence);
    ends.chain(sentence).min().unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentence_is_wrapped_between_words() {
        let text = "osd.5 is backfilling: 12 PGs not clean, 3,400 objects, 5.0 GiB left";
        let lines = "osd.5 is backfilling: 12 PGs not clean,\n  3,400 objects, 5.0 GiB left";
        assert_eq!(fitted(text, Width::of(40)), lines);
        assert_eq!(fitted(text, Width::Unknown), text);
        assert_eq!(fitted("", Width::of(40)), "");
        let row = format!("osd.0  {}   x", "y".repeat(40));
        assert!(fitted(&row, Width::of(40)).lines().all(|line| !line.ends_with(' ')));
    }

    #[test]
    fn command_in_a_sentence_is_not_broken() {
        let scale = "kubectl -n rook-ceph scale deployment rook-ceph-osd-5 --replicas=1";
        let text = format!("osd.5 is down. Start it: {scale}; ceph osd find 5. Then wait [down]");
        let lines = format!("osd.5 is down. Start it:\n  {scale};\n  ceph osd find 5. Then wait [down]");
        assert_eq!(fitted(&text, Width::of(40)), lines);
        let span = "See `kubectl -n rook-ceph get pods -l x=y` and wait";
        let lines = "See\n  `kubectl -n rook-ceph get pods -l x=y`\n  and wait";
        assert_eq!(fitted(span, Width::of(40)), lines);
    }

    #[test]
    fn two_commands_of_a_sentence_are_two_commands() {
        let (plan, run) = ("osd-migrate -n a plan --inventory", "osd-migrate -n a run --confirm yes-really");
        for (text, lines) in [
            (
                format!("Confirm: {plan}, then this; or {run}"),
                format!("Confirm:\n  {plan},\n  then this; or\n  {run}"),
            ),
            (
                format!("Then: {plan}, and {run}. Now wait"),
                format!("Then: {plan},\n  and\n  {run}.\n  Now wait"),
            ),
        ] {
            assert_eq!(fitted(&text, Width::of(40)), lines);
        }
        assert_eq!(
            fitted("This is of Ceph and ceph-volume alone, not more", Width::of(40)).lines().count(),
            2
        );
    }

    #[test]
    fn loop_of_the_shell_is_not_broken() {
        let follow = "until kubectl -n a logs --follow job/x; do sleep 2; done";
        assert_eq!(fitted(&format!("  {follow}"), Width::of(40)), format!("  {follow}"));
        assert_eq!(
            fitted(&format!("created. See: {follow}"), Width::of(40)),
            format!("created. See:\n  {follow}")
        );
    }

    #[test]
    fn name_that_is_wider_than_the_output_stays_whole() {
        let name = "/dev/disk/by-id/ata-SAMSUNG_MZ7LH3T8HMLT-00005_S456NY0M123456";
        assert!(fitted(&format!("on {name} now"), Width::of(40)).lines().any(|line| line.trim() == name));
    }
}
