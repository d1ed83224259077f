//! What the iteration before did, and what the next one has of it: after a save, the observation
//! (`docs/development/adr/0048-one-observation-for-saves-and-an-act.md`).

use chrono::{DateTime, TimeDelta, Utc};

use crate::domain::ledger::Ledger;
use crate::domain::observation::Observation;

/// Age up to which the observation of a save is used by the next iteration.
///
/// Saving and loading the ledger takes a tenth of this, unless the API server is slow.
const SAME: TimeDelta = TimeDelta::seconds(5);

/// Ledger that was saved, and the observation by which it was.
pub(crate) struct Save {
    pub(crate) ledger: Ledger,
    pub(crate) seen: Observation,
}

/// What the iteration before did.
pub(crate) enum Before {
    Saved(Box<Save>),
    Waited,
    /// It acted, failed, or there is none.
    Other,
}

impl Before {
    /// Returns the observation of the save before, if the ledger is still the saved one.
    pub(crate) fn observation(self, ledger: &Ledger, now: DateTime<Utc>) -> Option<Observation> {
        let Self::Saved(save) = self else { return None };
        let is_same = save.ledger == *ledger && (TimeDelta::zero()..SAME).contains(&(now - save.seen.at));
        is_same.then_some(save.seen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::plan;
    use crate::sim::example;

    #[test]
    fn observation_of_a_save_is_used_again_only_with_its_ledger() {
        let seen = example::replicated().observe(|_| plan::Questions::default());
        let of = |ledger: Ledger, seconds: i64| {
            let before = Before::Saved(Box::new(Save { ledger: Ledger::default(), seen: seen.clone() }));
            before.observation(&ledger, seen.at + TimeDelta::seconds(seconds)).is_some()
        };
        let mut other = Ledger::default();
        other.run.serial = 1;
        assert!(of(Ledger::default(), 0) && of(Ledger::default(), 4));
        assert!(!of(other, 0), "another client saved");
        assert!(
            !of(Ledger::default(), 5) && !of(Ledger::default(), -1),
            "too old, or the clock was set back"
        );
        let other = Before::Waited.observation(&Ledger::default(), seen.at);
        assert!(other.is_none() && Before::Other.observation(&Ledger::default(), seen.at).is_none());
    }
}
