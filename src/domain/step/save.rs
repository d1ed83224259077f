//! Saves of a record: its milestones, and its quarantine.

use super::Step;
use crate::domain::ledger::{Quarantine, Record, RefusedStep};
use crate::domain::next::{Next, Saving};
use crate::domain::phase;

/// Maximum characters of a quarantine's reason that are stored: an answer of another program may be long.
const WHY: usize = 500;

impl Step<'_> {
    pub(super) fn save(&self, why: Saving, change: impl FnOnce(&mut Record)) -> Next {
        let mut record = self.record.clone();
        change(&mut record);
        record.note_milestone(why.code(), self.view.seen.at);
        // A pool that merges one PG after the other must not begin each limit of the OSD again.
        if matches!(why, Saving::PgsGone { .. }) {
            record.saved_at = self.record.saved_at;
        }
        let mut ledger = self.view.ledger.with(record);
        // Scaled up again, Rook may work.
        if self.view.seen.kube.fenceable_operator().is_none() {
            ledger.run.forget_that_rook_hangs();
        }
        Next::Save { ledger, osd: Some(self.record.osd), why }
    }

    pub(super) fn quarantine(&self, why: String) -> Next {
        let since = self.view.seen.at;
        // A person may ask to remove what was registered last.
        let issued = phase::issued_of(self.record, self.view.seen);
        let stored = shortened(&why);
        let saving = Saving::Quarantine { why };
        let next = self.save(saving, |record| {
            record.issued = issued;
            record.quarantine = Some(Quarantine { why: stored, since });
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

/// Returns the text as it is stored; the log of the run has all of it.
fn shortened(why: &str) -> String {
    let mut stored: String = why.chars().take(WHY).collect();
    if stored.len() < why.len() {
        stored.push_str("...");
    }
    stored
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reason_of_a_quarantine_is_stored_up_to_a_limit() {
        assert_eq!(shortened(&"\u{e4}".repeat(WHY)), "\u{e4}".repeat(WHY));
        assert_eq!(shortened(&"\u{e4}".repeat(WHY + 1)), format!("{}...", "\u{e4}".repeat(WHY)));
    }
}
