//! The rendered chart (`tests/chart/rendered`): labels, accounts, the Pod of `helm test`; and the checks of
//! its values.

use osd_migrate::cli::Command;
use osd_migrate::domain::provision::NothingDeclared;
use osd_migrate::domain::windows::{BadWindow, Window};
use regex::Regex;
use serde_json::{Value, json};

use crate::chart::{args_of, documents, in_set, is_workload, job_of, of_set, parsed, part_of, template_of};
use crate::runbook::read;

/// Checks the labels that Kubernetes recommends, on objects, Jobs and pods.
#[test]
fn objects_jobs_and_pods_have_the_recommended_labels() {
    let version = env!("CARGO_PKG_VERSION");
    for (set, documents) in documents() {
        for document in &documents {
            let is_workload = is_workload(document);
            let of = |level: &Value| level["metadata"]["labels"].clone();
            let mut levels = vec![of(document)];
            levels.extend(
                is_workload.then(|| [of(job_of(document)), of(template_of(document))]).into_iter().flatten(),
            );
            for labels in levels {
                let what = format!("{set}: {} {}: {labels}", document["kind"], document["metadata"]["name"]);
                for (key, expected) in [
                    ("name", "osd-migrate"),
                    ("instance", "osd-migrate"),
                    ("version", version),
                    ("part-of", "osd-migrate"),
                    ("managed-by", "Helm"),
                ] {
                    assert_eq!(labels[format!("app.kubernetes.io/{key}")], expected, "{what}");
                }
                assert_eq!(labels["helm.sh/chart"], format!("osd-migrate-{version}"), "{what}");
                let component = labels["app.kubernetes.io/component"].as_str().unwrap();
                let expected = if is_workload { part_of(document) } else { component };
                assert!(
                    ["run", "node", "preflight", "start", "uninstall", "test"].contains(&component),
                    "{what}"
                );
                assert_eq!(component, expected, "{what}");
            }
        }
    }
}

/// Checks the account of runs: its name is in each workload and each binding, and pods have its token anyway.
#[test]
fn service_account_is_created_named_and_bound_by_the_values() {
    for (set, documents) in documents() {
        let name = match set.as_str() {
            "all" => "storage-migration",
            "existing-account" => "storage",
            _ => "osd-migrate",
        };
        let accounts: Vec<_> = documents.iter().filter(|it| it["kind"] == "ServiceAccount").collect();
        let account = accounts.iter().find(|it| it["metadata"]["name"] == name);
        assert_eq!(account.is_some(), set != "existing-account", "{set}");
        let mounts =
            account.is_none_or(|account| account["automountServiceAccountToken"] == json!(set != "all"));
        assert!(mounts, "{set}: {account:?}");
        for account in &accounts {
            let role = (set == "all").then_some("storage");
            assert_eq!(
                account["metadata"]["annotations"]["example.org/role"].as_str(),
                role,
                "{set}: {account}"
            );
        }
        for workload in documents.iter().filter(|it| is_workload(it)) {
            let pod = &template_of(workload)["spec"];
            assert_eq!(pod["automountServiceAccountToken"], true, "{set}");
            if ["run", "uninstall", "test"].contains(&part_of(workload)) {
                assert_eq!(pod["serviceAccountName"], name, "{set}: {}", part_of(workload));
            }
        }
        let binding = documents
            .iter()
            .find(|it| it["kind"] == "RoleBinding" && it["metadata"]["name"] == "osd-migrate");
        assert_eq!(binding.unwrap()["subjects"][0]["name"], name, "{set}");
    }
}

/// Checks the Pod of `helm test`: it prints the plan of the settings of a run.
#[test]
fn helm_test_reads_the_plan_of_the_values() {
    let all = of_set("all");
    let test = in_set(&all, "test");
    assert_eq!(
        (&test["kind"], &test["metadata"]["annotations"]["helm.sh/hook"]),
        (&json!("Pod"), &json!("test"))
    );
    let (Command::Plan(plan), Command::Run(run)) =
        (parsed(test).command, parsed(in_set(&all, "run")).command)
    else {
        panic!("{:?}", args_of(test))
    };
    assert_eq!((plan.run.policy(), plan.inventory), (run.policy(), false));
}

/// Returns the pattern that the chart has under a name.
fn pattern(name: &str) -> Regex {
    let checks = read("charts/osd-migrate/templates/_validate.tpl");
    let (_, rest) = checks.split_once(&format!("define \"osd-migrate.pattern.{name}\" -}}}}\n")).unwrap();
    Regex::new(rest.split_once("\n{{- end }}").unwrap().0).unwrap()
}

