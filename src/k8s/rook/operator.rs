//! Rook's operator: its state, and how it is scaled down temporarily.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{Pod, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::ApiResource;
use serde_json::{Value, json};

use crate::domain::expect;
use crate::domain::observation::Operator;
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;
use crate::k8s::pods;

/// Label of the operator's pods, by which its Deployment selects them (Rook's `operator.yaml` and chart).
pub(in crate::k8s) const OPERATOR_APP: (&str, &str) = ("app", "rook-ceph-operator");

/// Selector of the operator's pods.
///
/// The Deployment itself does not have this label, so all Deployments are listed except those of which there
/// is one for each OSD or node.
const PODS: &str = "app=rook-ceph-operator";
const NOT_NUMEROUS: &str = "app notin (rook-ceph-osd,rook-ceph-crashcollector,rook-ceph-exporter)";

/// Release of Rook: major, minor and patch.
type Release = (u32, u32, u32);

/// First release that does not reconcile a CephCluster with the label `do-not-reconcile`, and says so by an
/// event about the version that it read (`pkg/operator/ceph/cluster/controller.go`, 1.19.2).
///
/// 1.18.9 to 1.19.1 honour the label, too. But their recorder (client-go's `tools/record`) counts a further
/// event of the same text on the first one, which keeps its version.
const HONOURS_FENCE: Release = (1, 19, 2);

/// First release that activates an OSD on LVM as the `encryptedDevice` of its node says
/// (`activateOSDOnNodeCode`, pkg/operator/ceph/cluster/osd/spec.go, 1.20.0).
const OPENS_LVM: Release = (1, 20, 0);

impl K8s {
    /// Returns Rook's operator, if the namespace has one; a missing right to read it is an error.
    ///
    /// `known`: name of its Deployment (`namespace/name`) in an earlier observation. The others are not read
    /// while that one still selects the operator's pods.
    pub(crate) async fn operator(
        &self,
        named_by_osds: Option<String>,
        known: Option<&str>,
    ) -> Result<Option<Operator>, K8sError> {
        let ours = self.namespace().to_owned();
        let namespace = self.place.operator_namespace.clone().or(named_by_osds).unwrap_or(ours);
        let (deployments, all_pods) =
            (self.kind_in::<Deployment>(&namespace), self.kind_in::<Pod>(&namespace));
        // An operator that can't be read does not count as absent: it would start the OSD meanwhile.
        let is_it = |found: Deployment| selects_operator(&found).then_some(found);
        let known = known.and_then(|known| known.strip_prefix(&namespace)?.strip_prefix('/'));
        let deployment = async {
            let named = match known {
                Some(name) => deployments.list_where(&format!("metadata.name={name}"), is_it).await?,
                None => Vec::new(),
            };
            let found = if named.is_empty() { deployments.list(NOT_NUMEROUS, is_it).await? } else { named };
            Ok(found.into_iter().next())
        };
        let (deployment, running) = tokio::try_join!(
            deployment,
            all_pods.list(PODS, |pod| (!pods::is_terminal(&pod)).then_some(pod)),
        )?;
        let count = u32::try_from(running.len()).unwrap_or(u32::MAX);
        let Some(deployment) = deployment.or_else(|| running.into_iter().next().map(without_deployment))
        else {
            return Ok(None);
        };
        let operator = of_deployment(deployment, &namespace, count);
        self.operator_in.get_or_init(|| namespace.clone());
        Ok(Some(operator))
    }

