//! The output of `plan` and `status`: whether each OSD can be started now, and why not.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::json;

use osd_migrate::domain::commands::Names;
use osd_migrate::domain::estimate::Rate;
use osd_migrate::domain::gate::Reason;
use osd_migrate::domain::ledger::{FormerPdb, Ledger, ScaledOperator};
use osd_migrate::domain::next::Wait;
use osd_migrate::domain::observation::{Control, ControlKind, Emptiable, OkToStop, Releases, Runner};
use osd_migrate::domain::osd::{OsdId, PgId};
use osd_migrate::domain::plan::Disks;
use osd_migrate::domain::policy::Empty;
use osd_migrate::domain::preview::{self, Line, Now};
use osd_migrate::domain::removal::RemovalRequest;
use osd_migrate::layout::Width;
use osd_migrate::report::{Event, Said};
use osd_migrate::show::{self, Plan, PlanDetail, Status};

use crate::support::build::{BY_HAND, FILESTORE, OPERATOR, POOL, World, noon, pg_id, states};
use crate::support::{check, with_plan};

pub(crate) fn now(world: &World, osd: OsdId) -> Now {
    let lines = preview::lines(&world.policy, &world.ledger, &world.seen);
    lines.into_iter().find(|line| line.osd == osd).unwrap().now
}

/// Returns the table of `plan` with the rows of all OSDs.
pub(crate) fn plan_table(lines: &[Line]) -> String {
    let detail = PlanDetail { all: true, ..PlanDetail::default() };
    with_plan(lines, |plan| show::plan_text(plan, detail))
}

pub(crate) fn table(world: &World) -> String {
    plan_table(&preview::lines(&world.policy, &world.ledger, &world.seen))
}

#[test]
fn preview_shows_one_osd_next_others_queued_and_rest_nothing() {
    let world = World::new();
    assert_eq!(now(&world, BY_HAND), Now::Next);
    assert_eq!(now(&world, FILESTORE), Now::Waits(Reason::Queued { osd: BY_HAND }));
    assert_eq!(now(&world, OsdId(1)), Now::Nothing);
    let skipped = world.with(|w| w.policy.skip = [BY_HAND].into());
    assert_eq!(now(&skipped, BY_HAND), Now::Nothing);
    assert_eq!(now(&skipped, FILESTORE), Now::Next);
}

#[test]
fn preview_shows_why_an_osd_cannot_be_started() {
    type Case = (fn(&mut World), fn(&Reason) -> bool);
    let for_all: [Case; 5] = [
        (|w| w.pg(1).state = states("active+undersized"), |r| matches!(r, Reason::NotClean { .. })),
        (|w| w.seen.kube.declaration.confirmed = false, |r| matches!(r, Reason::NotConfirmed)),
        (
            |w| w.seen.kube.control = Some(Control { kind: ControlKind::Pause, since: None }),
            |r| matches!(r, Reason::Paused { since: None }),
        ),
        (|w| w.seen.ceph.health.extend(["MON_DOWN".to_owned()]), |r| matches!(r, Reason::MonDown)),
        (|w| drop(w.seen.ceph.pgs.remove(&pg_id(1))), |r| matches!(r, Reason::StatisticsIncomplete { .. })),
    ];
    for (number, (change, is_expected)) in for_all.into_iter().enumerate() {
        let world = World::new().with(change);
        for osd in [BY_HAND, FILESTORE] {
            let now = now(&world, osd);
            assert!(
                matches!(&now, Now::Waits(reason) if is_expected(reason)),
                "case {number} {osd}: {now:?}"
            );
        }
    }
    // The OSD has a reason of its own; the next one is started instead.
    let not_ok = OkToStop { ok: false, bad_pgs: 3 };
    let one = World::new().with(|w| w.seen.ceph.ok_to_stop.extend([([BY_HAND].into(), not_ok)]));
    assert_eq!(now(&one, BY_HAND), Now::Waits(Reason::NotOkToStop { bad_pgs: 3 }));
    assert_eq!(now(&one, FILESTORE), Now::Next);
}

#[test]
fn preview_shows_other_reasons_before_not_confirmed() {
    let world = World::new().with(|w| {
        w.seen.kube.declaration.confirmed = false;
        w.seen.ceph.releases = Releases::Several;
    });
    assert_eq!(now(&world, BY_HAND), Now::Waits(Reason::Upgrading));
}

