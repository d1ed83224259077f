//! Disks that are encrypted as a whole (`ceph-volume raw --dmcrypt`). The label of such a disk can be read
//! only while the disk's mapping is open. So the LUKS header is recorded then, and later the header is the
//! proof.

use crate::domain::inspection::{Content, Evidence, NodeRequest, Proof};
use crate::domain::osd::Kind;
use crate::domain::proof::finding::DiskFinding;
use crate::node::disk::devices::Disk;
use crate::node::disk::label::label_on;
use crate::node::error::NodeError;
use crate::node::host::Host;
use crate::node::volumes::mapped::{Mapped, opened};
use crate::node::volumes::stack::is_own_mapping;

/// Examines what an encrypted disk carries.
pub(super) async fn examine(
    host: &Host,
    disk: &Disk,
    header: &str,
    request: &NodeRequest,
) -> Result<DiskFinding, NodeError> {
    if let Some(examine) = recorded(header, request) {
        return Ok(examine);
    }
    let Some(open) = opened(Mapped::over(host, &disk.holders)) else {
        return Ok(DiskFinding::other(format!("LUKS {header}, not open"), None));
    };
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
    if !is_own_mapping(&open, label.osd_fsid) {
        let what =
            format!("LUKS {header}, which the host opens as {}, with OSD {}", open.name, label.osd_fsid);
        return Ok(DiskFinding::other(what, about));
    }
    let (kind, osd_fsid) = (Kind::RawCrypt, label.osd_fsid);
    let proof = label.finished.then(|| Proof::Luks { header: header.to_owned(), osd_fsid, whoami, cluster });
    Ok(DiskFinding {
        proof,
        ..DiskFinding::plain(Content::Osd { format: kind, osd_fsid, whoami, cluster }, about)
    })
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
    use crate::node::samples::request;

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
}
