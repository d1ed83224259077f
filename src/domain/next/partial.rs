//! What may be decided by an observation of which a part is kept from an earlier one.

use super::Next;
use crate::domain::guard::{Guard, passes};
use crate::domain::ledger::Ledger;

impl Next {
    /// Returns whether the decision stands if it was taken by a partial observation.
    ///
    /// Parts of such an observation are old, so a run only waits by it.
    pub fn stands_by_parts(&self) -> bool {
        passes(Guard::OnlyWaitsByParts, matches!(self, Self::Wait(_)))
    }

    /// Returns whether the decision stands if Deployments and pods of OSDs without a record may be old.
    ///
    /// An act on such an OSD, an end and a halt depend on them. So does a save that opens a record, but its
    /// OSD is read before the next step.
    pub fn stands_by_list(&self, ledger: &Ledger) -> bool {
        match self {
            Self::Wait(_) | Self::Save { .. } => true,
            Self::Do(act) => act.osd().is_none_or(|osd| ledger.records.contains_key(&osd)),
            Self::Finished(_) | Self::Halt(_) => false,
        }
    }
}
