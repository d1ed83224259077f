//! `status` and `plan`: the fence that the owner ordered, which must not be forgotten.

use chrono::{DateTime, SecondsFormat, Utc};

use crate::domain::classify;
use crate::domain::commands::{FENCE, REMOVE_FENCE};
use crate::domain::gate;
use crate::domain::ledger::Ledger;
use crate::domain::observation::{Daemon, Observation};
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

/// Returns the advice to fence the CephCluster before its device sets are edited.
///
/// None if no Rook is running, if the CephCluster is fenced, or if no OSD is on PVCs: Rook acts on an edit of
/// a device set at once.
pub fn before_an_edit(seen: &Observation) -> Option<String> {
    let kube = &seen.kube;
    let operator = kube.running_operator().filter(|_| kube.fence.is_none())?;
    let is_in_a_set =
        |daemon: &Daemon| daemon.on_pvcs.as_ref().is_some_and(|on| classify::set_of(on, seen).is_some());
    if !kube.daemons.values().any(is_in_a_set) {
        return None;
    }
    let first = if operator.honours_fence {
        FENCE.to_owned()
    } else {
        let (namespace, name) = operator.name.split_once('/')?;
        format!("kubectl -n {namespace} scale deployment {name} --replicas=0")
    };
    let differ = gate::reshaped_by_rook(seen);
    if differ.is_empty() {
        return Some(format!(
            "Rook's operator {} is running: before you edit `encrypted` or `volumeClaimTemplates` of a device set: {first}",
            operator.name
        ));
    }
    Some(format!(
        "Rook's operator {} is running and starts {} as their device sets or nodes declare, whatever is on their \
         devices. Before Rook restarts them: {first}",
        operator.name,
        gate::names(&differ)
    ))
}

/// Returns when the owner ordered the fence, for programs.
pub fn fenced_since(ledger: &Ledger) -> Option<String> {
    let order = ledger.run.fence_order.as_ref()?;
    Some(order.since.to_rfc3339_opts(SecondsFormat::Secs, true))
}
