//! Flags of groups of OSDs: `ceph osd set-group` for CRUSH nodes and device classes.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::osd::CrushItem;

/// Flags of groups of OSDs, by the name of the group (`OSDMap::dump`, 16.2.15).
///
/// The mons ask them in addition to the flags of the cluster and those of the OSD (`OSDMap::is_nodown`,
/// `OSDMap::is_noup`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct GroupFlags {
    /// `crush_node_flags`
    pub(super) nodes: BTreeMap<String, BTreeSet<String>>,
    /// `device_class_flags`
    pub(super) classes: BTreeMap<String, BTreeSet<String>>,
}

impl GroupFlags {
    /// Returns the CRUSH node or the device class of an OSD on which the flag is set.
    pub(super) fn set_on(&self, flag: &str, item: &CrushItem) -> Option<String> {
        let has = |groups: &BTreeMap<String, BTreeSet<String>>, name: &String| {
            groups.get(name).is_some_and(|flags| flags.contains(flag))
        };
        let node = item.location.values().find(|name| has(&self.nodes, name));
        let class = || item.device_class.as_ref().filter(|class| has(&self.classes, class));
        node.or_else(class).cloned()
    }
}
