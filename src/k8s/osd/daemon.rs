//! Parser of an OSD's Deployment. Deployments come from many Rook versions and also from people, so the
//! parser assumes only that the object is a Deployment.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::domain::inspection::RecordId;
use crate::domain::observation::Daemon;
use crate::domain::osd::{NodeName, OsdFsid, OsdId};
use crate::k8s::names::{OSD_ID, STOPPED, osd_of_label};
use crate::k8s::osd::fields::{POD_SPEC, all_containers, containers, env, field, label, osd_container, text};
use crate::k8s::osd::pvc_shape::is_opened;
use crate::k8s::osd::{daemon_data, daemon_pvcs};
use crate::k8s::rook::ceph_cluster::FENCE;
use crate::k8s::tolerations;

/// An OSD and the contents of its Deployment; the caller adds the pods and the node's name.
#[derive(Clone)]
pub(crate) struct Parsed {
    /// OSD that the Deployment runs.
    pub(crate) osd: OsdId,
    /// Daemon without pods; its node is the one in the Deployment.
    pub(crate) daemon: Daemon,
    /// Value of `kubernetes.io/hostname` that the Deployment is pinned to.
    pub(crate) hostname: Option<String>,
    /// Node selector of the pods; empty if the hostname is known.
    pub(crate) selector: BTreeMap<String, String>,
    /// Whether it has the label `ceph-osd-id`, by which requests of some OSDs select.
    pub(crate) is_labelled: bool,
    /// Namespace of the operator that created the Deployment.
    pub(crate) operator_namespace: Option<String>,
}

/// Reads a Deployment with label `app=rook-ceph-osd`; the error is a sentence for people.
pub(crate) fn parse(deployment: &Value) -> Result<Parsed, String> {
    let name = text(deployment, "/metadata/name").unwrap_or_default().to_owned();
    let osd = osd_of(deployment, &name)?;
    let label = |key: &str| label(deployment, key);
    let annotation = |key: &str| {
        deployment.pointer("/metadata/annotations").and_then(|a| a.get(key)).and_then(Value::as_str)
    };
    let activates = containers(deployment, "initContainers").any(|c| field(c, "name") == Some("activate"))
        || ["ROOK_CV_MODE", "ROOK_BLOCK_PATH", "ROOK_LV_PATH"]
            .iter()
            .any(|key| env(deployment, key).is_some());
    let replicas = deployment.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1);
    let hostname = hostname(deployment).map(str::to_owned);
    let daemon = Daemon {
        uid: text(deployment, "/metadata/uid").unwrap_or_default().to_owned(),
        generation: deployment.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default(),
        replicas: u32::try_from(replicas).unwrap_or(u32::MAX),
        stopped_by: annotation(STOPPED).map(|record| RecordId(record.to_owned())),
        fsid: fsid_of(deployment),
        node: text(deployment, "/spec/template/spec/nodeName").map(|n| NodeName(n.to_owned())),
        image: osd_container(deployment).and_then(|c| field(c, "image")).unwrap_or_default().to_owned(),
        activates,
        mode: daemon_data::mode(deployment),
        mounts_device: daemon_data::mounts_device(deployment),
        data_dir: daemon_data::data_dir(deployment).filter(|_| !activates),
        on_pvcs: daemon_pvcs::on_pvcs(deployment),
        opens_encryption: opens_encryption(deployment),
        encrypted_to_rook: label("encrypted") == Some("true"),
        managed_externally: managed_externally(deployment),
        tolerations: tolerations::parse(deployment.pointer("/spec/template/spec/tolerations")),
        rolled_out: rolled_out(deployment),
        names_topology: names_topology(deployment),
        replica_failure: replica_failure(deployment),
        pods: Vec::new(),
        name,
    };
    let operator_namespace = label("rook.io/operator-namespace").map(str::to_owned);
    let is_labelled = label(OSD_ID).and_then(osd_of_label).is_some();
    let selector = if hostname.is_none() { selector(deployment) } else { BTreeMap::new() };
    Ok(Parsed { osd, daemon, hostname, selector, is_labelled, operator_namespace })
}

