//! Does the task of a request, under the OSD's lock, and reports what the disk then carries.

use std::collections::BTreeSet;
use std::fs;

use crate::domain::inspection::{NodeReport, NodeRequest, NodeTask};
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
    let lock = OsdLock::take(&host.state, request.osd)?;
    attempts::check_in(&host.state, request.osd, &request.record, request.attempt)?;
    fs::create_dir_all(&host.scratch).map_err(NodeError::io("create folder", &host.scratch))?;
    mons::configure(host, request)?;
    Ok(lock)
}

/// Removes the old OSD's directory.
async fn clear(request: &NodeRequest, host: &Host, steps: &Steps) -> Outcome {
    let error = steps.time("remove", directory::clear(request, host)).await.err();
    Outcome { inspection: None, error, left: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::inspection::NodeProblem;
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
        let host = host(root.path());
        let report = agent(&request("n1"), &host).await;
        assert!(matches!(report.problem, Some(NodeProblem::Refused(why)) if why.contains("no proof")));
        let conf = fs::read_to_string(&host.ceph_conf).unwrap();
        assert!(conf.contains("mon_host = [v2:10.0.0.1:3300,v1:10.0.0.1:6789]\n"), "{conf}");
        let mut other = request("n1");
        other.cluster = "6f382147-dc61-408c-ad68-8e6a2e37590b".parse().unwrap();
        let report = agent(&other, &host).await;
        assert!(
            matches!(report.problem, Some(NodeProblem::Refused(why)) if why.contains("is of cluster 5f38"))
        );
    }
}
