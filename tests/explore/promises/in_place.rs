//! The promises for an OSD that is stopped, destroyed and recreated on its own disk.

use std::collections::BTreeSet;

use osd_migrate_core::domain::act::{Act, NodeAct};
use osd_migrate_core::domain::classify::Class;
use osd_migrate_core::domain::inspection::{Content, NodeTask};
use osd_migrate_core::domain::ledger::Record;
use osd_migrate_core::domain::next::Next;
use osd_migrate_core::domain::observation::{JobState, Releases, SlotState};
use osd_migrate_core::domain::osd::{NodeName, OsdFsid, OsdId};
use osd_migrate_core::sim::{Disk, World, fsid_on};

use super::super::state::{Done, State};
use super::{Broken, class, domain_of, down_by_osd_migrate, maps_to, others_suffice};

pub(super) fn stopped(before: &State, osd: OsdId, after: &State) -> Option<Broken> {
    let world = &before.world;
    // Ceph has healed without a quarantined OSD that a person or the mons marked out.
    let is_healed = |osd: &OsdId| {
        let record = after.ledger.records.get(osd);
        let is_out = after.world.ceph.slots.get(osd).is_some_and(|slot| !slot.up && !slot.is_in);
        is_out && record.is_some_and(|record| record.quarantine.is_some() && record.empty.is_none())
    };
    let down = down_by_osd_migrate(after).into_iter().filter(|osd| !is_healed(osd));
    let domains: BTreeSet<_> = down.filter_map(|osd| domain_of(&after.world, osd)).collect();
    if domains.len() > 1 {
        return Some(format!("P1: osd-migrate keeps OSDs in several failure domains down: {domains:?}"));
    }
    let Some(record) = before.ledger.records.get(&osd) else {
        return Some(format!("P5: {osd} was stopped without a record"));
    };
    // An OSD that died while it was emptied is removed as a dead one.
    if world.ceph.slots.get(&osd).is_some_and(|slot| slot.up) == record.is_of_dead() {
        return Some(format!("P6: {osd} was stopped, but was not up, or not dead as recorded"));
    }
    if world.ceph.slots[&osd].fsid != Some(record.old) {
        return Some(format!("P6: {osd} was stopped, but is no longer the OSD of the record"));
    }
    if let Some(lacks) = incomplete(record, before) {
        return Some(format!("P5: {osd} was stopped before {lacks}"));
    }
    if record.is_removal() {
        return super::removal::stopped(before, record)
            .or_else(|| surroundings(before, "stop", osd))
            .or_else(|| super::drains::limited(before, osd))
            .or_else(|| goes_on_serving(world, osd));
    }
    if !matches!(class(world, osd), Class::Legacy(_) | Class::Mismatched(_)) {
        return Some(format!("{osd} was stopped, but conforms"));
    }
    if world.disk_of(record.old).is_some_and(|(_, disk)| disk.mapped_by_host) {
        return Some(format!("P3: {osd} was stopped, though its device is a mapping of its host"));
    }
    if world.kube.rotating.contains(&osd) {
        return Some(format!("P6: {osd} was stopped while Rook rotates its key"));
    }
    let of_pvcs = super::pvcs::unknown_part(world, record);
    if let Some(broken) = of_pvcs.or_else(|| super::pvcs::without_its_key(world, record)) {
        return Some(broken);
    }
    if let Some(broken) = super::directories::nowhere_to_go(before, record) {
        return Some(broken);
    }
    surroundings(before, "stop", osd)
        .or_else(|| super::drains::limited(before, osd))
        .or_else(|| super::batch::stopped(before, osd))
        .or_else(|| others_suffice(world, osd, "stop"))
        .or_else(|| goes_on_serving(world, osd))
        .or_else(|| has_room(world, record))
}

