//! From the words of the command line to the arguments.

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches};

use super::command::Cli;
use super::near::safe_tips;
use crate::layout::Width;

/// Columns that help takes on a wide terminal: the limit of `Cli`.
const READABLE: usize = 100;

/// Parses the words of the command line, the name of the program included.
///
/// The error is a text to print, also help and the version. `width` is that of the environment variable
/// COLUMNS; without it, the terminal decides.
pub fn parse(words: &[OsString], width: Option<Width>) -> Result<Cli, clap::Error> {
    let command = Cli::command();
    let command = match width {
        Some(width) => command.term_width(width.columns().min(READABLE)),
        None => command,
    };
    let names: Vec<String> = command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .map(|command| command.get_name().to_owned())
        .chain(["help".to_owned()])
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let matches = command.try_get_matches_from(words).map_err(|error| safe_tips(error, &names))?;
    Cli::from_arg_matches(&matches)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(words: &[&str]) -> String {
        let words: Vec<OsString> =
            ["osd-migrate"].iter().chain(words).map(|word| OsString::from(*word)).collect();
        parse(&words, None).unwrap_err().render().to_string()
    }

    #[test]
    fn mistyped_command_gets_no_tip_that_changes_something() {
        for typed in ["statsu", "stauts", "stat"] {
            let text = refused(&[typed]);
            assert!(text.contains("tip: a similar subcommand exists: 'status'"), "{text}");
            assert!(!text.contains("start") && !text.contains("unin"), "{text}");
        }
        for typed in ["provide", "started", "runs-now", "cansel-all"] {
            let text = refused(&[typed]);
            assert!(!text.contains("tip:"), "{text}");
        }
        assert!(refused(&["provison"]).contains("'provision'"));
    }

    #[test]
    fn version_is_a_command() {
        let parsed = parse(&["osd-migrate".into(), "version".into()], None);
        assert!(matches!(parsed, Ok(Cli { command: super::super::Command::Version, .. })));
    }
}
