use std::collections::BTreeSet;

use clap::Parser;

use super::*;
use crate::domain::osd::OsdId;
use crate::domain::policy;

#[test]
fn confirmation_takes_only_the_exact_words() {
    let parse = |words: &str| Cli::try_parse_from(["osd-migrate", "run", "--confirm", words]);
    assert!(parse(CONFIRMATION).is_ok());
    assert!(parse("yes").is_err());
    assert!(parse("").is_err());
}

#[test]
fn deployment_by_takes_osd_migrate_or_rook_and_nothing_else() {
    let parse = |words: &[&str]| Cli::try_parse_from(["osd-migrate", "run"].iter().chain(words));
    let policy = |words: &[&str]| match parse(words).map(|cli| cli.command) {
        Ok(Command::Run(args)) => Some(args.policy().deployment_by),
        Ok(_) | Err(_) => None,
    };
    assert_eq!(policy(&[]), Some(policy::DeploymentBy::Rendered));
    assert_eq!(policy(&["--deployment-by", "rook"]), Some(policy::DeploymentBy::ByRook));
    assert_eq!(policy(&["--deployment-by", "osd-migrate"]), Some(policy::DeploymentBy::Rendered));
    assert_eq!(policy(&["--deployment-by", "me"]), None);
}

#[test]
fn empty_takes_thin_never_or_all_in_run_and_plan() {
    let of = |command: &'static str, words: &[&'static str]| {
        let words = ["osd-migrate", command].into_iter().chain(words.iter().copied());
        match Cli::try_parse_from(words).map(|cli| cli.command) {
            Ok(Command::Run(args)) => Some(args.policy().empty),
            Ok(Command::Plan(args)) => Some(args.run.policy().empty),
            Ok(_) | Err(_) => None,
        }
    };
    for command in ["run", "plan"] {
        assert_eq!(of(command, &[]), Some(policy::Empty::Thin));
        assert_eq!(of(command, &["--empty", "thin"]), Some(policy::Empty::Thin));
        assert_eq!(of(command, &["--empty", "never"]), Some(policy::Empty::Never));
        assert_eq!(of(command, &["--empty", "all"]), Some(policy::Empty::All));
        assert_eq!(of(command, &["--empty", "yes"]), None);
    }
}

#[test]
fn node_bridge_takes_the_paths_of_several_pvcs() {
    let paths = |words: &[&str]| {
        let words = ["osd-migrate", "node", "bridge"].iter().chain(words);
        match Cli::try_parse_from(words).map(|cli| cli.command) {
            Ok(Command::Node { command: NodeCommand::Bridge { paths } }) => paths.len(),
            Ok(_) | Err(_) => 0,
        }
    };
    assert_eq!(paths(&["/p/data", "/m/data"]), 2);
    assert_eq!(paths(&["/p/data", "/m/data", "/p/db", "/m/db", "/p/wal", "/m/wal"]), 6);
    assert_eq!(paths(&["/p/data"]), 0);
    assert_eq!(paths(&[]), 0);
}

#[test]
fn osds_are_selected_in_both_spellings() {
    let cli = Cli::try_parse_from(["osd-migrate", "run", "--select", "osd.1,5"]).map(|cli| cli.command);
    assert!(
        matches!(cli, Ok(Command::Run(args)) if args.policy().select == BTreeSet::from([OsdId(1), OsdId(5)]))
    );
    assert!(Cli::try_parse_from(["osd-migrate", "run", "--select", "mon.a"]).is_err());
}

#[test]
fn window_flag_may_repeat_and_rejects_invalid_windows() {
    let windows = |args: &[&str]| {
        let cli =
            Cli::try_parse_from(["osd-migrate", "run"].iter().chain(args)).map_err(|e| e.to_string())?;
        let Command::Run(args) = cli.command else { return Err("another command".to_owned()) };
        Ok(args.policy().windows.to_string())
    };
    let both = Ok("22:00-05:00, 12:00-13:00 UTC".to_owned());
    assert_eq!(windows(&["--window", "22:00-05:00,12:00-13:00"]), both);
    assert_eq!(windows(&["--window", "22:00-05:00", "--window", "12:00-13:00"]), both);
    let of_days = ["--window", "Sat,Sun 00:00-24:00", "--window", "Mon-Fri 22:00-05:00,12:00-13:00"];
    let expected = "Sat,Sun 00:00-24:00, Mon-Fri 22:00-05:00, 12:00-13:00 Europe/Berlin";
    assert_eq!(windows(&[&of_days[..], &["--time-zone", "Europe/Berlin"]].concat()), Ok(expected.to_owned()));
    for (args, says) in [
        (["--window", "22-5"], "Write HH:MM-HH:MM"),
        (["--window", "Mo 22:00-05:00"], "\"Mo\" is not a weekday"),
        (["--time-zone", "Europe/Berlim"], "no time zone \"Europe/Berlim\""),
    ] {
        let wrong = windows(&args);
        assert!(wrong.as_ref().is_err_and(|text| text.contains(says)), "{wrong:?}");
    }
}

