//! Decides what the disks of a node become.

use super::{DatabasesAsked, Processed, available, volumes};
use crate::domain::inventory::NodeInventory;
use crate::domain::observation::Observation;
use crate::domain::osd::NodeName;

/// Notes of an inventory that are shown, and the length of each: a broken bus may give one for each disk.
const NOTES: usize = 5;
const NOTE_CHARS: usize = 300;

/// Returns what the disks of a node become; `asked` has the databases that its existing OSDs need on them.
///
/// With `on_file` all declarations are ignored, and only the node's file is considered.
pub fn process(
    node: &NodeName,
    inventory: &NodeInventory,
    asked: &DatabasesAsked,
    seen: &Observation,
    on_file: bool,
) -> Processed {
    let mut processed = if on_file {
        available::file(inventory)
    } else {
        let available = volumes::without(inventory, node, seen);
        let mut processed = available::disks(node, &available, asked, seen);
        processed.problems.extend(volumes::problems(inventory, node, seen));
        processed
    };
    processed.problems.extend(notes(inventory));
    processed
}

/// Returns what the inventory could not inspect or left out: few and short.
fn notes(inventory: &NodeInventory) -> Vec<String> {
    let short = |note: &String| note.chars().take(NOTE_CHARS).collect();
    let more = inventory.notes.len().saturating_sub(NOTES);
    let more = (more > 0).then(|| format!("{more} more notes of the inventory are not shown"));
    inventory.notes.iter().take(NOTES).map(short).chain(more).collect()
}
