//! PersistentVolumeClaims of OSDs. Pure except for the reads.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};

use crate::domain::device_set::{METADATA, WAL};
use crate::domain::expect;
use crate::domain::ledger::RecordedPvc;
use crate::domain::observation::{BoundVolume, Daemon, Kube, OnPvcs, Pvc, Rotation};
use crate::domain::osd::OsdId;
use crate::domain::osd::pvc::PerPvc;
use crate::domain::policy::Declaration;
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::K8sError;
use crate::k8s::local_volumes;
use crate::k8s::osd::daemon_pvcs::{DEVICE_SET, SET_INDEX, SET_PVC};

/// Access mode of a PVC that one pod of the whole cluster may use.
const ONE_POD: &str = "ReadWriteOncePod";

/// Number of PersistentVolumes up to which each is read by its name.
///
/// A list has those of the whole cluster: with tens of thousands of volumes of other clients, hundreds of
/// pages.
const FEW: usize = 100;

/// Number of them that are read at a time.
const AT_A_TIME: usize = 10;

/// PersistentVolumes by their names.
pub(super) type Volumes = BTreeMap<String, BoundVolume>;

/// PVCs with their PersistentVolumes, and the OSDs on PVCs whose keys are rotated.
#[derive(Default)]
pub(super) struct SeenPvcs {
    /// PVCs of the namespace, by their names.
    pub(super) pvcs: BTreeMap<String, Pvc>,
    /// PersistentVolumes that these are bound to.
    pub(super) volumes: Volumes,
    /// OSDs whose encryption keys Rook is rotating.
    pub(super) rotating: BTreeSet<OsdId>,
    /// CronJobs that rotate the keys of OSDs.
    pub(super) rotations: BTreeMap<OsdId, Rotation>,
}

impl K8s {
    /// Observes what concerns OSDs on PVCs, if OSDs are on PVCs or are declared to be.
    ///
    /// `kept`: PersistentVolumes that an earlier observation has read. Those of OSDs that are not in progress
    /// are not read again.
    pub(super) async fn on_pvcs(
        &self,
        kube: &Kube,
        in_progress: &BTreeSet<OsdId>,
        kept: &Volumes,
    ) -> Result<SeenPvcs, K8sError> {
        let is_on_one = kube.daemons.values().any(|daemon| daemon.on_pvcs.is_some());
        if !is_on_one && kube.declaration.storage.sets.is_empty() {
            return Ok(SeenPvcs::default());
        }
        let is_encrypted = |daemon: &Daemon| daemon.on_pvcs.is_some() && daemon.opens_encryption;
        let has_keys = kube.daemons.values().any(is_encrypted);
        let rotating = async { if has_keys { self.rotations_running().await } else { Ok(BTreeSet::new()) } };
        let gets_part = kube.daemons.values().any(|daemon| may_get_part(daemon, &kube.declaration));
        let rotations = async {
            match if gets_part { self.rotations().await } else { Ok(BTreeMap::new()) } {
                // A Role of an earlier version. OSDs that get no other device need not wait for it.
                Err(K8sError::Forbidden { .. } | K8sError::UserForbidden { .. }) => Ok(unknown(kube)),
                rotations => rotations,
            }
        };
        let claims = self.kind::<PersistentVolumeClaim>();
        let (pvcs, rotating, rotations) = tokio::try_join!(claims.list("", Some), rotating, rotations)?;
        let of_others = pvcs_of_others(kube, in_progress);
        let is_kept = |pvc: &PersistentVolumeClaim| {
            pvc.metadata.name.as_deref().is_some_and(|name| of_others.contains(name))
        };
        let (mut volumes, mut to_read) = (Volumes::new(), BTreeSet::new());
        for (pvc, name) in pvcs.iter().filter_map(|pvc| Some((pvc, volume_of(pvc)?))) {
            match kept.get(name).filter(|_| is_kept(pvc)) {
                Some(volume) => drop(volumes.insert(name.to_owned(), volume.clone())),
                None => drop(to_read.insert(name.to_owned())),
            }
        }
        volumes.extend(self.volumes(&to_read).await?);
        let pvcs = pvcs.iter().map(|pvc| named(pvc, &volumes)).collect();
        Ok(SeenPvcs { pvcs, volumes, rotating, rotations })
    }

    /// Reads the PersistentVolumes of these names.
    async fn volumes(&self, names: &BTreeSet<String>) -> Result<Volumes, K8sError> {
        let all = self.cluster_kind::<PersistentVolume>();
        let is_named = |volume: &BoundVolume| names.contains(&volume.name);
        let found = if names.len() > FEW {
            all.list("", |volume| Some(bound(&volume)).filter(is_named)).await?
        } else {
            let each = stream::iter(names).map(|name| all.get_opt(name)).buffered(AT_A_TIME);
            let found: Vec<_> = each.try_collect().await?;
            found.iter().flatten().map(bound).collect()
        };
        Ok(found.into_iter().map(|volume| (volume.name.clone(), volume)).collect())
    }

