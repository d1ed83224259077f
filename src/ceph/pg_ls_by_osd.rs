//! `ceph pg ls-by-osd`: complete statistics of the PGs that an OSD serves, queried from the mgr.
//!
//! The answer has the form of that to `pg ls`. It has the PGs with the OSD in their acting set
//! (`pg_stat_t::is_acting_osd`), whatever their state. If the OSD is not up in the mgr's osdmap, the answer
//! is `EAGAIN` (`process_pg_map_command` in Ceph's PGMap.cc, 16 to 20).

use std::collections::{BTreeMap, BTreeSet};

use crate::ceph::all_pgs::All;
use crate::ceph::command::Command;
use crate::ceph::error::CephError;
use crate::domain::observation::Slot;
use crate::domain::osd::{OsdId, PgId};

/// PGs whose statistics are still to be read, and OSDs that serve them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Unread {
    osds: BTreeSet<OsdId>,
    pgs: BTreeSet<PgId>,
}

/// Source of the lists: a session.
pub(super) trait Lists {
    /// Reads the PGs that an OSD serves.
    async fn list(&self, osd: OsdId) -> Result<All, CephError>;
}

/// Returns the query for the complete statistics of the PGs that an OSD serves.
pub(super) fn command(osd: OsdId) -> Command {
    Command::mgr("pg ls-by-osd").with("osd", osd.0)
}

impl Unread {
    /// Chooses OSDs that are up, so that each PG should be on one of them; `None` if that takes more than
    /// `most` OSDs, or if no OSD of a PG is up.
    ///
    /// `pgs` are the PGs with the OSDs that may serve them. OSDs with most of the PGs come first.
    pub(super) fn new(
        pgs: BTreeMap<PgId, &BTreeSet<OsdId>>,
        slots: &BTreeMap<OsdId, Slot>,
        most: usize,
    ) -> Option<Self> {
        let is_up = |osd: &&OsdId| slots.get(osd).is_some_and(|slot| slot.up);
        let mut osds = BTreeSet::new();
        let mut left: Vec<_> = pgs.values().copied().collect();
        while !left.is_empty() {
            let mut number_on: BTreeMap<OsdId, usize> = BTreeMap::new();
            for osd in left.iter().copied().flatten().filter(is_up) {
                *number_on.entry(*osd).or_default() += 1;
            }
            let (osd, _) = number_on.into_iter().max_by_key(|(_, number)| *number)?;
            left.retain(|candidates| !candidates.contains(&osd));
            osds.insert(osd);
            if osds.len() > most {
                return None;
            }
        }
        Some(Self { osds, pgs: pgs.into_keys().collect() })
    }

    /// Returns whether nothing is to be read.
    pub(super) fn is_empty(&self) -> bool {
        self.pgs.is_empty()
    }

