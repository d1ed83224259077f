//! `fence`: keeps Rook from acting on an edit of the CephCluster, as a Job.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;

use crate::commands::pod::own;
use crate::domain::next::FenceOutcome;
use crate::domain::policy::{FenceCommand, Policy};
use crate::event_reporter::EventReporter;
use crate::exit::{Exit, ended, failed, not_loaded, not_seen};
use crate::k8s::K8s;
use crate::live::{Ledgers, Live, PodLease, WallClock};
use crate::ports::{Clock, LedgerStore};
use crate::run::{End, Ports};
use crate::telemetry::RunTelemetry;

/// Time for which the command waits for Rook.
///
/// A reconcile in progress takes minutes. One that waits for an OSD gives up after 20 (1.20.6,
/// `maxTimeForProcessingOSDs`).
const ACKNOWLEDGED_WITHIN: TimeDelta = TimeDelta::minutes(30);

/// Sets the owner's fence and waits until it is in force, or removes it.
///
/// The loop of a run does so: it has the Lease, saves before it acts, and continues what a killed process
/// began.
pub(super) async fn fence(k8s: Arc<K8s>, timeout: Duration, remove: bool, metrics_port: Option<u16>) -> Exit {
    let own = match own(&k8s).await {
        Ok(own) => Arc::new(own),
        Err(failure) => return not_seen(&failure),
    };
    let mut store = Ledgers::new(Arc::clone(&k8s));
    if !remove {
        let refused = match store.load().await {
            Ok((ledger, _)) => FenceOutcome::refused_by(&ledger),
            Err(error) => return not_loaded(&error),
        };
        if let Some(outcome) = refused {
            return failed(&k8s.names().complete(&format!("{outcome} [{}]", outcome.code())), Exit::Refused);
        }
    }
    let until = WallClock.now() + ACKNOWLEDGED_WITHIN;
    let command = if remove { FenceCommand::Remove } else { FenceCommand::Set { until } };
    let policy = Policy {
        fence: Some(command),
        run: own.job_uid.clone(),
        failed_pods: own.failed_pods,
        ..Policy::default()
    };
    // The history of OSDs in progress is in the status: it stays.
    let stored = k8s.read_status().await.ok().flatten();
    let stored = stored.and_then(|text| serde_json::from_str(&text).ok());
    let confirmation = k8s.confirmation(&own, None).await;
    let mut ports = Ports {
        cluster: Live::new(Arc::clone(&k8s), timeout).acting_as(Arc::clone(&own)),
        store,
        lease: PodLease::new(Arc::clone(&k8s), Some(&own)),
        clock: WallClock,
        audience: EventReporter::new(Arc::clone(&k8s), Some(&own))
            .continuing(stored, confirmation)
            .with_telemetry(RunTelemetry::start(&own.job_uid, metrics_port, None).await.of_fence(remove)),
    };
    let end = ports.run(&policy).await;
    if matches!(end, Ok(End::Finished(_))) {
        ports.lease.release().await;
        ports.audience.end(None).await;
    }
    match end {
        Ok(End::LeftToOther) => {
            let what = if remove { "removed" } else { "set" };
            let why = format!(
                "the fence was not {what}: a run is in progress. Let it end, or end it: osd-migrate -n NAMESPACE \
                 cancel. To see its progress: osd-migrate -n NAMESPACE status"
            );
            failed(&k8s.names().complete(&why), Exit::Refused)
        }
        end => ended(end, &policy),
    }
}
