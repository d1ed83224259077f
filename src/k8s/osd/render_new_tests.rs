//! The Deployments of new OSDs, by their layout on their devices.

use serde_json::{Value, json};

use crate::domain::act::Deploy;
use crate::domain::osd::{Layout, Mode, ObjectStore, Weight};
use crate::k8s::osd::daemon;
use crate::k8s::osd::fields::env;
use crate::k8s::osd::osd_env::decimal;
use crate::k8s::osd::render_osd::tests::{declaration, deploy, frame};
use crate::k8s::osd::render_osd::{Frame, can_activate, render};

fn layout(mode: Mode, encrypted: bool) -> Layout {
    Layout { store: ObjectStore::bluestore(), mode, encrypted }
}

fn lvm(encrypted: bool) -> Deploy {
    Deploy {
        block_path: "/dev/ceph-vg/osd-block".to_owned(),
        layout: layout(Mode::Lvm, encrypted),
        db_path: Some("/dev/ceph-db/osd-db".to_owned()),
        ..deploy()
    }
}

fn on_file() -> Deploy {
    Deploy { block_path: "/var/lib/osd-migrate/osd-on-file.img".to_owned(), on_file: true, ..deploy() }
}

fn rendered(deploy: &Deploy) -> Value {
    let base = json!({"spec": {"template": {"spec": {"tolerations": [], "containers": [{"name": "osd"}]}}}});
    render(deploy, &base, &frame(&declaration()))
}

fn pod(object: &Value) -> &Value {
    object.pointer("/spec/template/spec").unwrap()
}

fn script(container: &Value) -> &str {
    container["command"][2].as_str().unwrap()
}

/// Returns the value of a variable of the init container `activate`.
fn of_activation<'a>(object: &'a Value, name: &str) -> &'a str {
    let vars = pod(object)["initContainers"][0]["env"].as_array().unwrap();
    vars.iter().find(|v| v["name"] == name).unwrap()["value"].as_str().unwrap()
}

#[test]
fn new_raw_osd_is_rendered_like_any_other() {
    let new = rendered(&deploy());
    assert_eq!(daemon::parse(&new).unwrap().daemon.fsid, Some(deploy().fsid));
    assert_eq!(new.pointer("/metadata/labels/rook.io~1operator-namespace").unwrap(), "rook-system");
    assert_eq!((env(&new, "ROOK_CV_MODE"), of_activation(&new, "ROOK_CV_MODE")), (Some("raw"), "raw"));
    assert_eq!(pod(&new)["containers"][0]["command"], json!(["ceph-osd"]));
    assert!(pod(&new)["containers"][0].get("lifecycle").is_none() && pod(&new).get("hostIPC").is_none());
    assert!(env(&new, "ROOK_METADATA_DEVICE").is_none());
}

#[test]
fn lvm_osd_is_activated_by_tags_and_read_back_by_rook() {
    let new = rendered(&lvm(false));
    for (name, value) in [
        ("ROOK_CV_MODE", "lvm"),
        ("ROOK_BLOCK_PATH", "/dev/ceph-vg/osd-block"),
        ("ROOK_METADATA_DEVICE", "/dev/ceph-db/osd-db"),
        ("ROOK_ENCRYPTED_DEVICE", "false"),
    ] {
        assert_eq!((env(&new, name), of_activation(&new, name)), (Some(value), value), "{name}");
    }
    assert_eq!(of_activation(&new, "ROOK_OSD_STORE_FLAG"), "--bluestore");
    assert_eq!(of_activation(&new, "CEPH_ARGS"), "-m $(ROOK_CEPH_MON_HOST)");
    let activate = script(&pod(&new)["initContainers"][0]);
    assert!(activate.contains("ceph-volume lvm activate --no-systemd --no-tmpfs"), "{activate}");
    assert!(activate.ends_with("\nactivate\n"));
    assert_eq!(pod(&new)["containers"][0]["command"], json!(["ceph-osd"]));
    assert_eq!(new.pointer("/metadata/labels/encrypted").unwrap(), "false");
    assert!(
        pod(&new)["containers"][0].get("lifecycle").is_none(),
        "an open volume without a key is harmless"
    );
}

