//! Windows: weekdays, time zones, both changes of summer time, and what is not a window.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use osd_migrate::domain::policy::Policy;
use osd_migrate::domain::windows::{BadWindow, Window, Windows, Zone};
use osd_migrate::show::{windows_json, windows_text};
use serde_json::json;

fn at(text: &str) -> DateTime<Utc> {
    format!("{text}Z").parse().unwrap()
}

fn windows(text: &str, zone: &str) -> Windows {
    Windows::join([&text.parse().unwrap()], zone.parse().unwrap())
}

/// Returns the next times at which the windows open, as UTC without seconds.
fn openings(windows: &Windows, after: &str, count: usize) -> Vec<String> {
    let next = |at: &DateTime<Utc>| windows.opens_after(*at);
    let all = std::iter::successors(Some(at(after)), next).skip(1).take(count);
    all.map(|time| time.format("%m-%d %H:%M").to_string()).collect()
}

#[test]
fn window_includes_its_start_but_not_its_end_across_midnight() {
    let open = |text: &str, time: &str| windows(text, "UTC").is_open_at(at(&format!("2026-03-01T{time}")));
    for (window, inside, out) in [
        (
            "22:00-05:00",
            ["22:00:00", "23:59:59", "00:00:00", "04:59:59"],
            ["21:59:59", "05:00:00", "12:00:00"],
        ),
        (
            "09:30-17:00",
            ["09:30:00", "09:30:59", "12:00:00", "16:59:59"],
            ["09:29:59", "17:00:00", "00:00:00"],
        ),
        (
            "22:00-24:00",
            ["22:00:00", "22:30:00", "23:00:00", "23:59:59"],
            ["21:59:59", "00:00:00", "12:00:00"],
        ),
        (
            "00:00-05:00",
            ["00:00:00", "00:00:01", "01:00:00", "04:59:59"],
            ["05:00:00", "23:59:59", "12:00:00"],
        ),
    ] {
        assert!(inside.iter().all(|time| open(window, time)), "{window}");
        assert!(!out.iter().any(|time| open(window, time)), "{window}");
    }
}

#[test]
fn windows_are_alternatives_and_none_means_always() {
    assert!(Policy::default().is_open_at(at("2026-03-01T03:00:00")));
    let both = windows("22:00-05:00,12:00-13:00", "UTC");
    assert!(both.is_open_at(at("2026-03-01T12:30:00")) && both.is_open_at(at("2026-03-01T23:00:00")));
    assert!(!both.is_open_at(at("2026-03-01T13:00:00")));
    assert_eq!(Windows::default().opens_after(at("2026-03-01T03:00:00")), None);
    assert_eq!(openings(&both, "2026-03-01T10:20:30.5", 3), ["03-01 12:00", "03-01 22:00", "03-02 12:00"]);
    assert_eq!(openings(&windows("09:00-10:00", "UTC"), "2026-03-01T17:30:00", 1), ["03-02 09:00"]);
}

#[test]
fn window_over_midnight_belongs_to_the_weekday_of_its_begin() {
    // 2026-03-02 is a Monday.
    let weekdays = windows("Mon-Fri 22:00-05:00", "UTC");
    for inside in ["2026-03-02T22:00:00", "2026-03-03T04:59:59", "2026-03-06T23:00:00", "2026-03-07T04:59:59"]
    {
        assert!(weekdays.is_open_at(at(inside)), "{inside}");
    }
    for out in ["2026-03-02T04:00:00", "2026-03-07T05:00:00", "2026-03-07T22:00:00", "2026-03-08T23:00:00"] {
        assert!(!weekdays.is_open_at(at(out)), "{out}");
    }
    assert_eq!(openings(&weekdays, "2026-03-06T12:00:00", 3), ["03-06 22:00", "03-09 22:00", "03-10 22:00"]);
    let weekend = windows("Sat,Sun 00:00-24:00", "UTC");
    assert!(weekend.is_open_at(at("2026-03-07T00:00:00")) && weekend.is_open_at(at("2026-03-08T23:59:59")));
    assert!(!weekend.is_open_at(at("2026-03-06T23:59:59")) && !weekend.is_open_at(at("2026-03-09T00:00:00")));
    // Sunday continues Saturday: that is no opening.
    assert_eq!(openings(&weekend, "2026-03-03T12:00:00", 2), ["03-07 00:00", "03-14 00:00"]);
    let always = windows("00:00-24:00", "UTC");
    assert_eq!(
        (always.is_open_at(at("2026-03-03T12:00:00")), openings(&always, "2026-03-03T12:00:00", 1)),
        (true, vec![])
    );
}

