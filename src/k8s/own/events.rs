//! Kubernetes Events, for `kubectl describe` and `kubectl get events`. A failed event never fails a run.

use chrono::{DateTime, Utc};
use k8s_openapi::api::core::v1::{Event, ObjectReference};
use serde_json::json;

use crate::domain::policy::Declaration;
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;
use crate::k8s::client::time::to_jiff;
use crate::k8s::names::{OURS, hash};
use crate::k8s::own::own_pod::Own;

/// Limit of the API server for the text of an event, in bytes (`ValidateEventCreate`, `NoteLengthLimit`).
const NOTE_LIMIT: usize = 1024;

/// Reason of Rook's event about a CephCluster with the label `do-not-reconcile` (Rook >= 1.19.2).
const SKIPPED: &str = "ReconcileSkipped";

fn skipped_version(event: &Event) -> Option<u64> {
    event.involved_object.resource_version.as_ref()?.parse().ok()
}

/// Object that an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    api_version: String,
    kind: &'static str,
    name: String,
    uid: String,
}

impl About {
    /// Returns the CephCluster as the subject of an event.
    pub fn cluster(declaration: &Declaration) -> Self {
        Self {
            api_version: declaration.api_version.clone(),
            kind: "CephCluster",
            name: declaration.name.clone(),
            uid: declaration.uid.clone(),
        }
    }

    /// Returns our own Job as the subject of an event.
    pub fn job(own: &Own) -> Self {
        Self {
            api_version: "batch/v1".to_owned(),
            kind: "Job",
            name: own.job.clone(),
            uid: own.job_uid.clone(),
        }
    }
}

/// Type of an event; Kubernetes has only these two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventType {
    /// Everything proceeds as planned.
    Normal,
    /// A person should check this.
    Warning,
}

impl K8s {
    /// Publishes an event.
    ///
    /// `reason` is one word in past tense (`OsdDestroyed`), `note` a sentence.
    ///
    /// If the event can't be published, that is only logged.
    pub async fn publish(&self, about: &About, kind: EventType, reason: &str, note: &str, at: DateTime<Utc>) {
        if let Err(error) = self.try_publish(about, kind, reason, note, at).await {
            tracing::debug!(%error, reason, "an event could not be published");
        }
    }

    /// Publishes a warning once for as long as the API server keeps events (an hour), even if it is repeated.
    pub async fn warn_once(&self, about: &About, reason: &str, sentence: &str, at: DateTime<Utc>) {
        let mut event = event(self.namespace(), about, EventType::Warning, reason, sentence, at);
        let name = format!("{}.{:x}", about.name, hash(&format!("{} {sentence}", about.uid)));
        event.metadata.name = Some(name.clone());
        match self.kind::<Event>().create(&name, &event).await {
            Ok(_) | Err(K8sError::AlreadyExists(_)) => {}
            Err(error) => tracing::debug!(%error, sentence, "an event could not be published"),
        }
    }

    /// Returns the latest resourceVersion of a CephCluster that Rook read fenced, and did not reconcile.
    ///
    /// Rook >= 1.19.2 records the event `ReconcileSkipped` about the object as the reconcile had read it.
    pub(crate) async fn skipped_by_rook(&self, cluster: &str) -> Result<Option<u64>, K8sError> {
        let fields =
            format!("involvedObject.kind=CephCluster,involvedObject.name={cluster},reason={SKIPPED}");
        let versions = self.kind::<Event>().list_where(&fields, |event| skipped_version(&event)).await?;
        Ok(versions.into_iter().max())
    }

    pub(super) async fn try_publish(
        &self,
        about: &About,
        kind: EventType,
        reason: &str,
        note: &str,
        at: DateTime<Utc>,
    ) -> Result<(), K8sError> {
        let event = event(self.namespace(), about, kind, reason, note, at);
        let name = event.metadata.name.clone().unwrap_or_default();
        self.kind::<Event>().create(&name, &event).await.map(drop)
    }
}