#[test]
fn encrypted_osd_is_closed_by_pre_stop_and_opened_at_start() {
    let new = rendered(&lvm(true));
    let osd = &pod(&new)["containers"][0];
    let hook = osd["lifecycle"]["preStop"]["exec"]["command"][2].as_str().unwrap();
    assert!(hook.contains("cryptsetup close --deferred"), "{hook}");
    assert!(script(osd).contains("ceph-volume lvm activate") && script(osd).ends_with("exec \"$@\"\n"));
    assert_eq!((&osd["command"][3], &osd["command"][4]), (&json!("--"), &json!("ceph-osd")));
    assert_eq!(osd["args"][0], "--foreground");
    // The script of the daemon's container reads this variable.
    assert_eq!(env(&new, "ROOK_ENCRYPTED_DEVICE"), Some("true"));
    for name in ["ROOK_OSD_STORE_FLAG", "ROOK_OSD_ID", "ROOK_OSD_UUID"] {
        let has = |v: &Value| v["name"] == name && v["value"].is_string();
        assert!(osd["env"].as_array().unwrap().iter().any(has), "{name}");
    }
    assert_eq!(pod(&new)["hostIPC"], true);
    assert_eq!(new.pointer("/metadata/labels/encrypted").unwrap(), "true");
    assert!(can_activate(&lvm(true)).is_ok() && can_activate(&deploy()).is_ok());
    assert!(can_activate(&Deploy { layout: layout(Mode::Raw, true), ..deploy() }).is_err());
}

#[test]
fn osd_on_a_file_is_labelled_test_only_and_finds_its_file() {
    let new = rendered(&on_file());
    for meta in ["/metadata", "/spec/template/metadata"] {
        let label = format!("{meta}/labels/osd-migrate.io~1test-only");
        assert_eq!(new.pointer(&label).unwrap(), "store-on-file", "{meta}");
    }
    assert_eq!(env(&new, "ROOK_BLOCK_PATH"), Some("/var/lib/rook/osd-migrate/osd-on-file.img"));
    let containers = pod(&new);
    assert!(script(&containers["initContainers"][0]).contains("prime-osd-dir"));
    let mounts = |container: &Value| container["volumeMounts"].to_string().contains("\"/var/lib/rook\"");
    let all =
        [&containers["initContainers"][0], &containers["initContainers"][1], &containers["containers"][0]];
    assert!(all.into_iter().all(mounts), "activation, its growing, the daemon");
    assert!(!rendered(&deploy()).to_string().contains("test-only"));
}

#[test]
fn initial_weight_is_rendered_as_declared() {
    let new = rendered(&Deploy { initial_weight: Some(Weight::from_decimal(0.9)), ..deploy() });
    let args = pod(&new)["containers"][0]["args"].to_string();
    assert!(args.contains("\"--osd-crush-initial-weight=0.9\""), "{args}");
    assert_eq!(env(&new, "ROOK_OSD_CRUSH_INITIAL_WEIGHT"), Some("0.9"));
    assert!(!rendered(&deploy()).to_string().contains("initial-weight"));
    for text in ["0", "1", "0.5", "12", "0.05", "3.63869"] {
        assert_eq!(decimal(Weight::from_decimal(text.parse().unwrap())), text);
    }
}

#[test]
fn osd_deployment_rendering_is_idempotent() {
    for deploy in [lvm(true), lvm(false), on_file()] {
        let once = rendered(&deploy);
        let declaration = declaration();
        let frame = Frame { operator_namespace: "another", ..frame(&declaration) };
        assert_eq!(render(&deploy, &once, &frame), once);
    }
}