    /// Reads the PVCs of an OSD right before it is started, and checks that they are the recorded ones.
    pub async fn expect_pvcs(&self, recorded: &PerPvc<RecordedPvc>) -> Result<(), K8sError> {
        for (_, pvc) in recorded.iter() {
            if !expect::to_start_on(pvc, self.pvc(&pvc.name).await?.as_ref()) {
                let found = format!(
                    "it is missing, was recreated, or is no longer on PersistentVolume {}",
                    pvc.volume
                );
                return Err(K8sError::Unexpected {
                    what: format!("persistentvolumeclaim/{}", pvc.name),
                    found,
                });
            }
        }
        Ok(())
    }

    /// Reads one PVC with its PersistentVolume.
    async fn pvc(&self, name: &str) -> Result<Option<Pvc>, K8sError> {
        let Some(pvc) = self.kind::<PersistentVolumeClaim>().get_opt(name).await? else { return Ok(None) };
        let volume = match volume_of(&pvc) {
            Some(volume) => self.cluster_kind::<PersistentVolume>().get_opt(volume).await?,
            None => None,
        };
        let volumes = volume.map(|volume| bound(&volume)).map(|bound| (bound.name.clone(), bound));
        Ok(Some(named(&pvc, &volumes.into_iter().collect()).1))
    }
}

/// Returns that a rotation may leave out each device that an encrypted OSD gets.
fn unknown(kube: &Kube) -> BTreeMap<OsdId, Rotation> {
    let encrypted = kube.daemons.iter().filter(|(_, daemon)| daemon.opens_encryption);
    encrypted.map(|(osd, _)| (*osd, Rotation { db: false, wal: false })).collect()
}

/// Returns whether an encrypted OSD lacks a database or a log that some device set declares.
fn may_get_part(daemon: &Daemon, declared: &Declaration) -> bool {
    let has_template = |template: &str| declared.storage.sets.iter().any(|set| set.has_template(template));
    let lacks_part =
        |on: &OnPvcs| (on.db.is_none() && has_template(METADATA)) || (on.wal.is_none() && has_template(WAL));
    daemon.opens_encryption && daemon.on_pvcs.as_ref().is_some_and(lacks_part)
}

/// Returns the PVCs of OSDs that are not in progress.
fn pvcs_of_others<'a>(kube: &'a Kube, in_progress: &BTreeSet<OsdId>) -> BTreeSet<&'a str> {
    let others = kube.daemons.iter().filter(|(osd, _)| !in_progress.contains(osd));
    others.filter_map(|(_, daemon)| daemon.on_pvcs.as_ref()).flat_map(OnPvcs::names).collect()
}

fn bound(volume: &PersistentVolume) -> BoundVolume {
    let meta = &volume.metadata;
    BoundVolume {
        name: meta.name.clone().unwrap_or_default(),
        uid: meta.uid.clone(),
        nodes: local_volumes::nodes_of(volume),
    }
}

/// Returns the name of the PersistentVolume that a PVC is bound to.
fn volume_of(pvc: &PersistentVolumeClaim) -> Option<&str> {
    pvc.spec.as_ref()?.volume_name.as_deref().filter(|name| !name.is_empty())
}

/// Returns the name of a PVC, and the PVC. `volumes`: the PersistentVolumes by their names.
fn named(pvc: &PersistentVolumeClaim, volumes: &BTreeMap<String, BoundVolume>) -> (String, Pvc) {
    let (spec, meta) = (pvc.spec.as_ref(), &pvc.metadata);
    let modes = spec.and_then(|spec| spec.access_modes.as_deref()).unwrap_or_default();
    let label = |key: &str| meta.labels.as_ref()?.get(key).cloned();
    let known =
        |name: String| volumes.get(&name).cloned().unwrap_or(BoundVolume { name, uid: None, nodes: None });
    let found = Pvc {
        uid: meta.uid.clone().unwrap_or_default(),
        volume: volume_of(pvc).map(|name| known(name.to_owned())),
        set: label(DEVICE_SET),
        index: label(SET_INDEX),
        template: label(SET_PVC).and_then(|id| template(&id, &label(DEVICE_SET)?, &label(SET_INDEX)?)),
        phase: pvc.status.as_ref().and_then(|status| status.phase.clone()).unwrap_or_default(),
        is_deleted: meta.deletion_timestamp.is_some(),
        is_block: spec.and_then(|spec| spec.volume_mode.as_deref()) == Some("Block"),
        is_for_one_pod: !modes.is_empty() && modes.iter().all(|mode| mode == ONE_POD),
    };
    (meta.name.clone().unwrap_or_default(), found)
}