    /// Sets the replicas of the operator `namespace/name`, if its Deployment has that uid and generation.
    ///
    /// It is read again, and the write requires the version read here, because the status changes by itself.
    pub async fn scale_operator(
        &self,
        name: &str,
        expected: (&str, i64),
        replicas: u32,
    ) -> Result<(), K8sError> {
        let (namespace, name) = name.split_once('/').unwrap_or((self.namespace(), name));
        let deployments = self.untyped_in(&ApiResource::erase::<Deployment>(&()), namespace);
        let what = format!("deployment/{name}");
        // A list is used, as in every observation: it needs no additional right.
        let found = deployments.list_where(&format!("metadata.name={name}"), Some).await?.pop();
        let missing = || K8sError::Unexpected { what: what.clone(), found: "it no longer exists".to_owned() };
        let version = expect_unchanged(&found.ok_or_else(missing)?.metadata, expected, what)?;
        deployments.json_patch_of(Some("scale"), name, &tested(&version, "/spec/replicas", replicas)).await
    }
}

/// Returns the resourceVersion of an object on which a change that was decided earlier may be written.
pub(super) fn expect_unchanged(
    found: &ObjectMeta,
    expected: (&str, i64),
    what: String,
) -> Result<String, K8sError> {
    let now = (found.uid.as_deref().unwrap_or_default(), found.generation.unwrap_or_default());
    if expect::unchanged_operator(now, expected) {
        return Ok(found.resource_version.clone().unwrap_or_default());
    }
    let found = if now.0 == expected.0 {
        format!("its generation is {}, not {}: it changed since it was observed", now.1, expected.1)
    } else {
        format!("its uid is {}, not {}: it was recreated", now.0, expected.0)
    };
    Err(K8sError::Unexpected { what, found })
}

fn selects_operator(deployment: &Deployment) -> bool {
    let selected = deployment.spec.as_ref().and_then(|spec| spec.selector.match_labels.as_ref());
    selected.and_then(|labels| labels.get(OPERATOR_APP.0)).is_some_and(|app| app == OPERATOR_APP.1)
}

fn of_deployment(deployment: Deployment, namespace: &str, pods: u32) -> Operator {
    let (metadata, spec) = (deployment.metadata, deployment.spec.unwrap_or_default());
    let image = spec.template.spec.map(first_image).unwrap_or_default();
    let is_since = |release: Release| rook_release(&image).is_some_and(|it| it >= release);
    Operator {
        name: format!("{namespace}/{}", metadata.name.clone().unwrap_or_default()),
        honours_fence: is_since(HONOURS_FENCE),
        opens_lvm: is_since(OPENS_LVM),
        image,
        replicas: u32::try_from(spec.replicas.unwrap_or(1)).unwrap_or(0),
        pods,
        uid: metadata.uid.unwrap_or_default(),
        generation: metadata.generation.unwrap_or_default(),
    }
}

/// Represents an operator by its pod, if its Deployment is gone or unknown: it works as long as its pod runs.
fn without_deployment(pod: Pod) -> Deployment {
    let metadata = ObjectMeta { name: Some(OPERATOR_APP.1.to_owned()), ..ObjectMeta::default() };
    let template = PodTemplateSpec { spec: pod.spec, ..PodTemplateSpec::default() };
    let spec = DeploymentSpec { replicas: Some(0), template, ..DeploymentSpec::default() };
    Deployment { metadata, spec: Some(spec), status: None }
}

fn first_image(pod: PodSpec) -> String {
    pod.containers.into_iter().next().and_then(|container| container.image).unwrap_or_default()
}

/// Builds a patch that replaces one number, on that version of the object and on no other.
pub(super) fn tested(version: &str, path: &str, value: u32) -> Value {
    json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": version},
        {"op": "replace", "path": path, "value": value},
    ])
}