/// Checks P6: the deleted Deployment is the one that osd-migrate stopped, of an OSD that is recreated, and it
/// can be created again.
pub(super) fn undeployed(before: &State, osd: OsdId) -> Option<Broken> {
    let kube = &before.world.kube;
    let is_gone = |record: &Record| record.is_removal() && !before.world.ceph.slots.contains_key(&osd);
    let record = before.ledger.records.get(&osd);
    let Some(record) = record.filter(|record| record.new.is_some() || is_gone(record)) else {
        return Some(format!("P5: the Deployment of {osd} was deleted, but the ledger has no recreated OSD"));
    };
    let is_ours = kube.daemons.get(&osd).is_some_and(|daemon| {
        daemon.stopped_by.as_ref() == Some(&record.id) && daemon.replicas == 0 && daemon.pods.is_empty()
    });
    let is_backed_up = kube.backups.get(&osd) == Some(&record.id);
    (!is_ours || !is_backed_up).then(|| {
        format!("P6: the Deployment of {osd} was deleted, but osd-migrate did not stop it or has no backup")
    })
}

/// Checks P2, which is what Ceph's `ok-to-stop` is about.
pub(super) fn goes_on_serving(world: &World, osd: OsdId) -> Option<Broken> {
    world.placements.iter().filter(|(id, _)| maps_to(world, id, osd)).find_map(|(id, placement)| {
        let others = world.complete_set(id).iter().filter(|other| **other != osd).count();
        let stops = (others as u64) < u64::from(world.ceph.pools[&placement.pool].min_size);
        stops.then(|| format!("P2: {osd} was stopped, and PG {id} stops serving"))
    })
}

/// Checks P7: the new OSD has capacity for what the old one contained, below the nearfull line.
fn has_room(world: &World, record: &Record) -> Option<Broken> {
    let osd = record.osd;
    let slot = world.ceph.slots.get(&osd)?;
    let (_, disk) = world.disk_of(slot.fsid?)?;
    let device = record.device().filter(|_| record.is_in_directory()).unwrap_or(&disk.identity);
    let line = device.size_bytes / 10_000 * u64::from(world.ceph.nearfull_ratio);
    (slot.used_bytes? > line).then(|| format!("P7: {osd} was stopped, and the new one would be too full"))
}

/// Returns what is missing in a record before the point of no return.
fn incomplete(record: &Record, state: &State) -> Option<&'static str> {
    let pgs: BTreeSet<_> = state
        .world
        .placements
        .iter()
        .filter(|(id, _)| maps_to(&state.world, id, record.osd))
        .map(|(id, _)| *id)
        .collect();
    let backups = state.world.kube.backups.get(&record.osd) == Some(&record.id);
    let slot = state.world.ceph.slots.get(&record.osd);
    let with_flags_set = slot.is_some_and(|slot| slot.noout && slot.noin);
    let fenced = state.world.kube.fence.is_some() && state.world.kube.fence == state.ledger.run.fence;
    // The disk of a dead OSD is not inspected: it is left as it is.
    let is_proven = record.evidence.is_some() || record.is_of_dead();
    let lacks = [
        (!is_proven, "its proof was saved"),
        (record.pgs != pgs, "its PGs were saved"),
        (record.stop_intended_at.is_none(), "the intent was saved"),
        (!backups, "its Deployment was backed up"),
        (!with_flags_set, "noout and noin were set on it"),
        (!fenced && !state.thaws, "the CephCluster was fenced"),
    ];
    lacks.iter().find(|(is_so, _)| *is_so).map(|(_, what)| *what)
}

