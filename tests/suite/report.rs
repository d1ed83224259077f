//! `report`: simulated runs with restarts, and the report about them.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

use osd_migrate::domain::act::{Act, CephAct};
use osd_migrate::domain::commands::Names;
use osd_migrate::domain::history::{self, Account, Confirmation, ConfirmedBy, Entry, NO_RUN, Note, Outcome};
use osd_migrate::domain::ledger::{Ledger, Record};
use osd_migrate::domain::osd::OsdId;
use osd_migrate::domain::policy::Policy;
use osd_migrate::ports::{Failure, LedgerStore, LoadError, Reporter, Saved, passing};
use osd_migrate::report::{Event, RunHistory};
use osd_migrate::run::{End, Ports, RunError};
use osd_migrate::show::{Report, report_html, report_json, report_text};
use osd_migrate::sim::course::Sim;
use osd_migrate::sim::example;
use osd_migrate::sim::ports::{Call, Runner, Side, Watch};

/// Time between two writes of the status.
const STATUS_EVERY: TimeDelta = TimeDelta::seconds(10);

/// Reporter of a run that stores its history with the status, as in a cluster.
struct Listener {
    sim: Rc<RefCell<Sim>>,
    history: RunHistory,
    /// Stored status: it outlives the run.
    status: Rc<RefCell<Option<String>>>,
    written_at: DateTime<Utc>,
    /// Results of writes of the history.
    writes: Rc<RefCell<Vec<bool>>>,
}

impl Reporter for Listener {
    async fn report(&mut self, event: Event<'_>) {
        let now = self.sim.borrow().world.at;
        self.history.add(&event, now);
        if now - self.written_at >= STATUS_EVERY {
            self.written_at = now;
            self.status.replace(Some(serde_json::to_string(&self.history).unwrap()));
        }
    }

    fn entries(&mut self, closed: Option<&Record>) -> Vec<Entry> {
        self.history.entries(closed)
    }

    async fn written(&mut self, entries: Vec<Entry>, result: Result<(), Failure>) {
        self.writes.borrow_mut().push(result.is_ok());
        self.history.unwritten = if result.is_err() { entries } else { Vec::new() };
    }
}

/// Store whose history cannot be written so many times.
struct Store {
    runner: Runner,
    failures: u32,
}

impl LedgerStore for Store {
    type Version = u64;

    async fn load(&mut self) -> Result<(Ledger, u64), LoadError> {
        self.runner.load().await
    }

    async fn save(&mut self, ledger: &Ledger, version: u64) -> Result<Saved, Failure> {
        self.runner.save(ledger, version).await
    }

    async fn append(&mut self, entries: &[Entry]) -> Result<(), Failure> {
        if self.failures > 0 {
            self.failures -= 1;
            return Err(passing("the quota is exceeded"));
        }
        self.runner.append(entries).await
    }
}

struct Stage {
    sim: Rc<RefCell<Sim>>,
    status: Rc<RefCell<Option<String>>>,
    writes: Rc<RefCell<Vec<bool>>>,
    runs: u32,
}

impl Stage {
    fn new() -> Self {
        let mut sim = Sim::new(example::twelve(), 1);
        sim.schedule.rate = 100 << 20;
        Self { sim: Rc::new(RefCell::new(sim)), status: Rc::default(), writes: Rc::default(), runs: 0 }
    }

    /// Runs until the end, or until the watch stops the run, which is then killed.
    fn run(&mut self, watch: Option<Watch>, failures: u32) -> Option<Result<End, RunError>> {
        self.runs += 1;
        let stored = self.status.borrow().as_ref().map(|text| serde_json::from_str(text).unwrap());
        let confirmation = Confirmation {
            job: format!("osd-migrate-{}", self.runs),
            by: ConfirmedBy::Flag,
            who: Some("alice".to_owned()),
            at: Some(self.sim.borrow().world.at),
            ..Confirmation::default()
        };
        let runner = Runner::new(&self.sim, watch);
        let mut ports = Ports {
            cluster: runner.clone(),
            store: Store { runner: runner.clone(), failures },
            lease: runner.clone(),
            clock: runner.clone(),
            audience: Listener {
                sim: Rc::clone(&self.sim),
                history: RunHistory { confirmation, ..stored.unwrap_or_default() },
                status: Rc::clone(&self.status),
                written_at: DateTime::UNIX_EPOCH,
                writes: Rc::clone(&self.writes),
            },
        };
        let policy = Policy::default();
        let polled =
            std::pin::pin!(ports.run(&policy)).as_mut().poll(&mut Context::from_waker(Waker::noop()));
        match polled {
            Poll::Ready(end) => Some(end),
            Poll::Pending => None,
        }
    }

