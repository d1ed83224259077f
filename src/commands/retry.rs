//! `retry`: OSDs that are quarantined are tried again.

use std::sync::Arc;

use crate::domain::commands;
use crate::domain::history::RunHistory;
use crate::domain::osd::OsdId;
use crate::exit::{Exit, failed, not_loaded, not_seen};
use crate::k8s::K8s;
use crate::live::{Ledgers, now};
use crate::ports::{LedgerStore, Saved};
use crate::report::{Said, history_not_written};

/// Takes OSDs out of quarantine, in the ledger: all of them, or none.
pub(super) async fn retry(k8s: Arc<K8s>, osds: &[OsdId]) -> Exit {
    let names = k8s.names();
    let mut store = Ledgers::new(Arc::clone(&k8s));
    let (ledger, version) = match store.load().await {
        Ok(loaded) => loaded,
        Err(error) => return not_loaded(&error),
    };
    let retried = match ledger.all_retried(osds, now()) {
        Ok(retried) => retried,
        Err(osd) => {
            let why = format!("{osd} is not quarantined. See: osd-migrate -n NAMESPACE status");
            return failed(&names.complete(&why), Exit::Refused);
        }
    };
    let entries = stored_history(&k8s).await.unwrap_or_default().before_retry(&ledger, osds);
    if let Err(failure) = store.append(&entries).await {
        tracing::warn!("{}", history_not_written(&entries, &failure));
    }
    let osds = osds.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    match store.save(&retried, version).await {
        Ok(Saved::Stored) => {
            tracing::info!(
                "the next run tries again: {osds}. Start it: {}",
                names.complete(commands::RUN_AGAIN)
            );
            Exit::Finished
        }
        Ok(Saved::Conflict) => {
            let why = format!(
                "a run wrote the ledger at the same time. Try again: osd-migrate -n NAMESPACE retry {osds}"
            );
            failed(&names.complete(&why), Exit::TryAgain)
        }
        Err(failure) => not_seen(&failure),
    }
}

/// Reads what runs observed about OSDs in progress; none if it cannot be read.
async fn stored_history(k8s: &K8s) -> Option<RunHistory> {
    let status = k8s.read_status().await.ok().flatten()?;
    serde_json::from_str::<Said>(&status).ok()?.history
}