/// Returns the template between set and index in an id of Rook, in which the set has dashes instead of dots
/// (`deviceSetPVCID`, deviceSet.go, v1.20.6).
fn template(id: &str, set: &str, index: &str) -> Option<String> {
    let rest = id.strip_prefix(&set.replace('.', "-"))?.strip_prefix('-')?;
    rest.strip_suffix(index)?.strip_suffix('-').map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(pvc: Value) -> (String, Pvc) {
        let on_h1 = json!([{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["h1"]}]}]);
        let volume = json!({"metadata": {"name": "pv1", "uid": "uid-of-pv1"},
            "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": on_h1}}}});
        let volumes = [("pv1".to_owned(), bound(&serde_json::from_value(volume).unwrap()))].into();
        named(&serde_json::from_value(pvc).unwrap(), &volumes)
    }

    #[test]
    fn pvc_is_read_with_set_phase_and_modes() {
        let mut pvc = json!({
            "metadata": {"name": "set1-data-0abc", "uid": "u", "labels": {"ceph.rook.io/DeviceSet": "set1",
                "ceph.rook.io/setIndex": "0", "ceph.rook.io/DeviceSetPVCId": "set1-data-0"}},
            "spec": {"volumeMode": "Block", "accessModes": ["ReadWriteOnce"], "volumeName": "pv1"},
            "status": {"phase": "Bound"},
        });
        let bound = Pvc {
            uid: "u".to_owned(),
            volume: Some(BoundVolume {
                name: "pv1".to_owned(),
                uid: Some("uid-of-pv1".to_owned()),
                nodes: Some(["h1".to_owned()].into()),
            }),
            set: Some("set1".to_owned()),
            index: Some("0".to_owned()),
            template: Some("data".to_owned()),
            phase: "Bound".to_owned(),
            is_deleted: false,
            is_block: true,
            is_for_one_pod: false,
        };
        assert_eq!(read(pvc.clone()), ("set1-data-0abc".to_owned(), bound.clone()));
        pvc["spec"]["accessModes"] = json!(["ReadWriteOncePod"]);
        pvc["metadata"]["deletionTimestamp"] = json!("2026-08-21T10:00:00Z");
        assert_eq!(read(pvc).1, Pvc { is_deleted: true, is_for_one_pod: true, ..bound });
    }

    #[test]
    fn captured_pvcs_are_bound_block_volumes_of_their_sets() {
        let text = include_str!("../../tests/suite/fixtures/pvc/16.2.15/claims.json");
        let captured: Vec<Value> = serde_json::from_str(text).unwrap();
        assert!(captured.len() > 3);
        for (name, pvc) in captured.into_iter().map(read) {
            assert!(
                !pvc.uid.is_empty() && pvc.volume.is_some_and(|volume| volume.name.starts_with("lab-pv-"))
            );
            let (set, index) = (pvc.set.unwrap(), pvc.index.unwrap());
            let template = pvc.template.unwrap();
            assert!(name.starts_with(&format!("{set}-{template}-{index}")), "{name}");
            assert!(["data", "metadata"].contains(&template.as_str()), "{name}");
            assert!(pvc.is_block && !pvc.is_for_one_pod && !pvc.is_deleted, "{name}");
        }
    }

    #[test]
    fn pvcs_of_csi_drivers_are_bound_and_may_be_on_any_node() {
        let pvcs: Vec<Value> =
            serde_json::from_str(include_str!("../../tests/suite/fixtures/pvc/csi/claims.json")).unwrap();
        let volumes: Vec<PersistentVolume> =
            serde_json::from_str(include_str!("../../tests/suite/fixtures/pvc/csi/volumes.json")).unwrap();
        let volumes = volumes.iter().map(|volume| (volume.metadata.name.clone().unwrap(), bound(volume)));
        let volumes: BTreeMap<_, _> = volumes.collect();
        assert_eq!((pvcs.len(), volumes.len()), (3, 3));
        for (index, pvc) in pvcs.into_iter().enumerate() {
            let (name, pvc) = named(&serde_json::from_value(pvc).unwrap(), &volumes);
            assert_eq!((pvc.set.as_deref(), pvc.index), (Some("set1"), Some(index.to_string())), "{name}");
            assert!(pvc.phase == "Bound" && pvc.is_block && !pvc.is_for_one_pod && !pvc.is_deleted);
            let volume = pvc.volume.unwrap();
            assert_eq!(volume.name, format!("pvc-{}", pvc.uid), "{name}");
            assert!(volume.uid.is_some_and(|uid| uid != pvc.uid), "{name}");
            // A zone is no node, and so is a label of the driver.
            assert_eq!(volume.nodes, None, "{name}");
        }
    }

    #[test]
    fn template_of_a_pvc_is_between_set_and_index() {
        assert_eq!(template("my-set-metadata-12", "my-set", "12").as_deref(), Some("metadata"));
        assert_eq!(template("set-a-data-0", "set.a", "0").as_deref(), Some("data"));
        assert_eq!(template("set1-0", "set1", "0"), None, "Rook 1.3 and older");
        assert_eq!(template("other-data-0", "set1", "0"), None);
    }

    #[test]
    fn pvc_without_a_volume_mode_has_a_file_system() {
        let (_, pvc) = read(json!({"metadata": {"name": "a"}, "spec": {}}));
        assert!(!pvc.is_block && !pvc.is_for_one_pod && pvc.set.is_none() && pvc.phase.is_empty());
    }
}
