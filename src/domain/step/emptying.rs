//! Steps that empty an OSD before its stop.
//!
//! An OSD that is being emptied serves: nothing is at risk, however long that takes. So neither a pause nor a
//! closed window marks it in again, which would move all its data back. Only the owner does (a cancelled run,
//! `--empty never`), or a limit: what does not become empty, or can't be stopped when it is, must not hold up
//! the other OSDs.

use std::collections::BTreeSet;

use super::Step;
use super::later_stop::can_be_stopped_later;
use super::up::HOLDS_UP_DATA;
use super::upmaps::note_dropped_upmaps;
use crate::domain::act::{Act, CephAct};
use crate::domain::gate::{self, Gate, Reason};
use crate::domain::guard::{Guard, passes};
use crate::domain::ledger::{Emptying, Record, RefusedStep};
use crate::domain::next::{Next, Saving, Wait};
use crate::domain::observation::Slot;
use crate::domain::osd::{OsdId, PgId};
use crate::domain::phase::{self, Phase};
use crate::domain::policy::Accepted;
use crate::domain::stall;
use crate::domain::temporary::marked_out;

/// Minutes without less data on the OSD after which it is given up.
///
/// A slow move is none: a disk of 8 TB takes days. But an hour without one object that moved has a cause. The
/// time in which a flag or another recovery holds up the move does not count.
pub const STALLED_MINUTES: i64 = 60;

/// Minutes between two saves of a move that is slower than a tenth in that time.
const SAVED_MINUTES: i64 = 10;

