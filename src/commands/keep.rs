//! `keep`: requests to remove OSDs are withdrawn.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::commands::remove::conflict;
use crate::domain::ledger::{Ledger, Record};
use crate::domain::osd::OsdId;
use crate::domain::removal::{Cause, Requests};
use crate::exit::{Exit, failed, not_loaded, not_seen};
use crate::k8s::{K8s, request_key};
use crate::live::{Ledgers, kube_failure};
use crate::ports::LedgerStore;
use crate::show;

/// Withdraws requests: all of them, or none.
pub(super) async fn keep(k8s: Arc<K8s>, osds: &[OsdId]) -> Exit {
    let names = k8s.names();
    let requests = match k8s.read_requests().await {
        Ok(requests) => requests,
        Err(error) => return not_seen(&kube_failure(error)),
    };
    // The ledger is read after the requests: a removal that began meanwhile is seen.
    let ledger = match Ledgers(Arc::clone(&k8s)).load().await {
        Ok((ledger, _)) => ledger,
        Err(error) => return not_loaded(&error),
    };
    if let Some(osd) = osds.iter().find(|osd| !is_requested(**osd, &requests, &ledger)) {
        let why = format!("{osd} has no request for its removal. See: osd-migrate -n NAMESPACE status");
        return failed(&names.complete(&why), Exit::Refused);
    }
    if let Some(why) = osds.iter().find_map(|osd| by_switch(*osd, &requests, &ledger)) {
        return failed(&names.complete(&why), Exit::Refused);
    }
    let withdrawn: BTreeSet<OsdId> = osds.iter().copied().collect();
    if let Err(error) = k8s.withdraw_requests(&withdrawn).await {
        return conflict(error, &k8s);
    }
    let removal = |osd: &OsdId| ledger.records.get(osd).filter(|record| record.is_removal());
    let (late, kept): (Vec<OsdId>, Vec<OsdId>) =
        withdrawn.iter().partition(|osd| removal(osd).is_some_and(Record::is_committed));
    if !kept.is_empty() {
        let begun: Vec<OsdId> = kept.iter().copied().filter(|osd| removal(osd).is_some()).collect();
        tracing::info!("{}: {}", names.cluster_line(), names.complete(&show::kept(&kept, &begun)));
    }
    let late = late.iter().filter_map(removal).map(show::too_late).collect::<Vec<_>>();
    if late.is_empty() {
        return Exit::Finished;
    }
    failed(&names.complete(&late.join("; ")), Exit::Refused)
}

/// Returns how to keep an OSD that a switch of the run removes: there is no request to withdraw.
fn by_switch(osd: OsdId, requests: &Requests, ledger: &Ledger) -> Option<String> {
    let removal = ledger.records.get(&osd)?.removal().filter(|_| !requests.removals.contains_key(&osd))?;
    let switch = match removal.cause {
        Cause::Request => return None,
        Cause::Out => "run.removeOut",
        Cause::Directory => "run.dropDirectories",
    };
    Some(format!(
        "{osd} is removed without a request, because {switch} is on. To keep it, switch that off, or leave the OSD out \
         (run.skip), and start a run: the run restores its CRUSH weight if it is not stopped yet"
    ))
}

/// Returns whether a request for the OSD is stored, even one that can't be read, or its removal has begun.
fn is_requested(osd: OsdId, requests: &Requests, ledger: &Ledger) -> bool {
    requests.removals.contains_key(&osd)
        || requests.unreadable.contains(&request_key(osd))
        || ledger.records.get(&osd).is_some_and(Record::is_removal)
}