/// Checks 2026-03-29 in Berlin: 02:00 CET is followed by 03:00 CEST, at 01:00 UTC.
#[test]
fn window_in_the_hour_that_is_skipped_does_not_open() {
    let berlin = |text: &str| windows(text, "Europe/Berlin");
    let within = berlin("02:15-02:45");
    assert_eq!(openings(&within, "2026-03-28T00:00:00", 3), ["03-28 01:15", "03-30 00:15", "03-31 00:15"]);
    // Only on Sundays: two weeks between two openings.
    assert_eq!(
        openings(&berlin("Sun 02:15-02:45"), "2026-03-22T00:00:00", 2),
        ["03-22 01:15", "04-05 00:15"]
    );
    // The window begins in the hour that does not exist: it opens when the clock is set forward.
    let begins = berlin("02:30-04:00");
    assert_eq!(openings(&begins, "2026-03-28T12:00:00", 1), ["03-29 01:00"]);
    assert!(!begins.is_open_at(at("2026-03-29T00:59:59")) && begins.is_open_at(at("2026-03-29T01:59:59")));
    assert!(!begins.is_open_at(at("2026-03-29T02:00:00")));
    // The window ends in that hour: it closes when the clock is set forward.
    let ends = berlin("01:00-02:30");
    assert!(ends.is_open_at(at("2026-03-29T00:59:59")) && !ends.is_open_at(at("2026-03-29T01:00:00")));
    // A night with the change is one hour shorter.
    let night = berlin("Sat 22:00-05:00");
    assert!(night.is_open_at(at("2026-03-29T02:59:59")) && !night.is_open_at(at("2026-03-29T03:00:00")));
}

/// Checks 2026-10-25 in Berlin: 03:00 CEST is followed by 02:00 CET, at 01:00 UTC.
#[test]
fn window_in_the_hour_that_exists_twice_opens_twice() {
    let berlin = |text: &str| windows(text, "Europe/Berlin");
    let within = berlin("02:15-02:45");
    let expected = ["10-24 00:15", "10-25 00:15", "10-25 01:15", "10-26 01:15"];
    assert_eq!(openings(&within, "2026-10-24T00:00:00", 4), expected);
    for (time, is_open) in
        [("00:20", true), ("00:50", false), ("01:10", false), ("01:20", true), ("01:45", false)]
    {
        assert_eq!(within.is_open_at(at(&format!("2026-10-25T{time}:00"))), is_open, "{time}");
    }
    // The clock is set back into the window: it opens a second time.
    assert_eq!(openings(&berlin("01:00-02:30"), "2026-10-24T12:00:00", 2), ["10-24 23:00", "10-25 01:00"]);
    // A night with the change is one hour longer.
    let night = berlin("Sat 22:00-05:00");
    assert!(night.is_open_at(at("2026-10-25T03:59:59")) && !night.is_open_at(at("2026-10-25T04:00:00")));
    assert_eq!(openings(&night, "2026-10-24T12:00:00", 2), ["10-24 20:00", "10-31 21:00"]);
}

/// Reads the clock of a time zone for the property below: weekday from Monday, hour and minute.
fn clock(zone: &TimeZone, at: DateTime<Utc>) -> (usize, u32) {
    let local = zone.to_datetime(Timestamp::from_second(at.timestamp()).unwrap());
    let number = local.strftime("%u %H %M").to_string();
    let [day, hour, minute]: [u32; 3] =
        number.split(' ').map(|part| part.parse().unwrap()).collect::<Vec<_>>().try_into().unwrap();
    (day as usize - 1, hour * 60 + minute)
}

/// A window as its parts, and its text.
struct Parts {
    days: BTreeSet<usize>,
    from: u32,
    to: u32,
}

impl Parts {
    fn any(random: &mut fastrand::Rng) -> Self {
        let days: BTreeSet<usize> = (0..7).filter(|_| random.bool()).collect();
        let days = if days.is_empty() { (0..7).collect() } else { days };
        // Often near the hours in which the clock is set.
        let minute = |random: &mut fastrand::Rng| {
            if random.bool() { random.u32(0..1440) } else { 15 * random.u32(0..16) }
        };
        let from = minute(random);
        let to = if random.u8(0..8) == 0 { 1440 } else { minute(random) };
        if from == to { Self { days, from, to: (to + 1) % 1440 } } else { Self { days, from, to } }
    }

