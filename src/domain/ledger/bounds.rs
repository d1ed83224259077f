//! Keeps what is stored about the nodes small: a cluster of any size has a ledger that can be saved.

use std::collections::BTreeMap;

use super::{NodeStatus, NodeWork};
use crate::domain::osd::NodeName;

/// Bytes that the key `nodes` may have: 64 records of 8 KiB and the run leave 380 KiB of the 900 KiB that a
/// save may have.
const NODES_BYTES: usize = 320 * 1024;

/// Characters of a problem, where there are too many.
const SHORT: usize = 100;

/// Writes the nodes as JSON. Where that is too long, completed nodes lose details first, then the problems of
/// all are cut: what a run needs to go on (`done`, `left` and the inventory of a node at work) is never
/// touched.
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

/// Keeps the first problems, and says how many more there were: those that were left out are in the log of
/// the run.
fn keep_problems(work: &mut NodeWork, keep: usize) {
    let more = work.problems.len().saturating_sub(keep);
    if more == 0 {
        return;
    }
    // The last line may say this already, of an earlier save.
    let before =
        work.problems.last().and_then(|last| last.strip_prefix("and ")?.split(' ').next()?.parse().ok());
    let more = before.map_or(more, |before: usize| more - 1 + before);
    work.problems.truncate(keep);
    for problem in &mut work.problems {
        *problem = problem.chars().take(SHORT).collect();
    }
    work.problems.push(format!("and {more} more: see the log of the run"));
}

/// Forgets which disks of a completed node were dealt with, and with them the inventory that they are missing
/// from: its number no longer fits, so that no disk of it is taken a second time.
fn forget_disks(work: &mut NodeWork) {
    if work.status != NodeStatus::Completed || (work.done.is_empty() && work.left.is_empty()) {
        return;
    }
    work.done.clear();
    work.left.clear();
    work.inventory += 1;
}

/// Leaves of a completed node that it is completed.
fn no_details(work: &mut NodeWork) {
    if work.status == NodeStatus::Completed {
        work.problems.clear();
        work.directories.clear();
        work.databases.clear();
        work.message = work.message.chars().take(SHORT).collect();
    }
}