#[test]
fn preview_refuses_osds_without_redundancy_if_emptying_is_forbidden() {
    let without_redundancy = |size: u32, data_chunks: Option<u32>| {
        World::new().with(|w| {
            let pool = w.seen.ceph.pools.get_mut(&POOL).unwrap();
            (pool.size, pool.data_chunks) = (size, data_chunks);
            w.policy.empty = Empty::Never;
            w.seen.kube.declaration.confirmed = false;
            w.seen.ceph.releases = Releases::Several;
        })
    };
    for world in [without_redundancy(1, None), without_redundancy(2, None), without_redundancy(3, Some(2))] {
        check!(now(&world, BY_HAND), Now::Refused(Reason::NoRedundancy { pool }) if pool == "data");
        let table = table(&world);
        assert!(
            table.contains("refused: no-redundancy") && table.contains("\nno-redundancy: pool data"),
            "{table}"
        );
    }
    // An OSD of a pool with insufficient redundancy does not block the others.
    let one = World::new().with(|w| {
        let mut pool = w.seen.ceph.pools[&POOL].clone();
        (pool.size, pool.pg_num) = (2, 1);
        w.seen.ceph.pools.insert(2, pool);
        let mut pg = w.seen.ceph.pgs[&pg_id(0)].clone();
        (pg.pool, pg.up, pg.acting) = (2, [BY_HAND].into(), [BY_HAND].into());
        w.policy.empty = Empty::Never;
        w.seen.ceph.pgs.insert("2.0".parse::<PgId>().unwrap(), pg);
    });
    check!(now(&one, BY_HAND), Now::Refused(_));
    assert_eq!(now(&one, FILESTORE), Now::Next);
}

#[test]
fn preview_shows_records_as_in_progress_or_quarantined() {
    let in_flight = World::stopped(BY_HAND).with(|w| w.policy.select.clear());
    assert_eq!(now(&in_flight, BY_HAND), Now::InFlight);
    // The reason is not that PGs have a missing copy: they do because of the OSD in progress.
    assert_eq!(now(&in_flight, FILESTORE), Now::Waits(Reason::Queued { osd: BY_HAND }));
    let failed = World::recorded(BY_HAND)
        .report_with(BY_HAND, |r| r.inspection.as_mut().unwrap().capability.raw_osd_id = false)
        .saved("quarantine")
        .with(|w| w.policy.select.clear());
    check!(now(&failed, BY_HAND), Now::Quarantined { .. });
    assert_eq!(now(&failed, FILESTORE), Now::Next);
    assert!(table(&failed).contains("osd-migrate -n NAMESPACE retry osd.0"));
}

#[test]
fn preview_next_is_the_osd_that_the_run_starts() {
    for change in [
        (|_| {}) as fn(&mut World),
        |w| w.policy.skip = [BY_HAND].into(),
        |w| w.seen.ceph.health.extend(["MON_DOWN".to_owned()]),
        |w| w.seen.kube.declaration.confirmed = false,
        |w| w.seen.kube.nodes.get_mut(&crate::support::build::node_of(BY_HAND)).unwrap().cordoned = true,
        // A removal waits, and keeps no migration from beginning.
        |w| {
            w.policy.removals = true;
            let request = RemovalRequest::of(w.slot(OsdId(1)).fsid.unwrap());
            w.seen.kube.requests.removals.insert(OsdId(1), request);
            w.seen.ceph.emptiable.insert(OsdId(1), Emptiable::Yes { moved_bytes: 0, fullest: None });
            w.seen.ceph.flags.insert("norebalance".to_owned());
        },
    ] {
        let world = World::new().with(change);
        let next: Vec<_> =
            [BY_HAND, FILESTORE].into_iter().filter(|osd| now(&world, *osd) == Now::Next).collect();
        let begun: Vec<_> = match world.plan() {
            osd_migrate::domain::next::Next::Save { osd, .. } => osd.into_iter().collect(),
            _ => Vec::new(),
        };
        assert_eq!(next, begun);
    }
}

#[test]
fn plan_table_fits_120_columns_with_unbroken_commands() {
    let world = World::new().with(|w| {
        let operator = w.seen.kube.operator.as_mut().unwrap();
        operator.replicas = 1;
        for slot in w.seen.ceph.slots.values_mut() {
            slot.metadata.as_mut().unwrap().stable_devices =
                vec!["VENDOR_MODEL_WITH_A_LONG_NAME_S123456789".to_owned()];
        }
    });
    let table = table(&world);
    let (rows, reasons): (Vec<&str>, Vec<&str>) =
        table.lines().partition(|line| !line.starts_with("operator-runs:"));
    assert!(rows.iter().all(|row| row.chars().count() <= 120), "{table}");
    assert_eq!(reasons.len(), 1, "once, for all of them: {table}");
    assert!(reasons[0].ends_with("kubectl -n rook-ceph scale deployment rook-ceph-operator --replicas=0"));
}

