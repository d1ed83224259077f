//! Lines of a rehearsal as text: one OSD in full, the others in one line each.

use std::collections::BTreeSet;

use super::story::{Line, LineKind, time};
use crate::domain::osd::OsdId;
use crate::layout::{Width, wrapped};

/// Columns that a line takes on a wide terminal, and in a file.
const READABLE: usize = 100;
/// Indentation of a wrapped line, below the text behind the time.
const INDENT: &str = "            ";

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
pub(super) fn text(lines: &[Line], detail: Detail, width: Width) -> Vec<String> {
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
    lines.iter().filter(is_shown).map(|line| of_line(line, width)).collect()
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

fn of_line(line: &Line, width: Width) -> String {
    let mark = if line.kind == LineKind::Fault { "! " } else { "" };
    let time = format!("{:>8}  ", time(line.at));
    wrapped(&format!("{mark}{}", line.text), width.columns().min(READABLE), &time, INDENT)
}
