//! `remove`: a person requests that OSDs are removed. A run removes them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::cli::RemoveArgs;
use crate::commands::print::print;
use crate::commands::terminal::width;
use crate::commands::undeclared::find_undeclared;
use crate::domain::gate::{self, Gate};
use crate::domain::ledger::{Ledger, Record};
use crate::domain::node_osds;
use crate::domain::observation::{Observation, Slot};
use crate::domain::osd::{NodeName, OsdFsid, OsdId};
use crate::domain::plan::{self, Questions};
use crate::domain::removal::{DiskAfter, RemovalRequest};
use crate::domain::undeclared;
use crate::exit::{Exit, failed, not_loaded, not_seen};
use crate::k8s::{K8s, K8sError};
use crate::layout::fitted;
use crate::live::{Ledgers, Live, WallClock, kube_failure};
use crate::ports::{Clock, Cluster, LedgerStore};
use crate::show::{self, Asked, By, ToRemove};

/// Lists what would be removed; if that is confirmed, stores the requests.
pub(super) async fn remove(k8s: Arc<K8s>, timeout: Duration, args: &RemoveArgs) -> Exit {
    let ledger = match Ledgers::new(Arc::clone(&k8s)).load().await {
        Ok((ledger, _)) => ledger,
        Err(error) => return not_loaded(&error),
    };
    let mut live = Live::new(Arc::clone(&k8s), timeout);
    let seen = match live.observe(&BTreeSet::new(), |_| Questions::default()).await {
        Ok(seen) => seen,
        Err(failure) => return not_seen(&failure),
    };
    let refused = |why: String| failed(&k8s.names().complete(&why), Exit::Refused);
    if args.undeclared {
        return remove_undeclared(&k8s, live, &ledger, seen, args).await;
    }
    let Some(node) = args.node.clone().map(NodeName) else {
        let osds = args.osds.iter().copied().collect();
        return match all_to_remove(&osds, &Wanted::of(args, None), &ledger, &seen) {
            Ok(found) => request(&k8s, &Asked { found, by: By::Osds, remarks: Vec::new() }, args).await,
            Err(why) => refused(why),
        };
    };
    let (found, mut remarks) = match of_node(&node, args, &ledger, &seen) {
        Ok(found) => found,
        Err(why) => return refused(why),
    };
    match k8s.mons_and_mgrs(&node).await {
        Ok(others) => remarks.extend(show::other_daemons(&node, &others)),
        Err(error) => return not_seen(&kube_failure(error)),
    }
    request(&k8s, &Asked { found, by: By::Node(node), remarks }, args).await
}

/// Returns the OSDs of a node, and a remark about each host in CRUSH.
///
/// The error is a sentence: no OSD is on the node, or one of them can't be removed.
fn of_node(
    node: &NodeName,
    args: &RemoveArgs,
    ledger: &Ledger,
    seen: &Observation,
) -> Result<(Vec<ToRemove>, Vec<String>), String> {
    let on_it = node_osds::on(node, seen)?;
    let found = all_to_remove(&on_it.osds, &Wanted::of(args, Some(node.clone())), ledger, seen);
    let found = found.map_err(|why| format!("nothing was requested for node {node}: {why}"))?;
    Ok((found, on_it.of_hosts()))
}

/// Lists the OSDs that the CephCluster no longer declares; if that is confirmed, stores the requests.
async fn remove_undeclared(
    k8s: &Arc<K8s>,
    live: Live,
    ledger: &Ledger,
    seen: Observation,
    args: &RemoveArgs,
) -> Exit {
    let refused = |why: String| failed(&k8s.names().complete(&why), Exit::Refused);
    if let Some(why) = undeclared::refused(&seen) {
        return refused(format!("nothing was requested: {why}"));
    }
    let (found, seen) = match find_undeclared(k8s, live, seen).await {
        Ok(found) => found,
        Err(exit) => return exit,
    };
    let osds = found.undeclared.keys().copied().collect();
    match all_to_remove(&osds, &Wanted::of(args, None), ledger, &seen) {
        Ok(to_remove) => {
            let remarks = show::undeclared(&found);
            request(k8s, &Asked { found: to_remove, by: By::Undeclared, remarks }, args).await
        }
        Err(why) => refused(format!("nothing was requested: {why}")),
    }
}

