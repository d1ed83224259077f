//! Complete statistics of all PGs: as a table, or as JSON if this mgr's table is not the known one
//! (`docs/development/adr/0049-pg-statistics-as-a-table.md`).

use std::collections::BTreeMap;

use crate::ceph::error::CephError;
use crate::domain::observation::Pg;
use crate::domain::osd::PgId;
use crate::memory::Format;

/// Statistics of all PGs by their ids.
pub(super) type All = BTreeMap<PgId, Pg>;

/// Source of the complete statistics: a session.
pub(super) trait Statistics {
    /// Reads the table; `None` if it is not the known one.
    async fn table(&self) -> Result<Option<All>, CephError>;
    /// Reads JSON.
    async fn json(&self) -> Result<All, CephError>;
    /// Warns if the pod may not use the memory that so many PGs in this format need.
    fn warn_if_short(&self, pgs: usize, format: Format);
}

/// Reads the complete statistics.
///
/// `known` is the number of PGs whose states were just read, 0 while the mgr is not ready: the table does not
/// say so.
pub(super) async fn all_pgs(known: usize, of: &impl Statistics) -> Result<All, CephError> {
    if known == 0 {
        return Ok(All::new());
    }
    if let Some(pgs) = of.table().await?.filter(|pgs| pgs.len() == known) {
        return Ok(pgs);
    }
    // Before the answer is there: the kernel may kill the process because of it.
    of.warn_if_short(known, Format::Json);
    of.json().await
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::ceph::{pg_dump, samples};

    /// A mgr with this table.
    struct Mgr {
        table: Option<All>,
        asked: RefCell<Vec<String>>,
    }

    impl Statistics for Mgr {
        async fn table(&self) -> Result<Option<All>, CephError> {
            self.asked.borrow_mut().push("table".to_owned());
            Ok(self.table.clone())
        }

        async fn json(&self) -> Result<All, CephError> {
            self.asked.borrow_mut().push("json".to_owned());
            Ok(sample())
        }

        fn warn_if_short(&self, pgs: usize, format: Format) {
            self.asked.borrow_mut().push(format!("memory for {pgs} PGs as {format:?}"));
        }
    }

    fn sample() -> All {
        pg_dump::parse(&samples::answer("16.2.15", "pg-dump")).unwrap()
    }

    #[tokio::test]
    async fn memory_is_checked_for_json_before_it_is_read() {
        let known = sample().len();
        let asked = async |table: Option<All>, known: usize| {
            let mgr = Mgr { table, asked: RefCell::default() };
            let read = all_pgs(known, &mgr).await.unwrap().len();
            (read, mgr.asked.into_inner())
        };
        assert_eq!(asked(Some(sample()), known).await, (known, vec!["table".to_owned()]));
        let by_json =
            ["table".to_owned(), format!("memory for {known} PGs as Json"), "json".to_owned()].to_vec();
        let mut short = sample();
        short.pop_first();
        for other in [None, Some(short)] {
            assert_eq!(asked(other, known).await, (known, by_json.clone()));
        }
        assert_eq!(asked(Some(sample()), 0).await, (0, Vec::new()), "the mgr is not ready");
    }
}
