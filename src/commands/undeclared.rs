//! `remove --undeclared`: the OSDs that the CephCluster no longer declares.

use std::sync::Arc;

use crate::commands::inventories::Inventories;
use crate::commands::pod::{of_environment, own};
use crate::domain::observation::Observation;
use crate::domain::osd::NodeName;
use crate::domain::plan;
use crate::domain::policy::Policy;
use crate::domain::undeclared::{self, Found};
use crate::exit::{Exit, not_seen};
use crate::k8s::K8s;
use crate::live::{Live, kube_failure};
use crate::ports::Failure;

/// Returns the OSDs that are not declared, and what was observed last.
///
/// Inspects the disks of their nodes, and deletes the inventory Jobs.
pub(super) async fn find_undeclared(
    k8s: &Arc<K8s>,
    live: Live,
    seen: Observation,
) -> Result<(Found, Observation), Exit> {
    let nodes = undeclared::to_inspect(&seen);
    let hostname = |node: &NodeName| seen.kube.nodes.get(node).map(|node| &node.hostname);
    let created_as = k8s.created_as(nodes.iter().filter_map(hostname)).await;
    let created_as = created_as.map_err(|error| not_seen(&kube_failure(error)))?;
    if nodes.is_empty() {
        return Ok((undeclared::find(&undeclared::Inventories::new(), &created_as, &seen), seen));
    }
    let own = own(k8s).await.map(Arc::new).map_err(|failure| not_seen(&failure))?;
    let run = format!("{}{}", plan::OF_PLAN, own.pod_uid);
    let policy = of_environment(Policy { run, ..Policy::default() });
    let mut live = live.acting_as(own);
    let mut inventories = Inventories { policy: &policy, live: &mut live, k8s: Arc::clone(k8s) };
    // A node that does not answer in time counts as not inspected: its OSDs are reported.
    let asked: Result<_, Failure> = async {
        inventories.ask_on(&nodes).await?;
        inventories.results().await
    }
    .await;
    let cleaned_up = inventories.clean_up().await;
    let (found, seen) = asked.map_err(|failure| not_seen(&failure))?;
    cleaned_up.map_err(|failure| not_seen(&failure))?;
    Ok((undeclared::find(&found, &created_as, &seen), seen))
}