    fn text(&self) -> String {
        let names = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
        let days: Vec<_> = self.days.iter().map(|day| names[*day]).collect();
        let Self { from, to, .. } = self;
        format!("{} {:02}:{:02}-{:02}:{:02}", days.join(","), from / 60, from % 60, to / 60, to % 60)
    }

    fn is_open(&self, (day, minute): (usize, u32)) -> bool {
        let begins = |day: usize| self.days.contains(&(day % 7));
        if self.from < self.to {
            return begins(day) && minute >= self.from && minute < self.to;
        }
        (begins(day) && minute >= self.from) || (begins(day + 6) && minute < self.to)
    }
}

/// Zones, and times near which their clocks are set.
///
/// They are set by an hour, by half an hour, at midnight, back into the day before, and over a whole date.
/// Two of the clocks are never set.
const CLOCKS: [(&str, &str); 12] = [
    ("UTC", "2026-03-01T12:00:00"),
    ("Asia/Kathmandu", "2026-03-01T12:00:00"),
    ("Europe/Berlin", "2026-03-29T01:00:00"),
    ("Europe/Berlin", "2026-10-25T01:00:00"),
    ("America/New_York", "2026-03-08T07:00:00"),
    ("America/New_York", "2026-11-01T06:00:00"),
    ("Australia/Lord_Howe", "2026-04-04T15:00:00"),
    ("Australia/Lord_Howe", "2026-10-03T15:30:00"),
    ("America/Havana", "2026-03-08T05:00:00"),
    ("America/Sao_Paulo", "2018-02-18T02:00:00"),
    ("America/Sao_Paulo", "2018-11-04T03:00:00"),
    ("Pacific/Apia", "2011-12-30T10:00:00"),
];

/// Compares with a search minute by minute, in windows and times of a fixed seed.
#[test]
fn next_opening_is_the_first_minute_at_which_a_window_opens() {
    let mut random = fastrand::Rng::with_seed(23);
    let mut of_changes = 0;
    for round in 0..360 {
        let (zone, near) = CLOCKS[round % CLOCKS.len()];
        let parts: Vec<_> = (0..=random.usize(0..2)).map(|_| Parts::any(&mut random)).collect();
        let text = parts.iter().map(Parts::text).collect::<Vec<_>>().join(",");
        let windows = windows(&text, zone);
        let start = at(near) + TimeDelta::minutes(random.i64(-2000..600));
        let rules = TimeZoneDatabase::bundled().get(zone).unwrap();
        let is_open = |time| parts.iter().any(|one| one.is_open(clock(&rules, time)));
        let what = format!("{text} {zone}, {start}");
        let mut before = is_open(start);
        assert_eq!(windows.is_open_at(start), before, "{what}");
        let minutes = (1..22 * 1440).map(|minute| start + TimeDelta::minutes(minute));
        let mut opens = minutes.filter(|time| {
            let now = is_open(*time);
            !std::mem::replace(&mut before, now) && now
        });
        let expected = opens.next();
        // A time within a minute is rounded to none.
        let seconds = start + TimeDelta::milliseconds(random.i64(0..60_000));
        assert_eq!(windows.opens_after(seconds), expected, "{what}");
        let offsets = [start, expected.unwrap_or(start)]
            .map(|time| rules.to_offset(Timestamp::from_second(time.timestamp()).unwrap()));
        of_changes += usize::from(offsets[0] != offsets[1]);
    }
    assert!(of_changes > 50, "too few openings after a change of the clock: {of_changes}");
}

#[test]
fn window_is_read_again_from_its_own_text() {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..500 {
        let parts = Parts::any(&mut random);
        let window: Window = parts.text().parse().unwrap();
        assert_eq!(window.to_string().parse::<Window>().unwrap(), window, "{window}");
    }
    for (text, shown) in [
        ("mon-FRI 22:00-05:00", "Mon-Fri 22:00-05:00"),
        ("Fri-Mon 22:00-05:00", "Mon,Fri-Sun 22:00-05:00"),
        ("Sat-Sun 00:00-24:00", "Sat,Sun 00:00-24:00"),
        ("Mon,Tue,Wed,Sat 01:00-02:00", "Mon-Wed,Sat 01:00-02:00"),
        ("Mon-Sun 01:00-02:00", "01:00-02:00"),
    ] {
        assert_eq!(text.parse::<Window>().unwrap().to_string(), shown);
    }
}

