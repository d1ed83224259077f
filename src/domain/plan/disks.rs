//! Disks of the nodes as `plan` shows them, by the latest inventory of each node.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::approved::{allows_disk, line_of_disk};
use super::{available, former};
use crate::domain::ledger::{Ledger, Record};
use crate::domain::observation::{Inventory, Observation};
use crate::domain::osd::{Layout, NodeName, OsdId};
use crate::domain::policy::Policy;
use crate::domain::provision::{self, Verdict};
use crate::domain::view::View;

/// Disks of the nodes that were inventoried.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Disks {
    /// One line a disk, by node and kernel name.
    pub lines: Vec<DiskLine>,
    /// Problems: (node, sentence).
    pub problems: Vec<(String, String)>,
    /// Nodes that would get new OSDs and were not inventoried.
    pub unseen: Vec<NodeName>,
    /// Time of the oldest of these inventories.
    pub as_of: Option<DateTime<Utc>>,
}

/// One disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskLine {
    /// Node of the disk.
    pub node: NodeName,
    /// Current kernel name.
    pub disk: String,
    /// Name that survives a reboot, if one exists.
    pub stable: Option<String>,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Verdict in a word: `new`, `not-in-plan` (which a person approved), `in-flight`, `ours`,
    /// `not-selected`, `rejected`.
    pub verdict: &'static str,
    /// Reason of the rejection; OSD on the disk; or a note that the store is for tests only.
    pub why: Option<String>,
    /// Layout of the OSD that the disk becomes.
    pub becomes: Option<Layout>,
    /// Line of the disk in a plan that a person approves.
    pub approval: Option<String>,
}

/// Returns the disks that the existing inventories report.
pub fn disks(policy: &Policy, ledger: &Ledger, seen: &Observation) -> Disks {
    let view = View { policy, ledger, seen };
    let nodes = provision::nodes(seen, policy.store_on_file);
    let mut found = Disks { problems: nodes.left_out.clone(), ..Disks::default() };
    let inventories = youngest(seen);
    for (node, job) in &inventories {
        let Some(report) = &job.report else { continue };
        let Some(inventory) = &report.inventory else {
            let why = report.problem.as_deref().unwrap_or("no reason is known");
            found.problems.push((node.to_string(), format!("the inspection of its disks failed: {why}")));
            continue;
        };
        found.as_of = found.as_of.into_iter().chain([job.created_at]).min();
        let processed = available::process(node, inventory, view);
        found.problems.extend(processed.problems.into_iter().map(|problem| (node.to_string(), problem)));
        for (disk, verdict) in processed.disks {
            let passes = |record: &&Record| available::is_about(record, node, &disk.identity);
            let in_flight = ledger.records.values().find(passes);
            let mut approval = None;
            let (word, why, becomes) = match (verdict, in_flight) {
                (Verdict::New(_), Some(record)) => ("in-flight", Some(record.osd.to_string()), None),
                (Verdict::New(available), None) => {
                    let test_only =
                        available.on_file.then(|| "for tests only: a file of the node".to_owned());
                    approval = Some(line_of_disk(node, &available.device, &available.layout));
                    let word = if allows_disk(node, &available, view) { "new" } else { "not-in-plan" };
                    (word, test_only, Some(available.layout))
                }
                (Verdict::Ours { osd, fsid }, _) => match former::former(&disk, node, inventory, view) {
                    Some(former) => ("rejected", Some(former), None),
                    None => (
                        "ours",
                        Some(osd.map_or_else(|| fsid.to_string(), |osd: OsdId| osd.to_string())),
                        None,
                    ),
                },
                (Verdict::NotSelected, _) => ("not-selected", None, None),
                (Verdict::Rejected(why), _) => ("rejected", Some(why), None),
            };
            found.lines.push(DiskLine {
                node: (*node).clone(),
                stable: disk.identity.stable_path(),
                size_bytes: disk.identity.size_bytes,
                disk: disk.name,
                verdict: word,
                why,
                becomes,
                approval,
            });
        }
    }
    let was_seen = |node: &NodeName| inventories.get(node).is_some_and(|job| job.report.is_some());
    found.unseen = nodes.chosen.into_iter().filter(|node| !was_seen(node)).collect();
    found
}

/// Returns the latest inventory of each node that has a report.
pub(super) fn youngest(seen: &Observation) -> BTreeMap<&NodeName, &Inventory> {
    let mut found: BTreeMap<&NodeName, &Inventory> = BTreeMap::new();
    for job in seen.kube.inventories.values().filter(|job| job.report.is_some()) {
        let younger = found.get(&job.node).is_none_or(|other| other.created_at < job.created_at);
        if younger {
            found.insert(&job.node, job);
        }
    }
    found
}
