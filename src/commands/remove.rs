//! `remove`: a person requests that OSDs are removed. A run removes them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::cli::RemoveArgs;
use crate::commands::print::print;
use crate::commands::terminal::width;
use crate::domain::gate::{self, Gate};
use crate::domain::ledger::{Ledger, Record};
use crate::domain::observation::{Observation, Slot};
use crate::domain::osd::{OsdFsid, OsdId};
use crate::domain::plan::{self, Questions};
use crate::domain::removal::{DiskAfter, RemovalRequest};
use crate::exit::{Exit, failed, not_loaded, not_seen};
use crate::k8s::{K8s, K8sError};
use crate::layout::fitted;
use crate::live::{Ledgers, Live, WallClock, kube_failure};
use crate::ports::{Clock, Cluster, LedgerStore};
use crate::show::{self, ToRemove};

/// Lists what would be removed; if that is confirmed, stores the requests.
pub(super) async fn remove(k8s: Arc<K8s>, timeout: Duration, args: &RemoveArgs) -> Exit {
    let ledger = match Ledgers(Arc::clone(&k8s)).load().await {
        Ok((ledger, _)) => ledger,
        Err(error) => return not_loaded(&error),
    };
    let observed = Live::new(Arc::clone(&k8s), timeout).observe(|_| Questions::default()).await;
    let seen = match observed {
        Ok(seen) => seen,
        Err(failure) => return not_seen(&failure),
    };
    let (names, wanted) = (k8s.names(), (DiskAfter::from(args.disk), args.keep_id));
    let osds: BTreeSet<OsdId> = args.osds.iter().copied().collect();
    let found: Result<Vec<ToRemove>, String> =
        osds.iter().map(|osd| to_remove(*osd, wanted, &ledger, &seen)).collect();
    let found = match found {
        Ok(found) => found,
        Err(why) => return failed(&names.complete(&why), Exit::Refused),
    };
    let is_confirmed = args.confirm.is_some();
    if is_confirmed && let Err(error) = k8s.request_removals(&requests(&found)).await {
        return conflict(error, &k8s);
    }
    let text = show::requested_text(&found, is_confirmed, width());
    let exit = if is_confirmed { Exit::Finished } else { Exit::Refused };
    print(&fitted(&names.complete(&text), width())).map_or_else(|exit| exit, |()| exit)
}

/// Returns the exit code of requests that could not be written.
pub(super) fn conflict(error: K8sError, k8s: &K8s) -> Exit {
    if error.is_overtaken() {
        let why = "other clients changed the ConfigMap osd-migrate-requests at the same time, and nothing was \
                   written. Try again";
        return failed(&k8s.names().complete(why), Exit::TryAgain);
    }
    not_seen(&kube_failure(error))
}

fn requests(found: &[ToRemove]) -> BTreeMap<OsdId, RemovalRequest> {
    let since = Some(WallClock.now());
    let request = |one: &ToRemove| {
        let (fsid, disk, keep_id) = (one.fsid, one.disk, one.keep_id);
        (one.osd, RemovalRequest { fsid, disk, keep_id, node: None, since })
    };
    found.iter().map(request).collect()
}

/// Returns what would be removed of an OSD; the error is a sentence that says why it can't be removed.
fn to_remove(
    osd: OsdId,
    (disk, keep_id): (DiskAfter, bool),
    ledger: &Ledger,
    seen: &Observation,
) -> Result<ToRemove, String> {
    let Some(slot) = seen.ceph.slots.get(&osd) else {
        return Err(format!("{osd} does not exist. See: ceph osd tree"));
    };
    if let Some(why) = ledger.records.get(&osd).and_then(|record| held_by(record, (disk, keep_id))) {
        return Err(why);
    }
    let fsid = fsid_of(osd, slot)?;
    let gate = gate::first_of([gate::removable(osd, keep_id, seen), gate::fits_place(osd, disk, seen)]);
    if let Gate::Shut(reason) | Gate::Unknown(reason) = gate {
        return Err(format!("{reason} [{}]", reason.code()));
    }
    let metadata = slot.metadata.as_ref();
    let directory = seen.kube.daemons.get(&osd).and_then(|daemon| daemon.data_dir.clone());
    // The disk below a directory is the node's own.
    let devices = directory.or_else(|| {
        metadata.map(|known| {
            let is_named = !known.stable_devices.is_empty();
            if is_named { known.stable_devices.join(" ") } else { known.devices.join(" ") }
        })
    });
    Ok(ToRemove {
        osd,
        fsid,
        disk,
        keep_id,
        host: plan::host_of(osd, seen),
        devices,
        used_bytes: slot.used_bytes,
        up: slot.up,
    })
}

fn fsid_of(osd: OsdId, slot: &Slot) -> Result<OsdFsid, String> {
    slot.fsid.ok_or_else(|| {
        format!(
            "{osd} is destroyed: it has no data, and nothing is left of it but its id. To give up the id: ceph osd purge \
             {} --yes-i-really-mean-it",
            osd.0
        )
    })
}

