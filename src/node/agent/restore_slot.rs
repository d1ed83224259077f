//! Re-registers an OSD of osd-migrate whose slot was destroyed externally.

use std::path::PathBuf;

use crate::domain::inspection::NodeRequest;
use crate::domain::proof::verdict::{self, Verdict};
use crate::node::agent::inspect::inspect;
use crate::node::agent::outcome::Outcome;
use crate::node::agent::recorded::{evidence_of, recorded};
use crate::node::create::mons;
use crate::node::disk::label;
use crate::node::error::NodeError;
use crate::node::find::search::Search;
use crate::node::host::Host;
use crate::node::legacy::files::Sharing;
use crate::node::state::issued;
use crate::node::steps::Steps;
use crate::node::volumes::luks;

/// Re-registers a finished OSD of osd-migrate's whose slot was destroyed externally.
pub(crate) async fn restore_slot(request: &NodeRequest, host: &Host, steps: &Steps) -> Outcome {
    let mut outcome = inspect(request, host, steps).await;
    if outcome.error.is_none() {
        outcome.error = steps.time("restore-slot", deployment_by(request, host)).await.err();
    }
    outcome
}

async fn deployment_by(request: &NodeRequest, host: &Host) -> Result<(), NodeError> {
    let evidence = evidence_of(request)?;
    let issued = issued::of(request, host)?;
    match recorded(request, evidence, host, Sharing::No).await? {
        Search::One(found) => match verdict::verdict(request, evidence, &issued, &found.examine) {
            Verdict::Done => {
                let fsid = found
                    .examine
                    .about
                    .ok_or_else(|| NodeError::Refused("the disk does not name an OSD".to_owned()))?;
                if let Some(pvc) = request.pvc_with_key() {
                    let key =
                        luks::read(host, request, &found.disk, pvc, async |node| label::read_key(node).await);
                    let key = key.await?;
                    return mons::osd_new(host, fsid, request.osd, &key).await;
                }
                if request.target.encrypted {
                    let why = "its encryption key was deleted when its slot was destroyed, so the OSD can \
                               only be recreated";
                    return Err(NodeError::Refused(why.to_owned()));
                }
                let volume = found.volume.as_ref().map(|volume| PathBuf::from(&volume.block_path));
                let key = label::read_key(&volume.unwrap_or(found.disk.node)).await?;
                mons::osd_new(host, fsid, request.osd, &key).await
            }
            Verdict::WipeOld
            | Verdict::WipeOurs
            | Verdict::WipeMisplaced(_)
            | Verdict::TakeAvailable
            | Verdict::Refuse(_) => Err(NodeError::Refused(format!(
                "expected a finished OSD that osd-migrate created, found {}",
                found.examine.content
            ))),
        },
        Search::None(what) | Search::Several(what) => Err(NodeError::Refused(what)),
    }
}
