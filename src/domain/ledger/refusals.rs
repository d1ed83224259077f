//! OSDs whose new Deployment the API server does not admit: one run asks once.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Ledger;
use crate::domain::osd::OsdId;

/// Refusals that are kept with their text: with 300 characters each 30 KiB of the 900 KiB that a save may have. A policy that refuses the
/// Deployments of all OSDs says the same of each, and the log has it all.
const WITH_TEXT: usize = 100;

/// Characters of a refusal that are kept.
const TEXT: usize = 300;

/// OSDs whose new Deployment was not admitted, in one run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Refusals {
    /// uid of the run's Job: another one asks again.
    pub job: String,
    /// What the API server said, by OSD. Stored as pairs: a number as a key can't be read back from `run`, which is
    /// flattened.
    #[serde(with = "pairs")]
    pub osds: BTreeMap<OsdId, String>,
}

impl Ledger {
    /// Returns why this run does not begin the OSD again, if its new Deployment was not admitted.
    pub fn not_admitted(&self, osd: OsdId, job: &str) -> Option<&str> {
        let known = self.run.refusals.as_ref().filter(|known| known.job == job)?;
        known.osds.get(&osd).map(String::as_str)
    }

    /// Notes that the new Deployment of an OSD was not admitted. What another run noted is forgotten.
    pub fn note_refusal(&mut self, osd: OsdId, job: &str, why: &str) {
        let known = self.run.refusals.take().filter(|known| known.job == job);
        let mut refusals = known.unwrap_or_else(|| Refusals { job: job.to_owned(), osds: BTreeMap::new() });
        let length = if refusals.osds.len() < WITH_TEXT { TEXT } else { 0 };
        let mut text: String = why.chars().take(length).collect();
        if text.is_empty() {
            "see the log of the run".clone_into(&mut text);
        }
        refusals.osds.insert(osd, text);
        self.run.refusals = Some(refusals);
    }
}

/// A map as a list of pairs.
mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    use crate::domain::osd::OsdId;

    pub(super) fn serialize<S: Serializer>(map: &BTreeMap<OsdId, String>, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(map)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<BTreeMap<OsdId, String>, D::Error> {
        Ok(Vec::<(OsdId, String)>::deserialize(from)?.into_iter().collect())
    }
}