/// Prints the OSDs; if that is confirmed, stores the requests before.
async fn request(k8s: &K8s, asked: &Asked, args: &RemoveArgs) -> Exit {
    let is_confirmed = args.confirm.is_some() && !asked.found.is_empty();
    if is_confirmed && let Err(error) = k8s.request_removals(&requests(&asked.found)).await {
        return conflict(error, k8s);
    }
    let text = show::requested_text(asked, is_confirmed, width());
    let exit = if is_confirmed { Exit::Finished } else { Exit::Refused };
    print(&fitted(&k8s.names().complete(&text), width())).map_or_else(|exit| exit, |()| exit)
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
        let ToRemove { fsid, disk, keep_id, ref node, .. } = *one;
        (one.osd, RemovalRequest { fsid, disk, keep_id, node: node.clone(), since })
    };
    found.iter().map(request).collect()
}

/// Removal that the arguments ask for, for each of the OSDs.
struct Wanted {
    disk: DiskAfter,
    keep_id: bool,
    node: Option<NodeName>,
}

impl Wanted {
    fn of(args: &RemoveArgs, node: Option<NodeName>) -> Self {
        Self { disk: DiskAfter::from(args.disk), keep_id: args.keep_id, node }
    }

    fn of_fsid(&self, fsid: OsdFsid) -> RemovalRequest {
        let (disk, keep_id, node) = (self.disk, self.keep_id, self.node.clone());
        RemovalRequest { disk, keep_id, node, ..RemovalRequest::of(fsid) }
    }
}

/// Returns what would be removed of each OSD; the error is a sentence about the first that can't be removed.
fn all_to_remove(
    osds: &BTreeSet<OsdId>,
    wanted: &Wanted,
    ledger: &Ledger,
    seen: &Observation,
) -> Result<Vec<ToRemove>, String> {
    osds.iter().map(|osd| to_remove(*osd, wanted, ledger, seen)).collect()
}

