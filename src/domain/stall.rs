//! Cause of a stalled backfill, as far as the observation shows it.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::gate::{first_names, names, state_text};
use crate::domain::observation::{Observation, Pg};
use crate::domain::osd::{OsdId, PgId};

/// Flags of the osdmap without which no data moves.
const FLAGS: [&str; 4] = ["norecover", "nobackfill", "norebalance", "pause"];

/// Words before a PG that Ceph recovers first.
pub(in crate::domain) const RECOVERED_FIRST: &str = "Ceph recovers other data first, for example PG";

/// Returns what holds up data that leaves these OSDs, although nothing is wrong with its move: a flag of the
/// osdmap, which a person set, or PGs that Ceph recovers first.
///
/// Others hold up only a PG that waits for its turn, and none that lacks space, or finds no place: somewhere
/// in a large cluster, data always moves.
pub fn held_up(osds: &BTreeSet<OsdId>, seen: &Observation) -> Option<String> {
    if let Some(flag) = FLAGS.iter().find(|flag| seen.ceph.flags.contains(**flag)) {
        return Some(format!("the OSD flag {flag} is set. To unset it: ceph osd unset {flag}"));
    }
    let (pg, state) = recovered_first(osds, is_queued, seen)?;
    Some(format!("{RECOVERED_FIRST} {pg} ({state})"))
}

/// Returns the PG that data which leaves these OSDs waits for, with its state; `None` if some of it moves.
pub fn waits_for(osds: &BTreeSet<OsdId>, seen: &Observation) -> Option<(PgId, String)> {
    // Some of the data moves nearly always, and one PG of it is found soon: the others are then not searched.
    let moves = |pg: &Pg| is_at_work(pg) && is_leaving(pg, osds);
    if seen.ceph.pgs.values().any(moves) { None } else { recovered_first(osds, |_| true, seen) }
}

/// Returns a PG that Ceph recovers before those of these OSDs that wait, with its state.
///
/// Reservations are of single OSDs (`osd_max_backfills`): a PG waits only for PGs that share an OSD with it.
/// One of those may wait itself and keep a reservation meanwhile, so the OSDs of PGs that wait count as well.
fn recovered_first(
    osds: &BTreeSet<OsdId>,
    waits: impl Fn(&Pg) -> bool,
    seen: &Observation,
) -> Option<(PgId, String)> {
    let pgs = &seen.ceph.pgs;
    let is_first = |pg: &Pg| is_at_work(pg) && !is_leaving(pg, osds);
    // Data that leaves is often all that moves: the others are then not searched.
    let mut at_work = pgs.iter().filter(|(_, pg)| is_first(pg)).peekable();
    at_work.peek()?;
    let theirs = pgs.values().filter(|pg| osds.iter().any(|osd| pg.is_on(*osd)) && waits(pg));
    let concerned = with_queues(theirs, seen);
    let (id, pg) = at_work.find(|(_, pg)| pg.up.union(&pg.acting).any(|osd| concerned.contains(osd)))?;
    Some((*id, state_text(pg)))
}

/// Returns the OSDs of these PGs, and of all PGs that wait for their turn on one of the OSDs returned.
fn with_queues<'a>(pgs: impl Iterator<Item = &'a Pg>, seen: &'a Observation) -> BTreeSet<OsdId> {
    let mut queues: BTreeMap<OsdId, Vec<&Pg>> = BTreeMap::new();
    for pg in seen.ceph.pgs.values().filter(|pg| is_queued(pg)) {
        pg.up.union(&pg.acting).for_each(|osd| queues.entry(*osd).or_default().push(pg));
    }
    let mut found: BTreeSet<OsdId> = pgs.flat_map(|pg| pg.up.union(&pg.acting)).copied().collect();
    let mut open: Vec<OsdId> = found.iter().copied().collect();
    while let Some(osd) = open.pop() {
        for pg in queues.remove(&osd).unwrap_or_default() {
            open.extend(pg.up.union(&pg.acting).copied().filter(|other| found.insert(*other)));
        }
    }
    found
}

fn is_queued(pg: &Pg) -> bool {
    pg.state.contains("backfill_wait") || pg.state.contains("recovery_wait")
}

fn is_at_work(pg: &Pg) -> bool {
    pg.state.contains("recovering") || pg.state.contains("backfilling")
}

