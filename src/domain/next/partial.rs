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

    /// Returns whether what is decided compares the ledger's version with the stored one, and otherwise does
    /// nothing.
    pub fn compares_ledger(&self) -> bool {
        match self {
            Self::Save { .. } | Self::Do(_) => true,
            Self::Wait(_) | Self::Finished(_) | Self::Halt(_) => false,
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::act::{Act, KubeAct};
    use crate::domain::ledger::Record;
    use crate::domain::next::{Halt, Summary};
    use crate::domain::plan;
    use crate::domain::policy::Policy;
    use crate::sim::example;

    #[test]
    fn end_and_act_on_an_osd_without_a_record_need_a_list_of_all() {
        let (policy, empty) = (Policy { confirmed: true, ..Policy::default() }, Ledger::default());
        let seen = example::replicated().observe(|seen| plan::questions(&policy, &empty, seen));
        let recorded = plan::plan(&policy, &empty, &seen);
        assert!(recorded.stands_by_list(&empty), "a save");
        let Next::Save { ledger, .. } = recorded else { panic!("{recorded:?}") };
        let Record { osd, id, .. } = ledger.records.values().next().unwrap().clone();
        let restart = Next::Do(Act::Kube(KubeAct::Restart { osd, record: id }));
        assert!(restart.stands_by_list(&ledger) && !restart.stands_by_list(&empty));
        assert!(!Next::Finished(Summary::default()).stands_by_list(&ledger));
        assert!(!Next::Halt(Halt::CrashLoop { job: String::new(), starts: 5 }).stands_by_list(&ledger));
    }
}