#[test]
fn osds_to_retry_are_separated_by_spaces_or_commas() {
    let retried = |args: &[&str]| match Cli::try_parse_from(["osd-migrate", "retry"].iter().chain(args)) {
        Ok(Cli { command: Command::Retry { osds }, .. }) => osds,
        Ok(_) | Err(_) => Vec::new(),
    };
    for args in [&["osd.5", "6"][..], &["osd.5,6"], &["5,osd.6"]] {
        assert_eq!(retried(args), [OsdId(5), OsdId(6)], "{args:?}");
    }
    for wrong in [&[][..], &["mon.a"], &["osd.5,"]] {
        assert_eq!(retried(wrong), [], "{wrong:?}");
    }
}

#[test]
fn removal_takes_only_its_own_confirmation_and_known_states() {
    let parse = |args: &[&str]| match Cli::try_parse_from(["osd-migrate", "remove"].iter().chain(args)) {
        Ok(Cli { command: Command::Remove(args), .. }) => Ok((args.osds, args.disk, args.confirm.is_some())),
        Ok(_) => Err(String::new()),
        Err(error) => Err(error.to_string()),
    };
    let two = || vec![OsdId(5), OsdId(6)];
    assert_eq!(parse(&["osd.5,6"]), Ok((two(), Disk::Wipe, false)));
    let confirmed = ["5", "6", "--disk", "leave", "--confirm", REMOVAL_CONFIRMATION];
    assert_eq!(parse(&confirmed), Ok((two(), Disk::Leave, true)));
    for words in [CONFIRMATION, "yes", ""] {
        let refused = parse(&["5", "--confirm", words]);
        assert!(refused.is_err_and(|why| why.contains("use yes-really-remove-osds")), "{words}");
    }
    for wrong in [&[][..], &["osd.5x"], &["5", "--disk", "burn"]] {
        assert!(parse(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn node_is_named_instead_of_osds() {
    let node = |args: &[&str]| match Cli::try_parse_from(["osd-migrate"].iter().chain(args)) {
        Ok(Cli { command: Command::Remove(args), .. }) => Ok((args.node, args.osds.len())),
        Ok(Cli { command: Command::Keep(args), .. }) => Ok((args.node, args.osds.len())),
        Ok(Cli { command: Command::Plan(args), .. }) => Ok((args.remove_node, args.remove.len())),
        Ok(_) => Err(String::new()),
        Err(error) => Err(error.to_string()),
    };
    let h3 = || Some("h3".to_owned());
    for args in [&["remove", "--node", "h3"][..], &["keep", "--node", "h3"], &["plan", "--remove-node", "h3"]]
    {
        assert_eq!(node(args), Ok((h3(), 0)), "{args:?}");
    }
    assert_eq!(node(&["remove", "--disk", "mark", "--node", "h3"]), Ok((h3(), 0)));
    assert_eq!(node(&["keep", "5", "6"]), Ok((None, 2)));
    for wrong in [
        &["remove"][..],
        &["keep"],
        &["remove", "5", "--node", "h3"],
        &["keep", "5", "--node", "h3"],
        &["remove", "--keep-id", "--node", "h3"],
        &["remove", "--undeclared", "--node", "h3"],
        &["remove", "--undeclared", "5"],
        &["remove", "--undeclared", "--keep-id"],
        &["keep", "--undeclared"],
        &["plan", "--remove", "5", "--remove-node", "h3"],
        &["plan", "--inventory", "--remove-node", "h3"],
    ] {
        assert!(node(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn removals_are_off_unless_they_are_asked_for() {
    let removes = |args: &[&str]| match Cli::try_parse_from(["osd-migrate"].iter().chain(args)) {
        Ok(Cli { command: Command::Run(args), .. }) => Some(args.policy().removes()),
        Ok(Cli { command: Command::Plan(args), .. }) => Some(args.run.policy().removes()),
        Ok(Cli { command: Command::Provision(args), .. }) => Some(args.policy().removes()),
        Ok(_) | Err(_) => None,
    };
    assert_eq!((removes(&["run"]), removes(&["plan"])), (Some(false), Some(false)));
    assert_eq!((removes(&["run", "--removals"]), removes(&["plan", "--removals"])), (Some(true), Some(true)));
    assert_eq!((removes(&["provision"]), removes(&["provision", "--removals"])), (Some(false), None));
}

#[test]
fn global_options_of_kubectl_are_taken_before_and_after_the_command() {
    let taken = |args: &[&str]| {
        let cli = Cli::try_parse_from(["osd-migrate"].iter().chain(args)).unwrap();
        (cli.namespace, cli.context, cli.kubeconfig)
    };
    let options = ["-n", "ceph-a", "--context", "lab", "--kubeconfig", "/tmp/config"];
    let expected = (Some("ceph-a".to_owned()), Some("lab".to_owned()), Some("/tmp/config".into()));
    assert_eq!(taken(&[&options[..], &["status"]].concat()), expected);
    assert_eq!(taken(&[&["status"], &options[..]].concat()), expected);
    let (_, context, kubeconfig) = taken(&["status"]);
    assert_eq!((context, kubeconfig), (None, None));
}
