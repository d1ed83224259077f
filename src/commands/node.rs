//! Process of the node agent: it reads the request from the environment, and writes heartbeats and the report
//! to a ConfigMap.

use std::convert::Infallible;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use crate::cli::NodeCommand;
use crate::commands::pod::environment;
use crate::domain::inspection::{NodeProblem, NodeRequest};
use crate::domain::inventory::InventoryRequest;
use crate::domain::osd::NodeName;
use crate::exit::{Exit, failed};
use crate::k8s::{Access, K8s, Place};
use crate::live::{now, pause};
use crate::node::{self, Host};

/// Interval of heartbeats.
///
/// The runner considers an agent silent after ten minutes without one.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Number of tries for the first heartbeat.
const FIRST_TRIES: u32 = 16;

/// Acts as the tool that this program was called as, if ceph-volume called it under the name of one.
///
/// `args` begin with that name.
pub fn as_shim(args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let mut args = args.peekable();
    let is_shim = args.peek().is_some_and(|name| node::shim::is_called_as(name));
    is_shim.then(|| node::shim::main(args))
}

/// Does what the pod of a node Job was created for.
pub(super) async fn node(command: &NodeCommand) -> Exit {
    match command {
        NodeCommand::Agent => exit(serve(environment).await),
        NodeCommand::Inventory => exit(inventory(environment).await),
        NodeCommand::Bridge { paths } => exit(node::bridge(paths)),
    }
}

fn exit(result: Result<(), impl std::fmt::Display>) -> Exit {
    match result {
        Ok(()) => Exit::Finished,
        Err(why) => failed(&why.to_string(), Exit::TryAgain),
    }
}

