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
//! | volume of the database | `osd-db-FSID`, tagged in the same step, in a volume group that others of this cluster share |
//!
//! What others have in that group is never touched: only volumes with the tags of this OSD and one of its claims.

mod lvm;
mod make;
mod seen;

use crate::domain::osd::{ClusterFsid, OsdFsid, OsdId};

pub(crate) use make::{Made, clear_away, make, seal};
pub(crate) use seen::look;

/// Digits of a uuid between the dashes that LVM writes.
const GROUPS: [usize; 7] = [6, 4, 4, 4, 4, 4, 6];
/// On the volume group: an agent has read the label of its finished OSD before it said so to anybody.
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

fn fsid_tag(fsid: OsdFsid) -> String {
    format!("osd-migrate.fsid={fsid}")
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
    fn a_physical_volume_says_whose_it_is() {
        let fsid: OsdFsid = "500fff8e-39ff-4d5f-a72f-3cd43f874c6b".parse().unwrap();
        assert_eq!(pv_uuid(fsid), "500fff-8e39-ff4d-5fa7-2f3c-d43f-874c6b");
        assert_eq!(fsid_of(&pv_uuid(fsid)), Some(fsid));
        for other in ["Ao5qUn-V1bQ-Uleu-Foce-fHoD-miwx-vHL2lB", "", "500fff8e-39ff-4d5f-a72f-3cd43f874c6b"] {
            assert_eq!(fsid_of(other), None, "{other}");
        }
    }
}
