//! `run` and `provision`: the loop, as a Job.

use std::sync::Arc;
use std::time::Duration;

use crate::cli::PlanOutput;
use crate::commands::plan::print_plan;
use crate::commands::pod::{of_environment, own};
use crate::domain::policy::Policy;
use crate::event_reporter::EventReporter;
use crate::exit::{Exit, ended, not_seen};
use crate::k8s::K8s;
use crate::live::{Ledgers, Live, PodLease, WallClock};
use crate::memory::peak_kib;
use crate::run::{End, Ports};

/// Works until everything is done, or until a person is needed.
pub(super) async fn run(k8s: Arc<K8s>, timeout: Duration, policy: Policy) -> Exit {
    let policy = of_environment(policy);
    let mut live = Live::new(Arc::clone(&k8s), timeout);
    // A failure here may pass: the run observes again and again, and knows whether a stopped OSD must not be
    // left.
    let drift =
        print_plan(&mut live, Arc::clone(&k8s), &policy, PlanOutput::Table, false).await.unwrap_or_default();
    let own = match own(&k8s).await {
        Ok(own) => Arc::new(own),
        Err(failure) => return not_seen(&failure),
    };
    let only_new = policy.only_new;
    let policy = Policy { run: own.job_uid.clone(), failed_pods: own.failed_pods, ..policy };
    // Without the former status, the progress begins again: nothing is decided by it.
    let stored = k8s.read_status().await.ok().flatten();
    let stored = stored.and_then(|text| serde_json::from_str(&text).ok());
    let confirmation = k8s.confirmation(&own, policy.confirmed).await;
    let mut ports = Ports {
        cluster: live.acting_as(Arc::clone(&own)),
        store: Ledgers(Arc::clone(&k8s)),
        lease: PodLease::new(Arc::clone(&k8s), Some(&own)),
        clock: WallClock,
        audience: EventReporter::new(Arc::clone(&k8s), Some(&own)).continuing(stored, confirmation),
    };
    ports.audience.drift(&drift).await;
    let end = ports.run(&policy).await;
    let acted = ports.audience.has_acted();
    // At debug level only: the last visible line is the result of the run.
    tracing::debug!(
        "sent {} commands to Ceph and {} requests to the API server; {} KiB of memory at most",
        ports.cluster.commands_sent(),
        k8s.requests(),
        peak_kib()
    );
    match end {
        // A run that is not confirmed only reports: that is not a failure. A confirmation that was removed
        // during a run ends that run like a cancel.
        Ok(End::Finished(summary)) if summary.needs_only_confirmation() && (own.scheduled || !acted) => {
            Exit::Finished
        }
        Ok(End::Finished(summary)) if only_new && !summary.unconfirmed_nodes.is_empty() => Exit::Refused,
        end => ended(end, &policy),
    }
}
