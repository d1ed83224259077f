//! Which disks of a node.
use super::{Processed, Verdict};
use crate::domain::inventory::NodeInventory;
use crate::domain::observation::Observation;
use crate::domain::osd::NodeName;

pub(super) fn process(
    _node: &NodeName,
    inventory: &NodeInventory,
    _seen: &Observation,
    _on_file: bool,
) -> Processed {
    let disks = inventory.disks.iter().map(|disk| (disk.clone(), Verdict::NotSelected)).collect();
    Processed { disks, problems: Vec::new() }
}
