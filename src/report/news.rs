//! How often a run writes the same thing: lines of the log, and standing Kubernetes events.

use chrono::{DateTime, Utc};

/// Interval after which standing events are published again: an API server keeps events for an hour
/// (`--event-ttl`).
const REPEAT_MINUTES: i64 = 50;

/// Shortest time between two events about stalls: an API server keeps events for an hour.
const STALL_MINUTES: i64 = 60;

/// Time after which a wait is reported to Kubernetes although the run has done nothing yet.
///
/// Most waits pass within a few observations.
const STANDS_MINUTES: i64 = 5;

/// Interval after which an unchanged wait is logged again.
const REMIND_SECONDS: i64 = 60;

/// Time for which a wait must last before it is logged: a stop, peering and a start take one to three seconds
/// each on an idle cluster.
const PASSING_SECONDS: i64 = 10;

/// Time without any line of the log after which a new wait is logged at once, so that waits that change every
/// few seconds do not silence it.
const SILENCE_SECONDS: i64 = 30;

/// Decides which events are logged.
#[derive(Debug, Default)]
pub struct News {
    /// Latest text, digits excluded.
    gist: String,
    /// Time since which it has been the latest text.
    pub since: DateTime<Utc>,
    /// Whether it was logged.
    is_logged: bool,
    /// Time of the last line of the log.
    logged_at: DateTime<Utc>,
}

impl News {
    /// Returns whether a text is to be logged.
    ///
    /// The figures of a wait change every second and do not make a text new. A wait that passes within a few
    /// seconds is not logged.
    pub fn is_due(&mut self, text: &str, is_wait: bool, now: DateTime<Utc>) -> bool {
        let gist: String = text.chars().filter(|c| !c.is_ascii_digit()).collect();
        if gist != self.gist {
            *self = Self { gist, since: now, is_logged: false, logged_at: self.logged_at };
        }
        let silence = (now - self.logged_at).num_seconds();
        let is_due = if self.is_logged {
            silence >= REMIND_SECONDS
        } else {
            !is_wait || silence >= SILENCE_SECONDS || (now - self.since).num_seconds() >= PASSING_SECONDS
        };
        if is_due {
            self.is_logged = true;
            self.logged_at = now;
        }
        is_due
    }

    /// Returns whether the same wait has lasted longer than a few observations take.
    pub fn stands(&self, now: DateTime<Utc>) -> bool {
        (now - self.since).num_minutes() >= STANDS_MINUTES
    }
}

/// Time at which standing events were last published.
#[derive(Debug, Default)]
pub struct Repeats {
    published_at: Option<DateTime<Utc>>,
}

impl Repeats {
    /// Returns whether standing events are due again.
    ///
    /// A runner that has done nothing yet continues what an earlier runner reported at an unknown time.
    /// Standing events of such a runner are due at once.
    pub fn is_due(&mut self, has_acted: bool, now: DateTime<Utc>) -> bool {
        let is_due = self.published_at.map_or(!has_acted, |at| (now - at).num_minutes() >= REPEAT_MINUTES);
        if is_due || self.published_at.is_none() {
            self.published_at = Some(now);
        }
        is_due
    }
}

/// Time at which a stall was last published.
#[derive(Debug, Default)]
pub struct Stalls {
    published_at: Option<DateTime<Utc>>,
}

impl Stalls {
    /// Returns whether a stall is to be published, once an hour at most.
    pub fn is_due(&mut self, now: DateTime<Utc>) -> bool {
        let is_due = self.published_at.is_none_or(|at| (now - at).num_minutes() >= STALL_MINUTES);
        if is_due {
            self.published_at = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    /// Returns the minutes, out of this many, at which standing events are published.
    fn reported_at(has_acted: bool, minutes: i64) -> Vec<i64> {
        let mut repeats = Repeats::default();
        let at = |minute| DateTime::UNIX_EPOCH + TimeDelta::minutes(minute);
        (0..minutes).filter(|minute| repeats.is_due(has_acted, at(*minute))).collect()
    }

    #[test]
    fn stall_is_published_once_an_hour_at_most() {
        let mut stalls = Stalls::default();
        let at = |minute| DateTime::UNIX_EPOCH + TimeDelta::minutes(minute);
        // It lasts until 100, and another one begins at 110.
        let stalled = (10..100).chain(110..200);
        let published: Vec<i64> = stalled.filter(|minute| stalls.is_due(at(*minute))).collect();
        assert_eq!(published, [10, 70, 130, 190]);
    }

    fn second(second: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::days(1) + TimeDelta::seconds(second)
    }

    #[test]
    fn wait_stands_after_five_minutes_whatever_its_figures() {
        let mut news = News::default();
        news.is_due("3 PGs are not clean", true, second(0));
        assert!(!news.stands(second(299)));
        news.is_due("2 PGs are not clean", true, second(299));
        assert!(news.stands(second(300)));
        news.is_due("node h1 is cordoned", true, second(360));
        assert!(!news.stands(second(659)) && news.stands(second(660)));
    }

    #[test]
    fn wait_is_logged_after_ten_seconds_then_each_minute() {
        let mut news = News::default();
        assert!(news.is_due("osd.1 is stopped", false, second(0)));
        let logged = (1..=140).filter(|at| news.is_due(&format!("{at} PGs peer"), true, second(*at)));
        assert_eq!(logged.collect::<Vec<_>>(), [11, 71, 131]);
    }

    #[test]
    fn waits_that_change_each_second_are_logged_twice_a_minute() {
        let mut news = News::default();
        assert!(news.is_due("osd.1 is stopped", false, second(0)));
        let text = |at: i64| if at % 2 == 0 { "node h1 is cordoned" } else { "PGs peer" };
        let logged = (1..=90).filter(|at| news.is_due(text(*at), true, second(*at)));
        assert_eq!(logged.collect::<Vec<_>>(), [30, 60, 90]);
    }

    #[test]
    fn first_wait_of_a_run_is_logged_at_once() {
        assert!(News::default().is_due("node h1 is cordoned", true, second(0)));
    }

    #[test]
    fn standing_event_is_due_each_50_minutes_at_once_on_resume() {
        assert_eq!(reported_at(true, 120), [50, 100]);
        assert_eq!(reported_at(false, 120), [0, 50, 100]);
    }
}
