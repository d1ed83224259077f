//! What `plan` says of the nodes' disks: from the youngest look at each node that there is.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::available;
use crate::domain::ledger::{Ledger, Record};
use crate::domain::observation::{Inventory, Observation};
use crate::domain::osd::{Layout, NodeName, OsdId};
use crate::domain::policy::Policy;
use crate::domain::provision::{self, Verdict};

/// The disks of the nodes that were looked at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Disks {
    /// One line a disk, by node and kernel name.
    pub lines: Vec<DiskLine>,
    /// What stands in the way: (node, sentence).
    pub problems: Vec<(String, String)>,
    /// Nodes that would get new OSDs and were not looked at.
    pub unseen: Vec<NodeName>,
    /// Since when the oldest of these looks is.
    pub as_of: Option<DateTime<Utc>>,
}

/// One disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskLine {
    /// Its node.
    pub node: NodeName,
    /// The kernel's name today.
    pub disk: String,
    /// A name that outlives a reboot, where there is one.
    pub stable: Option<String>,
    /// Bytes.
    pub size_bytes: u64,
    /// In a word: `new`, `in-flight`, `ours`, `not-selected`, `rejected`.
    pub verdict: &'static str,
    /// Why it is rejected; the OSD on it; what stores it for tests only.
    pub why: Option<String>,
    /// What it becomes.
    pub becomes: Option<Layout>,
}

/// What the looks that are there say.
pub fn disks(policy: &Policy, ledger: &Ledger, seen: &Observation) -> Disks {
    let nodes = provision::nodes(seen, policy.store_on_file);
    let mut found = Disks { problems: nodes.left_out.clone(), ..Disks::default() };
    let inventories = youngest(seen);
    for (node, look) in &inventories {
        let Some(inventory) = look.report.as_ref().and_then(|report| report.inventory.as_ref()) else {
            continue;
        };
        found.as_of = found.as_of.into_iter().chain([look.created_at]).min();
        let processed = available::process(policy, node, inventory, seen);
        found.problems.extend(processed.problems.into_iter().map(|problem| (node.to_string(), problem)));
        for (disk, verdict) in processed.disks {
            let passes = |record: &&Record| available::is_about(record, node, &disk.identity);
            let in_flight = ledger.records.values().find(passes);
            let (word, why, becomes) = match (verdict, in_flight) {
                (Verdict::New(_), Some(record)) => ("in-flight", Some(record.osd.to_string()), None),
                (Verdict::New(available), None) => {
                    let test_only =
                        available.on_file.then(|| "for tests only: a file of the node".to_owned());
                    ("new", test_only, Some(available.layout))
                }
                (Verdict::Ours { osd, fsid }, _) => {
                    ("ours", Some(osd.map_or_else(|| fsid.to_string(), |osd: OsdId| osd.to_string())), None)
                }
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
            });
        }
    }
    let was_seen = |node: &NodeName| inventories.get(node).is_some_and(|look| look.report.is_some());
    found.unseen = nodes.chosen.into_iter().filter(|node| !was_seen(node)).collect();
    found
}

/// The youngest look at each node that has said something.
pub(super) fn youngest(seen: &Observation) -> BTreeMap<&NodeName, &Inventory> {
    let mut found: BTreeMap<&NodeName, &Inventory> = BTreeMap::new();
    for look in seen.kube.inventories.values().filter(|look| look.report.is_some()) {
        let younger = found.get(&look.node).is_none_or(|other| other.created_at < look.created_at);
        if younger {
            found.insert(&look.node, look);
        }
    }
    found
}
