//! Names that the disks of OSDs had when the OSDs were created.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::ApiResource;
use serde::Deserialize;
use serde_json::Value;

use crate::domain::osd::OsdFsid;
use crate::domain::undeclared::CreatedAs;
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;
use crate::k8s::client::page::Raw;
use crate::k8s::names::OF_OSDS;
use crate::k8s::osd::daemon::fsid_of;
use crate::k8s::osd::fields::env;

/// Key of the old ConfigMap of a node.
const SCHEME: &str = "partition-scheme";

/// Partitions with the data of an OSD: `BlockPartitionType` and `FilestoreDataPartitionType`.
const DATA: [&str; 2] = ["2", "3"];

impl K8s {
    /// Returns the names that Rook has stored: in the Deployments of the OSDs, and until Rook 1.2 in a
    /// ConfigMap of each node.
    ///
    /// `hostnames` are the nodes' labels `kubernetes.io/hostname`.
    pub async fn created_as<'a>(
        &self,
        hostnames: impl IntoIterator<Item = &'a String>,
    ) -> Result<CreatedAs, K8sError> {
        let deployments = self.untyped(&ApiResource::erase::<Deployment>(&()));
        let of_deployments =
            deployments.list_as(OF_OSDS, |Raw(deployment)| of_deployment(&deployment)).await?;
        let mut found = CreatedAs::new();
        let mut add = |(fsid, name)| {
            found.entry(fsid).or_default().insert(name);
        };
        of_deployments.into_iter().for_each(&mut add);
        for hostname in hostnames {
            let map = self.kind::<ConfigMap>().get_opt(&format!("rook-ceph-osd-{hostname}-config")).await?;
            let scheme = map.and_then(|map| map.data?.remove(SCHEME));
            scheme.iter().flat_map(|scheme| of_scheme(scheme)).for_each(&mut add);
        }
        Ok(found)
    }
}

/// Returns the block path of a Deployment.
///
/// Rook writes it when it creates the Deployment, and later takes it from there
/// (pkg/operator/ceph/cluster/osd/osd.go, `getOSDInfo`, v1.20.6).
fn of_deployment(deployment: &Value) -> Option<(OsdFsid, String)> {
    let path = env(deployment, "ROOK_BLOCK_PATH").or_else(|| env(deployment, "ROOK_LV_PATH"))?;
    Some((fsid_of(deployment)?, path.to_owned()))
}

/// Partition scheme of a node (pkg/operator/ceph/cluster/osd/config/scheme.go, `PerfScheme`, v1.2.7).
#[derive(Deserialize)]
struct Scheme {
    #[serde(default)]
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "osdUuid")]
    fsid: OsdFsid,
    #[serde(default)]
    partitions: BTreeMap<String, Partition>,
}

#[derive(Deserialize)]
struct Partition {
    device: String,
}

/// Returns the devices of a partition scheme; none of one that can't be read.
///
/// Without a name, an OSD counts as declared.
fn of_scheme(scheme: &str) -> Vec<(OsdFsid, String)> {
    let Ok(scheme) = serde_json::from_str::<Scheme>(scheme) else { return Vec::new() };
    let of_entry = |entry: Entry| {
        let data = entry.partitions.into_iter().filter(|(kind, _)| DATA.contains(&kind.as_str()));
        data.map(move |(_, partition)| (entry.fsid, partition.device))
    };
    scheme.entries.into_iter().flat_map(of_entry).filter(|(_, device)| !device.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::k8s::wire::{list, on, play, refusal};

    const ONE: &str = "11111111-1111-1111-1111-111111111111";
    const TWO: &str = "22222222-2222-2222-2222-222222222222";

    #[tokio::test]
    async fn names_come_from_deployments_and_old_config_maps() {
        let osd = json!({"metadata": {"name": "rook-ceph-osd-1"}, "spec": {"template": {"spec": {"containers": [
            {"name": "osd", "env": [{"name": "ROOK_OSD_UUID", "value": ONE},
                {"name": "ROOK_BLOCK_PATH", "value": "/dev/sdb"}]}]}}}});
        let without = json!({"metadata": {"name": "rook-ceph-osd-2"}});
        let scheme = json!({"metadata": null, "entries": [{"id": 2, "osdUuid": TWO, "partitions": {
            "0": {"device": "nvme0n1"}, "1": {"device": "nvme0n1"}, "2": {"device": "sda", "diskUuid": "wxyz-1234"}}}]});
        let map = json!({"metadata": {"name": "m"}, "data": {"osd-dirs": "{}", "partition-scheme": scheme.to_string()}});
        let script = vec![
            on(
                "GET /apis/apps/v1/namespaces/rook-ceph/deployments?&labelSelector=app%3Drook-ceph-osd&limit=100",
                200,
                list(&[osd, without]),
            ),
            on("GET /api/v1/namespaces/rook-ceph/configmaps/rook-ceph-osd-h1-config", 200, map),
            on(
                "GET /api/v1/namespaces/rook-ceph/configmaps/rook-ceph-osd-h2-config",
                404,
                refusal(404, "NotFound"),
            ),
        ];
        let hosts = ["h1".to_owned(), "h2".to_owned()];
        let found = play(script, async |k8s| k8s.created_as(&hosts).await).await.unwrap();
        let expected = [(ONE, "/dev/sdb"), (TWO, "sda")];
        let expected = expected.map(|(fsid, name)| (fsid.parse().unwrap(), [name.to_owned()].into()));
        assert_eq!(found, CreatedAs::from(expected));
    }

    #[test]
    fn scheme_that_cannot_be_read_names_nothing() {
        for text in ["", "{", "[]", r#"{"entries": [{"osdUuid": "x"}]}"#] {
            assert_eq!(of_scheme(text), [], "{text}");
        }
    }
}
