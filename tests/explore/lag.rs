//! A view that lags: a part of what a runner sees is older than the rest.
//!
//! While a run waits, a part is of an earlier observation
//! (`docs/development/adr/0041-partial-observations.md`).
//!
//! A runner may keep each observation after which a real one may observe partly. Then it decides by parts: by
//! what a partial observation reads now, joined with what it kept. Of the decisions that stand, only those
//! that do something are steps: with every guard, there are none.
//!
//! In any observation, the osdmap may change before PGs and health are read, too
//! (`docs/development/adr/0040-cheap-looks.md`), and Deployments and pods after they are listed. Those of
//! OSDs that are not in progress may stay as they were listed
//! (`docs/development/adr/0053-list-of-what-changed.md`).

use std::collections::BTreeMap;
use std::hash::Hash;

use chrono::TimeDelta;

use osd_migrate_core::domain::guard::Guard;
use osd_migrate_core::domain::next::Next;
use osd_migrate_core::domain::observation::{Age, Daemon, Kube, Listed, Observation, Slot};
use osd_migrate_core::domain::osd::OsdId;
use osd_migrate_core::domain::plan::{self, Questions};
use osd_migrate_core::domain::policy::Policy;
use osd_migrate_core::domain::shared::Shared;
use osd_migrate_core::sim::{World, example};

use super::hashed::passed;
use super::search::{Menu, Move, Search};
use super::state::{Done, State};
use super::{
    OURS, PARTNER, around, deaths_of, directories, everything, explored, needs, new_osds, pvcs, removal,
};

pub(super) const AROUND: &str = "a view lags";
pub(super) const ON_A_PVC: &str = "a view lags, a PVC is recreated";
pub(super) const ONE_MORE: &str = "other OSDs stay old, one more disk";

/// How a runner's view may lag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Lags {
    /// The view never lags.
    Never,
    /// Parts that a partial observation does not read are old.
    Parts,
    /// The osdmap is older than PGs and health: its epoch moved between the reads.
    Map,
    /// Deployments and pods of OSDs are older than the rest: it takes long to list thousands of them.
    List,
    /// Deployments and pods of OSDs that are not in progress stay as they were listed, also after acts.
    Others,
}

impl Lags {
    /// Returns whether one part of a complete observation is older than the rest, for one decision.
    pub(crate) fn is_torn(self) -> bool {
        matches!(self, Self::Map | Self::List)
    }
}

/// An observation of which a waiting runner takes what it does not read again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Kept {
    seen: Shared<Observation>,
    age: Age,
    listed: Option<Listed>,
}

impl Kept {
    /// Keeps an observation of a cluster that is slow to observe, for two minutes.
    fn of(seen: Observation) -> Self {
        let age = Age::new(seen.at, seen.at + TimeDelta::seconds(6), None);
        let listed = Listed::of(&seen.kube, seen.at);
        Self { seen: seen.into(), age, listed }
    }

    /// Keeps the list of all OSDs, with what was read of some since.
    fn of_list(self, seen: Observation) -> Self {
        let at = self.listed.map_or(seen.at, |listed| listed.at());
        Self { listed: Listed::of(&seen.kube, at), ..Self::of(seen) }
    }

    /// Returns what is read now, together with what was kept.
    ///
    /// Returns none if everything has to be observed.
    fn joined(&self, state: &State) -> Option<Observation> {
        let Observation { at, ceph, kube, failed } = state.world.observe(|_| Questions::default());
        if state.lags == Lags::Map {
            return Some(Observation { at, ceph: self.seen.ceph.with(ceph.health, ceph.pgs), kube, failed });
        }
        if state.lags == Lags::List {
            let Kube { daemons, ambiguities, .. } = &self.seen.kube;
            let (daemons, ambiguities) = (daemons.clone(), ambiguities.clone());
            return Some(Observation { at, ceph, kube: Kube { daemons, ambiguities, ..kube }, failed });
        }
        let in_progress = state.ledger.records.keys().copied().collect();
        if state.lags == Lags::Others {
            let listed = self.listed.clone().filter(|listed| listed.is_young(at))?;
            let read = listed.read_each_time(&in_progress);
            return Some(Observation { at, ceph, kube: listed.complete(kube, &read).0, failed });
        }
        let ceph = ceph.completed_by(&self.seen.ceph).filter(|_| self.age.is_young(at))?;
        Some(Observation { at, ceph, kube: kube.completed_by(self.seen.kube.clone(), &in_progress), failed })
    }
}