    fn account(&self) -> Account {
        let sim = self.sim.borrow();
        let (entries, unread) = history::read(&sim.history.join("\n"));
        assert_eq!(unread, 0);
        let stored: RunHistory =
            self.status.borrow().as_ref().map(|text| serde_json::from_str(text).unwrap()).unwrap_or_default();
        Account::of(entries, &sim.ledger().unwrap(), &stored.courses, sim.world.at)
    }

    fn now(&self) -> DateTime<Utc> {
        self.sim.borrow().world.at
    }
}

/// Stops a run at its n-th call that changes something, before or after it.
fn kills_at(n: usize, side: Side, calls: &Rc<RefCell<usize>>) -> Watch {
    let calls = Rc::clone(calls);
    Box::new(move |call, at, _| {
        let counts = at == side && !matches!(call, Call::Hold);
        *calls.borrow_mut() += usize::from(counts);
        counts && *calls.borrow() == n
    })
}

fn names() -> Names {
    Names { namespace: "rook-ceph".to_owned(), cluster: Some("rook-ceph".to_owned()) }
}

/// Asserts what holds for every report of runs that finished.
fn assert_complete(account: &Account, said: &str) {
    let osds: Vec<OsdId> = account.rows.iter().map(|row| row.entry.key.osd).collect();
    let each: BTreeSet<OsdId> = osds.iter().copied().collect();
    assert_eq!(osds.len(), each.len(), "{said}: an OSD is twice in {osds:?}");
    assert_eq!(osds.len(), 5, "{said}: {osds:?}");
    for row in &account.rows {
        let (entry, osd) = (&row.entry, row.entry.key.osd);
        assert_eq!(entry.outcome, Outcome::Migrated, "{said}, {osd}");
        assert!(entry.old.is_some() && entry.new.is_some() && entry.old != entry.new, "{said}, {osd}");
        assert!(entry.disk.is_some() && entry.moved_bytes > 0, "{said}, {osd}: {entry:?}");
        assert!(row.spans.len() >= 5, "{said}, {osd}: {:?}", row.spans);
        assert!(row.spans.windows(2).all(|pair| pair[0].to == pair[1].from), "{said}, {osd}");
        let sum: i64 = row.spans.iter().map(|span| span.time().num_seconds()).sum();
        assert_eq!(sum, row.took.num_seconds(), "{said}, {osd}: the phases have no gaps");
        let waits: i64 = entry.waits.values().sum();
        // Each wait is rounded, and the times of milestones are whole seconds.
        let most = row.took.num_seconds() + 1 + i64::try_from(entry.waits.len()).unwrap();
        assert!(waits > 0 && waits <= most, "{said}, {osd}: waited {waits} of {most}: {:?}", entry.waits);
        assert!(
            entry.confirmation.as_ref().is_some_and(|known| known.who.as_deref() == Some("alice")),
            "{said}"
        );
    }
}

#[test]
fn report_has_each_osd_once_whenever_the_run_is_killed() {
    let calls = Rc::default();
    assert!(matches!(
        Stage::new().run(Some(kills_at(0, Side::Before, &calls)), 0),
        Some(Ok(End::Finished(_)))
    ));
    let calls = *calls.borrow();
    assert!(calls > 100, "{calls}");
    // Calls next to each other, and a step that shares no factor with their number an OSD.
    let points = (1..=calls).filter(|n| n % 7 == 0 || n + 12 > calls);
    for (n, side) in points.flat_map(|n| [(n, Side::Before), (n, Side::Queued)]) {
        let mut stage = Stage::new();
        let said = format!("killed at {n} {side:?}");
        assert!(stage.run(Some(kills_at(n, side, &Rc::default())), 0).is_none(), "{said}");
        stage.sim.borrow_mut().advance(TimeDelta::seconds(12));
        assert!(matches!(stage.run(None, 0), Some(Ok(End::Finished(_)))), "{said}");
        assert_complete(&stage.account(), &said);
    }
}