    /// Reads the PGs; `None` if one of them is in no list.
    pub(super) async fn read(&self, of: &impl Lists) -> Result<Option<All>, CephError> {
        let mut read = All::new();
        for osd in &self.osds {
            let list = of.list(*osd).await?;
            read.extend(list.into_iter().filter(|(id, _)| self.pgs.contains(id)));
        }
        Ok((read.len() == self.pgs.len()).then_some(read))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use rustix::io::Errno;

    use super::*;
    use crate::ceph::{pg_dump, samples};

    fn osds<const N: usize>(ids: [u32; N]) -> BTreeSet<OsdId> {
        ids.map(OsdId).into()
    }

    fn slots(down: &[u32]) -> BTreeMap<OsdId, Slot> {
        let slot = |osd: u32| Slot {
            up: !down.contains(&osd),
            ..crate::ceph::osd_dump::tests::fine().slots[&OsdId(1)].clone()
        };
        (0..9).map(|osd| (OsdId(osd), slot(osd))).collect()
    }

    /// Returns the OSDs to ask for PGs on these OSDs, two of them at most.
    fn chosen(pgs: &[BTreeSet<OsdId>], down: &[u32]) -> Option<BTreeSet<OsdId>> {
        let pgs = (0..).zip(pgs).map(|(number, on)| (PgId { pool: 1, number }, on)).collect();
        Unread::new(pgs, &slots(down), 2).map(|unread| unread.osds)
    }

    #[test]
    fn osd_query_has_the_id_as_a_number() {
        let sent = command(OsdId(3)).to_c_string().into_string().unwrap();
        assert_eq!(sent, r#"{"format":"json","osd":3,"prefix":"pg ls-by-osd"}"#);
    }

    #[test]
    fn few_osds_that_are_up_are_asked_for_all_unread_pgs() {
        let filling = [osds([0, 5, 1]), osds([5, 2, 3]), osds([4, 5, 6])];
        assert_eq!(chosen(&filling, &[]), Some(osds([5])), "it is on all of them");
        assert_eq!(chosen(&filling[..2], &[5, 1, 3]), Some(osds([0, 2])));
        assert_eq!(chosen(&filling, &[5]), None, "three OSDs");
        assert_eq!(chosen(&filling[..1], &[0, 1, 5]), None, "no OSD is up");
        assert_eq!(chosen(&[osds([5]), BTreeSet::new()], &[]), None, "a PG of which nothing is known");
        assert_eq!(chosen(&[osds([77])], &[]), None, "not in the map");
        assert_eq!(chosen(&[], &[]), Some(BTreeSet::new()));
    }

    /// A mgr with these PGs, which refuses the list of an OSD.
    struct Mgr {
        pgs: All,
        refuses: Option<(OsdId, Errno)>,
        asked: RefCell<Vec<OsdId>>,
    }

    impl Lists for Mgr {
        async fn list(&self, osd: OsdId) -> Result<All, CephError> {
            self.asked.borrow_mut().push(osd);
            if let Some((_, errno)) = self.refuses.filter(|(refused, _)| *refused == osd) {
                return Err(CephError::Read { command: "pg ls-by-osd", errno, said: String::new() });
            }
            Ok(self.pgs.clone().into_iter().filter(|(_, pg)| pg.acting.contains(&osd)).collect())
        }
    }

    #[tokio::test]
    async fn unread_pgs_are_taken_from_the_lists_and_no_others() {
        let all = pg_dump::parse(&samples::answer("16.2.15", "pg-dump")).unwrap();
        let (id, pg) = all.first_key_value().unwrap();
        let asked = *pg.acting.first().unwrap();
        let mut mgr = Mgr { pgs: all.clone(), refuses: None, asked: RefCell::default() };
        assert!(mgr.list(asked).await.unwrap().len() > 1);
        let unread = Unread { osds: [asked].into(), pgs: [*id].into() };
        assert_eq!(unread.read(&mgr).await.unwrap(), Some([(*id, pg.clone())].into()));
        mgr.pgs.remove(id);
        assert_eq!(unread.read(&mgr).await.unwrap(), None, "it is in no list");
        assert_eq!(Unread::default().read(&mgr).await.unwrap(), Some(All::new()));
        assert_eq!(mgr.asked.into_inner(), [asked; 3]);
    }

    #[tokio::test]
    async fn refused_list_ends_the_read() {
        let all = pg_dump::parse(&samples::answer("16.2.15", "pg-dump")).unwrap();
        let unread = Unread { osds: osds([1, 2]), pgs: all.keys().copied().collect() };
        for errno in [Errno::AGAIN, Errno::ACCESS, Errno::INVAL] {
            let refuses = Some((OsdId(1), errno));
            let mgr = Mgr { pgs: all.clone(), refuses, asked: RefCell::default() };
            assert_eq!(unread.read(&mgr).await.unwrap_err().errno(), Some(errno));
            assert_eq!(mgr.asked.into_inner(), [OsdId(1)], "no other OSD is asked");
        }
    }
}
