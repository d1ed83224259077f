//! Where in CRUSH.
use std::collections::BTreeMap;

use crate::domain::observation::Node;
use crate::domain::storage::Storage;

/// CRUSH location of a new OSD on a node.
pub fn location(_node: &Node, storage: &Storage) -> BTreeMap<String, String> {
    BTreeMap::from([("root".to_owned(), storage.crush_root.clone())])
}