/// Checks that an invalid window is refused before a run.
///
/// `build/chart` checks what Helm says.
#[test]
fn window_is_valid_in_chart_and_program_alike() {
    let pattern = pattern("window");
    let of_a_day = (0..=25).flat_map(|hour| [0, 30, 59, 60].map(|minute| format!("{hour:02}:{minute:02}")));
    let ends: Vec<String> =
        of_a_day.chain(["9:00", "09:0", "+9:00", "0900", "", "٠٩:00"].map(str::to_owned)).collect();
    let pairs = ends.iter().flat_map(|from| ends.iter().map(move |to| format!("{from}-{to}")));
    let days =
        ["Mon", "fri-MON", "Sat,Sun", "Mon-Wed,Fri", "Mo", "Mon-", "-Mon", "Mon,", "Mon-Tue-Wed", "Mon ", ""];
    let unusual =
        ["22:00", "22:00-05:00 ", " 22:00-05:00", "22:00 - 05:00", "22:00-05:00-06:00", "22:00-05:00\n"];
    let of_days = days.iter().flat_map(|days| unusual.iter().map(move |times| format!("{days} {times}")));
    let usual = days.map(|days| format!("{days} 22:00-05:00"));
    let (mut empty, mut right) = (0, 0);
    for text in pairs.chain(unusual.map(str::to_owned)).chain(of_days).chain(usual) {
        let parsed = text.parse::<Window>();
        let is_refused = matches!(parsed, Err(BadWindow::Form(_) | BadWindow::Weekday(_)));
        assert_eq!(pattern.is_match(&text), !is_refused, "{text:?}: {parsed:?}");
        empty += usize::from(matches!(parsed, Err(BadWindow::Empty(_))));
        right += usize::from(parsed.is_ok());
    }
    assert_eq!(empty, 24 * 3, "each time of the table");
    assert!(right > 24 * 3 * 24 * 3, "{right}");
    // A real Helm refuses those that only the template detects, as its table lists.
    let refused = read("tests/chart/refused.tsv");
    let window = |line: &str| Some(line.strip_prefix("run.windows={")?.split_once('}')?.0.replace('\\', ""));
    let refused: Vec<_> = refused.lines().filter_map(window).map(|text| text.parse::<Window>()).collect();
    assert!(refused.iter().all(Result::is_err), "{refused:?}");
    assert!(refused.iter().any(|parsed| matches!(parsed, Err(BadWindow::Empty(_)))), "{refused:?}");
}

/// Checks that no message of the schema is a pattern: a person reads the sentence of `_validate.tpl`.
#[test]
fn schema_of_the_values_has_no_pattern() {
    let schema = read("charts/osd-migrate/values.schema.json");
    for keyword in ["\"pattern\"", "patternProperties", "\"not\"", "minLength", "maxLength"] {
        assert!(!schema.contains(keyword), "{keyword}: its message is no sentence");
    }
}

/// Checks the text of the policy; `tests/lab/scenarios/chart.py` applies it to an API server.
#[test]
fn updates_of_the_cephcluster_are_refused_only_with_validation() {
    for (set, documents) in documents() {
        let of_kind = |kind: &str| documents.iter().find(|it| it["kind"] == kind).cloned();
        let policy = of_kind("ValidatingAdmissionPolicy");
        let binding = of_kind("ValidatingAdmissionPolicyBinding");
        let is_on = set == "validation";
        assert_eq!((policy.is_some(), binding.is_some()), (is_on, is_on), "{set}");
        let Some((policy, binding)) = policy.zip(binding) else { continue };
        assert_eq!(binding["spec"]["policyName"], policy["metadata"]["name"]);
        assert_eq!(binding["spec"]["validationActions"], json!(["Deny"]));
        let namespaces = &binding["spec"]["matchResources"]["namespaceSelector"]["matchLabels"];
        assert_eq!(namespaces, &json!({"kubernetes.io/metadata.name": "rook-ceph"}), "no other namespace");
        let rules = json!([{"apiGroups": ["ceph.rook.io"], "apiVersions": ["*"], "operations": ["UPDATE"],
            "resources": ["cephclusters"]}]);
        assert_eq!(policy["spec"]["matchConstraints"]["resourceRules"], rules);
        let rules = policy["spec"]["validations"].as_array().unwrap();
        let of = |at: usize, key: &str| rules[at][key].as_str().unwrap().to_owned();
        for (at, field) in
            ["useAllNodes", "useAllDevices", "dataDirHostPath", "networkBefore"].iter().enumerate()
        {
            assert!(of(at, "expression").contains(field), "{field}: {}", of(at, "expression"));
            assert!(!of(at, "message").contains('\n'), "Kubernetes refuses it");
        }
        let conditions = json!([{"name": "is-not-being-deleted",
            "expression": "!has(object.metadata.deletionTimestamp)"}]);
        assert_eq!(policy["spec"]["matchConditions"], conditions, "Rook removes its finalizer");
        let variables = policy["spec"]["variables"].as_array().unwrap();
        for (name, object) in [("networkBefore", "oldObject"), ("networkAfter", "object")] {
            let of_name = variables.iter().find(|variable| variable["name"] == name).unwrap();
            let is_null_absent = format!("{object}.spec.network.?provider.orValue(null) != null &&");
            assert!(of_name["expression"].as_str().unwrap().contains(&is_null_absent), "{name}");
        }
        // The remarks of `plan` have the same words.
        for (at, nothing) in [NothingDeclared::NoNodes, NothingDeclared::NoDevices].iter().enumerate() {
            let becomes = nothing.to_string().replacen(" is false", " becomes false", 1);
            assert!(of(at, "message").starts_with(&format!("spec.storage.{becomes}: ")), "{becomes}");
        }
    }
}
