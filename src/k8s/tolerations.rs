//! Taints of nodes and tolerations of pods: conversion between the API's types and the domain's. Pure.

use k8s_openapi::api::core::v1 as api;
use serde_json::{Map, Value, json};

use crate::domain::observation::Node;
use crate::domain::provision;
use crate::domain::storage::{Taint, Toleration};

/// Converts a taint of a node.
pub(super) fn taint(taint: &api::Taint) -> Taint {
    Taint {
        key: taint.key.clone(),
        value: taint.value.clone().unwrap_or_default(),
        effect: taint.effect.clone(),
    }
}

/// Parses the tolerations of a pod spec or a placement, as they are on the wire.
///
/// The schema of `placement` allows bare YAML numbers and booleans.
pub(super) fn parse(list: Option<&Value>) -> Vec<Toleration> {
    let one = |toleration: &Value| {
        let text = |key: &str| match toleration.get(key) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        Toleration {
            key: text("key"),
            operator: text("operator"),
            value: text("value"),
            effect: text("effect"),
            seconds: toleration.get("tolerationSeconds").and_then(Value::as_i64),
        }
    };
    list.and_then(Value::as_array).into_iter().flatten().map(one).collect()
}

/// Converts tolerations to the API's form, which leaves out empty fields.
pub(super) fn render(tolerations: &[Toleration]) -> Value {
    tolerations.iter().map(one).collect()
}

fn one(toleration: &Toleration) -> Value {
    let Toleration { key, operator, value, effect, seconds } = toleration;
    let texts = [("key", key), ("operator", operator), ("value", value), ("effect", effect)];
    let given = texts.into_iter().filter(|(_, text)| !text.is_empty());
    let mut object: Map<_, _> = given.map(|(key, text)| (key.to_owned(), json!(text))).collect();
    if let Some(seconds) = seconds {
        object.insert("tolerationSeconds".to_owned(), json!(seconds));
    }
    Value::Object(object)
}

/// Returns `list` with the tolerations of `add` that it does not have; none if there is nothing to add.
///
/// Existing entries stay as they are on the wire, also if this build does not know one of their fields.
pub(super) fn with_added(list: Option<&Value>, add: &[Toleration]) -> Option<Value> {
    let mut all = list.and_then(Value::as_array).cloned().unwrap_or_default();
    let before = all.len();
    for toleration in add {
        if !parse(Some(&Value::Array(all.clone()))).contains(toleration) {
            all.push(one(toleration));
        }
    }
    (all.len() > before).then_some(Value::Array(all))
}

/// Returns the tolerations for an OSD to stay on a node: those of the placement of OSDs, and those that the
/// node's taints require.
pub(super) fn for_node(placement: &[Toleration], node: &Node) -> Vec<Toleration> {
    let mut all = placement.to_vec();
    all.extend(provision::missing_tolerations(placement, node));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint(key: &str, value: &str, effect: &str) -> Taint {
        Taint { key: key.to_owned(), value: value.to_owned(), effect: effect.to_owned() }
    }

    fn read(list: &Value) -> Vec<Toleration> {
        parse(Some(list))
    }

    #[test]
    fn tolerations_survive_parse_and_render() {
        let list = json!([{"operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoSchedule"},
            {"key": "c", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]);
        assert_eq!(render(&read(&list)), list);
        assert_eq!(parse(None), []);
    }

    #[test]
    fn tolerations_of_the_placement_come_first_without_duplicates() {
        let taints = vec![taint("storage", "only", "NoSchedule"), taint("gpu", "", "NoExecute")];
        let labels = std::collections::BTreeMap::new();
        let node = Node { ready: true, cordoned: false, hostname: "h1".to_owned(), labels, taints };
        let storage = json!({"key": "storage", "value": "only"});
        let gpu = json!({"key": "gpu", "operator": "Equal", "effect": "NoExecute"});
        assert_eq!(render(&for_node(&read(&json!([storage])), &node)), json!([storage, gpu]));
    }

    #[test]
    fn tolerations_are_added_without_removal_or_duplicates() {
        let there = json!([{"key": "a", "operator": "Exists", "fieldOfTheFuture": 1}]);
        let new = read(
            &json!([{"key": "b", "operator": "Exists"}, {"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}]),
        );
        let expected = json!([{"key": "a", "operator": "Exists", "fieldOfTheFuture": 1}, {"key": "b", "operator": "Exists"}]);
        assert_eq!(with_added(Some(&there), &new), Some(expected.clone()));
        assert_eq!(with_added(Some(&expected), &new), None);
        assert_eq!(with_added(None, &new[..1]), Some(json!([{"key": "b", "operator": "Exists"}])));
    }
}
