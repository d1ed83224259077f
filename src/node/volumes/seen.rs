//! What is in the volumes of an OSD that an agent of ours made, or began to make.

use super::super::content::DiskFinding;
use super::super::error::NodeError;
use super::super::label::Label;
use super::super::table;
use super::lvm::{self, Change, Lv};
use super::{FINISHED, block, database, fsid_tag, label_on, log};
use crate::domain::inspection::{Content, NodeRequest, Volume};
use crate::domain::osd::OsdFsid;

/// Looks at the OSD `fsid`, a claim, in the volumes that are called by it. An error where they can't be read: not to be
/// readable is not to be unfinished.
pub(crate) async fn examine(
    request: &NodeRequest,
    fsid: OsdFsid,
) -> Result<(DiskFinding, Option<Volume>), NodeError> {
    let all = lvm::volumes().await?;
    let called = |name: String| all.iter().find(|lv| lv.name == name && lv.tags.contains(&fsid_tag(fsid)));
    let Some(main) = called(block(fsid)) else {
        return Ok((unfinished(fsid), None)); // only its group was made, or not even that
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

/// Nothing finished has been told of it to anybody.
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

/// The label in a volume, or within its encryption. That a label was finished is written down on the volume before it is told
/// to anybody, since a mapping that is closed shows none: no mark, never told, never deployed.
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
