//! Command line, parsed once into domain types.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};

use crate::domain::osd::OsdId;
use crate::domain::policy::{self, Limits, Policy, Window};
use crate::rehearse::{Detail, fault};

/// Text that confirms a run.
pub const CONFIRMATION: &str = "yes-really-migrate-osds";

/// Migrate every OSD of a Rook/Ceph cluster to the declared storage. Each OSD keeps its id.
///
/// Exit codes: 0 finished; 2 wrong usage; 3 not confirmed, or cancelled; 10 halted: a person must act; 11
/// finished, but OSDs were quarantined after a failure; 12 finished, but OSDs were refused or skipped; any
/// other: try again.
#[derive(Debug, Parser)]
#[command(name = "osd-migrate", version, max_term_width = 100)]
pub struct Cli {
    /// Namespace of the CephCluster.
    #[arg(short, long, global = true, env = "POD_NAMESPACE", default_value = "rook-ceph")]
    pub namespace: String,
    /// Name of the CephCluster, if the namespace has several.
    #[arg(long, global = true, env = "OSD_MIGRATE_CLUSTER", value_name = "NAME")]
    pub cluster: Option<String>,
    /// Namespace of Rook's operator, if it differs from the namespace of the CephCluster.
    #[arg(long, global = true, env = "OSD_MIGRATE_OPERATOR_NAMESPACE", value_name = "NAMESPACE")]
    pub operator_namespace: Option<String>,
    /// Secret with the Ceph user to use (keys userID, userKey, fsid), if osd-migrate must not read Rook's
    /// Secret (docs/guides/install.md).
    #[arg(long, global = true, env = "OSD_MIGRATE_CEPH_SECRET", value_name = "SECRET")]
    pub ceph_secret: Option<String>,
    /// Time limit for Ceph to answer a command, in seconds.
    #[arg(
        long,
        global = true,
        env = "OSD_MIGRATE_CEPH_TIMEOUT",
        value_name = "SECONDS",
        default_value_t = 30,
        value_parser = value_parser!(u64).range(1..=600)
    )]
    pub ceph_timeout: u64,
    /// Command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// Command to run.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show a whole migration on a simulated cluster, in virtual time. The command needs no cluster and
    /// changes nothing.
    ///
    /// The rehearsal runs the real control loop on 12 OSDs, of which 5 are legacy. Its exit codes are those
    /// of `run`.
    Rehearse(RehearseArgs),
    /// List each OSD, what it would become, and what blocks it. The command changes nothing.
    Plan(PlanArgs),
    /// Migrate OSDs, then create new OSDs.
    ///
    /// To start a run in the cluster: kubectl -n rook-ceph create job --from=cronjob/osd-migrate
    /// osd-migrate-$(date +%s)
    ///
    /// With --select, which names existing OSDs, a run creates no new OSDs.
    Run(RunArgs),
    /// Create new OSDs only, on available disks that the CephCluster selects, one after the other.
    ///
    /// The command migrates no OSD, and never writes to a disk that has data on it. To see the disks first,
    /// run `osd-migrate plan --inventory`.
    Provision(NewArgs),
    /// Show OSDs in progress, what each is waiting for, and whether runs are paused or cancelled.
    Status(StatusArgs),
    /// Make every run wait before its next OSD, until `resume`.
    ///
    /// An OSD that is already stopped is finished first: until then a replica of its data is missing. An OSD
    /// that is not stopped yet stays as it is. The run restores within a minute what it changed for the stop
    /// of this OSD.
    Pause,
    /// End every run, until `resume`.
    ///
    /// An OSD that is already stopped is finished first: until then a replica of its data is missing. An OSD
    /// that is not stopped yet stays as it is. The run restores what it changed temporarily, then it ends
    /// with exit code 3 (11 if OSDs were quarantined). A run that starts later ends at once.
    Cancel,
    /// End a `pause` or a `cancel`.
    Resume,
    /// Let the next run retry OSDs that were quarantined after a failure.
    Retry {
        /// OSDs to retry, as osd.12 or 12, separated by spaces or commas. If one of them is not quarantined,
        /// the command changes nothing.
        #[arg(required = true, value_delimiter = ',', value_name = "OSD")]
        osds: Vec<OsdId>,
    },
    /// Fail if newer releases of Rook and Ceph would not start some OSDs, and name these OSDs.
    ///
    /// The command is for use before an upgrade, and changes nothing. Exit codes: 0 no such OSD exists; 3
    /// such an OSD exists, or an OSD is in progress.
    Preflight,
    /// Create the Job of a run from the CronJob, and return at once. Helm runs this command after an install
    /// or an upgrade.
    ///
    /// Each revision gets one Job, even if this command is repeated: osd-migrate-r5 for revision 5.
    Start {
        /// Revision of the Helm release.
        #[arg(long, value_name = "NUMBER")]
        revision: u32,
    },
    /// Restore what was changed temporarily. Helm runs this command in a Job before an uninstall.
    ///
    /// The command starts no migration. Exit codes: 0 restored; 3 refused: an OSD is in progress, or was
    /// quarantined after its stop.
    Uninstall,
    /// Work on the disks of a node. Only node Jobs run this command.
    #[command(hide = true)]
    Node {
        /// Command to run on the node.
        #[command(subcommand)]
        command: NodeCommand,
    },
}