/// Returns why an OSD in progress can't be requested to be removed.
///
/// A removal that has begun by an equal request is no error.
fn held_by(record: &Record, wanted: (DiskAfter, bool)) -> Option<String> {
    let osd = record.osd;
    if record.quarantine.is_some() {
        return Some(format!(
            "{osd} is quarantined after a failure. Let a run finish it first: osd-migrate -n NAMESPACE retry {osd}"
        ));
    }
    match record.removal() {
        Some(removal) if (removal.disk, removal.keep_id) == wanted => None,
        Some(removal) => Some(format!(
            "the removal of {osd} has begun with --disk {}{}. To change that, withdraw it first: osd-migrate -n \
             NAMESPACE keep {osd}",
            removal.disk.code(),
            if removal.keep_id { " --keep-id" } else { "" }
        )),
        None => Some(format!(
            "{osd} is in progress, and gets another fsid. Request its removal when that is done: osd-migrate -n \
             NAMESPACE status"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ledger::{Quarantine, Strategy};
    use crate::domain::next::Next;
    use crate::domain::policy::Policy;
    use crate::domain::removal::Removal;
    use crate::sim::example;

    const ONE: OsdId = OsdId(1);

    fn seen() -> Observation {
        example::two_replicas_with_a_spare_osd().observe(|_| Questions::default())
    }

    fn wiped(osd: OsdId, ledger: &Ledger, seen: &Observation) -> Result<ToRemove, String> {
        to_remove(osd, (DiskAfter::Wipe, false), ledger, seen)
    }

    /// Returns the ledger after a run has begun with the first OSD; `removes` by the requests of `seen`.
    fn begun(seen: &Observation) -> Ledger {
        let policy = Policy { confirmed: true, removals: true, ..Policy::default() };
        let mut ledger = Ledger::default();
        let mut seen = seen.clone();
        let may = crate::domain::observation::Emptiable::Yes { moved_bytes: 1, fullest: None };
        seen.ceph.emptiable = seen.ceph.slots.keys().map(|osd| (*osd, may.clone())).collect();
        for _ in 0..3 {
            match plan::plan(&policy, &ledger, &seen) {
                Next::Save { ledger: saved, .. } => ledger = saved,
                Next::Do(_) | Next::Wait(_) | Next::Finished(_) | Next::Halt(_) => break,
            }
        }
        ledger
    }

    #[test]
    fn request_names_the_fsid_of_the_slot() {
        let seen = seen();
        let found = wiped(ONE, &Ledger::default(), &seen).unwrap();
        assert_eq!(Some(found.fsid), seen.ceph.slots[&ONE].fsid);
        let request = &requests(std::slice::from_ref(&found))[&ONE];
        assert_eq!((request.fsid, request.disk), (found.fsid, DiskAfter::Wipe));
        assert!(request.since.is_some());
    }

    #[test]
    fn osd_that_cannot_be_removed_is_not_requested() {
        let ledger = Ledger::default();
        let wrong = |osd: OsdId, seen: &Observation| wiped(osd, &ledger, seen).unwrap_err();
        assert!(wrong(OsdId(99), &seen()).contains("osd.99 does not exist. See: ceph osd tree"));
        let mut destroyed = seen();
        destroyed.ceph.slots.get_mut(&ONE).unwrap().fsid = None;
        assert!(wrong(ONE, &destroyed).contains("ceph osd purge 1 --yes-i-really-mean-it"));
        let mut gone = seen();
        gone.kube.daemons.remove(&ONE);
        let why = wrong(ONE, &gone);
        assert!(why.contains("it has no Deployment") && why.ends_with(" [not-removable]"), "{why}");
        let mut directory = seen();
        directory.kube.daemons.get_mut(&ONE).unwrap().data_dir = Some("/var/lib/rook/osd1".to_owned());
        let marked = to_remove(ONE, (DiskAfter::Mark, false), &ledger, &directory).unwrap_err();
        assert!(marked.contains("only a disk gets a mark"), "{marked}");
        let found = wiped(ONE, &ledger, &directory).unwrap();
        assert_eq!(found.devices.as_deref(), Some("/var/lib/rook/osd1"));
        directory.kube.declaration.storage.directories = ["/var/lib/rook".to_owned()].into();
        let why = wrong(ONE, &directory);
        assert!(why.contains("/var/lib/rook of osd.1") && why.ends_with(" [directory-declared]"), "{why}");
    }

    #[test]
    fn osd_in_progress_is_requested_only_if_it_is_being_removed() {
        let found = seen();
        let mut ledger = begun(&found);
        let osd = *ledger.records.keys().next().expect("a migration has begun");
        assert!(!ledger.records[&osd].is_removal());
        let why = wiped(osd, &ledger, &found).unwrap_err();
        assert!(why.contains("gets another fsid"), "{why}");
        ledger.records.get_mut(&osd).unwrap().strategy = Strategy::Removal(Removal::default());
        assert!(wiped(osd, &ledger, &found).is_ok(), "the same request again");
        let why = to_remove(osd, (DiskAfter::Leave, false), &ledger, &found).unwrap_err();
        assert!(why.contains("has begun with --disk wipe") && why.contains(" keep osd."), "{why}");
        let quarantine = Quarantine { why: "its disk failed".to_owned(), since: found.at };
        ledger.records.get_mut(&osd).unwrap().quarantine = Some(quarantine);
        let why = wiped(osd, &ledger, &found).unwrap_err();
        assert!(why.contains("is quarantined") && why.contains(" retry osd."), "{why}");
    }
}
