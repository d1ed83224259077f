//! The command line, parsed once into domain types.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::domain::osd::OsdId;
use crate::domain::policy::{self, Limits, Policy, Window};
use crate::rehearse::fault;

/// The words that confirm a run.
pub const CONFIRMATION: &str = "yes-really-migrate-osds";

/// Bring every OSD of a Ceph cluster on Kubernetes to the storage that its owner declared, with the same id.
///
/// Exit codes: 0 finished; 2 wrong usage; 3 not confirmed, or cancelled; 10 halted, a person is needed; 11 finished, but OSDs
/// were quarantined after a failure; 12 finished, but OSDs were refused or skipped; any other: try again.
#[derive(Debug, Parser)]
#[command(name = "osd-migrate", version, max_term_width = 100)]
pub struct Cli {
    /// Namespace of the CephCluster.
    #[arg(short, long, global = true, env = "POD_NAMESPACE", default_value = "rook-ceph")]
    pub namespace: String,
    /// Name of the CephCluster, if the namespace holds several.
    #[arg(long, global = true, env = "OSD_MIGRATE_CLUSTER")]
    pub cluster: Option<String>,
    /// Namespace of Rook's operator, if it is not that of the CephCluster.
    #[arg(long, global = true, env = "OSD_MIGRATE_OPERATOR_NAMESPACE")]
    pub operator_namespace: Option<String>,
    /// Secret with the user for Ceph (userID, userKey, fsid), if Rook's own must not be read (docs/guides/install.md).
    #[arg(long, global = true, env = "OSD_MIGRATE_CEPH_SECRET", value_name = "NAME")]
    pub ceph_secret: Option<String>,
    /// Seconds for Ceph to answer a command.
    #[arg(
        long,
        global = true,
        env = "OSD_MIGRATE_CEPH_TIMEOUT",
        default_value_t = 30,
        value_parser = clap::value_parser!(u64).range(1..=600)
    )]
    pub ceph_timeout: u64,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show a whole migration on a simulated cluster, in virtual time. It needs no cluster and changes nothing.
    ///
    /// It runs the real loop, with all its decisions, on 12 OSDs, 5 of them legacy. Exit codes are those of `run`.
    Rehearse(RehearseArgs),
    /// List each OSD, what it would become, and what holds it up. It changes nothing.
    Plan(PlanArgs),
    /// Migrate OSDs, then create new ones. Start it with `kubectl create job --from=cronjob/osd-migrate NAME`.
    ///
    /// With --select, which names existing OSDs, no new ones are created.
    Run(RunArgs),
    /// Create new OSDs only, on available disks that the CephCluster selects, one after the other.
    ///
    /// It migrates nothing, and never touches a disk that has anything on it. Run `osd-migrate plan --inventory` before.
    Provision(NewArgs),
    /// Show OSDs in progress, what each is waiting for, and whether runs are paused or cancelled.
    Status(StatusArgs),
    /// Make every run wait before the next OSD, until `resume`.
    ///
    /// An OSD that is stopped already is finished first: until then a copy of its data is missing. An OSD that is not stopped
    /// yet stays as it is, and what was set for its stop is restored within a minute.
    Pause,
    /// End every run, until `resume`.
    ///
    /// An OSD that is stopped already is finished first: until then a copy of its data is missing. An OSD that is not stopped
    /// yet stays as it is. What was changed is restored, then the run ends with 3 (11 if OSDs were quarantined). A run that
    /// starts later ends at once.
    Cancel,
    /// Undo `pause` and `cancel`.
    Resume,
    /// Let the next run try an OSD again that was quarantined after a failure.
    Retry {
        /// The OSD, as osd.12 or 12.
        osd: OsdId,
    },
    /// Fail, and name them, if there are OSDs that newer releases of Rook and Ceph do not start. For use before an upgrade.
    ///
    /// It changes nothing. Exit codes: 0 there are none; 3 there are some, or an OSD is in progress.
    Preflight,
    /// Create the Job of a run from the CronJob, and return at once. Helm runs it after an install or an upgrade.
    ///
    /// It creates one Job for each revision, however often it is called: osd-migrate-r5 for revision 5.
    Start {
        /// Revision of the release.
        #[arg(long)]
        revision: u32,
    },
    /// Restore what was changed temporarily. Helm runs it in a Job before an uninstall.
    ///
    /// It begins nothing. Exit codes: 0 restored; 3 refused: an OSD is in progress, or was quarantined after its stop.
    Uninstall,
    /// The agent that touches disks; runs in node Jobs only.
    #[command(hide = true)]
    Node {
        /// What to do on the node.
        #[command(subcommand)]
        command: NodeCommand,
    },
}