/// Arguments of `rehearse`.
#[derive(Debug, Args)]
pub struct RehearseArgs {
    /// Seed of the simulated durations. The same seed gives the same rehearsal.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// Fault to inject (--help lists the names). The option can be repeated.
    #[arg(long, value_name = "FAULT[@OSD]", value_parser = fault::parse, long_help = fault::help())]
    pub fault: Vec<fault::RequestedFault>,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
    /// Print only the table and the summary.
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print every line. By default, each OSD except the first takes one line.
    #[arg(short, long)]
    pub verbose: bool,
}

impl RehearseArgs {
    /// Returns the part of the story to print.
    pub fn detail(&self) -> Detail {
        match (self.quiet, self.verbose) {
            (true, _) => Detail::None,
            (false, true) => Detail::All,
            (false, false) => Detail::Usual,
        }
    }
}

/// Arguments of `plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// OSDs, limits and confirmation.
    #[command(flatten)]
    pub run: RunArgs,
    /// List the disks of the nodes, too. A Job on each node reads the disks and changes nothing. With this
    /// option, `plan` itself must run in a Job.
    #[arg(long)]
    pub inventory: bool,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
}

/// Arguments of `status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    pub output: Output,
}

/// Arguments of `run`, and of `plan`, which shows what `run` would do.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Migrate only these OSDs, separated by commas: osd.1,osd.5.
    #[arg(long, value_delimiter = ',', value_name = "OSD")]
    pub select: Vec<OsdId>,
    /// Leave these OSDs as they are, separated by commas.
    #[arg(long, value_delimiter = ',', value_name = "OSD")]
    pub skip: Vec<OsdId>,
    /// Scale Rook's operator to 0 while OSDs are migrated, and back afterwards, if it is older than 1.20 and
    /// does not support the fence. An operator that is scaled to 0 reconciles no other cluster either.
    /// Without this option, a run waits until a person has scaled the operator to 0.
    #[arg(long)]
    pub scale_operator: bool,
    /// End with exit code 0, not 12, if OSDs were refused. If OSDs were skipped for now (down, on a cordoned
    /// node), the exit code is still 12. To leave an OSD as it is permanently, use --skip.
    #[arg(long)]
    pub allow_refused: bool,
    /// Creator of the Deployment of a recreated OSD: osd-migrate, or a running Rook operator of 1.20 or
    /// later. If Rook has not created the Deployment within 10 minutes, osd-migrate creates it.
    #[arg(long, value_enum, value_name = "CREATOR", default_value_t = DeploymentBy::OsdMigrate)]
    pub deployment_by: DeploymentBy,
    /// PGs that must be clean before an OSD is stopped: all PGs of the cluster, or only the PGs on the OSD.
    /// With "own", every other PG must still have all its replicas; a balancer may be moving data.
    #[arg(long, value_enum, value_name = "PGS", default_value_t = RequireClean::All)]
    pub require_clean: RequireClean,
    /// Limits of failures and waits.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Confirmation, windows and pace.
    #[command(flatten)]
    pub new: NewArgs,
}

