//! Content of the volumes of an OSD that an agent of osd-migrate created, or started to create.

use crate::domain::inspection::{Content, NodeRequest, Volume};
use crate::domain::osd::OsdFsid;
use crate::domain::proof::finding::DiskFinding;
use crate::node::disk::label::{Label, label_on};
use crate::node::disk::table;
use crate::node::error::NodeError;
use crate::node::volumes::change::Change;
use crate::node::volumes::lvm::{self, Lv};
use crate::node::volumes::names::{FINISHED, block, database, fsid_tag, log};

/// Examines the OSD with the issued fsid `fsid` in the volumes that are named after it.
///
/// Fails if the volumes can't be read: an unreadable OSD is not an unfinished one.
pub(crate) async fn examine(
    request: &NodeRequest,
    fsid: OsdFsid,
) -> Result<(DiskFinding, Option<Volume>), NodeError> {
    let all = lvm::volumes().await?;
    let called = |name: String| all.iter().find(|lv| lv.name == name && lv.tags.contains(&fsid_tag(fsid)));
    let Some(main) = called(block(fsid)) else {
        return Ok((unfinished(fsid), None)); // only its group was created, or not even the group
    };
    if !main.path().exists() {
        Change::Activate { lv: &main.named() }.done().await?;
    }
    let Some(label) = label_in(main, request, fsid).await? else {
        return Ok((unfinished(fsid), None));
    };
    if label.osd_fsid != fsid {
        let what = format!("a volume for OSD {fsid} that carries OSD {}", label.osd_fsid);
        return Ok((DiskFinding::plain(Content::Other { what }, Some(fsid)), None));
    }
    let path = |lv: &Lv| lv.path().display().to_string();
    let volume = Volume {
        block_path: path(main),
        db_path: called(database(fsid)).map(path),
        wal_path: called(log(fsid)).map(path),
    };
    Ok((DiskFinding::plain(label.into_content(), Some(fsid)), Some(volume)))
}

/// Returns the finding of an OSD that was never reported as finished.
fn unfinished(fsid: OsdFsid) -> DiskFinding {
    let content = Content::Bluestore {
        osd_fsid: fsid,
        whoami: None,
        cluster: None,
        finished: false,
        activatable: false,
    };
    DiskFinding::plain(content, Some(fsid))
}

/// Returns the label in a volume, or within its encryption.
///
/// A finished label is marked on the volume before it is reported, because a closed mapping shows no label.
/// Without the mark, the label was never reported and the OSD never deployed.
async fn label_in(lv: &Lv, request: &NodeRequest, fsid: OsdFsid) -> Result<Option<Label>, NodeError> {
    if let Some(label) = label_on(&lv.path()).await? {
        return Ok(Some(label));
    }
    if table::signature(&lv.path()).await?.kind.as_deref() != Some("crypto_LUKS") {
        return Ok(None);
    }
    let is_marked = lv.tags.iter().any(|tag| tag == FINISHED);
    let label = if lv.mapping().exists() { label_on(&lv.mapping()).await? } else { None };
    match label {
        Some(label) => {
            if label.finished && !is_marked {
                Change::LvTag { lv: &lv.named(), tag: FINISHED }.done().await?;
            }
            Ok(Some(label))
        }
        None if is_marked => Ok(Some(Label {
            osd_fsid: fsid,
            whoami: Some(request.osd),
            cluster: Some(request.cluster),
            finished: true,
            activatable: true,
            part: "main".to_owned(),
        })),
        None => Ok(None),
    }
}
