//! PersistentVolumeClaims in an OSD's Deployment.

use serde_json::Value;

use crate::domain::observation::OnPvcs;
use crate::domain::osd::Role;
use crate::k8s::osd::fields::{containers, env, field, label, text, volumes};
use crate::k8s::osd::pvc_shape::{copies, reads_from_kms};

/// Label of the device set, on PVCs and Deployments (pkg/operator/ceph/cluster/osd/labels.go, Rook v1.20.6).
pub(crate) const DEVICE_SET: &str = "ceph.rook.io/DeviceSet";
/// Label of the index in the device set, on PVCs (the same file).
pub(crate) const SET_INDEX: &str = "ceph.rook.io/setIndex";
/// Label of a PVC with `SET-TEMPLATE-INDEX` (the same file).
pub(crate) const SET_PVC: &str = "ceph.rook.io/DeviceSetPVCId";
/// Label of the PVC of the data, on Deployments (the same file).
pub(super) const DATA: &str = "ceph.rook.io/pvc";

/// Returns the PVCs of an OSD; `None` if the OSD is on disks of its host.
pub(super) fn on_pvcs(deployment: &Value) -> Option<OnPvcs> {
    let label = |key: &str| label(deployment, key).filter(|value| !value.is_empty()).map(str::to_owned);
    let data = label(DATA);
    let is_on_pvc = data.is_some() || env(deployment, "ROOK_PVC_BACKED_OSD") == Some("true");
    is_on_pvc.then(|| OnPvcs {
        data: data.or_else(|| only_pvc(deployment)),
        db: pvc_of_container(deployment, copies(Role::Db)).map(str::to_owned),
        wal: pvc_of_container(deployment, copies(Role::Wal)).map(str::to_owned),
        set: label(DEVICE_SET),
        key_in_kms: reads_from_kms(deployment),
    })
}

/// Returns the PVC whose device an init container gets.
pub(super) fn pvc_of_container<'a>(deployment: &'a Value, name: &str) -> Option<&'a str> {
    let container = containers(deployment, "initContainers").find(|c| field(c, "name") == Some(name))?;
    let volume = text(container, "/volumeDevices/0/name")?;
    let volume = volumes(deployment).find(|v| field(v, "name") == Some(volume))?;
    text(volume, "/persistentVolumeClaim/claimName")
}

/// Returns the PVC of the pods, if they have one only.
fn only_pvc(deployment: &Value) -> Option<String> {
    let mut names = volumes(deployment).filter_map(|v| text(v, "/persistentVolumeClaim/claimName"));
    names.next().filter(|_| names.next().is_none()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::osd::Mode;
    use crate::k8s::osd::daemon;

    fn deployment(labels: &Value, env: &Value, pvcs: &[&str]) -> Value {
        let volumes: Vec<_> = pvcs
            .iter()
            .map(|pvc| json!({"name": pvc, "persistentVolumeClaim": {"claimName": pvc}}))
            .collect();
        json!({"metadata": {"labels": labels}, "spec": {"template": {"spec": {
            "volumes": volumes, "containers": [{"name": "osd", "env": env}]}}}})
    }

    #[test]
    fn pvc_and_device_set_of_an_osd_are_read_from_its_labels() {
        let labels = json!({"ceph.rook.io/pvc": "set1-data-0a", "ceph.rook.io/DeviceSet": "set1"});
        let found = on_pvcs(&deployment(&labels, &json!([]), &["set1-data-0a", "set1-metadata-0b"]));
        let expected = OnPvcs {
            data: Some("set1-data-0a".to_owned()),
            set: Some("set1".to_owned()),
            ..OnPvcs::default()
        };
        assert_eq!(found, Some(expected));
        assert_eq!(on_pvcs(&deployment(&json!({"ceph-osd-id": "3"}), &json!([]), &[])), None);
    }

    #[test]
    fn captured_deployments_on_pvcs_name_pvc_and_device_set() {
        let captured = [
            (include_str!("../../../tests/suite/fixtures/pvc/16.2.15/plain.deployment.json"), "set1", false),
            (
                include_str!("../../../tests/suite/fixtures/pvc/16.2.15/database.deployment.json"),
                "set2",
                false,
            ),
            (
                include_str!("../../../tests/suite/fixtures/pvc/16.2.15/encrypted.deployment.json"),
                "set3",
                true,
            ),
        ];
        for (text, set, is_encrypted) in captured {
            let daemon = daemon::parse(&serde_json::from_str(text).unwrap()).unwrap().daemon;
            let on = daemon.on_pvcs.unwrap();
            assert_eq!(on.set.as_deref(), Some(set));
            assert!(on.data.is_some_and(|pvc| pvc.starts_with(&format!("{set}-data-0"))));
            let db = Some("set2-metadata-0zrrqs").filter(|_| set == "set2");
            assert_eq!((on.db.as_deref(), on.wal), (db, None), "{set}");
            assert_eq!((daemon.opens_encryption, daemon.mode), (is_encrypted, Some(Mode::Raw)), "{set}");
        }
    }

    #[test]
    fn database_and_log_are_on_the_pvcs_of_their_init_containers() {
        let mut found = deployment(&json!({"ceph.rook.io/pvc": "data-0"}), &json!([]), &["data-0", "log-0"]);
        let pod = &mut found["spec"]["template"]["spec"];
        pod["volumes"][1]["name"] = json!("of-the-log");
        let device = json!([{"name": "of-the-log", "devicePath": "/log-0"}]);
        pod["initContainers"] = json!([
            {"name": "blkdevmapper-metadata", "volumeDevices": [{"name": "gone", "devicePath": "/gone"}]},
            {"name": "blkdevmapper-wal", "volumeDevices": device}, {"name": "blkdevmapper-wal-encryption"}]);
        let on = on_pvcs(&found).unwrap();
        assert_eq!((on.db, on.wal.as_deref()), (None, Some("log-0")));
    }

    #[test]
    fn pvc_without_a_label_is_the_only_one_of_the_pods() {
        let env = json!([{"name": "ROOK_PVC_BACKED_OSD", "value": "true"}]);
        let data = |pvcs: &[&str]| on_pvcs(&deployment(&json!({}), &env, pvcs)).unwrap().data;
        assert_eq!(data(&["set1-0"]).as_deref(), Some("set1-0"));
        assert_eq!(data(&["set1-0", "set1-metadata-0"]), None);
        let on_host = json!([{"name": "ROOK_PVC_BACKED_OSD", "value": "false"}]);
        assert_eq!(on_pvcs(&deployment(&json!({}), &on_host, &[])), None);
    }
}
