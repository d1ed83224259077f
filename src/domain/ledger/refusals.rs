//! OSDs that one run does not start again: for example, they can't be emptied.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::osd::OsdId;

/// Maximum number of refusals saved with their text.
///
/// With 300 characters each they take 30 KiB of the 1,000 KiB that a save may have. A policy that refuses the
/// Deployments of all OSDs gives the same answer for each, and the log has all answers.
const WITH_TEXT: usize = 100;

/// Maximum characters of a refusal that are saved.
const TEXT: usize = 300;

/// OSDs given up for a fence that Rook does not acknowledge, after which no other OSD is tried.
///
/// Each of them takes minutes, and a cluster has thousands.
const MAX_UNFENCED: u32 = 3;

/// Step that was refused for an OSD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusedStep {
    /// The API server does not admit the new Deployment.
    Admission,
    /// The OSD can't be emptied.
    Emptying,
    /// The OSD can't be removed.
    Removal,
    /// Rook does not acknowledge the fence before the stop of the OSD.
    Fence,
}

/// Refusal of one OSD.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Refused {
    /// Step that was refused.
    pub step: RefusedStep,
    /// Reason: the answer of the API server, or what is against the emptying. Empty after `WITH_TEXT` others.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    why: String,
}

impl Refused {
    /// Returns the reason.
    pub fn why(&self) -> &str {
        if self.why.is_empty() { "see the log of the run" } else { &self.why }
    }
}

/// OSDs that one run does not start again.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Refusals {
    /// uid of the run's Job. Another Job asks again.
    pub job: String,
    /// Refusals by OSD. Stored as pairs: a number as a key can't be read again from `run`, which is
    /// flattened.
    #[serde(with = "pairs")]
    pub osds: BTreeMap<OsdId, Refused>,
    /// Whether Rook has acknowledged no fence since an OSD was refused for that. False in data of earlier
    /// versions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rook_hangs: bool,
    /// Number of OSDs refused for that since Rook acknowledged a fence. Missing in data of earlier versions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unfenced: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Refusals {
    /// Returns the refusals of a run with one more.
    ///
    /// `known` are the earlier refusals of the same run.
    pub(super) fn noted(known: Option<Self>, osd: OsdId, job: &str, step: RefusedStep, why: &str) -> Self {
        let none = || Self { job: job.to_owned(), osds: BTreeMap::new(), rook_hangs: false, unfenced: 0 };
        let mut refusals = known.unwrap_or_else(none);
        if step == RefusedStep::Fence {
            refusals.rook_hangs = true;
            refusals.unfenced += 1;
        }
        let length = if refusals.osds.len() < WITH_TEXT { TEXT } else { 0 };
        refusals.osds.insert(osd, Refused { step, why: why.chars().take(length).collect() });
        refusals
    }

    /// Returns whether the run begins work on no OSD, because Rook would not acknowledge the fence.
    ///
    /// Data that was moved away for the stop would have to move back, so one OSD that was given up is enough
    /// if data moves.
    pub fn expects_no_fence(&self, moves_data: bool) -> bool {
        self.rook_hangs && (moves_data || self.unfenced >= MAX_UNFENCED)
    }
}

/// Serialization of a map as a list of pairs.
mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::Refused;
    use crate::domain::osd::OsdId;

    pub(super) fn serialize<S: Serializer>(map: &BTreeMap<OsdId, Refused>, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(map)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<OsdId, Refused>, D::Error> {
        Ok(Vec::<(OsdId, Refused)>::deserialize(from)?.into_iter().collect())
    }
}
