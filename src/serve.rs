//! The node agent's process: the request comes in by the environment, a heartbeat and the report go out to a ConfigMap.

use std::time::Duration;

use crate::domain::inspection::NodeRequest;
use crate::domain::osd::NodeName;
use crate::k8s::{K8s, Place};
use crate::live::{now, pause};
use crate::node::{self, Host};

/// A heartbeat is written so often; the runner takes an agent for silent after ten minutes without one.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Why an agent could not begin, or not tell.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The pod was made without it.
    #[error("environment variable {0} is not set: this runs in a node Job only")]
    NotSet(&'static str),
    /// Made by another version.
    #[error("the request can't be read: {0}")]
    Request(#[from] serde_json::Error),
    /// Kubernetes.
    #[error(transparent)]
    Kubernetes(#[from] crate::k8s::K8sError),
    /// The node.
    #[error("this program's own path can't be read: {0}")]
    Host(#[from] std::io::Error),
}

/// Does what `OSD_MIGRATE_REQUEST` asks; the report says how it went, also where it failed.
pub async fn serve(lookup: impl Fn(&'static str) -> Option<String>) -> Result<(), ServeError> {
    let get = |key| lookup(key).filter(|value| !value.is_empty()).ok_or(ServeError::NotSet(key));
    let request: NodeRequest = serde_json::from_str(&get("OSD_MIGRATE_REQUEST")?)?;
    let report_name = get("OSD_MIGRATE_REPORT")?;
    let node = NodeName(get("NODE_NAME")?);
    let host = Host::of_pod(node, get("PATH")?)?;
    let k8s = K8s::connect(Place::new(&get("OSD_MIGRATE_NAMESPACE")?), None).await?;
    tracing::info!("{} {}: attempt {} of record {}", request.task, request.osd, request.attempt, request.record);
    let report = tokio::select! {
        report = node::agent(&request, &host) => report,
        () = beat(&k8s, &report_name) => return Ok(()),
    };
    for (step, tenths) in &report.steps {
        tracing::info!("{step}: {}.{} s", tenths / 10, tenths % 10);
    }
    match &report.problem {
        Some(problem) => tracing::warn!("not done: {}", problem.message()),
        None => tracing::info!("done"),
    }
    k8s.patch_report(&report_name, &report).await?;
    Ok(())
}

/// Never ends: it goes on beside the agent's work and is dropped with it.
async fn beat(k8s: &K8s, report: &str) {
    loop {
        if let Err(error) = k8s.patch_heartbeat(report, now()).await {
            tracing::debug!("no heartbeat: {error}");
        }
        pause(HEARTBEAT).await;
    }
}
