//! Limits the size of what is stored about OSDs and nodes, so that the ledger of a cluster of any size can
//! be saved.

use std::collections::BTreeMap;

use super::{NodeStatus, NodeWork, Record};
use crate::domain::osd::NodeName;

/// Maximum size of the key `nodes` in bytes.
///
/// The size follows from the limits of a save: the records (`RECORDS_BYTES`) and the run leave 450 KiB of the
/// 1,000 KiB that a save may have. 130 KiB of them are for records that grow.
const NODES_BYTES: usize = 320 * 1024;

/// Size of all records in bytes from which on no other one is opened: 64 of 8 KiB.
///
/// An OSD in progress must be able to end, so its saves are not limited by it.
const RECORDS_BYTES: usize = 512 * 1024;

/// Size in bytes that a record in progress has at least in this sum: it grows until the stop of its OSD.
///
/// An OSD with 300 PGs and 20 upmaps needs 8 KiB, and one with 150 upmaps 14 KiB (`tests/suite/ledger.rs`).
const RECORD_BYTES: usize = 8 * 1024;

/// Maximum characters of a problem, if there are too many problems.
const SHORT: usize = 100;

/// Returns whether the records are so small that another one may be opened.
pub(super) fn leave_place<'a>(records: impl Iterator<Item = &'a Record>) -> bool {
    let bytes = records.map(|record| {
        let least = if record.quarantine.is_none() { RECORD_BYTES } else { 0 };
        serde_json::to_string(record).map_or(RECORDS_BYTES, |json| json.len().max(least))
    });
    bytes.sum::<usize>() < RECORDS_BYTES
}

/// Returns the nodes as JSON.
///
/// If the JSON is too long, completed nodes lose details first, then the problems of all nodes are cut. The
/// values that a run needs to resume (`done`, `left` and the inventory of a node in progress) are never
/// changed.
pub(super) fn nodes_to_json(nodes: &BTreeMap<NodeName, NodeWork>) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string(nodes)?;
    let mut nodes = nodes.clone();
    for shorten in [three_problems, forget_disks, one_problem, no_details] {
        if text.len() <= NODES_BYTES {
            break;
        }
        nodes.values_mut().for_each(shorten);
        text = serde_json::to_string(&nodes)?;
    }
    Ok(text)
}

fn three_problems(work: &mut NodeWork) {
    keep_problems(work, 3);
}

fn one_problem(work: &mut NodeWork) {
    keep_problems(work, 1);
}

/// Keeps the first problems, and notes how many more there were.
///
/// The log of the run has the problems that were left out.
fn keep_problems(work: &mut NodeWork, keep: usize) {
    let more = work.problems.len().saturating_sub(keep);
    if more == 0 {
        return;
    }
    // The last line may already be such a note, from an earlier save.
    let before =
        work.problems.last().and_then(|last| last.strip_prefix("and ")?.split(' ').next()?.parse().ok());
    let more = before.map_or(more, |before: usize| more - 1 + before);
    work.problems.truncate(keep);
    for problem in &mut work.problems {
        *problem = problem.chars().take(SHORT).collect();
    }
    work.problems.push(format!("and {more} more: see the log of the run"));
}

/// Removes the names of the processed disks of a completed node.
///
/// Also increases the number of the inventory, so that the inventory without these disks no longer matches
/// and no disk of it is used a second time.
fn forget_disks(work: &mut NodeWork) {
    if work.status != NodeStatus::Completed || (work.done.is_empty() && work.left.is_empty()) {
        return;
    }
    work.done.clear();
    work.left.clear();
    work.inventory += 1;
}

/// Removes the details of a completed node, except its status.
fn no_details(work: &mut NodeWork) {
    if work.status == NodeStatus::Completed {
        work.problems.clear();
        work.directories.clear();
        work.databases.clear();
        work.message = work.message.chars().take(SHORT).collect();
    }
}
