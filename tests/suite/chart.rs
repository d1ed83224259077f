//! What the chart renders (`tests/chart/rendered`, kept by `build/chart`) against the program: its arguments are ours, its pods
//! have no more rights than they are said to have.

use std::collections::BTreeSet;
use std::fs;

use clap::{CommandFactory, Parser};
use serde_json::{Value, json};

use osd_migrate::cli::{CONFIRMATION, Cli, Command};
use osd_migrate::domain::osd::OsdId;
use osd_migrate::domain::policy::{HandBack, Policy};
use osd_migrate::k8s::CRON_JOB;

use crate::runbook::{read, root};

/// Each set of values, and each CronJob and Job that is rendered with it.
fn rendered() -> Vec<(String, Vec<Value>)> {
    let names = |folder: &str, ending: &str| -> BTreeSet<String> {
        let files = fs::read_dir(root().join("tests/chart").join(folder)).unwrap();
        let name = |file: std::io::Result<fs::DirEntry>| file.unwrap().file_name().into_string().unwrap();
        files.map(|file| name(file).strip_suffix(ending).unwrap().to_owned()).collect()
    };
    let sets = names("rendered", ".json");
    assert_eq!(sets, names("values", ".yaml"), "build/chart --write; delete what is no more");
    let of =
        |name: &String| serde_json::from_str(&read(&format!("tests/chart/rendered/{name}.json"))).unwrap();
    sets.iter().map(|name| (name.clone(), of(name))).collect()
}

fn of_set(set: &str) -> Vec<Value> {
    rendered().into_iter().find(|(name, _)| name == set).unwrap().1
}

/// Of a CronJob or a Job.
fn job_of(workload: &Value) -> &Value {
    if workload["kind"] == "CronJob" { &workload["spec"]["jobTemplate"] } else { workload }
}

fn template_of(workload: &Value) -> &Value {
    &job_of(workload)["spec"]["template"]
}

fn part_of(workload: &Value) -> &str {
    job_of(workload)["metadata"]["labels"]["osd-migrate.io/part"].as_str().unwrap()
}

/// Its one container.
fn container_of(workload: &Value) -> &Value {
    let pod = &template_of(workload)["spec"];
    assert_eq!(pod.get("initContainers"), None);
    let [container] = pod["containers"].as_array().unwrap().as_slice() else { panic!("several: {pod}") };
    container
}

/// Its arguments, and those that it gets by the environment.
fn args_of(workload: &Value) -> Vec<String> {
    let container = container_of(workload);
    assert_eq!(container["command"], json!(["/usr/local/bin/osd-migrate"]));
    let args: Vec<String> = serde_json::from_value(container["args"].clone()).unwrap();
    let vars = container["env"].as_array().unwrap().iter();
    let ours = vars.filter(|var| var["name"].as_str().unwrap().starts_with("OSD_MIGRATE_"));
    args.into_iter().chain(ours.flat_map(by_option)).collect()
}

fn by_option(var: &Value) -> [String; 2] {
    let name = var["name"].as_str().unwrap();
    let cli = Cli::command();
    let option = cli.get_arguments().find(|option| option.get_env().is_some_and(|env| env == name));
    let long = option.and_then(clap::Arg::get_long).unwrap_or_else(|| panic!("nobody reads {name}"));
    [format!("--{long}"), var["value"].as_str().unwrap().to_owned()]
}

fn parsed(workload: &Value) -> Cli {
    let args = args_of(workload);
    let words = std::iter::once("osd-migrate").chain(args.iter().map(String::as_str));
    Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{args:?}: {error}"))
}

fn in_set<'a>(workloads: &'a [Value], part: &str) -> &'a Value {
    workloads.iter().find(|workload| part_of(workload) == part).unwrap_or_else(|| panic!("no {part}"))
}

