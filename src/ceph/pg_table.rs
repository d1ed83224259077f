//! `ceph pg dump pgs` as the table for people: what is needed of a PG, in a fifth of the bytes. See
//! `docs/development/adr/0049-pg-statistics-as-a-table.md`.
//!
//! The columns are found by their names. An answer that is not the known table is no answer: then JSON is
//! read. Cells up to that of the acting set are never empty and have no spaces (`dump_pg_stats_plain` in
//! Ceph's PGMap.cc, 16 to 20); the schedule of scrubs, further to the right, has some.

use std::collections::BTreeMap;

use crate::ceph::command::Command;
use crate::ceph::numbers::above_zero;
use crate::ceph::osdmaptool::osds;
use crate::ceph::pg_dump::words;
use crate::domain::observation::Pg;
use crate::domain::osd::{Epoch, PgId};

/// Names of the columns that are read.
const COLUMNS: [&str; 9] =
    ["PG_STAT", "OBJECTS", "DEGRADED", "MISPLACED", "BYTES", "STATE", "REPORTED", "UP", "ACTING"];

/// Returns the query for the complete statistics of all PGs, as a table.
pub(super) fn command() -> Command {
    Command::mgr("pg dump").with("dumpcontents", vec!["pgs"]).with("format", "plain")
}

/// Parses the table; `None` if it is not as expected.
pub(super) fn parse(answer: &[u8]) -> Option<BTreeMap<PgId, Pg>> {
    let mut lines = std::str::from_utf8(answer).ok()?.lines();
    let header: Vec<_> = lines.next()?.split_whitespace().collect();
    let mut at = [0; COLUMNS.len()];
    for (place, name) in at.iter_mut().zip(COLUMNS) {
        *place = header.iter().position(|column| *column == name)?;
    }
    // A list of all of them, from which a map can be collected, would be a tenth more of memory.
    let mut pgs = BTreeMap::new();
    for line in lines.filter(|line| !line.trim().is_empty()) {
        let (id, pg) = pg(line, at)?;
        pgs.insert(id, pg);
    }
    Some(pgs)
}

fn pg(line: &str, at: [usize; COLUMNS.len()]) -> Option<(PgId, Pg)> {
    let last = at.into_iter().max()?;
    let cells: Vec<&str> = line.split_whitespace().take(last + 1).collect();
    let mut found = [""; COLUMNS.len()];
    for (cell, place) in found.iter_mut().zip(at) {
        *cell = cells.get(place)?;
    }
    let [id, objects, degraded, misplaced, bytes, state, reported, up, acting] = found;
    let id: PgId = id.parse().ok()?;
    let pg = Pg {
        pool: id.pool,
        state: words(state),
        up: osds(up)?,
        acting: osds(acting)?,
        reported_epoch: Epoch(reported.split_once(':')?.0.parse().ok()?),
        objects: count(objects)?,
        degraded: count(degraded)?,
        misplaced: count(misplaced)?,
        bytes: count(bytes)?,
    };
    Some((id, pg))
}

/// Returns a counter, which is below zero for a moment while statistics are being corrected.
fn count(cell: &str) -> Option<u64> {
    cell.parse().ok().map(above_zero)
}

#[cfg(test)]
mod tests {
    use osd_migrate_explore::counted::{counted_by_growth, osds};

    use super::*;
    use crate::ceph::{pg_dump, samples};

    fn table(release: &str) -> String {
        samples::text(&format!("ceph/{release}/pg-dump.plain.txt"))
    }

    /// Compares both answers of a mgr, captured one after the other, with PGs that are short of an OSD and a
    /// PG with a hole.
    #[test]
    fn table_of_each_release_has_what_the_json_has() {
        for release in samples::RELEASES {
            let json = pg_dump::parse(&samples::answer(release, "pg-dump.plain")).unwrap();
            let table = parse(table(release).as_bytes()).unwrap();
            assert_eq!(table, json, "{release}");
            let is_short = |pg: &Pg| pg.degraded > 0 && pg.acting.len() < 3;
            assert!(table.values().any(is_short) && table.values().any(|pg| pg.bytes > 0), "{release}");
        }
    }

    #[test]
    fn table_with_other_columns_or_cells_is_no_answer() {
        let text = table("16.2.15");
        let (header, rows) = text.split_once('\n').unwrap();
        let state = parse(text.as_bytes()).unwrap().into_values().next().unwrap().state;
        assert!(!state.is_empty());
        for changed in [
            String::new(),
            "dumped all".to_owned(),
            rows.to_owned(),
            text.replacen("REPORTED", "LAST_REPORT", 1),
            text.replacen(':', " ", 1),
            format!("{header}\n1.x{}", &rows[3..]),
            format!("{text}\nsum 1 2 3"),
        ] {
            assert_eq!(parse(changed.as_bytes()), None, "{changed}");
        }
        assert_eq!(parse(header.as_bytes()), Some(BTreeMap::new()), "no PG");
    }

    #[test]
    fn counter_below_zero_is_zero() {
        assert_eq!((count("-3"), count("7"), count("x")), (Some(0), Some(7), None));
    }

    /// Reads the table of a cluster of the size that `build/growth` asks for, with 11 PGs for each OSD.
    #[test]
    #[ignore = "build/growth runs it"]
    fn growth_of_the_table() {
        let text = table("16.2.15");
        let mut lines = text.lines();
        let (header, row) = (lines.next().unwrap(), lines.next().unwrap());
        let (_, cells) = row.split_once(' ').unwrap();
        let rows = (0..osds() * 11).map(|number| format!("1.{number:x} {cells}"));
        let text = std::iter::once(header.to_owned()).chain(rows).collect::<Vec<_>>().join("\n");
        let pgs = counted_by_growth(|| parse(text.as_bytes()).unwrap());
        assert_eq!(pgs.len(), osds() * 11);
    }
}
