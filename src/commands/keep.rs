//! `keep`: requests to remove OSDs are withdrawn.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::cli::KeepArgs;
use crate::commands::remove::conflict;
use crate::domain::ledger::{Ledger, Record};
use crate::domain::osd::{NodeName, OsdId};
use crate::domain::removal::Requests;
use crate::exit::{Exit, failed, not_loaded, not_seen};
use crate::k8s::{K8s, request_key};
use crate::live::{Ledgers, kube_failure, pause};
use crate::ports::{LedgerStore, LoadError};
use crate::show;

/// Number of reads of the ledger until a stop that is under way must be decided: a write has 35 s.
const READS: u32 = 20;

/// Time between two of these reads, which is shorter than an iteration with two saves.
const BETWEEN_READS: Duration = Duration::from_secs(2);

/// Withdraws requests: all of them, or none.
pub(super) async fn keep(k8s: Arc<K8s>, args: &KeepArgs) -> Exit {
    let names = k8s.names();
    let requests = match k8s.read_requests().await {
        Ok(requests) => requests,
        Err(error) => return not_seen(&kube_failure(error)),
    };
    // The ledger is read after the requests: a removal that began meanwhile is seen.
    let ledger = match Ledgers::new(Arc::clone(&k8s)).load().await {
        Ok((ledger, _)) => ledger,
        Err(error) => return not_loaded(&error),
    };
    let mut withdrawn = match withdrawn(args, &requests, &ledger) {
        Ok(osds) => osds,
        Err(why) => return failed(&names.complete(&why), Exit::Refused),
    };
    if let Some(why) = withdrawn.iter().find_map(|osd| by_switch(*osd, &requests, &ledger)) {
        return failed(&names.complete(&why), Exit::Refused);
    }
    if let Err(error) = k8s.withdraw_requests(&withdrawn).await {
        return conflict(error, &k8s);
    }
    // A run that saved before the withdrawal that the OSD is down goes on.
    let now = match decided(&withdrawn, &k8s).await {
        Ok(now) => now,
        Err(error) => return not_loaded(&error),
    };
    let open: BTreeSet<OsdId> = undecided(&withdrawn, &now).collect();
    withdrawn.retain(|osd| !open.contains(osd));
    let in_progress = |osd: &OsdId| now.records.get(osd).or_else(|| ledger.records.get(osd));
    let removal = |osd: &OsdId| in_progress(osd).filter(|record| record.is_removal());
    let (late, kept): (Vec<OsdId>, Vec<OsdId>) =
        withdrawn.iter().partition(|osd| removal(osd).is_some_and(Record::is_committed));
    if !kept.is_empty() {
        let begun: Vec<OsdId> = kept.iter().copied().filter(|osd| removal(osd).is_some()).collect();
        tracing::info!("{}: {}", names.cluster_line(), names.complete(&show::kept(&kept, &begun)));
    }
    let late = late.iter().filter_map(removal).map(show::too_late).collect::<Vec<_>>();
    let exit = match (late.is_empty(), open.is_empty()) {
        (true, true) => return Exit::Finished,
        (true, false) => Exit::TryAgain,
        (false, _) => Exit::Refused,
    };
    let open = open.into_iter().map(show::undecided);
    failed(&names.complete(&late.into_iter().chain(open).collect::<Vec<_>>().join("; ")), exit)
}

/// Returns the ledger in which it is decided for each of the OSDs whether it is stopped.
///
/// If that takes too long, or no run is at work, returns the last ledger.
async fn decided(osds: &BTreeSet<OsdId>, k8s: &Arc<K8s>) -> Result<Ledger, LoadError> {
    let mut reads = 1;
    loop {
        let read = Ledgers::new(Arc::clone(k8s)).load().await;
        let is_decided = read.as_ref().is_ok_and(|(ledger, _)| undecided(osds, ledger).next().is_none());
        if reads >= READS || is_decided {
            return read.map(|(ledger, _)| ledger);
        }
        reads += 1;
        pause(BETWEEN_READS).await;
    }
}

/// Returns those of the OSDs whose stop is under way: a run may have sent it already.
fn undecided(osds: &BTreeSet<OsdId>, ledger: &Ledger) -> impl Iterator<Item = OsdId> {
    let is_open = |record: &&Record| {
        let is_over = record.is_committed() || record.closing || record.quarantine.is_some();
        record.is_removal() && record.stop_intended_at.is_some() && !is_over
    };
    osds.iter().filter_map(|osd| ledger.records.get(osd)).filter(is_open).map(|record| record.osd)
}

/// Returns how to keep an OSD that a switch of the run removes: there is no request to withdraw.
fn by_switch(osd: OsdId, requests: &Requests, ledger: &Ledger) -> Option<String> {
    let removal = ledger.records.get(&osd)?.removal().filter(|_| !requests.removals.contains_key(&osd))?;
    let switch = removal.cause.switch()?;
    Some(format!(
        "{osd} is removed without a request, because {switch} is on. To keep it, switch that off, or leave the OSD out \
         (run.skip), and start a run: the run restores its CRUSH weight if it is not stopped yet"
    ))
}

