//! Arguments of `run` and `provision`, and the policy that they describe.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::TimeDelta;
use clap::{Args, ValueEnum};

use super::number::number;
use super::times;
use crate::domain::approval::{Approval, PlanHash};
use crate::domain::in_parallel::InParallel;
use crate::domain::osd::{OsdId, OsdRange};
use crate::domain::policy::{self, Limits, Policy};
use crate::domain::windows::{Windows, Zone};

/// Text that confirms a run.
pub const CONFIRMATION: &str = "yes-really-migrate-osds";

/// Default of --in-parallel. 5 % is the share of misplaced objects that Ceph's balancer causes at most
/// (`target_max_misplaced_ratio`).
const IN_PARALLEL: InParallel = InParallel::Percent(5);

/// Heading of the limits.
const LIMITS: &str = "Limits";

/// Arguments of `run`, and of `plan`, which shows what `run` would do.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Migrate only these OSDs: osd.1,osd.5-osd.9.
    #[arg(long, value_delimiter = ',', value_name = "OSD")]
    pub select: Vec<OsdRange>,
    /// Migrate only OSDs on these hosts.
    ///
    /// Separate several by commas.
    #[arg(long, value_delimiter = ',', value_name = "HOST")]
    pub host: Vec<String>,
    /// Migrate only OSDs of these device classes: hdd,ssd.
    #[arg(long, value_delimiter = ',', value_name = "CLASS", hide_short_help = true)]
    pub device_class: Vec<String>,
    /// Leave these OSDs as they are: osd.1,osd.5-osd.9.
    #[arg(long, value_delimiter = ',', value_name = "OSD")]
    pub skip: Vec<OsdRange>,
    /// Scale a Rook before 1.19.2 to 0 during the run.
    ///
    /// Such an operator does not support the fence. The run scales it back afterwards. An operator that is
    /// scaled to 0 reconciles no other cluster either. Without this option, a run waits until a person has
    /// scaled the operator to 0.
    #[arg(long)]
    pub scale_operator: bool,
    /// End with exit code 0, not 12, if OSDs were refused.
    ///
    /// If OSDs were skipped for now (down, on a cordoned node), the exit code is still 12. To leave an OSD as
    /// it is permanently, use --skip.
    #[arg(long, hide_short_help = true)]
    pub allow_refused: bool,
    /// Creator of the Deployment of a recreated OSD: osd-migrate, or a running Rook operator of 1.20 or
    /// later.
    ///
    /// If Rook has not created the Deployment within 10 minutes, osd-migrate creates it.
    #[arg(long, value_enum, value_name = "CREATOR", default_value_t = DeploymentBy::OsdMigrate)]
    #[arg(hide_short_help = true)]
    pub deployment_by: DeploymentBy,
    /// PGs that must be clean before an OSD is stopped: all PGs of the cluster, or only the PGs on the OSD.
    ///
    /// With "own", every other PG must still have all its replicas; a balancer may be moving data.
    #[arg(long, value_enum, value_name = "PGS", default_value_t = RequireClean::All)]
    #[arg(hide_short_help = true)]
    pub require_clean: RequireClean,
    /// OSDs that are emptied before they are stopped: their data moves to other OSDs, and back.
    ///
    /// With "thin", OSDs with PGs of pools that cannot lose a replica are emptied (size 1 or 2, or
    /// erasure-coded with m=1). With "never", they are refused. With "all", every OSD is emptied.
    #[arg(long, value_enum, value_name = "OSDS", default_value_t = Empty::Thin)]
    #[arg(hide_short_help = true)]
    pub empty: Empty,
    /// OSDs of one host that may be migrated in parallel: a number, or a share of the data.
    ///
    /// With "5%", as many as together have at most 5 % of the data of the cluster, and at least one. While
    /// they are stopped, the data of all of them lacks one replica. The first OSD of each kind is
    /// migrated alone, and serves for the time of --soak first. OSDs that share a PG, that are emptied, or
    /// that move to another disk are migrated one after the other.
    #[arg(long, value_name = "NUMBER|PERCENT%", default_value_t = IN_PARALLEL, hide_short_help = true)]
    pub in_parallel: InParallel,
    /// Begin work on no other OSD while the OSDs need longer to commit a write, such as 50ms.
    ///
    /// The median over all OSDs that write (ceph osd perf) is compared with it. An OSD in progress is
    /// finished whatever clients notice.
    #[arg(long, value_name = "TIME", value_parser = times::latency, hide_short_help = true)]
    pub max_commit_latency: Option<Duration>,
    /// Remove the OSDs whose removal was requested.
    ///
    /// `remove` requests the removal of an OSD, `keep` withdraws the request. Without this option, a run
    /// reports the requests, and removes no OSD.
    #[arg(long, hide_short_help = true)]
    pub removals: bool,
    /// Remove an OSD in a directory if its node has no available disk for it.
    ///
    /// The OSD is emptied first, and its directory is deleted. The run must be confirmed. Without this
    /// option, such an OSD is reported and stays as it is. Needs --removals.
    #[arg(long, hide_short_help = true, requires = "removals")]
    pub drop_directories: bool,
    /// Remove OSDs that have been down and out for a long time.
    ///
    /// Only if all their data is on other OSDs. Their disks are left as they are. Needs --removals.
    #[arg(long, hide_short_help = true, requires = "removals")]
    pub remove_out: bool,
    /// Minutes for which an OSD must have been down before --remove-out removes it.
    #[arg(long, value_name = "MINUTES", default_value_t = 60, hide_short_help = true)]
    #[arg(value_parser = number(10..=43200_u32, "minutes"))]
    pub remove_out_after: u32,
    /// Show the migration in the status of the CephCluster.
    ///
    /// The status has the phase Progressing, a message, the number of pending OSDs, and the stores. Phase and
    /// message are restored at the end. If Rook's operator is running, they are written only while the fence
    /// is in force.
    #[arg(long, hide_short_help = true)]
    pub cluster_status: bool,
    /// Set noscrub and nodeep-scrub while OSDs are emptied or stopped.
    ///
    /// Ceph then begins no scrub in the whole cluster. Flags that are set already stay. The run unsets its
    /// flags at its end, while it is paused, cancelled or outside of its windows, and if PGs were not
    /// scrubbed in time.
    #[arg(long, hide_short_help = true)]
    pub no_scrub: bool,
    /// Speed of Ceph's recovery while OSDs are emptied or refilled.
    ///
    /// With "fast", recovery gets more of the OSDs, and clients get less. The run sets options of Ceph for
    /// all OSDs: osd_mclock_profile, or osd_max_backfills and the pauses of recovery. An option that has a
    /// value stays as it is. The run removes its values at its end, and while it is paused, cancelled or
    /// outside of its windows.
    #[arg(long, value_enum, value_name = "SPEED", default_value_t = Recovery::AsIs, hide_short_help = true)]
    pub recovery: Recovery,
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

