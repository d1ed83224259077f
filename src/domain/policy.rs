//! What is wanted: the owner's declaration (the CephCluster) and how to go about it (flags).

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use chrono::{DateTime, TimeDelta, Timelike, Utc};
use serde::Serialize;

use super::osd::{ObjectStore, OsdId};
use super::storage::{Resources, Storage};

/// What the CephCluster declares, as far as it matters here. Parsed from the untyped object, any version since v1.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Declaration {
    /// Name of the CephCluster.
    pub name: String,
    /// Its uid: owner of the Deployments.
    pub uid: String,
    /// `apiVersion`, for owner references.
    pub api_version: String,
    /// `spec.storage.store.type`; bluestore where it is empty.
    pub store: ObjectStore,
    /// `spec.storage.migration.confirmation` is `yes-really-migrate-osds`, or `spec.storage.store.updateStore` is `yes-really-update-store`.
    pub confirmed: bool,
    /// `spec.dataDirHostPath`
    pub data_dir: String,
    /// `spec.cephVersion.image`: the image that new OSDs are prepared with.
    pub image: String,
    /// `spec.external.enable`
    pub external: bool,
    /// `spec.removeOSDsIfOutAndSafeToRemove`
    pub removes_out_osds: bool,
    /// `spec.network.provider` is `host`
    pub host_network: bool,
    /// Whether daemons bind to IPv4, and to IPv6, by `spec.network.ipFamily` and `dualStack`; none where neither says it.
    pub binds: Option<(bool, bool)>,
    /// `spec.resources.prepareosd`: what Rook gives each container of its Jobs that prepare OSDs.
    pub prepare_resources: Resources,
    /// What `spec.storage` and `spec.placement` say of new OSDs.
    pub storage: Storage,
    /// `spec.disruptionManagement.pgHealthyRegex`: the PG states that Rook takes for healthy. The gates accept such a PG too before
    /// a stop, if the PG lacks no copy (`gate::Accepted`).
    pub pg_healthy_regex: Option<String>,
}

/// Who makes the Deployment of an OSD that was made anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DeploymentBy {
    /// We do, in Rook's present shape; Rook brings it into its own words later.
    #[default]
    Rendered,
    /// Rook does, of the OSD that its prepare Job finds on the disk, where it runs and may be let go; else we do.
    ByRook,
}

/// Which PGs must be clean before an OSD is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RequireClean {
    /// All PGs of the cluster.
    #[default]
    All,
    /// Every PG must have all its copies. PGs that share no OSD with the OSD may be in any other state, PGs that do may be moving.
    Own,
}

/// States of PGs besides active+clean that the owner accepts before a stop, if the PG lacks no copy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
pub struct Accepted {
    /// `--require-clean own`: any state.
    pub any: bool,
    /// States, as Ceph prints them, that `disruptionManagement.pgHealthyRegex` accepts.
    pub states: BTreeSet<String>,
}

/// How often and how long something may fail: flags of `run`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Limits {
    /// `--failure-limit`: OSDs that may fail past their stop before the run ends. One bad disk is common; two in one run point
    /// at something else.
    pub failures: u32,
    /// `--start-limit`: time that the daemon of a new OSD has to come up. An image pull takes minutes; a quarter of an hour without a
    /// daemon is a fault of its node or its Deployment.
    pub start: TimeDelta,
    /// `--noout-limit`: time for which a stopped OSD keeps `noout`. Then Ceph may heal without it, as it does with any OSD that is down
    /// for 10 minutes (`mon_osd_down_out_interval`).
    pub noout: TimeDelta,
    /// `--agent-retry-pause`: pause before the second attempt of a node agent past the stop. Each later pause is four times as long: 30 s,
    /// 2 min and 8 min outlast a network cut of minutes and a kubelet under DiskPressure.
    pub retry_pause: TimeDelta,
    /// `--skip-after`: time for which a run waits for OSDs that only their own state holds up (a node that is cordoned or not Ready),
    /// once nothing else is left to do. Then it ends and reports them.
    pub skip_after: TimeDelta,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            failures: 1,
            start: TimeDelta::minutes(15),
            noout: TimeDelta::minutes(15),
            retry_pause: TimeDelta::seconds(30),
            skip_after: TimeDelta::minutes(15),
        }
    }
}

