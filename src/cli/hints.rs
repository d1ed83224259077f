//! Hints in clap's errors: what a usual wrong guess meant, and which help has a hidden option.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command};

use crate::domain::osd::OsdRange;

/// Options that other programs have, an option that the command needs for the hint, and the hint.
const GUESSES: [(&str, &str, &str); 2] = [
    ("--dry-run", "confirm", "to see what a run would do: osd-migrate plan"),
    ("--format", "output", "for the output format: --output"),
];

/// Adds hints to an error about these words. `cli` is built: its commands have the global options.
pub(super) fn hinted(error: clap::Error, cli: &Command, words: &[OsString]) -> clap::Error {
    let typed = words.iter().filter_map(|word| word.to_str());
    let command = typed.fold(cli, |command, word| command.find_subcommand(word).unwrap_or(command));
    let error = guessed(error, command);
    if !names_hidden(&error, command) {
        return error;
    }
    // Clap takes the name of the first option that prints help.
    let all = Arg::new("help-all").long("help-all").action(ArgAction::HelpLong);
    error.with_cmd(&Command::new("osd-migrate").disable_help_flag(true).arg(all))
}

/// Replaces the tips of clap about an unknown argument if it is a usual guess.
fn guessed(mut error: clap::Error, command: &Command) -> clap::Error {
    let typed = named(&error, ContextKind::InvalidArg).first().map(|word| (*word).to_owned());
    let Some(typed) = typed.filter(|_| error.kind() == ErrorKind::UnknownArgument) else { return error };
    let has = |id: &str| command.get_arguments().any(|arg| arg.get_id() == id);
    let guess =
        GUESSES.iter().find(|(word, id, _)| *word == typed && has(id)).map(|(_, _, hint)| (*hint).to_owned());
    let is_osd = has("select") && typed.parse::<OsdRange>().is_ok();
    let Some(hint) = guess.or(is_osd.then(|| format!("to select OSDs: --select {typed}"))) else {
        return error;
    };
    error.remove(ContextKind::SuggestedArg);
    error.remove(ContextKind::Usage);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(hint)]));
    error
}

/// Returns whether the error is about an option that only the complete help has.
fn names_hidden(error: &clap::Error, command: &Command) -> bool {
    let words = [ContextKind::InvalidArg, ContextKind::SuggestedArg].map(|kind| named(error, kind)).concat();
    let is_it = |arg: &Arg| {
        arg.get_long().is_some_and(|long| words.iter().any(|word| word.strip_prefix("--") == Some(long)))
    };
    command.get_arguments().any(|arg| arg.is_hide_short_help_set() && is_it(arg))
}

/// Returns the arguments that an error names, without their values.
fn named(error: &clap::Error, kind: ContextKind) -> Vec<&str> {
    let texts = match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text],
        Some(ContextValue::Strings(texts)) => texts.iter().collect(),
        _ => Vec::new(),
    };
    texts.into_iter().filter_map(|text| text.split([' ', '=']).next()).collect()
}
