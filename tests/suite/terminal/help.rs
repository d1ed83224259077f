//! Help: short on every terminal, with headings and examples; complete with `--help-all`.

use clap::{Arg, Command, CommandFactory};

use osd_migrate::cli::Cli;

/// Most lines of `--help`: a small terminal shows it without scrolling.
const LINES: usize = 40;

/// Most columns of help.
const READABLE: usize = 100;

/// Lines of the root's help that are kept free for other commands.
const FREE: usize = 1;

/// Commands whose usage is clear without an example, or that no person types.
const WITHOUT_EXAMPLES: [&str; 7] = ["complete", "help", "man", "node", "start", "uninstall", "version"];

fn commands(width: usize) -> Vec<Command> {
    let mut cli = Cli::command().term_width(width.min(READABLE));
    cli.build();
    let commands: Vec<_> =
        cli.get_subcommands().filter(|command| command.get_name() != "help").cloned().collect();
    std::iter::once(cli).chain(commands).collect()
}

fn short(command: &Command) -> String {
    command.clone().render_help().to_string()
}

#[test]
fn help_of_each_command_fits_a_small_terminal() {
    for width in [60, 80, 100, 120] {
        for command in commands(width) {
            let (name, help) = (command.get_name().to_owned(), short(&command));
            let most = if name == "osd-migrate" { LINES - FREE } else { LINES };
            assert!(help.lines().count() <= most, "{name} at {width}:\n{help}");
            let long = help.lines().find(|line| line.chars().count() > width.min(READABLE));
            assert_eq!(long, None, "{name} at {width}");
        }
    }
}

#[test]
fn help_has_headings_and_examples() {
    for command in commands(80) {
        let (name, help) = (command.get_name().to_owned(), short(&command));
        for heading in ["\nCluster:\n", "\nHelp:\n"] {
            assert!(help.contains(heading), "{name}:\n{help}");
        }
        let own = help.find("\nOptions:\n").unwrap_or(0);
        assert!(own < help.find("\nCluster:\n").unwrap(), "own options are first: {name}:\n{help}");
        assert_eq!(!help.contains("\nExamples:\n"), WITHOUT_EXAMPLES.contains(&name.as_str()), "{name}");
    }
}

#[test]
fn examples_of_the_help_are_valid() {
    for command in commands(80) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let lines = help.replace("\\\n", " ");
        for line in lines.lines().filter(|line| line.starts_with("  osd-migrate ")) {
            let line = line.split(" | ").next().unwrap_or_default();
            let parsed = Cli::command().try_get_matches_from(line.split_whitespace());
            assert!(parsed.is_ok(), "{line}: {parsed:?}");
        }
    }
}

#[test]
fn all_options_are_in_the_long_help() {
    for command in commands(100) {
        let help = command.clone().render_long_help().to_string();
        let is_missing = |arg: &&Arg| arg.get_long().is_some_and(|long| !help.contains(&format!("--{long}")));
        assert_eq!(command.get_arguments().find(is_missing).map(Arg::get_id), None, "{}", command.get_name());
    }
    let run = commands(80).into_iter().find(|command| command.get_name() == "run").unwrap();
    let (short, long) = (short(&run), run.clone().render_long_help().to_string());
    assert!(!short.contains("--noout-limit") && long.contains("\nLimits:\n      --failure-limit"), "{long}");
}
