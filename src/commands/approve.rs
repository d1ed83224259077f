//! Plans that a person approves: stored by `plan`, read by the run.

use std::sync::Arc;
use std::time::Duration;

use crate::commands::pod::patiently;
use crate::domain::approval::{Approval, PlanHash, PlanLines};
use crate::domain::policy::Policy;
use crate::exit::{Exit, failed, not_loaded, not_seen};
use crate::k8s::K8s;
use crate::live::{Ledgers, WallClock, kube_failure};
use crate::ports::{Clock, Failure, LedgerStore};

/// Time after which a run renews the time of its plan.
///
/// A `plan` each minute while small OSDs get done stores some ten plans within it: half of those that are
/// kept.
const RENEW_AFTER: Duration = Duration::from_secs(600);

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

/// Reads the plan that the policy of a run names, if it names one.
///
/// If the plan is not stored, the command ends, unless OSDs are in progress: the run finishes them, and
/// starts on no other.
pub(super) async fn approved(k8s: &Arc<K8s>, policy: Policy) -> Result<Policy, Exit> {
    let Some(Approval { hash, .. }) = &policy.approval else { return Ok(policy) };
    let plan = patiently(async || stored(k8s, hash).await).await.map_err(|failure| not_seen(&failure))?;
    if let Some(lines) = plan {
        let approval = Approval { hash: hash.clone(), lines };
        tokio::spawn(stay_among_the_latest(Arc::clone(k8s), approval.lines.clone()));
        return Ok(Policy { approval: Some(approval), ..policy });
    }
    let why = k8s.names().complete(&not_stored(hash, k8s));
    let (ledger, _) = Ledgers::new(Arc::clone(k8s)).load().await.map_err(|error| not_loaded(&error))?;
    if ledger.in_flight().next().is_none() {
        return Err(failed(&why, Exit::WrongUsage));
    }
    tracing::warn!("{why}. This run only finishes the OSDs that are in progress");
    Ok(policy)
}

/// Reads the plan that a policy names, for a command that only shows what a run would do.
///
/// If the plan is not stored, the command shows what there is to approve: the chart may name a plan that no
/// longer exists, and this command makes the next one.
pub(super) async fn approved_or_none(k8s: &Arc<K8s>, policy: Policy) -> Result<Policy, Exit> {
    let Some(Approval { hash, .. }) = &policy.approval else { return Ok(policy) };
    let lines = stored(k8s, hash).await.map_err(|failure| not_seen(&failure))?;
    if lines.is_none() {
        tracing::warn!("{}", k8s.names().complete(&not_stored(hash, k8s)));
    }
    let approval = lines.map(|lines| Approval { hash: hash.clone(), lines });
    Ok(Policy { approval, ..policy })
}

/// Reads a plan, and renews its time: a plan that is in use stays among the latest ones.
async fn stored(k8s: &K8s, hash: &PlanHash) -> Result<Option<PlanLines>, Failure> {
    let plan = k8s.read_plan(hash).await.map_err(kube_failure)?;
    if let Some(lines) = &plan {
        renew(k8s, lines).await;
    }
    Ok(plan)
}

/// Renews the time of a plan as long as the run goes on: each `plan` after an OSD is done stores another one.
async fn stay_among_the_latest(k8s: Arc<K8s>, plan: PlanLines) {
    loop {
        WallClock.sleep(RENEW_AFTER).await;
        renew(&k8s, &plan).await;
    }
}

async fn renew(k8s: &K8s, plan: &PlanLines) {
    if let Err(error) = k8s.write_plan(plan, WallClock.now()).await {
        tracing::debug!("the time of plan {} was not renewed: {error}", plan.hash());
    }
}

fn not_stored(hash: &PlanHash, k8s: &K8s) -> String {
    format!(
        "no plan {hash} is stored in namespace {}. Make a plan, and approve its hash: osd-migrate -n NAMESPACE plan",
        k8s.namespace()
    )
}
