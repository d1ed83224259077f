//! Simulated runs that are killed, and what the history says about them.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};

use osd_migrate::domain::act::{Act, CephAct};
use osd_migrate::domain::history::{
    self, Account, Confirmation, ConfirmedBy, Entry, NO_RUN, Outcome, RunHistory, Span,
};
use osd_migrate::domain::in_parallel::InParallel;
use osd_migrate::domain::ledger::{Ledger, Quarantine, Record};
use osd_migrate::domain::osd::OsdId;
use osd_migrate::domain::policy::{Limits, Policy};
use osd_migrate::ports::{Failure, LedgerStore, LoadError, Saved, passing};
use osd_migrate::report::{Event, Reporter, observed};
use osd_migrate::run::{End, Ports, RunError};
use osd_migrate::sim::World;
use osd_migrate::sim::course::Sim;
use osd_migrate::sim::example::{self, Kind, PoolShape, Shape};
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
        self.history.observe(now, observed(&event, &event.waits()));
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
        self.history.keep(if result.is_err() { entries } else { Vec::new() });
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

    async fn append(&mut self, entries: &[Entry]) -> Result<Saved, Failure> {
        if self.failures > 0 {
            self.failures -= 1;
            return Err(passing("the quota is exceeded"));
        }
        self.runner.append(entries).await
    }
}

struct Stage {
    sim: Rc<RefCell<Sim>>,
    policy: Policy,
    status: Rc<RefCell<Option<String>>>,
    writes: Rc<RefCell<Vec<bool>>>,
    runs: u32,
}

impl Stage {
    fn new() -> Self {
        Self::over(example::twelve(), Policy::default())
    }

    fn over(world: World, policy: Policy) -> Self {
        let mut sim = Sim::new(world, 1);
        sim.schedule.rate = 1 << 30;
        let sim = Rc::new(RefCell::new(sim));
        Self { sim, policy, status: Rc::default(), writes: Rc::default(), runs: 0 }
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
        let polled =
            std::pin::pin!(ports.run(&self.policy)).as_mut().poll(&mut Context::from_waker(Waker::noop()));
        match polled {
            Poll::Ready(end) => Some(end),
            Poll::Pending => None,
        }
    }

    fn account(&self) -> Account {
        let sim = self.sim.borrow();
        let (entries, unread) = history::read(&sim.history.join("\n"));
        assert_eq!(unread, 0);
        Account::of(entries, &sim.ledger().unwrap(), &self.stored().courses, sim.world.at)
    }

    /// Saves the ledger as a command does.
    fn save(&self, ledger: &Ledger) {
        let mut runner = Runner::new(&self.sim, None);
        let saved = async {
            let (_, version) = runner.load().await.unwrap();
            runner.save(ledger, version).await
        };
        let polled = std::pin::pin!(saved).as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(polled, Poll::Ready(Ok(Saved::Stored)));
    }

