//! PVCs on which a run creates no OSD: their devices are not blank, or the Deployments of their OSDs are
//! refused.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Maximum number of findings saved with their text, as of refusals.
const WITH_TEXT: usize = 100;

/// Maximum characters of a finding that are saved.
const TEXT: usize = 300;

/// PVCs that one run leaves unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LeftPvcs {
    /// uid of the run's Job. Another Job inspects the devices again.
    pub job: String,
    /// The PVCs, by name.
    pub pvcs: BTreeMap<String, LeftPvc>,
}

/// PVC that a run leaves unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LeftPvc {
    /// uid of the PVC: a recreated PVC is inspected again.
    pub uid: String,
    /// Why: sentence for people.
    pub found: String,
}

impl LeftPvcs {
    /// Returns the PVCs that a run leaves unchanged, with one more.
    ///
    /// `known` are the earlier ones of the same run.
    pub(super) fn noted(known: Option<Self>, job: &str, name: &str, uid: &str, found: &str) -> Self {
        let mut left = known.unwrap_or_else(|| Self { job: job.to_owned(), pvcs: BTreeMap::new() });
        let length = if left.pvcs.len() < WITH_TEXT { TEXT } else { 0 };
        let mut text: String = found.chars().take(length).collect();
        if text.is_empty() {
            "see the log of the run".clone_into(&mut text);
        }
        left.pvcs.insert(name.to_owned(), LeftPvc { uid: uid.to_owned(), found: text });
        left
    }
}
