//! Gates of everything around the PGs: Rook, space, flags, upgrades.

use super::answer::{Gate, first_not_open, shut_if};
use super::{Reason, rook};
use crate::domain::guard::{Guard, is_out};
use crate::domain::ledger::Run;
use crate::domain::observation::{Ambiguity, Observation, Releases, Slot};
use crate::domain::osd::{NodeName, OsdId};

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

/// Returns the gate that is shut if a flag of the whole osdmap prevents the migration.
pub fn flags(seen: &Observation) -> Gate {
    flag_in_the_way(&FLAGS, seen)
}

pub(super) fn flag_in_the_way(flags: &[&str], seen: &Observation) -> Gate {
    let flag = flags.iter().find(|flag| seen.ceph.flags.contains(**flag));
    flag.map_or(Gate::Open, |flag| Gate::Shut(Reason::Flag { flag: (*flag).to_owned(), on: None }))
}

/// Returns the gate that is shut if `nodown` or `noup` is set on this OSD, a CRUSH node that contains it, or
/// its device class.
///
/// The mons ask these flags like those of the cluster (`OSDMonitor::can_mark_down`, `can_mark_up`, 16.2.15).
/// They ask `nodown` only of an OSD that is up.
pub fn flags_of(osd: OsdId, seen: &Observation) -> Gate {
    let nodown = seen.ceph.slots.get(&osd).filter(|slot| slot.up).and_then(|slot| slot.nodown.as_ref());
    nodown.map_or_else(|| set_group("noup", noup_of(osd, seen)), |on| set_group("nodown", Some(on)))
}

/// Returns the gate that is shut if `noup` is set on the whole cluster, or on a group of OSDs with this one.
pub fn may_come_up(osd: OsdId, seen: &Observation) -> Gate {
    first_not_open([flag_in_the_way(&["noup"], seen), set_group("noup", noup_of(osd, seen))])
}

/// Returns the gate that is shut if `noup` is set on a CRUSH node that contains the OSDs of this node: a new
/// OSD would not come up.
pub(super) fn may_come_up_on(node: &NodeName, seen: &Observation) -> Gate {
    let is_here =
        |osd: &OsdId| seen.kube.daemons.get(osd).is_some_and(|daemon| daemon.node.as_ref() == Some(node));
    let noup = seen.ceph.slots.iter().find_map(|(osd, slot)| {
        let (on, item) = slot.noup.as_ref().zip(slot.crush.as_ref())?;
        (is_here(osd) && item.location.values().any(|name| name == on)).then_some(on)
    });
    set_group("noup", noup)
}

fn noup_of(osd: OsdId, seen: &Observation) -> Option<&String> {
    seen.ceph.slots.get(&osd).and_then(|slot| slot.noup.as_ref())
}

fn set_group(flag: &str, on: Option<&String>) -> Gate {
    let reason = |on: &String| Reason::Flag { flag: flag.to_owned(), on: Some(on.clone()) };
    on.map_or(Gate::Open, |on| Gate::Shut(reason(on)))
}

/// Returns the gate of everything around the PGs: Rook, space, flags, upgrades.
pub(super) fn surroundings(run: &Run, seen: &Observation) -> Gate {
    let of_a_quota = is_out(Guard::PoolQuotaIsNoFull) && seen.ceph.health.contains("POOL_FULL");
    let full = FULL.iter().find(|code| seen.ceph.health.contains(**code) || of_a_quota);
    first_not_open([
        rook_and_release(run, seen),
        full.map_or(Gate::Open, |code| Gate::Shut(Reason::Full { code: (*code).to_owned() })),
        flags(seen),
    ])
}

/// Returns the gate that is open if Rook can't interfere and no upgrade is in progress.
pub(super) fn rook_and_release(run: &Run, seen: &Observation) -> Gate {
    let kube = &seen.kube;
    let foreign_fence = kube.fence.as_deref().filter(|value| Some(*value) != run.fence.as_deref());
    first_not_open([
        shut_if(kube.declaration.external, || Reason::External),
        shut_if(kube.declaration.removes_out_osds, || Reason::RookRemovesOutOsds),
        rook::can_be_fenced(run, seen),
        foreign_fence
            .map_or(Gate::Open, |value| Gate::Shut(Reason::FencedExternally { value: value.to_owned() })),
        rook::prepares_none_unplaced(seen),
        draining(seen),
        shut_if(is_upgrading(seen), || Reason::Upgrading),
        image_as_known(seen),
    ])
}

/// Returns the gate that is shut while Rook lets a failure domain be drained.
///
/// Rook keeps the name of a domain as long as its node is cordoned or gone, and PGs are unclean (osd.go of
/// pkg/operator/ceph/disruption/clusterdisruption, v1.16.9, v1.20.6). If all its OSDs are down and out,
/// nothing is left to drain.
fn draining(seen: &Observation) -> Gate {
    let Some(domain) = &seen.kube.draining_failure_domain else { return Gate::Open };
    let is_its = |slot: &&Slot| {
        slot.crush.as_ref().is_some_and(|item| item.location.values().any(|name| name == domain))
    };
    let mut its = seen.ceph.slots.values().filter(is_its).peekable();
    let is_dead = its.peek().is_some() && its.all(Slot::is_down_and_out);
    shut_if(!is_dead, || Reason::Draining { domain: domain.clone() })
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

/// Returns the gate that is shut if Deployments or pods of any OSD are ambiguous.
pub(super) fn none_ambiguous(seen: &Observation) -> Gate {
    shut_by_ambiguity(seen, |_| true)
}

/// Returns the gate that is shut if something is ambiguous, and it is not known of which OSDs.
pub(super) fn ambiguous_osds_known(seen: &Observation) -> Gate {
    shut_by_ambiguity(seen, |one| one.osds.is_empty())
}

/// Returns the gate that is shut if it is known that Deployments or pods of this OSD are ambiguous.
pub fn not_ambiguous(osd: OsdId, seen: &Observation) -> Gate {
    shut_by_ambiguity(seen, |one| one.osds.contains(&osd))
}

/// Returns the gate that is shut if two Deployments have the label of this OSD.
pub fn one_deployment(osd: OsdId, seen: &Observation) -> Gate {
    shut_by_ambiguity(seen, |one| one.twice == Some(osd))
}

fn shut_by_ambiguity(seen: &Observation, shuts: impl Fn(&Ambiguity) -> bool) -> Gate {
    let found = seen.kube.ambiguities.iter().find(|one| shuts(one));
    found.map_or(Gate::Open, |one| Gate::Shut(Reason::AmbiguousObjects { what: one.what.clone() }))
}
