//! Watches of the objects that a run reads.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::DynamicObject;
use kube::core::{ApiResource, Resource};

use crate::domain::osd::OsdId;
use crate::k8s::changes::{Changes, Group, Watched};
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;
use crate::k8s::client::kind::Kind;
use crate::k8s::client::watch::Which;
use crate::k8s::maps::ROOK_MAPS;
use crate::k8s::names::{NAME, OF_AGENTS, OSD_APP, OSD_ID, OURS, PART, Part, osd_of_label};
use crate::k8s::own::ledger_map::{HISTORY, LEDGER, STATUS};
use crate::k8s::rook::operator::OPERATOR_APP;
use crate::k8s::rook::pdbs::{OWN_PDB, ROOK_PDB};

impl K8s {
    /// Returns the changes that the watches have reported.
    pub(crate) fn changes(&self) -> &Arc<Changes> {
        &self.changes
    }

    /// Watches objects until the server ends the watch, and returns the version from which to go on.
    ///
    /// Without `from`, the watch begins now. After an error, changes may be missed until the next call.
    pub async fn watch(&self, watched: Watched, from: Option<String>) -> Result<String, K8sError> {
        let mut open = Open { changes: &self.changes, watched, goes_on: false };
        let ended = self.watch_changes(watched, from).await;
        open.goes_on = ended.is_ok();
        ended
    }

    /// Notes that changes are missed until the next watch begins.
    pub fn not_watched(&self, watched: Watched) {
        self.changes.end(watched);
    }

    async fn watch_changes(&self, watched: Watched, from: Option<String>) -> Result<String, K8sError> {
        let (kind, which) = (self.watched(watched), which(watched));
        let is_new = from.is_none();
        let from = match from {
            Some(version) => version,
            None => kind.collection_version(which).await?,
        };
        let begun = || {
            if is_new {
                self.changes.begin(watched);
            }
        };
        let changed = |object: &ObjectMeta| {
            if is_of_osd(watched, object) {
                self.changes.note_osd(osd_of(object));
            }
            for group in groups(watched, object) {
                self.changes.note_version(*group, object.resource_version.as_deref());
            }
        };
        kind.watch(which, from, begun, changed).await
    }

    fn watched(&self, watched: Watched) -> Kind<'_, DynamicObject> {
        let resource = match watched {
            Watched::Clusters => return self.ceph_clusters(),
            Watched::Deployments => erased::<Deployment>(),
            Watched::Pods => erased::<Pod>(),
            Watched::Jobs => erased::<Job>(),
            Watched::Maps => erased::<ConfigMap>(),
            Watched::RookPdb | Watched::OwnPdb => erased::<PodDisruptionBudget>(),
        };
        self.untyped(&resource)
    }
}

/// A watch that is open: however it ends, except at its time, changes are missed from then on.
struct Open<'a> {
    changes: &'a Changes,
    watched: Watched,
    goes_on: bool,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if !self.goes_on {
            self.changes.end(self.watched);
        }
    }
}

fn erased<K: Resource<DynamicType = ()>>() -> ApiResource {
    ApiResource::erase::<K>(&())
}

fn which(watched: Watched) -> Which<'static> {
    match watched {
        Watched::Clusters | Watched::Deployments | Watched::Pods | Watched::Maps => Which::default(),
        Watched::Jobs => Which { labels: Some(OF_AGENTS), ..Which::default() },
        // The right to watch is for these names.
        Watched::RookPdb => Which { name: Some(ROOK_PDB), ..Which::default() },
        Watched::OwnPdb => Which { name: Some(OWN_PDB), ..Which::default() },
    }
}

/// Returns the groups that a changed object is of; none if no partial observation reads it.
///
/// A run writes its status all the time, and the history at the end of each OSD, and never reads them. Other
/// programs keep locks in ConfigMaps, which they write every two seconds.
fn groups(watched: Watched, object: &ObjectMeta) -> &'static [Group] {
    let name = object.name.as_deref().unwrap_or_default();
    match watched {
        Watched::Maps if name == LEDGER => &[Group::Ledger],
        Watched::Maps if name == STATUS || is_history(name, object) => &[],
        Watched::Maps if name.starts_with(OURS) || ROOK_MAPS.contains(&name) => &[Group::OtherMaps],
        Watched::Pods if has(object, OSD_APP) => &[Group::OsdPods],
        Watched::Pods if has(object, OPERATOR_APP) => &[Group::OperatorPods],
        Watched::Pods if has(object, (NAME, OURS)) => &[Group::AgentPods],
        Watched::Maps | Watched::Pods => &[],
        Watched::Deployments if has(object, OSD_APP) => &[Group::OsdDeployments],
        // It may have been that of an OSD before it lost its label.
        Watched::Deployments => &[Group::OsdDeployments, Group::OtherDeployments],
        Watched::Clusters => &[Group::Clusters],
        Watched::Jobs => &[Group::Jobs],
        Watched::RookPdb => &[Group::RookPdb],
        Watched::OwnPdb => &[Group::OwnPdb],
    }
}

