//! The rendered chart (`tests/chart/rendered`, written by `build/chart`), compared with the program.
//!
//! The arguments in the chart are options of the program, and the pods have no more rights than documented.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use chrono::TimeDelta;
use clap::{CommandFactory, Parser};
use serde_json::{Value, json};

use osd_migrate::cli::{CONFIRMATION, Cli, Command};
use osd_migrate::domain::in_parallel::InParallel;
use osd_migrate::domain::osd::OsdId;
use osd_migrate::domain::policy::{DeploymentBy, Policy};
use osd_migrate::k8s::CRON_JOB;

use crate::runbook::{read, root};

/// Returns each set of values, and the documents that are stored of it: workloads, their accounts and
/// rights.
pub(crate) fn documents() -> Vec<(String, Vec<Value>)> {
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

pub(crate) fn is_workload(document: &Value) -> bool {
    ["CronJob", "Job", "Pod"].iter().any(|kind| document["kind"] == *kind)
}

/// Returns each set of values, and each CronJob, Job and Pod that is rendered with it.
pub(crate) fn rendered() -> Vec<(String, Vec<Value>)> {
    let workloads = |all: Vec<Value>| all.into_iter().filter(is_workload).collect();
    documents().into_iter().map(|(set, all)| (set, workloads(all))).collect()
}

pub(crate) fn of_set(set: &str) -> Vec<Value> {
    rendered().into_iter().find(|(name, _)| name == set).unwrap().1
}

/// Returns the Job of a CronJob, or the Job or the Pod itself.
pub(crate) fn job_of(workload: &Value) -> &Value {
    if workload["kind"] == "CronJob" { &workload["spec"]["jobTemplate"] } else { workload }
}

pub(crate) fn template_of(workload: &Value) -> &Value {
    if workload["kind"] == "Pod" { workload } else { &job_of(workload)["spec"]["template"] }
}

pub(crate) fn part_of(workload: &Value) -> &str {
    job_of(workload)["metadata"]["labels"]["osd-migrate.io/part"].as_str().unwrap()
}

/// Returns the only container of a workload.
pub(crate) fn container_of(workload: &Value) -> &Value {
    let pod = &template_of(workload)["spec"];
    let [container] = pod["containers"].as_array().unwrap().as_slice() else { panic!("several: {pod}") };
    container
}

/// Returns the arguments of a workload, including those from the environment.
pub(crate) fn args_of(workload: &Value) -> Vec<String> {
    let container = container_of(workload);
    assert_eq!(container["command"], json!(["/opt/osd-migrate/osd-migrate"]));
    let args: Vec<String> = serde_json::from_value(container["args"].clone()).unwrap();
    let vars = container["env"].as_array().unwrap().iter();
    let ours = vars.filter(|var| var["name"].as_str().unwrap().starts_with("OSD_MIGRATE_"));
    args.into_iter().chain(ours.flat_map(by_option)).collect()
}

fn by_option(var: &Value) -> [String; 2] {
    let name = var["name"].as_str().unwrap();
    let cli = Cli::command();
    let option = cli.get_arguments().find(|option| option.get_env().is_some_and(|env| env == name));
    let long = option.and_then(clap::Arg::get_long).unwrap_or_else(|| panic!("no option reads {name}"));
    [format!("--{long}"), var["value"].as_str().unwrap().to_owned()]
}

pub(crate) fn parsed(workload: &Value) -> Cli {
    let args = args_of(workload);
    let words = std::iter::once("osd-migrate").chain(args.iter().map(String::as_str));
    Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{args:?}: {error}"))
}

pub(crate) fn in_set<'a>(workloads: &'a [Value], part: &str) -> &'a Value {
    workloads.iter().find(|workload| part_of(workload) == part).unwrap_or_else(|| panic!("no {part}"))
}

#[test]
fn chart_renders_only_arguments_that_the_program_accepts() {
    let mut seen = BTreeSet::new();
    for (set, workloads) in rendered() {
        for workload in &workloads {
            let part = part_of(workload);
            let is_its_own = match parsed(workload).command {
                Command::Run(_) => part == "run",
                Command::Preflight => part == "preflight",
                Command::Start { revision } => part == "start" && revision == 1,
                Command::Uninstall => part == "uninstall",
                Command::Plan(_) => part == "test",
                other => panic!("{set}: {part} is {other:?}"),
            };
            assert!(is_its_own, "{set}: {part}: {:?}", args_of(workload));
            seen.insert(part.to_owned());
        }
    }
    assert_eq!(seen, ["preflight", "run", "start", "test", "uninstall"].map(str::to_owned).into());
}