impl State {
    /// Returns what a runner decides by what it has kept, if that stands.
    pub(crate) fn decide_by_parts(&self, policy: &Policy) -> Option<Next> {
        let seen = self.kept.as_ref()?.joined(self)?;
        let policy = self.policy_now(policy);
        let seen = self.world.answered(seen, |seen| plan::questions(&policy, &self.ledger, seen));
        let next = plan::plan(&policy, &self.ledger, &seen);
        let stands = match self.lags {
            Lags::Parts => next.stands_by_parts(),
            Lags::Others => next.stands_by_list(&self.ledger),
            Lags::Never | Lags::Map | Lags::List => true,
        };
        stands.then_some(next)
    }

    /// Performs what a runner decided, and keeps what it saw, if a partial observation may follow.
    pub(crate) fn perform_and_keep(&mut self, next: &Next) -> Done {
        self.keep();
        self.perform_by_parts(next)
    }

    /// Keeps what a runner sees now.
    pub(crate) fn keep(&mut self) {
        self.kept = Some(Kept::of(self.world.observe(|_| Questions::default())));
    }

    /// Returns whether a step was decided by what the runner saw before.
    pub(crate) fn is_late(&self, step: &Move) -> bool {
        *step == Move::Thaw || self.lags.is_torn() && matches!(step, Move::ByParts(_))
    }

    /// Performs what a runner decided by parts, which it keeps if another partial observation may follow.
    pub(crate) fn perform_by_parts(&mut self, next: &Next) -> Done {
        let by_list = self.kept.as_ref().filter(|_| self.lags == Lags::Others);
        let seen = by_list.and_then(|kept| kept.joined(self));
        let done = self.perform(next, self.version);
        match self.lags {
            Lags::Others if stays_listed(next) && done.refused.is_none() => {
                self.kept = self.kept.take().zip(seen).map(|(kept, seen)| kept.of_list(seen));
            }
            Lags::Parts if may_observe_partly(next) && done.refused.is_none() => {}
            Lags::Never | Lags::Parts | Lags::Map | Lags::List | Lags::Others => self.kept = None,
        }
        done
    }

    /// Returns the steps of a runner whose view lags.
    pub(crate) fn lagging_moves(&self, decided: &Next, policy: &Policy) -> Vec<Move> {
        let keeps = match self.lags {
            Lags::Parts if may_observe_partly(decided) => Some(Move::Keep),
            Lags::Map | Lags::List | Lags::Others => Some(Move::Read),
            Lags::Never | Lags::Parts => None,
        };
        let keeps = keeps.filter(|_| self.kept.is_none());
        let by_parts = self.decide_by_parts(policy).filter(|next| !matches!(next, Next::Wait(_)));
        keeps.into_iter().chain(by_parts.map(|next| Move::ByParts(next.into()))).collect()
    }

    /// Hashes what was kept, as far as it matters.
    pub(crate) fn hash_kept(&self, hasher: &mut impl std::hash::Hasher) {
        let Some(Kept { seen, age, listed }) = self.kept.as_ref() else { return };
        if self.lags == Lags::Map {
            seen.ceph.hash(hasher);
            return;
        }
        let is_same = |(osd, daemon): (&OsdId, &Daemon)| {
            let now = self.world.kube.daemons.get(osd).map(|daemon| daemon.generation);
            (*osd, Daemon { generation: i64::from(now == Some(daemon.generation)), ..daemon.clone() })
        };
        let daemons: BTreeMap<_, _> = seen.kube.daemons.iter().map(is_same).collect();
        (daemons, &seen.kube.ambiguities).hash(hasher);
        if self.lags == Lags::Others {
            listed.as_ref().map(|listed| passed(self.world.at, listed.at())).hash(hasher);
        }
        if self.lags != Lags::Parts {
            return;
        }
        age.is_young(self.world.at).hash(hasher);
        let now = &self.world.ceph.slots;
        for (osd, slot) in &seen.ceph.slots {
            let Slot { fsid, up_from, metadata, used_bytes, dmcrypt_key, .. } = slot;
            let is_same = now.get(osd).is_some_and(|now| (now.fsid, now.up_from) == (*fsid, *up_from));
            (osd, is_same, metadata, used_bytes, dmcrypt_key).hash(hasher);
        }
        (seen.ceph.releases, &seen.ceph.backfill_full).hash(hasher);
        let Kube { nodes, local_volumes, pvcs, rotating, rook_prepares, skipped, .. } = &seen.kube;
        (nodes, local_volumes, pvcs, rotating, rook_prepares, skipped).hash(hasher);
    }
}

/// Returns whether a runner may observe partly after this decision.
fn may_observe_partly(next: &Next) -> bool {
    match next {
        Next::Wait(_) => true,
        Next::Do(act) => act.keeps_observation(),
        Next::Save { .. } | Next::Finished(_) | Next::Halt(_) => false,
    }
}

/// Returns whether the list of all OSDs is kept after this decision.
fn stays_listed(next: &Next) -> bool {
    match next {
        Next::Do(act) => !act.changes_other_osds(),
        Next::Save { .. } | Next::Wait(_) => true,
        Next::Finished(_) | Next::Halt(_) => false,
    }
}

