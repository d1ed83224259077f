//! Decides what the disks of a node become.

use super::{DatabasesAsked, Processed, available, volumes};
use crate::domain::inventory::NodeInventory;
use crate::domain::observation::Observation;
use crate::domain::osd::NodeName;

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
    if on_file {
        return available::file(inventory);
    }
    let available = volumes::without(inventory, node, seen);
    let mut processed = available::disks(node, &available, asked, seen);
    processed.problems.extend(volumes::problems(inventory, node, seen));
    processed
}
