//! Saves of a record: its milestones, and its quarantine.

use super::Step;
use crate::domain::ledger::{Quarantine, Record, RefusedStep};
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
        let saving = Saving::Quarantine { why: why.clone() };
        let next = self.save(saving, |record| {
            record.issued = issued;
            record.quarantine = Some(Quarantine { why, since });
        });
        // The request for a dead OSD still stands, and the next run tries again.
        let Next::Save { mut ledger, osd, why: saving } = next else { return next };
        let (of_record, run) = (self.record.osd, &self.view.policy.run);
        if let Saving::Quarantine { why } = &saving
            && self.record.is_of_dead()
            && ledger.refused(of_record, run).is_none()
        {
            ledger.note_refusal(of_record, run, RefusedStep::Removal, why);
        }
        Next::Save { ledger, osd, why: saving }
    }
}
