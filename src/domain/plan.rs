//! What the whole run does next: the open records first, then the next OSD, then the end.

use std::collections::{BTreeMap, BTreeSet};

use super::act::Act;
use super::classify::{self, Class};
use super::gate::{self, Gate, Reason};
use super::inspection::{NodeTask, RecordId};
use super::ledger::{Attempt, Ledger, MAX_OPEN, Record};
use super::next::{Halt, Next, Saving, Summary, Wait};
use super::observation::Observation;
use super::osd::{Layout, NodeName, OsdId};
use super::phase;
use super::policy::Policy;
use super::step::{self, Step};

/// OSDs that may fail before the run stops for a person: one bad disk is common, two in one run point at something else.
pub const FAILURE_BUDGET: usize = 1;

/// What must be asked of Ceph about single OSDs before a turn can be decided.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Questions {
    /// Sets for `osd ok-to-stop`.
    pub ok_to_stop: BTreeSet<BTreeSet<OsdId>>,
    /// OSDs for `auth get`.
    pub auth: BTreeSet<OsdId>,
}

/// OSDs that are to be migrated, in the order in which they are: one failure domain (host) after the other.
pub fn candidates(policy: &Policy, ledger: &Ledger, seen: &Observation) -> Vec<(OsdId, Class)> {
    let mut found: Vec<_> = classify::classify(seen)
        .into_iter()
        .filter(|(osd, class)| {
            matches!(class, Class::Legacy(_)) && policy.selects(*osd) && !ledger.records.contains_key(osd)
        })
        .collect();
    found.sort_by_key(|(osd, _)| (host_of(*osd, seen), *osd));
    found
}

/// Its host in CRUSH.
fn host_of(osd: OsdId, seen: &Observation) -> Option<String> {
    seen.ceph.slots.get(&osd)?.crush.as_ref()?.location.get("host").cloned()
}

/// What to ask Ceph. Of the candidates only the first few: a gate that keeps so many out keeps the rest out too.
pub fn questions(policy: &Policy, ledger: &Ledger, seen: &Observation) -> Questions {
    /// Candidates asked for a turn.
    const AHEAD: usize = 8;
    let next = candidates(policy, ledger, seen)
        .into_iter()
        .map(|(osd, _)| osd)
        .filter(|osd| gate::redundancy(&gate::pgs_of(*osd, seen), seen) == Gate::Open)
        .take(AHEAD);
    let open: BTreeSet<OsdId> = ledger.in_flight().map(|record| record.osd).collect();
    let before = |osd: &OsdId| open.is_empty() || open.contains(osd);
    Questions {
        ok_to_stop: open
            .iter()
            .copied()
            .chain(next)
            .filter(before)
            .map(|osd| BTreeSet::from([osd]))
            .collect(),
        auth: open,
    }
}

/// The one thing the run does next.
pub fn plan(policy: &Policy, ledger: &Ledger, seen: &Observation) -> Next {
    if let Some(halt) = lost_record(ledger, seen) {
        return Next::Halt(halt);
    }
    if let Some(next) = calm_quarantined(ledger, seen) {
        return next;
    }
    if let Some(next) = open_records(policy, ledger, seen) {
        return next;
    }
    let quarantined: Vec<_> = ledger
        .quarantined()
        .map(|r| (r.osd, r.quarantine.as_ref().map(|q| q.why.clone()).unwrap_or_default()))
        .collect();
    if quarantined.len() > FAILURE_BUDGET {
        return Next::Halt(Halt::FailureBudget { quarantined });
    }
    next_candidate(policy, ledger, seen, quarantined)
}

/// A mark of ours without a record: the ledger was lost.
fn lost_record(ledger: &Ledger, seen: &Observation) -> Option<Halt> {
    let known = |id: &RecordId| ledger.records.values().any(|record| record.id == *id);
    let stopped = seen.kube.daemons.values().find_map(|daemon| {
        let id = daemon.stopped_by.as_ref().filter(|id| !known(id))?;
        Some(Halt::LedgerLost { place: format!("Deployment {}", daemon.name), record: id.clone() })
    });
    let fence = || {
        let value = seen.kube.fence.as_deref().filter(|value| ledger.run.fence.as_deref() != Some(*value))?;
        let id = value.strip_prefix("osd-migrate-")?;
        Some(Halt::LedgerLost { place: "the CephCluster".to_owned(), record: RecordId(id.to_owned()) })
    };
    stopped.or_else(fence)
}

