//! Readers of the fields of an OSD's Deployment. Pure.

use serde_json::Value;

/// Path of the pod spec in a Deployment.
pub(crate) const POD_SPEC: &str = "/spec/template/spec";

/// Returns the container of the OSD: `osd`, else the first.
pub(crate) fn osd_container(deployment: &Value) -> Option<&Value> {
    let named = containers(deployment, "containers").find(|c| field(c, "name") == Some("osd"));
    named.or_else(|| containers(deployment, "containers").next())
}

/// Returns the literal value of an environment variable: of the OSD's container, else of any other.
pub(crate) fn env<'a>(deployment: &'a Value, key: &str) -> Option<&'a str> {
    let of = |container: &'a Value| {
        let vars = container.get("env").and_then(Value::as_array)?;
        vars.iter().find(|v| field(v, "name") == Some(key))?.get("value")?.as_str().filter(|v| !v.is_empty())
    };
    osd_container(deployment).into_iter().chain(all_containers(deployment)).find_map(of)
}

pub(crate) fn all_containers(deployment: &Value) -> impl Iterator<Item = &Value> {
    containers(deployment, "containers").chain(containers(deployment, "initContainers"))
}

pub(crate) fn containers<'a>(deployment: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    deployment.pointer(POD_SPEC).and_then(|s| s.get(key)).and_then(Value::as_array).into_iter().flatten()
}

pub(crate) fn volumes(deployment: &Value) -> impl Iterator<Item = &Value> {
    containers(deployment, "volumes")
}

/// Returns the value of a label.
pub(crate) fn label<'a>(deployment: &'a Value, key: &str) -> Option<&'a str> {
    deployment.pointer("/metadata/labels")?.get(key)?.as_str()
}

pub(crate) fn field<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer).and_then(Value::as_str)
}
