//! `docs/reference/command-line.md`, from the commands as clap knows them.

use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory};

use osd_migrate::cli::Cli;

use super::wrapped;

const HEAD: &str = "# Command line

<!-- Generated from src/cli/: REFERENCE_WRITE=1 cargo test --locked --test suite reference:: -->

`osd-migrate COMMAND [OPTIONS]`. `run`, `provision`, `fence`, `remove`, `plan` and `preflight` run in the cluster, as
Jobs of the chart's template: [run a migration](../guides/run.md#run-a-command). `osd-migrate COMMAND --help-all` prints
the same text, `--help` the usual options. For a mistyped command, the error names near commands that change nothing; it
names one that changes something only if a single letter is wrong and nothing else is near, or for a usual other word
(`unpause`: `resume`).
";

/// Commands that only other programs call, except for Helm's hooks, which the page has.
const INTERNAL: [&str; 3] = ["complete", "man", "node"];

pub(super) fn page() -> String {
    let cli = Cli::command();
    let is_public = |command: &&Command| !INTERNAL.contains(&command.get_name());
    let commands: Vec<&Command> = cli.get_subcommands().filter(is_public).collect();
    let row = |command: &&Command| {
        let (name, about) = (command.get_name(), command.get_about().map(ToString::to_string));
        format!("| [`{name}`](#{name}) | {} |\n", about.unwrap_or_default())
    };
    let rows: Vec<String> = commands.iter().map(row).collect();
    let sections: Vec<String> = commands.iter().map(|command| section(command)).collect();
    [
        HEAD,
        "\n",
        &text(cli.get_long_about().or(cli.get_about())),
        "\n\n| command | |\n| --- | --- |\n",
        &rows.concat(),
        "\n## Options of every command\n\n",
        &options(&cli),
        &sections.concat(),
    ]
    .concat()
}

fn section(command: &Command) -> String {
    let words: Vec<String> = std::iter::once(command.get_name().to_owned())
        .chain(command.get_positionals().map(|arg| arg.get_id().as_str().to_uppercase()))
        .collect();
    let about = text(command.get_long_about().or(command.get_about()));
    let options = options(command);
    let break_before = if options.is_empty() { "" } else { "\n" };
    format!(
        "\n## {}\n\n`osd-migrate {}`\n\n{about}\n{break_before}{options}",
        command.get_name(),
        words.join(" ")
    )
}

/// Sets paragraphs to the width; the list of faults of `rehearse` stays a list.
fn text(about: Option<&StyledStr>) -> String {
    let text = about.map(ToString::to_string).unwrap_or_default();
    text.split("\n\n").map(|paragraph| wrapped(paragraph, "")).collect::<Vec<_>>().join("\n\n")
}

fn options(command: &Command) -> String {
    command.get_arguments().map(option).collect()
}

fn option(arg: &Arg) -> String {
    let long = arg.get_long().map(|long| format!("--{long}"));
    let name = long.unwrap_or_else(|| arg.get_id().as_str().to_uppercase());
    let short = arg.get_short().map(|short| format!("-{short}, ")).unwrap_or_default();
    let takes_value = arg.get_action().takes_values() && !arg.is_positional();
    let value = arg.get_value_names().and_then(|names| names.first()).filter(|_| takes_value);
    let value = value.map(|value| format!(" {value}")).unwrap_or_default();
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let (help, list) = help.split_once(":\n").map_or((help.as_str(), ""), |(help, list)| (help, list));
    let about = [sentence(help), choices(arg), defaults(arg)].join(" ");
    let item = |line: &str| {
        let (name, about) = line.trim().split_once(' ').unwrap();
        format!("{}\n", wrapped(&format!("- `{name}`: {}", about.trim()), "  "))
    };
    let items: Vec<String> = list.lines().filter(|line| !line.trim().is_empty()).map(item).collect();
    format!("- **`{short}{name}{value}`**\n{}\n{}", wrapped(&about, "  "), items.concat())
}

fn sentence(help: &str) -> String {
    let help = help.trim();
    if help.ends_with(['.', ':']) { help.to_owned() } else { format!("{help}.") }
}

fn choices(arg: &Arg) -> String {
    let values = arg.get_possible_values();
    let is_switch = !arg.get_action().takes_values();
    if is_switch || values.is_empty() {
        return String::new();
    }
    if values.iter().all(|value| value.get_help().is_none()) {
        let names: Vec<_> = values.iter().map(|value| format!("`{}`", value.get_name())).collect();
        return format!("One of {}.", names.join(", "));
    }
    let choice = |value: &clap::builder::PossibleValue| {
        let help = value.get_help().map(ToString::to_string).unwrap_or_default();
        format!("`{}`: {}", value.get_name(), sentence(&help))
    };
    values.iter().map(choice).collect::<Vec<_>>().join(" ")
}

fn defaults(arg: &Arg) -> String {
    if !arg.get_action().takes_values() {
        return String::new();
    }
    let default: Vec<String> =
        arg.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
    let env = arg.get_env().map(|env| format!("`{}`", env.to_string_lossy()));
    let default = (!default.is_empty()).then(|| format!("Default: {}.", default.join(", ")));
    let env = env.map(|env| format!("Environment: {env}."));
    default.into_iter().chain(env).collect::<Vec<_>>().join(" ")
}
