//! The promises for available disks that become OSDs, OSDs that no Deployment starts, and OSDs restarted for
//! a taint.

use osd_migrate_core::domain::act::{Act, Deploy, KubeAct, NodeAct};
use osd_migrate_core::domain::inspection::{Content, NodeTask, Proof, RecordId};
use osd_migrate_core::domain::ledger::Record;
use osd_migrate_core::domain::next::Next;
use osd_migrate_core::domain::observation::{Ambiguity, Observation, Releases, SlotState};
use osd_migrate_core::domain::osd::{NodeName, OsdFsid, OsdId};
use osd_migrate_core::domain::plan::Questions;
use osd_migrate_core::domain::policy::Policy;
use osd_migrate_core::domain::provision;
use osd_migrate_core::sim::{Disk, Effect, World, fsid_on};

use super::super::state::{Done, State};
use super::{Broken, domain_of, in_place};

/// Returns the open record of an available disk, by the record's name.
pub(super) fn record_of<'a>(state: &'a State, id: &RecordId) -> Option<&'a Record> {
    state.ledger.records.values().find(|record| record.id == *id && record.is_new())
}

/// Checks P3: an agent writes only over a blank disk, osd-migrate's tombstone, or an OSD with an issued fsid.
pub(super) fn taken(before: &State, disk: &str, was: &Content, record: &Record) -> Option<Broken> {
    let world = &before.world;
    let evidence = record.evidence.as_ref()?;
    let found = &world.disks[disk];
    let issued = world.issued.get(&(record.osd, record.id.clone()));
    let is_fine = match was {
        Content::Blank => true,
        Content::Tombstone { osd, old, record: of, .. } => {
            let stone = Proof::Available { tombstone: Some((*osd, *old, of.clone())) };
            evidence.proof == stone || (*osd, *old) == (record.osd, record.old)
        }
        Content::Bluestore { osd_fsid, finished, .. } => {
            let is_served = world.ceph.slots.values().any(|slot| slot.fsid == Some(*osd_fsid));
            issued.is_some_and(|issued| issued.contains(osd_fsid)) && !(*finished && is_served)
        }
        Content::Osd { .. } | Content::Other { .. } | Content::NotFound { .. } => false,
    };
    let is_it = evidence.device.is_same_as(&found.identity) && found.node == record.node;
    if found.is_volume(&world.kube) {
        return Some(format!("P6: {disk} was overwritten for {}, but is a PersistentVolume", record.osd));
    }
    match (is_fine && is_it, world.is_run(found)) {
        (true, false) => None,
        (false, _) => Some(format!("P3: {disk} was overwritten for {}, but contains {was}", record.osd)),
        (true, true) => Some(format!("P3: {disk} was overwritten for {} while a daemon uses it", record.osd)),
    }
}

/// Checks that an OSD without a record that was started is the one that its slot names.
///
/// The OSD is on its own disk, is down, and no Deployment started it.
pub(super) fn adopted(before: &State, osd: OsdId, fsid: OsdFsid) -> Option<Broken> {
    let world = &before.world;
    let slot = world.ceph.slots.get(&osd);
    let is_it = slot.is_some_and(|slot| slot.fsid == Some(fsid) && !slot.up);
    let why = if !is_it {
        "its slot has another OSD, or is up"
    } else if world.kube.daemons.contains_key(&osd) {
        "it had a Deployment"
    } else if world.disk_of(fsid).is_none() {
        "no disk contains it"
    } else if world.disk_of(fsid).is_some_and(|(_, disk)| disk.is_volume(&world.kube)) {
        "its disk is a PersistentVolume"
    } else {
        return None;
    };
    Some(format!("P3: {osd} was started as {fsid}, though {why}"))
}

/// Checks P1 and P2: OSDs are restarted one after the other, and no PG stops serving because of it.
pub(super) fn restarted(before: &State, osd: OsdId) -> Option<Broken> {
    let world = &before.world;
    if !world.ceph.slots.get(&osd).is_some_and(|slot| slot.up) {
        return None;
    }
    let rolling = |(other, daemon): &(&OsdId, &osd_migrate_core::domain::observation::Daemon)| {
        **other != osd && !daemon.rolled_out && domain_of(world, **other) != domain_of(world, osd)
    };
    if let Some((other, _)) = world.kube.daemons.iter().find(rolling) {
        return Some(format!("P1: {osd} was restarted while {other} is, on another host"));
    }
    let not_clean =
        || lacks(world).map(|pg| format!("P2: {osd} was restarted while PG {pg} lacks a replica"));
    in_place::goes_on_serving(world, osd).or_else(not_clean)
}

