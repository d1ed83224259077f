//! Events of a run as data. Other modules put them into words.

use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::domain::act::Act;
use crate::domain::gate::{HOW_TO_CONFIRM, names, scale_operator};
use crate::domain::ledger::Ledger;
use crate::domain::next::{Halt, Saving, Summary, Wait};
use crate::domain::observation::Observation;
use crate::domain::osd::OsdId;
use crate::report::acts::words;

/// Number of OSDs listed in the last line of a run: a Kubernetes event takes 1,024 bytes.
const NAMED: usize = 20;

/// Event of a run.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// The ledger was written.
    Saved {
        /// OSD whose record was saved
        osd: Option<OsdId>,
        /// reason of the save
        why: &'a Saving,
        /// ledger after the save
        ledger: &'a Ledger,
    },
    /// Another process wrote the ledger first; the next iteration decides again.
    Conflict,
    /// An act succeeded.
    Done(&'a Act),
    /// An act failed, or its outcome is unknown; the next iteration decides again.
    NotDone {
        /// the act
        act: &'a Act,
        /// reason
        why: &'a str,
    },
    /// An observation failed; it is tried again.
    Blind(&'a str),
    /// Nothing can be done now.
    Waiting {
        /// reason of the wait
        wait: &'a Wait,
        /// the ledger
        ledger: &'a Ledger,
        /// observation
        seen: &'a Observation,
    },
    /// Another runner has the Lease.
    Lease(&'a str),
    /// The run finished.
    Finished(&'a Summary),
    /// A person is needed.
    Halted(&'a Halt),
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Saved { osd: Some(osd), why, .. } => write!(f, "{osd}: saved {why}"),
            Self::Saved { osd: None, why, .. } => write!(f, "saved {why}"),
            Self::Conflict => f.write_str("the ledger was written by somebody else meanwhile; looking again"),
            Self::Done(act) => write!(f, "{}", words(act)),
            Self::NotDone { act, why } => write!(f, "not done: {}: {why}", words(act)),
            Self::Blind(why) => write!(f, "could not look: {why}"),
            Self::Waiting { wait, .. } => wait.fmt(f),
            Self::Lease(why) => f.write_str(why),
            Self::Finished(summary) => finished(summary, f),
            Self::Halted(halt) => write!(f, "halted: {halt}"),
        }
    }
}

/// Last event of a run, as `status` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// Time of the event.
    pub at: DateTime<Utc>,
    /// Time since which the text, digits excluded, has been the same.
    #[serde(default)]
    pub since: Option<DateTime<Utc>>,
    /// Whether the run waits.
    #[serde(default)]
    pub waits: bool,
    /// Code of the gate's reason, if the run waits for a gate.
    #[serde(default)]
    pub reason: Option<String>,
    /// Text for people.
    pub says: String,
}

impl Said {
    /// Creates the last event of a run from an event that has been reported since then.
    pub fn of(event: &Event<'_>, since: DateTime<Utc>, at: DateTime<Utc>) -> Self {
        let (waits, reason) = match event {
            Event::Waiting { wait, .. } => (true, wait.reason().map(|reason| reason.word().to_owned())),
            Event::Saved { .. }
            | Event::Conflict
            | Event::Done(_)
            | Event::NotDone { .. }
            | Event::Blind(_)
            | Event::Lease(_)
            | Event::Finished(_)
            | Event::Halted(_) => (false, None),
        };
        Self { at, since: Some(since), waits, reason, says: event.to_string() }
    }
}

fn finished(summary: &Summary, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if summary.cancelled {
        f.write_str(
            "cancelled: nothing is in flight, and nothing more is begun. To let runs begin again: osd-migrate resume",
        )?;
        quarantined(summary, f)?;
        half_way(summary, f)?;
        withheld_from_rook(summary, f)?;
        return operator_at_0(summary, f);
    }
    if !summary.unconfirmed.is_empty() {
        write!(
            f,
            "not confirmed: {} would be migrated, nothing was changed. To confirm: {HOW_TO_CONFIRM}",
            names(&summary.unconfirmed)
        )?;
        quarantined(summary, f)?;
        half_way(summary, f)?;
        withheld_from_rook(summary, f)?;
        return operator_at_0(summary, f);
    }
    f.write_str("finished: nothing is left to do")?;
    quarantined(summary, f)?;
    half_way(summary, f)?;
    withheld_from_rook(summary, f)?;
    operator_at_0(summary, f)?;
    for (node, problem) in &summary.problems {
        write!(f, "; node {node}: {problem}")?;
    }
    if !summary.left_to_rook.is_empty() {
        let nodes = summary.left_to_rook.len();
        write!(
            f,
            "; free disks of {nodes} nodes are left to Rook, whose operator runs and makes OSDs of them itself"
        )?;
    }
    if !summary.unconfirmed_nodes.is_empty() {
        let nodes = names(&summary.unconfirmed_nodes);
        write!(f, "; not confirmed: the disks of {nodes} are not made OSDs. To confirm: {HOW_TO_CONFIRM}")?;
    }
    Ok(())
}

fn half_way(summary: &Summary, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if summary.half_way.is_empty() {
        return Ok(());
    }
    let retries: Vec<_> = summary.half_way.iter().map(|osd| format!("osd-migrate retry {osd}")).collect();
    write!(f, "; Rook is kept off until what is half-way is mended: {}", retries.join("; "))
}

fn withheld_from_rook(summary: &Summary, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if summary.withheld_from_rook.is_empty() {
        return Ok(());
    }
    write!(
        f,
        "; Rook is still kept off the CephCluster: it would begin to migrate {} itself. Take \
         spec.storage.migration.confirmation and spec.storage.store.updateStore out of the CephCluster, then run once more \
         (kubectl create job --from=cronjob/osd-migrate NAME): Rook goes on",
        names(&summary.withheld_from_rook)
    )
}

fn operator_at_0(summary: &Summary, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Some(name) = &summary.operator_at_0 else { return Ok(()) };
    write!(f, "; Rook's operator {name} is at 0, which osd-migrate needs no longer: ")?;
    if !summary.left_to_rook_at_0.is_empty() {
        write!(
            f,
            "first take the confirmation out of the CephCluster, or Rook begins to migrate {} itself: kubectl patch cephcluster NAME \
             --type merge -p '{{\"spec\":{{\"storage\":{{\"migration\":null,\"store\":{{\"updateStore\":null}}}}}}}}'; then ",
            names(&summary.left_to_rook_at_0)
        )?;
    }
    f.write_str(&scale_operator(name, 1))
}

fn quarantined(summary: &Summary, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (osd, why) in &summary.quarantined {
        write!(f, "; {osd} was left alone: {why}")?;
    }
    for (why, osds) in by_reason(&summary.refused) {
        let were = if osds.len() == 1 { "was" } else { "were" };
        write!(f, "; {} {were} refused: {why}", some_of(&osds))?;
    }
    for (why, osds) in by_reason(&summary.skipped) {
        let were = if osds.len() == 1 { "was" } else { "were" };
        write!(f, "; {} {were} skipped for now: {why}", some_of(&osds))?;
    }
    Ok(())
}

/// Groups OSDs by the reason: hundreds of them may share one.
fn by_reason(osds: &[(OsdId, String)]) -> BTreeMap<&str, Vec<OsdId>> {
    let mut by = BTreeMap::<&str, Vec<OsdId>>::new();
    for (osd, why) in osds {
        by.entry(why).or_default().push(*osd);
    }
    by
}

/// Lists the first of many OSDs; `plan` lists all.
fn some_of(osds: &[OsdId]) -> String {
    let first = names(osds.iter().take(NAMED));
    match osds.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
