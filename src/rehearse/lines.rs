//! Lines of a rehearsal as text: one OSD in full, the others in one line each.

use std::collections::BTreeSet;

use super::story::{Line, LineKind, time};
use crate::domain::osd::OsdId;

/// Columns that a line may take.
const WIDTH: usize = 100;
/// Columns of the time, and of the indentation of a wrapped line.
const INDENT: usize = 11;

/// Part of the story that is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Nothing: the table and the summary follow.
    None,
    /// The OSDs that something happens to in full, or else the first one, the others in one line each.
    Usual,
    /// Every line.
    All,
}

/// Returns the lines to print, wrapped to the width of the page.
pub(super) fn text(lines: &[Line], detail: Detail) -> Vec<String> {
    let full = in_full(lines);
    let is_shown = |line: &&Line| match detail {
        Detail::None => false,
        Detail::All => true,
        Detail::Usual => match line.kind {
            LineKind::End | LineKind::Fault => true,
            LineKind::Step => line.osd.is_none_or(|osd| full.contains(&osd)),
            LineKind::ShortWait => false,
        },
    };
    lines.iter().filter(is_shown).map(wrapped).collect()
}

/// Returns each OSD that is in progress when something goes wrong; the first one if nothing does.
fn in_full(lines: &[Line]) -> BTreeSet<OsdId> {
    let struck = lines.iter().enumerate().filter(|(_, line)| line.kind == LineKind::Fault);
    let in_progress = struck.filter_map(|(at, fault)| {
        fault.osd.or_else(|| lines.iter().take(at).rev().find_map(|line| line.osd))
    });
    let in_progress: BTreeSet<OsdId> = in_progress.collect();
    if in_progress.is_empty() {
        lines.iter().find_map(|line| line.osd).into_iter().collect()
    } else {
        in_progress
    }
}

fn wrapped(line: &Line) -> String {
    let mark = if line.kind == LineKind::Fault { "! " } else { "" };
    let mut text = format!("{:>8} ", time(line.at));
    let mut column = text.len();
    for word in format!("{mark}{}", line.text).split(' ') {
        let width = 1 + word.chars().count();
        if column + width > WIDTH {
            text.push('\n');
            text.push_str(&" ".repeat(INDENT));
            column = INDENT;
        }
        text.push(' ');
        text.push_str(word);
        column += width;
    }
    text
}
