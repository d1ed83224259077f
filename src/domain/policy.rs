//! Declaration of the owner (the CephCluster) and policy of a run (flags).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

use super::approval::Approval;
use super::in_parallel::InParallel;
use super::osd::{ObjectStore, OsdId, PgId};
use super::storage::{Resources, Storage};
use super::windows::Windows;

/// Declaration in the CephCluster, as far as it matters here.
///
/// Parsed from the untyped object, any version since v1.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Declaration {
    /// Name of the CephCluster.
    pub name: String,
    /// uid of the CephCluster, the owner of the Deployments.
    pub uid: String,
    /// `apiVersion`, for owner references.
    pub api_version: String,
    /// `spec.storage.store.type`. BlueStore if it is empty.
    pub store: ObjectStore,
    /// `spec.storage.migration.confirmation` is `yes-really-migrate-osds`, or
    /// `spec.storage.store.updateStore` is `yes-really-update-store`.
    pub confirmed: bool,
    /// `spec.dataDirHostPath`
    pub data_dir: String,
    /// `spec.cephVersion.image`: the image that prepares new OSDs.
    pub image: String,
    /// `spec.external.enable`
    pub external: bool,
    /// `spec.removeOSDsIfOutAndSafeToRemove`
    pub removes_out_osds: bool,
    /// `spec.storage.allowOsdCrushWeightUpdate`: Rook sets the CRUSH weight of an OSD by its size.
    pub resets_weights: bool,
    /// `spec.network.provider` is `host`
    pub host_network: bool,
    /// Whether daemons bind to IPv4, and to IPv6, by `spec.network.ipFamily` and `dualStack`. None if neither
    /// is set.
    pub binds: Option<(bool, bool)>,
    /// `spec.resources.prepareosd`: resources of each container of Rook's Jobs that prepare OSDs.
    pub prepare_resources: Resources,
    /// Declaration of new OSDs in `spec.storage` and `spec.placement`.
    pub storage: Storage,
    /// `spec.disruptionManagement.pgHealthyRegex`: the PG states that Rook considers healthy. The gates also
    /// accept such a PG before a stop, if no replica of it is missing (`gate::accepted`).
    pub pg_healthy_regex: Option<String>,
    /// `spec.security.kms.connectionDetails.KMS_PROVIDER`: the key management service of encrypted OSDs on
    /// PVCs.
    pub kms: Option<String>,
    /// `spec.security.keyRotation.enabled`: Rook rotates the keys of encrypted OSDs on PVCs by CronJobs.
    pub rotates_keys: bool,
}

/// Creator of the Deployment of a recreated OSD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DeploymentBy {
    /// osd-migrate creates the Deployment in Rook's present shape. Rook adjusts it later.
    #[default]
    Rendered,
    /// Rook creates the Deployment, from the OSD that its prepare Job finds on the disk, if Rook is running
    /// and may be released. Otherwise osd-migrate creates it.
    ByRook,
}

/// OSDs that are emptied before their stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Empty {
    /// OSDs with PGs of pools that can't lose a replica.
    #[default]
    Thin,
    /// No OSD: those that would have to be emptied are refused.
    Never,
    /// All OSDs.
    All,
}

/// Speed of Ceph's recovery while OSDs are emptied or refilled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Recovery {
    /// It is as configured.
    #[default]
    AsIs,
    /// Options that have no value get one with which it is faster.
    Fast,
}

/// PGs that must be clean before an OSD is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RequireClean {
    /// All PGs of the cluster.
    #[default]
    All,
    /// Every PG must have all its replicas. PGs that share no OSD with the OSD may be in any other state. PGs
    /// that share one may be moving.
    Own,
}

/// PGs that may lack their replica on an OSD, by OSD: osd-migrate stopped the OSD.
pub type Missing = BTreeMap<OsdId, BTreeSet<PgId>>;

