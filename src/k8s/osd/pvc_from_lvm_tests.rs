use super::*;
use crate::domain::act::Deploy;
use crate::k8s::osd::osd_on_pvc::tests::{expected, old, on_pvc, on_pvcs, reshaped, without_script};
use crate::k8s::osd::rook_pvc_shapes::{DB, RELEASES, Rook, Shape};
use crate::k8s::osd::rook_reads_back_tests::read_back;

/// Returns the Deployment of an OSD on LVM as a Rook release renders it.
fn on_lvm(rook: Rook) -> Shape {
    Shape { mode: Mode::Lvm, ..old(rook, false) }
}

#[test]
fn osd_on_lvm_of_a_pvc_becomes_raw_in_each_rook_release() {
    for (rook, encrypted) in RELEASES.into_iter().flat_map(|rook| [(rook, false), (rook, true)]) {
        let new = reshaped(&on_pvc(encrypted), &on_lvm(rook).deployment()).unwrap();
        let rendered = without_script(expected(old(rook, false), encrypted));
        assert_eq!(without_script(new), rendered, "{rook:?}, encrypted: {encrypted}");
    }
}

#[test]
fn osd_on_lvm_of_a_pvc_gets_a_database_on_another_pvc() {
    for rook in RELEASES {
        let new = reshaped(&on_pvcs(false, &[DB]), &on_lvm(rook).deployment()).unwrap();
        let with_db = Shape { others: &[DB], ..old(rook, false) };
        assert_eq!(new, expected(with_db, false), "{rook:?}");
    }
}

#[test]
fn raw_osd_that_was_on_lvm_is_read_back_by_rook() {
    let portable = Shape { portable: true, ..on_lvm(Rook::V1_20) };
    for found in [on_lvm(Rook::V1_13), portable] {
        let new = reshaped(&on_pvc(false), &found.deployment()).unwrap();
        let read = read_back(&new).unwrap();
        assert_eq!((read.mode.as_str(), read.encrypted), ("raw", false));
        assert_eq!(
            (read.block_path.as_str(), read.pvc.as_deref()),
            ("/mnt/set1-data-0a", Some("set1-data-0a"))
        );
        assert!(!new.to_string().contains("ROOK_LV_BACKED_PV"));
    }
}

/// Covers Rook's scripts that restart the daemon, and the program that started Rook's in 1.3.
#[test]
fn command_of_the_osd_is_found_behind_the_program_of_rook() {
    let started = |command: Value, args: Value| {
        let mut found = on_lvm(Rook::V1_20).deployment();
        let osd = found.pointer_mut("/spec/template/spec/containers/0").unwrap();
        (osd["command"], osd["args"]) = (command, args);
        let new = reshaped(&on_pvc(false), &found)?;
        let osd = &new["spec"]["template"]["spec"]["containers"][0];
        Ok::<_, NoShape>((osd["command"].clone(), osd["args"].clone()))
    };
    let script = json!(["bash", "-x", "-c", "SCRIPT", "--", "/rook/rook"]);
    assert_eq!(
        started(script, json!(["ceph", "osd", "start", "--", "--id", "3"])).unwrap(),
        (json!(["bash", "-x", "-c", "SCRIPT", "--", "ceph-osd"]), json!(["--id", "3"]))
    );
    let tini = json!(["--", "/rook/rook", "ceph", "osd", "start", "--", "--id", "3"]);
    assert_eq!(started(json!(["/rook/tini"]), tini).unwrap(), (json!(["ceph-osd"]), json!(["--id", "3"])));
    let no_start = NoShape::Text { container: "osd".to_owned(), text: "ceph osd start --".to_owned() };
    for args in [json!(["--id", "3"]), json!(["other", "--", "--id", "3"]), Value::Null] {
        assert_eq!(started(json!(["/rook/rook"]), args).unwrap_err(), no_start);
    }
}

#[test]
fn deployment_of_lvm_in_another_shape_is_refused() {
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut found = on_lvm(Rook::V1_20).deployment();
        change(found.pointer_mut(POD_SPEC).unwrap());
        let deploy: Deploy = on_pvc(true);
        reshaped(&deploy, &found).unwrap_err()
    };
    let without = |name: &'static str| move |pod: &mut Value| remove(pod, "initContainers", &[name]);
    assert_eq!(refused(&without(COPY)), NoShape::Container(COPY));
    assert_eq!(refused(&without(CHOWN)), NoShape::Container(CHOWN));
    let elsewhere =
        |pod: &mut Value| pod["initContainers"][2]["volumeMounts"][0]["mountPath"] = json!("/device");
    assert_eq!(refused(&elsewhere), NoShape::OtherPvc("set1-data-0a".to_owned()));
    let renamed = |pod: &mut Value| pod["containers"][0]["name"] = json!("daemon");
    assert_eq!(refused(&renamed), NoShape::Container("osd"));
}
