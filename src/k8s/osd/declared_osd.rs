//! Settings of a CephCluster for the pods of all its OSDs, in the places where Rook puts them.
//!
//! A new OSD's Deployment is rendered onto this base, as a migrated OSD's Deployment is rendered onto its old
//! one. The settings are read untyped, as everything of a CephCluster. Pure.

use kube::api::DynamicObject;
use serde_json::{Map, Value, json};

use crate::domain::storage::Toleration;
use crate::k8s::client::error::K8sError;
use crate::k8s::tolerations;

/// Annotation that lists the networks that Multus adds to a pod.
const NETWORKS: &str = "k8s.v1.cni.cncf.io/networks";

/// Builds the base.
///
/// The node is pinned by name, so only the tolerations of `spec.placement` matter.
pub(super) fn base(
    cluster: &DynamicObject,
    namespace: &str,
    class: Option<&str>,
    tolerated: &[Toleration],
) -> Result<Value, K8sError> {
    let spec = cluster.data.get("spec").cloned().unwrap_or_default();
    let labels = of_osds(&spec, "labels");
    let annotations = of_osds(&spec, "annotations");
    let mut of_pod = annotations.clone();
    if let Some(networks) = networks(&spec, namespace).map_err(|why| K8sError::Malformed {
        what: format!("cephcluster/{}", cluster.metadata.name.clone().unwrap_or_default()),
        why,
    })? {
        of_pod.entry(NETWORKS).or_insert(json!(networks));
    }
    let mut pod = json!({
        "tolerations": tolerations::render(tolerated),
        "containers": [{"name": "osd", "resources": resources(&spec, class)}],
    });
    if let (Some(class), Some(pod)) = (priority_class(&spec), pod.as_object_mut()) {
        pod.insert("priorityClassName".to_owned(), json!(class));
    }
    Ok(json!({
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": {"template": {"metadata": {"labels": labels, "annotations": of_pod}, "spec": pod}},
    }))
}

/// Returns `labels` or `annotations`: those of `all`, and of `osd` the keys that `all` does not have (Rook's
/// `mergeAllLabelsWithKey`).
fn of_osds(spec: &Value, field: &str) -> Map<String, Value> {
    let of = |key: &str| spec.get(field)?.get(key)?.as_object().cloned();
    let mut all = of("all").unwrap_or_default();
    for (key, value) in of("osd").unwrap_or_default() {
        all.entry(key).or_insert(value);
    }
    all
}

/// Returns the resources of `osd-<class>` if they exist, else of `osd`.
fn resources(spec: &Value, class: Option<&str>) -> Value {
    let of = |key: &str| spec.get("resources")?.get(key).filter(|value| value.is_object()).cloned();
    let of_class = class.filter(|class| !class.is_empty()).and_then(|class| of(&format!("osd-{class}")));
    of_class.or_else(|| of("osd")).unwrap_or_else(|| json!({}))
}

fn priority_class(spec: &Value) -> Option<&str> {
    let of = |key: &str| spec.get("priorityClassNames")?.get(key)?.as_str();
    of("osd").or_else(|| of("all")).filter(|class| !class.is_empty())
}

/// Returns the annotation for Multus, if the network provider is Multus: without it, an OSD would not find
/// the public network.
fn networks(spec: &Value, namespace: &str) -> Result<Option<String>, String> {
    if spec.pointer("/network/provider").and_then(Value::as_str) != Some("multus") {
        return Ok(None);
    }
    let selector = |network: &str| spec.pointer("/network/selectors")?.get(network)?.as_str();
    let mut all = Vec::new();
    for text in ["public", "cluster"].into_iter().filter_map(selector).filter(|text| !text.is_empty()) {
        all.push(selection(text, namespace).ok_or_else(|| {
            format!("spec.network.selectors: `{text}` is not namespace/name, name or one element as JSON")
        })?);
    }
    Ok((!all.is_empty()).then(|| Value::Array(all).to_string()))
}

