//! `status` and `plan`: the fence that the owner ordered, which must not be forgotten.

use chrono::{DateTime, SecondsFormat, Utc};

use crate::domain::commands::REMOVE_FENCE;
use crate::domain::ledger::Ledger;
use crate::show::table::age;

/// Returns the line about the fence that the owner ordered; none if there is no order.
pub fn fence_text(ledger: &Ledger, now: DateTime<Utc>) -> Option<String> {
    let (order, value) = ledger.run.fence_order.as_ref().zip(ledger.run.fence.as_ref())?;
    let age = age(order.since, now);
    Some(format!(
        "Fenced by its owner {age} ago (ceph.rook.io/do-not-reconcile={value}): Rook does not reconcile the CephCluster \
         until it was edited and its OSDs are as declared. To remove the fence: {REMOVE_FENCE}"
    ))
}

/// Returns when the owner ordered the fence, for programs.
pub fn fenced_since(ledger: &Ledger) -> Option<String> {
    let order = ledger.run.fence_order.as_ref()?;
    Some(order.since.to_rfc3339_opts(SecondsFormat::Secs, true))
}
