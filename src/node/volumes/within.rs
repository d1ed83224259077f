//! The OSD behind the layer that a disk shows.

use crate::domain::inspection::NodeRequest;
use crate::domain::proof::finding::{DiskFinding, Layer};
use crate::node::disk::devices::Disk;
use crate::node::error::NodeError;
use crate::node::host::Host;
use crate::node::volumes::lvm_cache::LvmCache;
use crate::node::volumes::names::fsid_of;
use crate::node::volumes::old::Moment;
use crate::node::volumes::{crypt, old};

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
        Some(Layer::Luks(header)) => crypt::examine(host, disk, header, request, moment).await,
    }
}

/// Returns whether osd-migrate created the physical volume, and not for the OSD that is now recreated.
///
/// The OSD that is now recreated may also have been created by osd-migrate.
fn is_another_of_ours(physical: &str, request: &NodeRequest) -> bool {
    fsid_of(physical).is_some_and(|fsid| fsid != request.old)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::osd::OsdFsid;
    use crate::node::samples::request;
    use crate::node::volumes::names::pv_uuid;

    #[test]
    fn pv_of_the_old_osd_is_distinguished_from_another_own_pv() {
        let request = request("n1");
        let issued: OsdFsid = "500fff8e-39ff-4d5f-a72f-3cd43f874c6b".parse().unwrap();
        assert!(is_another_of_ours(&pv_uuid(issued), &request));
        assert!(!is_another_of_ours(&pv_uuid(request.old), &request));
        assert!(!is_another_of_ours("Ao5qUn-V1bQ-Uleu-Foce-fHoD-miwx-vHL2lB", &request));
    }
}
