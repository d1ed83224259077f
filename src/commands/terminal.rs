//! The terminal of a person: its width, and whether it has colours.

use std::io::IsTerminal;

use crate::commands::pod::environment;
use crate::layout::Width;

/// Returns the width that the environment variable COLUMNS sets.
pub fn columns() -> Option<Width> {
    Width::parse(&environment("COLUMNS")?)
}

/// Returns the width of the output: that of COLUMNS, else that of the terminal.
pub(super) fn width() -> Width {
    let of_terminal = || terminal_size::terminal_size_of(std::io::stdout());
    columns().or_else(|| of_terminal().map(|(columns, _)| Width::of(columns.0))).unwrap_or_default()
}

/// Returns whether the log has colours: only on a terminal that has them, and not if NO_COLOR is set
/// (<https://no-color.org>).
pub fn is_coloured() -> bool {
    let is_set = |key| environment(key).is_some_and(|value| !value.is_empty());
    let is_dumb = environment("TERM").is_some_and(|term| term == "dumb");
    std::io::stderr().is_terminal() && !is_set("NO_COLOR") && !is_dumb
}