/// Checks what a runner did: no unseen Deployment is overwritten, and nothing forbidden is started.
pub(super) fn allowed(before: &State, next: &Next, done: &Done) -> Option<Broken> {
    let Next::Do(act) = next else { return None };
    if done.refused.is_some() {
        return None;
    }
    match act {
        Act::Node(NodeAct::Agent { request, .. }) if request.task == NodeTask::Rebuild => {
            begun(before, record_of(before, &request.record)?)
        }
        Act::Kube(KubeAct::Adopt(deploy)) => started(before, deploy, done).or_else(|| {
            in_the_way(before, &deploy.node, None).map(|why| broken_gate(before, "start", deploy.osd, why))?
        }),
        Act::Kube(KubeAct::Deploy(deploy)) if deploy.fresh.is_some() => started(before, deploy, done),
        Act::Kube(KubeAct::Tolerate { osd, precondition: Some(_), .. }) => {
            let node = before.world.kube.daemons.get(osd)?.node.clone()?;
            in_the_way(before, &node, Some(*osd)).and_then(|why| broken_gate(before, "restart", *osd, why))
        }
        _ => None,
    }
}

fn broken_gate(before: &State, what: &str, osd: OsdId, why: &str) -> Option<Broken> {
    // A runner that was frozen after its observations asks again for the data alone.
    (!before.thaws).then(|| format!("gate: {what} of {osd} while {why}"))
}

/// Checks P3 and P6: what is started is what its slot names, and is down; no unseen Deployment is
/// overwritten.
fn started(before: &State, deploy: &Deploy, done: &Done) -> Option<Broken> {
    let osd = deploy.osd;
    let is_written = done.effects.iter().any(|effect| matches!(effect, Effect::Deployed(..)));
    let fresh = deploy.fresh.as_ref().filter(|_| is_written)?;
    let slot = before.world.ceph.slots.get(&osd);
    if !slot.is_some_and(|slot| slot.fsid == Some(deploy.fsid) && !slot.up) {
        return Some(format!(
            "P3: {osd} was started as {}, but its slot has another OSD or is up",
            deploy.fsid
        ));
    }
    let found = before.world.kube.daemons.get(&osd)?;
    let is_it = (found.uid.clone(), found.generation);
    let broken = || format!("P6: the Deployment that another client wrote for {osd} was overwritten");
    (fresh.replaces != Some(is_it)).then(broken)
}

/// Checks that no disk is used while something blocks it, or against its owner's declaration.
fn begun(before: &State, record: &Record) -> Option<Broken> {
    let world = &before.world;
    let is_created = |job: &osd_migrate_core::domain::observation::NodeJob| {
        job.record == record.id && job.attempt == record.attempt.number
    };
    let is_begun = world.issued.contains_key(&(record.osd, record.id.clone()))
        || world
            .disks
            .values()
            .any(|disk| matches!(&disk.content, Content::Tombstone { record: of, .. } if *of == record.id))
        || world.kube.node_jobs.iter().any(is_created);
    if before.thaws || is_begun {
        return None;
    }
    let is_wanted = match &record.pvcs {
        Some(pvcs) => is_declared(world, &pvcs.data.name),
        None => is_selected(world, &record.node),
    };
    let unwanted = (!is_wanted).then_some("its owner does not select the disk or the PVC");
    let unclean = lacks(world).map(|_| "a PG lacks a replica that will come back, or data moves");
    let flag = super::scrubs::other_flag(world).map(|_| "a flag of the cluster is set");
    let why = in_the_way(before, &record.node, None).or(unwanted).or(flag).or(unclean);
    why.map(|why| format!("gate: {} was started while {why}", record.osd))
}

/// Returns a PG that has a missing replica, though not for lack of OSDs, or that is not at rest.
///
/// If every OSD is up and the mgr has no report of the PG since, the PG does not count. Right after the boot
/// of an OSD, such a PG cannot be distinguished from one that finds no OSD to map to.
fn lacks(world: &World) -> Option<String> {
    let slots = world.ceph.slots.values();
    let all_up = slots.clone().all(|slot| slot.up || !slot.is_in || slot.state != SlotState::Exists);
    let lacks = world.placements.iter().find(|(id, placement)| {
        let (up, size) = (world.up_set(id), u64::from(world.ceph.pools[&placement.pool].size));
        let is_whole = up.len() as u64 == size || all_up;
        let is_received = !(all_up && world.lagging().contains(id));
        is_received && !(placement.peered && up == world.complete_set(id) && is_whole)
    });
    lacks.map(|(id, _)| id.to_string())
}

