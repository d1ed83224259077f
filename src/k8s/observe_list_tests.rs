//! Which Deployments and pods a complete observation lists.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use chrono::{DateTime, TimeDelta, Utc};
use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::domain::observation::{Ambiguity, Kube};
use crate::domain::osd::OsdId;
use crate::k8s::changes::{Group, Watched};
use crate::k8s::wire::{list, refusal};
use crate::k8s::{K8s, Lately, Place};

/// Objects of an API server, and the selectors of the requests for OSDs.
#[derive(Default)]
struct Objects {
    deployments: Vec<Value>,
    nodes: Vec<Value>,
    /// Selectors of requests for Deployments of OSDs.
    asked: Vec<String>,
    /// Last parts of the paths of all requests.
    requested: Vec<String>,
    claims: Vec<Value>,
    /// Paths of the requests for PersistentVolumes.
    of_volumes: Vec<String>,
    /// Namespaces in which the operator was looked for.
    of_operator: Vec<String>,
    fails: bool,
}

impl Objects {
    fn answer(&mut self, uri: &str) -> (u16, Value) {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let selector = query.split('&').find_map(|pair| pair.strip_prefix("labelSelector=")).unwrap_or("");
        self.requested.extend(path.rsplit('/').next().map(str::to_owned));
        if self.fails {
            return (403, refusal(403, "Forbidden"));
        }
        if let Some((_, volume)) = path.split_once("/persistentvolumes") {
            self.of_volumes.push(volume.to_owned());
            let uid = format!("uid-of{volume}");
            let named = json!({"metadata": {"name": volume.trim_start_matches('/'), "uid": uid}});
            return (200, if volume.is_empty() { list(&[]) } else { named });
        }
        let items = match path.rsplit('/').next().unwrap() {
            "cephclusters" => vec![json!({"apiVersion": "ceph.rook.io/v1", "kind": "CephCluster",
                "metadata": {"name": "c", "uid": "u", "resourceVersion": "8"}, "spec": {"dataDirHostPath": "/var/lib/rook"}})],
            "nodes" => self.nodes.clone(),
            "pods" if selector == "app%3Drook-ceph-operator" => {
                self.of_operator.extend(path.split('/').nth(4).map(str::to_owned));
                Vec::new()
            }
            "deployments" if selector.starts_with("app%3Drook-ceph-osd") => self.selected(selector),
            "deployments" | "pods" | "jobs" | "configmaps" => Vec::new(),
            "persistentvolumeclaims" => self.claims.clone(),
            _ => return (404, refusal(404, "NotFound")),
        };
        (200, list(&items))
    }

    fn selected(&mut self, selector: &str) -> Vec<Value> {
        let named = selector.strip_prefix("app%3Drook-ceph-osd%2Cceph-osd-id+in+%28");
        let named = named.map(|ids| ids.trim_end_matches("%29").replace("%2C", ","));
        self.asked.push(named.clone().unwrap_or_else(|| "all".to_owned()));
        let is_named = |one: &&Value| {
            let id = one["metadata"]["labels"]["ceph-osd-id"].as_str();
            named.as_ref().is_none_or(|ids| ids.split(',').any(|named| Some(named) == id))
        };
        self.deployments.iter().filter(is_named).cloned().collect()
    }
}

/// A run that observes, and the API server.
struct Run {
    k8s: K8s,
    objects: Arc<Mutex<Objects>>,
    lately: Lately,
    now: DateTime<Utc>,
}

impl Run {
    /// Returns a run in a cluster of three OSDs, in which changes of OSDs are watched.
    fn watching() -> Self {
        let deployments = ["1", "2", "3"].map(|osd| deployment(osd, osd)).to_vec();
        let objects =
            Arc::new(Mutex::new(Objects { deployments, nodes: vec![node("n1")], ..Objects::default() }));
        let (service, mut handle) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
        let k8s = K8s::with_client(Client::new(service, "rook-ceph"), Place::new("rook-ceph"));
        let shared = Arc::clone(&objects);
        tokio::spawn(async move {
            while let Some((request, respond)) = handle.next_request().await {
                let (status, answer) = shared.lock().unwrap().answer(&request.uri().to_string());
                let body = Body::from(serde_json::to_vec(&answer).unwrap());
                respond.send_response(Response::builder().status(status).body(body).unwrap());
            }
        });
        for kind in Watched::ALL {
            k8s.changes().begin(kind);
        }
        Self { k8s, objects, lately: Lately::default(), now: "2026-11-29T12:00:00Z".parse().unwrap() }
    }

