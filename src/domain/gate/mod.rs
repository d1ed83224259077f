//! Gates: conditions that must be true before an act, checked on a fresh view. Reasons are data, which
//! `status` shows.

mod begin;
mod clean;
mod data;
mod own;
mod reason;
mod rook;
mod words;

pub use begin::{begin, failure_limit, held, is_cancelled};
pub use clean::{accepted, is_clean, state_text};
pub use data::{gone, is_filled, is_short_of_osds, moved_unclean, pgs_of};
pub use own::{Own, passes_by_itself};
pub use reason::Reason;
pub use rook::{Fenced, fenced, left_to_rooks_migration, migrates_none, stays_fenced};
pub use words::{names, retries};

use std::collections::BTreeSet;

use super::act::DataPrecondition;
use super::guard::{Guard, is_out};
use super::ledger::Record;
use super::observation::{Admission, Ceph, Observation, OkToStop, Pg, Releases, Slot};
use super::osd::{NodeName, OsdId, PgId};
use super::policy::Accepted;
use data::{
    all_clean, all_clean_or_short_of_osds, clean_for, fresh, not_merging, only_ours_missing, redundancy,
};

/// Answer to whether an act may be done now.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Gate {
    /// The act may be done.
    Open,
    /// The act may not be done.
    Shut(Reason),
    /// The view is not fresh enough to decide: wait, and revert nothing.
    Unknown(Reason),
}

impl Gate {
    /// Returns the gate; in a test build, returns an open one if the guard of the gate was taken out.
    #[must_use]
    pub fn guarded(self) -> Self {
        match &self {
            Self::Shut(reason) | Self::Unknown(reason) if reason.guard().is_some_and(is_out) => Self::Open,
            Self::Open | Self::Shut(_) | Self::Unknown(_) => self,
        }
    }
}

/// Returns the gate before an OSD is recorded and before it is stopped.
///
/// No replica is missing, Ceph agrees, and one more loss is survivable.
pub fn before_stop(
    osd: OsdId,
    node: &NodeName,
    our_fence: Option<&str>,
    accepted: &Accepted,
    seen: &Observation,
) -> Gate {
    let concerned = pgs_of(osd, seen);
    first_not_open([
        // The reason that no waiting resolves comes first: such an OSD is refused, whatever the other reasons
        // are.
        redundancy(&concerned, seen),
        around_any_stop(our_fence, seen),
        data_before_stop(osd, &concerned, accepted, seen),
        before_this_stop(osd, node, seen),
    ])
}

/// Returns the gate of the PGs before a stop of this OSD.
pub fn data_before_stop(
    osd: OsdId,
    concerned: &BTreeSet<PgId>,
    accepted: &Accepted,
    seen: &Observation,
) -> Gate {
    first_not_open([
        // If all PGs have to be clean, the statistics of all PGs must be fresh.
        fresh(|pg| !accepted.any || concerned.contains(pg), &seen.ceph),
        clean_for(osd, accepted, &seen.ceph),
        not_merging(concerned, seen),
    ])
}

/// Returns the gate before any stop, except for the PGs: Rook, space, flags, upgrades, mons.
pub fn around_any_stop(our_fence: Option<&str>, seen: &Observation) -> Gate {
    first_not_open([surroundings(our_fence, seen), not_ambiguous(seen), mon_quorum(seen)])
}

/// Returns the gate before any OSD is stopped or restarted, if all PGs have to be clean.
pub fn before_any_stop(our_fence: Option<&str>, seen: &Observation) -> Gate {
    first_not_open([around_any_stop(our_fence, seen), fresh(|_| true, &seen.ceph), all_clean(&seen.ceph)])
}

/// Returns the gate before a stop that concerns this OSD only, without redundancy.
pub fn before_this_stop(osd: OsdId, node: &NodeName, seen: &Observation) -> Gate {
    first_not_open([node_ready(node, seen), not_cordoned(node, seen), ok_to_stop(osd, seen)])
}

/// Returns the gate before Destroy and Rebuild of an OSD that osd-migrate stopped.
///
/// Only its own replicas may be missing.
pub fn after_stop(record: &Record, our_fence: Option<&str>, seen: &Observation) -> Gate {
    // The data comes first: it may need a person, who is not called for conditions that pass without help.
    first_not_open([
        only_ours_missing(record.osd, &record.pgs, &seen.ceph),
        enough_space(record, seen),
        // PGs that no longer exist (their pool was deleted, or PGs were merged) are not asked.
        fresh(|pg| record.pgs.contains(pg), &seen.ceph),
        surroundings(our_fence, seen),
        node_ready(&record.node, seen),
    ])
}

