//! Arguments of the Job that a command line outside the cluster creates.
//!
//! The arguments of the CronJob are the settings of every run. Those that a person types replace them one by
//! one.

use std::collections::BTreeMap;
use std::ffi::OsString;

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory};

use super::command::Cli;

/// Options that only concern the process that creates the Job. In the pod, the environment has them.
const STAY_HERE: [&str; 5] = ["namespace", "context", "kubeconfig", "detach", "job"];

/// Arguments that were given, by the name of the option: the words to type.
type Given = BTreeMap<String, Vec<String>>;

/// Returns the arguments of the Job: the command and options that were typed, and the options of the CronJob
/// that the command has and that were not typed.
///
/// `typed` and `of_cronjob` are without the program's name. The error is clap's, about `of_cronjob`: the
/// CronJob is of another version.
pub fn forwarded(typed: &[OsString], of_cronjob: &[String]) -> Result<Vec<String>, clap::Error> {
    let (command, ours) = given(typed)?;
    let of_cronjob: Vec<OsString> = of_cronjob.iter().map(OsString::from).collect();
    let (_, theirs) = given(&of_cronjob)?;
    let known = |id: &String| arguments(&command).any(|arg| arg.get_id() == id.as_str());
    let theirs = theirs.into_iter().filter(|(id, _)| known(id) && !ours.contains_key(id));
    let options: Given = theirs.chain(ours.clone()).collect();
    let name = std::iter::once(command.get_name().to_owned());
    Ok(name.chain(options.into_values().flatten()).collect())
}

/// Parses arguments, and returns the subcommand and the options that were given.
fn given(args: &[OsString]) -> Result<(Command, Given), clap::Error> {
    let mut cli = Cli::command();
    cli.build();
    let name = std::iter::once(OsString::from("osd-migrate"));
    let matches = cli.clone().try_get_matches_from(name.chain(args.iter().cloned()))?;
    let Some((name, matches)) = matches.subcommand() else { return Ok((cli, Given::new())) };
    let Some(command) = cli.find_subcommand(name) else { return Ok((cli, Given::new())) };
    let given = arguments(command).filter_map(|arg| words(arg, matches)).collect();
    Ok((command.clone(), given))
}

/// Returns the arguments of a command that the Job gets, too.
fn arguments(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| !STAY_HERE.contains(&arg.get_id().as_str()))
}

/// Returns the words of an argument, if it was typed. Values from the environment are in the pod's, too.
fn words(arg: &Arg, matches: &ArgMatches) -> Option<(String, Vec<String>)> {
    let id = arg.get_id().as_str();
    if matches.value_source(id) != Some(ValueSource::CommandLine) {
        return None;
    }
    let flag = arg.get_long().map(|long| format!("--{long}"));
    if matches!(arg.get_action(), ArgAction::SetTrue) {
        return Some((id.to_owned(), flag.into_iter().collect()));
    }
    let values = matches.get_raw(id)?.map(|value| value.to_string_lossy().into_owned()).collect::<Vec<_>>();
    let values = match arg.get_value_delimiter() {
        Some(delimiter) => vec![values.join(&delimiter.to_string())],
        None => values,
    };
    let words = values.into_iter().flat_map(|value| flag.clone().into_iter().chain([value]));
    Some((id.to_owned(), words.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(typed: &[&str], of_cronjob: &[&str]) -> Vec<String> {
        let typed: Vec<OsString> = typed.iter().map(OsString::from).collect();
        let of_cronjob: Vec<String> = of_cronjob.iter().map(ToString::to_string).collect();
        forwarded(&typed, &of_cronjob).unwrap()
    }

    #[test]
    fn job_arguments_are_those_of_the_cronjob_and_those_typed() {
        let chart = ["run", "--scale-operator", "--skip", "osd.3", "--window", "22:00-05:00,12:00-13:00"];
        let same = job(&["run"], &chart);
        assert_eq!(
            same,
            ["run", "--scale-operator", "--skip", "osd.3", "--window", "22:00-05:00,12:00-13:00"]
        );
        let typed = job(&["-n", "x", "run", "--skip", "1,2", "--confirm", "yes-really-migrate-osds"], &chart);
        assert_eq!(
            typed.join(" "),
            "run --confirm yes-really-migrate-osds --scale-operator --skip 1,2 --window 22:00-05:00,12:00-13:00"
        );
    }

    #[test]
    fn job_of_provision_gets_no_option_that_provision_lacks() {
        let chart = ["run", "--scale-operator", "--at-once", "2", "--select", "osd.1"];
        assert_eq!(job(&["provision"], &chart), ["provision", "--at-once", "2"]);
        let plan = job(&["plan", "-o", "json"], &chart);
        assert_eq!(plan.join(" "), "plan --at-once 2 --output json --scale-operator --select osd.1");
    }

    #[test]
    fn job_of_remove_gets_the_osds_and_not_the_confirmation_of_runs() {
        let chart = ["run", "--confirm", "yes-really-migrate-osds", "--removals"];
        assert_eq!(job(&["remove", "osd.5", "6"], &chart), ["remove", "osd.5,6"]);
        let typed = ["remove", "--disk", "mark", "5", "--confirm", "yes-really-remove-osds"];
        let forwarded = job(&typed, &chart);
        assert_eq!(forwarded.join(" "), "remove --confirm yes-really-remove-osds --disk mark 5");
        assert!(Cli::command().try_get_matches_from([&["osd-migrate"], &typed[..]].concat()).is_ok());
        for by in [&["remove", "--node", "h3"][..], &["remove", "--undeclared"]] {
            assert_eq!(job(by, &chart), by);
        }
    }

    #[test]
    fn windows_of_weekdays_reach_the_job_in_the_time_zone_of_the_chart() {
        let chart = ["run", "--window", "22:00-05:00", "--time-zone", "Europe/Berlin"];
        let typed = ["run", "--window", "Sat,Sun 00:00-24:00", "--window", "Mon-Fri 20:00-05:00"];
        let expected =
            ["--time-zone", "Europe/Berlin"].iter().chain(&typed[1..]).copied().collect::<Vec<_>>();
        assert_eq!(job(&typed, &chart), [&["run"], &expected[..]].concat());
    }

    #[test]
    fn job_gets_typed_global_options_except_the_namespace() {
        assert_eq!(job(&["plan", "-n", "a", "--cluster", "c"], &["run"]), ["plan", "--cluster", "c"]);
        assert_eq!(job(&["--ceph-timeout", "60", "run"], &["run"]), ["run", "--ceph-timeout", "60"]);
    }

    #[test]
    fn arguments_of_a_newer_cronjob_are_an_error() {
        let unknown = forwarded(&["run".into()], &["run".to_owned(), "--of-the-future".to_owned()]);
        assert!(unknown.unwrap_err().to_string().contains("--of-the-future"));
    }
}
