//! Does the task of a request, under the OSD's lock, and reports what the disk then carries.

use std::collections::BTreeSet;
use std::fs;

use crate::domain::inspection::{NodeReport, NodeRequest, NodeTask};
use crate::domain::proof::verdict;
use crate::domain::removal::DiskAfter;
use crate::node::agent::inspect::inspect;
use crate::node::agent::outcome::Outcome;
use crate::node::agent::rebuild::rebuild;
use crate::node::agent::restore_slot::restore_slot;
use crate::node::agent::wipe::wipe;
use crate::node::create::mons;
use crate::node::error::NodeError;
use crate::node::host::Host;
use crate::node::legacy::directory;
use crate::node::state::lock::OsdLock;
use crate::node::state::{attempts, issued};
use crate::node::steps::{Steps, now};
use crate::node::volumes::hidden;

/// Does the requested task and reports.
///
/// Never blocks the runtime; the caller may run a heartbeat in parallel.
pub async fn agent(request: &NodeRequest, host: &Host) -> NodeReport {
    let began_at = now();
    let steps = Steps::default();
    // The lock stays locked to the end of this function; see `lock` for what else may keep it locked.
    let (_lock, outcome) = match ready(request, host) {
        Ok(lock) => {
            let outcome = match request.task {
                NodeTask::Inspect => inspect(request, host, &steps).await,
                NodeTask::Rebuild => rebuild(request, host, &steps).await,
                NodeTask::RestoreSlot => restore_slot(request, host, &steps).await,
                NodeTask::Clear => clear(request, host, &steps).await,
                NodeTask::Wipe => wipe(request, host, &steps).await,
            };
            (Some(lock), outcome)
        }
        Err(error) => (None, Outcome::failed(error)),
    };
    let (issued, unread) = match issued::read(&issued::path(&host.state, request.osd, &request.record)) {
        Ok(issued) => (issued, None),
        Err(error) => (BTreeSet::new(), Some(error)),
    };
    NodeReport {
        record: request.record.clone(),
        attempt: request.attempt,
        osd: request.osd,
        task: request.task,
        began_at,
        ended_at: now(),
        steps: steps.into_tenths(),
        issued,
        inspection: outcome.inspection,
        left: outcome.left,
        problem: outcome.error.or(unread).map(NodeError::into_problem),
    }
}

fn ready(request: &NodeRequest, host: &Host) -> Result<OsdLock, NodeError> {
    if request.node != host.node {
        return Err(NodeError::Refused(format!(
            "the request is for node {}, but the agent runs on node {}",
            request.node, host.node
        )));
    }
    hidden::hide_loops(host);
    let lock = OsdLock::take(&host.state, request.osd)?;
    attempts::check_in(&host.state, request.osd, &request.record, request.attempt)?;
    fs::create_dir_all(&host.scratch).map_err(NodeError::io("create folder", &host.scratch))?;
    mons::configure(host, request)?;
    Ok(lock)
}

/// Removes the old OSD's directory.
async fn clear(request: &NodeRequest, host: &Host, steps: &Steps) -> Outcome {
    let done = match may_clear(request, host).await {
        Ok(()) => steps.time("remove", directory::clear(request, host)).await,
        Err(error) => Err(error),
    };
    Outcome { inspection: None, error: done.err(), left: Vec::new() }
}

/// Checks, for an OSD that is removed, that its slot is destroyed.
///
/// An agent that was frozen for an hour must not delete the directory of an OSD that was re-registered
/// meanwhile. (An OSD that moved to a disk has its id there by now.)
async fn may_clear(request: &NodeRequest, host: &Host) -> Result<(), NodeError> {
    if !is_of_removed(request)? {
        return Ok(());
    }
    let status = mons::slots(host).await?.remove(&request.osd);
    verdict::slot_may_be_taken(request, status.as_deref()).map_err(NodeError::Refused)
}

