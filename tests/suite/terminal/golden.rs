//! Output at 60, 80 and 120 columns, compared with the files in `golden/`.
//!
//! To write them: `REFERENCE_WRITE=1 cargo test --locked --test suite terminal::`, then read the difference.

use std::collections::BTreeMap;

use osd_migrate::domain::commands::Names;
use osd_migrate::domain::estimate::Rate;
use osd_migrate::domain::gate::Reason;
use osd_migrate::domain::ledger::Quarantine;
use osd_migrate::domain::next::Wait;
use osd_migrate::domain::plan::Disks;
use osd_migrate::domain::preflight::preflight;
use osd_migrate::domain::preview;
use osd_migrate::explain::{Pages, entry_text, list_text};
use osd_migrate::layout::{Width, fitted};
use osd_migrate::rehearse::{self, Detail};
use osd_migrate::report::{Event, Said};
use osd_migrate::show::{self, Plan, PlanDetail, Status};
use osd_migrate::sim::schedule::BACKFILL_RATE;

use crate::runbook::root;
use crate::support::build::{BY_HAND, FILESTORE, World, noon};

/// Widths of the files.
const WIDTHS: [u16; 3] = [60, 80, 120];

/// Name of a disk as long as those of real ones.
const DISK: &str = "/dev/disk/by-id/ata-SAMSUNG_MZ7LH3T8HMLT-00005_S456NY0M123456";

/// Beginnings of commands, which are never broken.
const COMMANDS: [&str; 5] = ["kubectl ", "osd-migrate ", "ceph ", "helm ", "until kubectl "];

fn names() -> Names {
    Names { namespace: "ceph-a".to_owned(), cluster: Some("store".to_owned()), ..Names::default() }
}

fn plan(width: Width) -> String {
    plan_with(false, width)
}

fn plan_with(wide: bool, width: Width) -> String {
    let world = World::new();
    let lines = preview::lines(&world.policy, &world.ledger, &world.seen);
    let devices = BTreeMap::from([(BY_HAND, DISK.to_owned())]);
    let hash = "0123456789abcdef".parse().unwrap();
    let plan = Plan {
        lines: &lines,
        devices: &devices,
        disks: &Disks::default(),
        places: &[],
        rate: Rate::of(None),
        hash: Some(&hash),
        unmatched: &["osd.99 is selected and does not exist. See: ceph osd tree".to_owned()].into(),
    };
    let text = show::plan_text(&plan, PlanDetail { all: true, wide, width });
    fitted(&names().complete(&text), width)
}

fn status(width: Width) -> String {
    let mut world = World::recorded(BY_HAND);
    let other = World::recorded(FILESTORE).ledger.records;
    world.ledger.records.extend(other);
    if let Some(record) = world.ledger.records.get_mut(&FILESTORE) {
        let why = "it is up, but not as declared. See: ceph osd metadata 2".to_owned();
        record.quarantine = Some(Quarantine { why, since: noon() });
    }
    let wait = Wait::Gate { osd: BY_HAND, reason: Reason::Down { osd: BY_HAND } };
    let event =
        Event::Waiting { wait: &wait, policy: &world.policy, ledger: &world.ledger, seen: &world.seen };
    let said = Said::of(&event, &event.to_string(), noon(), noon());
    let names = names();
    let status = Status {
        names: &names,
        ledger: &world.ledger,
        control: None,
        own_pdb: true,
        runner: None,
        requests: None,
        said: Some(&said),
        now: noon() + chrono::TimeDelta::minutes(5),
    };
    fitted(&names.complete(&show::status_text(&status, width)), width)
}

fn preflight_text(width: Width) -> String {
    let world = World::recorded(BY_HAND);
    fitted(&show::preflight(&preflight(&world.ledger, &world.seen), "ceph-a"), width)
}

fn rehearsal(width: Width) -> String {
    rehearse::text(&rehearse::rehearse(1, &[], BACKFILL_RATE), Detail::Usual, width)
}

fn explanation(code: &'static str) -> impl Fn(Width) -> String {
    move |width| {
        let pages = Pages::embedded();
        entry_text(&pages, &pages.find(code), Some(&names()), width)
    }
}

/// Compares a text with its file.
fn check(name: &str, width: u16, text: &str) {
    let path = root().join(format!("tests/suite/terminal/golden/{name}-{width}.txt"));
    let text = format!("{text}\n");
    if option_env!("REFERENCE_WRITE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(golden == text, "{} differs from:\n{text}", path.display());
}

/// Returns lines that are wider than the terminal although they could be broken.
fn too_wide(text: &str, width: u16) -> Vec<&str> {
    let is_wide = |line: &&str| line.chars().count() > usize::from(width);
    let is_whole = |line: &str| {
        let line = line.trim_start();
        line.split_whitespace().count() == 1
            || COMMANDS.iter().any(|command| line.trim_start_matches('`').starts_with(command))
    };
    text.lines().filter(is_wide).filter(|line| !is_whole(line) && !line.contains(DISK)).collect()
}

#[test]
fn output_fits_the_terminal_and_is_as_recorded() {
    let texts: [(&str, &dyn Fn(Width) -> String); 6] = [
        ("plan", &plan),
        ("status", &status),
        ("preflight", &preflight_text),
        ("rehearse", &rehearsal),
        ("explain", &explanation("not-confirmed")),
        ("explain-list", &|width| list_text(&Pages::embedded(), width)),
    ];
    for (name, text) in texts {
        for width in WIDTHS {
            let text = text(Width::of(width));
            let wide = too_wide(&text, width);
            assert!(wide.is_empty(), "{name} at {width}: {wide:#?}");
            assert!(!text.lines().any(|line| line.ends_with(' ')), "{name} at {width}: a space at the end");
            check(name, width, &text);
        }
    }
}

#[test]
fn output_at_every_width_has_its_names_in_one_piece() {
    for columns in 40..=200 {
        let text = plan_with(true, Width::of(columns));
        assert!(text.contains(DISK), "{columns}:\n{text}");
        let wide = too_wide(&text, columns);
        assert!(wide.is_empty(), "{columns}: {wide:#?}");
        let text = status(Width::of(columns));
        assert!(text.contains("osd-migrate -n ceph-a retry osd.2"), "{columns}:\n{text}");
        let wide = too_wide(&text, columns);
        assert!(wide.is_empty(), "{columns}: {wide:#?}");
    }
}

#[test]
fn output_into_a_file_has_whole_sentences() {
    let text = status(Width::Unknown);
    assert!(text.lines().any(|line| line.contains("quarantined") && line.contains("retry osd.2")), "{text}");
}