/// PGs, in addition to those that are active+clean, that are accepted before a stop.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
pub struct Accepted {
    /// `--require-clean own`: any state, if no replica is missing.
    pub any: bool,
    /// States that `disruptionManagement.pgHealthyRegex` accepts, as Ceph prints them, if no replica is
    /// missing.
    pub states: BTreeSet<String>,
    /// Any PG that only moves: other OSDs are being emptied at the same time.
    pub moving: bool,
    /// PGs that share no OSD with the OSD, and lack only their replica on another OSD of its batch.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: Missing,
}

/// Limits on the number of failures and on durations: flags of `run`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limits {
    /// `--failure-limit`: OSDs that may fail after their stop before the run ends. One bad disk is common.
    /// Two in one run indicate another cause.
    pub failures: u32,
    /// `--start-limit`: time for the daemon of a new OSD to come up. An image pull takes minutes. A quarter
    /// of an hour without a daemon is a fault of its node or its Deployment.
    pub start: TimeDelta,
    /// `--noout-limit`: time for which a stopped OSD keeps `noout`. After that Ceph may heal without it, as
    /// with any OSD that is down for 10 minutes (`mon_osd_down_out_interval`).
    pub noout: TimeDelta,
    /// `--agent-retry-pause`: pause before the second attempt of a node agent after the stop. Each later
    /// pause is four times as long: 30 s, 2 min and 8 min outlast a network outage of minutes and a kubelet
    /// under DiskPressure.
    pub retry_pause: TimeDelta,
    /// `--skip-after`: time for which a run waits for OSDs blocked only by their own state (a node that is
    /// cordoned or not Ready), when nothing else is left to do. Then the run ends and reports them.
    pub skip_after: TimeDelta,
    /// `--soak`: time for which the first migrated OSD of a kind serves before others of that kind are
    /// migrated in parallel. A daemon that crashes with its new store does so within minutes of load.
    pub soak: TimeDelta,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            failures: 1,
            start: TimeDelta::minutes(15),
            noout: TimeDelta::minutes(15),
            retry_pause: TimeDelta::seconds(30),
            skip_after: TimeDelta::minutes(15),
            soak: TimeDelta::minutes(10),
        }
    }
}

/// Task of `fence`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FenceCommand {
    /// Sets the fence, and waits until Rook has acknowledged it.
    Set {
        /// Time at which the command no longer waits.
        until: DateTime<Utc>,
    },
    /// Removes the fence.
    Remove,
}

