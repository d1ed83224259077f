//! Output for the caller of a command.

use std::io::Write;

/// Prints data to stdout.
///
/// A reader that closed the pipe is no error of this program.
pub(super) fn print(text: &str) {
    let _gone = writeln!(std::io::stdout().lock(), "{text}").is_err();
}
