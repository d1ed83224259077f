//! OSDs on logical volumes: the volumes that an agent creates, finds again and removes.
//!
//! The agent creates the volumes, not ceph-volume. Volumes of ceph-volume have no name or tag of osd-migrate
//! until seconds later: if ceph-volume is killed in between, it leaves a volume on a shared disk without
//! a sign of its OSD. Here everything is named after the new OSD's fsid, which is recorded as issued before
//! anything is created:
//!
//! | object | name |
//! | --- | --- |
//! | physical volume of the data | uuid = the fsid, so that a bare signature identifies the OSD |
//! | its volume group | `ceph-FSID`, of that disk alone |
//! | its volume | `osd-block-FSID` |
//! | volume of the database, of the log | `osd-db-FSID`, `osd-wal-FSID` |
//!
//! The volumes of the database and of the log get their tags in the same step. They are in a volume group
//! that other OSDs of this cluster share. Foreign volumes in that group are never touched: only volumes with
//! the tags of this OSD and one of its issued fsids.
//!
//! Existing OSDs on volumes and under dm-crypt are also found (`old`, `crypt`) and removed (`removal`) here.
//! If the group of the old volume is not the OSD's alone, only the volume is recreated, in the same group.
//! The new volume then has the tags above and is identified by them alone.

mod crypt;
mod databases;
mod lvm;
mod lvm_cache;
mod make;
mod mapped;
mod old;
mod removal;
mod seen;
mod stack;
mod tombstone;

use std::path::Path;

use super::command::{QUICK, blocking};
use super::content::DiskFinding;
use super::devices::Disk;
use super::error::NodeError;
use super::label::{self, Label};
use super::{Host, table};
use crate::domain::inspection::NodeRequest;
use crate::domain::osd::{ClusterFsid, OsdFsid, OsdId};

pub(crate) use databases::prove as prove_database;
pub(crate) use lvm_cache::LvmCache;
pub(crate) use make::{Made, clear_away, make, seal};
pub(crate) use removal::{Shared, are_touched, auxiliary, from_group, is_mapped, let_go};
pub(crate) use seen::examine;
pub(crate) use stack::foreign_layer;

/// Layer on a disk that hides the OSD on the disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Layer {
    /// A physical volume of LVM, by its uuid.
    Physical(String),
    /// An encrypted disk, by the uuid of its header.
    Luks(String),
}

/// Moment at which a disk is examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The disk's volumes may be opened.
    Asked,
    /// The disk is open exclusively, and its volumes stay closed.
    Held,
}

/// Examines a disk through the layer that it shows.
pub(crate) async fn within(
    host: &Host,
    disk: &Disk,
    examine: DiskFinding,
    known: &LvmCache,
    request: &NodeRequest,
    moment: Moment,
) -> Result<DiskFinding, NodeError> {
    match &examine.layer {
        None => Ok(examine),
        // `examine` is asked for this one by its issued fsid.
        Some(Layer::Physical(uuid)) if is_another_of_ours(uuid, request) => Ok(examine),
        Some(Layer::Physical(uuid)) => old::examine(host, disk, uuid, known, request, moment).await,
        Some(Layer::Luks(header)) => crypt::examine(host, disk, header, request).await,
    }
}

/// Returns whether osd-migrate created the physical volume, and not for the OSD that is now recreated.
///
/// The OSD that is now recreated may also have been created by osd-migrate.
fn is_another_of_ours(physical: &str, request: &NodeRequest) -> bool {
    fsid_of(physical).is_some_and(|fsid| fsid != request.old)
}

/// Returns the physical volume that a disk is, or none if the disk is none or in no group.
async fn physical_on(
    disk: &Disk,
    segments: &[lvm::Segment],
) -> Result<Option<lvm_cache::Physical>, NodeError> {
    let signature = table::signature(&disk.node).await?;
    Ok(signature.physical_volume().and_then(|uuid| lvm_cache::Physical::of(uuid, segments)))
}

