//! Decides the next step of the whole run: first the open records, then the next OSD, then the end.

mod adopt;
mod available;
mod candidates;
mod crash_loop;
mod database;
mod directory;
mod disks;
mod end;
mod existing_osd;
mod inventories;
mod new_osd;
mod nodes;
mod operator;
mod orphans;
mod record;
mod tolerate;

pub use candidates::{candidates, host_of};
pub use crash_loop::{CRASH_LOOP, crash_loop};
pub use database::of_each as databases;
pub use directory::{Onto, inspected, of_each as directories};
pub use disks::{DiskLine, Disks, disks};
pub use nodes::{OF_PLAN, inventory_job};

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use crate::domain::act::Deploy;
use crate::domain::classify::{self};
use crate::domain::gate::{self, Gate, Reason};
use crate::domain::guard::{Guard, is_out, passes};
use crate::domain::ledger::{Ledger, Record, Strategy};
use crate::domain::next::{Halt, Next, Summary, Wait};
use crate::domain::observation::Observation;
use crate::domain::osd::OsdId;
use crate::domain::policy::Policy;
use crate::domain::provision;
use crate::domain::step::{self, Step};
use crate::domain::view::View;
use end::end;
use orphans::{
    delete_key_of_quarantined, delete_orphans, holds_up_another, lift_noout_of_quarantined, lost_record,
};

/// Questions about single OSDs that must be answered before an iteration can be decided.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Questions {
    /// Sets for `osd ok-to-stop`.
    pub ok_to_stop: BTreeSet<BTreeSet<OsdId>>,
    /// OSDs for `auth get`.
    pub auth: BTreeSet<OsdId>,
    /// Whether to ask if client.bootstrap-osd exists.
    pub bootstrap: bool,
    /// Deployment of a new OSD for a dry run by the API server: of one OSD, right before its stop.
    pub admission: Option<Deploy>,
}

/// Returns the questions to ask Ceph and the API server.
pub fn questions(policy: &Policy, ledger: &Ledger, seen: &Observation) -> Questions {
    let open: BTreeSet<OsdId> = ledger.in_flight().map(|record| record.osd).collect();
    let view = View { policy, ledger, seen };
    let restarts = tolerate::asks(view).filter(|_| policy.makes_new());
    let before = |osd: &OsdId| open.is_empty() || open.contains(osd);
    let next = open.is_empty().then(|| candidates::asked(view)).into_iter().flatten();
    Questions {
        ok_to_stop: open
            .iter()
            .copied()
            .chain(next)
            .chain(restarts)
            .filter(before)
            .map(|osd| BTreeSet::from([osd]))
            .collect(),
        auth: open,
        bootstrap: step::bootstrap::is_asked_for(ledger),
        admission: admission(view),
    }
}

/// Returns the Deployment that the API server is asked about: of the first OSD in progress that is about to
/// be stopped.
fn admission(view: View<'_>) -> Option<Deploy> {
    view.ledger
        .in_flight()
        .find_map(|record| Step::of(record, is_wanted(record, view), view).asks_admission())
}

/// Returns the one next step of the run.
pub fn plan(policy: &Policy, ledger: &Ledger, seen: &Observation) -> Next {
    let view = View { policy, ledger, seen };
    let next = end::with_refused(decide(view), view);
    let next = operator::given_back(next, view);
    let next = before_halt(next, view);
    let next = step::bootstrap::put_away(next, view);
    crash_loop::noted(next, view)
}

/// Lifts `noout` of OSDs that are down before a halt ends the run.
///
/// If the ledger was lost, nothing is known of them.
pub fn before_halt(next: Next, view: View<'_>) -> Next {
    match next {
        Next::Halt(halt) if !matches!(halt, Halt::LedgerLost { .. }) => {
            step::before_halt(view).unwrap_or(Next::Halt(halt))
        }
        Next::Halt(_) | Next::Save { .. } | Next::Do(_) | Next::Wait(_) | Next::Finished(_) => next,
    }
}

