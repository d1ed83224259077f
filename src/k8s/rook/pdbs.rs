//! PodDisruptionBudgets of the OSDs: Rook's, and one of our own for the case that Rook's is of no use.

use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::PropagationPolicy;
use kube::core::ApiResource;

use crate::domain::observation::OsdPdb;
use crate::domain::osd::OsdId;
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;
use crate::k8s::names::{self, Part};
use crate::k8s::rook::operator::{expect_unchanged, tested};

/// Rook's PodDisruptionBudget while no domain is drained (`pkg/operator/ceph/disruption/clusterdisruption`).
pub(in crate::k8s) const ROOK_PDB: &str = "rook-ceph-osd";

/// Our own PodDisruptionBudget: while it exists, no OSD's pod may be evicted.
///
/// Two PodDisruptionBudgets over one pod allow no eviction either (`pods/eviction`, HTTP 500).
pub(in crate::k8s) const OWN_PDB: &str = "osd-migrate-drains";

impl K8s {
    /// Returns the OSDs' PodDisruptionBudget, if it exists and says how many pods may be unavailable.
    pub(crate) async fn osd_pdb(&self) -> Result<Option<OsdPdb>, K8sError> {
        Ok(self.kind::<PodDisruptionBudget>().get_opt(ROOK_PDB).await?.and_then(pdb))
    }

    /// Returns the uid of our own PodDisruptionBudget, if it exists.
    pub async fn own_pdb(&self) -> Result<Option<String>, K8sError> {
        Ok(self.kind::<PodDisruptionBudget>().get_opt(OWN_PDB).await?.and_then(|found| found.metadata.uid))
    }