#[test]
fn comma_separates_windows_after_times_and_weekdays_before() {
    let shown = |text: &str| text.parse::<Windows>().unwrap().to_string();
    assert_eq!(shown("22:00-05:00,12:00-13:00"), "22:00-05:00, 12:00-13:00 UTC");
    let mixed = "Mon-Wed,Fri 22:00-05:00, 12:00-13:00, Sat, Sun 00:00-24:00";
    assert_eq!(shown(mixed), "Mon-Wed,Fri 22:00-05:00, 12:00-13:00, Sat,Sun 00:00-24:00 UTC");
}

#[test]
fn invalid_window_is_refused_with_one_sentence() {
    let says = |text: &str| text.parse::<Windows>().map_err(|error| (error.clone(), error.to_string()));
    for text in [
        "",
        "22-5",
        "22:00",
        "22:00-",
        "9:00-10:00",
        "22:60-23:00",
        "25:00-26:00",
        "24:00-05:00",
        "24:01-05:00",
        "+1:00-02:00",
        "22:00-05:00Z",
        "22:00-05:00-06:00",
        "22:00-05:00,",
        "Mon,22:00-05:00",
        "Mon 22",
    ] {
        let Err((BadWindow::Form(of), said)) = says(text) else { panic!("{text}: {:?}", says(text)) };
        assert!(
            text.ends_with(&of) && said.contains("HH:MM-HH:MM") && said.contains("Mon-Fri 22:00-05:00"),
            "{said}"
        );
    }
    for (text, word) in [
        ("Mo 22:00-05:00", "Mo"),
        ("Mon-Fr 22:00-05:00", "Fr"),
        ("Mon,,Fri 22:00-05:00", ""),
        ("22:00 - 05:00", "22:00 "),
    ] {
        let Err((BadWindow::Weekday(of), said)) = says(text) else { panic!("{text}: {:?}", says(text)) };
        assert_eq!(of, word, "{said}");
        assert!(said.contains("is not a weekday. Write Mon, Tue"), "{said}");
    }
    assert_eq!(
        says("Sat,Sun").unwrap_err().1,
        "Sat,Sun has no times. For whole days, write Sat,Sun 00:00-24:00"
    );
    let empty = "the window Mon 05:00-05:00 ends when it begins. For a whole day, write 00:00-24:00";
    assert_eq!(says("Mon 05:00-05:00").unwrap_err().1, empty);
    assert!(matches!(says("00:00-00:00"), Err((BadWindow::Empty(_), _))));
}

#[test]
fn time_zone_is_known_by_its_name_in_any_case() {
    let zone = |name: &str| {
        name.parse::<Zone>().map(|zone| zone.name().to_owned()).map_err(|error| error.to_string())
    };
    for (name, known) in
        [("UTC", "UTC"), ("europe/berlin", "Europe/Berlin"), ("America/New_York", "America/New_York")]
    {
        assert_eq!(zone(name), Ok(known.to_owned()));
    }
    let unknown = "the IANA database has no time zone \"Europe/Berlim\". Use a name such as UTC, Europe/Berlin or \
                   America/New_York";
    assert_eq!(zone("Europe/Berlim"), Err(unknown.to_owned()));
    assert_eq!(
        zone("berlin"),
        Err("the IANA database has no time zone \"berlin\". Use Europe/Berlin".to_owned())
    );
    for name in ["", "Local", "../etc/passwd", "+01:00"] {
        assert!(zone(name).is_err(), "{name}");
    }
}

#[test]
fn plan_shows_the_windows_and_when_the_next_one_opens() {
    let windows = windows("Mon-Fri 22:00-05:00,Sat,Sun 00:00-24:00", "Europe/Berlin");
    let (closed, open) = (at("2026-09-21T10:00:00"), at("2026-09-21T20:00:00"));
    assert_eq!(
        windows_text(&windows, closed).unwrap(),
        "Window: Mon-Fri 22:00-05:00, Sat,Sun 00:00-24:00 Europe/Berlin; closed now, opens at Mon 2026-09-21 22:00 \
         Europe/Berlin (2026-09-21 20:00Z)"
    );
    assert!(windows_text(&windows, open).unwrap().ends_with("Europe/Berlin; open now"));
    assert_eq!(windows_text(&Windows::default(), open), None);
    let expected = json!({"timeZone": "Europe/Berlin", "windows": ["Mon-Fri 22:00-05:00", "Sat,Sun 00:00-24:00"],
        "isOpen": false, "opensAt": "2026-09-21T20:00:00Z"});
    assert_eq!(windows_json(&windows, closed), expected);
    let now = windows_json(&windows, open);
    assert_eq!((&now["isOpen"], &now["opensAt"]), (&json!(true), &json!(null)));
    assert_eq!(windows_json(&Windows::default(), open), json!(null));
}
