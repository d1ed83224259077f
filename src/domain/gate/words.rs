//! Reasons as sentences for people: what is wrong, then what to do, with the command to type.

use std::fmt;

use chrono::{DateTime, Utc};

use super::{Reason, StoppedBy};
use crate::domain::commands::{
    HOW_TO_CONFIRM, REMOVE_CONFIRMED, RESUME, restart_operator, retry, scale_operator, scale_osd,
};
use crate::domain::ledger::FENCE;
use crate::domain::osd::OsdId;
use crate::domain::units::{milliseconds, size, size_at_least};

fn since(at: Option<DateTime<Utc>>) -> String {
    at.map(|at| format!(" since {}", at.format("%Y-%m-%d %H:%M:%SZ"))).unwrap_or_default()
}

/// Returns the things by name, separated by commas.
pub fn names<'a>(things: impl IntoIterator<Item = &'a (impl fmt::Display + 'a)>) -> String {
    things.into_iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns the first of the things by name, and the number of the others.
pub fn first_names<'a, T: fmt::Display + 'a>(
    things: impl IntoIterator<Item = &'a T, IntoIter: ExactSizeIterator>,
    most: usize,
) -> String {
    let things = things.into_iter();
    let more = things.len().saturating_sub(most);
    let first = names(things.take(most));
    if more == 0 { first } else { format!("{first} and {more} more") }
}

/// Returns the commands after which the next run tries these quarantined OSDs again.
pub fn retries<'a>(osds: impl IntoIterator<Item = &'a OsdId>) -> String {
    osds.into_iter().map(|osd| retry(*osd)).collect::<Vec<_>>().join("; ")
}