/// How to go about it: flags of `run` and `plan`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Policy {
    /// `--confirm yes-really-migrate-osds`
    pub confirmed: bool,
    /// `--select`: only these OSDs; all where empty.
    pub select: BTreeSet<OsdId>,
    /// `--skip`: not these.
    pub skip: BTreeSet<OsdId>,
    /// `--window`: times at which an OSD may be begun; at any time where empty.
    pub windows: Vec<Window>,
    /// `provision`: new OSDs only, none is migrated.
    pub only_new: bool,
    /// `--scale-operator`: an operator of Rook that knows no fence is scaled to 0 for as long as OSDs are migrated.
    pub scales_operator: bool,
    /// `--deployment-by`: who makes the Deployment of an OSD that was made anew.
    pub deployment_by: DeploymentBy,
    /// `--allow-refused`: a run ends with 0 though OSDs are refused. Those that it skipped for now count all the same.
    pub allows_refused: bool,
    /// `uninstall`: nothing is begun; what was changed for the duration is restored.
    pub leaves: bool,
    /// The run: uid of its Job. What a node's disks are is looked at anew by each run, and not by each of its pods.
    pub run: String,
    /// Pods of its Job that failed before this one (`status.failed` of the Job: those that its `podFailurePolicy` ignores, drained
    /// ones above all, are not counted).
    pub failed_pods: u32,
    /// `TEST_ENVIRONMENT_OSD_STORE_ON_FILE` is not empty: each node gets one OSD on a file, disks are not looked at.
    pub store_on_file: bool,
    /// `--at-once`: new OSDs of one host that may be made side by side; at least one.
    pub at_once: u32,
    /// `--require-clean`: which PGs must be clean before an OSD is stopped.
    pub require_clean: RequireClean,
    /// How often and how long something may fail.
    pub limits: Limits,
}

impl Policy {
    /// Whether the owner lets this run touch the OSD.
    pub fn selects(&self, osd: OsdId) -> bool {
        (self.select.is_empty() || self.select.contains(&osd)) && !self.skip.contains(&osd)
    }

    /// Whether this run makes new OSDs. Who names OSDs means those.
    pub fn makes_new(&self) -> bool {
        self.only_new || self.select.is_empty()
    }

    /// Whether an OSD may be begun at this time of day.
    pub fn is_open_at(&self, at: DateTime<Utc>) -> bool {
        self.windows.is_empty() || self.windows.iter().any(|window| window.contains(at))
    }

    /// When the next window opens; none where no window is asked for.
    pub fn opens_at(&self, at: DateTime<Utc>) -> Option<DateTime<Utc>> {
        self.windows.iter().map(|window| window.opens_after(at)).min()
    }

    /// Confirmed by flag or in the CephCluster (P12).
    pub fn is_confirmed(&self, declaration: &Declaration) -> bool {
        self.confirmed || declaration.confirmed
    }
}

/// Minutes of a day.
const DAY: u32 = 24 * 60;

/// A time of every day, in UTC, from a minute to before another: `22:00-05:00` goes over midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window {
    from: u32,
    to: u32,
}

impl Window {
    /// Whether it is open at this time.
    pub fn contains(self, at: DateTime<Utc>) -> bool {
        let now = minute_of_day(at);
        if self.from < self.to {
            (self.from..self.to).contains(&now)
        } else {
            now >= self.from || now < self.to
        }
    }

    /// When it opens next, whether it is open now or not.
    fn opens_after(self, at: DateTime<Utc>) -> DateTime<Utc> {
        let now = minute_of_day(at);
        let minutes = if self.from > now { self.from - now } else { self.from + DAY - now };
        let into_the_minute =
            TimeDelta::seconds(at.second().into()) + TimeDelta::nanoseconds(at.nanosecond().into());
        at - into_the_minute + TimeDelta::minutes(minutes.into())
    }
}

fn minute_of_day(at: DateTime<Utc>) -> u32 {
    at.hour() * 60 + at.minute()
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to } = self;
        write!(f, "{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, to / 60, to % 60)
    }
}

/// A text that names no window.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadWindow {
    /// It is not `HH:MM-HH:MM`.
    #[error("a window is HH:MM-HH:MM in UTC, such as 22:00-05:00")]
    Form,
    /// It begins when it ends: nobody knows whether that is always or never.
    #[error("a window can't end when it begins; leave --window out for the whole day")]
    Empty,
}

impl FromStr for Window {
    type Err = BadWindow;

    fn from_str(text: &str) -> Result<Self, BadWindow> {
        let (from, to) = text.split_once('-').ok_or(BadWindow::Form)?;
        let (from, to) = (minute(from)?, minute(to)?);
        // The end of the day may be written as 24:00.
        match (from, to) {
            (DAY, _) => Err(BadWindow::Form),
            (from, to) if from == to % DAY => Err(BadWindow::Empty),
            (from, to) => Ok(Self { from, to }),
        }
    }
}

/// `HH:MM`, two digits each, as a minute of the day.
fn minute(text: &str) -> Result<u32, BadWindow> {
    let (hours, minutes) = text.split_once(':').ok_or(BadWindow::Form)?;
    let number = |text: &str| {
        let digits = text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit());
        digits.then(|| text.parse::<u32>().ok()).flatten().ok_or(BadWindow::Form)
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let minute = hours * 60 + minutes;
    if minutes < 60 && minute <= DAY { Ok(minute) } else { Err(BadWindow::Form) }
}