#[test]
fn chart_values_become_the_arguments_they_are_named_for() {
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
    assert_eq!((policy.select, policy.skip), ([1, 2, 4, 5, 6].map(OsdId).into(), [OsdId(3)].into()));
    assert_eq!(policy.hosts, ["host-a", "host-b"].map(str::to_owned).into());
    assert_eq!(policy.device_classes, ["hdd".to_owned()].into());
    assert_eq!(policy.approval.map(|plan| plan.hash.to_string()).as_deref(), Some("0123456789abcdef"));
    let windows = "Mon-Fri 22:00-05:00, Sat,Sun 00:00-24:00 Europe/Berlin";
    assert_eq!(policy.windows.to_string(), windows);
    assert!(policy.confirmed && policy.scales_operator && policy.deployment_by == DeploymentBy::ByRook);
    assert_eq!((policy.at_once, policy.in_parallel), (4, InParallel::Count(3)));
    assert_eq!(policy.limits.soak, TimeDelta::minutes(30));
    assert_eq!(policy.max_commit_latency, Some(Duration::from_millis(50)));
    let Command::Run(args) = parsed(in_set(&of_set("defaults"), "run")).command else { panic!("no run") };
    assert_eq!(
        args.policy(),
        Policy { at_once: 1, in_parallel: InParallel::Percent(5), ..Policy::default() }
    );
}

/// Checks the options of a run; the namespace comes from the environment, with the downward API.
#[test]
fn run_options_are_all_chart_values() {
    let args = args_of(in_set(&of_set("all"), "run"));
    let command = Cli::command();
    let run = command.find_subcommand("run").unwrap();
    let options = command.get_arguments().chain(run.get_arguments()).filter_map(clap::Arg::get_long);
    let options: BTreeSet<String> = options.map(|long| format!("--{long}")).collect();
    let given: BTreeSet<String> = args.iter().filter(|word| word.starts_with("--")).cloned().collect();
    let left: Vec<_> = options.difference(&given).map(String::as_str).collect();
    assert_eq!(
        left,
        ["--context", "--detach", "--help", "--help-all", "--kubeconfig", "--namespace", "--version"]
    );
}

#[test]
fn pod_env_has_exactly_the_fields_that_the_program_reads() {
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
        let of_itself = env.iter().filter(|var| var.pointer("/valueFrom/fieldRef").is_some());
        assert_eq!(of_itself.count(), paths.len(), "it gets more than it reads: {env:?}");
        let read = |key: &str| paths.iter().any(|(name, _)| *name == key).then(|| "x".to_owned());
        assert!(osd_migrate::k8s::PodEnv::read(read).is_ok(), "it reads more than it gets");
    }
    let run = of_set("defaults");
    assert_eq!(in_set(&run, "run")["metadata"]["name"], CRON_JOB);
}

