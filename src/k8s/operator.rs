//! Rook's operator and the OSDs' PodDisruptionBudget: what they are, and how they are set aside for the time being.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::core::ApiResource;
use serde_json::{Value, json};

use crate::domain::observation::{Operator, OsdBudget};

use super::{K8s, K8sError, pods};

/// The label of its Deployment and pods (Rook's `operator.yaml` and chart).
const SELECTOR: &str = "app=rook-ceph-operator";

/// Rook's PodDisruptionBudget while no domain is drained (`pkg/operator/ceph/disruption/clusterdisruption`).
const BUDGET: &str = "rook-ceph-osd";

/// The release from which Rook leaves a CephCluster with the label `do-not-reconcile` alone (`pkg/operator/ceph/cluster`, 1.20).
const HONOURS_FENCE: (u32, u32) = (1, 20);

impl K8s {
    /// Rook's operator. That a namespace has none is a note; that it may not be read is an error.
    pub(super) async fn operator(&self, named_by_osds: Option<String>) -> Result<Option<Operator>, K8sError> {
        let ours = self.namespace().to_owned();
        let namespace = self.place.operator_namespace.clone().or(named_by_osds).unwrap_or(ours);
        let (deployments, all_pods) =
            (self.kind_in::<Deployment>(&namespace), self.kind_in::<Pod>(&namespace));
        // One that may not be looked at is not taken for one that is not there: it would start the OSD in the middle of it.
        let (found, pods) = tokio::try_join!(
            deployments.list(SELECTOR, Some),
            all_pods.list(SELECTOR, |pod| (!pods::is_terminal(&pod)).then_some(())),
        )?;
        let Some(deployment) = found.into_iter().next() else {
            self.note(format!("no Deployment of Rook's operator in namespace {namespace}"));
            return Ok(None);
        };
        self.operator_in.get_or_init(|| namespace.clone());
        let spec = deployment.spec.unwrap_or_default();
        let containers = spec.template.spec.map(|s| s.containers).unwrap_or_default();
        let image = containers.into_iter().next().and_then(|c| c.image).unwrap_or_default();
        Ok(Some(Operator {
            name: format!("{namespace}/{}", deployment.metadata.name.unwrap_or_default()),
            honours_fence: rook_version(&image).is_some_and(|version| version >= HONOURS_FENCE),
            image,
            replicas: u32::try_from(spec.replicas.unwrap_or(1)).unwrap_or(0),
            pods: u32::try_from(pods.len()).unwrap_or(u32::MAX),
            generation: deployment.metadata.generation.unwrap_or_default(),
            resource_version: deployment.metadata.resource_version.unwrap_or_default(),
        }))
    }

    /// The OSDs' budget, where it is there and says how many may be unavailable.
    pub(super) async fn osd_budget(&self) -> Result<Option<OsdBudget>, K8sError> {
        Ok(self.kind::<PodDisruptionBudget>().get_opt(BUDGET).await?.and_then(budget))
    }

    /// Replicas of the operator `namespace/name`, if its Deployment has that resourceVersion.
    pub async fn scale_operator(&self, name: &str, version: &str, replicas: u32) -> Result<(), K8sError> {
        let (namespace, name) = name.split_once('/').unwrap_or((self.namespace(), name));
        let deployments = self.untyped_in(&ApiResource::erase::<Deployment>(&()), namespace);
        deployments.json_patch_of(Some("scale"), name, &tested(version, "/spec/replicas", replicas)).await
    }

    /// How many OSD pods may be evicted at a time, if the budget has that resourceVersion.
    pub async fn limit_drains(&self, version: &str, max_unavailable: u32) -> Result<(), K8sError> {
        let budgets = self.untyped(&ApiResource::erase::<PodDisruptionBudget>(&()));
        budgets.json_patch(BUDGET, &tested(version, "/spec/maxUnavailable", max_unavailable)).await
    }
}

/// One number replaced, on that version of the object and on no other.
fn tested(version: &str, path: &str, value: u32) -> Value {
    json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        {"op": "replace", "path": path, "value": value},
    ])
}