#[test]
fn report_tells_the_time_without_a_run_from_waits() {
    let mut stage = Stage::new();
    let stops: Watch = Box::new(|call, side, _| {
        matches!((call, side), (Call::Act(Act::Ceph(CephAct::Destroy { .. })), Side::Queued))
    });
    assert!(stage.run(Some(stops), 0).is_none());
    let open = stage.account();
    assert_eq!(open.rows.iter().map(|row| row.entry.outcome).collect::<Vec<_>>(), [Outcome::InProgress]);
    stage.sim.borrow_mut().advance(TimeDelta::hours(1));
    assert!(matches!(stage.run(None, 0), Some(Ok(End::Finished(_)))));
    let account = stage.account();
    assert_complete(&account, "an hour without a run");
    let entry = &account.rows[0].entry;
    let without = entry.waits[NO_RUN];
    assert!((3590..=3620).contains(&without), "{without}: {:?}", entry.waits);
    assert_eq!(
        (entry.pods, entry.jobs.as_slice()),
        (2, &["osd-migrate-1".to_owned(), "osd-migrate-2".to_owned()][..])
    );
    assert!(account.rows[1..].iter().all(|row| !row.entry.waits.contains_key(NO_RUN)));
    // The OSD belongs to the run that began with it.
    let confirmed: Vec<_> = account
        .confirmations()
        .into_iter()
        .map(|one| (one.confirmation.unwrap().job, one.osds.len()))
        .collect();
    assert_eq!(confirmed, [("osd-migrate-1".to_owned(), 1), ("osd-migrate-2".to_owned(), 4)]);
}

#[test]
fn history_that_cannot_be_written_holds_up_no_migration() {
    let mut undisturbed = Stage::new();
    undisturbed.run(None, 0);
    let mut stage = Stage::new();
    // The first OSD is closed, and two saves later the history can be written again.
    assert!(matches!(stage.run(None, 3), Some(Ok(End::Finished(_)))));
    assert_eq!(stage.writes.borrow()[..4], [false, false, false, true]);
    assert_eq!(stage.now(), undisturbed.now(), "it took no longer");
    assert_eq!(stage.sim.borrow().done, undisturbed.sim.borrow().done, "the same was done");
    assert_complete(&stage.account(), "after failures");
    // What was never written survives the run.
    let mut stage = Stage::new();
    assert!(matches!(stage.run(None, u32::MAX), Some(Ok(End::Finished(_)))));
    assert!(stage.sim.borrow().history.is_empty());
}

/// Returns an entry like those of a large cluster.
fn entry(n: u32) -> Entry {
    let at =
        |seconds: i64| DateTime::from_timestamp(1_772_323_200 + i64::from(n) * 4000 + seconds, 0).unwrap();
    let milestones = [
        ("record", 0),
        ("inspect", 1),
        ("proof", 9),
        ("stop", 130),
        ("down", 138),
        ("rebuild", 140),
        ("new", 171),
        ("up", 190),
        ("closing", 3900),
    ];
    let value = json!({
        "osd": n, "id": format!("{n:08x}-{n}"), "attempt": 2, "outcome": "migrated", "node": format!("node-{}", n % 40),
        "class": {"class": "legacy", "why": "filestore-partition"},
        "target": {"store": "bluestore", "mode": "raw", "encrypted": false},
        "disk": {"name": format!("/dev/disk/by-id/ata-SAMSUNG_MZ7LH3T8HMLT-00005_S456NY0M{n:06}"),
            "serial": format!("S456NY0M{n:06}"), "size_bytes": 3_840_755_982_336_u64},
        "old": format!("{n:08x}-0000-4000-8000-000000000001"), "new": format!("{n:08x}-0000-4000-8000-000000000002"),
        "used_bytes": 1_900_000_000_000_u64, "moved_bytes": 1_912_345_678_901_u64,
        "milestones": milestones.map(|(code, seconds)| json!([code, at(seconds)])),
        "waits": {"node-agent": 39, "stopping": 8, "starting": 19, "backfilling": 3690, "not-clean": 120},
        "waits_before": {"window": 3600},
        "confirmation": {"job": "osd-migrate-run-1772323200", "by": "flag", "who": "alice@example.org", "at": at(0)},
        "jobs": ["osd-migrate-run-1772323200"], "pods": 1,
    });
    serde_json::from_value(value).unwrap()
}