fn is_history(name: &str, object: &ObjectMeta) -> bool {
    name.starts_with(HISTORY) && has(object, (PART, Part::History.as_str()))
}

/// Returns whether the object is the Deployment or a pod of an OSD, or was before it lost one of its labels.
fn is_of_osd(watched: Watched, object: &ObjectMeta) -> bool {
    match watched {
        Watched::Deployments | Watched::Pods => has(object, OSD_APP) || osd_of(object).is_some(),
        Watched::Clusters | Watched::Jobs | Watched::Maps | Watched::RookPdb | Watched::OwnPdb => false,
    }
}

/// Returns the OSD by its label, as a list selects it.
fn osd_of(object: &ObjectMeta) -> Option<OsdId> {
    osd_of_label(object.labels.as_ref()?.get(OSD_ID)?)
}

fn has(object: &ObjectMeta, (key, value): (&str, &str)) -> bool {
    object.labels.as_ref().and_then(|labels| labels.get(key)).is_some_and(|found| found == value)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::k8s::wire::{on, play, refusal};

    const MAPS: &str = "/api/v1/namespaces/rook-ceph/configmaps";

    fn version() -> crate::k8s::wire::Exchange {
        let answer = json!({"metadata": {"resourceVersion": "7"}, "items": []});
        on(&format!("GET {MAPS}?&limit=1"), 200, answer)
    }

    fn watch(kind: &str, from: &str, event: Value) -> crate::k8s::wire::Exchange {
        let params = format!("watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion={from}");
        on(&format!("GET {kind}?&{params}"), 200, event)
    }

    fn modified(name: &str) -> Value {
        let metadata = json!({"name": name, "resourceVersion": "9"});
        json!({"type": "MODIFIED", "object": {"metadata": metadata}})
    }

    #[tokio::test]
    async fn watch_counts_changes_and_goes_on_from_the_last() {
        for (name, is_counted) in [("osd-migrate-control", true), (STATUS, false), ("lock-of-others", false)]
        {
            let script = vec![version(), watch(MAPS, "7", modified(name)), watch(MAPS, "9", modified(name))];
            let (begun, first, second) = play(script, async |k8s| {
                let mark = || k8s.changes().mark(&[Group::OtherMaps]);
                assert_eq!(mark(), None, "nothing is watched yet");
                let from = k8s.watch(Watched::Maps, None).await.unwrap();
                assert_eq!(from, "9");
                let first = mark();
                k8s.watch(Watched::Maps, Some(from)).await.unwrap();
                (k8s.changes().mark(&[Group::OsdPods]), first, mark())
            })
            .await;
            assert_eq!(begun, None, "another kind is not watched");
            assert_eq!(first != second, is_counted, "{name}");
        }
    }

    #[test]
    fn pods_and_maps_that_no_partial_observation_reads_do_not_count() {
        let object = |name: &str, label: (&str, &str)| ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some([(label.0.to_owned(), label.1.to_owned())].into()),
            ..ObjectMeta::default()
        };
        for (label, expected) in [
            (OSD_APP, [Group::OsdPods].as_slice()),
            (OPERATOR_APP, &[Group::OperatorPods]),
            ((NAME, OURS), &[Group::AgentPods]),
            (("app", "csi-rbdplugin"), &[]),
            (("app", "rook-ceph-osd-prepare"), &[]),
        ] {
            assert_eq!(groups(Watched::Pods, &object("a", label)), expected, "{label:?}");
        }
        let of_map = |name: &str| groups(Watched::Maps, &object(name, OSD_APP));
        for map in ROOK_MAPS.into_iter().chain(["osd-migrate-control", "osd-migrate-inspect-0-r-1"]) {
            assert_eq!(of_map(map), [Group::OtherMaps], "{map}");
        }
        assert_eq!(of_map(LEDGER), [Group::Ledger]);
        assert!([STATUS, "rook-config-override"].into_iter().all(|map| of_map(map).is_empty()));
        let of_history = (PART, Part::History.as_str());
        assert!(groups(Watched::Maps, &object("osd-migrate-history-0", of_history)).is_empty());
        assert_eq!(groups(Watched::Maps, &object("osd-migrate-control", of_history)), [Group::OtherMaps]);
        let of_deployment = |label| groups(Watched::Deployments, &object("a", label));
        assert_eq!(of_deployment(OSD_APP), [Group::OsdDeployments]);
        let both = [Group::OsdDeployments, Group::OtherDeployments];
        assert_eq!(of_deployment(("app", "rook-ceph-mon")), both);
    }

    #[tokio::test]
    async fn watch_notes_which_osds_changed() {
        const PODS: &str = "/api/v1/namespaces/rook-ceph/pods";
        let of_osd = |kind: &str, osd: &str| {
            let metadata = json!({"name": "a", "resourceVersion": "9",
                "labels": {"app": "rook-ceph-osd", "ceph-osd-id": osd}});
            watch(kind, "7", json!({"type": "DELETED", "object": {"metadata": metadata}}))
        };
        let begins = |kind: &str| {
            let answer = json!({"metadata": {"resourceVersion": "7"}, "items": []});
            on(&format!("GET {kind}?&limit=1"), 200, answer)
        };
        let deployments = "/apis/apps/v1/namespaces/rook-ceph/deployments";
        let script = vec![
            begins(PODS),
            of_osd(PODS, "3"),
            begins(deployments),
            of_osd(deployments, "4"),
            of_osd(PODS, "5"),
            of_osd(deployments, "6"),
        ];
        play(script, async |k8s| {
            for kind in [Watched::Pods, Watched::Deployments] {
                k8s.watch(kind, None).await.unwrap();
            }
            assert_eq!(k8s.changes().take_osds(), None, "earlier changes are not known");
            for kind in [Watched::Pods, Watched::Deployments] {
                k8s.watch(kind, Some("7".to_owned())).await.unwrap();
            }
            assert_eq!(k8s.changes().take_osds(), Some([OsdId(5), OsdId(6)].into()));
        })
        .await;
    }

    #[test]
    fn changes_of_osds_are_noted_by_their_label() {
        let object = |labels: &[(&str, &str)]| ObjectMeta {
            labels: Some(
                labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
            ),
            ..ObjectMeta::default()
        };
        for kind in [Watched::Deployments, Watched::Pods] {
            assert!(is_of_osd(kind, &object(&[OSD_APP])));
            assert!(is_of_osd(kind, &object(&[(OSD_ID, "3")])));
            assert!(!is_of_osd(kind, &object(&[("app", "rook-ceph-mon")])));
        }
        assert!(!is_of_osd(Watched::Maps, &object(&[OSD_APP])));
        for (label, osd) in [("3", Some(OsdId(3))), ("03", None), ("osd.3", None), ("x", None)] {
            assert_eq!(osd_of(&object(&[(OSD_ID, label)])), osd, "{label}");
        }
        assert_eq!(osd_of(&object(&[OSD_APP])), None);
    }

    #[tokio::test]
    async fn watch_that_fails_misses_changes_until_the_next_one() {
        let expired = json!({"type": "ERROR", "object": refusal(410, "Expired")});
        let script = vec![version(), watch(MAPS, "7", expired), version(), watch(MAPS, "7", modified("a"))];
        play(script, async |k8s| {
            let mark = || k8s.changes().mark(&[Group::OtherMaps]);
            assert!(k8s.watch(Watched::Maps, None).await.is_err());
            assert_eq!(mark(), None);
            k8s.watch(Watched::Maps, None).await.unwrap();
            assert!(mark().is_some());
        })
        .await;
    }

    #[tokio::test]
    async fn watch_of_one_object_names_it() {
        let pdbs = "/apis/policy/v1/namespaces/rook-ceph/poddisruptionbudgets";
        let forbidden = on(
            &format!("GET {pdbs}?&fieldSelector=metadata.name%3Drook-ceph-osd&limit=1"),
            403,
            refusal(403, "Forbidden"),
        );
        let refused = play(vec![forbidden], async |k8s| k8s.watch(Watched::RookPdb, None).await).await;
        assert!(matches!(refused, Err(K8sError::Forbidden { .. })), "{refused:?}");
    }
}
