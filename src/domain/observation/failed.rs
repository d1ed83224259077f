//! OSDs whose last acts failed: the acts of other OSDs are tried first.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::osd::OsdId;

/// OSDs whose last acts this runner tried in vain, and why those were denied that were.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct FailedActs {
    osds: BTreeSet<OsdId>,
    denied: Option<(Option<OsdId>, String)>,
    /// By OSD whose last act was denied: why.
    denied_last: BTreeMap<OsdId, String>,
}

impl FailedActs {
    /// Notes the result of an act.
    ///
    /// If it is the second failure of the OSD, all had their turn: the next round begins with the others.
    /// `denied`: the answer if a right or a policy is in the way.
    pub fn note(&mut self, osd: Option<OsdId>, is_done: bool, denied: Option<String>) {
        self.denied = denied.clone().map(|why| (osd, why));
        let Some(osd) = osd else { return };
        match denied {
            Some(why) => self.denied_last.insert(osd, why),
            None => self.denied_last.remove(&osd),
        };
        if is_done {
            self.osds.remove(&osd);
        } else if !self.osds.insert(osd) {
            self.osds = [osd].into();
        }
    }

    /// Returns why the last act was denied, if it was, and was for this OSD or for none: waiting alone does
    /// not help.
    pub fn denied(&self, osd: OsdId) -> Option<&str> {
        let (of, why) = self.denied.as_ref()?;
        of.is_none_or(|of| of == osd).then_some(why)
    }

    /// Returns why the last act of this OSD was denied, if it was, whatever was tried for others since.
    pub fn denied_last(&self, osd: OsdId) -> Option<&str> {
        self.denied_last.get(&osd).map(String::as_str)
    }

    /// Returns the OSDs whose last acts were denied, and why.
    pub fn all_denied(&self) -> impl Iterator<Item = (OsdId, &str)> {
        self.denied_last.iter().map(|(osd, why)| (*osd, why.as_str()))
    }

    /// Returns whether the last act of an OSD failed.
    pub fn contains(&self, osd: OsdId) -> bool {
        self.osds.contains(&osd)
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
            failed.note(Some(next), false, None);
            tried.push(next.0);
        }
        assert_eq!(tried, [0, 1, 2, 0, 1, 2]);
        failed.note(Some(OsdId(1)), true, None);
        failed.note(None, true, None);
        assert_eq!(failed.osds, [OsdId(0), OsdId(2)].into(), "others are tried when osd.1 waits");
        failed.note(None, false, Some("a policy".to_owned()));
        assert_eq!(failed.denied(OsdId(7)), Some("a policy"));
        failed.note(Some(OsdId(0)), false, Some("a policy".to_owned()));
        assert_eq!((failed.denied(OsdId(0)), failed.denied(OsdId(7))), (Some("a policy"), None));
        failed.note(Some(OsdId(7)), true, None);
        assert_eq!((failed.denied(OsdId(0)), failed.denied_last(OsdId(0))), (None, Some("a policy")));
        assert_eq!(failed.all_denied().collect::<Vec<_>>(), [(OsdId(0), "a policy")]);
        failed.note(Some(OsdId(0)), true, None);
        assert_eq!((failed.denied(OsdId(0)), failed.denied_last(OsdId(0))), (None, None));
    }
}
