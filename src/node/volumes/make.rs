//! Creates the volumes of a new OSD, and removes those of an OSD that was never finished.

use std::path::Path;

use crate::domain::inspection::{Evidence, NodeRequest};
use crate::domain::osd::{OsdFsid, Role};
use crate::node::disk::devices::Disk;
use crate::node::error::NodeError;
use crate::node::host::Host;
use crate::node::state::issued;
use crate::node::volumes::auxiliary::Again;
use crate::node::volumes::change::Change;
use crate::node::volumes::databases;
use crate::node::volumes::lvm::{self, Lv};
use crate::node::volumes::names::{
    block, cluster_tag, database, fsid_tag, group, is_auxiliary_of, log, osd_tag, pv_uuid,
};
use crate::node::volumes::removal::{self, Shared};
use crate::node::volumes::seen;

/// Arguments for ceph-volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewVolumes {
    /// fsid of the new OSD.
    pub(crate) fsid: OsdFsid,
    /// `VG/LV` of the data.
    pub(crate) data: String,
    /// `VG/LV` of the database.
    pub(crate) db: Option<String>,
    /// `VG/LV` of the write-ahead log.
    pub(crate) wal: Option<String>,
}

/// Creates the volumes on a disk that is proven and wiped.
///
/// The fsid is recorded as issued before anything is named after it. The shared part comes first: if it
/// fails, the disk still carries its tombstone.
pub(crate) async fn make(
    host: &Host,
    request: &NodeRequest,
    evidence: &Evidence,
    disk: &Disk,
) -> Result<NewVolumes, NodeError> {
    let fsid = OsdFsid::new(uuid::Uuid::new_v4())
        .ok_or_else(|| NodeError::NotDone("a random uuid was all zeros".to_owned()))?;
    issued::add(&issued::path(&host.state, request.osd, &request.record), fsid)?;
    let tags = [osd_tag(request.osd), fsid_tag(fsid), cluster_tag(request.cluster)];
    let db = match &request.db {
        None => again(evidence, Role::Db, &database(fsid), &tags).await?,
        Some(db) => {
            let group = databases::group(host, db, request.cluster).await?;
            let size = db.size_mib.map(|mib| mib.saturating_mul(1 << 20));
            Some(create(&group, &database(fsid), &tags, size, None).await?)
        }
    };
    let wal = again(evidence, Role::Wal, &log(fsid), &tags).await?;
    let data = if let Some(shared) = Shared::of(evidence) {
        let on = removal::physical(disk, &shared).await?;
        let (group, size) = (on.group.name.as_str(), Some(shared.size_bytes));
        let data = create(group, &block(fsid), &tags, size, Some(&on.device)).await?;
        removal::unmark(request, group).await?;
        data
    } else {
        let group = group(fsid);
        Change::PvCreate { device: &disk.node, uuid: &pv_uuid(fsid) }.done().await?;
        Change::VgCreate { name: &group, tags: &tags, device: &disk.node }.done().await?;
        create(&group, &block(fsid), &tags, None, None).await?
    };
    Ok(NewVolumes { fsid, data, db, wal })
}

/// Creates a volume like the auxiliary one of the old OSD: as large, on the same physical volume.
///
/// Returns none if the old OSD had none.
async fn again(
    evidence: &Evidence,
    role: Role,
    name: &str,
    tags: &[String],
) -> Result<Option<String>, NodeError> {
    let Some(again) = Again::of(evidence, role) else { return Ok(None) };
    let (group, on) = again.place(&lvm::segments().await?).map_err(NodeError::Refused)?;
    create(&group, name, tags, Some(again.size_bytes), on.as_deref()).await.map(Some)
}

/// Creates a volume and returns its `VG/LV`.
async fn create(
    group: &str,
    name: &str,
    tags: &[String],
    size_bytes: Option<u64>,
    on: Option<&Path>,
) -> Result<String, NodeError> {
    Change::LvCreate { group, name, tags, size_bytes, on }.done().await?;
    Ok(format!("{group}/{name}"))
}

/// Removes what an unfinished OSD of osd-migrate left: what blocks a wipe of its disk, and what it left
/// elsewhere.
///
/// These are its mappings and nodes, and the volumes of its database. `on_disk` is the issued fsid that the
/// disk's physical volume is named after.
pub(crate) async fn clear_away(
    host: &Host,
    request: &NodeRequest,
    on_disk: Option<OsdFsid>,
    disk: &Disk,
) -> Result<Disk, NodeError> {
    let issued = issued::of(request, host)?;
    let all = lvm::volumes().await?;
    if let Some(fsid) = on_disk {
        let there: Vec<&Lv> = all.iter().filter(|lv| lv.group == group(fsid)).collect();
        if let Some(other) = there.iter().find(|lv| lv.name != block(fsid)) {
            return Err(NodeError::Refused(format!(
                "{} is in a volume group of osd-migrate, but osd-migrate did not create it",
                other.named()
            )));
        }
        for lv in &there {
            close(lv).await?;
        }
        if lvm::tags_of(&group(fsid)).await?.is_some() {
            Change::Deactivate { group: &group(fsid) }.done().await?;
        }
    }
    for lv in all.iter().filter(|lv| is_auxiliary_of(lv, request, &issued)) {
        close(lv).await?;
        Change::LvRemove { lv: &lv.named() }.done().await?;
    }
    disk.again(&host.sys_block, &host.dev)
}

/// Saves that the label is finished, then closes the mappings; called after ceph-volume.
///
/// The OSD's first start then opens the mappings with the key that the mons have. ceph-volume ignores the
/// exit status of `luksFormat`. If a mapping stayed open, a key that opens nothing would be noticed only at
/// the next reboot.
pub(crate) async fn seal(request: &NodeRequest, fsid: OsdFsid) -> Result<(), NodeError> {
    seen::examine(request, fsid).await?;
    for lv in lvm::volumes().await?.iter().filter(|lv| lv.tags.contains(&fsid_tag(fsid))) {
        close(lv).await?;
    }
    Ok(())
}

async fn close(lv: &Lv) -> Result<(), NodeError> {
    if lv.mapping().exists() {
        Change::CryptClose { mapping: &lv.uuid }.done().await?;
    }
    Ok(())
}
