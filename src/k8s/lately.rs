//! Answers of observations, which are not read again until a watch reports a change.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::DynamicObject;

use crate::domain::observation::{Kube, Listed, Node, Operator, OsdPdb};
use crate::domain::osd::{NodeName, OsdId};
use crate::k8s::changes::{Group, Last, Mark};
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;
use crate::k8s::maps::{ReadMaps, SeenMaps};
use crate::k8s::names::OF_AGENTS;
use crate::k8s::nodes::owned::{OurJob, OurPod, our_job, our_pod};
use crate::k8s::osd::daemon;
use crate::k8s::osd::daemons::OsdPod;
use crate::k8s::pvcs::Volumes;

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
    /// Drops what a complete observation reads again.
    pub(super) fn forget(&mut self) {
        let mut small = std::mem::take(&mut self.small);
        small.forget();
        *self = Self { small, ..Self::default() };
    }

    /// Takes the list of all OSDs, and drops what an act on an OSD in progress changes.
    ///
    /// The watch may report the change later than the next partial observation begins.
    pub fn before_act(&mut self) -> Option<List> {
        self.in_progress = OfOsds::default();
        self.list.take()
    }

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
    /// Rook's operator (`namespace/name`).
    pub(super) operator: Option<String>,
}

impl ListedBy {
    /// Notes the hostnames of the nodes, and where Rook's operator is.
    pub(super) fn new(kube: &Kube, operator_namespace: Option<String>) -> Self {
        let operator = kube.operator.as_ref().map(|operator| operator.name.clone());
        Self { hostnames: hostnames(&kube.nodes), operator_namespace, operator }
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
///
/// While a pod starts or ends, its status changes several times, and the Deployment's a few times.
#[derive(Default)]
pub(super) struct OfOsds {
    pub(super) osds: BTreeSet<OsdId>,
    pub(super) deployments: Last<Deployments>,
    pub(super) pods: Last<Vec<OsdPod>>,
}

impl OfOsds {
    /// Keeps what was read after these marks, which are those of Deployments and of pods.
    pub(super) fn read(
        osds: &BTreeSet<OsdId>,
        [of_deployments, of_pods]: [Option<Mark>; 2],
        (deployments, pods): &Large,
    ) -> Self {
        let mut kept = Self { osds: osds.clone(), ..Self::default() };
        kept.deployments.keep(of_deployments, deployments.clone());
        kept.pods.keep(of_pods, pods.clone());
        kept
    }
}

/// Deployments of OSDs.
pub(super) type Deployments = Vec<Result<daemon::Parsed, String>>;

/// Deployments and pods of OSDs.
pub(super) type Large = (Deployments, Vec<OsdPod>);

/// Contents of what is small in each cluster.
pub(super) struct Small {
    pub(super) cluster: DynamicObject,
    pub(super) jobs: Vec<OurJob>,
    pub(super) job_pods: Vec<OurPod>,
    pub(super) maps: SeenMaps,
}

#[derive(Default)]
pub(super) struct LastSmall {
    cluster: Last<DynamicObject>,
    jobs: Last<Vec<OurJob>>,
    job_pods: Last<Vec<OurPod>>,
    maps: Last<SeenMaps>,
    read_maps: ReadMaps,
}

impl LastSmall {
    /// Drops what is to be read again.
    ///
    /// ConfigMaps are compared by their versions each time.
    pub(super) fn forget(&mut self) {
        *self = Self { read_maps: std::mem::take(&mut self.read_maps), ..Self::default() };
    }
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
        let (pods, jobs) = (self.kind::<Pod>(), self.kind::<Job>());
        let mark = |group| self.changes().mark(&[group]);
        let (cluster, jobs, job_pods) = tokio::try_join!(
            last.cluster.get(mark(Group::Clusters), self.ceph_cluster()),
            last.jobs.get(mark(Group::Jobs), jobs.list(OF_AGENTS, |job| Some(our_job(&job)))),
            last.job_pods.get(mark(Group::AgentPods), pods.list(OF_AGENTS, |pod| our_pod(&pod))),
        )?;
        let jobs = self.with_refusals(jobs, &job_pods).await;
        // After the Jobs: a read may be repeated for half a minute, and an agent reports before its Job ends.
        let maps = last.maps.get(mark(Group::OtherMaps), self.maps(&mut last.read_maps)).await?;
        Ok(Small { cluster, jobs, job_pods, maps })
    }

    /// Reads operator and PodDisruptionBudgets.
    pub(super) async fn around(
        &self,
        last: &mut LastAround,
        of_operator: Option<String>,
        known_operator: Option<&str>,
    ) -> Result<Around, K8sError> {
        let mark = |groups: &[Group]| self.changes().mark(groups);
        let namespace = self.place.operator_namespace.as_ref().or(of_operator.as_ref());
        // Another namespace is not watched.
        let is_here = namespace.is_none_or(|namespace| namespace == self.namespace());
        let of_operator_now =
            is_here.then(|| mark(&[Group::OtherDeployments, Group::OperatorPods])).flatten();
        let (operator, osd_pdb, own_pdb) = tokio::try_join!(
            last.operator.get(of_operator_now, self.operator(of_operator, known_operator)),
            last.osd_pdb.get(mark(&[Group::RookPdb]), self.osd_pdb()),
            last.own_pdb.get(mark(&[Group::OwnPdb]), self.own_pdb()),
        )?;
        Ok(Around { operator, osd_pdb, own_pdb })
    }
}
