//! The wipe of the disk of an OSD that is removed.

use crate::domain::inspection::NodeRequest;
use crate::node::agent::outcome::Outcome;
use crate::node::error::NodeError;
use crate::node::host::Host;
use crate::node::steps::Steps;

/// Wipes the recorded disk.
pub(super) async fn wipe(request: &NodeRequest, _host: &Host, _steps: &Steps) -> Outcome {
    Outcome::failed(NodeError::Refused(format!("{} is not wiped", request.osd)))
}
