//! Time zones and their clocks.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use chrono::{DateTime, Utc};
use jiff::Timestamp;
use jiff::civil::{Date, Weekday};
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};

/// A time zone of the IANA database.
///
/// The rules of the zone are part of the program, so that a run does not depend on files of the Ceph image.
#[derive(Debug, Clone)]
pub struct Zone(TimeZone);

impl Default for Zone {
    fn default() -> Self {
        Self(TimeZone::UTC)
    }
}

impl Zone {
    /// Returns the name in the IANA database, for example `Europe/Berlin`.
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// Returns whether this is UTC.
    pub fn is_utc(&self) -> bool {
        self.name() == "UTC"
    }

    /// Returns the date that a calendar in the time zone shows.
    pub(super) fn date(&self, at: DateTime<Utc>) -> Date {
        self.0.to_datetime(timestamp(at)).date()
    }

    /// Returns the weekday and the minute of the day that a clock in the time zone shows.
    pub(super) fn clock(&self, at: DateTime<Utc>) -> (Weekday, u32) {
        let local = self.0.to_datetime(timestamp(at));
        let hour_and_minute = [local.hour(), local.minute()].map(|part| u32::from(part.unsigned_abs()));
        let [hour, minute] = hour_and_minute;
        (local.weekday(), hour * 60 + minute)
    }

    /// Returns when a clock in the time zone shows this minute of this date.
    ///
    /// There are two such times if the clock is set back, and none if it is set forward over the minute.
    pub(super) fn times(&self, date: Date, minute: u32) -> Vec<DateTime<Utc>> {
        let part = |number: u32| i8::try_from(number).unwrap_or(0);
        let local = date.at(part(minute / 60), part(minute % 60), 0, 0);
        let offsets = match self.0.to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Unambiguous { offset } => vec![offset],
            AmbiguousOffset::Fold { before, after } => vec![before, after],
            AmbiguousOffset::Gap { .. } => Vec::new(),
        };
        offsets.into_iter().filter_map(|offset| utc(offset.to_timestamp(local).ok()?)).collect()
    }

    /// Returns when the clock is set forward or back, in an open interval.
    pub(super) fn changes(&self, after: DateTime<Utc>, before: DateTime<Utc>) -> Vec<DateTime<Utc>> {
        let changes = self.0.following(timestamp(after)).map_while(|change| utc(change.timestamp()));
        changes.take_while(|at| *at < before).collect()
    }

    /// Returns a time for people, with the time zone and, if this is another one, also in UTC.
    pub fn format(&self, at: DateTime<Utc>) -> String {
        let local = self.0.to_datetime(timestamp(at)).strftime("%a %Y-%m-%d %H:%M");
        let in_utc = if self.is_utc() { String::new() } else { at.format(" (%Y-%m-%d %H:%MZ)").to_string() };
        format!("{local} {self}{in_utc}")
    }
}

/// Converts a time.
///
/// Times before the year -9999 and after 9999 do not occur.
fn timestamp(at: DateTime<Utc>) -> Timestamp {
    let nanoseconds = i32::try_from(at.timestamp_subsec_nanos()).unwrap_or(0);
    Timestamp::new(at.timestamp(), nanoseconds).unwrap_or_default()
}

fn utc(at: Timestamp) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(at.as_second(), at.subsec_nanosecond().unsigned_abs())
}

/// Error of a name that no time zone has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the IANA database has no time zone {name:?}. {}", proposal(.meant))]
pub struct UnknownZone {
    name: String,
    /// Time zones of that city.
    meant: Vec<String>,
}

fn proposal(meant: &[String]) -> String {
    match meant {
        [] => "Use a name such as UTC, Europe/Berlin or America/New_York".to_owned(),
        meant => format!("Use {}", meant.join(" or ")),
    }
}

impl FromStr for Zone {
    type Err = UnknownZone;

    fn from_str(name: &str) -> Result<Self, UnknownZone> {
        let zones = TimeZoneDatabase::bundled();
        zones.get(name).map(Self).map_err(|_| {
            let is_city =
                |zone: &str| zone.rsplit('/').next().is_some_and(|city| city.eq_ignore_ascii_case(name));
            let meant = zones.available().map(|zone| zone.as_str().to_owned()).filter(|zone| is_city(zone));
            UnknownZone { name: name.to_owned(), meant: meant.collect() }
        })
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Zone {}

impl PartialOrd for Zone {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Zone {
    fn cmp(&self, other: &Self) -> Ordering {
        self.name().cmp(other.name())
    }
}

impl Hash for Zone {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}