/// Reason why an agent could not start or could not report.
#[derive(Debug, thiserror::Error)]
enum ServeError {
    /// The pod was created without this variable.
    #[error("environment variable {0} is not set: this command runs only in a node Job")]
    NotSet(&'static str),
    /// The request was written by another version.
    #[error("the request cannot be read: {0}")]
    Request(#[from] serde_json::Error),
    /// The node had another image under the same name.
    #[error(
        "the runner has version {runner}, but this agent has version {}: the node has an older image with \
         the same tag. Give each version its own tag, or set the value image.pullPolicy to Always",
        env!("CARGO_PKG_VERSION")
    )]
    OtherVersion {
        /// version of the runner
        runner: String,
    },
    /// Kubernetes failed.
    #[error(transparent)]
    Kubernetes(#[from] crate::k8s::K8sError),
    /// The node failed.
    #[error("the path of this program cannot be read: {0}")]
    Host(#[from] std::io::Error),
}

/// Parameters of the pod, in addition to its task.
struct Post {
    k8s: K8s,
    /// ConfigMap for the report.
    report: String,
    host: Host,
}

impl Post {
    async fn taken(get: impl Fn(&'static str) -> Result<String, ServeError>) -> Result<Self, ServeError> {
        let report = get("OSD_MIGRATE_REPORT")?;
        let namespace = get("OSD_MIGRATE_NAMESPACE")?;
        let k8s = K8s::connect(Place::new(&namespace), &Access::default()).await?;
        let host = Host::of_pod(NodeName(get("NODE_NAME")?), namespace, get("PATH")?)?;
        Ok(Self { k8s, report, host })
    }

    /// Does some work and writes heartbeats in parallel.
    async fn alive<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::select! {
            done = work => done,
            never = beat(&self.k8s, &self.report) => match never {},
        }
    }
}

/// Returns a lookup for variables that are set and not empty.
fn given(
    lookup: impl Fn(&'static str) -> Option<String>,
) -> impl Fn(&'static str) -> Result<String, ServeError> {
    move |key| lookup(key).filter(|value| !value.is_empty()).ok_or(ServeError::NotSet(key))
}

/// Checks that the runner has the same version: an older agent would omit what it does not know.
fn of_our_version(get: impl Fn(&'static str) -> Result<String, ServeError>) -> Result<(), ServeError> {
    let runner = get("OSD_MIGRATE_RUNNER")?;
    if runner == env!("CARGO_PKG_VERSION") { Ok(()) } else { Err(ServeError::OtherVersion { runner }) }
}

/// Does what `OSD_MIGRATE_REQUEST` requests.
///
/// The report contains the result, also if the task failed.
async fn serve(lookup: impl Fn(&'static str) -> Option<String>) -> Result<(), ServeError> {
    let get = given(lookup);
    of_our_version(&get)?;
    let request: NodeRequest = serde_json::from_str(&get("OSD_MIGRATE_REQUEST")?)?;
    let post = Post::taken(get).await?;
    tracing::info!(
        "{} {}: attempt {} of record {}",
        request.task,
        request.osd,
        request.attempt,
        request.record
    );
    expected(&post.k8s, &post.report).await?;
    let report = post.alive(node::agent(&request, &post.host)).await;
    print_steps(&report.steps, report.problem.as_ref().map(NodeProblem::message));
    for left in &report.left {
        tracing::warn!("{left}");
    }
    post.k8s.patch_report(&post.report, &report).await?;
    Ok(())
}

/// Takes the inventory that `OSD_MIGRATE_INVENTORY` requests.
///
/// The report contains what was found, also if nothing could be inspected.
async fn inventory(lookup: impl Fn(&'static str) -> Option<String>) -> Result<(), ServeError> {
    let get = given(lookup);
    of_our_version(&get)?;
    let request: InventoryRequest = serde_json::from_str(&get("OSD_MIGRATE_INVENTORY")?)?;
    let post = Post::taken(get).await?;
    tracing::info!("inventory {} of the disks of node {}", request.number, request.node);
    let report = post.alive(node::inventory(&request, &post.host)).await;
    print_steps(&report.steps, report.problem.as_deref());
    post.k8s.patch_inventory(&post.report, &report).await?;
    Ok(())
}

fn print_steps(steps: &[(String, u32)], problem: Option<&str>) {
    for (step, tenths) in steps {
        tracing::info!("{step}: {}.{} s", tenths / 10, tenths % 10);
    }
    if let Some(problem) = problem {
        tracing::warn!("not done: {problem}");
    }
}

/// Checks that the agent's report map exists; tries for four minutes, as with the report itself.
///
/// If the map is missing, the record was closed: a suspended runner created the Job afterwards, or the pod
/// took long to start. The agent must then do nothing.
async fn expected(k8s: &K8s, report: &str) -> Result<(), ServeError> {
    for _ in 0..FIRST_TRIES {
        match k8s.patch_heartbeat(report, now()).await {
            Err(error) if error.is_transient() => {
                tracing::warn!(%error, "the first heartbeat was not written; trying again");
            }
            done => return Ok(done?),
        }
        pause(HEARTBEAT).await;
    }
    Ok(k8s.patch_heartbeat(report, now()).await?)
}

/// Writes heartbeats until it is dropped.
///
/// It never ends by itself: it runs in parallel with the agent's work.
async fn beat(k8s: &K8s, report: &str) -> Infallible {
    loop {
        if let Err(error) = k8s.patch_heartbeat(report, now()).await {
            tracing::debug!("the heartbeat was not written: {error}");
        }
        pause(HEARTBEAT).await;
    }
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use kube::Client;
    use kube::client::Body;
    use serde_json::json;

    use super::*;

    async fn answered(status: u16, answer: serde_json::Value) -> Result<(), ServeError> {
        let (service, mut handle) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
        let k8s = K8s::with_client(Client::new(service, "rook-ceph"), Place::new("rook-ceph"));
        let server = tokio::spawn(async move {
            let (request, respond) = handle.next_request().await.expect("a request");
            assert_eq!(request.method(), "PATCH");
            let body = Body::from(serde_json::to_vec(&answer).unwrap());
            respond.send_response(Response::builder().status(status).body(body).unwrap());
        });
        let done = expected(&k8s, "osd-migrate-rebuild-3-r1-1").await;
        server.await.unwrap();
        done
    }

    #[tokio::test]
    async fn agent_of_another_version_does_nothing() {
        let started_by = |version: &'static str| {
            move |key: &str| if key == "OSD_MIGRATE_RUNNER" { Some(version.to_owned()) } else { None }
        };
        let why = serve(started_by("0.0.9")).await.unwrap_err().to_string();
        assert!(why.contains("the runner has version 0.0.9") && why.contains("image.pullPolicy"), "{why}");
        let same = serve(started_by(env!("CARGO_PKG_VERSION"))).await;
        assert!(matches!(same, Err(ServeError::NotSet("OSD_MIGRATE_REQUEST"))), "{same:?}");
    }

    #[tokio::test]
    async fn agent_whose_report_was_cleaned_up_does_nothing() {
        let gone = json!({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound", "message": "text"});
        let refused = answered(404, gone).await;
        assert!(matches!(refused, Err(ServeError::Kubernetes(crate::k8s::K8sError::NotFound(_)))));
        let there = json!({"metadata": {"name": "osd-migrate-rebuild-3-r1-1"}});
        assert!(answered(200, there).await.is_ok());
    }
}