/// Past Stop, a quarantined OSD's noout is lifted, so that Ceph may heal without it.
fn calm_quarantined(ledger: &Ledger, seen: &Observation) -> Option<Next> {
    ledger.quarantined().find_map(|record| {
        let slot = seen.ceph.slots.get(&record.osd)?;
        let (noout, noin) = record.flags_to_lift(slot.noout, slot.noin);
        (noout || noin).then_some(Next::Do(Act::Unhush { osd: record.osd, noout, noin }))
    })
}

/// The first open record that can do something; else the first wait.
fn open_records(policy: &Policy, ledger: &Ledger, seen: &Observation) -> Option<Next> {
    let mut wait = None;
    for record in ledger.in_flight() {
        let next = Step::of(record, ledger, is_wanted(policy, record, seen), seen).next();
        match next {
            Next::Wait(_) => wait = wait.or(Some(next)),
            Next::Save { .. } | Next::Do(_) | Next::Finished(_) | Next::Halt(_) => return Some(next),
        }
    }
    wait
}

/// Whether confirmation, selection, class, node, Deployment and target still are as recorded. Asked only before Stop. (A
/// Deployment that was made anew is not the one that was kept: its OSD is recorded anew.)
pub fn is_wanted(policy: &Policy, record: &Record, seen: &Observation) -> bool {
    let class = seen.ceph.slots.get(&record.osd).map(|slot| classify::class_of(record.osd, slot, seen));
    let daemon = seen.kube.daemons.get(&record.osd);
    let node = daemon.and_then(|daemon| daemon.node.as_ref());
    policy.is_confirmed(&seen.kube.declaration)
        && policy.selects(record.osd)
        && class.as_ref() == Some(&record.class)
        && node == Some(&record.node)
        && daemon.is_some_and(|daemon| daemon.uid == record.deployment)
        && classify::target(&seen.kube.declaration).as_ref() == Ok(&record.target)
}

fn next_candidate(
    policy: &Policy,
    ledger: &Ledger,
    seen: &Observation,
    quarantined: Vec<(OsdId, String)>,
) -> Next {
    let mut summary = Summary { quarantined, ..Summary::default() };
    let candidates = candidates(policy, ledger, seen);
    if !policy.is_confirmed(&seen.kube.declaration) {
        summary.unconfirmed = candidates.iter().map(|(osd, _)| *osd).collect();
        return end(ledger, seen, summary);
    }
    for (osd, class) in candidates {
        let Some((node, target)) = place_of(osd, seen) else {
            continue;
        };
        match gate::before_stop(osd, &node, ledger.run.fence.as_deref(), seen) {
            Gate::Open if ledger.records.len() < MAX_OPEN => {
                if let Some(next) = record(osd, class, node, target, ledger, seen) {
                    return next;
                }
            }
            Gate::Open => return Next::Wait(Wait::FreshView),
            Gate::Shut(reason @ (Reason::NoRedundancy { .. } | Reason::External)) => {
                summary.refused.push((osd, reason.to_string()));
            }
            Gate::Shut(Reason::NotClean { .. }) if only_quarantined_lack(ledger, seen) => {
                return Next::Halt(Halt::Quarantined { quarantined: summary.quarantined });
            }
            Gate::Shut(reason) | Gate::Unknown(reason) => return Next::Wait(Wait::Gate { osd, reason }),
        }
    }
    end(ledger, seen, summary)
}

/// Every PG that is not clean was served by an OSD that was left alone past Stop and is down: waiting alone does not end
/// that. One that serves, the old one or the new one, fills by itself.
fn only_quarantined_lack(ledger: &Ledger, seen: &Observation) -> bool {
    let is_up = |record: &Record| seen.ceph.slots.get(&record.osd).is_some_and(|slot| slot.up);
    let theirs: BTreeSet<_> = ledger
        .quarantined()
        .filter(|record| is_past_stop(record, seen) && !is_up(record))
        .flat_map(|record| &record.pgs)
        .collect();
    let unclean = seen.ceph.pgs.iter().filter(|(_, pg)| !gate::is_clean(pg));
    !theirs.is_empty() && unclean.into_iter().all(|(id, _)| theirs.contains(id))
}

/// It was to be stopped, and is not as it was before: stopped by us, or no longer the old OSD. One that was only meant to
/// be stopped, or serves again, is not.
fn is_past_stop(record: &Record, seen: &Observation) -> bool {
    record.stop_intended_at.is_some() && !phase::facts(record, true, seen).before_stop()
}