    /// Returns the history that is stored with the status.
    fn stored(&self) -> RunHistory {
        let status = self.status.borrow();
        status.as_ref().map(|text| serde_json::from_str(text).unwrap()).unwrap_or_default()
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
        let sum: TimeDelta = row.spans.iter().map(Span::time).sum();
        assert_eq!(sum, row.took, "{said}, {osd}: the phases have no gaps");
        let waits: i64 = entry.waits.values().sum();
        // Each wait is rounded, and so is the time.
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
    let points = (1..=calls).filter(|n| n % 11 == 0 || n + 12 > calls);
    for (n, side) in points.flat_map(|n| [(n, Side::Before), (n, Side::Done)]) {
        let mut stage = Stage::new();
        let said = format!("killed at {n} {side:?}");
        assert!(stage.run(Some(kills_at(n, side, &Rc::default())), 0).is_none(), "{said}");
        stage.sim.borrow_mut().advance(TimeDelta::seconds(12));
        assert!(matches!(stage.run(None, 0), Some(Ok(End::Finished(_)))), "{said}");
        assert_complete(&stage.account(), &said);
    }
}

/// Checks that the report knows the data and the waits of each OSD, though a run names one wait only.
#[test]
fn report_has_the_data_of_each_osd_in_parallel() {
    let pool = PoolShape { pgs: 12, size: 3, min_size: 2, data_chunks: None, gib: 8 };
    let hosts = vec![vec![Kind::ByHand; 3], vec![Kind::Raw; 3], vec![Kind::Raw; 3]];
    let world = Shape { hosts, pools: vec![pool], disk_gib: 100 }.world();
    let limits = Limits { soak: TimeDelta::zero(), ..Limits::default() };
    let mut stage =
        Stage::over(world, Policy { in_parallel: InParallel::Count(2), limits, ..Policy::default() });
    assert!(matches!(stage.run(None, 0), Some(Ok(End::Finished(_)))));
    let account = stage.account();
    assert_eq!(account.rows.len(), 3);
    for row in &account.rows {
        let (entry, backfill) = (&row.entry, row.entry.waits.get("backfilling").copied());
        assert!(entry.moved_bytes > 20 << 30, "{}: {} bytes", entry.key.osd, entry.moved_bytes);
        assert!(backfill > Some(10), "{}: {:?}", entry.key.osd, entry.waits);
        assert!(entry.waits.values().sum::<i64>() <= row.took.num_seconds() + 1, "{:?}", entry.waits);
    }
}

#[test]
fn report_tells_the_time_without_a_run_from_waits() {
    let mut stage = Stage::new();
    let stops: Watch = Box::new(|call, side, _| {
        matches!((call, side), (Call::Act(Act::Ceph(CephAct::Destroy { .. })), Side::Done))
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

#[test]
fn reason_of_a_quarantine_survives_the_retry() {
    let mut stage = Stage::new();
    let is_proven = |record: &Record| record.milestones.last().is_some_and(|(code, _)| code == "proof");
    let stops: Watch = Box::new(
        move |call, side, _| matches!((call, side), (Call::Save(ledger), Side::Done) if ledger.records.values().any(is_proven)),
    );
    assert!(stage.run(Some(stops), 0).is_none());
    let mut ledger = stage.sim.borrow().ledger().unwrap();
    let record = ledger.records.values_mut().next().unwrap();
    let osd = record.osd;
    let quarantine = Quarantine { why: "its disk cannot be read".to_owned(), since: stage.now() };
    record.milestones.push(("quarantine".to_owned(), stage.now()));
    record.quarantine = Some(quarantine);
    stage.save(&ledger);
    let row_of = |account: &Account| {
        let rows: Vec<_> = account.rows.iter().filter(|row| row.entry.key.osd == osd).cloned().collect();
        assert_eq!(rows.len(), 1, "{rows:?}");
        rows[0].clone()
    };
    let first = row_of(&stage.account());
    assert_eq!((first.entry.outcome, first.earlier.len()), (Outcome::Quarantined, 0));
    assert_eq!(first.entry.ended_at(), Some(stage.now().trunc_subsecs(3)));
    // As `retry` does.
    let lines = history::missing("", &stage.stored().before_retry(&ledger, &[osd]));
    assert_eq!(lines.len(), 1);
    stage.sim.borrow_mut().history.extend(lines);
    assert_eq!(row_of(&stage.account()), first, "killed between both writes");
    stage.save(&ledger.all_retried(&[osd], stage.now()).unwrap());
    assert!(matches!(stage.run(None, 0), Some(Ok(End::Finished(_)))));
    let account = stage.account();
    assert_complete(&account, "retried");
    let second = row_of(&account);
    assert_eq!((second.earlier.len(), &second.earlier[0].why), (1, &first.entry.why));
    assert_eq!(first.entry.why.as_deref(), Some("its disk cannot be read"));
    assert!(second.entry.key.attempt > first.entry.key.attempt);
}