const LABEL: u64 = 4096;

/// Returns the BlueStore label that a volume or mapping begins with.
async fn label_on(node: &Path) -> Result<Option<Label>, NodeError> {
    let path = node.to_owned();
    let read = move || label::places(&path, 0, LABEL);
    if blocking("read", node.display().to_string(), QUICK, read).await?.is_empty() {
        return Ok(None);
    }
    label::read(node).await.map(Some)
}

/// Digits of a uuid between the dashes that LVM writes.
const GROUPS: [usize; 7] = [6, 4, 4, 4, 4, 4, 6];
/// Tag on the volume: an agent has read the label of its finished OSD.
///
/// The tag is set before the agent reports the OSD.
const FINISHED: &str = "osd-migrate.finished";

/// Returns the name of the volume group of an OSD's data.
fn group(fsid: OsdFsid) -> String {
    format!("ceph-{fsid}")
}

fn block(fsid: OsdFsid) -> String {
    format!("osd-block-{fsid}")
}

fn database(fsid: OsdFsid) -> String {
    format!("osd-db-{fsid}")
}

fn log(fsid: OsdFsid) -> String {
    format!("osd-wal-{fsid}")
}

const FSID_TAG: &str = "osd-migrate.fsid=";

fn fsid_tag(fsid: OsdFsid) -> String {
    format!("{FSID_TAG}{fsid}")
}

/// Returns the fsid of the OSD that osd-migrate created a volume for.
fn fsid_of_tags(lv: &lvm::Lv) -> Option<OsdFsid> {
    lv.tags.iter().find_map(|tag| tag.strip_prefix(FSID_TAG)?.parse().ok())
}

fn osd_tag(osd: OsdId) -> String {
    format!("osd-migrate.osd={}", osd.0)
}

fn cluster_tag(cluster: ClusterFsid) -> String {
    format!("osd-migrate.cluster={cluster}")
}

/// Returns the uuid of the physical volume, as LVM writes it.
fn pv_uuid(fsid: OsdFsid) -> String {
    let digits = fsid.to_string().replace('-', "");
    let mut rest = digits.as_str();
    let groups = GROUPS.map(|length| {
        let (group, after) = rest.split_at(length.min(rest.len()));
        rest = after;
        group
    });
    groups.join("-")
}

/// Returns the OSD that a physical volume was created for, if its uuid is one of osd-migrate's.
///
/// LVM's own uuids contain letters and digits of all kinds.
pub(crate) fn fsid_of(pv_uuid: &str) -> Option<OsdFsid> {
    let groups: Vec<&str> = pv_uuid.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    let digits = groups.concat();
    let is_one = lengths == GROUPS && digits.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'));
    if is_one { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_osd_of_our_making_is_an_old_one_when_it_is_to_be_made_anew() {
        let request = crate::node::tests::request("n1");
        let claim: OsdFsid = "500fff8e-39ff-4d5f-a72f-3cd43f874c6b".parse().unwrap();
        assert!(is_another_of_ours(&pv_uuid(claim), &request));
        assert!(!is_another_of_ours(&pv_uuid(request.old), &request));
        assert!(!is_another_of_ours("Ao5qUn-V1bQ-Uleu-Foce-fHoD-miwx-vHL2lB", &request));
    }

    #[test]
    fn a_physical_volume_says_whose_it_is() {
        let fsid: OsdFsid = "500fff8e-39ff-4d5f-a72f-3cd43f874c6b".parse().unwrap();
        assert_eq!(pv_uuid(fsid), "500fff-8e39-ff4d-5fa7-2f3c-d43f-874c6b");
        assert_eq!(fsid_of(&pv_uuid(fsid)), Some(fsid));
        for other in ["Ao5qUn-V1bQ-Uleu-Foce-fHoD-miwx-vHL2lB", "", "500fff8e-39ff-4d5f-a72f-3cd43f874c6b"] {
            assert_eq!(fsid_of(other), None, "{other}");
        }
    }
}
