//! Disks that are encrypted as a whole: by `ceph-volume raw --dmcrypt`, or by osd-migrate (`luks`). The label
//! of such a disk can be read only while the disk's mapping is open. So the LUKS header is recorded then, and
//! later the header is the proof.
//!
//! A header that osd-migrate wrote for the record itself is opened for reading, with the key of its Secret.

use crate::domain::inspection::{Content, Evidence, NodeRequest, Proof};
use crate::domain::osd::{Kind, Role};
use crate::domain::proof::finding::{DiskFinding, LuksHeader};
use crate::node::disk::devices::Disk;
use crate::node::disk::label::{Label, label_on};
use crate::node::disk::tombstone::Tombstone;
use crate::node::error::NodeError;
use crate::node::host::Host;
use crate::node::volumes::luks;
use crate::node::volumes::mapped::{Mapped, opened};
use crate::node::volumes::old::Moment;
use crate::node::volumes::stack::is_own_mapping;

/// Examines what an encrypted disk carries.
pub(super) async fn examine(
    host: &Host,
    disk: &Disk,
    header: &LuksHeader,
    request: &NodeRequest,
    moment: Moment,
) -> Result<DiskFinding, NodeError> {
    if let Some(examine) = recorded(&header.uuid, request) {
        return Ok(examine);
    }
    if let Some(pvc) = request.data_pvc().filter(|_| luks::is_of_record(&header.uuid, request, Role::Block)) {
        return of_record(host, disk, pvc, request, moment).await;
    }
    let Some(open) = opened(Mapped::over(host, &disk.holders)) else {
        let what = not_open(header, request, request.data_pvc());
        let foreign = owner_elsewhere(header, request, request.data_pvc()).map(|_| what.clone());
        return Ok(DiskFinding { foreign, ..DiskFinding::other(what, None) });
    };
    let header = &header.uuid;
    let Some(label) = label_on(&open.node).await? else {
        return Ok(DiskFinding::other(format!("LUKS {header}, open, without a BlueStore label"), None));
    };
    let about = Some(label.osd_fsid);
    let (Some(whoami), Some(cluster), true) = (label.whoami, label.cluster, label.part == "main") else {
        return Ok(DiskFinding::other(
            format!("LUKS {header} with `{}` of OSD {}", label.part, label.osd_fsid),
            about,
        ));
    };
    if !is_own_mapping(&open, label.osd_fsid, request.data_pvc().map(|pvc| (pvc, Role::Block))) {
        let what =
            format!("LUKS {header}, which the host opens as {}, with OSD {}", open.name, label.osd_fsid);
        return Ok(DiskFinding::other(what, about));
    }
    let (kind, osd_fsid) = (Kind::RawCrypt, label.osd_fsid);
    let proof = label.finished.then(|| Proof::Luks { header: header.clone(), osd_fsid, whoami, cluster });
    Ok(DiskFinding {
        proof,
        ..DiskFinding::plain(Content::Osd { format: kind, osd_fsid, whoami, cluster }, about)
    })
}

/// Examines what the header that osd-migrate wrote for this record contains.
///
/// While the device is held, the header can't be opened. It then shows only for whom it was written.
async fn of_record(
    host: &Host,
    disk: &Disk,
    pvc: &str,
    request: &NodeRequest,
    moment: Moment,
) -> Result<DiskFinding, NodeError> {
    let label = match moment {
        Moment::Held => None,
        Moment::Asked => luks::read(host, request, disk, pvc, async |node| label_on(node).await).await?,
    };
    Ok(labelled(label, request))
}

/// Returns the finding for a header of this record with that label within.
///
/// Without a label it is a tombstone of the record: no OSD was created in it yet.
fn labelled(label: Option<Label>, request: &NodeRequest) -> DiskFinding {
    let Some(label) = label else {
        return DiskFinding::plain(Tombstone::of(request).into_content(), Some(request.old));
    };
    let fsid = label.osd_fsid;
    if label.role() == Some(Role::Block) {
        return DiskFinding::plain(label.into_content(), Some(fsid));
    }
    DiskFinding::other(format!("`{}` of OSD {fsid} in the LUKS header of this record", label.part), None)
}

/// Returns the label in the open mapping of an encrypted device; the outer none if no mapping is open.
pub(crate) async fn label_within(host: &Host, disk: &Disk) -> Result<Option<Option<Label>>, NodeError> {
    match opened(Mapped::over(host, &disk.holders)) {
        Some(open) => label_on(&open.node).await.map(Some),
        None => Ok(None),
    }
}

/// Returns the text for a header that is not open, and who else it belongs to by its names.
///
/// `pvc`: the PVC whose device has the header, if it is one.
pub(crate) fn not_open(header: &LuksHeader, request: &NodeRequest, pvc: Option<&str>) -> String {
    match owner_elsewhere(header, request, pvc) {
        Some(owner) => format!("{header}, not open: the device belongs to another {owner}"),
        None => format!("{header}, not open"),
    }
}

/// Returns what else the header on the device of a PVC belongs to by its names: `PVC` or `cluster`.
pub(crate) fn owner_elsewhere(
    header: &LuksHeader,
    request: &NodeRequest,
    pvc: Option<&str>,
) -> Option<&'static str> {
    let differs = |found: &Option<String>, own: String| found.as_ref().is_some_and(|found| *found != own);
    let pvc = pvc?;
    if differs(&header.label, luks::label_of(pvc)) {
        return Some("PVC");
    }
    differs(&header.subsystem, luks::subsystem_of(request.cluster)).then_some("cluster")
}