/// Returns whether the device set of a PVC is declared with more OSDs than the other Deployments have.
fn is_declared(world: &World, pvc: &str) -> bool {
    let kube = &world.kube;
    let Some(set) = kube.pvcs.get(pvc).and_then(|pvc| pvc.set.as_ref()) else { return false };
    let on_pvcs = kube.daemons.values().filter_map(|daemon| daemon.on_pvcs.as_ref());
    let others = on_pvcs.filter(|on| on.set.as_ref() == Some(set) && on.data.as_deref() != Some(pvc));
    let there = u32::try_from(others.count()).unwrap();
    let mut sets = kube.declaration.storage.sets.iter().filter(|declared| declared.name == *set);
    sets.any(|set| set.count.is_some_and(|count| there < count))
}

fn observed(world: &World) -> Observation {
    world.observe(|_| Questions::default())
}

fn is_selected(world: &World, node: &NodeName) -> bool {
    let storage = &world.kube.declaration.storage;
    storage.selection.all == Some(true) && provision::nodes(&observed(world), false).chosen.contains(node)
}

/// Returns the condition under which nothing is started on a node, or this OSD is not restarted.
fn in_the_way(state: &State, node: &NodeName, osd: Option<OsdId>) -> Option<&'static str> {
    let (kube, ceph) = (&state.world.kube, &state.world.ceph);
    let runs = kube.running_operator().is_some();
    let prepares = kube.rook_prepares.iter().any(|job| job.node.as_ref().is_none_or(|of| of == node));
    let node = kube.nodes.get(node);
    let concerns = |one: &Ambiguity| osd.is_none_or(|osd| one.concerns(osd));
    let why = [
        (runs, "Rook's operator runs"),
        (
            kube.fence.is_some() && kube.fence != state.ledger.run.fence,
            "another client has fenced the CephCluster",
        ),
        (prepares, "Rook prepares OSDs on its node"),
        (kube.draining_failure_domain.is_some(), "Rook lets a domain be drained"),
        (ceph.releases != Releases::One, "an upgrade is in progress"),
        (kube.declaration.external, "the CephCluster is external"),
        (kube.declaration.removes_out_osds, "Rook may remove OSDs that are out"),
        (node.is_none_or(|node| !node.ready), "its node is not Ready"),
        (node.is_some_and(|node| node.cordoned), "its node is cordoned"),
        (ceph.health.contains("MON_DOWN"), "a mon is down"),
        (kube.ambiguities.iter().any(concerns), "Deployments are ambiguous"),
        (kube.control.is_some(), "a person paused or cancelled"),
        (!(kube.declaration.confirmed || state.by_flag), "the owner has not confirmed"),
    ];
    why.iter().find(|(passes, _)| *passes).map(|(_, why)| *why)
}

/// Checks that no disk is in two records.
pub(super) fn recorded_twice(after: &State) -> Option<Broken> {
    let goes_to_one = |record: &&Record| record.is_new() || record.is_in_directory();
    let mut of_new = after.ledger.records.values().filter(goes_to_one);
    let device = |record: &Record| record.device().cloned();
    let is_same = |record: &Record, other: &Record| {
        let (Some(device), Some(found)) = (device(record), device(other)) else { return false };
        record.id != other.id && found.is_same_as(&device)
    };
    let twice = of_new.find_map(|record| {
        let other = after.ledger.records.values().find(|other| is_same(record, other))?;
        Some(format!("P3: the disk of {} is recorded for {} too", record.osd, other.osd))
    });
    twice.or_else(|| {
        let served = after.ledger.records.values().filter(goes_to_one).find(|record| {
            let disk = after.world.disks.values().find(|disk| is_of(record, disk));
            let fsid = disk.and_then(|disk| fsid_on(&disk.content));
            let is_ours = |issued: &std::collections::BTreeSet<OsdFsid>| {
                fsid.is_some_and(|fsid| issued.contains(&fsid))
            };
            let of_another =
                after.world.issued.iter().any(|((_, id), issued)| *id != record.id && is_ours(issued));
            of_another && after.world.ceph.slots.values().any(|slot| slot.up && slot.fsid == fsid)
        });
        served.map(|record| format!("P3: the recorded disk of {} is an OSD of osd-migrate", record.osd))
    })
}