fn event(
    namespace: &str,
    about: &About,
    kind: EventType,
    reason: &str,
    note: &str,
    at: DateTime<Utc>,
) -> Event {
    let at_micros = to_jiff(at);
    let regarding = json!({"apiVersion": about.api_version, "kind": about.kind, "name": about.name, "uid": about.uid,
        "namespace": namespace});
    let mut event = Event {
        involved_object: serde_json::from_value::<ObjectReference>(regarding).unwrap_or_default(),
        action: Some(reason.to_owned()),
        reason: Some(reason.to_owned()),
        message: Some(within_limit(note)),
        type_: Some(format!("{kind:?}")),
        reporting_component: Some("osd-migrate.io/runner".to_owned()),
        reporting_instance: Some(OURS.to_owned()),
        event_time: Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime(at_micros)),
        ..Event::default()
    };
    // Object and time form the name, as in kubectl and client-go.
    event.metadata.name = Some(format!("{}.{:x}", about.name, at.timestamp_micros()));
    event.metadata.namespace = Some(namespace.to_owned());
    event
}

/// Returns as many whole characters as fit into an event.
fn within_limit(note: &str) -> String {
    let ends = note.char_indices().map(|(at, c)| at + c.len_utf8());
    note[..ends.take_while(|end| *end <= NOTE_LIMIT).last().unwrap_or_default()].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::k8s::wire::{on, play, refusal};

    #[tokio::test]
    async fn disk_problem_is_one_kubernetes_event_however_often_reported() {
        let about =
            || About { api_version: "v1".to_owned(), kind: "Job", name: "m".to_owned(), uid: "u".to_owned() };
        let post = "POST /api/v1/namespaces/rook-ceph/events?&fieldManager=osd-migrate";
        let sentence = "node h1: /dev/sdx is declared and not there";
        let name = format!("m.{:x}", hash(&format!("u {sentence}")));
        let check = move |body: serde_json::Value| {
            assert_eq!((&body["type"], &body["reason"]), (&json!("Warning"), &json!("DeviceProblemFound")));
            assert_eq!((&body["message"], &body["metadata"]["name"]), (&json!(sentence), &json!(name)));
        };
        let created = json!({"metadata": {}, "involvedObject": {}});
        for (status, answer) in [(201, created), (409, refusal(409, "AlreadyExists"))] {
            let script = vec![on(post, status, answer).with(check.clone())];
            play(script, async |k8s| {
                k8s.warn_once(&about(), "DeviceProblemFound", sentence, DateTime::UNIX_EPOCH).await;
            })
            .await;
        }
    }

    #[tokio::test]
    async fn reconcile_skipped_events_yield_the_latest_version() {
        let get = "GET /api/v1/namespaces/rook-ceph/events?&fieldSelector=involvedObject.kind%3DCephCluster%2C\
                   involvedObject.name%3Drook-ceph%2Creason%3DReconcileSkipped&limit=100";
        let skipped = |version: Option<&str>| json!({"metadata": {}, "reason": SKIPPED, "involvedObject": {"resourceVersion": version}});
        let cases = [
            (vec![skipped(Some("812")), skipped(Some("9")), skipped(None), skipped(Some("no"))], Some(812)),
            (vec![], None),
        ];
        for (items, latest) in cases {
            let script = vec![on(get, 200, json!({"metadata": {}, "items": items}))];
            let acknowledged = play(script, async |k8s| k8s.skipped_by_rook("rook-ceph").await).await;
            assert_eq!(acknowledged.unwrap(), latest);
        }
    }

    #[test]
    fn event_names_its_object_and_fits_into_the_note_limit() {
        let about =
            About { api_version: "v1".to_owned(), kind: "Job", name: "m".to_owned(), uid: "u".to_owned() };
        let at = DateTime::from_timestamp(1_700_000_000, 5_000).unwrap();
        let event = event("rook-ceph", &about, EventType::Warning, "MigrationHalted", &"ä".repeat(2000), at);
        assert_eq!(event.metadata.name.as_deref(), Some("m.60a24181e4005"));
        assert_eq!(event.type_.as_deref(), Some("Warning"));
        assert_eq!(event.involved_object.uid.as_deref(), Some("u"));
        assert_eq!(event.message.unwrap().len(), NOTE_LIMIT, "two bytes each");
    }
}
