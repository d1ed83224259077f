//! Names of the metrics: what a run serves, in the page, the alerts and the dashboard.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;
use serde_json::Value;

use osd_migrate::domain::inspection::NodeTask;
use osd_migrate::domain::temporary;
use osd_migrate::report::Figures;
use osd_migrate::telemetry::Metrics;

use crate::runbook::read;

/// Returns the text of a run with every metric.
fn text() -> String {
    let some = |names: &[&'static str]| names.iter().map(|name| (*name, 1)).collect::<BTreeMap<_, _>>();
    let mut figures = Figures {
        iteration_at: Some(chrono::DateTime::UNIX_EPOCH),
        has_ledger: true,
        changes: temporary::ALL.iter().map(|change| (change.name, true)).collect(),
        halted: Some("crash-loop"),
        node_jobs: some(
            &[NodeTask::Inspect, NodeTask::Rebuild, NodeTask::RestoreSlot, NodeTask::Clear, NodeTask::Wipe]
                .map(NodeTask::code),
        ),
        failures: some(&["observation", "act", "node-job"]),
        ..Figures::default()
    };
    figures.waited.insert("backfilling", chrono::TimeDelta::seconds(1));
    let metrics = Metrics::default();
    metrics.set(&figures);
    metrics.text()
}

/// Returns type and labels of each metric, by the name of its series.
fn served() -> BTreeMap<String, (String, String)> {
    let text = text();
    let kinds = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    kinds
        .map(|(family, kind)| {
            let name = if kind == "counter" { format!("{family}_total") } else { family.to_owned() };
            let series = text.lines().find(|line| line.starts_with(&name)).unwrap();
            let label = series.split_once('{').map_or("", |(_, rest)| rest.split('=').next().unwrap());
            (name, (kind.to_owned(), label.to_owned()))
        })
        .collect()
}

#[test]
fn names_of_metrics_follow_the_conventions() {
    let served = served();
    assert!(served.len() > 12, "{served:?}");
    let name_of = Regex::new("^osd_migrate(_[a-z]+)+$").unwrap();
    for (name, (kind, _)) in &served {
        assert!(name_of.is_match(name), "{name}");
        assert_eq!(name.ends_with("_total"), kind == "counter", "{name}");
    }
    for line in text().lines().filter_map(|line| line.strip_prefix("# HELP ")) {
        assert!(line.split_once(' ').is_some_and(|(_, help)| help.len() > 10), "{line}");
    }
}

#[test]
fn page_of_metrics_has_what_a_run_serves() {
    let page = read("docs/reference/metrics.md");
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().replace('`', "")).collect::<Vec<_>>();
    let rows = page.lines().filter(|line| line.starts_with("| `osd_migrate_")).map(cells);
    let told: BTreeMap<_, _> =
        rows.map(|cells| (cells[1].clone(), (cells[2].clone(), cells[3].clone()))).collect();
    assert_eq!(told, served());
    // The values of a label that has few are in the page.
    for line in text().lines().filter(|line| line.contains('{') && !line.contains("code=")) {
        let value = line.split('"').nth(1).unwrap();
        assert!(page.contains(&format!("`{value}`")), "{line}");
    }
}

/// Returns the metrics of this program in an expression, with the values of the labels that it selects.
fn named(text: &str) -> BTreeSet<(String, Option<(String, String)>)> {
    let metric = Regex::new(r"(osd_migrate_\w+)(\{[^}]*\})?").unwrap();
    let label = Regex::new(r#"(state|change|task|kind|code)="([^"]+)""#).unwrap();
    let mut found = BTreeSet::new();
    for one in metric.captures_iter(text) {
        let labels = one.get(2).map_or("", |labels| labels.as_str());
        let of_label = label.captures(labels).map(|one| (one[1].to_owned(), one[2].to_owned()));
        found.insert((one[1].to_owned(), of_label));
    }
    found
}

fn assert_served(what: &str, named: &BTreeSet<(String, Option<(String, String)>)>) {
    let (served, text) = (served(), text());
    assert!(named.len() >= 4, "{what}: {named:?}");
    for (name, label) in named {
        assert!(served.contains_key(name), "{what}: no run serves {name}");
        if let Some((key, value)) = label {
            assert!(text.contains(&format!("{name}{{{key}=\"{value}\"}}")), "{what}: {name} {key}={value}");
        }
    }
}

#[test]
fn alerts_ask_for_metrics_that_a_run_serves() {
    let alerts = read("charts/osd-migrate/files/alerts.yaml");
    let code: Vec<_> = alerts.lines().filter(|line| !line.starts_with('#')).collect();
    assert_served("alerts.yaml", &named(&code.join("\n")));
    // In the guide, each with its severity.
    let guide = read("docs/guides/monitor.md");
    let mut count = 0;
    for alert in alerts.split("- alert: ").skip(1) {
        let (name, rest) = alert.split_once('\n').unwrap();
        let severity = rest.split_once("{severity: ").unwrap().1.split('}').next().unwrap();
        assert!(guide.contains(&format!("\n| `{name}` | {severity} | ")), "{name} {severity}");
        count += 1;
    }
    assert_eq!(guide.matches("\n| `OsdMigrate").count(), count);
}

#[test]
fn dashboard_asks_for_metrics_that_a_run_serves() {
    let dashboard: Value = serde_json::from_str(&read("charts/osd-migrate/files/dashboard.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let exprs: Vec<&str> = panels
        .iter()
        .flat_map(|panel| panel["targets"].as_array().unwrap())
        .map(|target| target["expr"].as_str().unwrap())
        .collect();
    assert_served("dashboard.json", &named(&exprs.join("\n")));
    let asked: BTreeSet<String> = named(&exprs.join("\n")).into_iter().map(|(name, _)| name).collect();
    let unused: Vec<_> = served().into_keys().filter(|name| !asked.contains(name)).collect();
    assert!(unused.is_empty(), "no panel shows {unused:?}");
    // Every panel is of the namespace and data source that are chosen above the dashboard.
    assert!(exprs.iter().all(|expr| expr.contains("namespace=\"$namespace\"")), "{exprs:?}");
    assert!(panels.iter().all(|panel| panel["datasource"]["uid"] == "${datasource}"));
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len());
}
