//! `retry`: an OSD that is quarantined is tried again.

use std::sync::Arc;

use crate::domain::commands;
use crate::domain::osd::OsdId;
use crate::exit::{Exit, failed, not_loaded, not_seen};
use crate::k8s::K8s;
use crate::live::Ledgers;
use crate::ports::{LedgerStore, Saved};

/// Takes an OSD out of quarantine, in the ledger.
pub(super) async fn retry(k8s: Arc<K8s>, osd: OsdId) -> Exit {
    let names = k8s.names();
    let mut store = Ledgers(k8s);
    let (ledger, version) = match store.load().await {
        Ok(loaded) => loaded,
        Err(error) => return not_loaded(&error),
    };
    let Some(ledger) = ledger.retried(osd) else {
        let why = format!("{osd} is not quarantined. See: osd-migrate -n {} status", names.namespace);
        return failed(&why, Exit::Refused);
    };
    match store.save(&ledger, version).await {
        Ok(Saved::Stored) => {
            tracing::info!(
                "the next run tries {osd} again. Start it: {}",
                names.complete(commands::RUN_AGAIN)
            );
            Exit::Finished
        }
        Ok(Saved::Conflict) => {
            let again = names.complete(&commands::retry(osd));
            failed(&format!("a run wrote the ledger at the same time. Try again: {again}"), Exit::TryAgain)
        }
        Err(failure) => not_seen(&failure),
    }
}