/// Returns the finding for a header that was recorded with the OSD, if `header` is that one.
fn recorded(header: &str, request: &NodeRequest) -> Option<DiskFinding> {
    let Some(Evidence { proof: proof @ Proof::Luks { header: known, .. }, .. }) = &request.evidence else {
        return None;
    };
    let (osd_fsid, whoami, cluster) = proof.names().filter(|_| known == header)?;
    let content = Content::Osd { format: Kind::RawCrypt, osd_fsid, whoami, cluster };
    Some(DiskFinding { proof: Some(proof.clone()), ..DiskFinding::plain(content, Some(osd_fsid)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::osd::DeviceIdentity;
    use crate::domain::osd::pvc::PerPvc;
    use crate::node::samples::{bare_disk, host, request};

    #[test]
    fn closed_luks_disk_is_identified_by_its_header_alone() {
        let mut request = request("n1");
        assert_eq!(recorded("h", &request), None);
        let (osd_fsid, whoami, cluster) = (request.old, request.osd, request.cluster);
        let proof = Proof::Luks { header: "h".into(), osd_fsid, whoami, cluster };
        let device =
            DeviceIdentity { by_id: [].into(), by_path: [].into(), serial: None, wwn: None, size_bytes: 1 };
        request.evidence =
            Some(Evidence { device, proof: proof.clone(), usable_bytes: 1, auxiliary: Vec::new() });
        let examine = recorded("h", &request).unwrap();
        assert_eq!((examine.proof, examine.about), (Some(proof), Some(osd_fsid)));
        assert_eq!(recorded("other", &request), None);
    }
    #[test]
    fn closed_luks_header_is_described_by_its_names() {
        let request = request("n1");
        let header = |label: Option<&str>, subsystem: Option<String>| LuksHeader {
            uuid: "h".into(),
            label: label.map(str::to_owned),
            subsystem,
        };
        let ours = luks::subsystem_of(request.cluster);
        assert_eq!(not_open(&header(None, None), &request, None), "LUKS h, not open");
        let other = header(Some("pvc_name=y"), Some(ours.clone()));
        let of_x = |header: &LuksHeader| not_open(header, &request, Some("x"));
        assert_eq!(
            not_open(&other, &request, None),
            format!("a LUKS header of pvc_name=y, {ours}, not open")
        );
        let text =
            format!("a LUKS header of pvc_name=y, {ours}, not open: the device belongs to another PVC");
        assert_eq!(of_x(&other), text);
        assert_eq!(owner_elsewhere(&other, &request, Some("x")), Some("PVC"));
        let foreign = header(Some("pvc_name=x"), Some("ceph_fsid=z".into()));
        let text =
            "a LUKS header of pvc_name=x, ceph_fsid=z, not open: the device belongs to another cluster";
        assert_eq!(of_x(&foreign), text);
        let own = header(Some("pvc_name=x"), Some(ours.clone()));
        assert_eq!(of_x(&own), format!("a LUKS header of pvc_name=x, {ours}, not open"));
        let long = "a-name-longer-than-the-label-of-a-header-by-far";
        let cut = header(Some("pvc_name=a-name-longer-than-the-label-of-a-head"), Some(ours.clone()));
        assert!(
            !not_open(&cut, &request, Some(long)).contains("another"),
            "the label is cut at 47 characters"
        );
    }

    #[test]
    fn header_of_the_record_is_its_tombstone_or_the_osd_within() {
        let request = request("n1");
        let tombstone = Tombstone::of(&request).into_content();
        assert_eq!(labelled(None, &request), DiskFinding::plain(tombstone, Some(request.old)));
        let osd_fsid = "500fff8e-39ff-4d5f-a72f-3cd43f874c6b".parse().unwrap();
        let label = |part: &str| Label {
            osd_fsid,
            whoami: Some(request.osd),
            cluster: Some(request.cluster),
            finished: true,
            activatable: true,
            part: part.to_owned(),
        };
        let found = labelled(Some(label("main")), &request);
        assert_eq!(found, DiskFinding::plain(label("main").into_content(), Some(osd_fsid)));
        let part = labelled(Some(label("bluefs db")), &request);
        assert!(matches!(part.content, Content::Other { .. }) && part.about.is_none());
    }

    #[tokio::test]
    async fn held_header_of_the_record_shows_as_its_tombstone() {
        let root = tempfile::tempdir().unwrap();
        let (host, disk) = (host(root.path()), bare_disk(&[], 1));
        let mut request = request("n1");
        (request.pvcs, request.target.encrypted) = (Some(PerPvc::of_data("x".into())), true);
        let uuid = luks::header_uuid(&request.record, Role::Block);
        let header = LuksHeader { uuid, label: None, subsystem: None };
        let found = examine(&host, &disk, &header, &request, Moment::Held).await.unwrap();
        assert_eq!(found.content, Tombstone::of(&request).into_content());
        // A record that does not encrypt writes no header, and has no key.
        request.target.encrypted = false;
        let found = examine(&host, &disk, &header, &request, Moment::Held).await.unwrap();
        assert!(matches!(found.content, Content::Other { .. }), "{}", found.content);
    }
}
