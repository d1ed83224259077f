//! The program's global options and its commands.

use std::path::PathBuf;

use clap::{ArgAction, Parser, Subcommand};
use clap_complete::Shell;

use super::examples;
use super::look::{PlanArgs, RehearseArgs, ReportArgs, StatusArgs};
use super::name;
use super::number::number;
use super::remove::{KeepArgs, RemoveArgs};
use super::run::{NewArgs, RunArgs};
use super::telemetry::TelemetryArgs;
use crate::domain::osd::OsdId;

/// Heading of the options that name the cluster.
const CLUSTER: &str = "Cluster";

/// Heading of the options that print help.
const HELP: &str = "Help";

/// Migrate OSDs of Rook/Ceph to the declared storage.
///
/// Each OSD of the cluster keeps its id. Exit codes: 0 finished; 2 wrong usage; 3 cancelled; 10 halted: a
/// person must act; 11 finished, but OSDs were quarantined after a failure; 12 finished, but OSDs were
/// refused or skipped; any other: try again.
#[derive(Debug, Parser)]
#[command(
    name = "osd-migrate",
    version,
    max_term_width = 100,
    disable_help_flag = true,
    disable_version_flag = true
)]
#[command(after_help = examples::PROGRAM)]
pub struct Cli {
    /// Namespace of the CephCluster.
    ///
    /// Default: the namespace of kubectl's context if it has a CephCluster, else rook-ceph.
    #[arg(short, long, global = true, env = "POD_NAMESPACE", hide_env = true, value_name = "NAME")]
    #[arg(help_heading = CLUSTER, value_parser = name::namespace)]
    pub namespace: Option<String>,
    /// Context of the kubeconfig.
    ///
    /// Default: its current context.
    #[arg(long, global = true, value_name = "NAME", help_heading = CLUSTER)]
    pub context: Option<String>,
    /// Kubeconfig to use.
    ///
    /// Default: the files in KUBECONFIG, else ~/.kube/config, else the ServiceAccount of the pod.
    #[arg(long, global = true, value_name = "FILE", help_heading = CLUSTER)]
    pub kubeconfig: Option<PathBuf>,
    /// Name of the CephCluster, if the namespace has several.
    #[arg(long, global = true, env = "OSD_MIGRATE_CLUSTER", value_name = "NAME")]
    #[arg(help_heading = CLUSTER, hide_short_help = true)]
    pub cluster: Option<String>,
    /// Namespace of Rook's operator, if it differs from the namespace of the CephCluster.
    #[arg(long, global = true, env = "OSD_MIGRATE_OPERATOR_NAMESPACE", value_name = "NAMESPACE")]
    #[arg(help_heading = CLUSTER, hide_short_help = true, value_parser = name::namespace)]
    pub operator_namespace: Option<String>,
    /// Secret with the Ceph user to use (keys userID, userKey, fsid), if osd-migrate must not read Rook's
    /// Secret (docs/guides/install.md).
    #[arg(long, global = true, env = "OSD_MIGRATE_CEPH_SECRET", value_name = "SECRET")]
    #[arg(help_heading = CLUSTER, hide_short_help = true)]
    pub ceph_secret: Option<String>,
    /// Time limit for Ceph to answer a command, in seconds.
    #[arg(
        long,
        global = true,
        env = "OSD_MIGRATE_CEPH_TIMEOUT",
        value_name = "SECONDS",
        default_value_t = 30,
        value_parser = number(1..=600_u64, "seconds"),
        help_heading = CLUSTER,
        hide_short_help = true
    )]
    pub ceph_timeout: u64,
    /// Print the version.
    #[arg(short = 'V', long, action = ArgAction::Version, help_heading = HELP)]
    pub version: Option<bool>,
    /// Print the usual options.
    #[arg(short, long, global = true, action = ArgAction::HelpShort, help_heading = HELP)]
    pub help: Option<bool>,
    /// Print all options, with their details.
    #[arg(long, global = true, action = ArgAction::HelpLong, help_heading = HELP)]
    pub help_all: Option<bool>,
    /// Logs and metrics.
    #[command(flatten)]
    pub telemetry: TelemetryArgs,
    /// Command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// Command to run.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show a whole migration on a simulated cluster.
    ///
    /// The command needs no cluster and changes nothing. The rehearsal runs the real control loop in virtual
    /// time on 12 OSDs, of which 5 are legacy. Its exit codes are those of `run`.
    #[command(after_help = examples::REHEARSE)]
    Rehearse(RehearseArgs),
    /// Show what a run would do, and what blocks it.
    ///
    /// The command lists each OSD that is not as declared, and what it would become. It changes no OSD.
    #[command(after_help = examples::PLAN)]
    Plan(PlanArgs),
    /// Migrate OSDs, then create new OSDs.
    ///
    /// Outside of the cluster, the command creates a Job from the CronJob, prints its log, and ends with its
    /// exit code. Ctrl-C ends the command, and not the run.
    ///
    /// With --select, --host or --device-class, which select existing OSDs, a run creates no new OSDs.
    #[command(after_help = examples::RUN)]
    Run(RunArgs),
    /// Print the log of a run until it ends.
    ///
    /// The command ends with the exit code of the run. Ctrl-C ends this command, and not the run.
    #[command(after_help = examples::FOLLOW)]
    Follow {
        /// Job to follow. Without a name, the run at work.
        #[arg(value_name = "JOB")]
        job: Option<String>,
    },
    /// Create new OSDs only, on available disks.
    ///
    /// The CephCluster selects the disks. The OSDs are created one after the other. The command migrates no
    /// OSD, and never writes to a disk that has data on it. To see the disks first, run
    /// `osd-migrate plan --inventory`.
    #[command(after_help = examples::PROVISION)]
    Provision(NewArgs),
    /// Show OSDs in progress and what they wait for.
    ///
    /// The command also shows whether runs are paused or cancelled, and whether a run is at work.
    #[command(after_help = examples::STATUS)]
    Status(StatusArgs),
    /// Report what was done to each OSD.
    ///
    /// The report has all OSDs of the history, and those in progress: who confirmed it, disks, fsids, phases,
    /// bytes, waits. With -o html, it is one page without scripts that needs no network.
    #[command(after_help = examples::REPORT)]
    Report(ReportArgs),
    /// Begin work on no other OSD until `resume`.
    ///
    /// An OSD that is already stopped is finished first: until then a replica of its data is missing. An OSD
    /// that is not stopped yet stays as it is. The run restores within a minute what it changed for the stop
    /// of this OSD.
    #[command(after_help = examples::PAUSE)]
    Pause,
    /// End every run until `resume`.
    ///
    /// An OSD that is already stopped is finished first: until then a replica of its data is missing. An OSD
    /// that is not stopped yet stays as it is. The run restores what it changed temporarily, then it ends
    /// with exit code 3 (11 if OSDs were quarantined). A run that starts later ends at once.
    #[command(after_help = examples::CANCEL)]
    Cancel,
    /// End a `pause` or a `cancel`.
    #[command(after_help = examples::RESUME)]
    Resume,
    /// Let the next run retry quarantined OSDs.
    ///
    /// An OSD that failed is quarantined: no run goes on with it until this command.
    #[command(after_help = examples::RETRY)]
    Retry {
        /// OSDs to retry, as osd.12 or 12, separated by spaces or commas.
        ///
        /// If one of them is not quarantined, the command changes nothing.
        #[arg(required = true, value_delimiter = ',', value_name = "OSD")]
        osds: Vec<OsdId>,
    },
    /// Request that OSDs are removed from the cluster.
    ///
    /// The command stores a request for the fsid of each OSD. A run with --removals (value remove.enabled)
    /// then empties the OSDs, stops and purges them one after the other, wipes their disks, and deletes their
    /// Deployments. No OSD is removed without a request. An OSD with a request is not migrated. Without
    /// --confirm, the command lists what would be removed. Exit codes: 0 requested; 3 not confirmed, or
    /// refused.
    #[command(after_help = examples::REMOVE, override_usage = "osd-migrate remove [OPTIONS] [OSD]...")]
    Remove(RemoveArgs),
    /// Keep OSDs: withdraw requests to remove them.
    ///
    /// Until the OSD is stopped, a run restores its CRUSH weight, and its data moves back. Exit codes: 0
    /// withdrawn; 3 no such request, or the OSD is already stopped: then its removal is completed.
    #[command(after_help = examples::KEEP)]
    Keep(KeepArgs),
    /// Fence Rook before you edit the CephCluster.
    ///
    /// Type this before you edit `encrypted` or another field of a device set: a running Rook acts on the
    /// edit at once. The command sets osd-migrate's fence, waits up to 30 minutes until Rook has acknowledged
    /// it, and says what to do next. The fence stays until the CephCluster was edited and a run has brought
    /// its OSDs to what is declared. Exit codes: 0 the fence is in force, or none is needed; 3 refused; 10
    /// Rook has not acknowledged it.
    #[command(after_help = examples::FENCE)]
    Fence {
        /// Remove the fence, unless an OSD is in progress or Rook would change an OSD.
        #[arg(long)]
        remove: bool,
    },
    /// Fail if an upgrade would leave OSDs down.
    ///
    /// The command names the OSDs that newer releases of Rook and Ceph would not start. It is for use before
    /// an upgrade, and changes nothing. Exit codes: 0 no such OSD exists; 3 such an OSD exists, or an OSD is
    /// in progress.
    #[command(after_help = examples::PREFLIGHT)]
    Preflight,
    /// Create the Job of a run, as a hook of Helm.
    ///
    /// Helm runs this command after an install or an upgrade. The command creates the Job from the CronJob,
    /// and returns at once. Each revision gets one Job, even if this command is repeated: osd-migrate-r5 for
    /// revision 5.
    #[command(hide = true)]
    Start {
        /// Revision of the Helm release.
        #[arg(long, value_name = "NUMBER")]
        revision: u32,
    },
    /// Restore temporary changes, as a hook of Helm.
    ///
    /// Helm runs this command in a Job before an uninstall. The command starts no migration. Exit codes: 0
    /// restored; 3 refused: an OSD is in progress, or is quarantined.
    #[command(hide = true)]
    Uninstall,
    /// Explain the code of a message, offline.
    ///
    /// Messages end with their code in brackets. The command prints the entry of docs/reference/messages.md
    /// and the sections of the guides that the entry refers to. The names of the cluster that are known from
    /// options or the environment replace those of the examples. An exit code, the reason of an event and the
    /// name of an alert are codes, too, and so are headings: quarantined.
    #[command(after_help = examples::EXPLAIN)]
    Explain {
        /// Code to explain. Without a code, all codes are listed.
        #[arg(value_name = "CODE")]
        code: Option<String>,
    },
    /// Print the version of this program.
    Version,
    /// Print the completion script of a shell.
    #[command(after_help = examples::COMPLETION)]
    Completion {
        /// Shell of the script.
        #[arg(value_name = "SHELL")]
        shell: Shell,
    },
    /// Print the words that complete a command line. Kubectl calls this command.
    #[command(hide = true)]
    Complete {
        /// Words of the command line; the last one is to be completed.
        #[arg(value_name = "WORD", allow_hyphen_values = true, trailing_var_arg = true)]
        words: Vec<String>,
    },
    /// Write the man pages.
    #[command(hide = true)]
    Man {
        /// Folder that gets the pages.
        #[arg(value_name = "FOLDER")]
        folder: PathBuf,
    },
    /// Work on the disks of a node. Only node Jobs run this command.
    #[command(hide = true)]
    Node {
        /// Command to run on the node.
        #[command(subcommand)]
        command: NodeCommand,
    },
}

/// Command of a node Job.
#[derive(Debug, Subcommand)]
pub enum NodeCommand {
    /// Do the task that the environment variable OSD_MIGRATE_REQUEST describes.
    Agent,
    /// Inspect the disks that the environment variable OSD_MIGRATE_INVENTORY describes. The command changes
    /// nothing.
    Inventory,
    /// Make device nodes for the block devices of PVCs, which only a container that is not privileged gets.
    Bridge {
        /// Pairs: the block device of a PVC, and the device node to make in place of an older one.
        #[arg(value_names = ["FROM", "TO"], num_args = 2.., required = true)]
        paths: Vec<PathBuf>,
    },
}