/// Checks that no stop, destroy or wipe happens in surroundings that shut its gate.
///
/// A runner that was frozen right after its observations asks again for the data alone. Its surroundings may
/// have changed in that hour, and endanger no replica. The node of an OSD that is removed may be on its way
/// out, and the migration need not be confirmed.
pub(super) fn surroundings(state: &State, what: &str, osd: OsdId) -> Option<Broken> {
    if state.thaws {
        return None;
    }
    let (kube, ceph) = (&state.world.kube, &state.world.ceph);
    let kept_off = kube.fence.is_some() && !state.world.reconciling;
    let runs = kube.running_operator().is_some_and(|operator| !(operator.honours_fence && kept_off));
    let fenced_externally = kube.fence.is_some() && kube.fence != state.ledger.run.fence;
    let its_node = kube.daemons.get(&osd).and_then(|daemon| daemon.node.as_ref());
    let recorded = state.ledger.records.get(&osd).map(|record| &record.node);
    let concerns = |node: &NodeName| its_node.or(recorded).is_none_or(|of_osd| of_osd == node);
    let prepares = kube.rook_prepares.iter().any(|job| job.node.as_ref().is_none_or(concerns));
    let node = its_node.and_then(|node| kube.nodes.get(node));
    let stop = what == "stop";
    let is_removal = state.ledger.records.get(&osd).is_some_and(Record::is_removal);
    let asks_node = !is_removal || what == "wipe";
    let why = [
        (runs, "Rook's operator is running, and no fence blocks it"),
        (fenced_externally, "another client has fenced the CephCluster"),
        (super::scrubs::other_flag(&state.world).is_some(), "a flag of the cluster is set"),
        (prepares, "Rook prepares OSDs on its node"),
        (kube.draining_failure_domain.is_some(), "Rook lets a domain be drained"),
        (ceph.releases != Releases::One, "an upgrade is in progress"),
        (ceph.health.contains("OSD_NEARFULL"), "Ceph is nearly full"),
        (kube.declaration.external, "the CephCluster is external"),
        (kube.declaration.removes_out_osds, "Rook may remove OSDs that are out"),
        (asks_node && node.is_some_and(|node| !node.ready), "its node is not Ready"),
        (stop && ceph.health.contains("MON_DOWN"), "a mon is down"),
        (stop && kube.ambiguities.iter().any(|one| one.concerns(osd)), "its Deployments are ambiguous"),
        (
            what == "destroy" && kube.ambiguities.iter().any(|one| one.twice == Some(osd)),
            "it has two Deployments",
        ),
        (stop && !is_removal && node.is_some_and(|node| node.cordoned), "its node is cordoned"),
        (stop && kube.control.is_some(), "a person paused or cancelled"),
        (
            stop && !is_removal && !(kube.declaration.confirmed || state.by_flag),
            "the owner has not confirmed",
        ),
    ];
    why.iter().find(|(passes, _)| *passes).map(|(_, why)| format!("gate: {what} of {osd} while {why}"))
}

pub(super) fn destroyed(before: &State, osd: OsdId, fsid: OsdFsid) -> Option<Broken> {
    let world = &before.world;
    if world.ceph.slots[&osd].up {
        return Some(format!("P6: {osd} was destroyed while it was up"));
    }
    let Some(record) = before.ledger.records.get(&osd) else {
        return Some(format!("P6: {osd} was destroyed without an open record"));
    };
    if record.new == Some(fsid) && world.ceph.slots[&osd].state == SlotState::Exists {
        return Some(format!("P6: {osd} was destroyed, but is the finished new OSD"));
    }
    if fsid != record.old {
        // An issued fsid of an OSD that was not finished: it has no data.
        let is_issued =
            world.issued.get(&(osd, record.id.clone())).is_some_and(|issued| issued.contains(&fsid));
        let broken = || format!("P6: {osd} was destroyed with {fsid}, which was not issued for it");
        return (!is_issued && !record.issued.contains(&fsid)).then(broken);
    }
    let daemon = world.kube.daemons.get(&osd);
    if daemon.is_some_and(|daemon| daemon.stopped_by.as_ref() != Some(&record.id)) {
        return Some(format!("P3: {osd} was destroyed, but osd-migrate did not stop it"));
    }
    if daemon.is_some_and(|daemon| daemon.replicas > 0) {
        return Some(format!("P3: {osd} was destroyed while its Deployment has replicas"));
    }
    if daemon.is_some_and(|daemon| !daemon.pods.is_empty()) {
        return Some(format!("P3: {osd} was destroyed while its pod existed"));
    }
    super::pvcs::off_its_pvc(before, osd, fsid)
        .or_else(|| surroundings(before, "destroy", osd))
        .or_else(|| others_suffice(world, osd, "destroy"))
}

