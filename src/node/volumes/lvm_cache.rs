//! LVM's view of a node, asked once in a search.

use std::collections::BTreeSet;
use std::path::PathBuf;

use tokio::sync::OnceCell;

use crate::node::disk::devices::Disk;
use crate::node::disk::table;
use crate::node::error::NodeError;
use crate::node::volumes::lvm::{self, Group, Lv, Segment};

/// All volumes and segments of a node.
type Found = (Vec<Lv>, Vec<Segment>);

/// All volumes and segments, or why LVM does not name them; LVM is asked on the first use.
///
/// A device that hangs LVM would cost its limit for each disk of the node otherwise.
#[derive(Debug, Default)]
pub(crate) struct LvmCache(OnceCell<Result<Found, String>>);

impl LvmCache {
    pub(super) async fn get(&self) -> Result<&Found, NodeError> {
        self.get_by(|| async { tokio::try_join!(lvm::volumes(), lvm::segments()) }).await
    }

    async fn get_by<F>(&self, ask: impl FnOnce() -> F) -> Result<&Found, NodeError>
    where
        F: Future<Output = Result<Found, NodeError>>,
    {
        let answer = self.0.get_or_init(async || ask().await.map_err(|error| error.to_string())).await;
        answer.as_ref().map_err(|why| NodeError::NotDone(why.clone()))
    }
}

/// A physical volume and its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Physical {
    pub(super) device: PathBuf,
    pub(super) group: Group,
    pub(super) group_uuid: String,
    /// uuids of the volumes that lie on it.
    pub(super) volumes: BTreeSet<String>,
    /// uuids of the group's volumes on any disk.
    of_group: BTreeSet<String>,
    /// Physical volumes of the group.
    disks: BTreeSet<String>,
    /// Volumes that lie on this physical volume and on other ones too.
    spread: BTreeSet<String>,
}

impl Physical {
    /// Returns the physical volume with this uuid, or none if LVM does not know it or it is in no group.
    pub(super) fn of(uuid: &str, segments: &[Segment]) -> Option<Self> {
        let first =
            segments.iter().find(|segment| segment.physical == uuid && !segment.group.name.is_empty())?;
        let of_group = segments.iter().filter(|segment| segment.group_uuid == first.group_uuid);
        let volumes = |on: &dyn Fn(&Segment) -> bool| -> BTreeSet<String> {
            of_group
                .clone()
                .filter(|segment| on(segment))
                .filter_map(|segment| segment.volume.clone())
                .collect()
        };
        let here = volumes(&|segment| segment.physical == uuid);
        let elsewhere = volumes(&|segment| segment.physical != uuid);
        Some(Self {
            device: first.device.clone(),
            group: first.group.clone(),
            group_uuid: first.group_uuid.clone(),
            of_group: volumes(&|_| true),
            disks: of_group.clone().map(|segment| segment.physical.clone()).collect(),
            spread: here.intersection(&elsewhere).cloned().collect(),
            volumes: here,
        })
    }

    /// Returns whether the volume is the only one in the group, and the group is on this disk alone: nothing
    /// else is lost with the disk.
    pub(super) fn holds_only(&self, volume: &str) -> bool {
        let only = |set: &BTreeSet<String>, one: &str| set.len() == 1 && set.contains(one);
        only(&self.of_group, volume) && self.disks.len() == 1
    }

    /// Returns whether the volume lies on other disks too.
    pub(super) fn is_spread(&self, volume: &str) -> bool {
        self.spread.contains(volume)
    }
}

/// Returns the physical volume that a disk is, or none if the disk is none or in no group.
pub(super) async fn physical_on(disk: &Disk, segments: &[Segment]) -> Result<Option<Physical>, NodeError> {
    let signature = table::signature(&disk.node).await?;
    Ok(signature.physical_volume().and_then(|uuid| Physical::of(uuid, segments)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(physical: &str, group: &str, volume: Option<&str>) -> Segment {
        Segment {
            device: format!("/dev/{physical}").into(),
            physical: physical.into(),
            group: Group { name: group.to_lowercase(), tags: Vec::new() },
            group_uuid: group.into(),
            volume: volume.map(str::to_owned),
        }
    }

    #[tokio::test]
    async fn lvm_is_asked_once_in_a_search_even_if_it_fails() {
        let (cache, asked) = (LvmCache::default(), std::cell::Cell::new(0));
        for _ in 0..2 {
            let ask = || async {
                asked.set(asked.get() + 1);
                Err(NodeError::NotDone("lvs: no answer within 120 s".to_owned()))
            };
            let error = cache.get_by(ask).await.unwrap_err().to_string();
            assert!(error.contains("no answer within 120 s"), "{error}");
        }
        assert_eq!(asked.get(), 1);
    }

    #[test]
    fn disk_holds_only_one_lv_if_its_group_has_no_other_lv_or_disk() {
        let alone = [segment("a", "G", Some("v")), segment("a", "G", None), segment("z", "Z", Some("w"))];
        assert!(Physical::of("a", &alone).unwrap().holds_only("v"));
        let two = [segment("a", "G", Some("v")), segment("a", "G", Some("w"))];
        assert!(!Physical::of("a", &two).unwrap().holds_only("v"));
        let group_of_two = [segment("a", "G", Some("v")), segment("b", "G", None)];
        assert!(!Physical::of("a", &group_of_two).unwrap().holds_only("v"));
        let neighbour_elsewhere = [segment("a", "G", Some("v")), segment("b", "G", Some("w"))];
        let disk = Physical::of("a", &neighbour_elsewhere).unwrap();
        assert!(!disk.holds_only("v") && !disk.is_spread("v") && disk.volumes.len() == 1);
        let spread = [segment("a", "G", Some("v")), segment("b", "G", Some("v"))];
        assert!(Physical::of("a", &spread).unwrap().is_spread("v"));
        let other = [segment("a", "G", Some("w"))];
        assert!(!Physical::of("a", &other).unwrap().holds_only("v"));
    }

    #[test]
    fn pv_without_a_volume_group_or_unknown_is_none() {
        assert_eq!(Physical::of("a", &[segment("a", "", None)]), None);
        assert_eq!(Physical::of("b", &[segment("a", "G", None)]), None);
    }
}
