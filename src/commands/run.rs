//! `run` and `provision`: the loop, as a Job.

use std::sync::Arc;
use std::time::Duration;

use crate::cli::{LogFormat, PlanOutput, TelemetryArgs};
use crate::commands::approve::approved;
use crate::commands::plan::planned;
use crate::commands::pod::{environment, of_environment, own, patiently};
use crate::commands::print::print;
use crate::domain::drift::Finding;
use crate::domain::history::ConfirmedBy;
use crate::domain::plan::CRASH_LOOP;
use crate::domain::policy::Policy;
use crate::event_reporter::EventReporter;
use crate::exit::{Exit, ended, needs_only_confirmation, not_seen};
use crate::k8s::K8s;
use crate::live::{Ledgers, Live, PodLease, WokenClock};
use crate::memory::{cpu_time, peak_kib};
use crate::run::{End, Ports};
use crate::telemetry::{OtlpSettings, RunTelemetry};

/// Works until everything is done, or until a person is needed.
pub(super) async fn run(k8s: Arc<K8s>, timeout: Duration, policy: Policy, telemetry: TelemetryArgs) -> Exit {
    let policy = match approved(&k8s, of_environment(policy)).await {
        Ok(policy) => policy,
        Err(exit) => return exit,
    };
    let own = match patiently(async || own(&k8s).await).await {
        Ok(own) => Arc::new(own),
        Err(failure) => return not_seen(&failure),
    };
    let mut live = Live::new(Arc::clone(&k8s), timeout);
    let drift = plan_at_start(&mut live, &k8s, (&policy, own.failed_pods), telemetry.log_format).await;
    let only_new = policy.only_new;
    let policy = Policy { run: own.job_uid.clone(), failed_pods: own.failed_pods, ..policy };
    // Without the former status, the progress begins again: nothing is decided by it.
    let stored = k8s.read_status().await.ok().flatten().and_then(|text| serde_json::from_str(&text).ok());
    let by_plan = policy.approval.as_ref().map(|plan| ConfirmedBy::Plan(plan.hash.to_string()));
    let by_arguments = by_plan.or_else(|| policy.confirmed.then_some(ConfirmedBy::Flag));
    let confirmation = k8s.confirmation(&own, by_arguments).await;
    let mut ports = Ports {
        cluster: live.acting_as(Arc::clone(&own)).watching(),
        store: Ledgers::new(Arc::clone(&k8s)),
        lease: PodLease::new(Arc::clone(&k8s), Some(&own)).waiting(own.resumes),
        clock: WokenClock::new(&k8s),
        audience: EventReporter::new(Arc::clone(&k8s), Some(&own))
            .continuing(stored, confirmation)
            .with_cluster_status(policy.cluster_status)
            .with_telemetry(
                RunTelemetry::start(
                    &own.job_uid,
                    telemetry.metrics_port,
                    OtlpSettings::read(environment).as_ref(),
                )
                .await,
            ),
    };
    ports.audience.drift(&drift).await;
    let end = ports.run(&policy).await;
    let was_confirmed = ports.audience.was_confirmed();
    // At debug level only: the last visible line is the result of the run.
    tracing::debug!(
        "sent {} commands to Ceph and {} requests to the API server; {} KiB of memory at most, {:.1} s of CPU",
        ports.cluster.commands_sent(),
        k8s.requests(),
        peak_kib(),
        cpu_time().as_secs_f64()
    );
    let left_to_other = matches!(end, Ok(End::LeftToOther));
    let error = end.as_ref().err().map(ToString::to_string);
    let exit = match end {
        Ok(End::Finished(summary)) if only_new && summary.leaves_unconfirmed_new() => Exit::Refused,
        Ok(End::Finished(summary)) if needs_only_confirmation(&summary, was_confirmed, own.scheduled) => {
            Exit::Finished
        }
        end => ended(end, &policy),
    };
    // A pod that is to be tried again, or that leaves the work to another, does not end the run.
    if exit != Exit::TryAgain && !left_to_other {
        ports.audience.failed(error.as_deref()).await;
        ports.lease.release().await;
        ports.audience.end(error.as_deref()).await;
    }
    exit
}

/// Returns whether the run observes the cluster for its plan, before it knows whether it must halt.
///
/// After so many failed pods the observation may be what ends each of them.
fn prints_plan(failed_pods: u32) -> bool {
    failed_pods < CRASH_LOOP
}

/// Prints what the run would do, and returns the drift findings.
///
/// A failure here may pass: the run observes again and again, and knows whether a stopped OSD must not be
/// left.
async fn plan_at_start(
    live: &mut Live,
    k8s: &Arc<K8s>,
    (policy, failed_pods): (&Policy, u32),
    format: LogFormat,
) -> Vec<Finding> {
    if !prints_plan(failed_pods) {
        return Vec::new();
    }
    let planned = planned(live, Arc::clone(k8s), policy, PlanOutput::Table, false).await;
    planned.map(|(text, drift)| (print_at_start(&text, format), drift).1).unwrap_or_default()
}

/// Prints the plan at the start of a run.
///
/// A log of JSON objects has it as one of them: stdout and stderr of a pod are one log.
fn print_at_start(plan: &str, format: LogFormat) {
    match format {
        // A run does not end because of its output.
        LogFormat::Text => print(plan).unwrap_or(()),
        LogFormat::Json => tracing::info!(code = "plan", "{plan}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_is_not_printed_by_a_pod_that_may_have_to_halt() {
        assert!(prints_plan(CRASH_LOOP - 1));
        assert!(!prints_plan(CRASH_LOOP));
    }
}