#[test]
fn plan_json_shows_state_reason_and_message() {
    let world = World::new();
    let lines = preview::lines(&world.policy, &world.ledger, &world.seen);
    let (devices, disks) = (BTreeMap::new(), Disks::default());
    let hash = "0123456789abcdef".parse().unwrap();
    let unmatched = ["osd.99 is selected and does not exist. See: ceph osd tree".to_owned()].into();
    let plan = Plan {
        lines: &lines,
        devices: &devices,
        disks: &disks,
        places: &[],
        rate: Rate::of(None),
        hash: Some(&hash),
        unmatched: &unmatched,
    };
    let text = show::plan_text(&plan, PlanDetail::default());
    assert!(text.ends_with(
        "\nTo migrate exactly this, as long as it is so: osd-migrate -n NAMESPACE run --approve 0123456789abcdef"
    ));
    let json = show::plan_json(&plan);
    assert_eq!((&json["apiVersion"], &json["kind"]), (&"osd-migrate.io/v1".into(), &"Plan".into()));
    assert_eq!(
        (&json["summary"]["toMigrate"], &json["summary"]["asDeclared"]),
        (&2.into(), &(lines.len() - 2).into())
    );
    assert_eq!(
        (&json["hash"], json["unmatched"][0].as_str().map(str::len)),
        (&"0123456789abcdef".into(), Some(57))
    );
    assert_eq!(show::plan_names(&plan), "osd.0\nosd.2");
    assert_eq!(json["osds"][0]["now"]["state"], "next");
    assert_eq!(json["osds"][2]["now"]["state"], "waits");
    assert_eq!(json["osds"][2]["now"]["reason"], "queued");
    assert_eq!(json["osds"][2]["now"]["message"], "OSDs are stopped one at a time: osd.0 is first");
    assert_eq!(json["osds"][1]["now"]["state"], "nothing");
}

// ---- status

pub(crate) fn names() -> &'static Names {
    static NAMES: LazyLock<Names> = LazyLock::new(|| Names {
        namespace: "ceph-a".to_owned(),
        cluster: Some("store".to_owned()),
        ..Names::default()
    });
    &NAMES
}

#[test]
fn status_shows_the_wait_its_start_and_the_control() {
    let world = World::recorded(BY_HAND);
    let wait = Wait::Gate { osd: BY_HAND, reason: Reason::MonDown };
    let event =
        Event::Waiting { wait: &wait, policy: &world.policy, ledger: &world.ledger, seen: &world.seen };
    let said = Said::of(&event, &event.to_string(), noon(), noon() + chrono::TimeDelta::minutes(3));
    let order = Control { kind: ControlKind::Pause, since: Some(noon()) };
    let status = Status {
        names: names(),
        ledger: &world.ledger,
        control: Some(&order),
        own_pdb: true,
        runner: None,
        requests: None,
        said: Some(&said),
        now: noon() + chrono::TimeDelta::minutes(5),
    };
    let text = show::status_text(&status, Width::Unknown);
    let last = "The last run waited for 3 min, until 2 min ago: osd.0 waits: ";
    assert!(text.contains(last), "{text}");
    let runner = Runner {
        job: "m".to_owned(),
        pod: "m-x".to_owned(),
        renewed_at: None,
        has_pod: true,
        is_alive: true,
    };
    let at_work = show::status_text(&Status { runner: Some(&runner), ..status }, Width::Unknown);
    assert!(at_work.contains("Waiting for 5 min (as of 2 min ago): osd.0 waits: "), "{at_work}");
    assert!(text.contains("Paused 5 min ago") && text.contains("osd-migrate -n NAMESPACE resume"), "{text}");
    assert!(text.contains("Drains of nodes wait: no OSD may be evicted"), "{text}");
    let json = show::status_json(&status);
    assert_eq!((&json["last"]["reason"], &json["last"]["waits"]), (&"mon-down".into(), &true.into()));
    assert_eq!(json["control"]["kind"], "pause");
    let quiet = Status {
        names: names(),
        ledger: &World::new().ledger,
        control: None,
        own_pdb: false,
        runner: None,
        requests: None,
        said: None,
        now: noon(),
    };
    assert_eq!(
        show::status_text(&quiet, Width::Unknown),
        "CephCluster store in namespace ceph-a\nNo OSD is in progress."
    );
}

