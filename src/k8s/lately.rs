//! Answers of observations, which are not read again until a watch reports a change.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::DynamicObject;
use serde_json::Value;

use crate::domain::observation::{Control, Listed, Node, Operator, OsdPdb};
use crate::domain::osd::{NodeName, OsdId};
use crate::domain::removal::Requests;
use crate::k8s::changes::{Last, Watched};
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;
use crate::k8s::names::OF_AGENTS;
use crate::k8s::nodes::owned::{OurJob, OurPod, OwnedMap, our_job, our_pod, owned_map};
use crate::k8s::osd::daemon;
use crate::k8s::osd::daemons::OsdPod;
use crate::k8s::own::control_map::{self, CONTROL};
use crate::k8s::own::requests_map::{self, REQUESTS};
use crate::k8s::pvcs::Volumes;

/// ConfigMap in which Rook records which OSD it migrates itself, from 1.16 on; the other one is of 1.13 to
/// 1.15.
const MIGRATION: &str = "osd-migration-config";
const REPLACEMENT: &str = "osd-replace-config";

/// ConfigMap in which Rook records the failure domain whose node is drained.
const PDB_STATE: &str = "rook-ceph-pdbstatemap";

/// ConfigMaps of Rook that an observation reads.
pub(super) const ROOK_MAPS: [&str; 3] = [MIGRATION, REPLACEMENT, PDB_STATE];

/// Answers that later observations need not read again.
#[derive(Default)]
pub struct Lately {
    /// Deployments and pods of all OSDs.
    pub list: Option<List>,
    /// The last complete observation has taken OSDs from the list.
    pub(super) is_by_list: bool,
    pub(super) in_progress: OfOsds,
    pub(super) small: LastSmall,
    pub(super) around: LastAround,
}

impl Lately {
    /// Drops the list of all OSDs, and returns whether the last complete observation has taken OSDs from it.
    pub fn forget_list(&mut self) -> bool {
        self.list = None;
        std::mem::take(&mut self.is_by_list)
    }
}

/// Deployments and pods of all OSDs, with what they were read by.
pub struct List {
    pub(super) listed: Listed,
    pub(super) by: ListedBy,
    /// PersistentVolumes of OSDs.
    pub(super) volumes: Volumes,
}

/// Contents of other objects by which the list was read.
pub(super) struct ListedBy {
    /// Value of the label `kubernetes.io/hostname` of each node, by which Deployments name their nodes.
    hostnames: Vec<(NodeName, String)>,
    /// Namespace of Rook's operator, which the first Deployment names.
    pub(super) operator_namespace: Option<String>,
}

impl ListedBy {
    /// Notes the hostnames of these nodes.
    pub(super) fn new(nodes: &BTreeMap<NodeName, Node>, operator_namespace: Option<String>) -> Self {
        Self { hostnames: hostnames(nodes), operator_namespace }
    }

    /// Returns whether the Deployments would name the same nodes.
    pub(super) fn has_hostnames_of(&self, nodes: &BTreeMap<NodeName, Node>) -> bool {
        self.hostnames == hostnames(nodes)
    }
}

fn hostnames(nodes: &BTreeMap<NodeName, Node>) -> Vec<(NodeName, String)> {
    nodes.iter().map(|(name, node)| (name.clone(), node.hostname.clone())).collect()
}

/// Deployments and pods of these OSDs.
#[derive(Default)]
pub(super) struct OfOsds {
    pub(super) osds: BTreeSet<OsdId>,
    pub(super) objects: Last<Large>,
}

/// Deployments and pods of OSDs.
pub(super) type Large = (Vec<Result<daemon::Parsed, String>>, Vec<OsdPod>);

/// OSDs that Rook migrates itself, and the failure domain whose node is drained.
type OfRook = (BTreeSet<OsdId>, Option<String>);

/// Contents of what is small in each cluster.
pub(super) struct Small {
    pub(super) cluster: DynamicObject,
    pub(super) jobs: Vec<OurJob>,
    pub(super) job_pods: Vec<OurPod>,
    pub(super) maps: Vec<OwnedMap>,
    pub(super) of_rook: OfRook,
    pub(super) control: Option<Control>,
    pub(super) requests: Requests,
}

#[derive(Default)]
pub(super) struct LastSmall {
    cluster: Last<DynamicObject>,
    jobs: Last<Vec<OurJob>>,
    job_pods: Last<Vec<OurPod>>,
    maps: Last<Vec<OwnedMap>>,
    of_rook: Last<OfRook>,
    control: Last<Option<Control>>,
    requests: Last<Requests>,
}

/// Rook's operator and the PodDisruptionBudgets.
pub(super) struct Around {
    pub(super) operator: Option<Operator>,
    pub(super) osd_pdb: Option<OsdPdb>,
    pub(super) own_pdb: Option<String>,
}

#[derive(Default)]
pub(super) struct LastAround {
    operator: Last<Option<Operator>>,
    osd_pdb: Last<Option<OsdPdb>>,
    own_pdb: Last<Option<String>>,
}

