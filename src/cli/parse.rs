//! From the words of the command line to the arguments.

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches};

use super::command::Cli;
use super::hints::hinted;
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
    let mut command = match width {
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
    match command.try_get_matches_from_mut(words) {
        Ok(matches) => Cli::from_arg_matches(&matches),
        Err(error) => {
            // The commands below have the global options only then.
            command.build();
            Err(hinted(safe_tips(error, &names), &command, words))
        }
    }
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
    fn usual_guess_gets_a_hint() {
        for (words, hint) in [
            (&["logs"][..], "'follow'"),
            (&["watch"], "'follow'"),
            (&["unpause"], "'resume'"),
            (&["stop"], "'pause', 'cancel'"),
            (&["run", "--dry-run"], "tip: to see what a run would do: osd-migrate plan"),
            (&["plan", "--format", "json"], "tip: for the output format: --output"),
            (&["plan", "osd.5"], "tip: to select OSDs: --select osd.5"),
        ] {
            let text = refused(words);
            assert!(text.contains(hint) && !text.contains("log-format"), "{words:?}: {text}");
        }
        assert!(!refused(&["status", "osd.5"]).contains("tip:"));
        assert!(!refused(&["run", "--rn"]).contains("osd-migrate plan"));
    }

    #[test]
    fn hidden_option_is_explained_by_the_complete_help() {
        for words in [
            &["run", "--window", "x"][..],
            &["run", "--in-parallel", "0"],
            &["plan", "--empty", "some"],
            &["plan", "--soak", "x"],
            &["run", "--remove-out"],
            &["status", "--ceph-timeout", "x"],
        ] {
            let text = refused(words);
            assert!(text.contains("try '--help-all'"), "{words:?}: {text}");
        }
        for words in [&["run", "--select", "x"][..], &["plan", "--remove-node"], &["run", "--foo"], &["foo"]]
        {
            let text = refused(words);
            assert!(text.contains("try '--help'."), "{words:?}: {text}");
        }
    }

    #[test]
    fn wrong_value_is_refused_in_words() {
        for (words, says) in [
            (&["rehearse", "--seed", "x"][..], "expected a whole number, 0 or more"),
            (&["rehearse", "--seed", "-1"], "expected a whole number, 0 or more"),
            (&["run", "--soak", "x"], "expected a time from 0s to 24h, such as 15m or 1h"),
            (&["run", "--start-limit", "0"], "expected a time from 30s to 24h"),
            (&["run", "--noout-limit", "0s"], "expected a time from 30s to 24h"),
            (&["-n", "Rook Ceph", "status"], "use lower-case letters, digits and -, at most 63 characters"),
        ] {
            let text = refused(words);
            assert!(text.contains(says), "{words:?}: {text}");
        }
        let both =
            ["as-is", "asIs"].map(|word| ["osd-migrate", "run", "--recovery", word].map(OsString::from));
        assert!(both.iter().all(|words| parse(words, None).is_ok()));
    }

    #[test]
    fn version_is_a_command() {
        let parsed = parse(&["osd-migrate".into(), "version".into()], None);
        assert!(matches!(parsed, Ok(Cli { command: super::super::Command::Version, .. })));
    }
}
