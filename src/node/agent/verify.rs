//! What a rebuild or a wipe reports: the disk as it is read at the end.

use crate::domain::inspection::Inspection;
use crate::domain::proof::finding::DiskFinding;
use crate::node::agent::outcome::{Outcome, inspection};
use crate::node::agent::prove::Order;
use crate::node::agent::recorded::recorded;
use crate::node::create::capability::CapabilityAnswer;
use crate::node::error::NodeError;
use crate::node::find::search::Search;
use crate::node::legacy::files::Sharing;
use crate::node::legacy::remains;

/// Returns the outcome for a disk that was not found, which is refused.
pub(super) fn not_found(order: &Order<'_>, search: Search, asked: &CapabilityAnswer) -> Outcome {
    let inspection = inspection(order.request, order.host, search, asked);
    let why = inspection.content.to_string();
    let error = Some(NodeError::Refused(why));
    Outcome { inspection: Some(inspection), error, left: Vec::new() }
}

/// Reads the disk once more, and removes Rook's files of the old OSD if the task is done.
///
/// `done`: what was done, for a message; `is_done`: whether a finding shows it.
pub(super) async fn verify(
    order: &Order<'_>,
    asked: &CapabilityAnswer,
    done: Result<String, NodeError>,
    is_done: impl Fn(&DiskFinding) -> Result<bool, NodeError>,
) -> Outcome {
    let &Order { request, evidence, host, steps } = order;
    // Search again from the start: numbers, partitions and even the disk's name may have changed.
    let last = steps.time("read", recorded(request, evidence, host, Sharing::No)).await;
    let error = match (done, &last) {
        (Err(error), _) => Some(error),
        (Ok(said), Ok(search)) => not_done(search, &said, is_done),
        (Ok(_), Err(_)) => None, // reported below
    };
    match (last, error) {
        (Ok(search), error) => ended(order, inspection(request, host, search, asked), error).await,
        (Err(_), Some(error)) | (Err(error), None) => Outcome::failed(error),
    }
}

/// Returns the outcome; removes Rook's files of the old OSD if there is no error.
pub(super) async fn ended(order: &Order<'_>, inspection: Inspection, error: Option<NodeError>) -> Outcome {
    let &Order { request, host, steps, .. } = order;
    let is_done = error.is_none();
    let left = if is_done { steps.time("remains", remains::remove(request, host)).await } else { vec![] };
    Outcome { inspection: Some(inspection), error, left }
}

/// Returns why the disk does not show what was done.
fn not_done(
    search: &Search,
    said: &str,
    is_done: impl Fn(&DiskFinding) -> Result<bool, NodeError>,
) -> Option<NodeError> {
    let carries = match search {
        Search::One(found) => match is_done(&found.examine) {
            Ok(true) => return None,
            Ok(false) => found.examine.content.to_string(),
            Err(error) => return Some(error),
        },
        Search::None(what) | Search::Several(what) => what.clone(),
    };
    Some(NodeError::NotDone(format!("the disk carries {carries}; {said}")))
}