fn decide(view: View<'_>) -> Next {
    if let Some(halt) = lost_record(view).filter(|_| !is_out(Guard::LedgerNotLost)) {
        return Next::Halt(halt);
    }
    let calm = || lift_noout_of_quarantined(view).filter(|_| !is_out(Guard::QuarantineLiftsNoout));
    let key = || delete_key_of_quarantined(view).filter(|_| !is_out(Guard::QuarantineKeyDeleted));
    let clean_up = || delete_orphans(view).filter(|_| !is_out(Guard::OrphansDeleted));
    let first = calm().or_else(|| step::drains::next(view)).or_else(key).or_else(clean_up);
    // An agent of a closed record that is still running is waited for before anything is started. Its node
    // may be permanently gone, so a stopped OSD on another node does not wait for it.
    let misplaced = match first {
        Some(Next::Wait(wait)) if holds_up_another(&wait, view) => Some(wait),
        // A silent agent may stay silent while its node is gone: only its own OSD waits for it.
        Some(Next::Wait(Wait::AgentSilent { .. })) | None => None,
        Some(next) => return next,
    };
    if let Some(next) = open_records(view) {
        return match next {
            Next::Wait(_) if misplaced.is_none() => nodes::one_more_on_its_node(view).unwrap_or(next),
            Next::Wait(_) | Next::Save { .. } | Next::Do(_) | Next::Finished(_) | Next::Halt(_) => next,
        };
    }
    if let Some(wait) = misplaced {
        return Next::Wait(wait);
    }
    let quarantined: Vec<_> = view
        .ledger
        .quarantined()
        .map(|r| (r.osd, r.quarantine.as_ref().map(|q| q.why.clone()).unwrap_or_default()))
        .collect();
    if gate::is_cancelled(view) {
        return end(view, Next::Finished(Summary { cancelled: true, quarantined, ..Summary::default() }));
    }
    if gate::failure_limit(view.policy, view.ledger) != Gate::Open {
        return end(view, Next::Halt(Halt::FailureLimit { quarantined }));
    }
    let last = if view.policy.only_new {
        // A fence may be left from a migration run that died.
        end(view, Next::Finished(Summary { quarantined, ..Summary::default() }))
    } else {
        candidates::next(view, quarantined)
    };
    match last {
        Next::Finished(summary) if view.policy.makes_new() => new_osds(view, summary),
        Next::Finished(summary) if view.is_confirmed() => nodes::wind_up(view)
            .unwrap_or_else(|| Next::Finished(Summary { problems: nodes::problems_of(view), ..summary })),
        Next::Finished(_) | Next::Save { .. } | Next::Do(_) | Next::Wait(_) | Next::Halt(_) => last,
    }
}

/// Continues after the last migration: existing OSDs get the tolerations they need to start, then available
/// disks become OSDs.
fn new_osds(view: View<'_>, summary: Summary) -> Next {
    if !passes(Guard::Confirmed, view.is_confirmed()) {
        let unconfirmed_nodes =
            provision::nodes(view.seen, view.policy.store_on_file).chosen.into_iter().collect();
        return Next::Finished(Summary { unconfirmed_nodes, ..summary });
    }
    // Rook creates OSDs on available disks itself, and two writers on one disk are one too many. With
    // `only_new` the user wants osd-migrate to create them.
    if view.seen.kube.running_operator().is_some() && !view.policy.only_new {
        let left_to_rook =
            provision::nodes(view.seen, view.policy.store_on_file).chosen.into_iter().collect();
        return nodes::leave_to_rook(view).unwrap_or_else(|| {
            let problems = nodes::problems_of(view);
            Next::Finished(Summary { problems, left_to_rook, ..summary })
        });
    }
    let restart = tolerate::next(view);
    // A new OSD may clear what prevents a restart, for example PGs that have too few OSDs.
    let next = || nodes::next(view);
    let (restart, next) = match restart {
        Some(done @ (Next::Save { .. } | Next::Do(_))) => return done,
        wait @ (Some(Next::Wait(_) | Next::Finished(_) | Next::Halt(_)) | None) => (wait, next()),
    };
    match (next, restart) {
        (Some(next @ (Next::Save { .. } | Next::Do(_))), _) | (Some(next), None) => next,
        (Some(Next::Wait(_) | Next::Finished(_) | Next::Halt(_)) | None, Some(wait)) => wait,
        (None, None) => {
            let problems = nodes::problems(view);
            Next::Finished(Summary { problems, unseen_nodes: nodes::unseen(view), ..summary })
        }
    }
}