/// Returns the account of so many OSDs, one of which is quarantined, and one of which was retried.
fn account(osds: u32) -> (Account, DateTime<Utc>) {
    let mut entries: Vec<Entry> = (0..osds).map(entry).collect();
    let why = "its disk <cannot> be read & \"nothing\" helps. See: kubectl -n NAMESPACE logs job/x";
    let bad = &mut entries[1];
    (bad.outcome, bad.why) = (Outcome::Quarantined, Some(why.to_owned()));
    bad.milestones.truncate(4);
    let at = bad.milestones[3].1 + TimeDelta::minutes(7);
    bad.milestones.push(("quarantine".to_owned(), at));
    let retried = &mut entries[2];
    retried.notes.push(Note { at, code: "quarantine".to_owned(), why: why.to_owned() });
    let mut earlier = retried.clone();
    earlier.outcome = Outcome::Quarantined;
    earlier.key.attempt = 1;
    entries.push(earlier);
    let now = entries.iter().filter_map(Entry::ended_at).max().unwrap();
    (Account::of(entries, &Ledger::default(), &history::Courses::default(), now), now)
}

fn report_of<'a>((account, now): &'a (Account, DateTime<Utc>), names: &'a Names) -> Report<'a> {
    Report { names, account, unread: 0, now: *now }
}

#[test]
fn entry_of_the_history_takes_at_most_1100_bytes() {
    let sizes: Vec<usize> = (0..1000).map(|n| serde_json::to_string(&entry(n)).unwrap().len() + 1).collect();
    let (mean, most) = (sizes.iter().sum::<usize>() / sizes.len(), sizes.iter().max().copied().unwrap());
    crate::story::play::print_figures(&format!("an OSD takes {mean} bytes of the history"));
    assert!(most <= 1100, "{most}");
}

#[test]
fn report_of_1000_osds_takes_less_than_2_seconds_and_2_mib() {
    let (names, lines) = (names(), (0..1000).map(|n| serde_json::to_string(&entry(n)).unwrap()));
    let text = lines.collect::<Vec<_>>().join("\n");
    let began = Instant::now();
    let (entries, _) = history::read(&text);
    let now = entries.iter().filter_map(Entry::ended_at).max().unwrap();
    let account = (Account::of(entries, &Ledger::default(), &history::Courses::default(), now), now);
    let report = report_of(&account, &names);
    let html = report_html(&report).unwrap();
    let of_html = began.elapsed();
    let text = report_text(&report, 120);
    let json = report_json(&report).to_string();
    let took = began.elapsed();
    let sizes = [html.len(), text.len(), json.len()];
    crate::story::play::print_figures(&format!(
        "1,000 OSDs: page in {of_html:?}, all forms in {took:?}, bytes {sizes:?}"
    ));
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(sizes.iter().all(|size| *size < 2 << 20), "{sizes:?}");
}

#[test]
fn page_is_well_formed_escaped_and_needs_no_network() {
    let (account, names) = (account(3), names());
    let html = report_html(&report_of(&account, &names)).unwrap();
    assert_well_formed(&html);
    assert!(html.contains("&#60;cannot&#62; be read &#38;"), "values are escaped");
    assert!(html.contains("kubectl -n rook-ceph logs job/x"), "commands have the namespace");
    for word in ["<script", "http://", "https://", "url(", "@import", "style=\"", "onclick", "NAMESPACE"] {
        assert!(!html.contains(word), "{word}");
    }
    for word in [
        "prefers-color-scheme:dark",
        "@media print",
        "max-width:40rem",
        "<caption>",
        "scope=\"col\"",
        "scope=\"row\"",
        "lang=\"en\"",
        "role=\"img\" aria-label=\"Timeline of 3 OSDs",
    ] {
        assert!(html.contains(word), "{word}");
    }
    let ids: Vec<&str> = html.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{ids:?}");
    for link in html.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(ids.contains(&link), "{link}");
    }
}