/// Returns whether the directory is that of an OSD that is removed; fails if it is not to be deleted.
fn is_of_removed(request: &NodeRequest) -> Result<bool, NodeError> {
    let refused = |why: &str| Err(NodeError::Refused(why.to_owned()));
    match (request.after, request.directory.as_ref().map(|directory| directory.onto.is_some())) {
        (None, Some(true)) => Ok(false),
        (Some(DiskAfter::Wipe), Some(false)) => {
            let names = request.evidence.as_ref().and_then(|evidence| evidence.proof.names());
            if names == Some((request.old, request.osd, request.cluster)) {
                return Ok(true);
            }
            refused("the request contains no proof of the OSD in the directory")
        }
        (Some(DiskAfter::Wipe | DiskAfter::Mark | DiskAfter::Leave) | None, _) => {
            refused("the request does not say that the directory is to be deleted")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::inspection::{Directory, Evidence, NodeProblem, Proof};
    use crate::domain::osd::{DeviceIdentity, Kind};
    use crate::node::samples::{host, request};

    #[tokio::test]
    async fn agent_on_the_wrong_node_refuses_and_writes_nothing() {
        let root = tempfile::tempdir().unwrap();
        let report = agent(&request("n2"), &host(root.path())).await;
        assert!(matches!(report.problem, Some(NodeProblem::Refused(why)) if why.contains("n2")));
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn second_agent_is_busy_and_still_reports_issued_fsids() {
        let root = tempfile::tempdir().unwrap();
        let (host, request) = (host(root.path()), request("n1"));
        let _lock = OsdLock::take(&host.state, request.osd).unwrap();
        issued::add(&issued::path(&host.state, request.osd, &request.record), request.old).unwrap();
        let report = agent(&request, &host).await;
        assert!(matches!(report.problem, Some(NodeProblem::Busy(_))));
        assert_eq!((report.issued, report.inspection), (BTreeSet::from([request.old]), None));
    }

    #[tokio::test]
    async fn rebuild_without_proof_or_in_another_cluster_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let first = host(root.path());
        let report = agent(&request("n1"), &first).await;
        assert!(matches!(report.problem, Some(NodeProblem::Refused(why)) if why.contains("no proof")));
        let conf = fs::read_to_string(&first.ceph_conf).unwrap();
        let (global, _) = conf.split_once("[client.bootstrap-osd]").unwrap();
        for line in ["mon_host = [v2:10.0.0.1:3300,v1:10.0.0.1:6789]", "auth_client_required = cephx"] {
            assert!(global.lines().any(|is| is == line), "{conf}");
        }
        let mut other = request("n1");
        other.cluster = "6f382147-dc61-408c-ad68-8e6a2e37590b".parse().unwrap();
        // A command of another test may have inherited the lock of the first agent.
        let second = Host { state: root.path().join("second"), ..first };
        let report = agent(&other, &second).await;
        assert!(
            matches!(report.problem, Some(NodeProblem::Refused(why)) if why.contains("is of cluster 5f38"))
        );
    }

    fn of_directory(after: Option<DiskAfter>) -> NodeRequest {
        let asked = request("n1");
        let proof = Proof::Directory {
            format: Kind::FilestoreDirectory,
            path: "/srv/osd1".to_owned(),
            osd_fsid: asked.old,
            whoami: asked.osd,
            cluster: asked.cluster,
        };
        let device = DeviceIdentity::none();
        let evidence = Some(Evidence { device, proof, usable_bytes: 0, auxiliary: Vec::new() });
        let directory = Some(Directory { path: "/srv/osd1".to_owned(), onto: None });
        NodeRequest { task: NodeTask::Clear, after, directory, evidence, ..asked }
    }

    #[tokio::test]
    async fn directory_of_an_osd_that_is_not_destroyed_stays() {
        let asked = of_directory(Some(DiskAfter::Wipe));
        assert!(is_of_removed(&asked).unwrap());
        assert!(verdict::slot_may_be_taken(&asked, Some("destroyed")).is_ok());
        for status in [Some("up"), Some("down"), None] {
            assert!(verdict::slot_may_be_taken(&asked, status).is_err(), "{status:?}");
        }
        // The mons do not answer.
        let root = tempfile::tempdir().unwrap();
        let host = host(root.path());
        let directory = host.parent.join("osd1");
        fs::create_dir_all(&directory).unwrap();
        for (name, text) in [
            ("fsid", asked.old.to_string()),
            ("whoami", asked.osd.0.to_string()),
            ("ceph_fsid", asked.cluster.to_string()),
        ] {
            fs::write(directory.join(name), text).unwrap();
        }
        let outcome = clear(&asked, &host, &Steps::default()).await;
        assert!(outcome.error.is_some() && directory.join("fsid").exists());
    }

    #[test]
    fn directory_is_deleted_only_if_its_request_says_so() {
        let refused = |request: &NodeRequest| is_of_removed(request).is_err();
        assert!(
            [None, Some(DiskAfter::Leave), Some(DiskAfter::Mark)].iter().all(|a| refused(&of_directory(*a)))
        );
        let asked = || of_directory(Some(DiskAfter::Wipe));
        assert!(refused(&NodeRequest { evidence: None, ..asked() }));
        assert!(refused(&NodeRequest { directory: None, ..asked() }));
        let mut other = asked();
        other.old = "65ebe299-c0ce-4341-960a-ddfd22d5b5bf".parse().unwrap();
        assert!(refused(&other), "the proof is of another OSD");
        let moved = Directory { path: "/srv/osd1".to_owned(), onto: Some(DeviceIdentity::none()) };
        assert!(refused(&NodeRequest { directory: Some(moved.clone()), ..asked() }));
        assert!(!is_of_removed(&NodeRequest { directory: Some(moved), after: None, ..asked() }).unwrap());
    }
}