/// Returns the gate before an available disk becomes an OSD.
///
/// Asked before the OSD is recorded and again before its node agent is created. Rook is not at work, all PGs
/// are clean except those short of OSDs, and the node is Ready. No OSD is stopped and no data is removed, so
/// neither redundancy nor fullness is asked: a new OSD is the cure for both.
pub fn before_new(node: &NodeName, our_fence: Option<&str>, seen: &Observation) -> Gate {
    first_not_open([
        before_adopt(node, our_fence, seen),
        flag_in_the_way(&FLAGS_FOR_NEW, seen),
        fresh(|_| true, &seen.ceph),
        all_clean_or_short_of_osds(&seen.ceph),
    ])
}

/// Returns the gate before an OSD is started that is finished, down, and started by nothing.
///
/// Like `before_new`, but without the checks of flags and PGs: the OSD brings its data.
pub fn before_adopt(node: &NodeName, our_fence: Option<&str>, seen: &Observation) -> Gate {
    first_not_open([
        // No fence is set for such an OSD: Rook itself turns available disks into OSDs.
        rook::is_away(seen),
        rook_and_release(our_fence, seen),
        not_ambiguous(seen),
        mon_quorum(seen),
        node_ready(node, seen),
        not_cordoned(node, seen),
    ])
}

/// Returns the gate before a stop that asks whether the API server would admit the Deployment of the new OSD.
pub fn admitted(osd: OsdId, seen: &Observation) -> Gate {
    match seen.kube.admission.get(&osd) {
        Some(Admission::Admitted) => Gate::Open,
        Some(Admission::Refused(why)) => Gate::Shut(Reason::AdmissionRefused { osd, why: why.clone() }),
        Some(Admission::Unanswered(why)) => {
            Gate::Unknown(Reason::AdmissionUnknown { osd, why: Some(why.clone()) })
        }
        None => Gate::Unknown(Reason::AdmissionUnknown { osd, why: None }),
    }
    .guarded()
}

/// Returns the gate of one node: it is Ready and not cordoned.
pub fn of_node(node: &NodeName, seen: &Observation) -> Gate {
    first_not_open([node_ready(node, seen), not_cordoned(node, seen)])
}

/// Returns the gate before an OSD is restarted as it is.
///
/// No data is removed, so one more loss need not be survivable. The rollout of every Deployment must be
/// complete: right after a change of its Deployment an OSD is still up, and its PGs look clean.
pub fn before_restart(osd: OsdId, node: &NodeName, our_fence: Option<&str>, seen: &Observation) -> Gate {
    let rolling = seen.kube.daemons.iter().find(|(_, daemon)| !daemon.rolled_out);
    first_not_open([
        rook::is_away(seen),
        before_any_stop(our_fence, seen),
        before_this_stop(osd, node, seen),
        rolling.map_or(Gate::Open, |(osd, _)| Gate::Unknown(Reason::RolloutInProgress { osd: *osd })),
    ])
}

/// Returns the gate of a data precondition, asked right before the act.
pub fn precondition(precondition: &DataPrecondition, ceph: &Ceph) -> Gate {
    match precondition {
        DataPrecondition::AllClean => first_not_open([fresh(|_| true, ceph), all_clean(ceph)]),
        DataPrecondition::CleanFor { osd, accepted } => {
            let shares = |pg: &Pg| pg.up.contains(osd) || pg.acting.contains(osd);
            let is_concerned = |id: &PgId| !accepted.any || ceph.pgs.get(id).is_some_and(shares);
            first_not_open([fresh(is_concerned, ceph), clean_for(*osd, accepted, ceph)])
        }
        DataPrecondition::OnlyOursMissing { osd, pgs } => {
            first_not_open([only_ours_missing(*osd, pgs, ceph), fresh(|pg| pgs.contains(pg), ceph)])
        }
        DataPrecondition::Backfilled { osd, fsid, pgs } => {
            let slot = ceph.slots.get(osd).filter(|slot| slot.fsid == Some(*fsid));
            let is_filled = slot.is_some_and(|slot| is_filled((*osd, slot), pgs, true, |_| false, ceph));
            shut_if(!is_filled, || Reason::BackfillIncomplete { osd: *osd })
        }
    }
}

