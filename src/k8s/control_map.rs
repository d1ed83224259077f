//! What a person told the runs to do: `pause`, `cancel`, `resume`. In a ConfigMap of its own, which every run reads each turn,
//! also one that was killed and started again; it is written from anywhere where kubectl works.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use crate::domain::observation::{Order, OrderKind};

use super::names::{Part, labels};
use super::{K8s, K8sError};

/// The ConfigMap of what was ordered.
pub const CONTROL: &str = "osd-migrate-control";

const ORDER: &str = "order";
const SINCE: &str = "since";
/// Nothing is ordered.
const RUN: &str = "run";

impl K8s {
    /// What is ordered now.
    pub async fn read_order(&self) -> Result<Option<Order>, K8sError> {
        let map = self.kind::<ConfigMap>().get_opt(CONTROL).await?;
        Ok(map.and_then(order))
    }

    /// Orders something, or lifts what was ordered; whoever orders last is right.
    pub async fn write_order(&self, kind: Option<OrderKind>, at: DateTime<Utc>) -> Result<(), K8sError> {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": CONTROL, "labels": labels(Part::Control)},
            "data": {ORDER: kind.map_or(RUN, word), SINCE: at.to_rfc3339_opts(SecondsFormat::Secs, true)},
        });
        self.kind::<ConfigMap>().apply(CONTROL, &object).await.map(drop)
    }
}

fn word(kind: OrderKind) -> &'static str {
    match kind {
        OrderKind::Pause => "pause",
        OrderKind::Cancel => "cancel",
    }
}

/// What the map orders. A word that is not known was meant to hold the runs back somehow: it is taken for a pause.
pub(super) fn order(map: ConfigMap) -> Option<Order> {
    let data: BTreeMap<String, String> = map.data.unwrap_or_default();
    let since = data.get(SINCE).and_then(|at| at.parse().ok());
    let kind = match data.get(ORDER).map(|text| text.trim())? {
        "" | RUN => return None,
        text if text == word(OrderKind::Cancel) => OrderKind::Cancel,
        _ => OrderKind::Pause,
    };
    Some(Order { kind, since })
}
