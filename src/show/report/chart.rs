//! Bars of the page: those of all OSDs over the whole time, and the stages of each OSD.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::domain::history::{Account, Row, Sums};
use crate::show::report::words::moment;

/// Width of a drawing in its own units, to which bars are placed.
const WIDTH: i64 = 1000;

/// Narrowest bar: a pixel of a phone.
const LEAST: i64 = 4;

/// Most rows of the overview: more would no longer fit on a screen or on paper.
const ROWS: usize = 60;

/// Height of a row in pixels, and of its bars.
const HEIGHTS: (usize, usize) = (18, 12);

/// A bar.
pub(super) struct Bar {
    pub(super) class: &'static str,
    pub(super) x: i64,
    pub(super) width: i64,
    pub(super) y: usize,
}

/// Bars of all OSDs over the whole time.
pub(super) struct Overview {
    pub(super) bars: Vec<Bar>,
    /// Names of the rows.
    pub(super) names: Vec<String>,
    /// Meaning of a row.
    pub(super) row_of: &'static str,
    pub(super) bar_height: usize,
    pub(super) height: usize,
    pub(super) from: String,
    pub(super) to: String,
}

impl Overview {
    /// Draws one row an OSD in the order in which they began; one row a node if there are too many OSDs.
    pub(super) fn of(account: &Account, sums: &Sums, now: DateTime<Utc>) -> Option<Self> {
        let (from, to) = sums.period?;
        let (row_height, bar_height) = HEIGHTS;
        let of_osd = |row: &Row| row.entry.key.osd.to_string();
        let of_node = |row: &Row| row.entry.node.to_string();
        let all = |_: &Row| "all".to_owned();
        let (row_of, names) = [("an OSD", rows(account, of_osd)), ("a node", rows(account, of_node))]
            .into_iter()
            .find(|(_, names)| names.iter().all(|(_, at)| *at < ROWS))
            .unwrap_or_else(|| ("for all OSDs", rows(account, all)));
        let bars = account.rows.iter().zip(&names).filter_map(|(row, (_, at))| {
            let ended = row.entry.ended_at().unwrap_or(now);
            let (x, width) = place(row.entry.began_at()?, ended, (from, to));
            Some(Bar { class: row.entry.outcome.code(), x, width, y: at * row_height })
        });
        let bars = bars.collect();
        let names: BTreeMap<usize, String> = names.into_iter().map(|(name, at)| (at, name)).collect();
        Some(Self {
            bars,
            height: names.len() * row_height,
            names: names.into_values().collect(),
            row_of,
            bar_height,
            from: moment(from),
            to: moment(to),
        })
    }
}

/// Returns name and number of the row of each migration, numbered in the order in which they began.
fn rows(account: &Account, name: impl Fn(&Row) -> String) -> Vec<(String, usize)> {
    let mut known = BTreeMap::new();
    let number = |row| {
        let (name, next) = (name(row), known.len());
        (name.clone(), *known.entry(name).or_insert(next))
    };
    account.rows.iter().map(number).collect()
}

/// Draws the stages of an OSD, over its own time.
pub(super) fn stages(row: &Row) -> Vec<Bar> {
    let Some(whole) = row.spans.first().zip(row.spans.last()).map(|(first, last)| (first.from, last.to))
    else {
        return Vec::new();
    };
    let bar = |span: &crate::domain::history::Span| {
        let (x, width) = place(span.from, span.to, whole);
        Bar { class: span.stage.code(), x, width, y: 0 }
    };
    row.spans.iter().map(bar).collect()
}

/// Returns place and width of a time in a drawing, never outside, and wide enough to be seen on a phone.
fn place(
    from: DateTime<Utc>,
    to: DateTime<Utc>,
    (first, last): (DateTime<Utc>, DateTime<Utc>),
) -> (i64, i64) {
    let whole = (last - first).num_seconds().max(1);
    let at = |time: DateTime<Utc>| ((time - first).num_seconds() * WIDTH / whole).clamp(0, WIDTH);
    let x = at(from).min(WIDTH - LEAST);
    (x, (at(to) - x).max(LEAST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_is_visible_and_inside_however_short_it_is() {
        let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
        let whole = (at(0), at(100_000));
        assert_eq!(place(at(0), at(100_000), whole), (0, 1000));
        assert_eq!(place(at(50_000), at(50_001), whole), (500, 4));
        assert_eq!(place(at(100_000), at(100_000), whole), (996, 4));
        assert_eq!(place(at(7), at(7), (at(7), at(7))), (0, 4));
    }
}