/// OSDs that are emptied before they are stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Empty {
    /// OSDs with PGs of pools that cannot lose a replica.
    Thin,
    /// No OSD; those that would have to be emptied are refused.
    Never,
    /// All OSDs.
    All,
}

/// Speed of Ceph's recovery while OSDs are emptied or refilled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Recovery {
    /// As Ceph is configured.
    // The value of the chart is `asIs`.
    #[value(alias = "asIs")]
    AsIs,
    /// Faster, where Ceph is not configured otherwise.
    Fast,
}

/// Limits of failures and waits.
#[derive(Debug, Args)]
pub struct LimitArgs {
    /// Number of OSDs that may fail after their stop before the run ends.
    ///
    /// OSDs that fail before their stop are skipped and reported.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = number(0..=100_u32, "OSDs"))]
    #[arg(hide_short_help = true, help_heading = LIMITS)]
    pub failure_limit: u32,
    /// Time for the daemon of a new OSD to come up.
    ///
    /// After this time, the OSD is quarantined, and Ceph may restore its data on other OSDs.
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = times::limit)]
    #[arg(hide_short_help = true, help_heading = LIMITS)]
    pub start_limit: TimeDelta,
    /// Time for which a stopped OSD keeps the flag noout.
    ///
    /// After this time, Ceph may restore its data on other OSDs.
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = times::limit)]
    #[arg(hide_short_help = true, help_heading = LIMITS)]
    pub noout_limit: TimeDelta,
    /// Pause before a node agent that failed after the stop is started again.
    ///
    /// Each later pause is four times as long.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = times::pause)]
    #[arg(hide_short_help = true, help_heading = LIMITS)]
    pub agent_retry_pause: TimeDelta,
    /// Time for which a run waits for OSDs that only their own state blocks (their node is cordoned or not
    /// Ready).
    ///
    /// After this time, the run ends and reports them.
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = times::wait)]
    #[arg(hide_short_help = true, help_heading = LIMITS)]
    pub skip_after: TimeDelta,
    /// Time for which the first migrated OSD of a kind serves before several are migrated in parallel.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = times::wait)]
    #[arg(hide_short_help = true, help_heading = LIMITS)]
    pub soak: TimeDelta,
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
    /// Confirm the run: yes-really-migrate-osds.
    ///
    /// OSDs may then be destroyed and recreated.
    ///
    /// A field of the CephCluster confirms, too (spec.storage.migration.confirmation), but a running Rook
    /// acts on it itself.
    #[arg(long, value_name = "WORDS", value_parser = confirmation)]
    pub confirm: Option<String>,
    /// Approve the plan with this hash.
    ///
    /// `plan` prints the hash. The run is confirmed, and migrates or creates an OSD only while its line of
    /// that plan holds.
    #[arg(long, value_name = "HASH")]
    pub approve: Option<PlanHash>,
    /// Begin with OSDs only at these times, daily or on weekdays: "Mon-Fri 22:00-05:00".
    ///
    /// Other examples: 22:00-05:00, "Sat,Sun 00:00-24:00". Repeat the option, or separate windows by commas.
    /// A window over midnight belongs to the weekday on which it begins. An OSD that was stopped within the
    /// window is finished after it, too.
    #[arg(long, value_name = "[DAYS ]HH:MM-HH:MM", hide_short_help = true)]
    pub window: Vec<Windows>,
    /// Time zone of the windows, as in the IANA database: Europe/Berlin.
    ///
    /// The summer time of the zone is respected.
    #[arg(long, value_name = "ZONE", default_value = "UTC", hide_short_help = true)]
    pub time_zone: Zone,
    /// Number of new OSDs that may be created in parallel on one host.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = number(1..=16_u32, "OSDs"))]
    #[arg(hide_short_help = true)]
    pub at_once: u32,
    /// Create the Job, and return at once.
    ///
    /// Outside of the cluster only. Without this option, the command follows the Job and ends with its exit
    /// code.
    #[arg(long)]
    pub detach: bool,
}