    fn change(&self, how: impl FnOnce(&mut Objects)) {
        how(&mut self.objects.lock().unwrap());
    }

    /// Observes while the OSD is in progress, and returns what was asked for.
    async fn observe(&mut self, in_progress: u32) -> (Kube, Vec<String>) {
        let in_progress = BTreeSet::from([OsdId(in_progress)]);
        let kube = self.k8s.observe_all(&in_progress, &mut self.lately, self.now).await.unwrap();
        let asked = std::mem::take(&mut self.objects.lock().unwrap().asked);
        (kube, asked)
    }

    async fn asked(&mut self, in_progress: u32) -> Vec<String> {
        self.observe(in_progress).await.1
    }

    /// Observes partly while osd.1 is in progress, and returns all that was requested.
    async fn requested_partly(&mut self, kube: &Kube) -> Vec<String> {
        self.change(|objects| objects.requested.clear());
        let in_progress = BTreeSet::from([OsdId(1)]);
        self.k8s.observe_partly(kube.clone(), &in_progress, &mut self.lately).await.unwrap();
        let mut requested = std::mem::take(&mut self.objects.lock().unwrap().requested);
        requested.sort();
        requested
    }
}

fn deployment(osd: &str, uid: &str) -> Value {
    json!({"metadata": {"name": format!("rook-ceph-osd-{osd}"), "uid": uid, "labels": {"ceph-osd-id": osd}},
        "spec": {"template": {"spec": {"containers": [{"name": "osd", "env": [
            {"name": "ROOK_OSD_UUID", "value": format!("00000000-0000-4000-8000-00000000000{osd}")}]}],
            "nodeSelector": {"kubernetes.io/hostname": "host"}}}}})
}

fn node(name: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"kubernetes.io/hostname": "host"}}})
}

#[tokio::test]
async fn osds_in_progress_and_changed_ones_are_listed_again() {
    let mut run = Run::watching();
    assert_eq!(run.asked(1).await, ["all"]);
    assert_eq!(run.asked(1).await, ["1"]);
    run.change(|objects| objects.deployments = ["1", "2"].map(|osd| deployment(osd, "new")).to_vec());
    run.k8s.changes().note_osd(Some(OsdId(3)));
    let (kube, asked) = run.observe(1).await;
    assert_eq!(asked, ["1,3"]);
    let uids: Vec<_> = kube.daemons.iter().map(|(osd, daemon)| (osd.0, daemon.uid.as_str())).collect();
    assert_eq!(uids, [(1, "new"), (2, "2")], "osd.3 is gone, and no change of osd.2 was reported");
    assert_eq!(run.asked(2).await, ["2"]);
}

#[tokio::test]
async fn operator_is_where_the_list_of_all_says() {
    let by_operator = |osd: &str, namespace: &str| {
        let mut of = deployment(osd, osd);
        of["metadata"]["labels"]["rook.io/operator-namespace"] = json!(namespace);
        of
    };
    let mut run = Run::watching();
    run.change(|objects| {
        objects.deployments = vec![by_operator("1", "new"), by_operator("2", "former")];
    });
    for in_progress in [1, 2, 7] {
        run.asked(in_progress).await;
        let of_operator = std::mem::take(&mut run.objects.lock().unwrap().of_operator);
        assert_eq!(of_operator, ["new"], "osd.{in_progress}");
    }
}

#[tokio::test]
async fn all_osds_are_listed_after_a_change_of_no_osd_that_is_known() {
    let mut run = Run::watching();
    run.asked(1).await;
    run.k8s.changes().note_osd(None);
    assert_eq!(run.asked(1).await, ["all"]);
    assert_eq!(run.asked(1).await, ["1"]);
    for osd in 0..200 {
        run.k8s.changes().note_osd(Some(OsdId(osd)));
    }
    assert_eq!(run.asked(1).await, ["all"], "the selector of so many is too long");
}

