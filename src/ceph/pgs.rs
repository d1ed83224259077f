//! Reading of PGs: no more than what may have changed since the observation before. What is kept stands in
//! `pg_statistics.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use rustix::io::Errno;

use crate::ceph::all_pgs::{All, Statistics, all_pgs};
use crate::ceph::error::CephError;
use crate::ceph::pg_dump::Brief;
use crate::ceph::pg_ls_by_osd::{Lists, Unread};
use crate::ceph::pg_statistics::{Kept, Missing};
use crate::ceph::session::{Ceph, lock};
use crate::ceph::{pg_dump, pg_ls_by_osd, pg_stat, pg_table};
use crate::domain::observation::Slot;
use crate::domain::osd::{OsdId, PgId};
use crate::domain::shared::Shared;
use crate::memory::{self, Format};

impl Ceph {
    /// Reads the statistics of all PGs, as far as they are not kept from the observation before.
    pub(super) async fn pgs(&self, slots: &BTreeMap<OsdId, Slot>) -> Result<Shared<All>, CephError> {
        let kept = self.kept_pgs();
        self.by_states(kept, slots).await
    }

    /// Reads of the PGs what changes while a run waits: those that are not clean, and those that became
    /// clean.
    pub(super) async fn pgs_partly(&self, slots: &BTreeMap<OsdId, Slot>) -> Result<Shared<All>, CephError> {
        match self.kept_pgs() {
            None => self.by_states(None, slots).await,
            Some(mut kept) => {
                let suffices = self.by_counts(&mut kept, slots).await?;
                if suffices { Ok(self.keep(kept)) } else { self.by_states(Some(kept), slots).await }
            }
        }
    }

    /// Takes the statistics that are kept: an observation that fails keeps nothing.
    fn kept_pgs(&self) -> Option<Kept> {
        lock(&self.kept_pgs).take().filter(|kept| !kept.is_old())
    }

    fn keep(&self, kept: Kept) -> Shared<All> {
        let pgs = kept.pgs();
        *lock(&self.kept_pgs) = Some(kept);
        pgs
    }

    /// Reads the number of PGs by state, those that are not clean, and those that became clean.
    ///
    /// Returns false if that does not suffice.
    async fn by_counts(&self, kept: &mut Kept, slots: &BTreeMap<OsdId, Slot>) -> Result<bool, CephError> {
        if self.lacks_pg_stat.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let counts = match self.read(pg_stat::command(), pg_stat::parse).await {
            // A user that a person created for an earlier version has no such capability.
            Err(error) if error.errno() == Some(Errno::ACCESS) => {
                self.lacks_pg_stat.store(true, Ordering::Relaxed);
                return Ok(false);
            }
            counts => counts?,
        };
        let Some(counts) = counts.filter(|counts| kept.may_suffice(counts, slots)) else { return Ok(false) };
        let unclean = self.in_states(&counts.words).await?;
        let Some(unread) = kept.became_clean(&counts, &unclean, slots) else { return Ok(false) };
        let Some(clean) = self.on_osds(&unread).await else { return Ok(false) };
        Ok(kept.takes(unclean, clean, slots))
    }

    /// Reads states and OSDs of all PGs, and the statistics of those that are not clean, or of all of them.
    async fn by_states(
        &self,
        kept: Option<Kept>,
        slots: &BTreeMap<OsdId, Slot>,
    ) -> Result<Shared<All>, CephError> {
        let (known, renewed) = {
            let now = self.read(pg_dump::brief(), pg_dump::parse_brief).await?;
            let known = now.len();
            let renewed = match kept {
                Some(kept) => self.renewed(kept, now, slots).await?,
                None => None,
            };
            (known, renewed)
        };
        let kept = match renewed {
            Some(kept) => kept,
            None => Kept::new(all_pgs(known, self).await?.into(), slots),
        };
        Ok(self.keep(kept))
    }

    /// Reads what has changed in the statistics; `None` if they have to be read as a whole.
    async fn renewed(
        &self,
        kept: Kept,
        now: BTreeMap<PgId, Brief>,
        slots: &BTreeMap<OsdId, Slot>,
    ) -> Result<Option<Kept>, CephError> {
        let unclean = match kept.missing(&now) {
            Missing::All => return Ok(None),
            Missing::InStates(words) => self.in_states(&words).await?,
        };
        let Some((kept, unread)) = kept.renewed(now, unclean, slots) else { return Ok(None) };
        Ok(self.on_osds(&unread).await.map(|read| kept.with(read, slots)))
    }

    /// Reads PGs from the lists of their OSDs; `None` if not all of them are there.
    ///
    /// No error of a list is one of the observation: all PGs are read then, which also shows if the mgr does
    /// not answer at all.
    async fn on_osds(&self, unread: &Unread) -> Option<All> {
        if unread.is_empty() {
            return Some(All::new());
        }
        if self.lacks_pg_ls_by_osd.load(Ordering::Relaxed) {
            return None;
        }
        match unread.read(self).await {
            Ok(read) => read,
            Err(error) => {
                let lacks = error.errno() == Some(Errno::ACCESS);
                self.lacks_pg_ls_by_osd.fetch_or(lacks, Ordering::Relaxed);
                None
            }
        }
    }

    /// Reads the statistics of the PGs whose states have one of these words; of none if there are none.
    async fn in_states(&self, words: &BTreeSet<String>) -> Result<All, CephError> {
        if words.is_empty() {
            return Ok(All::new());
        }
        self.read(pg_dump::in_states(words), pg_dump::parse).await
    }
}

impl Lists for Ceph {
    async fn list(&self, osd: OsdId) -> Result<All, CephError> {
        // An OSD that is not up is `EAGAIN`, which does not pass in the time of a repetition.
        self.read_once(pg_ls_by_osd::command(osd), pg_dump::parse).await
    }
}

impl Statistics for Ceph {
    async fn table(&self) -> Result<Option<All>, CephError> {
        Ok(pg_table::parse(&self.answer(&pg_table::command()).await?))
    }

    async fn json(&self) -> Result<All, CephError> {
        self.read(pg_dump::all(), pg_dump::parse).await
    }

    fn warn_if_short(&self, pgs: usize, format: Format) {
        memory::warn_if_short(pgs as u64, format, &self.namespace);
    }
}
