//! Content of the disk for each kind of OSD of an example, and its proof.

use crate::domain::inspection::{Content, Proof};
use crate::domain::osd::{ClusterFsid, Kind as Format, OsdId, Role};
use crate::sim::example::shape::{Kind, fsid};

impl Kind {
    /// Returns the directory of the OSD, if it is in one.
    pub(super) fn directory(self, osd: OsdId) -> Option<String> {
        (self == Self::Directory).then(|| format!("/var/lib/rook/osd{}", osd.0))
    }

    /// Returns the content of the OSD's disk, and what proves it.
    pub(super) fn lies(self, osd: OsdId, cluster: ClusterFsid) -> (Content, Proof) {
        let (osd_fsid, whoami) = (fsid(osd, 0), osd);
        let by_label = |activatable| {
            let (whoami, cluster) = (Some(whoami), Some(cluster));
            Content::Bluestore { osd_fsid, whoami, cluster, finished: true, activatable }
        };
        let by_files = |format| Content::Osd { format, osd_fsid, whoami, cluster };
        match self {
            Self::Raw | Self::ByHand => {
                let activatable = self == Self::Raw;
                let proof = Proof::BluestoreLabel { osd_fsid, whoami, cluster, activatable };
                (by_label(activatable), proof)
            }
            Self::Filestore => {
                let format = Format::FilestorePartition;
                let parts = [(Role::Data, "data"), (Role::Journal, "journal")];
                let parts = parts.map(|(role, name)| (role, format!("{name}-{}", osd.0))).into();
                let fs_uuid = Some(format!("fs-{}", osd.0));
                (by_files(format), Proof::Partitions { format, parts, fs_uuid, osd_fsid, whoami, cluster })
            }
            Self::Encrypted => on_volume(Format::LvmCrypt, osd, cluster),
            Self::Directory => {
                let format = Format::FilestoreDirectory;
                let path = self.directory(osd).unwrap_or_default();
                (by_files(format), Proof::Directory { format, path, osd_fsid, whoami, cluster })
            }
        }
    }
}

/// Returns the content of the disk of an OSD on a volume of its own, and what proves it.
pub(super) fn on_volume(format: Format, osd: OsdId, cluster: ClusterFsid) -> (Content, Proof) {
    let (osd_fsid, whoami) = (fsid(osd, 0), osd);
    let proof = Proof::Volume {
        format,
        group: format!("group-{}", osd.0),
        volume: format!("volume-{}", osd.0),
        name: format!("ceph/osd-block-{}", osd.0),
        alone: true,
        luks: format.is_encrypted().then(|| format!("header-{}", osd.0)),
        osd_fsid,
        whoami,
        cluster,
    };
    (Content::Osd { format, osd_fsid, whoami, cluster }, proof)
}
