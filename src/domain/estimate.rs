//! What a run has to do, in figures: OSDs, bytes and time.

use std::fmt;

use chrono::TimeDelta;

use super::pace::{ASSUMED_OVERHEAD, time_for};
use super::preview::{Line, Now};
use super::units::{size, time};
use crate::domain::classify::Class;

/// Rate that is assumed as long as none was measured: 100 MiB a second.
///
/// It is what one hard disk writes sequentially, and more than the recovery of most clusters reaches under
/// load.
const ASSUMED_RATE: u64 = 100 << 20;

/// Rate of a backfill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Bytes per second.
    pub bytes: u64,
    /// Whether earlier runs measured it.
    pub is_measured: bool,
}

impl Rate {
    /// Returns a measured rate, or the assumed one.
    pub fn of(measured: Option<u64>) -> Self {
        Self { bytes: measured.unwrap_or(ASSUMED_RATE), is_measured: measured.is_some() }
    }

    /// Returns the time that so many bytes take; `None` if the rate was not measured.
    pub fn measured_time(&self, bytes: u64) -> Option<TimeDelta> {
        self.is_measured.then(|| time_for(bytes, self.bytes))
    }

    /// Returns the time that an OSD takes whose migration moves so many bytes.
    pub fn time_of_osd(&self, bytes: u64) -> TimeDelta {
        time_for(bytes, self.bytes).checked_add(&ASSUMED_OVERHEAD).unwrap_or(TimeDelta::MAX)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = if self.is_measured { "measured by earlier runs" } else { "assumed" };
        write!(f, "{}/s ({source})", size(self.bytes))
    }
}

/// OSDs of a plan by what is done with them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Totals {
    /// OSDs to migrate, now or later.
    pub to_migrate: usize,
    /// OSDs to remove, as requested, now or later.
    pub to_remove: usize,
    /// OSDs in progress.
    pub in_progress: usize,
    /// Quarantined OSDs.
    pub quarantined: usize,
    /// OSDs that are not migrated as the cluster is now.
    pub refused: usize,
    /// OSDs that are not as declared, and that the arguments exclude.
    pub not_selected: usize,
    /// OSDs that are as declared.
    pub as_declared: usize,
    /// Bytes that move: those on the OSDs to migrate or to remove, and twice those on OSDs that are emptied
    /// and recreated.
    pub bytes: u64,
    /// OSDs to migrate or to remove whose bytes are not known.
    pub unknown: usize,
    /// Time that the OSDs to migrate or to remove take, one after the other.
    pub time: TimeDelta,
}

impl Totals {
    /// Counts the lines of a plan.
    pub fn of(lines: &[Line], rate: Rate) -> Self {
        let mut totals = Self::default();
        for line in lines {
            match (&line.now, &line.class) {
                (Now::InFlight, _) => totals.in_progress += 1,
                (Now::Quarantined { .. }, _) => totals.quarantined += 1,
                (Now::Refused(_), _) | (Now::Nothing, Class::Refused(_)) => totals.refused += 1,
                (Now::Next | Now::Waits(_), _) => {
                    let is_removal = line.removal.is_some();
                    let number = if is_removal { &mut totals.to_remove } else { &mut totals.to_migrate };
                    *number += 1;
                    totals.unknown += usize::from(line.used_bytes.is_none());
                    let bytes = line.moved_bytes().unwrap_or(0);
                    totals.bytes = totals.bytes.saturating_add(bytes);
                    let time = totals.time.checked_add(&rate.time_of_osd(bytes));
                    totals.time = time.unwrap_or(TimeDelta::MAX);
                }
                (Now::Nothing, class) if class.migrates().is_some() => totals.not_selected += 1,
                (Now::Nothing, _) => totals.as_declared += 1,
            }
        }
        totals
    }

    /// Returns the summary in one line.
    pub fn sentence(&self, rate: Rate) -> String {
        let all = self.to_migrate
            + self.to_remove
            + self.in_progress
            + self.quarantined
            + self.refused
            + self.not_selected
            + self.as_declared;
        let part = |number: usize, what: &str| (number > 0).then(|| format!("{number} {what}"));
        let parts: Vec<String> = [
            Some(format!("{} of {all} OSDs to migrate", self.to_migrate)),
            part(self.to_remove, "to remove"),
            part(self.in_progress, "in progress"),
            part(self.quarantined, "quarantined"),
            part(self.refused, "refused"),
            part(self.not_selected, "not selected"),
            part(self.as_declared, "as declared"),
        ]
        .into_iter()
        .flatten()
        .collect();
        let parts = parts.join(", ");
        if self.to_migrate + self.to_remove == 0 {
            return parts;
        }
        let unknown = part(self.unknown, "OSDs of unknown size not counted");
        let unknown = unknown.map(|unknown| format!(", {unknown}")).unwrap_or_default();
        format!("{parts}; {} to move; about {} at {rate}{unknown}", size(self.bytes), time(self.time))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_names_only_what_exists() {
        let rate = Rate::of(Some(110 << 20));
        let all = Totals {
            to_migrate: 3,
            refused: 2,
            as_declared: 123,
            bytes: 12 << 40,
            time: TimeDelta::hours(33),
            ..Totals::default()
        };
        assert_eq!(
            all.sentence(rate),
            "3 of 128 OSDs to migrate, 2 refused, 123 as declared; 12.0 TiB to move; about 33 h at 110.0 MiB/s \
             (measured by earlier runs)"
        );
        let none = Totals { as_declared: 4, ..Totals::default() };
        assert_eq!(none.sentence(Rate::of(None)), "0 of 4 OSDs to migrate, 4 as declared");
    }

    #[test]
    fn time_of_an_osd_is_its_data_at_the_rate_and_the_rest() {
        let rate = Rate::of(None);
        assert_eq!(rate.time_of_osd(ASSUMED_RATE * 600), TimeDelta::minutes(12));
        assert_eq!(rate.to_string(), "100.0 MiB/s (assumed)");
    }
}
