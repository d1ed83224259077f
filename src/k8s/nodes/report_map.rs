//! The agent's side of a report: patches of one ConfigMap, which is all that an agent may do in the API.

use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use chrono::{DateTime, SecondsFormat, Utc};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use crate::domain::inspection::NodeReport;
use crate::domain::inventory::InventoryReport;
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;
use crate::k8s::nodes::inventory_report;
use crate::k8s::nodes::node_job::{HEARTBEAT, REPORT};

/// Time for which an agent tries to write its report.
///
/// An API server may be restarted in the middle of an upgrade. A report that never arrives costs one more
/// attempt, so a longer time is not necessary.
const PATIENCE: Duration = Duration::from_secs(240);

impl K8s {
    /// Writes the report: the last step of an agent, retried for some minutes.
    pub async fn patch_report(&self, name: &str, report: &NodeReport) -> Result<(), K8sError> {
        let text = serde_json::to_string(report)
            .map_err(|e| K8sError::Malformed { what: format!("report {name}"), why: e.to_string() })?;
        self.patch_patiently(name, &json!({"data": {REPORT: text}})).await
    }

    /// Writes the inventory of a node's disks: the last step of such an agent, retried for some minutes.
    pub async fn patch_inventory(&self, name: &str, report: &InventoryReport) -> Result<(), K8sError> {
        let stored = inventory_report::fit(report)
            .map_err(|why| K8sError::Malformed { what: format!("inventory {name}"), why })?;
        self.patch_patiently(name, &stored.into_patch()).await
    }

    async fn patch_patiently(&self, name: &str, patch: &Value) -> Result<(), K8sError> {
        let maps = self.kind::<ConfigMap>();
        (|| maps.merge(name, patch))
            .retry(
                ExponentialBuilder::default()
                    .with_min_delay(Duration::from_secs(1))
                    .with_max_delay(Duration::from_secs(15))
                    .without_max_times()
                    .with_total_delay(Some(PATIENCE)),
            )
            // A missing object or right does not recover: the record was cleaned up, or the Role is
            // incomplete.
            .when(K8sError::is_transient)
            .notify(|error, delay| tracing::warn!(%error, ?delay, "the report could not be written; trying again"))
            .await
            .map(drop)
    }

    /// Writes that the agent is alive.
    ///
    /// It is tried once: the next heartbeat follows soon.
    pub async fn patch_heartbeat(&self, name: &str, at: DateTime<Utc>) -> Result<(), K8sError> {
        let patch = json!({"data": {HEARTBEAT: at.to_rfc3339_opts(SecondsFormat::Secs, true)}});
        self.kind::<ConfigMap>().merge(name, &patch).await.map(drop)
    }
}