impl Step<'_> {
    /// Empties the OSD, one step an iteration: back up, save the intent, mark out, wait.
    pub(super) fn empty(&self) -> Next {
        let Some((empty, slot)) = self.record.empty.as_ref().zip(self.view.slot(self.record.osd)) else {
            return Next::Wait(Wait::FreshView);
        };
        let is_dropped = self.record.is_dropped(slot);
        match (is_dropped, empty.out_since) {
            // Another client did it, and the OSD is to be removed anyway.
            (true, None) if !empty.is_intended() && self.facts.removal => self.save_emptying(slot),
            // Another client did it: its data moves without osd-migrate. It is migrated when that is done.
            (true, _) if !empty.is_intended() => self.withdraw(),
            // It is dead, and was marked in or given weight by another client.
            (false, _) if self.facts.dead => self.withdraw(),
            (false, None) => self.drop_data(slot),
            (false, Some(_)) if self.facts.removal => self.not_emptied(&self.weight_was_restored()),
            (false, Some(_)) => self.not_emptied("another client marked it in while it was emptied"),
            (true, None) => self.save(Saving::MarkedOut, |record| {
                record.blocked_since = None;
                note_dropped_upmaps(record);
                change(record.empty.as_mut(), |empty| {
                    empty.out_since = Some(self.view.seen.at);
                    empty.least = Some((empty.bytes, self.view.seen.at));
                    empty.least_pgs = Some(empty.pgs.len() as u64);
                });
            }),
            (true, Some(_)) => self.wait_until_empty(empty),
        }
    }

    /// Marks the OSD out, or sets its CRUSH weight to 0, after all gates of its stop that can be asked now.
    fn drop_data(&self, slot: &Slot) -> Next {
        let (record, osd) = (self.record, self.record.osd);
        if let Some(first) = self.stopped_sibling() {
            return Next::Wait(Wait::Gate { osd, reason: Reason::Queued { osd: first } });
        }
        let accepted = self.accepted_to_drop();
        let mut gate = self.gates_to_drop(&accepted);
        if !self.facts.removal {
            let admitted = gate::admitted(osd, self.view.seen);
            if let Some(next) = self.give_up_unadmitted(&admitted) {
                return next;
            }
            gate = gate::first_of([gate, admitted]);
        }
        match gate {
            Gate::Open => {}
            Gate::Shut(Reason::CannotBeEmptied { why, .. }) => return self.not_emptied(&why),
            // Nothing was changed. Without a record, the OSD holds up no other one meanwhile.
            Gate::Shut(Reason::FenceNotAcknowledged { .. } | Reason::PdbRejected { .. }) => {
                return self.withdraw();
            }
            // Nothing was changed, and waiting does not help.
            Gate::Shut(reason) if self.facts.removal && reason.is_permanent() => {
                return self.not_emptied(&reason.to_string());
            }
            Gate::Shut(reason) | Gate::Unknown(reason) => return self.blocked(&reason, &accepted),
        }
        let Some(daemon) = self.view.daemon(osd) else { return Next::Wait(Wait::FreshView) };
        if let Some(next) = self.back_up(daemon) {
            return next;
        }
        let pgs = gate::pgs_of(osd, self.view.seen);
        // Another client may have changed the weight that is to be restored.
        let has_its_weight = if self.facts.removal {
            slot.crush.as_ref() == Some(&record.crush)
        } else {
            slot.reweight == record.reweight
        };
        let is_saved = record.empty.as_ref().is_some_and(|empty| empty.is_intended() && empty.pgs == pgs);
        let is_saved = is_saved && has_its_weight;
        if !passes(Guard::EmptyingSavedFirst, is_saved) {
            return self.save_emptying(slot);
        }
        let (fsid, up_from, weight) = (record.old, slot.up_from, record.crush.weight);
        let (is_removal, record) = (self.facts.removal, record.id.clone());
        Next::Do(Act::Ceph(if is_removal {
            let together = gate::removed_together(osd, self.view);
            CephAct::DropWeight { osd, fsid, up_from, record, weight, together, accepted }
        } else {
            CephAct::MarkOut { osd, fsid, up_from, record, accepted }
        }))
    }

    /// Returns the gate before data moves away, except for the API server's answer.
    fn gates_to_drop(&self, accepted: &Accepted) -> Gate {
        if self.facts.removal { self.gates_of_removal(accepted) } else { self.gates_of_emptying(accepted) }
    }

    /// Returns the PG states that are accepted before data moves away.
    ///
    /// While other OSDs of its node are emptied, their PGs move. No PG may lack a replica.
    fn accepted_to_drop(&self) -> Accepted {
        let accepted = gate::accepted(self.view);
        let moves = self.siblings().any(|(record, slot)| record.is_dropped(slot));
        Accepted { moving: moves, ..accepted }
    }

    /// Returns the records of the other OSDs that leave together with this one.
    fn others_leaving(&self) -> impl Iterator<Item = &Record> {
        let node = &self.record.node;
        let is_sibling = move |record: &&Record| record.leaves_with(node) && record.osd != self.record.osd;
        let all = self.view.ledger.in_flight().filter(move |_| self.record.leaves_with(node));
        all.filter(is_sibling)
    }

    /// Returns those of them that have a slot, with it.
    pub(super) fn siblings(&self) -> impl Iterator<Item = (&Record, &Slot)> {
        self.others_leaving().filter_map(|record| Some((record, self.view.slot(record.osd)?)))
    }

    /// Returns the OSD for which the stop of this one waits, of those that leave together.
    ///
    /// All of them are empty first, and they are stopped one after the other.
    pub(super) fn leaves_after(&self) -> Option<OsdId> {
        let is_moving =
            |(record, slot): &(&Record, &Slot)| !passes(Guard::EmptiedTogether, !is_moving(record, slot));
        let moving = self.siblings().find(is_moving).map(|(record, _)| record.osd);
        moving.or_else(|| self.stopped_sibling())
    }

    /// Returns the OSD that leaves together with this one, and is being stopped, or is stopped.
    ///
    /// That includes one whose id is purged: its Deployment or its pod may still exist.
    fn stopped_sibling(&self) -> Option<OsdId> {
        // An earlier stop of a dead OSD may have been reverted. Nothing depends on when it is stopped again.
        let is_dead = |record: &Record| {
            let daemon = self.view.daemon(record.osd);
            record.is_of_dead() && daemon.is_some_and(|daemon| daemon.stopped_by.is_none())
        };
        // Two that were quarantined between intent and stop, and are retried, must not wait for each other.
        let serves = |record: &Record| !phase::is_committed(record, self.view.seen);
        let comes_later = |record: &Record| {
            self.record.stop_intended_at.is_some()
                && self.record.osd < record.osd
                && serves(self.record)
                && serves(record)
        };
        let is_stopped = |record: &Record| {
            let is_meant = record.stop_intended_at.is_some() && !comes_later(record);
            (is_meant || record.is_committed()) && !is_dead(record)
        };
        let first = |record: &&Record| !passes(Guard::OneStopAtATime, !is_stopped(record));
        self.others_leaving().find(first).map(|record| record.osd)
    }

    /// Saves that the OSD is to be emptied, and everything that can't be observed afterwards.
    fn save_emptying(&self, slot: &Slot) -> Next {
        let osd = self.record.osd;
        let pgs = gate::pgs_of(osd, self.view.seen);
        let bytes = self.bytes_left(&pgs);
        let upmaps = self.view.upmaps_of(osd);
        self.save(Saving::Emptying, |record| {
            record.blocked_since = None;
            record.used_bytes = slot.used_bytes.or(record.used_bytes);
            (record.reweight, record.primary_affinity) = (slot.reweight, slot.primary_affinity);
            if let Some(item) = slot.crush.as_ref().filter(|_| record.is_removal()) {
                record.crush = item.clone();
            }
            // Until the mons drop them, the balancer changes them.
            if record.lost_upmaps.is_none() {
                record.upmaps = upmaps;
            }
            let intended_at = Some(self.view.seen.at);
            record.empty = Some(Emptying { pgs, bytes, intended_at, ..Emptying::default() });
        })
    }

    /// Returns the gate before the OSD is marked out, except for the API server's answer.
    pub(super) fn gates_of_emptying(&self, accepted: &Accepted) -> Gate {
        let (record, seen) = (self.record, self.view.seen);
        gate::first_of([
            can_be_stopped_later(record.osd, true, self.view),
            self.view.our_fence().map_or_else(|| gate::migrates_none(self.view), |_| Gate::Open),
            gate::before_mark_out(record.osd, &record.node, &self.view.ledger.run, accepted, seen),
            gate::enough_space(record, seen),
        ])
    }

    /// Waits until no PG needs the OSD, and gives it up if nothing moves.
    fn wait_until_empty(&self, empty: &Emptying) -> Next {
        let (osd, now) = (self.record.osd, self.view.seen.at);
        if let Some(next) = self.up_again() {
            return next;
        }
        // A mgr that has just become active knows no PG, so that the OSD seems to be empty.
        if let Gate::Shut(reason) | Gate::Unknown(reason) = gate::all_known(&self.view.seen.ceph) {
            return Next::Wait(Wait::Gate { osd, reason });
        }
        let pgs = self.pgs_left(empty);
        if let Some(next) = self.prepared_in_vain(&pgs) {
            return next;
        }
        let elsewhere = self.lacks_elsewhere().filter(|_| pgs.is_empty());
        let is_blocked = elsewhere.is_some() && gate::held(self.view) == Gate::Open;
        if let Some(next) = self.unblocked().filter(|_| !is_blocked) {
            return next;
        }
        let bytes = self.bytes_left(&pgs);
        if let Some(next) = self.note_empty(empty, &pgs, bytes) {
            return next;
        }
        let Some((least, since)) = empty.least else { return Next::Wait(Wait::FreshView) };
        let fewest = empty.least_pgs.unwrap_or(empty.pgs.len() as u64);
        let is_time = (now - since).num_minutes() >= SAVED_MINUTES;
        let is_less = |now: u64, before: u64| now < before - before / 10 || (now < before && is_time);
        // Clients may write more than has moved.
        let count = pgs.len() as u64;
        if is_less(bytes, least) || is_less(count, fewest) {
            return self.save(Saving::EmptyingProgress { bytes }, |record| {
                change(record.empty.as_mut(), |empty| {
                    (empty.least, empty.least_pgs) = (Some((bytes.min(least), now)), Some(count.min(fewest)));
                });
            });
        }
        // A stall is much longer than this time, so what holds up the data is asked before it is found.
        if is_time
            && !pgs.is_empty()
            && let Some(why) = stall::held_up(&self.all_leaving(), self.view.seen)
        {
            // The time of the stall begins again.
            return self.save(Saving::EmptyingHeldUp { why }, |record| {
                change(record.empty.as_mut(), |empty| empty.least = Some((least, now)));
            });
        }
        // OSDs that leave together share the places at which they wait.
        let moved = self.siblings().filter_map(|(record, _)| Some(record.empty.as_ref()?.least?.1));
        let moved_at = moved.chain([since]).max().unwrap_or(since);
        if !pgs.is_empty() && (now - moved_at).num_minutes() >= STALLED_MINUTES {
            return self.quarantine(format!(
                "it does not become empty: nothing has moved for {STALLED_MINUTES} minutes, and {count} PGs are on it. {}",
                stall::cause(osd, self.view.seen)
            ));
        }
        if let Some(pg) = elsewhere.as_ref().filter(|_| self.gives_up_empty()) {
            return self.not_emptied(&format!("it is empty, and PG {pg} lacks a replica elsewhere"));
        }
        let flags = HOLDS_UP_DATA.iter().filter(|flag| self.view.seen.ceph.flags.contains(**flag));
        let flags = flags.map(|flag| (*flag).to_owned()).collect();
        let first = if pgs.is_empty() { None } else { stall::waits_for(&self.all_leaving(), self.view.seen) };
        let wait = Next::Wait(Wait::Emptying { osd, pgs: count, bytes, elsewhere, flags, first });
        if is_blocked { self.noting_blocked(wait) } else { wait }
    }

    /// Returns the OSD, and those that leave together with it.
    fn all_leaving(&self) -> BTreeSet<OsdId> {
        self.siblings().map(|(record, _)| record.osd).chain([self.record.osd]).collect()
    }

    fn lacks_elsewhere(&self) -> Option<PgId> {
        match gate::emptied(self.record.osd, &self.view.seen.ceph) {
            Gate::Shut(Reason::StillNeeded { pg, .. }) => Some(pg),
            Gate::Open | Gate::Shut(_) | Gate::Unknown(_) => None,
        }
    }

    /// Gives the OSD up for this run: the other OSDs continue, and another run tries again.
    pub(super) fn not_emptied(&self, why: &str) -> Next {
        let next = self.save(Saving::NotEmptied { why: why.to_owned() }, |record| record.closing = true);
        let Next::Save { mut ledger, osd, why: saving } = next else { return next };
        let step = if self.facts.removal { RefusedStep::Removal } else { RefusedStep::Emptying };
        ledger.note_refusal(self.record.osd, &self.view.policy.run, step, why);
        Next::Save { ledger, osd, why: saving }
    }

    /// Restores what was prepared for the stop of an empty OSD, which stays out; `None` if nothing was.
    pub(super) fn clear_stop_intent(&self) -> Option<Next> {
        self.record.stop_intended_at.or(self.record.blocked_since)?;
        Some(self.let_go().unwrap_or_else(|| {
            self.save(Saving::StopIntentCleared, |record| {
                (record.stop_intended_at, record.blocked_since) = (None, None);
                record.pgs.clear();
            })
        }))
    }

    /// Waits for an OSD that went down while it was emptied, up to a limit.
    ///
    /// The data is elsewhere, or heals from the other replicas.
    pub(super) fn down_while_emptied(&self) -> Option<Next> {
        if !marked_out::is_marked_out(self.record, self.view) {
            return None;
        }
        let osd: OsdId = self.record.osd;
        let now = self.view.seen.at;
        let down_since = self.record.empty.as_ref().and_then(|empty| empty.went_down_at);
        Some(match down_since {
            None => self.save(Saving::Blocked, |record| {
                note_dropped_upmaps(record);
                change(record.empty.as_mut(), |empty| empty.went_down_at = Some(now));
            }),
            Some(since) if now - since < self.view.policy.limits.start => {
                Next::Wait(Wait::NotOurStop { osd })
            }
            Some(_) if self.died_empty() => self.goes_on_as_dead(),
            Some(_) => self.quarantine("it went down while it was emptied".to_owned()),
        })
    }

    /// Returns the OSD that Ceph is asked about before it is marked out.
    pub fn asks_emptiable(&self) -> Option<OsdId> {
        (!self.facts.removal && self.lacks_only_its_forecast()).then_some(self.record.osd)
    }

    /// Returns the OSDs that Ceph is asked about before the CRUSH weight of this one is set to 0.
    pub fn asks_removable(&self) -> Option<BTreeSet<OsdId>> {
        let is_asked = self.facts.removal && self.lacks_only_its_forecast();
        is_asked.then(|| gate::removed_together(self.record.osd, self.view))
    }

    /// Returns whether data would move away next if the forecast is open.
    ///
    /// The forecast of a large cluster takes minutes of processor time, so it is asked for last.
    fn lacks_only_its_forecast(&self) -> bool {
        let is_ahead = || self.view.slot(self.record.osd).is_some_and(|slot| !self.record.is_dropped(slot));
        let is_next = self.phase == Phase::Emptying && !self.record.closing && is_ahead();
        if !is_next || gate::held(self.view) != Gate::Open || self.stopped_sibling().is_some() {
            return false;
        }
        match self.gates_to_drop(&self.accepted_to_drop()) {
            Gate::Open => true,
            Gate::Shut(reason) | Gate::Unknown(reason) => {
                matches!(reason, Reason::EmptyingUnknown { .. } | Reason::CannotBeEmptied { .. })
            }
        }
    }

    /// Returns the OSD about which Ceph is asked whether its data is needed.
    pub fn asks_safe_to_destroy(&self) -> Option<OsdId> {
        let is_out = self.record.empty.as_ref().is_some_and(|empty| empty.out_since.is_some());
        (is_out && self.facts.before_stop()).then_some(self.record.osd)
    }
}

/// Returns whether data of an OSD moves away.
pub(super) fn is_moving(record: &Record, slot: &Slot) -> bool {
    let is_emptied = record.empty.as_ref().is_some_and(|empty| empty.emptied_at.is_some());
    record.is_dropped(slot) && !is_emptied
}

pub(super) fn change(empty: Option<&mut Emptying>, change: impl FnOnce(&mut Emptying)) {
    if let Some(empty) = empty {
        change(empty);
    }
}
