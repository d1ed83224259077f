//! `docs/reference/values.md`, from the comments of values.yaml and from values.schema.json.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::wrapped;
use crate::runbook::read;

const CHART: &str = "charts/osd-migrate";

const HEAD: &str = "# Values of the chart

<!-- Generated from charts/osd-migrate: REFERENCE_WRITE=1 cargo test --locked --test suite reference:: -->

Set them in a file of values, or with `--set NAME=VALUE`: an upgrade with `--set` alone resets all others, unless it has
the option `--reset-then-reuse-values`. A wrong value fails before
anything is changed. Which of them you need: [install](../guides/install.md#with-helm).
";

/// A key of values.yaml.
struct Key {
    path: Vec<String>,
    comment: String,
    /// Default of the key; empty if other keys are below the key.
    default: String,
}

/// Reads keys and the comments above them.
///
/// The function only supports the YAML of this one file: maps indented by two columns, values in one line.
fn keys() -> Vec<Key> {
    let mut found: Vec<Key> = Vec::new();
    let (mut above, mut comment) = (Vec::<String>::new(), Vec::<&str>::new());
    let text = read(&format!("{CHART}/values.yaml"));
    for line in text.lines() {
        let bare = line.trim_start();
        if let Some(words) = bare.strip_prefix('#') {
            comment.push(words.trim());
        } else if bare.is_empty() {
            comment.clear();
        } else {
            let (name, default) = bare.split_once(':').unwrap();
            above.truncate((line.len() - bare.len()) / 2);
            above.push(name.to_owned());
            let (comment, default) = (std::mem::take(&mut comment).join(" "), default.trim().to_owned());
            found.push(Key { path: above.clone(), comment, default });
        }
    }
    found
}

pub(super) fn page() -> String {
    let schema: Value = serde_json::from_str(&read(&format!("{CHART}/values.schema.json"))).unwrap();
    let keys = keys();
    assert_same_keys(&schema, &keys);
    let by_path: BTreeMap<String, &Key> = keys.iter().map(|key| (key.path.join("."), key)).collect();
    let section = |key: &Key| match (key.default.is_empty(), key.path.as_slice()) {
        (true, [name]) => format!("\n## {name}\n{}", paragraph(&key.comment)),
        (true, path) => format!("\n### {}\n{}", path.join("."), paragraph(&key.comment)),
        (false, path) => {
            let name = path.join(".");
            let is_of_none =
                path.len() == 1 || !by_path[&path[..path.len() - 1].join(".")].default.is_empty();
            let marks = if is_of_none { "##" } else { "###" };
            let what = [format!("Default: `{}`.", key.default), kind(&schema, path)].join(" ");
            format!("\n{marks} `{name}`\n\n{}\n{}", wrapped(what.trim(), ""), paragraph(&key.comment))
        }
    };
    format!("{HEAD}{}", keys.iter().map(section).collect::<String>())
}

const README_HEAD: &str = "# osd-migrate

<!-- Generated from values.yaml: REFERENCE_WRITE=1 cargo test --locked --test suite reference:: -->

Brings every OSD of a Rook/Ceph cluster to the storage that the CephCluster declares, one host at a time, with the
same id.

## Install

The chart comes with a release, as `oci://REGISTRY/charts/osd-migrate`. Install it once, into the namespace of the
CephCluster:

    helm install osd-migrate oci://REGISTRY/charts/osd-migrate -n rook-ceph

The installation changes nothing and starts no pod. Read the plan first. It changes nothing, either:

    kubectl osd-migrate -n rook-ceph plan

To check that a run could read the cluster, with the account of runs:

    helm test osd-migrate -n rook-ceph

The notes after the installation say how to confirm and to start a run, with kubectl alone, too.

## Values

A wrong value fails before anything is changed, with a sentence that says what to write.

| value | default | meaning |
| --- | --- | --- |
";

const README_TAIL: &str = "
## Uninstall

    helm uninstall osd-migrate -n rook-ceph

A hook fails while an OSD is in progress, and restores what was changed temporarily.
";

/// Returns the README of the chart.
pub(super) fn readme() -> String {
    let keys = keys();
    let cell = |text: &str| text.replace('|', "\\|");
    // A switch has its comment above the part that it switches, and maps with defaults above their keys.
    let comment = |key: &Key| {
        let above = &key.path[..key.path.len() - 1];
        let part = keys.iter().find(|part| part.path == above).map_or("", |part| part.comment.as_str());
        if key.comment.is_empty() { part.to_owned() } else { key.comment.clone() }
    };
    let row = |key: &Key| {
        let (name, comment) = (key.path.join("."), comment(key));
        assert!(!comment.is_empty(), "values.yaml: {name} has no comment");
        format!("| `{name}` | `{}` | {} |\n", cell(&key.default), cell(&comment))
    };
    let rows: String = keys.iter().filter(|key| !key.default.is_empty()).map(row).collect();
    format!("{README_HEAD}{rows}{README_TAIL}")
}

fn paragraph(comment: &str) -> String {
    if comment.is_empty() { String::new() } else { format!("\n{}\n", wrapped(comment, "")) }
}

/// Follows `$ref` into the definitions.
fn resolved<'a>(schema: &'a Value, of: &'a Value) -> &'a Value {
    match of["$ref"].as_str() {
        Some(name) => resolved(schema, schema.pointer(name.trim_start_matches('#')).unwrap()),
        None => of,
    }
}

fn property<'a>(schema: &'a Value, path: &[String]) -> &'a Value {
    path.iter().fold(schema, |of, name| resolved(schema, &of["properties"][name]))
}

