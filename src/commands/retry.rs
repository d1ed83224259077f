//! `retry`: an OSD that is quarantined is tried again.

use std::sync::Arc;

use crate::domain::osd::OsdId;
use crate::exit::{Exit, failed, not_loaded, not_seen};
use crate::k8s::K8s;
use crate::live::Ledgers;
use crate::ports::{LedgerStore, Saved};

/// Takes an OSD out of quarantine, in the ledger.
pub(super) async fn retry(k8s: Arc<K8s>, osd: OsdId) -> Exit {
    let mut store = Ledgers(k8s);
    let (ledger, version) = match store.load().await {
        Ok(loaded) => loaded,
        Err(error) => return not_loaded(&error),
    };
    let Some(ledger) = ledger.retried(osd) else {
        return failed(&format!("{osd} is not left alone; see osd-migrate status"), Exit::Refused);
    };
    match store.save(&ledger, version).await {
        Ok(Saved::Stored) => {
            tracing::info!(
                "{osd} is tried again by the next run: kubectl create job --from=cronjob/osd-migrate NAME"
            );
            Exit::Finished
        }
        Ok(Saved::Conflict) => failed("a run is at work; try again", Exit::TryAgain),
        Err(failure) => not_seen(&failure),
    }
}
