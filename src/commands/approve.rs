//! Plans that a person approves: stored by `plan`, read by the run.

use std::sync::Arc;

use crate::domain::approval::{Approval, PlanHash, PlanLines};
use crate::domain::policy::Policy;
use crate::exit::{Exit, failed, not_loaded, not_seen};
use crate::k8s::K8s;
use crate::live::{Ledgers, WallClock, kube_failure};
use crate::ports::{Clock, LedgerStore};

/// Stores a plan, and returns its hash; none if the plan does nothing, or can't be stored.
///
/// The plan is shown even if it can't be stored: then it can't be approved by its hash.
pub(super) async fn store(k8s: &K8s, plan: &PlanLines) -> Option<PlanHash> {
    if plan.is_empty() {
        return None;
    }
    let stored = async {
        k8s.write_plan(plan, WallClock.now()).await?;
        k8s.prune_plans().await
    };
    match stored.await {
        Ok(()) => Some(plan.hash()),
        Err(error) => {
            tracing::warn!("the plan was not stored, and can't be approved by its hash: {error}");
            None
        }
    }
}

/// Reads the plan that the policy names, if it names one.
///
/// If the plan is not stored, the command ends, unless OSDs are in progress: the run finishes them, and
/// starts on no other.
pub(super) async fn approved(k8s: &Arc<K8s>, policy: Policy) -> Result<Policy, Exit> {
    let Some(Approval { hash, .. }) = &policy.approval else { return Ok(policy) };
    let plan = k8s.read_plan(hash).await.map_err(|error| not_seen(&kube_failure(error)))?;
    if let Some(lines) = plan {
        // A plan that is in use stays among the latest ones.
        if let Err(error) = k8s.write_plan(&lines, WallClock.now()).await {
            tracing::debug!("the time of plan {hash} was not renewed: {error}");
        }
        return Ok(Policy { approval: Some(Approval { hash: hash.clone(), lines }), ..policy });
    }
    let why = k8s.names().complete(&format!(
        "no plan {hash} is stored in namespace {}. Make a plan, and approve its hash: osd-migrate -n NAMESPACE plan",
        k8s.namespace()
    ));
    let (ledger, _) = Ledgers::new(Arc::clone(k8s)).load().await.map_err(|error| not_loaded(&error))?;
    if ledger.in_flight().next().is_none() {
        return Err(failed(&why, Exit::WrongUsage));
    }
    tracing::warn!("{why}. This run only finishes the OSDs that are in progress");
    Ok(policy)
}
