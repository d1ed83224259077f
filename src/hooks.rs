//! Helm hooks: a preflight check before an upgrade, a start after it, and a restore before an uninstall.

use std::sync::Arc;
use std::time::Duration;

use crate::domain::plan::Questions;
use crate::domain::policy::Policy;
use crate::domain::preflight;
use crate::event_reporter::EventReporter;
use crate::exit::{Exit, ended, failed, not_loaded, not_seen};
use crate::k8s::{CRON_JOB, K8s, K8sError, Own, Started};
use crate::live::{Ledgers, Live, PodLease, WallClock, kube_failure};
use crate::ports::{Cluster, LedgerStore};
use crate::run::{End, Ports};
use crate::show;

/// Reports before an upgrade which OSDs would no longer be started. Changes nothing.
pub async fn preflight(k8s: Arc<K8s>, timeout: Duration, print: impl Fn(&str)) -> Exit {
    let ledger = match Ledgers(Arc::clone(&k8s)).load().await {
        Ok((ledger, _)) => ledger,
        Err(error) => return not_loaded(&error),
    };
    let mut live = Live::new(Arc::clone(&k8s), timeout);
    let seen = match live.observe(|_| Questions::default()).await {
        Ok(seen) => seen,
        Err(failure) => {
            if ledger.records.is_empty() && is_without_cluster(&k8s, false).await {
                print(&show::no_cluster(k8s.namespace()));
                return Exit::Finished;
            }
            print(&show::not_inspected());
            return not_seen(&failure);
        }
    };
    let found = preflight::preflight(&ledger, &seen);
    print(&show::preflight(&found, k8s.namespace()));
    if found.passes() { Exit::Finished } else { Exit::Refused }
}

/// Creates the Job of this revision after an install or an upgrade, and returns at once.
pub async fn start(k8s: &K8s, revision: u32) -> Exit {
    match k8s.start_run(revision).await {
        Ok(Started::Made(job)) => {
            tracing::info!(
                "created Job {job} from CronJob {CRON_JOB}. See: kubectl -n {} logs --follow job/{job}",
                k8s.namespace()
            );
            Exit::Finished
        }
        Ok(Started::Already(job)) => {
            tracing::info!("Job {job} of this revision already exists: nothing was created");
            Exit::Finished
        }
        Err(error) => not_seen(&kube_failure(error)),
    }
}

/// Returns whether there is no CephCluster, either not yet or no longer. A CephCluster requested by name may
/// be mistyped.
async fn is_without_cluster(k8s: &K8s, also_by_name: bool) -> bool {
    match k8s.about_cluster().await {
        Err(K8sError::NoRook | K8sError::NoCephCluster { name: None, .. }) => true,
        Err(K8sError::NoCephCluster { name: Some(_), .. }) => also_by_name,
        Ok(_) | Err(_) => false,
    }
}

/// Prepares an uninstall: refuses it while a record is open.
///
/// Otherwise nothing new is started. The same loop that would have done so in a run restores what the run
/// changed for its duration.
pub async fn uninstall(k8s: Arc<K8s>, timeout: Duration, own: Own) -> Exit {
    let mut store = Ledgers(Arc::clone(&k8s));
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
    let own = Arc::new(own);
    let mut ports = Ports {
        cluster: Live::new(Arc::clone(&k8s), timeout).acting_as(Arc::clone(&own)),
        store,
        lease: PodLease::new(Arc::clone(&k8s), Some(&own)),
        clock: WallClock,
        audience: EventReporter::new(Arc::clone(&k8s), Some(&own)),
    };
    match ports.run(&policy).await {
        Ok(End::Finished(_)) => {
            tracing::info!("{}", show::left_behind(k8s.namespace()));
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
            tracing::info!("{}", show::UNINSTALL_ALL_THE_SAME);
            ended(end, &policy)
        }
    }
}
