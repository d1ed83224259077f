//! OSDs whose last acts failed: the acts of other OSDs are tried first.

use std::collections::BTreeSet;

use crate::domain::osd::OsdId;

/// OSDs whose last acts this runner tried in vain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct FailedActs(BTreeSet<OsdId>);

impl FailedActs {
    /// Notes the result of an act.
    ///
    /// If it is the second failure of the OSD, all had their turn: the next round begins with the others.
    pub fn note(&mut self, osd: Option<OsdId>, is_done: bool) {
        let Some(osd) = osd else { return };
        if is_done {
            self.0.remove(&osd);
        } else if !self.0.insert(osd) {
            self.0 = [osd].into();
        }
    }

    /// Returns whether the last act of an OSD failed.
    pub fn contains(&self, osd: OsdId) -> bool {
        self.0.contains(&osd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_osd_has_a_turn_after_acts_that_failed() {
        let mut failed = FailedActs::default();
        let mut tried = Vec::new();
        for _ in 0..6 {
            let next = (0..3).map(OsdId).find(|osd| !failed.contains(*osd)).unwrap_or(OsdId(0));
            failed.note(Some(next), false);
            tried.push(next.0);
        }
        assert_eq!(tried, [0, 1, 2, 0, 1, 2]);
        failed.note(Some(OsdId(1)), true);
        failed.note(None, true);
        assert_eq!(failed, FailedActs([OsdId(0), OsdId(2)].into()), "others are tried when osd.1 waits");
    }
}