/// Returns the step of the first open record that can do something; otherwise the first wait.
fn open_records(view: View<'_>) -> Option<Next> {
    let mut wait = None;
    for record in view.ledger.in_flight() {
        let is_wanted = is_wanted(record, view);
        let step = Step::of(record, is_wanted, view);
        let next = match gate::held(view) {
            Gate::Shut(reason) | Gate::Unknown(reason) if step.begins() => {
                Next::Wait(Wait::Gate { osd: record.osd, reason })
            }
            Gate::Open | Gate::Shut(_) | Gate::Unknown(_) => without_operator(&step, view),
        };
        match next {
            Next::Wait(_) => wait = wait.or(Some(next)),
            Next::Save { .. } | Next::Do(_) | Next::Finished(_) | Next::Halt(_) => return Some(next),
        }
    }
    wait
}

/// Returns the step of an open record.
///
/// If Rook's operator was restored while the OSD waited for its stop, the operator is first scaled to 0
/// again.
fn without_operator(step: &Step<'_>, view: View<'_>) -> Next {
    let next = step.next();
    let Next::Wait(Wait::Gate { reason, .. }) = &next else { return next };
    let gate = Gate::Shut(reason.clone());
    let is_open = |imagined: &Observation| {
        let next = Step::of(step.record, step.facts.wanted, view.imagining(imagined)).next();
        // The API server is asked last, after the operator is scaled down.
        let asks = |reason: &Reason| matches!(reason, Reason::AdmissionUnknown { why: None, .. });
        !matches!(&next, Next::Wait(wait) if !matches!(wait, Wait::Gate { reason, .. } if asks(reason)))
    };
    let is_about_stop = step.begins();
    let away = is_about_stop.then(|| operator::out_of_the_way(&gate, is_open, view)).flatten();
    away.unwrap_or(next)
}

/// Returns whether confirmation, selection, class, node, Deployment and target still are as recorded.
///
/// Callers ask only before Stop. If the Deployment was recreated, it is not the one in the backup, and its
/// OSD gets a new record.
///
/// For an available disk: returns whether its node's inventory still finds it available, and it is selected
/// to become the recorded OSD.
pub fn is_wanted(record: &Record, view: View<'_>) -> bool {
    if record.is_new() {
        return view.is_confirmed() && !gate::is_cancelled(view) && available::is_selected(record, view);
    }
    let class = view.slot(record.osd).map(|slot| classify::class_of(record.osd, slot, view.seen));
    let daemon = view.daemon(record.osd);
    let node = daemon.and_then(|daemon| daemon.node.as_ref());
    view.is_confirmed()
        && view.policy.selects(record.osd)
        && !is_undone(record, view)
        && class.as_ref() == Some(&record.class)
        && node == Some(&record.node)
        && daemon.is_some_and(|daemon| daemon.uid == record.deployment)
        && match &record.strategy {
            Strategy::Directory { path, .. } => {
                daemon.is_some_and(|daemon| daemon.data_dir.as_ref() == Some(path))
                    && directory::is_selected(record, view)
            }
            Strategy::InPlace | Strategy::New { .. } => {
                classify::target_of(record.osd, view.seen).as_ref() == Some(&record.target)
                    && database::is_as_recorded(record, view)
            }
        }
}

/// Returns whether the preparations for a suspended OSD are undone.
///
/// After a cancel they always are. After a pause they are only if something was set for the stop (flags, the
/// fence) or Rook's operator was scaled down: neither may stay as long as a pause may last.
///
/// A recent intent delays this. A Stop may still be on its way (a call has ten seconds), and the record must
/// exist to recognise it.
fn is_undone(record: &Record, view: View<'_>) -> bool {
    let held = gate::held(view) != Gate::Open;
    let settled = |at: DateTime<Utc>| (view.seen.at - at).num_minutes() >= step::INTENT_MINUTES;
    let without_intent = || gate::is_cancelled(view) || view.ledger.run.operator.is_some();
    held && record.stop_intended_at.map_or_else(without_intent, settled)
}
