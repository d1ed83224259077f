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
    has_colours(
        std::io::stderr().is_terminal(),
        environment("NO_COLOR").as_deref(),
        environment("TERM").as_deref(),
    )
}

fn has_colours(is_terminal: bool, no_color: Option<&str>, term: Option<&str>) -> bool {
    is_terminal && no_color.is_none_or(str::is_empty) && term != Some("dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_has_colours_only_on_a_terminal_and_without_no_color() {
        assert!(has_colours(true, None, Some("xterm")) && has_colours(true, Some(""), None));
        assert!(!has_colours(false, None, Some("xterm")));
        assert!(!has_colours(true, Some("1"), Some("xterm")));
        assert!(!has_colours(true, None, Some("dumb")));
    }
}