#[test]
fn status_says_whether_a_run_is_at_work() {
    let (world, idle) = (World::recorded(BY_HAND), World::new());
    let alive = Runner {
        job: "migrate".to_owned(),
        pod: "migrate-x".to_owned(),
        renewed_at: Some(noon()),
        has_pod: true,
        is_alive: true,
    };
    let text = |ledger, runner| {
        let status = Status {
            names: names(),
            ledger,
            control: None,
            own_pdb: false,
            runner,
            requests: None,
            said: None,
            now: noon() + chrono::TimeDelta::hours(15),
        };
        show::status_text(&status, Width::Unknown)
    };
    let second = |text: String| text.lines().nth(1).unwrap_or_default().to_owned();
    assert_eq!(second(text(&world.ledger, Some(&alive))), "Job migrate is running (pod migrate-x).");
    let suspended = Runner { is_alive: false, ..alive.clone() };
    let ended = Runner { has_pod: false, ..suspended.clone() };
    for runner in [Some(&ended), None] {
        let line = second(text(&world.ledger, runner));
        assert!(
            line.starts_with("NO RUN IS AT WORK, and OSDs are in progress: osd.0. Start a run: "),
            "{line}"
        );
        assert_eq!(second(text(&idle.ledger, runner)), "No OSD is in progress.");
    }
    let line = second(text(&world.ledger, Some(&suspended)));
    assert!(line.contains("Pod migrate-x exists, and has not renewed its Lease for 15 h"), "{line}");
}

#[test]
fn status_shows_scaled_operator_and_pdb_in_text_and_json() {
    let mut ledger = World::new().ledger;
    let of = |ledger: &Ledger, own_pdb: bool| {
        let status = Status {
            names: names(),
            ledger,
            control: None,
            own_pdb,
            runner: None,
            requests: None,
            said: None,
            now: noon(),
        };
        (show::status_text(&status, Width::Unknown), show::status_json(&status))
    };
    let (_, json) = of(&ledger, false);
    assert_eq!(
        (&json["operator"], &json["drains"]),
        (&json!(null), &json!({"wait": false, "limitedBy": []}))
    );
    let (_, json) = of(&ledger, true);
    assert_eq!(json["drains"], json!({"wait": true, "limitedBy": ["osd-migrate-drains"]}));
    let name = OPERATOR.to_owned();
    ledger.run.operator = Some(ScaledOperator {
        name,
        replicas: 2,
        uid: None,
        generation: 5,
        since: None,
        job: None,
        restoring: false,
    });
    ledger.run.pdb = Some(FormerPdb { max_unavailable: 1, uid: None, generation: Some(1) });
    let (text, json) = of(&ledger, true);
    assert_eq!(json["operator"], json!({"name": OPERATOR, "replicas": 2}));
    assert_eq!(json["drains"], json!({"wait": true, "limitedBy": ["rook-ceph-osd", "osd-migrate-drains"]}));
    assert!(text.contains("(PodDisruptionBudget rook-ceph-osd, osd-migrate-drains)"), "{text}");
    assert!(
        text.contains(&format!("{OPERATOR} is scaled to 0")) && text.contains("scales it back to 2"),
        "{text}"
    );
}

#[test]
fn status_of_an_older_run_is_read() {
    let said: Said =
        serde_json::from_str(r#"{"at":"2026-03-01T00:00:00Z","says":"osd.0 is backfilling"}"#).unwrap();
    let status = Status {
        names: names(),
        ledger: &World::new().ledger,
        control: None,
        own_pdb: true,
        runner: None,
        requests: None,
        said: Some(&said),
        now: noon() + chrono::TimeDelta::minutes(5),
    };
    assert!(show::status_text(&status, Width::Unknown).ends_with(" ago: osd.0 is backfilling"));
}

#[test]
fn pause_cancel_and_resume_report_the_resulting_state() {
    let says = show::control_changed;
    assert!(says(None, Some(ControlKind::Pause)).starts_with("paused:"));
    assert!(says(Some(ControlKind::Pause), Some(ControlKind::Cancel)).starts_with("cancelled:"));
    assert!(says(Some(ControlKind::Cancel), Some(ControlKind::Pause)).contains("nothing was changed"));
    assert!(says(Some(ControlKind::Pause), None).starts_with("resumed"));
    assert!(says(None, None).contains("nothing was changed"));
}