#[test]
fn each_argument_that_the_chart_renders_is_one_of_ours() {
    let mut seen = BTreeSet::new();
    for (set, workloads) in rendered() {
        for workload in &workloads {
            let part = part_of(workload);
            let is_its_own = match parsed(workload).command {
                Command::Run(_) => part == "run",
                Command::Preflight => part == "preflight",
                Command::Start { revision } => part == "start" && revision == 1,
                Command::Uninstall => part == "uninstall",
                other => panic!("{set}: {part} is {other:?}"),
            };
            assert!(is_its_own, "{set}: {part}: {:?}", args_of(workload));
            seen.insert(part.to_owned());
        }
    }
    assert_eq!(seen, ["preflight", "run", "start", "uninstall"].map(str::to_owned).into());
}

#[test]
fn each_value_arrives_as_what_it_is_named_for() {
    let all = of_set("all");
    for workload in &all {
        let cli = parsed(workload);
        let place = (cli.cluster.as_deref(), cli.operator_namespace.as_deref(), cli.ceph_secret.as_deref());
        assert_eq!(place, (Some("my-cluster"), Some("rook-operator"), Some("osd-migrate-ceph")));
        assert_eq!(cli.ceph_timeout, 60, "{}", part_of(workload));
    }
    let Command::Run(args) = parsed(in_set(&all, "run")).command else { panic!("no run") };
    assert_eq!(args.new.confirm.as_deref(), Some(CONFIRMATION));
    let policy = args.policy();
    assert_eq!((policy.select, policy.skip), ([OsdId(1), OsdId(2)].into(), [OsdId(3)].into()));
    let windows: Vec<_> = policy.windows.iter().map(ToString::to_string).collect();
    assert_eq!(windows, ["22:00-05:00", "12:00-13:00"]);
    assert!(policy.confirmed && policy.scales_operator && policy.hand_back == HandBack::ByRook);
    assert_eq!(policy.at_once, 4);
    let Command::Run(args) = parsed(in_set(&of_set("defaults"), "run")).command else { panic!("no run") };
    assert_eq!(args.policy(), Policy { at_once: 1, ..Policy::default() });
}

/// The namespace comes by the environment, with the help of the downward API.
#[test]
fn each_option_of_a_run_is_a_value() {
    let args = args_of(in_set(&of_set("all"), "run"));
    let command = Cli::command();
    let run = command.find_subcommand("run").unwrap();
    let options = command.get_arguments().chain(run.get_arguments()).filter_map(clap::Arg::get_long);
    let options: BTreeSet<String> = options.map(|long| format!("--{long}")).collect();
    let given: BTreeSet<String> = args.iter().filter(|word| word.starts_with("--")).cloned().collect();
    let left: Vec<_> = options.difference(&given).map(String::as_str).collect();
    assert_eq!(left, ["--namespace"]);
}

#[test]
fn a_pod_is_told_who_it_is_by_the_names_that_are_read() {
    for workload in rendered().into_iter().flat_map(|(_, workloads)| workloads) {
        let env = container_of(&workload)["env"].as_array().unwrap().clone();
        let path = |name: &str| {
            let var = env.iter().find(|var| var["name"] == name).unwrap_or_else(|| panic!("no {name}"));
            var.pointer("/valueFrom/fieldRef/fieldPath").unwrap().as_str().unwrap().to_owned()
        };
        let paths = [
            ("POD_NAME", "metadata.name"),
            ("POD_NAMESPACE", "metadata.namespace"),
            ("POD_UID", "metadata.uid"),
        ];
        for (name, field) in paths {
            assert_eq!(path(name), field);
        }
        let read = |key: &str| paths.iter().any(|(name, _)| *name == key).then(|| "x".to_owned());
        assert!(osd_migrate::k8s::PodEnv::read(read).is_ok(), "it reads more than it is told");
    }
    let run = of_set("defaults");
    assert_eq!(in_set(&run, "run")["metadata"]["name"], CRON_JOB);
}