impl Reason {
    /// Returns the code: the anchor of the reason in the reference of messages.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}

impl fmt::Display for Reason {
    #[expect(clippy::too_many_lines, reason = "one sentence for each reason")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StatisticsIncomplete { known, expected } => {
                write!(f, "the mgr reports {known} of {expected} PGs. See: ceph pg stat")
            }
            Self::StatisticsOld { pg, reported, needed } => {
                write!(f, "PG {pg} last reported in epoch {reported}; its OSDs changed in {needed}")
            }
            Self::NotClean { count, pg, state, down } => {
                write!(f, "{count} PGs are not active+clean (first: {pg} {state})")?;
                if !down.is_empty() {
                    write!(f, "; down: {}", names(down))?;
                }
                write!(f, ". See: ceph pg dump_stuck; ceph pg {pg} query")
            }
            Self::Peering { pg, state } => write!(f, "PG {pg} is {state}"),
            Self::Merging { pool } => {
                write!(f, "pool {pool} is merging PGs. See: ceph osd pool get {pool} pg_num")
            }
            Self::Down { osd } => write!(
                f,
                "{osd} is down, but osd-migrate did not stop it; it is not destroyed in this state. Start it: {}. If its \
                 disk is dead, remove it when its data is on other OSDs: osd-migrate -n NAMESPACE remove {osd}",
                scale_osd(*osd, 1)
            ),
            Self::AgentAtWork { job } => write!(
                f,
                "a node agent of an earlier attempt has not ended. See: kubectl -n NAMESPACE logs job/{job}"
            ),
            Self::StopReverted { why, until } => write!(
                f,
                "its last stop was reverted ({why}); the next stop is at {}",
                until.format("%H:%M:%SZ")
            ),
            Self::NotOkToStop { bad_pgs } => {
                write!(
                    f,
                    "it is not ok to stop the OSD: {bad_pgs} PGs would become unavailable. If min_size of their pool is \
                     its size, have the OSD emptied first: run --empty all"
                )
            }
            Self::NotAsked => f.write_str("ceph osd ok-to-stop has not answered yet"),
            Self::NoRedundancy { pool } => write!(
                f,
                "pool {pool} has insufficient redundancy to lose an OSD. Have the OSD emptied first (run --empty thin), or, if \
                 the pool is replicated, add a replica: ceph osd pool set {pool} size 3"
            ),
            Self::CannotBeEmptied { osd, why } => write!(f, "{osd} can't be emptied: {why}"),
            Self::EmptyingUnknown { osd, why: Some(why) } => {
                write!(f, "it is not known whether {osd} can be emptied: {why}")
            }
            Self::EmptyingUnknown { osd, why: None } => {
                write!(f, "it is not known yet whether {osd} can be emptied")
            }
            Self::MarkedIn { osd } => write!(
                f,
                "another client marked {osd} in, or restored its CRUSH weight, while it was emptied"
            ),
            Self::NotRemovable { osd, why } => write!(f, "{osd} can't be removed: {why}"),
            Self::StillSelected { osd, node, whole_node, disk, selected } => {
                // A request for the OSD alone would replace the one for its node.
                let removed = if *whole_node { format!("--node {node}") } else { osd.to_string() };
                write!(
                    f,
                    "the CephCluster selects the disk {disk} of {osd} on node {node} ({selected}), so it would become an \
                     OSD again. Take it out of spec.storage, or have it marked: osd-migrate -n NAMESPACE remove {removed} \
                     --disk mark {REMOVE_CONFIRMED}"
                )
            }
            Self::NodeLost { osd, node } => write!(
                f,
                "the pod of {osd} is still bound to node {node}, which does not answer. If the node is off permanently: \
                 kubectl delete node {node}. If it is off for now: kubectl taint nodes {node} \
                 node.kubernetes.io/out-of-service=nodeshutdown:NoExecute. Never delete the pod by force: the node may \
                 be alive"
            ),
            Self::DirectoryDeclared { osd, path } => write!(
                f,
                "the CephCluster declares the directory {path} of {osd} (spec.storage.directories), so a Rook up to 1.2 \
                 would create an OSD in it again. Take it out of spec.storage"
            ),
            Self::RookResetsWeights { cluster } => write!(
                f,
                "Rook resets CRUSH weights of 0 (spec.storage.allowOsdCrushWeightUpdate is true). Switch that off while \
                 OSDs are removed: kubectl -n NAMESPACE patch cephcluster {cluster} --type merge -p \
                 '{{\"spec\":{{\"storage\":{{\"allowOsdCrushWeightUpdate\":false}}}}}}'"
            ),
            Self::NotSafeToDestroy { osd } => write!(
                f,
                "Ceph does not agree yet that no data of {osd} is needed. See: ceph osd safe-to-destroy {}",
                osd.0
            ),
            Self::StillNeeded { osd, pg, state } => {
                write!(f, "{osd} is not empty: PG {pg} needs it, or lacks a replica ({state}). See: ceph pg {pg} query")
            }
            Self::OtherReplicaMissing { pg, state } => {
                write!(f, "another replica of PG {pg} is missing too ({state}). See: ceph pg {pg} query")
            }
            Self::Full { code } => write!(f, "health warning {code} is raised. See: ceph health detail"),
            Self::Flag { flag, on: Some(on) } => write!(
                f,
                "the OSD flag {flag} is set on {on}. When its owner is done: ceph osd unset-group {flag} {on}"
            ),
            Self::Flag { flag, on: None } => {
                // `ceph osd dump` shows the flag `pause` as two flags.
                let set_as = if flag.starts_with("pause") { "pause" } else { flag };
                write!(
                    f,
                    "the OSD flag {flag} is set on the whole cluster. When its owner is done: ceph osd unset {set_as}"
                )
            }
            Self::TooSmall { usable, needed } => write!(
                f,
                "the new OSD could use {}; the data of the old OSD needs {}. Lower its CRUSH weight, or attach a larger disk",
                size(*usable),
                size(*needed)
            ),
            Self::UsageUnknown => f.write_str("the bytes that it stores are not known. See: ceph osd df"),
            Self::Upgrading => {
                f.write_str("daemons of several Ceph releases are running. See: ceph versions")
            }
            Self::ImageChanged { declared, known } => write!(
                f,
                "the CephCluster names the image {declared}, but Rook still runs {known}: the new OSD would have another \
                 release. Let Rook upgrade Ceph, or name the former image: kubectl -n NAMESPACE patch cephcluster \
                 CEPHCLUSTER --type merge -p '{{\"spec\":{{\"cephVersion\":{{\"image\":\"{known}\"}}}}}}'"
            ),
            Self::RookPrepares { job, node: Some(node) } => write!(
                f,
                "Rook is preparing OSDs on node {node}. See: kubectl -n NAMESPACE logs job/{job}"
            ),
            Self::RookPrepares { job, node: None } => write!(
                f,
                "Rook is preparing OSDs, and its Job has no node yet, or migrates an OSD. See: kubectl -n NAMESPACE \
                 get pods -o wide -l job-name={job}"
            ),
            Self::RookMigrates { osd, name } => write!(
                f,
                "Rook's operator {name} is migrating {osd} itself: the OSD has no Deployment yet. See: kubectl -n \
                 NAMESPACE get jobs -l app=rook-ceph-osd-prepare. If it never gets one: {}",
                scale_operator(name, 0)
            ),
            Self::OperatorRuns { name, ends: true, .. } => write!(
                f,
                "Rook's operator {name} is scaled to 0, but its pod has not ended. See: kubectl -n {} get pods -l \
                 app=rook-ceph-operator",
                name.split_once('/').unwrap_or_default().0
            ),
            Self::OperatorRuns { name, stopped_by: StoppedBy::Person, ends: false } => write!(
                f,
                "Rook's operator {name} is running and must be stopped while new OSDs are created, or OSDs are restarted for \
                 taints. Scale it down meanwhile: {}",
                scale_operator(name, 0)
            ),
            Self::OperatorRuns { name, stopped_by: StoppedBy::PersonBeforeEdit, ends: false } => write!(
                f,
                "Rook's operator {name} is running and supports no fence. Scale it down before you edit the CephCluster, \
                 and up again when all OSDs are as declared: {}",
                scale_operator(name, 0)
            ),
            Self::OperatorRuns { name, stopped_by: StoppedBy::PersonAgain, ends: false } => write!(
                f,
                "this run scaled Rook's operator {name} to 0, and another client scaled it up again. Find that client \
                 (kubectl -n {} get deployment {} -o yaml --show-managed-fields) and stop it. Then scale the operator down: {}",
                name.split_once('/').unwrap_or_default().0,
                name.split_once('/').unwrap_or_default().1,
                scale_operator(name, 0)
            ),
            Self::OperatorRuns { name, stopped_by: StoppedBy::Flag, ends: false } => write!(
                f,
                "Rook's operator {name} is running and must be stopped during the migration. Use --scale-operator (value \
                 run.scaleOperator), or scale it down yourself: {}",
                scale_operator(name, 0)
            ),
            Self::OperatorNotFound { checked } => write!(
                f,
                "a Rook operator updated the CephCluster at {} (status.ceph.lastChecked), but none is running in the \
                 expected namespace. If it was stopped a moment ago, wait three minutes. Otherwise find it: kubectl get \
                 pods -A -l app=rook-ceph-operator. Then name its namespace with --operator-namespace (value \
                 operatorNamespace)",
                checked.format("%H:%M:%SZ")
            ),
            Self::FenceNotAcknowledged { name } => write!(
                f,
                "Rook's operator {name} is running and has not acknowledged the fence of the CephCluster yet (event \
                 ReconcileSkipped); it does so after its current reconcile, or when it is restarted: {}. If it never does: {}",
                restart_operator(name),
                scale_operator(name, 0)
            ),
            Self::FencedExternally { value } => {
                let (whose, when) = if value.starts_with(FENCE) {
                    ("which belongs to a run that is not in the ledger", "no run is working on its OSDs")
                } else {
                    ("which osd-migrate did not set", "its owner is done")
                };
                write!(
                    f,
                    "the CephCluster has the label ceph.rook.io/do-not-reconcile={value}, {whose}. When {when}: kubectl -n \
                     NAMESPACE label cephcluster CEPHCLUSTER ceph.rook.io/do-not-reconcile-"
                )
            }
            Self::Draining { domain } => write!(
                f,
                "Rook reports that {domain} is being drained. See: kubectl -n NAMESPACE get configmap \
                 rook-ceph-pdbstatemap -o yaml"
            ),
            Self::AmbiguousObjects { what } => write!(
                f,
                "{what}. See: kubectl -n NAMESPACE get deployments,pods -l app=rook-ceph-osd"
            ),
            Self::KeyRotation { osd } => write!(
                f,
                "Rook is rotating the encryption key of {osd}. See: kubectl -n NAMESPACE get pods -l \
                 app=rook-ceph-osd-key-rotation"
            ),
            Self::OtherPvc { osd, pvc } => write!(
                f,
                "PVC {pvc} of {osd} is missing, was recreated, or is on another PersistentVolume than when {osd} was \
                 recorded: it may be another device. See: kubectl -n NAMESPACE describe pvc {pvc}"
            ),
            Self::NodeNotReady { node } => {
                write!(f, "node {node} is not Ready. See: kubectl describe node {node}")
            }
            Self::NodeCordoned { node } => write!(
                f,
                "node {node} is cordoned: an OSD that is stopped there could not start again. When its owner is done: \
                 kubectl uncordon {node}"
            ),
            Self::RolloutInProgress { osd } => write!(
                f,
                "the rollout of {osd} is in progress. See: kubectl -n NAMESPACE rollout status deployment \
                 rook-ceph-osd-{}",
                osd.0
            ),
            Self::PdbExcludesOsd { osd } => write!(
                f,
                "Rook's PodDisruptionBudget rook-ceph-osd excludes {osd}, whose pod was not ready; Rook updates it within \
                 30 s"
            ),
            Self::PdbRejected { why } => write!(
                f,
                "a drain could evict another OSD meanwhile, and the API server rejects what prevents it \
                 (maxUnavailable 0 of the PodDisruptionBudget rook-ceph-osd, or osd-migrate-drains): {why}"
            ),
            Self::AdmissionRefused { osd, why } => write!(
                f,
                "the API server does not admit the new Deployment of {osd} (dry run before its stop), or its stop: {why}. \
                 Allow it, or change the named policy, webhook or quota; the next run asks again"
            ),
            Self::AdmissionUnknown { why: None, .. } => f.write_str(
                "the API server has not answered yet whether it admits the new Deployment of the OSD",
            ),
            Self::AdmissionUnknown { osd, why: Some(why) } => write!(
                f,
                "the API server does not answer whether it admits the new Deployment of {osd}: {why}. See: kubectl get \
                 validatingwebhookconfigurations,mutatingwebhookconfigurations"
            ),
            Self::StartedExternally => {
                f.write_str("another client started the OSD again after osd-migrate stopped it")
            }
            Self::MonDown => f.write_str(
                "not all mons are in quorum: one more failure could stop the cluster. See: ceph quorum_status",
            ),
            Self::External => {
                f.write_str("the CephCluster is external: its OSDs run in another Kubernetes cluster")
            }
            Self::RookRemovesOutOsds => f.write_str(
                "removeOSDsIfOutAndSafeToRemove is true: Rook could remove an OSD that is down for its migration. Set it \
                 to false: kubectl -n NAMESPACE patch cephcluster CEPHCLUSTER --type merge -p \
                 '{\"spec\":{\"removeOSDsIfOutAndSafeToRemove\":false}}'",
            ),
            Self::ChangedSincePlan { plan, approved, now } => write!(
                f,
                "it is no longer as plan {plan}, which was approved, describes it: then `{approved}`, now `{now}`. To \
                 approve it as it is now, make a new plan: osd-migrate -n NAMESPACE plan"
            ),
            Self::NotConfirmed => write!(f, "the migration is not confirmed. To confirm: {HOW_TO_CONFIRM}"),
            Self::Paused { since: at } => write!(f, "runs are paused{}. To resume: {RESUME}", since(*at)),
            Self::Cancelled { since: at } => {
                write!(f, "runs are cancelled{}. To allow runs again: {RESUME}", since(*at))
            }
            Self::OutsideWindow { windows, opens_at } => {
                write!(f, "the time is outside of the window {windows}")?;
                opens_at.map_or(Ok(()), |at| write!(f, "; it opens at {}", windows.zone().format(at)))
            }
            Self::CommitLatency { median, limit } => write!(
                f,
                "the OSDs need {} to commit a write (median), and the limit is {}: the run begins work on no other OSD \
                 until they need less. See: ceph osd perf. To begin at once: run without --max-commit-latency",
                milliseconds(*median),
                milliseconds(*limit)
            ),
            Self::CommitLatencyUnknown { osd } => write!(
                f,
                "how long {osd} needs to commit a write is not known: it has not reported to the mgr. See: ceph osd perf"
            ),
            Self::FailureLimit { quarantined } => write!(
                f,
                "the failure limit is reached: {}. Fix them, then: {}",
                names(quarantined),
                retries(quarantined)
            ),
            Self::NeedsDevice { node, bytes, selected } => write!(
                f,
                "its data is in a directory, and node {node} has no available disk for it. Attach a whole disk of at \
                 least {} that the CephCluster selects ({selected}). To see why other disks are rejected: osd-migrate -n \
                 NAMESPACE plan --inventory. To have it emptied and removed instead: set run.dropDirectories and \
                 remove.enabled",
                size_at_least(*bytes)
            ),
            Self::NoDatabaseDevice { node, why } => {
                write!(f, "its database cannot be created on node {node}: {why}")
            }
            Self::DisksNotInspected { node, why: None } => write!(
                f,
                "it needs another disk of node {node}, whose disks were not inspected yet. To inspect them: osd-migrate -n \
                 NAMESPACE plan --inventory"
            ),
            Self::DisksNotInspected { node, why: Some(why) } => write!(
                f,
                "it needs another disk of node {node}, whose disks could not be inspected: {why}. See: kubectl describe \
                 node {node}"
            ),
            Self::RemappedPgNotClean { pg, state } => write!(
                f,
                "PG {pg}, which was remapped from this OSD, is {state}: the old directory is kept until the PG is clean. \
                 See: ceph pg {pg} query"
            ),
            Self::BackfillIncomplete { osd } => {
                write!(f, "the backfill of {osd} is not complete. See: ceph pg ls-by-osd {osd}")
            }
            Self::Queued { osd } => write!(f, "OSDs are stopped one at a time: {osd} is first"),
        }
    }
}
