//! Names and tags of the volumes that osd-migrate creates: all of them contain the new OSD's fsid.

use std::collections::BTreeSet;

use crate::domain::inspection::NodeRequest;
use crate::domain::osd::{ClusterFsid, OsdFsid, OsdId};
use crate::node::volumes::lvm::Lv;

/// Digits of a uuid between the dashes that LVM writes.
const GROUPS: [usize; 7] = [6, 4, 4, 4, 4, 4, 6];
/// Tag on the volume: an agent has read the label of its finished OSD.
///
/// The tag is set before the agent reports the OSD.
pub(super) const FINISHED: &str = "osd-migrate.finished";

/// Returns the name of the volume group of an OSD's data.
pub(super) fn group(fsid: OsdFsid) -> String {
    format!("ceph-{fsid}")
}

pub(super) fn block(fsid: OsdFsid) -> String {
    format!("osd-block-{fsid}")
}

pub(super) fn database(fsid: OsdFsid) -> String {
    format!("osd-db-{fsid}")
}

pub(super) fn log(fsid: OsdFsid) -> String {
    format!("osd-wal-{fsid}")
}

/// Returns whether a volume is named like one for a database or a log.
pub(super) fn is_auxiliary_name(name: &str) -> bool {
    ["osd-db-", "osd-wal-"].iter().any(|begin| name.starts_with(begin))
}

const FSID_TAG: &str = "osd-migrate.fsid=";

pub(super) fn fsid_tag(fsid: OsdFsid) -> String {
    format!("{FSID_TAG}{fsid}")
}

/// Returns the fsid of the OSD that osd-migrate created a volume for.
pub(super) fn fsid_of_tags(lv: &Lv) -> Option<OsdFsid> {
    lv.tags.iter().find_map(|tag| tag.strip_prefix(FSID_TAG)?.parse().ok())
}

pub(super) fn osd_tag(osd: OsdId) -> String {
    format!("osd-migrate.osd={}", osd.0)
}

pub(super) fn cluster_tag(cluster: ClusterFsid) -> String {
    format!("osd-migrate.cluster={cluster}")
}

/// Returns the uuid of the physical volume, as LVM writes it.
pub(super) fn pv_uuid(fsid: OsdFsid) -> String {
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

/// Returns whether the volume was created for this OSD under one of its issued fsids and is no main volume.
pub(super) fn is_auxiliary_of(lv: &Lv, request: &NodeRequest, issued: &BTreeSet<OsdFsid>) -> bool {
    is_called(lv, request, issued, &[database, log])
}

/// Returns whether the volume was created for this OSD under one of its issued fsids, main volumes included.
pub(super) fn is_ours(lv: &Lv, request: &NodeRequest, issued: &BTreeSet<OsdFsid>) -> bool {
    is_called(lv, request, issued, &[block, database, log])
}

fn is_called(
    lv: &Lv,
    request: &NodeRequest,
    issued: &BTreeSet<OsdFsid>,
    names: &[fn(OsdFsid) -> String],
) -> bool {
    let is_one = |fsid: &OsdFsid| {
        names.iter().any(|name| lv.name == name(*fsid)) && lv.tags.contains(&fsid_tag(*fsid))
    };
    lv.tags.contains(&osd_tag(request.osd)) && issued.iter().any(is_one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pv_uuid_encodes_the_osd_fsid() {
        let fsid: OsdFsid = "500fff8e-39ff-4d5f-a72f-3cd43f874c6b".parse().unwrap();
        assert_eq!(pv_uuid(fsid), "500fff-8e39-ff4d-5fa7-2f3c-d43f-874c6b");
        assert_eq!(fsid_of(&pv_uuid(fsid)), Some(fsid));
        for other in ["Ao5qUn-V1bQ-Uleu-Foce-fHoD-miwx-vHL2lB", "", "500fff8e-39ff-4d5f-a72f-3cd43f874c6b"] {
            assert_eq!(fsid_of(other), None, "{other}");
        }
    }
}
