//! PodDisruptionBudgets of the OSDs: Rook's, as its controller of drains and we write it, and our own.

use std::collections::BTreeSet;

use super::acts::{Done, refuse};
use super::{Effect, World};
use crate::domain::expect;
use crate::domain::inspection::RecordId;
use crate::domain::observation::OsdBudget;
use crate::domain::osd::OsdId;

impl World {
    /// How many OSDs Rook lets a drain take; none where it has no such budget (1.20.6, `reconcilePDBsForOSDs`): it goes while an OSD is
    /// down, by its Deployment, and PGs are not clean, and does not come back before they are.
    pub(super) fn budget_of_rook(&self) -> Option<u32> {
        let is_up = |osd: &OsdId| self.ceph.slots.get(osd).is_some_and(|slot| slot.up);
        let down = !self.kube.daemons.keys().all(is_up);
        match (down, self.is_whole()) {
            (true, false) => None,
            (false, false) => self.kube.osd_budget.as_ref().map(|_| 1),
            (_, true) => Some(1),
        }
    }

    /// Where the budget is not there, it looks again soon.
    pub(super) fn rook_budgets(&mut self) {
        let generation = self.kube.osd_budget.as_ref().map_or(0, |budget| budget.generation);
        match self.budget_of_rook() {
            Some(max_unavailable) => self.write_budget(max_unavailable, generation + 1),
            None => self.kube.osd_budget = None,
        }
        self.drains_due = self.kube.osd_budget.is_none();
    }

    /// The OSDs' PodDisruptionBudget is written, or made: with a uid that none had before.
    pub(super) fn write_budget(&mut self, max_unavailable: u32, generation: i64) {
        let left_out = BTreeSet::new();
        let found = self.kube.osd_budget.as_ref().map(|budget| budget.uid.clone());
        self.budgets += u32::from(found.is_none());
        let uid = found.unwrap_or_else(|| format!("rooks-{}", self.budgets));
        self.kube.osd_budget = Some(OsdBudget { max_unavailable, left_out, uid, generation });
    }

    pub(super) fn limit_drains(&mut self, expected: (&str, i64), max_unavailable: u32) -> Done {
        let Some(budget) = &self.kube.osd_budget else { return refuse("no budget is there") };
        if !expect::unchanged_operator((&budget.uid, budget.generation), expected) {
            return refuse("the budget changed since it was looked at");
        }
        let generation = budget.generation + i64::from(budget.max_unavailable != max_unavailable);
        self.write_budget(max_unavailable, generation);
        // One that lets an OSD be evicted, and by its old status none: Rook's controller waits for that.
        self.drains_due |= max_unavailable == 1 && self.kube.running_operator().is_some();
        Ok(vec![Effect::Budget(max_unavailable)])
    }

    pub(super) fn make_budget(&mut self, osd: OsdId, record: &RecordId) -> Done {
        self.expect_open(osd, record)?;
        if self.refuses_budgets {
            self.kube.budget_refused = Some("by a policy".to_owned());
            return refuse("a policy forbids it");
        }
        if self.kube.own_budget.is_none() {
            self.budgets += 1;
            self.kube.own_budget = Some(self.budgets.to_string());
        }
        Ok(vec![Effect::Small(osd)])
    }

    pub(super) fn drop_budget(&mut self, uid: &str) -> Done {
        if self.kube.own_budget.as_deref().is_some_and(|found| found != uid) {
            return refuse("our budget was made anew");
        }
        self.kube.own_budget = None;
        Ok(Vec::new())
    }
}
