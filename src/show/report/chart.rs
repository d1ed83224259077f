//! Bars of the page: those of all OSDs over the whole time, and the stages of each OSD.

use chrono::{DateTime, Utc};

use crate::domain::history::{Account, Row, Sums};
use crate::show::report::words::moment;

/// Width of a drawing in its own units: bars are placed to a thousandth.
const WIDTH: i64 = 1000;

/// Number of OSDs up to which a row of the overview has its name.
const NAMED: usize = 60;

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
    /// Names of the rows with the height of their base lines; none if the rows are too narrow.
    pub(super) names: Vec<(String, usize)>,
    pub(super) bar_height: usize,
    pub(super) height: usize,
    pub(super) from: String,
    pub(super) to: String,
}

impl Overview {
    /// Draws one row an OSD, in the order in which they began.
    pub(super) fn of(account: &Account, sums: &Sums, now: DateTime<Utc>) -> Option<Self> {
        let (from, to) = sums.period?;
        let is_named = account.rows.len() <= NAMED;
        let (row_height, bar_height) = if is_named { (18, 12) } else { (3, 2) };
        let rows = account.rows.iter().enumerate();
        let bars = rows.clone().filter_map(|(at, row)| {
            let began = row.entry.began_at()?;
            let ended = row.entry.ended_at().unwrap_or(now);
            let (x, width) = place(began, ended, (from, to));
            Some(Bar { class: row.entry.outcome.code(), x, width, y: at * row_height })
        });
        let names = rows.clone().map(|(at, row)| (row.entry.key.osd.to_string(), at * row_height + 10));
        Some(Self {
            bars: bars.collect(),
            names: names.filter(|_| is_named).collect(),
            bar_height,
            height: account.rows.len() * row_height,
            from: moment(from),
            to: moment(to),
        })
    }
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

/// Returns place and width of a time in a drawing: at least one unit, and never outside.
fn place(
    from: DateTime<Utc>,
    to: DateTime<Utc>,
    (first, last): (DateTime<Utc>, DateTime<Utc>),
) -> (i64, i64) {
    let whole = (last - first).num_seconds().max(1);
    let at = |time: DateTime<Utc>| ((time - first).num_seconds() * WIDTH / whole).clamp(0, WIDTH);
    let x = at(from).min(WIDTH - 1);
    (x, (at(to) - x).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_is_visible_and_inside_however_short_it_is() {
        let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
        let whole = (at(0), at(100_000));
        assert_eq!(place(at(0), at(100_000), whole), (0, 1000));
        assert_eq!(place(at(50_000), at(50_001), whole), (500, 1));
        assert_eq!(place(at(100_000), at(100_000), whole), (999, 1));
        assert_eq!(place(at(7), at(7), (at(7), at(7))), (0, 1));
    }
}
