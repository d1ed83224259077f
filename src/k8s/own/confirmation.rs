//! Confirmation of a run, as far as objects of Kubernetes show it. A failure to read them fails no run.

use chrono::{DateTime, Utc};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use serde_json::Value;

use crate::domain::history::{Confirmation, ConfirmedBy};
use crate::k8s::client::access::K8s;
use crate::k8s::client::time::from_jiff;
use crate::k8s::names::CREATED_BY;
use crate::k8s::own::own_pod::Own;

/// Fields of the CephCluster that confirm a migration.
const CONFIRMING: [&str; 2] =
    ["/f:spec/f:storage/f:migration/f:confirmation", "/f:spec/f:storage/f:store/f:updateStore"];

impl K8s {
    /// Returns how the run of this Job was confirmed, and by whom.
    ///
    /// `by`: how its arguments confirm it; if they do not, the CephCluster does. Kubernetes records no user
    /// with an object, only the program that wrote a field and when. The command line notes its user on a Job
    /// that it creates.
    pub async fn confirmation(&self, own: &Own, by: Option<ConfirmedBy>) -> Confirmation {
        let (by, written) = if let Some(by) = by {
            let job = self.run_job(&own.job).await.ok().flatten();
            (by, job.and_then(|job| creator(&job.metadata)))
        } else {
            let cluster = self.ceph_cluster().await.ok();
            (ConfirmedBy::CephCluster, cluster.and_then(|cluster| confirmer(&cluster.metadata)))
        };
        let (who, at) = written.unzip();
        Confirmation { job: own.job.clone(), scheduled: own.scheduled, by, who, at: at.flatten() }
    }
}

impl K8s {
    /// Returns the name of the user at the API server; none if the server does not tell it (Kubernetes before
    /// 1.28).
    pub async fn user(&self) -> Option<String> {
        let review = self.cluster_kind().create("", &SelfSubjectReview::default()).await.ok()?;
        review.status?.user_info?.username
    }
}

/// Returns who created an object, and when.
fn creator(object: &ObjectMeta) -> Option<(String, Option<DateTime<Utc>>)> {
    let at = object.creation_timestamp.as_ref().and_then(|time| from_jiff(time.0));
    let user = object.annotations.as_ref().and_then(|all| all.get(CREATED_BY)).cloned();
    let manager = || object.managed_fields.iter().flatten().min_by_key(|entry| time(entry))?.manager.clone();
    Some((user.or_else(manager)?, at))
}

/// Returns which program wrote the confirmation into the CephCluster last, and when.
fn confirmer(cluster: &ObjectMeta) -> Option<(String, Option<DateTime<Utc>>)> {
    let confirms = |entry: &&ManagedFieldsEntry| {
        let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
        fields.is_some_and(|fields: &Value| CONFIRMING.iter().any(|path| fields.pointer(path).is_some()))
    };
    let entry = cluster.managed_fields.iter().flatten().filter(confirms).max_by_key(|entry| time(entry))?;
    Some((entry.manager.clone()?, time(entry)))
}

fn time(entry: &ManagedFieldsEntry) -> Option<DateTime<Utc>> {
    from_jiff(entry.time.as_ref()?.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn metadata(value: Value) -> ObjectMeta {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn confirmer_is_the_last_writer_of_the_confirming_field() {
        let entry = |manager: &str, time: &str, fields: Value| json!({"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields});
        let storage = |field: Value| json!({"f:spec": {"f:storage": field}});
        let cluster = metadata(json!({"managedFields": [
            entry("argocd", "2026-03-01T01:00:00Z", storage(json!({"f:useAllNodes": {}}))),
            entry("kubectl-patch", "2026-03-01T02:00:00Z", storage(json!({"f:migration": {"f:confirmation": {}}}))),
            entry("rook", "2026-03-01T03:00:00Z", json!({"f:status": {}}))]}));
        let at = "2026-03-01T02:00:00Z".parse().ok();
        assert_eq!(confirmer(&cluster), Some(("kubectl-patch".to_owned(), at)));
        assert_eq!(confirmer(&metadata(json!({}))), None);
    }

    #[test]
    fn creator_of_a_job_is_the_user_that_the_command_line_noted() {
        let managed = json!([{"manager": "kube-controller-manager", "time": "2026-03-01T02:00:01Z"},
            {"manager": "kubectl-create", "time": "2026-03-01T02:00:00Z"}]);
        let created = "2026-03-01T02:00:00Z";
        let by = |annotations: Value| {
            creator(&metadata(json!({"creationTimestamp": created, "managedFields": managed,
                "annotations": annotations})))
        };
        let at = created.parse().ok();
        assert_eq!(by(json!({})), Some(("kubectl-create".to_owned(), at)));
        assert_eq!(by(json!({CREATED_BY: "alice"})), Some(("alice".to_owned(), at)));
    }
}
