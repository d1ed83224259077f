//! Saves of a record: its milestones, and its quarantine.

use super::Step;
use crate::domain::ledger::{Quarantine, Record};
use crate::domain::next::{Next, Saving};
use crate::domain::phase;

impl Step<'_> {
    pub(super) fn save(&self, why: Saving, change: impl FnOnce(&mut Record)) -> Next {
        let mut record = self.record.clone();
        change(&mut record);
        record.note_milestone(why.code(), self.view.seen.at);
        Next::Save { ledger: self.view.ledger.with(record), osd: Some(self.record.osd), why }
    }

    pub(super) fn quarantine(&self, why: String) -> Next {
        let since = self.view.seen.at;
        // A person may ask to remove what was registered last.
        let issued = phase::issued_of(self.record, self.view.seen);
        self.save(Saving::Quarantine { why: why.clone() }, |record| {
            record.issued = issued;
            record.quarantine = Some(Quarantine { why, since });
        })
    }
}