/// Returns the first gate that is not open.
///
/// A shut gate comes before an unknown one: a known fault decides.
pub fn first_not_open<const N: usize>(gates: [Gate; N]) -> Gate {
    let mut first = Gate::Open;
    for gate in gates.map(Gate::guarded) {
        match (&first, &gate) {
            (Gate::Shut(_), _) | (_, Gate::Open) | (Gate::Unknown(_), Gate::Unknown(_)) => {}
            (Gate::Open | Gate::Unknown(_), Gate::Shut(_)) | (Gate::Open, Gate::Unknown(_)) => first = gate,
        }
    }
    first
}

/// Returns the first gate that is not open, whether it is shut or unknown.
pub fn first_of<const N: usize>(gates: [Gate; N]) -> Gate {
    gates.into_iter().find(|gate| *gate != Gate::Open).unwrap_or(Gate::Open)
}

fn shut_if(condition: bool, reason: impl FnOnce() -> Reason) -> Gate {
    if condition { Gate::Shut(reason()) } else { Gate::Open }
}

/// Health codes that forbid giving up a replica, however clean the PGs are.
///
/// Only codes of OSDs and PGs. A pool that reaches its quota raises `POOL_FULL` and `POOL_NEAR_FULL` on empty
/// disks. A pool on full OSDs raises the codes of the OSDs too (`OSDMap::check_health`).
const FULL: [&str; 5] =
    ["OSD_FULL", "OSD_NEARFULL", "OSD_BACKFILLFULL", "PG_BACKFILL_FULL", "PG_RECOVERY_FULL"];

/// Flags of the whole osdmap that prevent any migration.
///
/// With them a stopped OSD is not marked down, a new OSD is not marked up, data does not recover, or clients
/// can't read or write. Other flags do not prevent it. osd-migrate itself sets `noout` and `noin` on the OSD.
/// Scrubbing is Ceph's own matter. `norebalance` blocks no PG with a missing replica (`PrimaryLogPG`:
/// `start_recovery_ops` asks `is_degraded`), and all data that osd-migrate moves belongs to such PGs.
const FLAGS: [&str; 8] = ["nodown", "noup", "norecover", "nobackfill", "pause", "pauserd", "pausewr", "full"];

/// Flags that prevent a new OSD: it would not come up or not be marked in, or its data would not move to it.
const FLAGS_FOR_NEW: [&str; 8] =
    ["noup", "noin", "norecover", "nobackfill", "norebalance", "pause", "pauserd", "pausewr"];

/// Returns the gate that is shut if a flag of the whole osdmap prevents the migration.
pub fn flags(seen: &Observation) -> Gate {
    flag_in_the_way(&FLAGS, seen)
}

fn flag_in_the_way(flags: &[&str], seen: &Observation) -> Gate {
    let flag = flags.iter().find(|flag| seen.ceph.flags.contains(**flag));
    flag.map_or(Gate::Open, |flag| Gate::Shut(Reason::Flag { flag: (*flag).to_owned() }))
}

/// Returns the gate of everything around the PGs: Rook, space, flags, upgrades.
fn surroundings(our_fence: Option<&str>, seen: &Observation) -> Gate {
    let of_a_quota = is_out(Guard::PoolQuotaIsNoFull) && seen.ceph.health.contains("POOL_FULL");
    let full = FULL.iter().find(|code| seen.ceph.health.contains(**code) || of_a_quota);
    first_not_open([
        rook_and_release(our_fence, seen),
        full.map_or(Gate::Open, |code| Gate::Shut(Reason::Full { code: (*code).to_owned() })),
        flags(seen),
    ])
}

/// Returns the gate that is open if Rook can't interfere and no upgrade is in progress.
fn rook_and_release(our_fence: Option<&str>, seen: &Observation) -> Gate {
    let kube = &seen.kube;
    let foreign_fence = kube.fence.as_deref().filter(|value| Some(*value) != our_fence);
    first_not_open([
        shut_if(kube.declaration.external, || Reason::External),
        shut_if(kube.declaration.removes_out_osds, || Reason::RookRemovesOutOsds),
        rook::can_be_fenced(seen),
        foreign_fence
            .map_or(Gate::Open, |value| Gate::Shut(Reason::FencedExternally { value: value.to_owned() })),
        kube.rook_prepares
            .first()
            .map_or(Gate::Open, |job| Gate::Shut(Reason::RookPrepares { job: job.clone() })),
        kube.draining_failure_domain
            .as_ref()
            .map_or(Gate::Open, |domain| Gate::Shut(Reason::Draining { domain: domain.clone() })),
        shut_if(is_upgrading(seen), || Reason::Upgrading),
        image_as_known(seen),
    ])
}

