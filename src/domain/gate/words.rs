//! Reasons as codes for tables and programs, and as sentences for people, with the command to type.

use std::fmt;

use chrono::{DateTime, Utc};

use super::Reason;
use crate::domain::ledger::FENCE;

/// Instructions for the confirmation.
pub const HOW_TO_CONFIRM: &str = "kubectl patch cephcluster NAME --type merge -p \
    '{\"spec\":{\"storage\":{\"migration\":{\"confirmation\":\"yes-really-migrate-osds\"}}}}', \
    or --confirm yes-really-migrate-osds";

impl Reason {
    /// Returns the code, for tables and programs.
    pub fn word(&self) -> &'static str {
        match self {
            Self::StatisticsIncomplete { .. } => "statistics-incomplete",
            Self::StatisticsOld { .. } => "statistics-old",
            Self::NotClean { .. } => "not-clean",
            Self::Peering { .. } => "peering",
            Self::Merging { .. } => "merging",
            Self::Down { .. } => "down",
            Self::AgentAtWork { .. } => "agent-at-work",
            Self::StopReverted { .. } => "stop-reverted",
            Self::NotOkToStop { .. } => "not-ok-to-stop",
            Self::NotAsked => "not-asked",
            Self::NoRedundancy { .. } => "no-redundancy",
            Self::OtherReplicaMissing { .. } => "other-replica-missing",
            Self::Full { .. } => "full",
            Self::Flag { .. } => "flag",
            Self::TooSmall { .. } => "too-small",
            Self::UsageUnknown => "usage-unknown",
            Self::Upgrading => "upgrading",
            Self::ImageChanged { .. } => "image-changed",
            Self::RookPrepares { .. } => "rook-prepares",
            Self::RookMigrates { .. } => "rook-migrates",
            Self::OperatorRuns { .. } => "operator-runs",
            Self::OperatorNotFound { .. } => "operator-not-found",
            Self::FenceNotAcknowledged { .. } => "fence-not-acknowledged",
            Self::FencedExternally { .. } => "fenced-externally",
            Self::Draining { .. } => "draining",
            Self::AmbiguousObjects { .. } => "ambiguous-objects",
            Self::NodeNotReady { .. } => "node-not-ready",
            Self::NodeCordoned { .. } => "node-cordoned",
            Self::PdbExcludesOsd { .. } => "pdb-excludes-osd",
            Self::PdbRejected { .. } => "pdb-rejected",
            Self::AdmissionRefused { .. } => "admission-refused",
            Self::AdmissionUnknown { .. } => "admission-unknown",
            Self::StartedExternally => "started-externally",
            Self::RolloutInProgress { .. } => "rollout-in-progress",
            Self::MonDown => "mon-down",
            Self::External => "external",
            Self::RookRemovesOutOsds => "rook-removes-out-osds",
            Self::NotConfirmed => "not-confirmed",
            Self::Paused { .. } => "paused",
            Self::Cancelled { .. } => "cancelled",
            Self::OutsideWindow { .. } => "outside-window",
            Self::FailureLimit { .. } => "failure-limit",
            Self::NeedsDevice { .. } => "needs-device",
            Self::DisksNotInspected { .. } => "disks-not-inspected",
            Self::NoDatabaseDevice { .. } => "no-database-device",
            Self::RemappedPgNotClean { .. } => "remapped-pg-not-clean",
            Self::BackfillIncomplete { .. } => "backfill-incomplete",
            Self::Queued { .. } => "queued",
        }
    }
}

fn since(at: Option<DateTime<Utc>>) -> String {
    at.map(|at| format!(" since {}", at.format("%Y-%m-%d %H:%M:%SZ"))).unwrap_or_default()
}

/// Formats bytes as GiB, rounded up: a disk of the printed size is large enough.
fn gib(bytes: u64) -> String {
    let tenths = bytes.saturating_mul(10).div_ceil(1 << 30);
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}