impl K8s {
    /// Reads everything whose size does not depend on the number of OSDs.
    pub(super) async fn small(&self, last: &mut LastSmall) -> Result<Small, K8sError> {
        let (pods, jobs, maps) = (self.kind::<Pod>(), self.kind::<Job>(), self.kind::<ConfigMap>());
        let mark = |kind| self.changes().mark(&[kind]);
        let control = async { Ok(maps.get_opt(CONTROL).await?.and_then(control_map::control)) };
        let requests = async {
            let found = maps.get_opt(REQUESTS).await?;
            Ok(found.as_ref().map(requests_map::requests).unwrap_or_default())
        };
        let (cluster, jobs, job_pods, of_agents, of_rook, control, requests) = tokio::try_join!(
            last.cluster.get(mark(Watched::Clusters), self.ceph_cluster()),
            last.jobs.get(mark(Watched::Jobs), jobs.list(OF_AGENTS, |job| Some(our_job(&job)))),
            last.job_pods.get(mark(Watched::Pods), pods.list(OF_AGENTS, |pod| our_pod(&pod))),
            last.maps.get(mark(Watched::Maps), maps.list(OF_AGENTS, |map| Some(owned_map(map)))),
            last.of_rook.get(mark(Watched::Maps), self.of_rook()),
            last.control.get(mark(Watched::Maps), control),
            last.requests.get(mark(Watched::Maps), requests),
        )?;
        Ok(Small { cluster, jobs, job_pods, maps: of_agents, of_rook, control, requests })
    }

    /// Reads what Rook says of its own work.
    async fn of_rook(&self) -> Result<OfRook, K8sError> {
        let maps = self.kind::<ConfigMap>();
        let (migration, replacement, pdb) =
            tokio::try_join!(maps.get_opt(MIGRATION), maps.get_opt(REPLACEMENT), maps.get_opt(PDB_STATE),)?;
        let migrated = [migration, replacement].into_iter().flatten();
        Ok((migrated.filter_map(migrated_by_rook).collect(), pdb.and_then(draining)))
    }

    /// Reads operator and PodDisruptionBudgets.
    pub(super) async fn around(
        &self,
        last: &mut LastAround,
        of_operator: Option<String>,
    ) -> Result<Around, K8sError> {
        let mark = |kinds: &[Watched]| self.changes().mark(kinds);
        let namespace = self.place.operator_namespace.as_ref().or(of_operator.as_ref());
        // Another namespace is not watched.
        let is_here = namespace.is_none_or(|namespace| namespace == self.namespace());
        let of_operator_now = is_here.then(|| mark(&[Watched::Deployments, Watched::Pods])).flatten();
        let (operator, osd_pdb, own_pdb) = tokio::try_join!(
            last.operator.get(of_operator_now, self.operator(of_operator)),
            last.osd_pdb.get(mark(&[Watched::RookPdb]), self.osd_pdb()),
            last.own_pdb.get(mark(&[Watched::OwnPdb]), self.own_pdb()),
        )?;
        Ok(Around { operator, osd_pdb, own_pdb })
    }
}

/// Returns the domain whose node is drained.
///
/// Rook, fenced or not, also names a domain with an OSD down while PGs are not clean, which may be an OSD
/// that osd-migrate has stopped. `set-no-out` distinguishes the two.
fn draining(map: ConfigMap) -> Option<String> {
    let mut data = map.data?;
    let is_only_down = data.get("set-no-out").is_some_and(|word| word != "true");
    data.remove("draining-failure-domain").filter(|domain| !domain.is_empty() && !is_only_down)
}

/// Returns the OSD that Rook's own migration took last: a number, or JSON with more
/// (`pkg/operator/ceph/cluster/osd/migrate.go`, `replace.go`).
fn migrated_by_rook(map: ConfigMap) -> Option<OsdId> {
    let data = map.data?;
    let of_config = || serde_json::from_str::<Value>(data.get("config")?).ok()?.get("id")?.as_u64();
    let id = data.get("osdID").and_then(|id| id.trim().parse().ok()).or_else(of_config)?;
    u32::try_from(id).ok().map(OsdId)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn down_osd_is_not_a_drain_unless_rook_sets_noout() {
        let seen = |data: Value| draining(serde_json::from_value(json!({ "data": data })).unwrap());
        assert_eq!(
            seen(json!({"draining-failure-domain": "h1", "set-no-out": "true"})).as_deref(),
            Some("h1")
        );
        assert_eq!(seen(json!({"draining-failure-domain": "h1", "set-no-out": ""})), None);
        assert_eq!(seen(json!({"draining-failure-domain": "", "set-no-out": ""})), None);
        // Rook 1.6 has only this key.
        assert_eq!(seen(json!({"draining-failure-domain": "h1"})).as_deref(), Some("h1"));
    }

    #[test]
    fn osd_migrated_by_rook_is_read_in_each_of_rooks_formats() {
        let of = |data: Value| migrated_by_rook(serde_json::from_value(json!({"data": data})).unwrap());
        assert_eq!(of(json!({"osdID": "5"})), Some(OsdId(5)));
        let config = json!({"id": 5, "path": "/dev/sdb", "node": "h1"}).to_string();
        assert_eq!(of(json!({"config": config})), Some(OsdId(5)));
        for none in [
            json!({}),
            json!({"osdID": ""}),
            json!({"osdID": "-1"}),
            json!({"config": "null"}),
            json!({"config": "{}"}),
        ] {
            assert_eq!(of(none.clone()), None, "{none}");
        }
    }
}