/// Nothing is left but our fence, perhaps. An OSD that was left alone past Stop keeps it up: Rook would start it.
fn end(ledger: &Ledger, seen: &Observation, summary: Summary) -> Next {
    let past_stop = ledger.records.values().any(|record| is_past_stop(record, seen));
    match &ledger.run.fence {
        Some(value) if !past_stop => step::take_down(value, ledger, seen),
        Some(_) | None => Next::Finished(summary),
    }
}

fn place_of(osd: OsdId, seen: &Observation) -> Option<(NodeName, Layout)> {
    let node = seen.kube.daemons.get(&osd)?.node.clone()?;
    Some((node, classify::target(&seen.kube.declaration).ok()?))
}

/// Records the OSD: everything that can't be seen again, before anything is done to it (P5).
fn record(
    osd: OsdId,
    class: Class,
    node: NodeName,
    target: Layout,
    ledger: &Ledger,
    seen: &Observation,
) -> Option<Next> {
    let slot = seen.ceph.slots.get(&osd)?;
    let daemon = seen.kube.daemons.get(&osd)?;
    let old = slot.fsid?;
    let serial = ledger.run.serial + 1;
    let record = Record {
        id: RecordId(format!("{}-{serial}", old.to_string().get(..8)?)),
        osd,
        node,
        class,
        target,
        old,
        deployment: daemon.uid.clone(),
        crush: slot.crush.clone()?,
        reweight: slot.reweight,
        primary_affinity: slot.primary_affinity,
        upmaps: seen
            .ceph
            .upmaps
            .iter()
            .filter(|upmap| upmap.mappings.iter().any(|(from, to)| *from == osd || *to == osd))
            .cloned()
            .collect(),
        used_bytes: slot.used_bytes,
        former_flags: (slot.noout, slot.noin),
        evidence: None,
        pgs: BTreeSet::new(),
        stop_intended_at: None,
        restarts: 0,
        turned_back: None,
        barred_since: None,
        attempt: Attempt { number: 1, task: NodeTask::Inspect, failures: 0 },
        claims: BTreeSet::new(),
        new: None,
        milestones: vec![(Saving::Record.word().to_owned(), seen.at)],
        closing: false,
        quarantine: None,
    };
    let mut ledger = ledger.with(record);
    ledger.run.serial = serial;
    Some(Next::Save { ledger, osd: Some(osd), why: Saving::Record })
}

/// One line of the table that `plan` prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The OSD.
    pub osd: OsdId,
    /// Its host in CRUSH.
    pub host: String,
    /// What it is.
    pub class: Class,
    /// What it will become; none where nothing is done.
    pub becomes: Option<Layout>,
    /// Devices as the daemon names them: kernel names, for people only. The stable name is known after the inspection.
    pub devices: Vec<String>,
    /// The same by names that outlive a reboot, as far as Ceph knows them.
    pub stable_devices: Vec<String>,
    /// How.
    pub strategy: &'static str,
}

/// What the run would do, OSD by OSD.
pub fn lines(policy: &Policy, ledger: &Ledger, seen: &Observation) -> Vec<Line> {
    let classes: BTreeMap<OsdId, Class> = classify::classify(seen);
    classes
        .into_iter()
        .map(|(osd, class)| {
            let record = ledger.records.get(&osd);
            // Half-way an OSD is not what it was: what it was is in its record.
            let class = record.map_or(class, |record| record.class.clone());
            let slot = seen.ceph.slots.get(&osd);
            let metadata = slot.and_then(|slot| slot.metadata.as_ref());
            let migrates = matches!(class, Class::Legacy(_));
            let target = classify::target(&seen.kube.declaration).ok().filter(|_| migrates);
            Line {
                osd,
                host: host_of(osd, seen).unwrap_or_else(|| "-".to_owned()),
                becomes: target,
                devices: metadata.map(|m| m.devices.clone()).unwrap_or_default(),
                stable_devices: metadata.map(|m| m.stable_devices.clone()).unwrap_or_default(),
                strategy: match (record, migrates, policy.selects(osd)) {
                    (Some(record), _, _) if record.quarantine.is_some() => "left alone",
                    (Some(_), _, _) => "begun",
                    (None, true, true) => "in place, same id",
                    (None, true, false) => "not selected",
                    (None, false, _) => "-",
                },
                class,
            }
        })
        .collect()
}