/// Returns the OSDs whose requests are withdrawn; the error is a sentence about one without a request.
fn withdrawn(args: &KeepArgs, requests: &Requests, ledger: &Ledger) -> Result<BTreeSet<OsdId>, String> {
    if let Some(node) = &args.node {
        let found = of_node(&NodeName(node.clone()), requests, ledger);
        let none =
            || format!("no removal was requested with --node {node}. See: osd-migrate -n NAMESPACE status");
        return if found.is_empty() { Err(none()) } else { Ok(found) };
    }
    match args.osds.iter().find(|osd| !is_requested(**osd, requests, ledger)) {
        Some(osd) => {
            Err(format!("{osd} has no request for its removal. See: osd-migrate -n NAMESPACE status"))
        }
        None => Ok(args.osds.iter().copied().collect()),
    }
}

/// Returns the OSDs that were requested with a node, and those whose removal with it has begun.
fn of_node(node: &NodeName, requests: &Requests, ledger: &Ledger) -> BTreeSet<OsdId> {
    let requested = requests.removals.iter().filter(|(_, request)| request.node.as_ref() == Some(node));
    let begun = ledger.records.values().filter(|record| record.leaves_with(node)).map(|record| record.osd);
    requested.map(|(osd, _)| *osd).chain(begun).collect()
}

/// Returns whether a request for the OSD is stored, even one that can't be read, or its removal has begun.
fn is_requested(osd: OsdId, requests: &Requests, ledger: &Ledger) -> bool {
    requests.removals.contains_key(&osd)
        || requests.unreadable.contains(&request_key(osd))
        || ledger.records.get(&osd).is_some_and(Record::is_removal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::remove::tests::{begun, seen};
    use crate::domain::ledger::Strategy;
    use crate::domain::removal::{Removal, RemovalRequest};

    fn kept(osds: &[u32], node: Option<&str>) -> KeepArgs {
        KeepArgs { osds: osds.iter().copied().map(OsdId).collect(), node: node.map(str::to_owned) }
    }

    #[test]
    fn osd_whose_stop_is_under_way_is_not_known_to_be_kept() {
        let (_, mut record) = begun(&seen()).records.pop_first().unwrap();
        record.strategy = Strategy::Removal(Removal::default());
        let osds: BTreeSet<OsdId> = [record.osd].into();
        let is_open = |change: fn(&mut Record)| {
            let mut record = record.clone();
            record.stop_intended_at = record.saved_at;
            change(&mut record);
            undecided(&osds, &Ledger::default().with(record)).next().is_some()
        };
        assert!(is_open(|_| {}));
        let decided: [fn(&mut Record); 3] = [
            |record| record.stop_intended_at = None,
            |record| record.down_since = record.saved_at,
            |record| record.closing = true,
        ];
        assert!(!decided.into_iter().any(is_open));
        let text = show::undecided(record.osd);
        assert!(text.contains("its stop is under way") && text.contains(" status"), "{text}");
    }

    #[test]
    fn node_to_keep_means_the_osds_requested_with_it() {
        let fsid = "11111111-1111-1111-1111-111111111111".parse().unwrap();
        let of =
            |node: &str| RemovalRequest { node: Some(NodeName(node.to_owned())), ..RemovalRequest::of(fsid) };
        let mut requests = Requests::default();
        let alone = RemovalRequest::of(fsid);
        requests.removals = [(1, of("h3")), (2, of("h2")), (3, alone), (4, of("h3"))]
            .into_iter()
            .map(|(osd, request)| (OsdId(osd), request))
            .collect();
        let mut ledger = Ledger::default();
        let found =
            |requests: &Requests, ledger: &Ledger| withdrawn(&kept(&[], Some("h3")), requests, ledger);
        assert_eq!(found(&requests, &ledger), Ok([OsdId(1), OsdId(4)].into()));
        assert_eq!(withdrawn(&kept(&[2, 3], None), &requests, &ledger), Ok([OsdId(2), OsdId(3)].into()));
        let why = withdrawn(&kept(&[2, 9], None), &requests, &ledger).unwrap_err();
        assert!(why.starts_with("osd.9 has no request"), "{why}");
        // A removal that has begun counts, even if its request is gone.
        let (_, record) = begun(&seen()).records.pop_first().unwrap();
        ledger.records.insert(OsdId(7), Record { osd: OsdId(7), ..record });
        let record = ledger.records.get_mut(&OsdId(7)).unwrap();
        record.node = NodeName("h3".to_owned());
        record.strategy = Strategy::Removal(Removal::default());
        assert_eq!(found(&requests, &ledger), Ok([OsdId(1), OsdId(4)].into()), "not with its node");
        let record = ledger.records.get_mut(&OsdId(7)).unwrap();
        record.strategy = Strategy::Removal(Removal { whole_node: true, ..Removal::default() });
        assert_eq!(found(&requests, &ledger), Ok([OsdId(1), OsdId(4), OsdId(7)].into()));
        let none = withdrawn(&kept(&[], Some("h9")), &requests, &ledger).unwrap_err();
        assert!(none.starts_with("no removal was requested with --node h9"), "{none}");
    }
}
