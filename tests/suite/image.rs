//! The image of the program: the pods that run the program from it, and how a person installs it.

#[expect(dead_code, reason = "the image runs `main`")]
#[path = "../../image/install.rs"]
mod install;

use serde_json::json;

use crate::chart::{container_of, of_set, part_of, rendered, template_of};
use crate::runbook::read;

/// Checks that the init container, with the program's own image, is the only one, and where it copies to.
#[test]
fn chart_pods_run_the_program_of_the_small_image_in_ceph_images() {
    let folder = "/opt/osd-migrate";
    for (set, workloads) in rendered() {
        for workload in &workloads {
            let (pod, what) = (&template_of(workload)["spec"], format!("{set}: {}", part_of(workload)));
            let [install] = pod["initContainers"].as_array().unwrap().as_slice() else { panic!("{what}") };
            assert_eq!(
                (&install["name"], &install["command"]),
                (&json!("install"), &json!(["/install", folder]))
            );
            let target = json!([{"name": "program", "mountPath": folder}]);
            assert_eq!(install["volumeMounts"], target, "{what}");
            let container = container_of(workload);
            assert_eq!(container["name"], "osd-migrate", "commands replace the arguments of this container");
            let mounts = container["volumeMounts"].as_array().unwrap();
            let mount = json!({"name": "program", "mountPath": folder, "readOnly": true});
            assert!(mounts.contains(&mount), "{what}: {mounts:?}");
            assert!(pod["volumes"].as_array().unwrap().contains(&json!({"name": "program", "emptyDir": {}})));
            let default = "kubectl.kubernetes.io/default-container";
            assert_eq!(template_of(workload)["metadata"]["annotations"][default], "osd-migrate", "{what}");
        }
    }
}

#[test]
fn chart_values_name_both_images_of_every_pod() {
    let digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    let given = (format!("example/osd-migrate:0.1.0-owner@sha256:{digest}"), "Always", "example/ceph:v20");
    let usual = ("osd-migrate:0.1.0".to_owned(), "IfNotPresent", "quay.io/ceph/ceph:v18.2.7");
    for (set, (image, policy, ceph)) in [("all", given), ("defaults", usual)] {
        for workload in &of_set(set) {
            let install = &template_of(workload)["spec"]["initContainers"][0];
            assert_eq!((&install["image"], &install["imagePullPolicy"]), (&json!(image), &json!(policy)));
            let container = container_of(workload);
            assert_eq!(
                (&container["image"], &container["imagePullPolicy"]),
                (&json!(ceph), &json!("IfNotPresent"))
            );
        }
    }
}

/// Checks the commands from nothing to a plan: three, each short enough to be typed.
#[test]
fn install_guide_has_three_short_commands_to_a_plan() {
    let after = |path: &str, heading: &str| {
        let text = read(path);
        let (_, rest) = text.split_once(heading).unwrap_or_else(|| panic!("{path}: no `{heading}`"));
        let block = rest.lines().skip_while(|line| !line.starts_with("    "));
        block.map_while(|line| line.strip_prefix("    ")).map(str::to_owned).collect::<Vec<_>>()
    };
    let commands = after("docs/guides/install.md", "# Install\n");
    assert_eq!(commands.len(), 3, "{commands:#?}");
    assert!(commands.iter().all(|command| command.len() <= 200 && !command.ends_with('\\')), "{commands:#?}");
    assert_eq!(commands[2], "kubectl osd-migrate -n rook-ceph plan");
    assert!(after("README.md", "\n## Quick start\n").starts_with(&commands), "README.md has other commands");
}