/// Checks P3: what is wiped is what was recorded, its slot is destroyed, and no daemon serves it.
pub(super) fn wiped(before: &State, disk: &str, was: &Content, osd: OsdId) -> Option<Broken> {
    let world = &before.world;
    if world.is_run(&world.disks[disk]) {
        return Some(format!("P3: {disk} was wiped while a daemon uses it"));
    }
    let database =
        before.ledger.records.get(&osd).and_then(|record| Some((&record.node, record.db.as_ref()?)));
    if database.is_some_and(|(node, db)| world.database_disk(node, db).is_none()) {
        return Some(format!("P7: {disk} was wiped, but the database of {osd} cannot be created"));
    }
    let ours =
        |fsid: &OsdFsid| world.issued.iter().any(|((of, _), issued)| *of == osd && issued.contains(fsid));
    match was {
        Content::Tombstone { osd: of, .. } if *of == osd => None,
        Content::Bluestore { osd_fsid, .. } if ours(osd_fsid) => {
            let finished = matches!(was, Content::Bluestore { finished: true, .. });
            let served = world
                .ceph
                .slots
                .values()
                .any(|slot| slot.fsid == Some(*osd_fsid) && slot.state == SlotState::Exists);
            (finished && served).then(|| format!("P3: {disk} was wiped, but contains the finished new OSD"))
        }
        Content::Bluestore { .. } | Content::Osd { .. } => {
            let fsid = fsid_on(was);
            let recorded = before.ledger.records.get(&osd).map(|record| record.old);
            let original = fsid == Some(osd_migrate_core::sim::example::fsid(osd, 0));
            if !original || (recorded.is_some() && recorded != fsid) {
                return Some(format!(
                    "P3: {disk} was wiped, but contains something other than the OSD of the record: {was:?}"
                ));
            }
            let is_registered = world.ceph.slots.values().any(|slot| slot.fsid == fsid);
            is_registered.then(|| format!("P3: {disk} was wiped while a slot has its OSD"))
        }
        Content::Tombstone { .. } | Content::Blank | Content::Other { .. } | Content::NotFound { .. } => {
            Some(format!("P3: {disk} was wiped, but contains {was:?}"))
        }
    }
}

/// Checks P2 for the wipe, and P5.
///
/// P2 is checked when the agent is created, since a frozen agent cannot know better. P5: the agent's attempt
/// is saved.
pub(super) fn agent_allowed(before: &State, next: &Next, done: &Done) -> Option<Broken> {
    let Next::Do(Act::Node(NodeAct::Agent { request, .. })) = next else { return None };
    if done.refused.is_some() {
        return None;
    }
    let osd = request.osd;
    let there = before.world.kube.node_jobs.iter().any(|job| {
        job.record == request.record && job.attempt == request.attempt && job.task == request.task
    });
    let saved = before.ledger.records.get(&osd).map(|record| (record.attempt.number, record.attempt.task));
    if !there
        && saved.is_some()
        && saved != Some((request.attempt, request.task))
        && request.task == NodeTask::Rebuild
        && !before.thaws
    {
        return Some(format!("P5: an agent was created for {osd}, but its attempt is not the saved one"));
    }
    // After the first write, the destination disk of a directory's OSD carries nothing that could be lost.
    let is_begun = request.directory.as_ref().is_some_and(|directory| {
        let is_it =
            |disk: &&Disk| directory.onto.as_ref().is_some_and(|onto| onto.is_same_as(&disk.identity));
        let disk = before.world.disks.values().find(is_it);
        disk.is_none_or(|disk| disk.content != Content::Blank)
    });
    // The key of an encrypted OSD was removed with its slot: data that cannot be read cannot be lost.
    let is_readable = before.world.dmcrypt.get(&request.old) != Some(&false);
    let carries_old = before.world.disk_of(request.old).is_some() && is_readable && !is_begun;
    let at_work = before
        .world
        .kube
        .node_jobs
        .iter()
        .find(|job| job.record == request.record && job.state != JobState::Ended && !there);
    if let Some(job) = at_work.filter(|_| !before.thaws) {
        return Some(format!("two agents in parallel for {osd}: {} is still running", job.name));
    }
    if request.task != NodeTask::Rebuild || !carries_old || there {
        return None;
    }
    // Data that an emptied OSD left on its disk is older than each replica: the wipe takes none away.
    let is_emptied = before.ledger.records.get(&osd).is_some_and(|record| record.empty.is_some());
    let others = || others_suffice(&before.world, osd, "wipe").filter(|_| !is_emptied);
    surroundings(before, "wipe", osd).or_else(others)
}