    /// Sets how many OSD pods may be evicted at a time, if the object has that uid and generation.
    ///
    /// The object is read again, and the write requires the version read here, because its status changes
    /// with each pod that becomes ready.
    pub async fn limit_drains(&self, expected: (&str, i64), max_unavailable: u32) -> Result<(), K8sError> {
        let pdbs = self.untyped(&ApiResource::erase::<PodDisruptionBudget>(&()));
        let found = pdbs.get(ROOK_PDB).await?;
        let what = format!("poddisruptionbudget/{ROOK_PDB}");
        let version = expect_unchanged(&found.metadata, expected, what)?;
        pdbs.json_patch(ROOK_PDB, &tested(&version, "/spec/maxUnavailable", max_unavailable)).await?;
        // A policy may set it back without an error.
        match self.osd_pdb().await? {
            Some(now) if now.max_unavailable != max_unavailable => Err(K8sError::Refused {
                call: pdbs.call("patch", Some(ROOK_PDB)),
                message: format!(
                    "maxUnavailable {max_unavailable} was accepted, and is {} again",
                    now.max_unavailable
                ),
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// Creates our own PodDisruptionBudget; an existing one is success.
    pub async fn create_pdb(&self) -> Result<(), K8sError> {
        match self.kind::<PodDisruptionBudget>().create(OWN_PDB, &own()).await {
            Ok(_) | Err(K8sError::AlreadyExists(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Deletes our own PodDisruptionBudget, if it has this uid; one that is already deleted is success.
    pub async fn delete_pdb(&self, uid: &str) -> Result<(), K8sError> {
        self.kind::<PodDisruptionBudget>().delete(OWN_PDB, uid, PropagationPolicy::Background).await
    }
}

/// Builds our own PodDisruptionBudget.
///
/// Its selector `app=rook-ceph-osd` is Rook's, and the one by which osd-migrate lists OSD pods.
fn own() -> PodDisruptionBudget {
    let osds = [("app".to_owned(), "rook-ceph-osd".to_owned())].into();
    let spec = PodDisruptionBudgetSpec {
        max_unavailable: Some(IntOrString::Int(0)),
        selector: Some(LabelSelector { match_labels: Some(osds), match_expressions: None }),
        ..PodDisruptionBudgetSpec::default()
    };
    let metadata = ObjectMeta {
        name: Some(OWN_PDB.to_owned()),
        labels: Some(names::labels(Part::Drains)),
        ..ObjectMeta::default()
    };
    PodDisruptionBudget { metadata, spec: Some(spec), status: None }
}

fn pdb(found: PodDisruptionBudget) -> Option<OsdPdb> {
    let spec = found.spec?;
    let IntOrString::Int(max_unavailable) = spec.max_unavailable? else { return None };
    let ObjectMeta { uid, generation, .. } = found.metadata;
    let but = |rule: &LabelSelectorRequirement| rule.key == "osd" && rule.operator == "NotIn";
    let rules = spec.selector.and_then(|selector| selector.match_expressions).unwrap_or_default();
    let left_out = rules.into_iter().filter(but).flat_map(|rule| rule.values.unwrap_or_default());
    Some(OsdPdb {
        max_unavailable: u32::try_from(max_unavailable).ok()?,
        left_out: left_out.filter_map(|id| id.parse().ok().map(OsdId)).collect(),
        uid: uid?,
        generation: generation?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::k8s::wire::{on, play, refusal};

    #[tokio::test]
    async fn pdb_is_limited_if_only_its_status_has_changed() {
        let path = "/apis/policy/v1/namespaces/rook-ceph/poddisruptionbudgets/rook-ceph-osd";
        let found = |limit: Value| json!({"metadata": {"uid": "u", "generation": 3, "resourceVersion": "7"}, "spec": {"maxUnavailable": limit}});
        let but = json!({"matchExpressions": [{"key": "app", "operator": "In", "values": ["rook-ceph-osd"]},
            {"key": "osd", "operator": "NotIn", "values": ["0", "7"]}]});
        let mut leaves_out = found(json!(1));
        leaves_out["spec"]["selector"] = but;
        let script = vec![on(&format!("GET {path}"), 200, leaves_out)];
        let pdb = play(script, async |k8s| k8s.osd_pdb().await).await.unwrap();
        assert_eq!(pdb.map(|pdb| pdb.left_out), Some([OsdId(0), OsdId(7)].into()));
        for (limit, expected) in [(json!(1), Some((1, 3))), (json!("10%"), None), (Value::Null, None)] {
            let script = vec![on(&format!("GET {path}"), 200, found(limit))];
            let pdb = play(script, async |k8s| k8s.osd_pdb().await).await.unwrap();
            assert_eq!(pdb.map(|pdb| (pdb.max_unavailable, pdb.generation)), expected);
        }
        let check = |body: Value| {
            assert_eq!(body[0], json!({"op": "test", "path": "/metadata/resourceVersion", "value": "7"}));
            assert_eq!(body[1], json!({"op": "replace", "path": "/spec/maxUnavailable", "value": 0}));
        };
        // The status was written since the observation: another resourceVersion, the same generation.
        let object = || {
            let mut found = found(json!(1));
            (found["apiVersion"], found["kind"]) = (json!("policy/v1"), json!("PodDisruptionBudget"));
            found
        };
        let script = vec![
            on(&format!("GET {path}"), 200, object()),
            on(
                &format!("PATCH {path}?&fieldManager=osd-migrate application/json-patch+json"),
                200,
                json!({}),
            )
            .with(check),
            on(&format!("GET {path}"), 200, found(json!(0))),
        ];
        play(script, async |k8s| k8s.limit_drains(("u", 3), 0).await).await.unwrap();
        // A policy sets it back.
        let write = format!("PATCH {path}?&fieldManager=osd-migrate application/json-patch+json");
        let script = vec![
            on(&format!("GET {path}"), 200, object()),
            on(&write, 200, json!({})),
            on(&format!("GET {path}"), 200, found(json!(1))),
        ];
        let result = play(script, async |k8s| k8s.limit_drains(("u", 3), 0).await).await;
        assert!(matches!(result, Err(K8sError::Refused { .. })), "{result:?}");
        for other in [("u", 2), ("v", 3)] {
            let script = vec![on(&format!("GET {path}"), 200, object())];
            let result = play(script, async |k8s| k8s.limit_drains(other, 0).await).await;
            assert!(matches!(result, Err(K8sError::Unexpected { .. })), "{other:?}: {result:?}");
        }
    }

    #[tokio::test]
    async fn own_pdb_is_created_once_and_deleted_by_its_uid() {
        let all = "/apis/policy/v1/namespaces/rook-ceph/poddisruptionbudgets";
        let check = |body: Value| {
            assert_eq!(body["metadata"]["name"], OWN_PDB);
            assert_eq!(body["metadata"]["labels"]["app.kubernetes.io/name"], "osd-migrate");
            let spec = json!({"maxUnavailable": 0, "selector": {"matchLabels": {"app": "rook-ceph-osd"}}});
            assert_eq!(body["spec"], spec);
        };
        for (status, answer) in [(201, json!({})), (409, refusal(409, "AlreadyExists"))] {
            let script =
                vec![on(&format!("POST {all}?&fieldManager=osd-migrate"), status, answer).with(check)];
            play(script, async |k8s| k8s.create_pdb().await).await.unwrap();
        }
        let found = json!({"metadata": {"name": OWN_PDB, "uid": "u1"}});
        let script = vec![on(&format!("GET {all}/{OWN_PDB}"), 200, found)];
        assert_eq!(play(script, async |k8s| k8s.own_pdb().await).await.unwrap().as_deref(), Some("u1"));
        let check = |body: Value| assert_eq!(body["preconditions"], json!({"uid": "u1"}));
        for (status, answer, is_done) in [
            (200, json!({}), true),
            (404, refusal(404, "NotFound"), true),
            (409, refusal(409, "Conflict"), false),
        ] {
            let script = vec![on(&format!("DELETE {all}/{OWN_PDB}?"), status, answer).with(check)];
            let done = play(script, async |k8s| k8s.delete_pdb("u1").await).await;
            assert_eq!(done.is_ok(), is_done, "{done:?}");
        }
    }
}