fn budget(found: PodDisruptionBudget) -> Option<OsdBudget> {
    let IntOrString::Int(max_unavailable) = found.spec?.max_unavailable? else { return None };
    let resource_version = found.metadata.resource_version?;
    Some(OsdBudget { max_unavailable: u32::try_from(max_unavailable).ok()?, resource_version })
}

/// (major, minor) of a Rook image by its tag, `rook/ceph:v1.20.3`, with or without a digest after it. An image that is named in
/// another way is taken for one that honours nothing.
fn rook_version(image: &str) -> Option<(u32, u32)> {
    let name = image.split('@').next()?;
    let (_, tag) = name.rsplit_once('/').unwrap_or(("", name)).1.split_once(':')?;
    let mut numbers = tag.strip_prefix('v').unwrap_or(tag).split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::k8s::wire_tests::{on, play, refusal};

    #[test]
    fn the_release_of_rook_is_told_by_the_tag_of_its_image() {
        let cases = [
            ("rook/ceph:v1.20.0", Some((1, 20))),
            ("registry.example:5000/rook/ceph:v1.9.13", Some((1, 9))),
            ("rook/ceph:v1.21.2@sha256:0123", Some((1, 21))),
            ("rook/ceph:1.22", Some((1, 22))),
            ("rook/ceph:v2.0.0-beta.1", Some((2, 0))),
            ("rook/ceph", None),
            ("registry.example:5000/rook/ceph", None),
            ("rook/ceph:master", None),
            ("rook/ceph@sha256:0123", None),
        ];
        for (image, version) in cases {
            assert_eq!(rook_version(image), version, "{image}");
        }
        assert!((1, 20) >= HONOURS_FENCE && (1, 9) < HONOURS_FENCE);
    }

    #[tokio::test]
    async fn the_operator_is_scaled_on_the_very_version_that_was_looked_at() {
        let patch = "PATCH /apis/apps/v1/namespaces/rook/deployments/rook-ceph-operator/scale? application/json-patch+json";
        let check = |body: Value| {
            assert_eq!(body[0], json!({"op": "test", "path": "/metadata/resourceVersion", "value": "41"}));
            assert_eq!(body[1], json!({"op": "replace", "path": "/spec/replicas", "value": 0}));
        };
        for (status, answer, is_done) in [
            (200, json!({}), true),
            (422, refusal(422, "Invalid"), false),
            (409, refusal(409, "Conflict"), false),
        ] {
            let script = vec![on(patch, status, answer).with(check)];
            let done =
                play(script, async |k8s| k8s.scale_operator("rook/rook-ceph-operator", "41", 0).await).await;
            assert_eq!(done.is_ok(), is_done, "{done:?}");
        }
    }

    #[tokio::test]
    async fn the_budget_is_read_and_limited_on_the_very_version_that_was_looked_at() {
        let path = "/apis/policy/v1/namespaces/rook-ceph/poddisruptionbudgets/rook-ceph-osd";
        let found =
            |limit: Value| json!({"metadata": {"resourceVersion": "7"}, "spec": {"maxUnavailable": limit}});
        for (limit, expected) in [(json!(1), Some(1)), (json!("10%"), None), (Value::Null, None)] {
            let script = vec![on(&format!("GET {path}"), 200, found(limit))];
            let budget = play(script, async |k8s| k8s.osd_budget().await).await.unwrap();
            assert_eq!(budget.map(|budget| budget.max_unavailable), expected);
        }
        let check = |body: Value| {
            assert_eq!(body[0], json!({"op": "test", "path": "/metadata/resourceVersion", "value": "7"}));
            assert_eq!(body[1], json!({"op": "replace", "path": "/spec/maxUnavailable", "value": 0}));
        };
        let script =
            vec![on(&format!("PATCH {path}? application/json-patch+json"), 200, json!({})).with(check)];
        play(script, async |k8s| k8s.limit_drains("7", 0).await).await.unwrap();
    }
}