/// Arguments of `rehearse`.
#[derive(Debug, Args)]
pub struct RehearseArgs {
    /// Seed of the durations; the same seed gives the same rehearsal.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// What goes wrong (--help lists the names); may be given several times.
    #[arg(long, value_name = "NAME[@OSD]", value_parser = fault::parse, long_help = fault::help())]
    pub fault: Vec<fault::RequestedFault>,
    /// How to print it.
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
    /// Print only the table and the summary.
    #[arg(short, long)]
    pub quiet: bool,
}

/// Arguments of `plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// Which OSDs, and whether confirmed.
    #[command(flatten)]
    pub run: RunArgs,
    /// List the disks of the nodes, too, by a Job on each node that only reads. It runs in a Job itself.
    #[arg(long)]
    pub inventory: bool,
    /// How to print it.
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
}

/// Arguments of `status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// How to print it.
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
}

/// Arguments of `run`, and of `plan`, which says what `run` would do.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Migrate only these OSDs, separated by commas: osd.1,osd.5.
    #[arg(long, value_delimiter = ',', value_name = "OSD")]
    pub select: Vec<OsdId>,
    /// Leave these OSDs as they are.
    #[arg(long, value_delimiter = ',', value_name = "OSD")]
    pub skip: Vec<OsdId>,
    /// Scale Rook's operator to 0 while OSDs are migrated, and back, if it is older than 1.20 and knows no fence.
    /// It reconciles no other cluster meanwhile. Without this flag a run waits until a person has scaled it.
    #[arg(long)]
    pub scale_operator: bool,
    /// End with 0, not 12, if OSDs were refused. OSDs that were skipped for now (down, on a cordoned node) end a run with 12 all
    /// the same; leave one out permanently with --skip.
    #[arg(long)]
    pub allow_refused: bool,
    /// Who creates the Deployment of a recreated OSD: osd-migrate, or a running Rook of 1.20 or later.
    /// What Rook has not created within 10 minutes is rendered all the same.
    #[arg(long, value_enum, value_name = "WHO", default_value_t = DeploymentBy::Render)]
    pub deployment_by: DeploymentBy,
    /// Which PGs must be clean before an OSD is stopped: all of the cluster, or only those on the OSD.
    /// With "own" every other PG must still have all its copies; a balancer may be at work.
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = RequireClean::All)]
    pub require_clean: RequireClean,
    /// How often and how long something may fail.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Confirmation, windows and pace.
    #[command(flatten)]
    pub new: NewArgs,
}

/// Which PGs must be clean before an OSD is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RequireClean {
    /// All PGs of the cluster.
    All,
    /// Those on the OSD; every other PG must have all its copies.
    Own,
}

/// How often and how long something may fail.
#[derive(Debug, Args)]
pub struct LimitArgs {
    /// OSDs that may fail past their stop before the run ends. Those that fail before it are skipped and reported.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub failure_limit: u32,
    /// Time for the daemon of a new OSD to come up. Then the OSD is quarantined, and Ceph may heal without it.
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = duration)]
    pub start_limit: TimeDelta,
    /// Time for which a stopped OSD keeps noout. Then Ceph may heal without it.
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = duration)]
    pub noout_limit: TimeDelta,
    /// Pause before a node agent that failed past the stop is tried again. Each later pause is four times as long.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub agent_retry_pause: TimeDelta,
    /// Time for which a run waits for OSDs that only their own state holds up (their node is cordoned or not Ready).
    /// Then it ends and reports them.
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = duration)]
    pub skip_after: TimeDelta,
}

/// A time such as 90s, 15m or 1h, up to a day.
fn duration(text: &str) -> Result<TimeDelta, String> {
    let time = humantime::parse_duration(text).map_err(|error| format!("{error}; write 30s, 15m or 1h"))?;
    let time = TimeDelta::from_std(time).map_err(|error| error.to_string())?;
    if time > TimeDelta::days(1) { Err("at most one day".to_owned()) } else { Ok(time) }
}

/// Who creates the Deployment of a recreated OSD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DeploymentBy {
    /// osd-migrate, from the Deployment that was there; Rook need not run.
    Render,
    /// Rook, from what it finds on the disk. Nothing of the old Deployment is left.
    Rook,
}