/// Returns whether the Deployment opens its encrypted device itself.
///
/// `ceph-volume` names the mappings (devices/raw/prepare.py, `prepare_dmcrypt`:
/// `ceph-{fsid}-{kname}-{device_type}-dmcrypt`, main of 2024). Rook names the init containers
/// (pkg/operator/ceph/cluster/osd/spec.go, `encryption-open`, v1.20.6). A mapping with any other name belongs
/// to the host (crypttab, clevis).
fn opens_encryption(deployment: &Value) -> bool {
    let mapping = env(deployment, "ROOK_BLOCK_PATH").and_then(|path| path.strip_prefix("/dev/mapper/"));
    let is_own = |(name, fsid): (&str, OsdFsid)| {
        name.strip_prefix(&format!("ceph-{fsid}-")).is_some_and(|rest| rest.ends_with("-dmcrypt"))
    };
    is_opened(deployment) || mapping.zip(fsid_of(deployment)).is_some_and(is_own)
}

/// Returns whether the last change is observed, and all desired replicas are updated and available.
///
/// A Deployment with 0 replicas then counts as rolled out.
fn rolled_out(deployment: &Value) -> bool {
    let number = |path: &str| deployment.pointer(path).and_then(Value::as_u64).unwrap_or(0);
    let wanted = deployment.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1);
    number("/status/observedGeneration") >= number("/metadata/generation")
        && number("/status/updatedReplicas") >= wanted
        && number("/status/availableReplicas") >= wanted
}

fn names_topology(deployment: &Value) -> bool {
    let labels = deployment.pointer("/metadata/labels").and_then(Value::as_object);
    labels.is_some_and(|labels| labels.keys().any(|key| key.starts_with("topology-location-")))
}

/// Returns why the Deployment's ReplicaSet can't create pods: a quota, an admission webhook or policy.
///
/// The Deployment controller copies the condition from the ReplicaSet
/// (`pkg/controller/deployment/progress.go`, `getReplicaFailures`).
fn replica_failure(deployment: &Value) -> Option<String> {
    let conditions = deployment.pointer("/status/conditions")?.as_array()?;
    let is_failure =
        |c: &&Value| field(c, "type") == Some("ReplicaFailure") && field(c, "status") == Some("True");
    let failure = conditions.iter().find(is_failure)?;
    let reason = field(failure, "reason").unwrap_or("ReplicaFailure");
    Some(
        field(failure, "message").map_or_else(|| reason.to_owned(), |message| format!("{reason}: {message}")),
    )
}

/// Returns the OSD by label and by name; if both name one, they must agree.
fn osd_of(deployment: &Value, name: &str) -> Result<OsdId, String> {
    let id = |text: &str| text.parse::<OsdId>().ok().filter(|_| !text.starts_with("osd."));
    let suffix = name.strip_prefix("rook-ceph-osd-").map(|rest| rest.strip_prefix("id-").unwrap_or(rest));
    let by_name = suffix.and_then(id);
    match deployment.pointer("/metadata/labels/ceph-osd-id").and_then(Value::as_str) {
        None => {
            by_name.ok_or_else(|| format!("deployment/{name} has no label ceph-osd-id, which names its OSD"))
        }
        Some(label) => match (id(label), by_name) {
            (Some(osd), Some(named)) if osd != named => {
                Err(format!("deployment/{name} has the label ceph-osd-id={label}: name and label differ"))
            }
            (Some(osd), Some(_) | None) => Ok(osd),
            (None, _) => {
                Err(format!("deployment/{name} has the label ceph-osd-id={label}, which is not an OSD id"))
            }
        },
    }
}

/// Returns the fsid that a Deployment starts: env `ROOK_OSD_UUID`, else `--osd-uuid` among arguments or
/// inside a script.
pub(super) fn fsid_of(deployment: &Value) -> Option<OsdFsid> {
    let by_env = || env(deployment, "ROOK_OSD_UUID")?.parse().ok();
    let words =
        || osd_container(deployment).into_iter().chain(all_containers(deployment)).find_map(fsid_of_words);
    by_env().or_else(words)
}

fn fsid_of_words(container: &Value) -> Option<OsdFsid> {
    let lists =
        ["command", "args"].into_iter().filter_map(|key| container.get(key).and_then(Value::as_array));
    // After joining, `--osd-uuid X` as two arguments, `--osd-uuid=X` and both in a script are alike.
    let script = lists.flatten().filter_map(Value::as_str).collect::<Vec<_>>().join(" ");
    script.split("--osd-uuid").skip(1).find_map(|rest| {
        let rest =
            rest.trim_start_matches(|c: char| c == '=' || c.is_whitespace()).trim_start_matches(['"', '\'']);
        rest.get(..36)?.parse().ok()
    })
}

