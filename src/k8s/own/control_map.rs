//! Control of the runs by a person: `pause`, `cancel`, `resume`.
//!
//! It is stored in a ConfigMap of its own, which every run reads in each iteration, also a run that was
//! killed and started again. The ConfigMap can be written wherever kubectl works.

use std::collections::BTreeMap;

use chrono::{DateTime, SecondsFormat, Utc};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use crate::domain::observation::{Control, ControlKind};
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;
use crate::k8s::names::{Part, labels};

/// ConfigMap of the control.
pub const CONTROL: &str = "osd-migrate-control";

const ORDER: &str = "order";
const SINCE: &str = "since";
/// Value that means that no control is set.
const RUN: &str = "run";

impl K8s {
    /// Returns the control that is set now.
    pub async fn read_control(&self) -> Result<Option<Control>, K8sError> {
        let map = self.kind::<ConfigMap>().get_opt(CONTROL).await?;
        Ok(map.and_then(control))
    }

    /// Sets or unsets the control; the last writer wins.
    pub async fn write_control(&self, kind: Option<ControlKind>, at: DateTime<Utc>) -> Result<(), K8sError> {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": CONTROL, "labels": labels(Part::Control)},
            "data": {ORDER: kind.map_or(RUN, word), SINCE: at.to_rfc3339_opts(SecondsFormat::Secs, true)},
        });
        self.kind::<ConfigMap>().apply(CONTROL, &object).await.map(drop)
    }
}

fn word(kind: ControlKind) -> &'static str {
    match kind {
        ControlKind::Pause => "pause",
        ControlKind::Cancel => "cancel",
    }
}

/// Reads the control from the map.
///
/// An unknown value counts as a pause, because its writer wanted to stop the runs in some way.
pub(crate) fn control(map: ConfigMap) -> Option<Control> {
    let data: BTreeMap<String, String> = map.data.unwrap_or_default();
    let since = data.get(SINCE).and_then(|at| at.parse().ok());
    let kind = match data.get(ORDER).map(|text| text.trim())? {
        "" | RUN => return None,
        text if text == word(ControlKind::Cancel) => ControlKind::Cancel,
        _ => ControlKind::Pause,
    };
    Some(Control { kind, since })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::k8s::wire::{on, play, refusal};

    const MAP: &str = "/api/v1/namespaces/rook-ceph/configmaps/osd-migrate-control";

    fn map(data: &[(&str, &str)]) -> ConfigMap {
        let data = data.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        ConfigMap { data: Some(data), ..ConfigMap::default() }
    }

    fn at() -> DateTime<Utc> {
        "2026-03-01T12:00:00Z".parse().unwrap()
    }

    #[test]
    fn unknown_control_value_is_a_pause() {
        let read = |data: &[(&str, &str)]| control(map(data)).map(|control| (control.kind, control.since));
        assert_eq!(control(ConfigMap::default()), None);
        assert_eq!((read(&[]), read(&[(ORDER, "run")]), read(&[(ORDER, "")])), (None, None, None));
        assert_eq!(
            read(&[(ORDER, "pause"), (SINCE, "2026-03-01T12:00:00Z")]),
            Some((ControlKind::Pause, Some(at())))
        );
        // The value as a person may have written it with kubectl.
        assert_eq!(read(&[(ORDER, "cancel\n")]), Some((ControlKind::Cancel, None)));
        assert_eq!(read(&[(ORDER, "stop it"), (SINCE, "now")]), Some((ControlKind::Pause, None)));
    }

    #[tokio::test]
    async fn control_is_applied_as_a_whole_map_and_read_back() {
        let patch = format!("PATCH {MAP}?&force=true&fieldManager=osd-migrate application/apply-patch+yaml");
        for (kind, text) in
            [(Some(ControlKind::Pause), "pause"), (Some(ControlKind::Cancel), "cancel"), (None, "run")]
        {
            let script = vec![on(&patch, 200, json!({"metadata": {"name": CONTROL}})).with(move |body| {
                assert_eq!(body["data"], json!({"order": text, "since": "2026-03-01T12:00:00Z"}));
                assert_eq!(body["metadata"]["labels"]["osd-migrate.io/part"], "control");
                assert!(body["metadata"].get("ownerReferences").is_none(), "it outlives every Job");
            })];
            play(script, async |k8s| k8s.write_control(kind, at()).await).await.unwrap();
            let stored = json!({"metadata": {"name": CONTROL}, "data": {"order": text, "since": "2026-03-01T12:00:00Z"}});
            let script = vec![on(&format!("GET {MAP}"), 200, stored)];
            let read = play(script, async |k8s| k8s.read_control().await).await.unwrap();
            assert_eq!(read, kind.map(|kind| Control { kind, since: Some(at()) }));
        }
        let none = vec![on(&format!("GET {MAP}"), 404, refusal(404, "NotFound"))];
        assert_eq!(play(none, async |k8s| k8s.read_control().await).await.unwrap(), None);
    }
}