/// Returns the things by name, separated by commas.
pub fn names<'a>(things: impl IntoIterator<Item = &'a (impl fmt::Display + 'a)>) -> String {
    things.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for Reason {
    #[expect(clippy::too_many_lines, reason = "one sentence for each reason")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StatisticsIncomplete { known, expected } => {
                write!(f, "the mgr knows {known} of {expected} PGs; see `ceph pg stat`")
            }
            Self::StatisticsOld { pg, reported, needed } => {
                write!(f, "PG {pg} reported last in {reported}, its OSDs changed in {needed}")
            }
            Self::NotClean { count, pg, state, down } => {
                write!(f, "{count} PGs are not active+clean (the first: {pg} {state})")?;
                if !down.is_empty() {
                    write!(f, "; down: {}", names(down))?;
                }
                write!(f, "; see `ceph pg dump_stuck` and `ceph pg {pg} query`")
            }
            Self::Peering { pg, state } => write!(f, "PG {pg} is {state}"),
            Self::Merging { pool } => write!(f, "pool {pool} is merging PGs; see `ceph osd pool get {pool} pg_num`"),
            Self::Down { osd } => write!(
                f,
                "{osd} is down, and was not stopped for its migration: it is not touched in this state. Start it (kubectl get deployment -l \
                 ceph-osd-id={0}), or remove it if its disk is dead: ceph osd purge {0} --yes-i-really-mean-it",
                osd.0
            ),
            Self::AgentAtWork { job } => {
                write!(f, "a node agent of an earlier attempt has not ended; see `kubectl logs job/{job}` and its node")
            }
            Self::StopReverted { why, until } => {
                let at = until.format("%H:%M:%SZ");
                write!(f, "its last stop was reverted ({why}); the next stop is tried at {at}")
            }
            Self::NotOkToStop { bad_pgs } => write!(f, "`ceph osd ok-to-stop` refuses: {bad_pgs} PGs would stop serving"),
            Self::NotAsked => f.write_str("`ceph osd ok-to-stop` was not asked yet"),
            Self::NoRedundancy { pool } => {
                write!(f, "pool {pool} would be left without a copy to spare: it must be drained first, which this version does not do")
            }
            Self::OtherReplicaMissing { pg, state } => write!(f, "PG {pg} lacks another copy too ({state}); see `ceph pg {pg} query`"),
            Self::Full { code } => write!(f, "{code} is raised; see `ceph health detail`"),
            Self::Flag { flag } => {
                // `ceph osd dump` shows the flag `pause` as two flags.
                let set_as = if flag.starts_with("pause") { "pause" } else { flag };
                write!(f, "the flag {flag} is set on the whole cluster: `ceph osd unset {set_as}` when its owner is done")
            }
            Self::TooSmall { usable, needed } => {
                write!(f, "the new OSD may use {usable} bytes, the old one's data needs {needed}")
            }
            Self::UsageUnknown => f.write_str("how many bytes it holds is not known; see `ceph osd df`"),
            Self::Upgrading => f.write_str("daemons of several releases run; see `ceph versions`"),
            Self::ImageChanged { declared, known } => write!(
                f,
                "the CephCluster names the image {declared}, and Ceph runs what Rook took up before, {known}: an OSD would be made by \
                 another release. Let Rook upgrade Ceph, or name the image as it was: kubectl patch cephcluster NAME --type merge -p \
                 '{{\"spec\":{{\"cephVersion\":{{\"image\":\"{known}\"}}}}}}'"
            ),
            Self::RookPrepares { job } => write!(f, "Rook prepares OSDs: Job {job}"),
            Self::RookMigrates { osd, name } => write!(
                f,
                "Rook's operator {name} is in the middle of migrating {osd} itself: it has no Deployment yet; see \
                 `kubectl get jobs -l app=rook-ceph-osd-prepare`. Where it never gets one: {}",
                scale_operator(name, 0)
            ),
            Self::OperatorRuns { name, ends: true } => write!(
                f,
                "Rook's operator {name} is at 0, and its pod has not ended: kubectl -n {} get pods -l app=rook-ceph-operator",
                name.split_once('/').unwrap_or_default().0
            ),
            Self::OperatorRuns { name, ends: false } => write!(
                f,
                "Rook's operator {name} runs, and may not go on meanwhile: a run with --scale-operator (value run.scaleOperator) \
                 sets it aside and back; or by hand: {}",
                scale_operator(name, 0)
            ),
            Self::OperatorNotFound { checked } => write!(
                f,
                "a Rook operator wrote of the CephCluster at {} (status.ceph.lastChecked), and is in another namespace than \
                 those looked at: kubectl get pods -A -l app=rook-ceph-operator; then name it by --operator-namespace (value \
                 operatorNamespace)",
                checked.format("%H:%M:%SZ")
            ),
            Self::FenceNotAcknowledged { name } => write!(
                f,
                "Rook's operator {name} runs, and has not said yet that it leaves the fenced CephCluster alone (event \
                 ReconcileSkipped); it says so when it is done with what it does now. Where it never does: {}",
                scale_operator(name, 0)
            ),
            Self::FencedExternally { value } => {
                let (whose, when) = if value.starts_with(FENCE) {
                    ("of a run that the ledger does not know", "when nobody works on its OSDs")
                } else {
                    ("which is not ours", "when its owner is done")
                };
                write!(
                    f,
                    "the CephCluster carries ceph.rook.io/do-not-reconcile={value}, {whose}: \
                     kubectl label cephcluster --all ceph.rook.io/do-not-reconcile- {when}"
                )
            }
            Self::Draining { domain } => write!(f, "{domain} is being drained, says Rook"),
            Self::AmbiguousObjects { what } => {
                write!(f, "{what}; see `kubectl get deployments,pods -l app=rook-ceph-osd`")
            }
            Self::NodeNotReady { node } => write!(f, "node {node} is not Ready; see `kubectl describe node {node}`"),
            Self::NodeCordoned { node } => write!(
                f,
                "node {node} is cordoned, an OSD stopped there could not start again: kubectl uncordon {node} when its owner is done"
            ),
            Self::RolloutInProgress { osd } => write!(f, "the Deployment of {osd} has not come to rest; see `kubectl get deployment rook-ceph-osd-{}`", osd.0),
            Self::PdbExcludesOsd { osd } => write!(
                f,
                "Rook leaves {osd}, whose pod was not ready, out of its PodDisruptionBudget rook-ceph-osd, and looks again within 30 s"
            ),
            Self::PdbRejected { why } => write!(
                f,
                "a drain may take another OSD meanwhile, and the PodDisruptionBudget osd-migrate-drains against it is refused: {why}"
            ),
            Self::AdmissionRefused { osd, why } => write!(
                f,
                "the API server does not admit the Deployment that {osd} would get (asked with dryRun=All before \
                 its stop): {why}. Allow that Deployment, or change the policy, webhook or quota that is named; the next run asks again"
            ),
            Self::AdmissionUnknown { why: None, .. } => {
                f.write_str("the API server was not asked yet whether it admits the Deployment of the new OSD")
            }
            Self::AdmissionUnknown { osd, why: Some(why) } => write!(
                f,
                "the API server does not say whether it admits the Deployment that {osd} would get: {why}; see \
                 `kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations`"
            ),
            Self::StartedExternally => f.write_str("somebody started it again after we had stopped it"),
            Self::MonDown => f.write_str(
                "not all mons are in quorum, one more that fails may stop the whole cluster; see `ceph quorum_status`",
            ),
            Self::External => f.write_str("the CephCluster is external: its OSDs are not run here"),
            Self::RookRemovesOutOsds => f.write_str(
                "removeOSDsIfOutAndSafeToRemove is on: Rook may remove an OSD that is down for the work; set it to false first",
            ),
            Self::NotConfirmed => write!(f, "it is not confirmed: {HOW_TO_CONFIRM}"),
            Self::Paused { since: at } => write!(f, "paused{}: osd-migrate resume", since(*at)),
            Self::Cancelled { since: at } => {
                write!(f, "cancelled{}; to let runs begin again: osd-migrate resume", since(*at))
            }
            Self::OutsideWindow { windows, opens_at } => {
                write!(f, "outside of {} UTC", names(windows))?;
                opens_at.map_or(Ok(()), |at| write!(f, "; it opens at {}", at.format("%Y-%m-%d %H:%MZ")))
            }
            Self::FailureLimit { quarantined } => write!(
                f,
                "too many OSDs failed: {}; mend them and type osd-migrate retry osd.N",
                names(quarantined)
            ),
            Self::NeedsDevice { node, bytes, selected } => write!(
                f,
                "it lies in a directory, and node {node} has no free disk for it: attach a whole one of at least {bytes} bytes ({}) \
                 that the CephCluster selects ({selected}); osd-migrate plan --inventory tells why others are not taken",
                gib(*bytes)
            ),
            Self::NoDatabaseDevice { node, why } => {
                write!(f, "its database can't be made on node {node}: {why}")
            }
            Self::DisksNotInspected { node, why: None } => {
                write!(f, "it needs another disk of node {node}: osd-migrate plan --inventory tells")
            }
            Self::DisksNotInspected { node, why: Some(why) } => write!(
                f,
                "it needs another disk of node {node}: {why}; see `kubectl describe node {node}`"
            ),
            Self::RemappedPgNotClean { pg, state } => write!(
                f,
                "PG {pg}, which it held before, is {state} where it is now: its old directory stays until then; see `ceph pg {pg} query`"
            ),
            Self::BackfillIncomplete { osd } => write!(f, "{osd} does not hold all its data yet; see `ceph pg ls-by-osd {osd}`"),
            Self::Queued { osd } => write!(f, "one OSD at a time: after {osd}"),
        }
    }
}

/// Returns the command that scales this Deployment (namespace/name) to so many replicas.
pub fn scale_operator(operator: &str, replicas: u32) -> String {
    let (namespace, name) = operator.split_once('/').unwrap_or_default();
    format!("kubectl -n {namespace} scale deployment {name} --replicas={replicas}")
}