/// Returns what would be removed of an OSD; the error is a sentence that says why it can't be removed.
fn to_remove(osd: OsdId, wanted: &Wanted, ledger: &Ledger, seen: &Observation) -> Result<ToRemove, String> {
    let Some(slot) = seen.ceph.slots.get(&osd) else {
        return Err(format!("{osd} does not exist. See: ceph osd tree"));
    };
    if let Some(why) = ledger.records.get(&osd).and_then(|record| held_by(record, slot, wanted)) {
        return Err(why);
    }
    let dead = ledger.records.get(&osd).and_then(|record| record.dead_in(slot));
    let fsid = dead.map_or_else(|| fsid_of(osd, slot), Ok)?;
    let place = gate::fits_place(osd, wanted.disk, seen);
    // One in quarantine has a record.
    let removable = if dead.is_some() { gate::removable } else { gate::can_begin };
    let gate = gate::first_of([removable(osd, wanted.keep_id, seen), place]);
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
        disk: wanted.disk,
        keep_id: wanted.keep_id,
        node: wanted.node.clone(),
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
/// A removal that has begun by an equal request is no error. Nor is that of a quarantined OSD that is dead.
fn held_by(record: &Record, slot: &Slot, wanted: &Wanted) -> Option<String> {
    let osd = record.osd;
    match (&record.quarantine, record.dead_in(slot).is_some()) {
        (None, _) => {}
        (Some(_), true) => return None,
        (Some(_), false) => {
            return Some(format!(
                "{osd} is quarantined after a failure. Let a run finish it first: osd-migrate -n NAMESPACE retry {osd}"
            ));
        }
    }
    match record.removal() {
        Some(removal) if removal.is_as_in(&wanted.of_fsid(record.old)) => None,
        Some(removal) => {
            let keep_id = if removal.keep_id { " --keep-id" } else { "" };
            let node = if removal.whole_node { format!(" --node {}", record.node) } else { String::new() };
            Some(format!(
                "the removal of {osd} has begun with --disk {}{keep_id}{node}. To change that, withdraw it first: \
                 osd-migrate -n NAMESPACE keep {osd}",
                removal.disk.code(),
            ))
        }
        None => Some(format!(
            "{osd} is in progress, and gets another fsid. Request its removal when that is done: osd-migrate -n \
             NAMESPACE status"
        )),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::domain::ledger::{Quarantine, Strategy};
    use crate::domain::next::Next;
    use crate::domain::observation::SlotState;
    use crate::domain::policy::Policy;
    use crate::domain::removal::Removal;
    use crate::sim::example;

    const ONE: OsdId = OsdId(1);

    pub(in crate::commands) fn seen() -> Observation {
        example::two_replicas_with_a_spare_osd().observe(|_| Questions::default())
    }

    fn wiped(osd: OsdId, ledger: &Ledger, seen: &Observation) -> Result<ToRemove, String> {
        to_remove(osd, &wanted(DiskAfter::Wipe, None), ledger, seen)
    }

    fn wanted(disk: DiskAfter, node: Option<&str>) -> Wanted {
        Wanted { disk, keep_id: false, node: node.map(|node| NodeName(node.to_owned())) }
    }

    /// Returns the ledger after a run has begun with the first OSD; `removes` by the requests of `seen`.
    pub(in crate::commands) fn begun(seen: &Observation) -> Ledger {
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
        let mut unplaced = seen();
        unplaced.ceph.slots.get_mut(&ONE).unwrap().crush = None;
        assert!(wrong(ONE, &unplaced).contains("no location in CRUSH"));
        let mut gone = seen();
        gone.kube.daemons.remove(&ONE);
        let why = wrong(ONE, &gone);
        assert!(why.contains("it has no Deployment") && why.ends_with(" [not-removable]"), "{why}");
        let mut held = seen();
        let label = "label ceph.rook.io/do-not-reconcile=true".to_owned();
        held.kube.daemons.get_mut(&ONE).unwrap().managed_externally = Some(label);
        let why = wrong(ONE, &held);
        assert!(why.contains("it has the label ceph.rook.io/do-not-reconcile=true: "), "{why}");
        let mut directory = seen();
        directory.kube.daemons.get_mut(&ONE).unwrap().data_dir = Some("/var/lib/rook/osd1".to_owned());
        let marking = Wanted { disk: DiskAfter::Mark, keep_id: false, node: None };
        let marked = to_remove(ONE, &marking, &ledger, &directory).unwrap_err();
        assert!(marked.contains("only a disk gets a mark"), "{marked}");
        let found = wiped(ONE, &ledger, &directory).unwrap();
        assert_eq!(found.devices.as_deref(), Some("/var/lib/rook/osd1"));
        directory.kube.declaration.storage.directories = ["/var/lib/rook".to_owned()].into();
        let why = wrong(ONE, &directory);
        assert!(why.contains("/var/lib/rook of osd.1") && why.ends_with(" [directory-declared]"), "{why}");
    }

    #[test]
    fn node_is_requested_as_a_whole_or_not_at_all() {
        let mut seen = seen();
        let node = seen.kube.daemons[&ONE].node.clone().unwrap();
        let two = OsdId(2);
        seen.kube.daemons.get_mut(&two).unwrap().node = Some(node.clone());
        let args = RemoveArgs {
            osds: Vec::new(),
            node: Some(node.0.clone()),
            undeclared: false,
            disk: crate::cli::Disk::Mark,
            keep_id: false,
            confirm: None,
        };
        let of = |seen: &Observation| of_node(&node, &args, &Ledger::default(), seen);
        let (found, remarks) = of(&seen).unwrap();
        let stored = requests(&found);
        assert!(stored.contains_key(&ONE) && stored.contains_key(&two), "{stored:?}");
        assert!(stored.values().all(|one| one.node.as_ref() == Some(&node) && one.disk == DiskAfter::Mark));
        assert!(remarks.len() > 1, "one for each host in CRUSH: {remarks:?}");
        seen.kube.daemons.get_mut(&two).unwrap().data_dir = Some("/var/lib/rook/osd2".to_owned());
        let why = of(&seen).unwrap_err();
        assert!(why.contains("osd.2") && why.contains("only a disk gets a mark"), "{why}");
        assert!(why.starts_with(&format!("nothing was requested for node {node}: ")), "{why}");
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
        let why = to_remove(osd, &wanted(DiskAfter::Leave, None), &ledger, &found).unwrap_err();
        assert!(why.contains("has begun with --disk wipe") && why.contains(" keep osd."), "{why}");
        // A removal of the whole node is another one, in both directions.
        let with_node = wanted(DiskAfter::Wipe, Some("h3"));
        let why = to_remove(osd, &with_node, &ledger, &found).unwrap_err();
        assert!(why.contains("has begun with --disk wipe. To change that"), "{why}");
        let whole_node = Strategy::Removal(Removal { whole_node: true, ..Removal::default() });
        ledger.records.get_mut(&osd).unwrap().strategy = whole_node;
        assert!(to_remove(osd, &with_node, &ledger, &found).is_ok());
        let why = wiped(osd, &ledger, &found).unwrap_err();
        assert!(why.contains("has begun with --disk wipe --node "), "{why}");
        let quarantine = Quarantine { why: "its disk failed".to_owned(), since: found.at };
        ledger.records.get_mut(&osd).unwrap().quarantine = Some(quarantine);
        let why = wiped(osd, &ledger, &found).unwrap_err();
        assert!(why.contains("is quarantined") && why.contains(" retry osd."), "{why}");
    }

    #[test]
    fn quarantined_osd_is_requested_only_if_it_is_dead() {
        let mut found = seen();
        let mut ledger = begun(&found);
        let osd = *ledger.records.keys().next().expect("a migration has begun");
        let why = "it went down while it was emptied".to_owned();
        ledger.records.get_mut(&osd).unwrap().quarantine = Some(Quarantine { why, since: found.at });
        assert!(wiped(osd, &ledger, &found).unwrap_err().contains("is quarantined"));
        found.ceph.slots.get_mut(&osd).unwrap().up = false;
        assert!(wiped(osd, &ledger, &found).is_ok());
        // Destroyed by its migration, it is requested by the fsid that it had.
        let slot = found.ceph.slots.get_mut(&osd).unwrap();
        (slot.fsid, slot.state) = (None, SlotState::Destroyed);
        assert!(wiped(osd, &ledger, &found).unwrap_err().contains("is quarantined"), "by another client");
        let record = ledger.records.get_mut(&osd).unwrap();
        record.down_since = Some(found.at);
        let old = record.old;
        assert_eq!(wiped(osd, &ledger, &found).unwrap().fsid, old);
        // Recreated, and down again, it is requested by its new fsid.
        let new = "01d00000-0000-0000-0000-000000000007".parse().unwrap();
        let slot = found.ceph.slots.get_mut(&osd).unwrap();
        (slot.fsid, slot.state) = (Some(new), SlotState::Exists);
        assert!(wiped(osd, &ledger, &found).unwrap_err().contains("is quarantined"), "another client's");
        ledger.records.get_mut(&osd).unwrap().issued.insert(new);
        assert_eq!(wiped(osd, &ledger, &found).unwrap().fsid, new);
    }
}