/// Parses one network: `NAMESPACE/NAME@INTERFACE` (only NAME is required) or JSON, in a list or alone.
fn selection(text: &str, namespace: &str) -> Option<Value> {
    let mut element = if text.trim_start().starts_with(['[', '{']) {
        let parsed: Value = serde_json::from_str(text).ok()?;
        match parsed.as_array().map(Vec::as_slice) {
            Some([only]) => only.clone(),
            Some(_) => return None,
            None => parsed,
        }
    } else {
        let (network, interface) = text.split_once('@').map_or((text, None), |(n, i)| (n, Some(i)));
        let (of, name) = network.split_once('/').unwrap_or((namespace, network));
        let mut element = json!({"name": name, "namespace": of});
        if let (Some(interface), Some(element)) = (interface, element.as_object_mut()) {
            element.insert("interface".to_owned(), json!(interface));
        }
        element
    };
    let object = element.as_object_mut()?;
    object.entry("namespace").or_insert(json!(namespace));
    let named = object.get("name").and_then(Value::as_str).is_some_and(|name| !name.is_empty());
    named.then_some(element)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn created(spec: &Value, class: &str) -> Value {
        let cluster = json!({"apiVersion": "ceph.rook.io/v1", "kind": "CephCluster",
            "metadata": {"name": "c"}, "spec": spec});
        let tolerated = tolerations::parse(Some(&json!([{"key": "storage", "operator": "Exists"}])));
        base(&serde_json::from_value(cluster).unwrap(), "rook-ceph", Some(class), &tolerated).unwrap()
    }

    #[test]
    fn cephcluster_settings_for_osds_reach_the_new_deployment() {
        let spec = json!({
            "labels": {"all": {"team": "storage", "a": "all"}, "osd": {"a": "osd", "b": "osd"}, "mon": {"c": "mon"}},
            "annotations": {"osd": {"note": "x"}},
            "priorityClassNames": {"all": "high", "osd": "highest"},
            "resources": {"osd": {"limits": {"memory": "4Gi"}}, "osd-nvme": {"limits": {"memory": "8Gi"}}},
        });
        let hdd = created(&spec, "hdd");
        let labels = json!({"team": "storage", "a": "all", "b": "osd"});
        assert_eq!(hdd.pointer("/metadata/labels"), Some(&labels));
        assert_eq!(hdd.pointer("/spec/template/metadata/labels"), Some(&labels));
        assert_eq!(hdd.pointer("/spec/template/metadata/annotations"), Some(&json!({"note": "x"})));
        let pod = hdd.pointer("/spec/template/spec").unwrap();
        assert_eq!(pod["tolerations"], json!([{"key": "storage", "operator": "Exists"}]));
        assert_eq!((&pod["priorityClassName"], pod.get("affinity")), (&json!("highest"), None));
        assert_eq!(pod["containers"][0]["resources"]["limits"]["memory"], "4Gi");
        let memory = "/spec/template/spec/containers/0/resources/limits/memory";
        assert_eq!(created(&spec, "nvme").pointer(memory).unwrap(), "8Gi");
        let all = created(&json!({"priorityClassNames": {"all": "high"}}), "");
        assert_eq!(all.pointer("/spec/template/spec/priorityClassName").unwrap(), "high");
        assert!(created(&json!({}), "").pointer("/spec/template/spec/priorityClassName").is_none());
    }

    #[test]
    fn multus_networks_are_named_as_rook_names_them() {
        let with = |selectors: Value| {
            let spec = json!({"network": {"provider": "multus", "selectors": selectors}});
            let object = created(&spec, "");
            let text = object.pointer("/spec/template/metadata/annotations").unwrap().get(NETWORKS).cloned();
            text.map(|text| serde_json::from_str::<Value>(text.as_str().unwrap()).unwrap())
        };
        assert_eq!(
            with(json!({"public": "public-net", "cluster": "net/cluster-net@eth9"})),
            Some(json!([{"name": "public-net", "namespace": "rook-ceph"},
                {"name": "cluster-net", "namespace": "net", "interface": "eth9"}]))
        );
        assert_eq!(
            with(json!({"cluster": "[{\"name\": \"c\", \"interface\": \"e\"}]"})),
            Some(json!([{"name": "c", "namespace": "rook-ceph", "interface": "e"}]))
        );
        assert_eq!(with(json!({})), None);
        let spec = json!({"network": {"provider": "multus", "selectors": {"public": "[]"}}});
        let cluster = json!({"apiVersion": "v1", "kind": "CephCluster", "metadata": {}, "spec": spec});
        assert!(base(&serde_json::from_value(cluster).unwrap(), "n", None, &[]).is_err());
    }
}
