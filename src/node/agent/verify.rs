//! What a rebuild reports: the disk as it is read at the end.

use crate::domain::inspection::{Evidence, NodeRequest};
use crate::domain::proof::verdict::{self, Verdict};
use crate::node::agent::outcome::{Outcome, inspection};
use crate::node::agent::prove::Order;
use crate::node::agent::recorded::recorded;
use crate::node::create::capability::CapabilityAnswer;
use crate::node::error::NodeError;
use crate::node::find::search::Search;
use crate::node::host::Host;
use crate::node::legacy::files::Sharing;
use crate::node::legacy::remains;
use crate::node::state::issued;

/// Returns the outcome for a disk that was not found, which is refused.
pub(super) fn not_found(order: &Order<'_>, search: Search, asked: &CapabilityAnswer) -> Outcome {
    let inspection = inspection(order.request, order.host, search, asked);
    let why = inspection.content.to_string();
    let error = Some(NodeError::Refused(why));
    Outcome { inspection: Some(inspection), error, left: Vec::new() }
}

/// Reads the disk once more, and removes Rook's files of the old OSD if the new one is finished.
pub(super) async fn verify(
    order: &Order<'_>,
    asked: &CapabilityAnswer,
    done: Result<Option<String>, NodeError>,
) -> Outcome {
    let &Order { request, evidence, host, steps } = order;
    // Search again from the start: numbers, partitions and even the disk's name may have changed.
    let last = steps.time("read", recorded(request, evidence, host, Sharing::No)).await;
    let error = match (done, &last) {
        (Err(error), _) => Some(error),
        (Ok(said), Ok(search)) => not_done(request, evidence, host, search, said.as_deref()),
        (Ok(_), Err(_)) => None, // reported below
    };
    match (last, error) {
        (Ok(search), error) => {
            let is_done = error.is_none();
            let left =
                if is_done { steps.time("remains", remains::remove(request, host)).await } else { vec![] };
            Outcome { inspection: Some(inspection(request, host, search, asked)), error, left }
        }
        (Err(_), Some(error)) | (Err(error), None) => Outcome::failed(error),
    }
}

/// Returns why the disk does not show what ceph-volume should have created.
fn not_done(
    request: &NodeRequest,
    evidence: &Evidence,
    host: &Host,
    search: &Search,
    said: Option<&str>,
) -> Option<NodeError> {
    let issued = match issued::of(request, host) {
        Ok(issued) => issued,
        Err(error) => return Some(error),
    };
    let carries = match search {
        Search::One(found)
            if verdict::verdict(request, evidence, &issued, &found.examine) == Verdict::Done =>
        {
            return None;
        }
        Search::One(found) => found.examine.content.to_string(),
        Search::None(what) | Search::Several(what) => what.clone(),
    };
    Some(NodeError::NotDone(format!(
        "the disk carries {carries}; {}",
        said.unwrap_or("ceph-volume did not run")
    )))
}
