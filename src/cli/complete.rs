//! Completion: scripts of shells, and the words that kubectl asks for.

use clap::{Arg, Command, CommandFactory};
use clap_complete::Shell;

use super::command::Cli;

/// Last line for kubectl: the shell offers no files in addition (`ShellCompDirectiveNoFileComp` of cobra).
const NO_FILES: &str = ":4";

/// Returns the completion script of a shell.
pub fn completion_script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "osd-migrate", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Returns the words that complete the last one of these, one a line, in the format of kubectl's plugins.
pub fn completing_words(typed: &[String]) -> String {
    let mut cli = Cli::command();
    cli.build();
    let (last, before) = typed.split_last().map_or(("", typed), |(last, before)| (last.as_str(), before));
    let command = before.iter().fold(&cli, |command, word| command.find_subcommand(word).unwrap_or(command));
    let expects = before.last().and_then(|word| option(command, word)).filter(|arg| takes_value(arg));
    let known = match expects {
        Some(arg) => values(arg),
        None if last.starts_with('-') => {
            command.get_arguments().filter_map(Arg::get_long).map(|long| format!("--{long}")).collect()
        }
        None => {
            let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
            let names = shown.map(|command| command.get_name().to_owned());
            names.chain(command.get_positionals().flat_map(values)).collect()
        }
    };
    let mut found: Vec<String> = known.into_iter().filter(|word| word.starts_with(last)).collect();
    found.push(NO_FILES.to_owned());
    found.join("\n")
}

fn option<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let is_it = |arg: &&Arg| {
        let long = arg.get_long().is_some_and(|long| word.strip_prefix("--") == Some(long));
        long || arg
            .get_short()
            .is_some_and(|short| word.strip_prefix('-') == Some(short.to_string().as_str()))
    };
    command.get_arguments().find(is_it)
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

fn values(arg: &Arg) -> Vec<String> {
    arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn completed(line: &str) -> Vec<String> {
        let typed: Vec<String> = line.split(' ').map(str::to_owned).collect();
        completing_words(&typed).lines().map(str::to_owned).collect()
    }

    #[test]
    fn commands_options_and_values_are_completed() {
        assert_eq!(completed("stat"), ["status", ":4"]);
        assert_eq!(completed("-n rook-ceph stat"), ["status", ":4"]);
        assert_eq!(completed("status --wa"), ["--watch", ":4"]);
        assert_eq!(completed("plan -o js"), ["json", ":4"]);
        assert_eq!(completed("completion z"), ["zsh", ":4"]);
        assert_eq!(completed("status -n "), [":4"]);
        assert!(completed("").contains(&"plan".to_owned()));
        assert!(!completed("").contains(&"node".to_owned()), "hidden");
    }

    #[test]
    fn script_of_each_shell_names_the_commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell] {
            let script = completion_script(shell);
            assert!(script.contains("osd-migrate") && script.contains("preflight"), "{shell}");
        }
    }
}