/// Returns whether a PG that moves only leaves one of these OSDs, and misses nothing.
fn is_leaving(pg: &Pg, osds: &BTreeSet<OsdId>) -> bool {
    pg.degraded == 0 && osds.iter().any(|osd| pg.is_on(*osd))
}

/// Returns the cause of the stalled backfill or emptying of an OSD, and what to do.
///
/// The most certain cause comes first. The last one is a guess.
pub fn cause(osd: OsdId, seen: &Observation) -> String {
    let is_its = |pg: &Pg| pg.is_on(osd);
    let its: Vec<(&PgId, &Pg)> = seen.ceph.pgs.iter().filter(|(_, pg)| is_its(pg)).collect();
    let unclean: Vec<(&PgId, &Pg)> =
        its.iter().copied().filter(|(_, pg)| !pg.state.contains("clean")).collect();
    let with = |part: &str| -> Vec<(&PgId, &Pg)> {
        let has = |pg: &Pg| pg.state.iter().any(|state| state.contains(part));
        unclean.iter().copied().filter(|(_, pg)| has(pg)).collect()
    };
    if let Some(flag) = FLAGS.iter().find(|flag| seen.ceph.flags.contains(**flag)) {
        return format!("the OSD flag {flag} is set. To unset it: ceph osd unset {flag}");
    }
    let full = with("toofull");
    if !full.is_empty() {
        return too_full(&full, seen);
    }
    let inactive = ["down", "incomplete", "peering", "stale", "unknown"].map(with).concat();
    if !inactive.is_empty() {
        let down = seen.ceph.slots.iter().filter(|(_, slot)| slot.is_in && !slot.up).map(|(osd, _)| *osd);
        let down: BTreeSet<OsdId> = down.collect();
        let down = if down.is_empty() { String::new() } else { format!(" while {} is down", names(&down)) };
        return format!("{} cannot recover{down}. See: ceph health detail", pgs(&inactive));
    }
    let stays = |pg: &Pg| !pg.up.contains(&osd) && pg.state.contains("clean");
    let staying: Vec<(&PgId, &Pg)> = its.into_iter().filter(|(_, pg)| stays(pg)).collect();
    if !staying.is_empty() && unclean.is_empty() {
        return format!(
            "Ceph finds no other OSD for {}, as its CRUSH rule asks for. See: ceph pg ls remapped; ceph osd df \
             tree",
            pgs(&staying)
        );
    }
    if !unclean.is_empty() && unclean.len() == with("wait").len() {
        return format!(
            "{} wait for a reservation: other PGs of the same OSDs recover first (osd_max_backfills). See: \
             ceph pg ls backfill_wait recovery_wait backfilling",
            pgs(&unclean)
        );
    }
    "client load or the mClock profile may leave nothing for recovery. See: ceph config get osd \
     osd_mclock_profile"
        .to_owned()
}

/// Names the OSDs that are too full for PGs, or all OSDs of the PGs if none is known to be.
///
/// An OSD also refuses a PG that would make it too full.
fn too_full(found: &[(&PgId, &Pg)], seen: &Observation) -> String {
    let osds: BTreeSet<OsdId> = found.iter().flat_map(|(_, pg)| pg.up.iter().copied()).collect();
    let full = &seen.ceph.backfill_full;
    let parts = full.osds.iter().filter(|(osd, _)| osds.contains(osd));
    let parts: Vec<_> = parts.map(|(osd, part)| format!("{osd} is {} full", percent(*part))).collect();
    let which = if parts.is_empty() {
        format!("one of {}", names(&osds))
    } else {
        format!("{} (backfillfull_ratio {})", names(&parts), percent(full.ratio))
    };
    format!(
        "{} may not get more data because an OSD is too full ({}): {which}. See: ceph osd df; ceph health detail",
        pgs(found),
        found.first().map(|(_, pg)| state_text(pg)).unwrap_or_default()
    )
}

/// Formats a part in 1/10000 as percent.
fn percent(part: u32) -> String {
    format!("{}.{} %", part / 100, part / 10 % 10)
}

/// Names the first PGs.
fn pgs(found: &[(&PgId, &Pg)]) -> String {
    /// PGs that are named: one is enough for `ceph pg query`.
    const NAMED: usize = 3;
    let all: BTreeSet<&PgId> = found.iter().map(|(id, _)| *id).collect();
    format!("PG {}", first_names(all.iter().copied(), NAMED))
}