/// Returns a search in which a runner's view lags, and one thing goes wrong.
fn lagging(name: &'static str, world: fn() -> World, menu: Menu) -> Search {
    Search { lags: Lags::Parts, ..Search::new(name, world, menu, (1, 0, 0)) }
}

fn around_an_osd() -> Search {
    lagging(AROUND, example::replicated, around)
}

fn on_a_pvc() -> Search {
    lagging(ON_A_PVC, example::pvc_to_be_encrypted, pvcs::recreated)
}

/// Returns the searches for mutants.
pub(super) fn searches() -> Vec<Search> {
    vec![around_an_osd(), on_a_pvc(), one_more_disk()]
}

#[test]
fn view_that_lags_leads_to_nothing_but_waiting() {
    explored(&around_an_osd());
    explored(&on_a_pvc());
    needs(around_an_osd, &[Guard::OnlyWaitsByParts, Guard::PartsExpire]);
    needs(on_a_pvc, &[Guard::OnlyWaitsByParts]);
}

#[test]
fn view_that_lags_survives_a_fault_of_any_kind() {
    explored(&lagging("a view lags, a fault", example::replicated, everything));
    explored(&lagging("a view lags, one more disk, a fault", example::one_more, new_osds::everything));
    explored(&lagging(
        "a view lags, in a directory, a fault",
        example::in_directory,
        directories::everything,
    ));
}

#[test]
fn view_that_lags_survives_a_fault_in_a_removal() {
    for search in removal::searches() {
        if search.left.faults == 1 && search.left.freezes == 0 {
            explored(&Search { lags: Lags::Parts, ..search });
        }
    }
}

/// Returns a search in which the osdmap changes between two reads of one observation.
fn between_reads(name: &'static str, menu: Menu) -> Search {
    Search { lags: Lags::Map, ..lagging(name, example::replicated, menu) }
}

#[test]
fn osdmap_that_moves_between_two_reads_does_no_harm() {
    explored(&between_reads("the osdmap moves, a fault", everything));
    let deaths = || between_reads("the osdmap moves, a death", |world| deaths_of(&[OURS, PARTNER], world));
    needs(deaths, &[Guard::AllClean, Guard::RecheckAllClean, Guard::RecheckOnlyOursMissing]);
}

/// Explores removals from a pool of two replicas by observations that are torn.
fn explored_removals(lags: Lags) {
    for search in removal::searches().into_iter().filter(|search| search.name == removal::TWO_REPLICAS) {
        explored(&Search { lags, ..search });
    }
}

#[test]
fn osdmap_that_moves_between_two_reads_removes_no_needed_osd() {
    explored_removals(Lags::Map);
}

/// Returns a search in which anything changes after the OSDs were listed, and one thing goes wrong.
fn after_the_list(name: &'static str, world: fn() -> World, menu: Menu) -> Search {
    Search { lags: Lags::List, ..lagging(name, world, menu) }
}

#[test]
fn change_after_deployments_and_pods_are_listed_does_no_harm() {
    let fault = || after_the_list("the list is old, a fault", example::replicated, everything);
    explored(&fault());
    needs(fault, &[Guard::AtRest, Guard::StoppedByUs]);
    explored(&after_the_list("the list is old, a PVC", example::pvc_to_be_encrypted, pvcs::recreated));
    explored(&after_the_list("the list is old, one more disk", example::one_more, new_osds::everything));
    explored(&after_the_list(
        "the list is old, in a directory",
        example::in_directory,
        directories::everything,
    ));
}

#[test]
fn change_after_the_list_removes_no_needed_osd() {
    explored_removals(Lags::List);
}

/// Returns a search in which OSDs that are not in progress stay as they were listed.
fn others_stay(name: &'static str, world: fn() -> World, menu: Menu) -> Search {
    Search { lags: Lags::Others, ..lagging(name, world, menu) }
}

fn one_more_disk() -> Search {
    others_stay(ONE_MORE, example::one_more, new_osds::everything)
}

#[test]
fn list_of_other_osds_that_stays_old_does_no_harm() {
    explored(&others_stay("other OSDs stay old, a fault", example::replicated, everything));
    explored(&others_stay("other OSDs stay old, a PVC", example::pvc_to_be_encrypted, pvcs::recreated));
    explored(&one_more_disk());
    needs(one_more_disk, &[Guard::InProgressIsRead, Guard::ListExpires]);
    explored(&others_stay(
        "other OSDs stay old, in a directory",
        example::in_directory,
        directories::everything,
    ));
}

#[test]
fn list_that_stays_old_removes_no_needed_osd() {
    explored_removals(Lags::Others);
}
