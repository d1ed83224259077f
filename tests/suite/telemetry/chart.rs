//! Settings of metrics, traces and logs in the rendered chart.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use osd_migrate::cli::LogFormat;
use osd_migrate::telemetry::OtlpSettings;

use crate::chart::{container_of, in_set, of_set, parsed, part_of};

/// Checks that only runs have a port and send traces: hooks end within seconds.
#[test]
fn telemetry_values_apply_to_runs_and_are_off_by_default() {
    let names = |workload: &Value| -> BTreeSet<String> {
        let env = container_of(workload)["env"].as_array().unwrap().clone();
        env.iter().map(|var| var["name"].as_str().unwrap().to_owned()).collect()
    };
    let is_otel = |names: &BTreeSet<String>| names.iter().any(|name| name.starts_with("OTEL_"));
    for workload in &of_set("all") {
        let (cli, is_run) = (parsed(workload), part_of(workload) == "run");
        assert_eq!(cli.telemetry.log_format, LogFormat::Json);
        assert_eq!(cli.telemetry.metrics_port, is_run.then_some(9999));
        let ports = is_run.then(|| json!([{"name": "metrics", "containerPort": 9999}]));
        assert_eq!(container_of(workload).get("ports"), ports.as_ref());
        assert_eq!(is_otel(&names(workload)), is_run, "{}", part_of(workload));
    }
    let all = of_set("all");
    let env = &container_of(in_set(&all, "run"))["env"];
    let lookup = |key: &str| {
        let var = env.as_array().unwrap().iter().find(|var| var["name"] == key)?;
        var["value"].as_str().map(str::to_owned)
    };
    assert!(OtlpSettings::read(lookup).is_some());
    for workload in &of_set("defaults") {
        let cli = parsed(workload);
        assert_eq!((cli.telemetry.log_format, cli.telemetry.metrics_port), (LogFormat::Text, None));
        assert!(container_of(workload).get("ports").is_none() && !is_otel(&names(workload)));
    }
}