/// Asserts that each element is closed in its turn.
fn assert_well_formed(html: &str) {
    let (mut open, mut rest) = (Vec::new(), html);
    while let Some((_, tag)) = rest.split_once('<') {
        let (tag, after) = tag.split_once('>').expect("a tag ends");
        rest = after;
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap();
        match tag {
            _ if tag.starts_with("!DOCTYPE") || tag.ends_with('/') || ["meta", "link"].contains(&name) => {}
            _ if tag.starts_with('/') => assert_eq!(open.pop(), Some(name), "</{name}>"),
            _ => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn report_as_json_is_complete() {
    let (account, names) = (account(3), names());
    let json = report_json(&report_of(&account, &names));
    assert_eq!((&json["apiVersion"], &json["kind"]), (&json!("osd-migrate.io/v1"), &json!("Report")));
    assert_eq!(json["summary"]["outcomes"], json!({"migrated": 2, "quarantined": 1}));
    assert_eq!(json["summary"]["waits"]["backfilling"], json!(3690 * 3));
    assert_eq!(json["confirmations"].as_array().map(Vec::len), Some(3), "each at another time");
    let osd = &json["osds"][0];
    let phases: Vec<_> = osd["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["phase"].as_str().unwrap(), one["seconds"].as_i64().unwrap()))
        .collect();
    assert_eq!(
        phases,
        [("inspect", 9), ("ready", 121), ("stop", 8), ("recreate", 33), ("start", 19), ("backfill", 3710)]
    );
    assert_eq!(osd["seconds"], json!(3900));
    assert_eq!(
        json["osds"][1]["why"],
        json!("its disk <cannot> be read & \"nothing\" helps. See: kubectl -n rook-ceph logs job/x")
    );
    assert_eq!(json["osds"][2]["earlier"][0]["outcome"], json!("quarantined"));
}

#[test]
fn report_fits_60_80_and_120_columns() {
    let (account, names) = (account(3), names());
    let folder = crate::runbook::root().join("tests/suite/golden");
    for width in [60, 80, 120] {
        let text = report_text(&report_of(&account, &names), width);
        let path = folder.join(format!("report-{width}.txt"));
        if std::env::var_os("GOLDEN_WRITE").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, format!("{text}\n")).unwrap();
        }
        assert_eq!(format!("{text}\n"), std::fs::read_to_string(&path).unwrap(), "GOLDEN_WRITE=1 writes it");
        let is_wide =
            |line: &&str| line.chars().count() > width.into() && line.split_whitespace().count() > 2;
        assert_eq!(text.lines().find(is_wide), None, "wider than {width}");
    }
}

#[test]
fn empty_report_says_so() {
    let (names, account) = (names(), (Account::default(), DateTime::UNIX_EPOCH));
    let report = Report { unread: 2, ..report_of(&account, &names) };
    let text = report_text(&report, 80);
    assert!(text.contains("No OSD was migrated") && text.contains("2 lines of the history"), "{text}");
    assert_well_formed(&report_html(&report).unwrap());
    assert_eq!(report_json(&report)["osds"], Value::Array(Vec::new()));
}

#[test]
fn history_line_is_added_once_even_if_its_times_differ() {
    let mut later = entry(5);
    let line = serde_json::to_string(&later).unwrap();
    later.waits.insert("backfilling".to_owned(), 4000);
    assert_eq!(history::missing(&line, &[later.clone()]), Vec::<String>::new());
    later.key.attempt += 1;
    assert_eq!(history::missing(&line, &[later]).len(), 1, "it was retried");
    assert_eq!(history::read("{}\nno\n\n").1, 2, "lines that cannot be read are counted");
}
