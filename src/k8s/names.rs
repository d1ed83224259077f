//! Names, labels and annotations of our objects. Names derive from the purpose of an object, so that creating
//! it twice collides.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::Job;

use crate::domain::fnv;
use crate::domain::inspection::{NodeRequest, NodeTask, RecordId};
use crate::domain::inventory::InventoryRequest;
use crate::domain::osd::OsdId;

/// Value of `app.kubernetes.io/name` on all our objects.
pub const OURS: &str = "osd-migrate";

/// Name of the init container that copies our program, in the runner's pod and in pods on nodes.
pub(super) const INSTALL: &str = "install";

/// Annotation on an OSD's Deployment: osd-migrate stopped the OSD for this record.
pub const STOPPED: &str = "osd-migrate.io/stopped";

/// Annotation on the CephCluster, set with our fence: the resourceVersion on which the fence was set.
pub(super) const FENCED_AT: &str = "osd-migrate.io/fenced-at";

/// Prefix of all keys of our labels and annotations, except those that Kubernetes defines.
pub(super) const PREFIX: &str = "osd-migrate.io/";
pub(super) const NAME: &str = "app.kubernetes.io/name";
pub(super) const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Label with the part of osd-migrate to which an object belongs, as Kubernetes recommends.
pub(super) const COMPONENT: &str = "app.kubernetes.io/component";
/// Label of objects that Helm creates.
pub(super) const CHART: &str = "helm.sh/chart";
/// Label with the kind of one of our objects: see [`Part`].
pub(super) const PART: &str = "osd-migrate.io/part";
pub(super) const OSD: &str = "osd-migrate.io/osd";
/// As label: the record in short, for selectors.
///
/// As annotation: the record itself.
pub(super) const RECORD: &str = "osd-migrate.io/record";
pub(super) const ATTEMPT: &str = "osd-migrate.io/attempt";
pub(super) const TASK: &str = "osd-migrate.io/task";

/// As label: the node as a hash of it, for selectors.
///
/// As annotation: the node itself.
pub(super) const NODE: &str = "osd-migrate.io/node";
/// As label: the run in short.
///
/// As annotation: the run itself.
pub(super) const RUN: &str = "osd-migrate.io/run";
pub(super) const NUMBER: &str = "osd-migrate.io/number";
/// Annotation on a Job that the command line created: its user at the API server.
pub(super) const CREATED_BY: &str = "osd-migrate.io/created-by";
/// On an OSD's Deployment: not for real data, and why.
pub(super) const TEST_ONLY: &str = "osd-migrate.io/test-only";

/// Selector of the objects that are created for node agents or that agents leave behind.
///
/// Those of records must be gone when the record is closed; the others belong to inventories. One selector
/// covers both, so that each kind is listed once per iteration.
pub(super) const OF_AGENTS: &str =
    "app.kubernetes.io/name=osd-migrate,osd-migrate.io/part in (backup,key,inventory,node-job,report)";

/// Selector of the Deployments and pods of OSDs, which are Rook's.
pub(super) const OF_OSDS: &str = "app=rook-ceph-osd";

/// Label of the Deployments and pods of OSDs, by which that selector selects them.
pub(super) const OSD_APP: (&str, &str) = ("app", "rook-ceph-osd");

/// Label with the id of an OSD, by which requests of one or some OSDs select.
pub(super) const OSD_ID: &str = "ceph-osd-id";

/// Returns the OSD of a value of that label; none unless requests would select it by its number.
pub(super) fn osd_of_label(label: &str) -> Option<OsdId> {
    label.parse().ok().map(OsdId).filter(|osd| osd.0.to_string() == label)
}

/// Returns the selector of the Deployment and the pods of an OSD.
pub(super) fn of_osd(osd: OsdId) -> String {
    format!("{OF_OSDS},{OSD_ID}={}", osd.0)
}

/// Longest record that is used unchanged in names: a Job's name (task, OSD, record, attempt) has at most 63
/// characters.
const SHORT: usize = 20;

/// Kind of one of our objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Ledger,
    History,
    Status,
    Control,
    Requests,
    Plan,
    NodeJob,
    Report,
    Backup,
    Key,
    Inventory,
    Drains,
}

impl Part {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Ledger => "ledger",
            Self::History => "history",
            Self::Status => "status",
            Self::Control => "control",
            Self::Requests => "requests",
            Self::Plan => "plan",
            Self::NodeJob => "node-job",
            Self::Report => "report",
            Self::Backup => "backup",
            Self::Key => "key",
            Self::Inventory => "inventory",
            Self::Drains => "drains",
        }
    }
}

/// Returns the labels that mark an object as ours and name its part.
pub(super) fn labels(part: Part) -> BTreeMap<String, String> {
    [(NAME, OURS), (MANAGED_BY, OURS), (COMPONENT, part.as_str()), (PART, part.as_str())]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into()
}

/// Returns the labels of an object that belongs to a record.
pub(super) fn record_labels(part: Part, osd: OsdId, record: &RecordId) -> BTreeMap<String, String> {
    let mut labels = labels(part);
    labels.insert(OSD.to_owned(), osd.0.to_string());
    labels.insert(RECORD.to_owned(), short(record));
    labels
}

/// Returns the labels of an object that belongs to one attempt.
pub(super) fn attempt_labels(part: Part, request: &NodeRequest) -> BTreeMap<String, String> {
    let mut labels = record_labels(part, request.osd, &request.record);
    labels.insert(ATTEMPT.to_owned(), request.attempt.to_string());
    labels.insert(TASK.to_owned(), request.task.to_string());
    labels
}