/// Returns whether an upgrade is in progress: daemons of several releases are running.
///
/// If mons and mgrs are ahead, and a Filestore OSD exists that can't follow them, the upgrade is blocked and
/// waits for this migration. Rook, which would continue it, is kept away during the migration.
fn is_upgrading(seen: &Observation) -> bool {
    let metadata = |slot: &Slot| slot.metadata.as_ref().is_some_and(|metadata| metadata.store.is_filestore());
    match seen.ceph.releases {
        Releases::One => false,
        Releases::OthersBehind => !seen.ceph.slots.values().any(metadata),
        Releases::Several => true,
    }
}

/// Returns the gate that is shut if the CephCluster names an image that Rook has not picked up.
///
/// New OSDs use the declared image at once. The other OSDs use it only when Rook, which may be kept away for
/// long, has upgraded them.
fn image_as_known(seen: &Observation) -> Gate {
    let declared = &seen.kube.declaration.image;
    match &seen.kube.rook_image {
        Some(known) if known != declared && !declared.is_empty() => {
            Gate::Shut(Reason::ImageChanged { declared: declared.clone(), known: known.clone() })
        }
        Some(_) | None => Gate::Open,
    }
}

fn node_ready(node: &NodeName, seen: &Observation) -> Gate {
    match seen.kube.nodes.get(node) {
        Some(found) if found.ready => Gate::Open,
        Some(_) | None => Gate::Unknown(Reason::NodeNotReady { node: node.clone() }),
    }
}

/// Returns the gate that is shut if the node is cordoned.
///
/// Asked before Stop only: the pod that would start the OSD again, old or new, would find no node. After Stop
/// the best choice is to continue.
fn not_cordoned(node: &NodeName, seen: &Observation) -> Gate {
    let cordoned = seen.kube.nodes.get(node).is_some_and(|found| found.cordoned);
    shut_if(cordoned, || Reason::NodeCordoned { node: node.clone() })
}

fn not_ambiguous(seen: &Observation) -> Gate {
    let unusual = seen.kube.ambiguities.first();
    unusual.map_or(Gate::Open, |what| Gate::Shut(Reason::AmbiguousObjects { what: what.clone() }))
}

/// Returns the gate that is open if all mons of the monmap are in quorum.
///
/// The mons raise `MON_DOWN` if one is not in quorum. Their answer shows that a majority is.
///
/// Asked before Stop only: a cluster that has lost one mon may lose the quorum with the next, and then an OSD
/// that is down for the migration can't be started again. An OSD that is already down is finished anyway:
/// that takes minutes, and the restart of a mon must not make an OSD go down and up.
fn mon_quorum(seen: &Observation) -> Gate {
    shut_if(seen.ceph.health.contains("MON_DOWN"), || Reason::MonDown)
}

fn ok_to_stop(osd: OsdId, seen: &Observation) -> Gate {
    match seen.ceph.ok_to_stop.get(&BTreeSet::from([osd])) {
        Some(OkToStop { ok: true, .. }) => Gate::Open,
        Some(OkToStop { ok: false, bad_pgs }) => Gate::Shut(Reason::NotOkToStop { bad_pgs: *bad_pgs }),
        None => Gate::Unknown(Reason::NotAsked),
    }
}

/// Returns the gate that is open if the old OSD's data fits into the new OSD.
///
/// The data and a tenth more must fit below the nearfull line of the new OSD. While the old OSD is up, its
/// present usage counts; after that, its usage at Stop.
pub fn enough_space(record: &Record, seen: &Observation) -> Gate {
    let old = seen.ceph.slots.get(&record.osd).filter(|slot| slot.fsid == Some(record.old));
    let now = old.filter(|slot| slot.up).and_then(|slot| slot.used_bytes);
    let used = now.or(record.used_bytes).or_else(|| old?.used_bytes);
    let (Some(evidence), Some(used)) = (&record.evidence, used) else {
        return Gate::Unknown(Reason::UsageUnknown).guarded();
    };
    room(evidence.usable_bytes, used, seen)
}

/// Returns the gate that is open if so many bytes are enough for the data of an OSD.
pub fn room(bytes: u64, used: u64, seen: &Observation) -> Gate {
    let usable = bytes / 10_000 * u64::from(seen.ceph.nearfull_ratio);
    let needed = needed(used);
    shut_if(usable < needed, || Reason::TooSmall { usable, needed }).guarded()
}

/// Returns the smallest number of bytes that is enough for this usage.
pub fn least_space(used: u64, seen: &Observation) -> u64 {
    needed(used).div_ceil(u64::from(seen.ceph.nearfull_ratio).max(1)) * 10_000
}

fn needed(used: u64) -> u64 {
    used / 10 * 11
}