/// Privileged are the agents on the nodes, and only they (`src/k8s/node_job_tests.rs`).
#[test]
fn runner_and_hooks_meet_the_restricted_profile() {
    for (set, workloads) in rendered() {
        for workload in &workloads {
            let (pod, container) = (&template_of(workload)["spec"], container_of(workload));
            let what = format!("{set}: {}", part_of(workload));
            let expected = json!({"runAsNonRoot": true, "runAsUser": 167, "runAsGroup": 167,
                "seccompProfile": {"type": "RuntimeDefault"}});
            assert_eq!(pod["securityContext"], expected, "{what}");
            let expected = json!({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]}});
            assert_eq!(container["securityContext"], expected, "{what}");
            for volume in pod["volumes"].as_array().unwrap() {
                assert!(volume.get("emptyDir").is_some(), "{what}: {volume}");
            }
            for of_the_host in ["hostPID", "hostIPC", "ports", "hostPath"] {
                assert!(!workload.to_string().contains(of_the_host), "{what}: {of_the_host}");
            }
            // Where it is asked for, and there the profile lets nothing in.
            assert_eq!(pod["hostNetwork"], json!(set == "all"), "{what}");
            let dns = (set == "all").then(|| json!("ClusterFirstWithHostNet"));
            assert_eq!(pod.get("dnsPolicy"), dns.as_ref(), "{what}");
        }
    }
}

#[test]
fn the_oldest_kubernetes_is_the_same_in_chart_document_and_check() {
    let between = |path: &str, before: &str, after: &str| {
        let text = read(path);
        let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("{path}: no `{before}`"));
        rest.split_once(after).unwrap().0.to_owned()
    };
    let oldest = between("build/chart", "\nOLDEST=", " ");
    assert_eq!(between("charts/osd-migrate/Chart.yaml", "kubeVersion: \">=", ".0-0\""), oldest);
    assert_eq!(between("docs/install.md", "Kubernetes ", " or later"), oldest);
}

#[test]
fn no_pod_gets_a_side_car() {
    for (set, workloads) in rendered() {
        for workload in &workloads {
            let metadata = &template_of(workload)["metadata"];
            let what = format!("{set}: {}", part_of(workload));
            assert_eq!(metadata["labels"]["sidecar.istio.io/inject"], "false", "{what}");
            assert_eq!(metadata["labels"]["linkerd.io/inject"], "disabled", "{what}");
            assert_eq!(metadata["annotations"]["linkerd.io/inject"], "disabled", "{what}");
        }
    }
}

#[test]
fn what_its_owner_says_of_pods_is_said_of_each() {
    let all = of_set("all");
    assert_eq!(all.len(), 4);
    for workload in &all {
        let (metadata, pod) = (&template_of(workload)["metadata"], &template_of(workload)["spec"]);
        let container = container_of(workload);
        for labels in [&workload["metadata"]["labels"], &job_of(workload)["metadata"]["labels"]] {
            assert_eq!((&labels["team"], labels.get("cost-centre")), (&json!("storage"), None));
        }
        // What is said of pods goes before what is said of everything.
        assert_eq!(
            (&metadata["labels"]["team"], &metadata["labels"]["cost-centre"]),
            (&json!("storage-nodes"), &json!("1234"))
        );
        assert_eq!(metadata["labels"]["osd-migrate.io/part"], part_of(workload));
        assert_eq!(metadata["annotations"]["example.org/logs"], "true");
        assert_eq!(pod["imagePullSecrets"], json!([{"name": "registry"}]));
        assert_eq!(pod["tolerations"], json!([{"key": "storage", "operator": "Exists"}]));
        assert_eq!(pod["nodeSelector"], json!({"kubernetes.io/os": "linux"}));
        assert!(pod["affinity"]["nodeAffinity"].is_object());
        assert_eq!(pod["priorityClassName"], "storage-migration");
        assert_eq!(
            container["image"],
            concat!(
                "example/osd-migrate:0.1.0-ceph18@sha256:",
                "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
            )
        );
        assert_eq!(container["imagePullPolicy"], "Always");
        assert_eq!(container["resources"]["requests"], json!({"cpu": "100m", "memory": "128Mi"}));
        let env = container["env"].as_array().unwrap();
        assert!(env.contains(&json!({"name": "RUST_LOG", "value": "osd_migrate=debug,warn"})));
    }
}
