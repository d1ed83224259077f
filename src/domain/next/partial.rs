//! What may be decided by a partial observation.

use super::Next;
use crate::domain::guard::{Guard, passes};

impl Next {
    /// Returns whether the decision stands if it was taken by a partial observation.
    ///
    /// Parts of such an observation are old, so a run only waits by it.
    pub fn stands_by_parts(&self) -> bool {
        passes(Guard::OnlyWaitsByParts, matches!(self, Self::Wait(_)))
    }
}
