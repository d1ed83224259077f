//! `preflight`: Helm's hook before an upgrade. It checks and changes nothing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::commands::print::print;
use crate::commands::terminal::width;
use crate::domain::plan::Questions;
use crate::domain::preflight;
use crate::exit::{Exit, not_loaded, not_seen};
use crate::k8s::{K8s, K8sError};
use crate::layout::fitted;
use crate::live::{Ledgers, Live};
use crate::ports::{Cluster, LedgerStore};
use crate::show;

/// Reports before an upgrade which OSDs would no longer be started.
///
/// Changes nothing.
pub(super) async fn preflight(k8s: Arc<K8s>, timeout: Duration) -> Exit {
    let ledger = match Ledgers::new(Arc::clone(&k8s)).load().await {
        Ok((ledger, _)) => ledger,
        Err(error) => return not_loaded(&error),
    };
    let mut live = Live::new(Arc::clone(&k8s), timeout);
    let seen = match live.observe(&BTreeSet::new(), |_| Questions::default()).await {
        Ok(seen) => seen,
        Err(failure) => {
            if ledger.records.is_empty() && is_without_cluster(&k8s, false).await {
                return printed(&show::no_cluster(k8s.namespace()), Exit::Finished);
            }
            printed(&show::not_inspected(), Exit::Finished);
            return not_seen(&failure);
        }
    };
    let found = preflight::preflight(&ledger, &seen);
    let exit = if found.passes() { Exit::Finished } else { Exit::Refused };
    printed(&show::preflight(&found, k8s.namespace()), exit)
}

/// Prints what was found, and returns the exit code, or that of a failure to print.
fn printed(text: &str, exit: Exit) -> Exit {
    print(&fitted(text, width())).map_or_else(|failed| failed, |()| exit)
}

/// Returns whether there is no CephCluster, either not yet or no longer.
///
/// A CephCluster requested by name may be mistyped.
pub(super) async fn is_without_cluster(k8s: &K8s, also_by_name: bool) -> bool {
    match k8s.about_cluster().await {
        Err(K8sError::NoRook | K8sError::NoCephCluster { name: None, .. }) => true,
        Err(K8sError::NoCephCluster { name: Some(_), .. }) => also_by_name,
        Ok(_) | Err(_) => false,
    }
}
