//! The iteration before, as far as it matters for the next one: after a save, its observation is used again
//! (`docs/development/adr/0048-one-observation-for-saves-and-an-act.md`).

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};

use crate::domain::ledger::Ledger;
use crate::domain::observation::Observation;
use crate::domain::osd::OsdId;

/// Age up to which the observation of a save is used by the next iteration.
///
/// Saving and loading the ledger takes a tenth of this, unless the API server is slow.
const SAME: TimeDelta = TimeDelta::seconds(5);

/// Ledger that was saved, and the observation by which it was.
pub(crate) struct Save {
    ledger: Ledger,
    seen: Observation,
}

impl Save {
    /// Returns the save of a ledger for the next iteration; none if a stop or a destroy may follow from it,
    /// or if it opened a record.
    ///
    /// A stop and a destroy are decided by an observation that began after the save. A command that withdraws
    /// something and then reads the ledger (`keep`) sees the save, or the run sees what it withdrew.
    /// Deployment and pods of an OSD without a record may be as they were listed before
    /// (`Next::stands_by_list`).
    pub(crate) fn of(former: &Ledger, ledger: Ledger, seen: Observation) -> Option<Box<Self>> {
        let goes_further = !past_the_intent(&ledger).is_subset(&past_the_intent(former));
        let opens = ledger.records.keys().any(|osd| !former.records.contains_key(osd));
        (!goes_further && !opens).then(|| Box::new(Self { ledger, seen }))
    }
}

/// Returns the OSDs that a run intends to stop, with whether they are down by it.
fn past_the_intent(ledger: &Ledger) -> BTreeSet<(OsdId, bool)> {
    let of = ledger.in_flight().filter(|record| record.stop_intended_at.is_some() || record.is_committed());
    of.map(|record| (record.osd, record.is_committed())).collect()
}

/// The iteration before.
pub(crate) enum Before {
    /// It saved, with what this iteration may use again.
    Saved(Option<Box<Save>>),
    Waited,
    Acted,
    /// It failed, another client had saved, or there is none.
    Other,
}

impl Before {
    /// Returns whether the ledger may be the one that was loaded or saved before.
    ///
    /// Each act and each save compares its version. What compares nothing needs the stored one: a wait that
    /// a complete observation decides, an end and a halt.
    pub(crate) fn keeps_ledger(&self) -> bool {
        match self {
            Self::Saved(_) | Self::Waited | Self::Acted => true,
            Self::Other => false,
        }
    }

    /// Returns the observation of the save before, if the ledger is still the saved one.
    pub(crate) fn observation(self, ledger: &Ledger, now: DateTime<Utc>) -> Option<Observation> {
        let Self::Saved(Some(save)) = self else { return None };
        let is_same = save.ledger == *ledger && (TimeDelta::zero()..SAME).contains(&(now - save.seen.at));
        is_same.then_some(save.seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ledger::Record;
    use crate::domain::next::Next;
    use crate::domain::plan;
    use crate::domain::policy::Policy;
    use crate::sim::example;

    #[test]
    fn observation_of_a_save_is_used_again_only_with_its_ledger() {
        let seen = example::replicated().observe(|_| plan::Questions::default());
        let of = |ledger: Ledger, seconds: i64| {
            let save = Save::of(&Ledger::default(), Ledger::default(), seen.clone()).unwrap();
            Before::Saved(Some(save)).observation(&ledger, seen.at + TimeDelta::seconds(seconds)).is_some()
        };
        let mut other = Ledger::default();
        other.run.serial = 1;
        assert!(of(Ledger::default(), 0) && of(Ledger::default(), 4));
        assert!(!of(other, 0), "another client saved");
        assert!(
            !of(Ledger::default(), 5) && !of(Ledger::default(), -1),
            "too old, or the clock was set back"
        );
        for before in [Before::Saved(None), Before::Waited, Before::Acted, Before::Other] {
            assert!(before.observation(&Ledger::default(), seen.at).is_none());
        }
    }

    #[test]
    fn new_record_stop_and_destroy_need_an_observation_after_it() {
        let (policy, empty) = (Policy { confirmed: true, ..Policy::default() }, Ledger::default());
        let seen = example::replicated().observe(|seen| plan::questions(&policy, &empty, seen));
        let next = plan::plan(&policy, &empty, &seen);
        let Next::Save { ledger: recorded, .. } = next else { panic!("{next:?}") };
        let record = recorded.records.values().next().unwrap();
        let intended = recorded.with(Record { stop_intended_at: Some(seen.at), ..record.clone() });
        let down = recorded.with(Record {
            stop_intended_at: Some(seen.at),
            down_since: Some(seen.at),
            ..record.clone()
        });
        let is_kept = |former: &Ledger, new: &Ledger| Save::of(former, new.clone(), seen.clone()).is_some();
        assert!(is_kept(&recorded, &recorded) && is_kept(&down, &recorded));
        assert!(!is_kept(&empty, &recorded), "the OSD may be as it was listed before");
        assert!(!is_kept(&recorded, &intended) && !is_kept(&intended, &down));
    }
}
