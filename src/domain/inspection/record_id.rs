//! Name of a record.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Name of one migration of one OSD, in the ledger, on the Deployment and on everything created for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecordId(pub String);

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