/// PGs that must be clean before an OSD is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RequireClean {
    /// All PGs of the cluster.
    All,
    /// PGs on the OSD; every other PG must have all its replicas.
    Own,
}

/// Limits of failures and waits.
#[derive(Debug, Args)]
pub struct LimitArgs {
    /// Number of OSDs that may fail after their stop before the run ends. OSDs that fail before their stop
    /// are skipped and reported.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = value_parser!(u32).range(0..=100))]
    pub failure_limit: u32,
    /// Time for the daemon of a new OSD to come up. After this time, the OSD is quarantined, and Ceph may
    /// restore its data on other OSDs.
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = duration)]
    pub start_limit: TimeDelta,
    /// Time for which a stopped OSD keeps the flag noout. After this time, Ceph may restore its data on other
    /// OSDs.
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = duration)]
    pub noout_limit: TimeDelta,
    /// Pause before a node agent that failed after the stop is started again. Each later pause is four times
    /// as long.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub agent_retry_pause: TimeDelta,
    /// Time for which a run waits for OSDs that only their own state blocks (their node is cordoned or not
    /// Ready). After this time, the run ends and reports them.
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = duration)]
    pub skip_after: TimeDelta,
}

/// Parses a time such as 90s, 15m or 1h, up to a day.
fn duration(text: &str) -> Result<TimeDelta, String> {
    let time = humantime::parse_duration(text)
        .map_err(|error| format!("{error}. Use a time such as 30s, 15m or 1h"))?;
    let time = TimeDelta::from_std(time).map_err(|error| error.to_string())?;
    if time > TimeDelta::days(1) { Err("the longest time is 24h".to_owned()) } else { Ok(time) }
}

/// Creator of the Deployment of a recreated OSD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DeploymentBy {
    /// osd-migrate, from the old Deployment; Rook need not run.
    OsdMigrate,
    /// Rook, from what it finds on the disk; no setting of the old Deployment remains.
    Rook,
}

/// Arguments of `provision`, and of `run`, which creates new OSDs too.
#[derive(Debug, Args)]
pub struct NewArgs {
    /// Confirm that OSDs may be destroyed and recreated: --confirm yes-really-migrate-osds. Alternatively,
    /// set spec.storage.migration.confirmation of the CephCluster.
    #[arg(long, value_name = "CONFIRMATION", value_parser = confirmation)]
    pub confirm: Option<String>,
    /// Start OSDs only at this time of day, in UTC: --window 22:00-05:00. Separate several windows by commas.
    /// An OSD that was stopped within the window is finished after the window closes, too.
    #[arg(long, value_delimiter = ',', value_name = "HH:MM-HH:MM")]
    pub window: Vec<Window>,
    /// Number of new OSDs that may be created in parallel on one host.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = value_parser!(u32).range(1..=16))]
    pub at_once: u32,
}

/// Output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Text for people.
    Table,
    /// JSON for programs.
    Json,
}

/// Command of a node Job.
#[derive(Debug, Subcommand)]
pub enum NodeCommand {
    /// Copy this program into a folder, for the next container of the pod.
    Install {
        /// Folder for the copy.
        folder: std::path::PathBuf,
    },
    /// Do the task that the environment variable OSD_MIGRATE_REQUEST describes.
    Agent,
    /// Inspect the disks that the environment variable OSD_MIGRATE_INVENTORY describes. The command changes
    /// nothing.
    Inventory,
}

/// Accepts only the exact confirmation.
fn confirmation(words: &str) -> Result<String, String> {
    if words == CONFIRMATION { Ok(words.to_owned()) } else { Err(format!("use {CONFIRMATION}")) }
}

impl RunArgs {
    /// Returns the policy that these arguments describe.
    pub fn policy(&self) -> Policy {
        let set = |osds: &[OsdId]| osds.iter().copied().collect::<BTreeSet<_>>();
        Policy {
            select: set(&self.select),
            skip: set(&self.skip),
            scales_operator: self.scale_operator,
            allows_refused: self.allow_refused,
            deployment_by: match self.deployment_by {
                DeploymentBy::OsdMigrate => policy::DeploymentBy::Rendered,
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
    /// Returns the policy that these arguments describe: new OSDs only.
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
#[path = "cli_tests.rs"]
mod tests;
