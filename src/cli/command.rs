//! The program's global options and its commands.

use std::path::PathBuf;

use clap::{Parser, Subcommand, value_parser};

use super::look::{PlanArgs, RehearseArgs, ReportArgs, StatusArgs};
use super::run::{NewArgs, RunArgs};
use crate::domain::osd::OsdId;

/// Migrate every OSD of a Rook/Ceph cluster to the declared storage. Each OSD keeps its id.
///
/// Exit codes: 0 finished; 2 wrong usage; 3 cancelled; 10 halted: a person must act; 11
/// finished, but OSDs were quarantined after a failure; 12 finished, but OSDs were refused or skipped; any
/// other: try again.
#[derive(Debug, Parser)]
#[command(name = "osd-migrate", version, max_term_width = 100)]
pub struct Cli {
    /// Namespace of the CephCluster. Default: the namespace of kubectl's context if it has a CephCluster,
    /// else rook-ceph.
    #[arg(short, long, global = true, env = "POD_NAMESPACE")]
    pub namespace: Option<String>,
    /// Context of the kubeconfig. Default: its current context.
    #[arg(long, global = true, value_name = "NAME")]
    pub context: Option<String>,
    /// Kubeconfig to use. Default: the files in KUBECONFIG, else ~/.kube/config, else the ServiceAccount of
    /// the pod.
    #[arg(long, global = true, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
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
    /// Outside of the cluster, the command creates a Job from the CronJob, prints its log, and ends with its
    /// exit code. Ctrl-C ends the command, and not the run.
    ///
    /// With --select, which names existing OSDs, a run creates no new OSDs.
    Run(RunArgs),
    /// Follow a run: print its log, and end with its exit code. Ctrl-C ends this command, and not the run.
    Follow {
        /// Job to follow. Without a name, the run at work.
        #[arg(value_name = "JOB")]
        job: Option<String>,
    },
    /// Create new OSDs only, on available disks that the CephCluster selects, one after the other.
    ///
    /// The command migrates no OSD, and never writes to a disk that has data on it. To see the disks first,
    /// run `osd-migrate plan --inventory`.
    Provision(NewArgs),
    /// Show OSDs in progress, what each is waiting for, and whether runs are paused or cancelled.
    Status(StatusArgs),
    /// Report what was done to each OSD: who confirmed it and how, disks, fsids, phases, bytes, waits.
    ///
    /// The report has all OSDs of the history, and those in progress. With -o html, it is one page without
    /// scripts that needs no network.
    Report(ReportArgs),
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

/// Command of a node Job.
#[derive(Debug, Subcommand)]
pub enum NodeCommand {
    /// Do the task that the environment variable OSD_MIGRATE_REQUEST describes.
    Agent,
    /// Inspect the disks that the environment variable OSD_MIGRATE_INVENTORY describes. The command changes
    /// nothing.
    Inventory,
}