pub(super) fn managed_externally(deployment: &Value) -> Option<String> {
    let entries = |path: &str| deployment.pointer(path).and_then(Value::as_object).into_iter().flatten();
    let label = entries("/metadata/labels").find(|(key, _)| *key == FENCE);
    let replacement =
        entries("/metadata/annotations").find(|(key, _)| key.starts_with("osd.rook.io/replace"));
    let said = |kind: &str, (key, value): (&String, &Value)| {
        format!("{kind} {key}={}", value.as_str().unwrap_or_default())
    };
    label.map(|l| said("label", l)).or_else(|| replacement.map(|a| said("annotation", a)))
}

/// Returns the node selector of the pods.
fn selector(deployment: &Value) -> BTreeMap<String, String> {
    let labels = deployment.pointer("/spec/template/spec/nodeSelector").and_then(Value::as_object);
    let pair = |(label, value): (&String, &Value)| Some((label.clone(), value.as_str()?.to_owned()));
    labels.into_iter().flatten().filter_map(pair).collect()
}

/// Returns the hostname that pins the pods: node selector, else a required node affinity to exactly one.
pub(crate) fn hostname(deployment: &Value) -> Option<&str> {
    let spec = deployment.pointer(POD_SPEC)?;
    let selected = spec.pointer("/nodeSelector/kubernetes.io~1hostname").and_then(Value::as_str);
    let required = "/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    selected.or_else(|| {
        let [term] = spec.pointer(required)?.as_array()?.as_slice() else { return None };
        let expressions = term.get("matchExpressions")?.as_array()?;
        let by_host = |e: &&Value| {
            field(e, "key") == Some("kubernetes.io/hostname") && field(e, "operator") == Some("In")
        };
        match expressions.iter().find(by_host)?.get("values")?.as_array()?.as_slice() {
            [only] => only.as_str(),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FSID: &str = "1f0c3b5e-8a52-4a7e-9d2f-3a1f5d0e7b11";

    fn deployment(name: &str, labels: &Value, container: &Value) -> Value {
        json!({"metadata": {"name": name, "uid": "u", "resourceVersion": "5", "labels": labels},
            "spec": {"template": {"spec": {"nodeSelector": {"kubernetes.io/hostname": "h1"}, "containers": [container]}}}})
    }

    #[test]
    fn osd_deployment_is_parsed_with_all_its_fields() {
        let osd = json!({"name": "osd", "image": "ceph:16", "env": [{"name": "ROOK_OSD_UUID", "value": FSID},
            {"name": "ROOK_CV_MODE", "value": "raw"}]});
        let labels = json!({"ceph-osd-id": "3", "rook.io/operator-namespace": "rook-system", FENCE: "true"});
        let mut object = deployment("rook-ceph-osd-3", &labels, &osd);
        object["metadata"]["annotations"] = json!({STOPPED: "r1"});
        object["spec"]["replicas"] = json!(0);
        object["spec"]["template"]["spec"]["tolerations"] = json!([{"key": "a", "operator": "Exists"}]);
        let parsed = parse(&object).unwrap();
        assert_eq!((parsed.osd, parsed.hostname.as_deref()), (OsdId(3), Some("h1")));
        assert_eq!(parsed.operator_namespace.as_deref(), Some("rook-system"));
        let daemon = parsed.daemon;
        assert_eq!(daemon.fsid, Some(FSID.parse().unwrap()));
        assert_eq!(
            (daemon.replicas, daemon.image.as_str(), daemon.activates, daemon.on_pvcs),
            (0, "ceph:16", true, None)
        );
        assert_eq!(daemon.stopped_by, Some(RecordId("r1".to_owned())));
        assert_eq!(daemon.tolerations.iter().map(|t| t.key.as_str()).collect::<Vec<_>>(), ["a"]);
        assert_eq!(daemon.managed_externally.as_deref(), Some("label ceph.rook.io/do-not-reconcile=true"));
    }

    #[test]
    fn osd_encryption_is_distinguished_from_host_encryption() {
        let with = |path: &str, init: &str| {
            let osd = json!({"name": "osd", "env": [{"name": "ROOK_OSD_UUID", "value": FSID},
                {"name": "ROOK_CV_MODE", "value": "raw"}, {"name": "ROOK_BLOCK_PATH", "value": path}]});
            let mut object =
                deployment("rook-ceph-osd-3", &json!({"ceph-osd-id": "3", "encrypted": "true"}), &osd);
            object["spec"]["template"]["spec"]["initContainers"] = json!([{"name": init}]);
            parse(&object).unwrap().daemon.opens_encryption
        };
        assert!(with(&format!("/dev/mapper/ceph-{FSID}-sdb-block-dmcrypt"), "activate"));
        assert!(with("/dev/mapper/luks-1", "encryption-open-metadata"));
        for path in ["/dev/mapper/mpatha", "/dev/mapper/data-dmcrypt", "/dev/mapper/ceph-data", "/dev/sdb"] {
            assert!(!with(path, "activate"), "{path}");
        }
    }

    #[test]
    fn deployment_without_pods_says_why_none_can_be_created() {
        let mut object = deployment("rook-ceph-osd-3", &json!({"ceph-osd-id": "3"}), &json!({"name": "osd"}));
        let parsed = |object: &Value| parse(object).unwrap().daemon;
        assert_eq!(parsed(&object).trouble(), None);
        object["status"]["conditions"] = json!([
            {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated", "message": "is progressing"},
            {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
                "message": "pods \"rook-ceph-osd-3-x\" is forbidden: exceeded quota: compute"},
        ]);
        let text = "FailedCreate: pods \"rook-ceph-osd-3-x\" is forbidden: exceeded quota: compute";
        assert_eq!(parsed(&object).trouble().as_deref(), Some(text));
    }

    #[test]
    fn deployment_says_whether_rook_knows_its_topology() {
        let of = |labels: &Value| {
            parse(&deployment("rook-ceph-osd-3", labels, &json!({"name": "osd"})))
                .unwrap()
                .daemon
                .names_topology
        };
        assert!(of(&json!({"topology-location-host": "h1", "topology-location-root": "default"})));
        assert!(!of(&json!({"ceph-osd-id": "3"})));
    }

    #[test]
    fn osd_fsid_is_found_in_each_spelling_of_the_arguments() {
        for container in [
            json!({"args": ["--id", "3", "--osd-uuid", FSID, "--fsid", "other"]}),
            json!({"args": [format!("--osd-uuid={FSID}")]}),
            json!({"command": ["bash", "-c", format!("set -e\nceph-osd --id 3 \\\n  --osd-uuid \"{FSID}\" --foreground\n")]}),
            json!({"command": ["bash", "-c", format!("ceph-osd --osd-uuid={FSID}; true")]}),
        ] {
            assert_eq!(
                fsid_of(&deployment("d", &json!({}), &container)),
                Some(FSID.parse().unwrap()),
                "{container}"
            );
        }
        let none = json!({"args": ["--osd-uuid", "$(ROOK_OSD_UUID)"], "env": [{"name": "ROOK_OSD_UUID", "valueFrom": {}}]});
        assert_eq!(fsid_of(&deployment("d", &json!({}), &none)), None);
    }

    #[test]
    fn legacy_deployment_has_no_activation() {
        let osd = json!({"name": "osd", "args": ["--osd-uuid", FSID]});
        let parsed =
            parse(&deployment("rook-ceph-osd-id-7", &json!({"app": "rook-ceph-osd"}), &osd)).unwrap();
        assert_eq!(parsed.osd, OsdId(7));
        assert!(!parsed.daemon.activates);
        assert_eq!(parsed.daemon.replicas, 1);
    }

    #[test]
    fn osd_id_of_a_deployment_must_be_unambiguous() {
        let parse = |name: &str, labels: Value| parse(&deployment(name, &labels, &json!({}))).map(|p| p.osd);
        assert_eq!(parse("by-hand", json!({"ceph-osd-id": "12"})), Ok(OsdId(12)));
        assert!(parse("by-hand", json!({})).is_err());
        assert!(parse("rook-ceph-osd-3", json!({"ceph-osd-id": "x"})).is_err());
        assert!(parse("rook-ceph-osd-3", json!({"ceph-osd-id": "4"})).unwrap_err().ends_with("differ"));
        assert_eq!(parse("rook-ceph-osd-3-maintenance", json!({"ceph-osd-id": "3"})), Ok(OsdId(3)));
    }

    #[test]
    fn node_affinity_to_one_host_pins_the_deployment() {
        let terms = |values: Value| {
            json!({"spec": {"template": {"spec": {"affinity": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions":
                    [{"key": "kubernetes.io/hostname", "operator": "In", "values": values}]}]}}}}}}})
        };
        assert_eq!(hostname(&terms(json!(["h2"]))), Some("h2"));
        assert_eq!(hostname(&terms(json!(["h2", "h3"]))), None);
    }
}