/// Policy of a run: flags of `run` and `plan`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Policy {
    /// `--confirm yes-really-migrate-osds`
    pub confirmed: bool,
    /// `--select`: only these OSDs. All OSDs if empty.
    pub select: BTreeSet<OsdId>,
    /// `--host`: only OSDs on these hosts. All hosts if empty.
    pub hosts: BTreeSet<String>,
    /// `--device-class`: only OSDs of these CRUSH device classes. All classes if empty.
    pub device_classes: BTreeSet<String>,
    /// `--approve`: only what this plan says, as long as it holds. Everything if none.
    pub approval: Option<Approval>,
    /// `--skip`: all OSDs except these.
    pub skip: BTreeSet<OsdId>,
    /// `--window` and `--time-zone`: times at which work on an OSD may start. Any time if there is no window.
    pub windows: Windows,
    /// `provision`: only new OSDs, no migration.
    pub only_new: bool,
    /// `--scale-operator`: an operator of Rook that honours no fence is scaled to 0 while OSDs are migrated.
    pub scales_operator: bool,
    /// `--deployment-by`: creator of the Deployment of a recreated OSD.
    pub deployment_by: DeploymentBy,
    /// `--allow-refused`: a run ends with 0 although OSDs are refused. OSDs that it skipped for now still
    /// count.
    pub allows_refused: bool,
    /// `uninstall`: no work is started, and temporary changes are restored.
    pub leaves: bool,
    /// `fence`: only the fence that the owner orders is set or removed. None in a run.
    pub fence: Option<FenceCommand>,
    /// uid of the run's Job. Each run makes a new inventory of a node's disks, but not each of its pods.
    pub run: String,
    /// Pods of the run's Job that failed before this one (`status.failed` of the Job, which does not count
    /// pods that its `podFailurePolicy` ignores, above all drained ones).
    pub failed_pods: u32,
    /// Time at which this process began to observe the cluster. None outside of the loop of a run.
    ///
    /// Limits that would quarantine a stopped OSD begin then at the earliest: after an outage of the site its
    /// host may still be booting.
    pub at_work_since: Option<DateTime<Utc>>,
    /// `TEST_ENVIRONMENT_OSD_STORE_ON_FILE` is not empty: each node gets one OSD on a file, and disks are not
    /// inspected.
    pub store_on_file: bool,
    /// `--at-once`: new OSDs of one host that may be created in parallel, at least one.
    pub at_once: u32,
    /// `--in-parallel`: OSDs of one host that may be migrated in parallel.
    pub in_parallel: InParallel,
    /// `--max-commit-latency`: no other OSD is started while OSDs need longer to commit a write. No limit if
    /// none.
    pub max_commit_latency: Option<Duration>,
    /// `--require-clean`: which PGs must be clean before an OSD is stopped.
    pub require_clean: RequireClean,
    /// `--empty`: which OSDs are emptied before their stop.
    pub empty: Empty,
    /// `--removals`: OSDs are removed whose removal was requested.
    pub removals: bool,
    /// `--drop-directories`: OSDs in directories are removed if their node has no disk for them.
    pub drop_directories: bool,
    /// `--remove-out` and `--remove-out-after`: OSDs that have been down and out for so long are removed.
    ///
    /// None if they are left.
    pub remove_out: Option<TimeDelta>,
    /// `--cluster-status`: the status of the CephCluster shows the migration. Nothing is decided by it.
    pub cluster_status: bool,
    /// `--no-scrub`: Ceph begins no scrub while OSDs are emptied or stopped.
    pub no_scrub: bool,
    /// `--recovery`: speed of Ceph's recovery while OSDs are emptied or refilled.
    pub recovery: Recovery,
    /// Limits on the number of failures and on durations.
    pub limits: Limits,
}

impl Policy {
    /// Returns whether the owner selects the OSD for this run by its number.
    pub fn names(&self, osd: OsdId) -> bool {
        (self.select.is_empty() || self.select.contains(&osd)) && !self.skip.contains(&osd)
    }

    /// Returns whether the approved plan has the OSD; true if no plan was approved.
    pub fn has_in_plan(&self, osd: OsdId) -> bool {
        self.approval.as_ref().is_none_or(|plan| plan.lines.of_osd(osd).is_some())
    }

    /// Returns whether this run creates new OSDs.
    ///
    /// `--select`, `--host` and `--device-class` restrict a run to existing OSDs.
    pub fn makes_new(&self) -> bool {
        let is_restricted =
            !(self.select.is_empty() && self.hosts.is_empty() && self.device_classes.is_empty());
        self.only_new || !is_restricted
    }

    /// Returns whether this run removes the OSDs whose removal was requested.
    pub fn removes(&self) -> bool {
        self.removals && !self.only_new && !self.leaves && self.fence.is_none()
    }

    /// Returns whether this run finishes the removals that an earlier run has begun.
    ///
    /// A run for new OSDs, or one that only fences, is not asked about removals.
    pub fn finishes_removals(&self) -> bool {
        self.removals || self.only_new || self.fence.is_some()
    }

    /// Returns whether work on an OSD may start at this time.
    pub fn is_open_at(&self, at: DateTime<Utc>) -> bool {
        self.windows.is_open_at(at)
    }

    /// Returns whether the migration is confirmed by flag or in the CephCluster (P12).
    pub fn is_confirmed(&self, declaration: &Declaration) -> bool {
        self.confirmed || declaration.confirmed
    }
}
