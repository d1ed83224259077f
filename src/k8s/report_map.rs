//! The agent's side of a report: patches of one ConfigMap, which is all that an agent may do in the API.

use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use chrono::{DateTime, SecondsFormat, Utc};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use crate::domain::inspection::NodeReport;
use crate::domain::inventory::InventoryReport;

use super::node_job::{HEARTBEAT, REPORT};
use super::{K8s, K8sError, inventory_report};

/// How long an agent tries to get its report through. An API server may be restarted in the middle of an upgrade; a report
/// that never arrives costs one more attempt, so there is no need for longer.
const PATIENCE: Duration = Duration::from_secs(240);

impl K8s {
    /// Writes the report: the last thing an agent does. Tries for some minutes.
    pub async fn patch_report(&self, name: &str, report: &NodeReport) -> Result<(), K8sError> {
        let text = serde_json::to_string(report)
            .map_err(|e| K8sError::Malformed { what: format!("report {name}"), why: e.to_string() })?;
        self.patch_patiently(name, &json!({"data": {REPORT: text}})).await
    }

    /// Writes what was seen of a node's disks: the last thing such an agent does. Tries for some minutes.
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
            // Gone or forbidden does not get better: somebody swept the record, or the Role lacks a verb.
            .when(K8sError::is_transient)
            .notify(|error, delay| tracing::warn!(%error, ?delay, "the report could not be written; trying again"))
            .await
            .map(drop)
    }

    /// Writes that the agent lives. One try: the next one follows soon.
    pub async fn patch_heartbeat(&self, name: &str, at: DateTime<Utc>) -> Result<(), K8sError> {
        let patch = json!({"data": {HEARTBEAT: at.to_rfc3339_opts(SecondsFormat::Secs, true)}});
        self.kind::<ConfigMap>().merge(name, &patch).await.map(drop)
    }
}
