//! OSDs on logical volumes: the volumes that an agent makes, finds again and takes away.
//!
//! They are made here and not by ceph-volume, whose own have no name or tag of ours until seconds later: killed in between, it
//! leaves a volume on a shared disk of which nobody can say whose it is. Here everything is called by the new OSD's fsid, which
//! is a claim before anything is made:
//!
//! | what | called |
//! | --- | --- |
//! | physical volume of the data | uuid = the fsid, so that a bare signature says whose it is |
//! | its volume group | `ceph-FSID`, of that disk alone |
//! | its volume | `osd-block-FSID` |
//! | volume of the database, of the log | `osd-db-FSID`, `osd-wal-FSID`, tagged in the same step, in a volume group that others of this cluster share |
//!
//! What others have in that group is never touched: only volumes with the tags of this OSD and one of its claims.
//!
//! OSDs that lie on volumes and under dm-crypt before are found (`old`, `crypt`) and taken away (`away`) here too. Where the
//! group of the old volume is not the OSD's alone, only the volume is made anew, in the same group: then it has the tags above,
//! and is called by them alone.

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

/// What a disk carries that hides the OSD on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Layer {
    /// A physical volume of LVM, by its uuid.
    Physical(String),
    /// An encrypted disk, by the uuid of its header.
    Luks(String),
}

/// When a disk is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Its volumes may be opened.
    Asked,
    /// It is held exclusively, and stays closed.
    Held,
}

/// The look at a disk, through the layer that it shows.
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
        // `look` is asked for it by its claim.
        Some(Layer::Physical(uuid)) if is_another_of_ours(uuid, request) => Ok(examine),
        Some(Layer::Physical(uuid)) => old::examine(host, disk, uuid, known, request, moment).await,
        Some(Layer::Luks(header)) => crypt::examine(host, disk, header, request).await,
    }
}

/// We made it, and not for the OSD that is to be made anew now, though that one may be of our making too.
fn is_another_of_ours(physical: &str, request: &NodeRequest) -> bool {
    fsid_of(physical).is_some_and(|fsid| fsid != request.old)
}

/// The physical volume that a disk is; none where it is none, or in no group.
async fn physical_on(
    disk: &Disk,
    segments: &[lvm::Segment],
) -> Result<Option<lvm_cache::Physical>, NodeError> {
    let signature = table::signature(&disk.node).await?;
    Ok(signature.physical_volume().and_then(|uuid| lvm_cache::Physical::of(uuid, segments)))
}

const LABEL: u64 = 4096;

/// The BlueStore label that a volume or mapping begins with.
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
/// On the volume: an agent has read the label of its finished OSD before it said so to anybody.
const FINISHED: &str = "osd-migrate.finished";

/// The volume group of an OSD's data.
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

/// The OSD that a volume was made for by us.
fn fsid_of_tags(lv: &lvm::Lv) -> Option<OsdFsid> {
    lv.tags.iter().find_map(|tag| tag.strip_prefix(FSID_TAG)?.parse().ok())
}

fn osd_tag(osd: OsdId) -> String {
    format!("osd-migrate.osd={}", osd.0)
}

fn cluster_tag(cluster: ClusterFsid) -> String {
    format!("osd-migrate.cluster={cluster}")
}

/// The uuid of the physical volume, as LVM writes it.
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

/// The OSD that a physical volume was made for, if its uuid is one of ours: LVM's own are of letters and digits of all kinds.
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