fn is_of(record: &Record, disk: &Disk) -> bool {
    record.node == disk.node && record.device().is_some_and(|device| device.is_same_as(&disk.identity))
}

/// Checks the end of a run, whatever went wrong: no id is left without a record, and no usable disk is left.
pub(crate) fn at_the_end(state: &State, policy: &Policy) -> Option<Broken> {
    let (world, ledger) = (&state.world, &state.ledger);
    let ours = |osd: &OsdId, fsid: Option<OsdFsid>| {
        let mut issued = world.issued.iter().filter(|((of, _), _)| of == osd);
        fsid.map_or_else(
            || issued.next().is_some(),
            |_| world.issued.values().any(|all| fsid.is_some_and(|f| all.contains(&f))),
        )
    };
    let leaked = world.ceph.slots.iter().find(|(osd, slot)| {
        slot.state != SlotState::Exists && !ledger.records.contains_key(osd) && ours(osd, slot.fsid)
    });
    if let Some((osd, slot)) = leaked {
        return Some(format!("the id {osd} leaks: {:?}, but has no record", slot.state));
    }
    if let Some(job) = world.kube.inventories.keys().next() {
        return Some(format!("P9: the inventory Job {job} is left behind"));
    }
    if !policy.makes_new() || !policy.is_confirmed(&world.kube.declaration) {
        return None;
    }
    let is_available = |disk: &Disk| {
        let is_ours = |content: &Content| matches!(content, Content::Tombstone { cluster, .. } if *cluster == world.ceph.fsid);
        // A former OSD on another disk of the node explains nothing.
        let explains = |problem: &String| !problem.contains(" carries the former OSD ");
        let is_reported = ledger.nodes.get(&disk.node).is_some_and(|work| work.problems.iter().any(explains));
        (disk.content == Content::Blank || is_ours(&disk.content))
            && is_selected(world, &disk.node)
            && !is_reported
    };
    let available = world
        .disks
        .iter()
        .find(|(_, disk)| is_available(disk) && !ledger.records.values().any(|r| is_of(r, disk)));
    if let Some((name, _)) = available {
        return Some(format!("{name} is available and selected, but is not an OSD"));
    }
    let lacking = world.kube.daemons.iter().find(|(osd, daemon)| {
        let node_object = daemon.node.as_ref().and_then(|node| world.kube.nodes.get(node));
        let add =
            node_object.map(|node_object| provision::missing_tolerations(&daemon.tolerations, node_object));
        add.is_some_and(|add| !add.is_empty()) && !ledger.records.contains_key(osd)
    });
    lacking.map(|(osd, _)| format!("{osd} would not start for a taint of its node"))
}

/// Checks the end of a run without faults: every OSD is up and in its place, all data is complete, none is
/// quarantined.
pub(super) fn undisturbed(state: &State) -> Option<Broken> {
    let (world, ledger) = (&state.world, &state.ledger);
    if let Some(record) = ledger.quarantined().next() {
        return Some(format!("nothing went wrong, but {} was quarantined", record.osd));
    }
    for (osd, slot) in &world.ceph.slots {
        let disk = slot.fsid.and_then(|fsid| world.disk_of(fsid)).map(|(_, disk)| disk);
        let at_home = disk.is_some_and(|disk| domain_of(world, *osd).as_ref() == Some(&disk.node.0));
        if !(slot.up && slot.is_in && at_home) {
            return Some(format!("nothing went wrong, and {osd} is not up, in and in its place: {slot:?}"));
        }
    }
    let issued = world.issued.values().flatten();
    let served = |fsid: &&OsdFsid| world.ceph.slots.values().any(|slot| slot.fsid == Some(**fsid));
    if let Some(fsid) = issued.clone().find(|fsid| !served(fsid)) {
        return Some(format!("nothing went wrong, but {fsid} was issued and no slot has it"));
    }
    let short = world.placements.iter().find(|(id, placement)| {
        let whole = u64::from(world.ceph.pools[&placement.pool].size).min(hosts(world));
        (world.complete_set(id).len() as u64) < whole
    });
    short.map(|(id, _)| format!("nothing went wrong, and PG {id} lacks a replica"))
}

/// Returns the number of hosts that have OSDs.
fn hosts(world: &World) -> u64 {
    let hosts = world.ceph.slots.keys().filter_map(|osd| domain_of(world, *osd));
    hosts.collect::<std::collections::BTreeSet<_>>().len() as u64
}