#[tokio::test]
async fn all_osds_are_listed_while_a_watch_is_missing() {
    let mut run = Run::watching();
    run.asked(1).await;
    run.k8s.changes().end(Watched::Pods);
    assert_eq!(run.asked(1).await, ["all"]);
    assert_eq!(run.asked(1).await, ["all"]);
    run.k8s.changes().begin(Watched::Pods);
    assert_eq!(run.asked(1).await, ["all"], "a change may have been missed");
    assert_eq!(run.asked(1).await, ["1"]);
}

#[tokio::test]
async fn all_osds_are_listed_again_after_ten_minutes() {
    let mut run = Run::watching();
    run.asked(1).await;
    run.now += TimeDelta::seconds(599);
    assert_eq!(run.asked(1).await, ["1"]);
    run.now += TimeDelta::seconds(1);
    assert_eq!(run.asked(1).await, ["all"], "the list is as old as when all were listed");
    run.now -= TimeDelta::seconds(1);
    assert_eq!(run.asked(1).await, ["all"], "the clock was set back");
}

#[tokio::test]
async fn ambiguous_osds_are_listed_each_time() {
    let mut run = Run::watching();
    run.change(|objects| objects.deployments.push(deployment("3", "debug")));
    assert_eq!(run.asked(1).await, ["all"]);
    let (kube, asked) = run.observe(1).await;
    assert_eq!((kube.ambiguities.len(), asked), (1, vec!["1,3".to_owned()]));
    run.change(|objects| objects.deployments.truncate(3));
    let (kube, asked) = run.observe(1).await;
    assert_eq!((kube.ambiguities.len(), asked), (0, vec!["1,3".to_owned()]), "the second one is gone");
    assert_eq!(run.asked(1).await, ["1"]);
}

#[tokio::test]
async fn all_osds_are_listed_each_time_if_one_is_not_labelled() {
    let by_name = json!({"metadata": {"name": "rook-ceph-osd-7", "uid": "7"}});
    let unknown = json!({"metadata": {"name": "by-hand", "uid": "4"}});
    for unusual in [by_name, unknown] {
        let mut run = Run::watching();
        run.change(|objects| objects.deployments.push(unusual));
        assert_eq!(run.asked(1).await, ["all"]);
        assert_eq!(run.asked(1).await, ["all"]);
    }
}

#[tokio::test]
async fn all_osds_are_listed_if_a_hostname_leads_to_another_node() {
    let mut run = Run::watching();
    run.asked(1).await;
    run.change(|objects| objects.nodes = vec![node("n2")]);
    let (kube, asked) = run.observe(1).await;
    assert_eq!(asked, ["1", "all"]);
    assert!(kube.daemons.values().all(|daemon| daemon.node.as_ref().is_some_and(|node| node.0 == "n2")));
}

fn on_pvc(osd: &str, pvc: &str) -> Value {
    let mut on = deployment(osd, osd);
    on["metadata"]["labels"]["ceph.rook.io/pvc"] = json!(pvc);
    on
}

#[tokio::test]
async fn volumes_of_osds_in_progress_are_read_again_and_no_other_ones() {
    let claim = |pvc: &str| json!({"metadata": {"name": pvc}, "spec": {"volumeName": format!("pv-{pvc}")}});
    let mut run = Run::watching();
    run.change(|objects| {
        objects.deployments = vec![on_pvc("1", "a"), on_pvc("2", "b")];
        objects.claims = ["a", "b", "new"].map(claim).to_vec();
    });
    let mut read = async |in_progress: u32| {
        let (kube, _) = run.observe(in_progress).await;
        let uids = kube.pvcs.values().filter_map(|pvc| pvc.volume.as_ref()?.uid.clone());
        assert_eq!(uids.collect::<Vec<_>>(), ["uid-of/pv-a", "uid-of/pv-b", "uid-of/pv-new"]);
        let mut read = std::mem::take(&mut run.objects.lock().unwrap().of_volumes);
        read.sort();
        read
    };
    assert_eq!(read(1).await, ["/pv-a", "/pv-b", "/pv-new"]);
    assert_eq!(read(1).await, ["/pv-a", "/pv-new"], "no Deployment uses the last one");
    assert_eq!(read(2).await, ["/pv-b", "/pv-new"]);
}