/// Accepts only the exact confirmation.
fn confirmation(words: &str) -> Result<String, String> {
    if words == CONFIRMATION { Ok(words.to_owned()) } else { Err(format!("use {CONFIRMATION}")) }
}

impl RunArgs {
    /// Returns the policy that these arguments describe.
    pub fn policy(&self) -> Policy {
        let set = |osds: &[OsdRange]| osds.iter().flat_map(OsdRange::osds).collect::<BTreeSet<OsdId>>();
        Policy {
            select: set(&self.select),
            hosts: self.host.iter().cloned().collect(),
            device_classes: self.device_class.iter().cloned().collect(),
            skip: set(&self.skip),
            scales_operator: self.scale_operator,
            allows_refused: self.allow_refused,
            removals: self.removals,
            drop_directories: self.drop_directories,
            remove_out: self.remove_out.then(|| TimeDelta::minutes(i64::from(self.remove_out_after))),
            cluster_status: self.cluster_status,
            no_scrub: self.no_scrub,
            recovery: match self.recovery {
                Recovery::AsIs => policy::Recovery::AsIs,
                Recovery::Fast => policy::Recovery::Fast,
            },
            deployment_by: match self.deployment_by {
                DeploymentBy::OsdMigrate => policy::DeploymentBy::Rendered,
                DeploymentBy::Rook => policy::DeploymentBy::ByRook,
            },
            only_new: false,
            require_clean: match self.require_clean {
                RequireClean::All => policy::RequireClean::All,
                RequireClean::Own => policy::RequireClean::Own,
            },
            empty: match self.empty {
                Empty::Thin => policy::Empty::Thin,
                Empty::Never => policy::Empty::Never,
                Empty::All => policy::Empty::All,
            },
            in_parallel: self.in_parallel,
            max_commit_latency: self.max_commit_latency,
            limits: Limits {
                failures: self.limits.failure_limit,
                start: self.limits.start_limit,
                noout: self.limits.noout_limit,
                retry_pause: self.limits.agent_retry_pause,
                skip_after: self.limits.skip_after,
                soak: self.limits.soak,
            },
            ..self.new.policy()
        }
    }
}

impl NewArgs {
    /// Returns the policy that these arguments describe: new OSDs only.
    pub fn policy(&self) -> Policy {
        Policy {
            confirmed: self.confirm.is_some() || self.approve.is_some(),
            approval: self.approve.clone().map(Approval::unread),
            windows: Windows::join(&self.window, self.time_zone.clone()),
            at_once: self.at_once,
            only_new: true,
            ..Policy::default()
        }
    }
}