/// Returns the name of the node Job of an attempt, of its report and of its Secret: at most 63 characters.
pub fn job_name(request: &NodeRequest) -> String {
    format!("osd-migrate-{}-{}-{}-{}", request.task, request.osd.0, short(&request.record), request.attempt)
}

/// Suffix of the name of the ConfigMap that owns the Secret of a node Job.
const OF_KEY: &str = "-key";

/// Returns the name of the ConfigMap that owns the Secret of a node Job.
pub(super) fn key_owner_name(job: &str) -> String {
    format!("{job}{OF_KEY}")
}

/// Returns the node Job in the name of such a ConfigMap.
pub(super) fn job_of_key_owner(name: &str) -> Option<&str> {
    name.strip_suffix(OF_KEY)
}

/// Returns the labels of an object that belongs to an inventory.
pub(super) fn inventory_labels(request: &InventoryRequest) -> BTreeMap<String, String> {
    let mut labels = labels(Part::Inventory);
    labels.insert(NODE.to_owned(), node_hash(request));
    labels.insert(RUN.to_owned(), short_text(&request.run));
    labels.insert(NUMBER.to_owned(), request.number.to_string());
    labels
}

/// Returns the name of an inventory's ConfigMap and Job: at most 63 characters.
pub fn inventory_job_name(request: &InventoryRequest) -> String {
    format!("osd-migrate-disks-{}-{}-{}", node_hash(request), short_text(&request.run), request.number)
}

/// Returns a short hash of the node's name: names of nodes may be longer than names of pods.
fn node_hash(request: &InventoryRequest) -> String {
    let mut hash = format!("{:016x}", hash(&request.node.0));
    hash.truncate(12);
    hash
}

/// Returns the name of the ConfigMap with the backup of an OSD's Deployment.
pub fn backup_name(osd: OsdId) -> String {
    format!("osd-migrate-osd-{}", osd.0)
}

/// Returns the task that a label names.
pub(super) fn task(text: &str) -> Option<NodeTask> {
    [NodeTask::Inspect, NodeTask::Rebuild, NodeTask::RestoreSlot, NodeTask::Clear, NodeTask::Wipe]
        .into_iter()
        .find(|task| task.to_string() == text)
}

/// Returns a record in the form used in names and label values.
pub fn short(record: &RecordId) -> String {
    short_text(&record.0)
}

/// Returns a text for names and label values: unchanged if it is short and lower case, else a hash of it.
fn short_text(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let ends = text.bytes().next().is_some_and(plain) && text.bytes().last().is_some_and(plain);
    if text.len() <= SHORT && ends && text.bytes().all(|b| plain(b) || b == b'-') {
        return text.to_owned();
    }
    format!("{:016x}", hash(text))
}

/// Returns a hash for names: they must be the same in every build, and no attacker chooses them to collide.
pub(super) fn hash(text: &str) -> u64 {
    fnv::hash(text.as_bytes())
}

/// Annotation on a Job that the schedule created (Kubernetes 1.28 and later): the scheduled time.
pub(crate) const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

/// Returns whether the schedule created a Job, and not a person.
pub(crate) fn is_scheduled(job: &Job) -> bool {
    job.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(SCHEDULED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::osd::NodeName;

    #[test]
    fn record_id_is_shortened_only_if_necessary() {
        assert_eq!(short(&RecordId("r12-a7".to_owned())), "r12-a7");
        for long in ["R12", "12-2026-11-21T09:43:30Z-abcdef", "a_b", "-a", "a-", ""] {
            let name = short(&RecordId(long.to_owned()));
            assert_eq!(name.len(), 16, "{long}");
            assert_ne!(name, long);
        }
    }

    fn inventory(node: &str, run: &str, number: u32) -> InventoryRequest {
        let cluster = "6a1b2c3d-0000-4000-8000-000000000001".parse().unwrap();
        InventoryRequest {
            run: run.to_owned(),
            number,
            node: NodeName(node.to_owned()),
            cluster,
            on_file: false,
        }
    }

    #[test]
    fn inventory_job_names_are_unique_and_fit_into_a_label() {
        let run = "0b1f1a0e-6c65-4c11-9d65-0f1d5a3a9a01";
        let names = [
            inventory_job_name(&inventory("h1", run, 1)),
            inventory_job_name(&inventory("h2", run, 1)),
            inventory_job_name(&inventory("h1", "other", 1)),
            inventory_job_name(&inventory("h1", run, 2)),
        ];
        assert_eq!(names.iter().collect::<std::collections::BTreeSet<_>>().len(), 4, "{names:?}");
        assert_eq!(inventory_job_name(&inventory("h1", "r1", 7)), "osd-migrate-disks-08ba8707b55f-r1-7");
        let longest = inventory_job_name(&inventory(&"n".repeat(253), &"x".repeat(SHORT), u32::MAX));
        assert!(longest.len() <= 63, "{}", longest.len());
        assert!(
            inventory_labels(&inventory(&"n".repeat(253), run, 1)).values().all(|value| value.len() <= 63)
        );
    }

    #[test]
    fn longest_node_job_name_fits_into_a_label() {
        let longest =
            format!("osd-migrate-{}-{}-{}-{}", NodeTask::RestoreSlot, 999_999, "x".repeat(SHORT), 99_999);
        assert!(longest.len() <= 63, "{}", longest.len());
        assert_eq!(task("restore-slot"), Some(NodeTask::RestoreSlot));
        assert_eq!(task("other"), None);
    }
}