/// Arguments of `provision`, and of `run`, which makes new OSDs too.
#[derive(Debug, Args)]
pub struct NewArgs {
    /// Confirm that OSDs may be destroyed and recreated: --confirm yes-really-migrate-osds.
    /// The CephCluster may confirm instead: spec.storage.migration.confirmation.
    #[arg(long, value_name = "WORDS", value_parser = confirmation)]
    pub confirm: Option<String>,
    /// Begin OSDs only at this time of day, in UTC: --window 22:00-05:00; several separated by commas.
    /// An OSD that was stopped in time is finished outside of the window, too.
    #[arg(long, value_delimiter = ',', value_name = "HH:MM-HH:MM")]
    pub window: Vec<Window>,
    /// New OSDs of one host that may be created in parallel.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    pub at_once: u32,
}

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    Table,
    /// For programs.
    Json,
}

/// What the agent does.
#[derive(Debug, Subcommand)]
pub enum NodeCommand {
    /// Copy this program into a folder, for the next container of the pod.
    Install {
        /// The folder.
        folder: std::path::PathBuf,
    },
    /// Do what the environment variable OSD_MIGRATE_REQUEST asks.
    Agent,
    /// Inspect the disks, as the environment variable OSD_MIGRATE_INVENTORY asks. It changes nothing.
    Inventory,
}

/// Only the exact words confirm.
fn confirmation(words: &str) -> Result<String, String> {
    if words == CONFIRMATION { Ok(words.to_owned()) } else { Err(format!("the words are {CONFIRMATION}")) }
}

impl RunArgs {
    /// The policy they stand for.
    pub fn policy(&self) -> Policy {
        let set = |osds: &[OsdId]| osds.iter().copied().collect::<BTreeSet<_>>();
        Policy {
            select: set(&self.select),
            skip: set(&self.skip),
            scales_operator: self.scale_operator,
            allows_refused: self.allow_refused,
            deployment_by: match self.deployment_by {
                DeploymentBy::Render => policy::DeploymentBy::Rendered,
                DeploymentBy::Rook => policy::DeploymentBy::ByRook,
            },
            only_new: false,
            require_clean: match self.require_clean {
                RequireClean::All => policy::RequireClean::All,
                RequireClean::Own => policy::RequireClean::Own,
            },
            limits: Limits {
                failures: self.limits.failure_limit,
                start: self.limits.start_limit,
                noout: self.limits.noout_limit,
                retry_pause: self.limits.agent_retry_pause,
                skip_after: self.limits.skip_after,
            },
            ..self.new.policy()
        }
    }
}

impl NewArgs {
    /// The policy they stand for: new OSDs only.
    pub fn policy(&self) -> Policy {
        Policy {
            confirmed: self.confirm.is_some(),
            windows: self.window.clone(),
            at_once: self.at_once,
            only_new: true,
            ..Policy::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_words_confirm() {
        let parse = |words: &str| Cli::try_parse_from(["osd-migrate", "run", "--confirm", words]);
        assert!(parse(CONFIRMATION).is_ok());
        assert!(parse("yes").is_err());
        assert!(parse("").is_err());
    }

    #[test]
    fn who_makes_the_deployment_is_one_of_two() {
        let parse = |words: &[&str]| Cli::try_parse_from(["osd-migrate", "run"].iter().chain(words));
        let policy = |words: &[&str]| match parse(words).map(|cli| cli.command) {
            Ok(Command::Run(args)) => Some(args.policy().deployment_by),
            Ok(_) | Err(_) => None,
        };
        assert_eq!(policy(&[]), Some(policy::DeploymentBy::Rendered));
        assert_eq!(policy(&["--deployment-by", "rook"]), Some(policy::DeploymentBy::ByRook));
        assert_eq!(policy(&["--deployment-by", "render"]), Some(policy::DeploymentBy::Rendered));
        assert_eq!(policy(&["--deployment-by", "me"]), None);
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
    fn windows_are_given_in_one_flag_or_several_and_nonsense_is_wrong_usage() {
        let windows = |args: &[&str]| {
            let cli =
                Cli::try_parse_from(["osd-migrate", "run"].iter().chain(args)).map_err(|e| e.to_string())?;
            let Command::Run(args) = cli.command else { return Err("another command".to_owned()) };
            Ok(args.policy().windows.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        let both = Ok(vec!["22:00-05:00".to_owned(), "12:00-13:00".to_owned()]);
        assert_eq!(windows(&["--window", "22:00-05:00,12:00-13:00"]), both);
        assert_eq!(windows(&["--window", "22:00-05:00", "--window", "12:00-13:00"]), both);
        let wrong = windows(&["--window", "22-5"]);
        assert!(wrong.as_ref().is_err_and(|text| text.contains("HH:MM-HH:MM in UTC")), "{wrong:?}");
    }
}
