//! `uninstall`: Helm's hook before an uninstall. It restores what runs changed temporarily.

use std::sync::Arc;
use std::time::Duration;

use crate::commands::pod::own;
use crate::commands::preflight::is_without_cluster;
use crate::domain::policy::Policy;
use crate::event_reporter::EventReporter;
use crate::exit::{Exit, ended, failed, not_loaded, not_seen};
use crate::k8s::K8s;
use crate::live::{Ledgers, Live, PodLease, WallClock};
use crate::ports::LedgerStore;
use crate::run::{End, Ports};
use crate::show;

/// Prepares an uninstall: refuses it while a record is open.
///
/// Otherwise nothing new is started. The same loop that would have done so in a run restores what the run
/// changed for its duration.
pub(super) async fn uninstall(k8s: Arc<K8s>, timeout: Duration) -> Exit {
    let own = match own(&k8s).await {
        Ok(own) => Arc::new(own),
        Err(failure) => return not_seen(&failure),
    };
    let mut store = Ledgers::new(Arc::clone(&k8s));
    let ledger = match store.load().await {
        Ok((ledger, _)) => ledger,
        Err(error) => return not_loaded(&error),
    };
    if let Some(why) = show::still_open(&ledger, k8s.namespace()) {
        return failed(&why, Exit::Refused);
    }
    // The fence went with the CephCluster and the OSD flags with Ceph: nothing is left to restore, and no
    // cluster can be queried. If the name of the CephCluster was mistyped, leaving here would forget what
    // must be restored.
    if is_without_cluster(&k8s, !ledger.run.restores()).await {
        tracing::info!("{}", show::left_without_cluster(&ledger, k8s.namespace()));
        return Exit::Finished;
    }
    let policy = Policy { leaves: true, run: own.job_uid.clone(), ..Policy::default() };
    let mut ports = Ports {
        cluster: Live::new(Arc::clone(&k8s), timeout).acting_as(Arc::clone(&own)),
        store,
        lease: PodLease::new(Arc::clone(&k8s), Some(&own)),
        clock: WallClock,
        // Restores the status of the CephCluster that a killed run left.
        audience: EventReporter::new(Arc::clone(&k8s), Some(&own)).with_cluster_status(true),
    };
    match ports.run(&policy).await {
        Ok(End::Finished(summary)) => {
            tracing::info!("{}", show::left_behind(&summary.changes, k8s.namespace()));
            Exit::Finished
        }
        Ok(End::LeftToOther) => {
            let namespace = k8s.namespace();
            let why = format!(
                "not uninstalled: a run is in progress. To end it: osd-migrate -n {namespace} cancel"
            );
            failed(&why, Exit::Refused)
        }
        end @ (Ok(End::Halted(_)) | Err(_)) => {
            tracing::info!("{}", show::UNINSTALL_WITHOUT_HOOK);
            ended(end, &policy)
        }
    }
}