#[tokio::test]
async fn pvc_of_a_kept_and_a_changed_osd_is_ambiguous() {
    let on = |osd: &str| on_pvc(osd, "set1-data-0");
    let mut run = Run::watching();
    run.change(|objects| objects.deployments = vec![deployment("1", "1"), on("2")]);
    run.asked(1).await;
    run.change(|objects| objects.deployments = vec![on("1"), on("2")]);
    let (kube, asked) = run.observe(1).await;
    let what = "osd.1 and osd.2 have one PVC: set1-data-0".to_owned();
    assert_eq!(kube.ambiguities, [Ambiguity::of([OsdId(1), OsdId(2)], what)]);
    assert_eq!(asked, ["1"]);
    assert_eq!(run.asked(1).await, ["1,2"]);
}

#[tokio::test]
async fn observation_that_fails_keeps_the_list_and_what_changed() {
    let mut run = Run::watching();
    run.asked(1).await;
    run.k8s.changes().note_osd(Some(OsdId(3)));
    run.change(|objects| objects.fails = true);
    let failed = run.k8s.observe_all(&[OsdId(1)].into(), &mut run.lately, run.now).await;
    assert!(failed.is_err());
    run.change(|objects| objects.fails = false);
    run.change(|objects| objects.asked.clear());
    assert_eq!(run.asked(1).await, ["1,3"]);
    assert_eq!(run.asked(1).await, ["1"]);
}

#[tokio::test]
async fn deployments_and_pods_in_progress_are_read_apart() {
    let mut run = Run::watching();
    let (kube, _) = run.observe(1).await;
    let first = run.requested_partly(&kube).await;
    assert_eq!(first, ["deployments", "pods"], "all OSDs were listed, and everything else was read");
    assert_eq!(run.requested_partly(&kube).await, [""; 0]);
    for (group, kind) in [(Group::OsdPods, "pods"), (Group::OsdDeployments, "deployments")] {
        run.k8s.changes().note(group);
        assert_eq!(run.requested_partly(&kube).await, [kind]);
        assert_eq!(run.requested_partly(&kube).await, [""; 0]);
    }
    run.k8s.changes().end(Watched::Pods);
    let requested = run.requested_partly(&kube).await;
    // Deployment and pods of the operator, and pods of agents, are read as well.
    assert_eq!(requested, ["deployments", "pods", "pods", "pods"], "no Deployment of an OSD");
}

#[tokio::test]
async fn complete_observation_is_twelve_requests() {
    let mut run = Run::watching();
    for in_progress in [1, 1, 7] {
        run.observe(in_progress).await;
        let mut requested = std::mem::take(&mut run.objects.lock().unwrap().requested);
        requested.sort();
        let expected = [
            "cephclusters",
            "configmaps",
            "deployments",
            "deployments",
            "jobs",
            "jobs",
            "nodes",
            "osd-migrate-drains",
            "pods",
            "pods",
            "pods",
            "rook-ceph-osd",
        ];
        assert_eq!(requested, expected, "osd.{in_progress}");
    }
}

#[tokio::test]
async fn partial_observation_has_osds_in_progress_from_a_complete_one() {
    let mut run = Run::watching();
    run.asked(1).await;
    let (kube, asked) = run.observe(1).await;
    assert_eq!((asked, run.requested_partly(&kube).await), (vec!["1".to_owned()], Vec::new()));
    run.k8s.changes().note(Group::OsdPods);
    assert_eq!(run.requested_partly(&kube).await, ["pods"]);
    run.lately.list = run.lately.before_act();
    assert_eq!(run.requested_partly(&kube).await, ["deployments", "pods"], "an act has changed them");
    // Changed OSDs were read with it: what it read of osd.1 is not kept apart.
    run.k8s.changes().note_osd(Some(OsdId(2)));
    let (kube, asked) = run.observe(1).await;
    assert_eq!(asked, ["1", "1,2"], "the partial observation, and the complete one");
    assert_eq!(run.requested_partly(&kube).await, ["deployments", "pods"]);
}
