//! Content of `report`.

use chrono::{DateTime, Utc};

use crate::domain::commands::Names;
use crate::domain::history::Account;

/// Content of `report`.
pub struct Report<'a> {
    /// Namespace and name of the CephCluster.
    pub names: &'a Names,
    /// All migrations.
    pub account: &'a Account,
    /// Number of lines of the history that could not be read.
    pub unread: usize,
    /// Present time.
    pub now: DateTime<Utc>,
}