/// Returns the release of a Rook image by its tag, `rook/ceph:v1.20.3`, with or without a digest after it.
///
/// The suffix of a build between two releases (`v1.19.2-7.g0123abc`) is ignored, and a tag without a patch
/// stands for the first one. An image with another form of name counts as one that does not honour the fence,
/// and so does another number than Rook's 1: distributions and registries count differently (`v4.16.3`,
/// `2024.5`).
fn rook_release(image: &str) -> Option<Release> {
    let name = image.split('@').next()?;
    let (_, tag) = name.rsplit_once('/').unwrap_or(("", name)).1.split_once(':')?;
    let mut numbers = tag.strip_prefix('v').unwrap_or(tag).split('.');
    let (major, minor) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
    let patch = numbers.next().and_then(|patch| patch.split('-').next());
    let release = (major, minor, patch.map_or(Some(0), |patch| patch.parse().ok())?);
    (major == 1).then_some(release)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::k8s::wire::{on, play, refusal};

    #[test]
    fn rook_version_is_read_from_the_operator_image_tag() {
        let cases = [
            ("rook/ceph:v1.20.0", Some((1, 20, 0))),
            ("registry.example:5000/rook/ceph:v1.9.13", Some((1, 9, 13))),
            ("rook/ceph:v1.21.2@sha256:0123", Some((1, 21, 2))),
            ("rook/ceph:1.22", Some((1, 22, 0))),
            ("rook/ceph:v1.21.0-beta.1", Some((1, 21, 0))),
            ("registry.example/rook-ceph:2024.05.1", None),
            ("registry.example/rook-ceph:v4.16.3", None),
            ("rook/ceph:v1.19.2-7.g0123abc", Some((1, 19, 2))),
            ("rook/ceph:v1.19.x", None),
            ("rook/ceph", None),
            ("registry.example:5000/rook/ceph", None),
            ("rook/ceph:master", None),
            ("rook/ceph@sha256:0123", None),
        ];
        for (image, version) in cases {
            assert_eq!(rook_release(image), version, "{image}");
        }
    }

    const DEPLOYMENTS: &str = "GET /apis/apps/v1/namespaces/rook-ceph/deployments?&labelSelector=app+notin+%28rook-ceph-osd%2Crook-ceph-crashcollector%2Crook-ceph-exporter%29&limit=100";
    const PODS_OF_IT: &str =
        "GET /api/v1/namespaces/rook-ceph/pods?&labelSelector=app%3Drook-ceph-operator&limit=100";

    fn list(kind: &str, items: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": format!("{kind}List"), "metadata": {}, "items": items})
    }

    fn deployment(name: &str, labels: &Value, app: &str, image: &str) -> Value {
        json!({
            "metadata": {"name": name, "labels": labels, "generation": 3, "resourceVersion": "41"},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": {"app": app}},
                "template": {"metadata": {"labels": {"app": app}}, "spec": {"containers": [{"name": name, "image": image}]}},
            },
        })
    }

    fn pod(image: &str) -> Value {
        json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": image}]}, "status": {"phase": "Running"}})
    }

    async fn seen(deployments: &Value, pods: &Value) -> Option<Operator> {
        let script = vec![
            on(DEPLOYMENTS, 200, list("Deployment", deployments)),
            on(PODS_OF_IT, 200, list("Pod", pods)),
        ];
        play(script, async |k8s| k8s.operator(None, None).await).await.unwrap()
    }

    #[tokio::test]
    async fn known_operator_is_read_alone_while_it_selects_its_pods() {
        const NAMED: &str = "GET /apis/apps/v1/namespaces/rook-ceph/deployments?&fieldSelector=metadata.name%3Drook-ceph-operator&limit=100";
        let named = |name: &str| deployment(name, &json!({}), "rook-ceph-operator", "rook/ceph:v1.20.6");
        let known = Some("rook-ceph/rook-ceph-operator");
        let pods = || on(PODS_OF_IT, 200, list("Pod", &json!([])));
        let is_there = on(NAMED, 200, list("Deployment", &json!([named("rook-ceph-operator")])));
        let found = play(vec![is_there, pods()], async |k8s| k8s.operator(None, known).await).await;
        assert_eq!(found.unwrap().unwrap().name, "rook-ceph/rook-ceph-operator");
        let script = vec![
            on(NAMED, 200, list("Deployment", &json!([]))),
            pods(),
            on(DEPLOYMENTS, 200, list("Deployment", &json!([named("another")]))),
        ];
        let found = play(script, async |k8s| k8s.operator(None, known).await).await;
        assert_eq!(found.unwrap().unwrap().name, "rook-ceph/another");
    }

    #[tokio::test]
    async fn operator_is_found_by_its_selector_whatever_its_labels() {
        let mgr = deployment(
            "rook-ceph-mgr-a",
            &json!({"app": "rook-ceph-mgr"}),
            "rook-ceph-mgr",
            "quay.io/ceph/ceph:v20",
        );
        // These are the labels of Rook's operator.yaml, of its chart and of OLM.
        for labels in [
            json!({"operator": "rook", "storage-backend": "ceph", "app.kubernetes.io/name": "rook-ceph"}),
            json!({"operator": "rook", "helm.sh/chart": "rook-ceph-v1.20.6"}),
            json!({"olm.owner": "rook-ceph-operator.v4.20"}),
        ] {
            let operator = deployment(
                "rook-ceph-operator",
                &labels,
                "rook-ceph-operator",
                "docker.io/rook/ceph:v1.20.6",
            );
            let found = seen(&json!([mgr, operator]), &json!([pod("rook/ceph:v1.20.6")])).await.unwrap();
            assert_eq!(
                (found.name.as_str(), found.replicas, found.pods),
                ("rook-ceph/rook-ceph-operator", 1, 1)
            );
            assert!(found.honours_fence && found.runs() && found.generation == 3);
        }
        assert_eq!(seen(&json!([mgr]), &json!([])).await, None);
    }

    #[tokio::test]
    async fn operator_pod_counts_as_running_without_its_deployment() {
        for (image, honours, opens_lvm) in [
            ("rook/ceph:v1.20.6", true, true),
            ("rook/ceph:v1.19.2", true, false),
            ("rook/ceph:v1.19.1", false, false),
        ] {
            let found = seen(&json!([]), &json!([pod(image)])).await.unwrap();
            assert_eq!((found.replicas, found.pods), (0, 1));
            assert_eq!((found.honours_fence, found.opens_lvm), (honours, opens_lvm), "{image}");
            assert!(found.runs());
        }
    }

    #[tokio::test]
    async fn operator_is_scaled_only_if_at_most_its_status_has_changed() {
        let find = "GET /apis/apps/v1/namespaces/rook/deployments?&fieldSelector=metadata.name%3Drook-ceph-operator&limit=100";
        let found = || {
            let mut found =
                deployment("rook-ceph-operator", &json!({}), "rook-ceph-operator", "rook/ceph:v1.16.0");
            (found["apiVersion"], found["kind"]) = (json!("apps/v1"), json!("Deployment"));
            found["metadata"]["uid"] = json!("u");
            on(find, 200, list("Deployment", &json!([found])))
        };
        let patch = "PATCH /apis/apps/v1/namespaces/rook/deployments/rook-ceph-operator/scale?&fieldManager=osd-migrate application/json-patch+json";
        let check = |body: Value| {
            assert_eq!(body[0], json!({"op": "test", "path": "/metadata/resourceVersion", "value": "41"}));
            assert_eq!(body[1], json!({"op": "replace", "path": "/spec/replicas", "value": 0}));
        };
        for (status, answer, is_done) in [
            (200, json!({}), true),
            (422, refusal(422, "Invalid"), false),
            (409, refusal(409, "Conflict"), false),
        ] {
            let script = vec![found(), on(patch, status, answer).with(check)];
            let scale = async |k8s: &K8s| k8s.scale_operator("rook/rook-ceph-operator", ("u", 3), 0).await;
            let done = play(script, scale).await;
            assert_eq!(done.is_ok(), is_done, "{done:?}");
        }
        for other in [("u", 2), ("v", 3)] {
            let scale = async |k8s: &K8s| k8s.scale_operator("rook/rook-ceph-operator", other, 0).await;
            let result = play(vec![found()], scale).await;
            assert!(matches!(result, Err(K8sError::Unexpected { .. })), "{other:?}: {result:?}");
        }
    }
}