/// Checks the restricted profile.
///
/// Only agents are privileged: `src/k8s/nodes/node_job_tests.rs`.
#[test]
fn runner_and_hooks_meet_the_restricted_profile() {
    for (set, workloads) in rendered() {
        for workload in &workloads {
            let pod = &template_of(workload)["spec"];
            let what = format!("{set}: {}", part_of(workload));
            let expected = json!({"runAsNonRoot": true, "runAsUser": 167, "runAsGroup": 167,
                "seccompProfile": {"type": "RuntimeDefault"}});
            assert_eq!(pod["securityContext"], expected, "{what}");
            let expected = json!({"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]}});
            for container in [&pod["initContainers"][0], container_of(workload)] {
                assert_eq!(container["securityContext"], expected, "{what}");
            }
            for volume in pod["volumes"].as_array().unwrap() {
                assert!(volume.get("emptyDir").is_some(), "{what}: {volume}");
            }
            for of_the_host in ["hostPID", "hostIPC", "hostPort", "hostPath"] {
                assert!(!workload.to_string().contains(of_the_host), "{what}: {of_the_host}");
            }
            // Only if the values ask for it; the profile then admits no such pod.
            let on_host = ["all", "openshift-host-network"].contains(&set.as_str());
            assert_eq!(pod["hostNetwork"], json!(on_host), "{what}");
            let dns = on_host.then(|| json!("ClusterFirstWithHostNet"));
            assert_eq!(pod.get("dnsPolicy"), dns.as_ref(), "{what}");
        }
    }
}

#[test]
fn oldest_kubernetes_is_the_same_in_chart_docs_and_check() {
    let between = |path: &str, before: &str, after: &str| {
        let text = read(path);
        let (_, rest) = text.split_once(before).unwrap_or_else(|| panic!("{path}: no `{before}`"));
        rest.split_once(after).unwrap().0.to_owned()
    };
    let oldest = between("build/chart", "\nOLDEST=", " ");
    assert_eq!(between("charts/osd-migrate/Chart.yaml", "kubeVersion: \">=", ".0-0\""), oldest);
    assert_eq!(between("docs/guides/install.md", "Kubernetes ", " or later"), oldest);
}

#[test]
fn pods_never_get_a_sidecar() {
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
fn pod_settings_of_the_values_apply_to_every_pod() {
    let all = of_set("all");
    assert_eq!(all.len(), 5);
    for workload in &all {
        let (metadata, pod) = (&template_of(workload)["metadata"], &template_of(workload)["spec"]);
        let container = container_of(workload);
        let objects = [&workload["metadata"]["labels"], &job_of(workload)["metadata"]["labels"]];
        for labels in objects.into_iter().filter(|_| workload["kind"] != "Pod") {
            assert_eq!((&labels["team"], labels.get("cost-centre")), (&json!("storage"), None));
        }
        // Labels for pods take precedence over labels for everything.
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
        for container in [container, &pod["initContainers"][0]] {
            assert_eq!(container["resources"]["requests"], json!({"cpu": "100m", "memory": "128Mi"}));
        }
        let env = container["env"].as_array().unwrap();
        assert!(env.contains(&json!({"name": "RUST_LOG", "value": "osd_migrate=debug,warn"})));
        assert_eq!(env.last().unwrap(), &json!({"name": "HTTPS_PROXY", "value": "http://proxy:3128"}));
    }
}

/// Checks what no Role may contain; the stored Roles show each change.
#[test]
fn roles_have_no_wildcard_and_read_secrets_only_by_name() {
    let mut seen = BTreeSet::new();
    for (set, documents) in documents() {
        for role in documents.iter().filter(|document| document["rules"].is_array()) {
            let name = role["metadata"]["name"].as_str().unwrap();
            for rule in role["rules"].as_array().unwrap() {
                let what = format!("{set}: {name}: {rule}");
                assert!(!rule.to_string().contains('*'), "{what}");
                let has = |field: &str, word: &str| rule[field].as_array().unwrap().contains(&json!(word));
                let reads = ["get", "list", "watch"].iter().any(|verb| has("verbs", verb));
                assert!(
                    !has("resources", "secrets") || !reads || rule.get("resourceNames").is_some(),
                    "{what}"
                );
                if role["kind"] == "ClusterRole" {
                    let is_known =
                        ["nodes", "persistentvolumes"].iter().any(|one| rule["resources"] == json!([one]));
                    assert!(is_known, "{what}");
                }
            }
            seen.insert(name.to_owned());
        }
    }
    let ours = ["osd-migrate", "osd-migrate-node", "osd-migrate-preflight", "osd-migrate-start"];
    let theirs = ["osd-migrate-rook-ceph", "osd-migrate-rook-ceph-preflight"];
    let openshift =
        ["osd-migrate-scc", "osd-migrate-node-scc", "osd-migrate-preflight-scc", "osd-migrate-start-scc"];
    // The account of runs has its name from the values.
    let all = ours.into_iter().chain(theirs).chain(openshift).chain(["storage-scc"]);
    assert_eq!(seen, all.map(str::to_owned).collect());
}

/// Returns which security context constraints each ServiceAccount may use, by the RoleBindings of a set of
/// values.
fn constraints_of(documents: &[Value]) -> BTreeSet<(String, String)> {
    let of_kind = |kind: &str| documents.iter().filter(move |it| it["kind"] == kind).collect::<Vec<_>>();
    let roles = of_kind("Role");
    let mut found = BTreeSet::new();
    for binding in of_kind("RoleBinding") {
        let role = roles.iter().find(|role| {
            role["metadata"]["name"] == binding["roleRef"]["name"]
                && role["metadata"]["namespace"] == binding["metadata"]["namespace"]
        });
        let role = role.unwrap_or_else(|| panic!("no Role for {binding}"));
        let uses = |rule: &&Value| rule["resources"] == json!(["securitycontextconstraints"]);
        for rule in role["rules"].as_array().unwrap().iter().filter(uses) {
            assert_eq!(rule["apiGroups"], json!(["security.openshift.io"]));
            assert_eq!(rule["verbs"], json!(["use"]));
            // A RoleBinding for a hook must exist before the hook runs, as its account does.
            assert_eq!(role["metadata"]["annotations"], binding["metadata"]["annotations"]);
            let subjects = binding["subjects"].as_array().unwrap().iter();
            found.extend(subjects.map(|subject| {
                assert_eq!(subject["kind"], "ServiceAccount");
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                (text(&subject["name"]), text(&rule["resourceNames"][0]))
            }));
        }
    }
    found
}

/// Checks the security context constraints that the chart's accounts may use.
///
/// restricted-v2, which OpenShift gives to all, refuses user 167 (MustRunAsRange) and privileged pods.
#[test]
fn openshift_accounts_may_use_the_sccs_that_their_pods_need() {
    for (set, documents) in documents() {
        let found = constraints_of(&documents);
        let runner = match set.as_str() {
            "openshift" | "existing-account" => "nonroot-v2",
            // nonroot-v2 has allowHostNetwork: false, hostnetwork-v2 takes no user 167.
            "openshift-host-network" => "privileged",
            _ => {
                assert!(found.is_empty(), "{set}: {found:?}");
                continue;
            }
        };
        let workloads: Vec<Value> = documents.into_iter().filter(is_workload).collect();
        let accounts = workloads.iter().map(|it| template_of(it)["spec"]["serviceAccountName"].clone());
        let of_pods = accounts.map(|name| (name.as_str().unwrap().to_owned(), runner.to_owned()));
        let of_nodes = [("osd-migrate-node".to_owned(), "privileged".to_owned())];
        assert_eq!(found, of_pods.chain(of_nodes).collect(), "{set}");
    }
}