/// Returns the permitted values of a key, in words.
fn kind(schema: &Value, path: &[String]) -> String {
    let of = property(schema, path);
    let mut words = Vec::new();
    if let Some(values) = of["enum"].as_array() {
        words.push(format!(
            "One of {}.",
            values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ")
        ));
    }
    let types: Vec<&str> = match &of["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !types.is_empty() {
        let range = match (of["minimum"].as_i64(), of["maximum"].as_i64()) {
            (Some(least), Some(most)) => format!(", {least} to {most}"),
            (Some(least), None) => format!(", {least} or more"),
            (None, Some(most)) => format!(", {most} or less"),
            (None, None) => String::new(),
        };
        words.push(format!("Type: {}{range}.", types.join(" or ")));
    }
    let described = of["description"].as_str().map(|text| format!("{}.", text.trim_end_matches('.')));
    words.into_iter().chain(described).collect::<Vec<_>>().join(" ")
}

/// Keys that an umbrella chart sets, and that have no default.
const OF_UMBRELLAS: [&str; 2] = ["enabled", "global"];

fn assert_same_keys(schema: &Value, keys: &[Key]) {
    let mut of_schema = BTreeSet::new();
    let mut rest: Vec<(Vec<String>, &Value)> = vec![(Vec::new(), schema)];
    while let Some((path, of)) = rest.pop() {
        let Some(properties) = of["properties"].as_object() else { continue };
        for (name, of) in properties {
            let path: Vec<String> = path.iter().chain([name]).cloned().collect();
            of_schema.insert(path.join("."));
            rest.push((path, resolved(schema, of)));
        }
    }
    of_schema.retain(|name| !OF_UMBRELLAS.contains(&name.as_str()));
    // A map in one line, `requests: {cpu: 50m}`, has its keys in its default.
    let in_one_line = |name: &String| {
        keys.iter()
            .any(|key| key.default.starts_with('{') && name.starts_with(&format!("{}.", key.path.join("."))))
    };
    of_schema.retain(|name| !in_one_line(name));
    let of_values: BTreeSet<String> = keys.iter().map(|key| key.path.join(".")).collect();
    let missing: Vec<_> = of_schema.symmetric_difference(&of_values).collect();
    assert!(missing.is_empty(), "in values.yaml or in values.schema.json only: {missing:?}");
}
