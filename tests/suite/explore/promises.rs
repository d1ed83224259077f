//! The promises as predicates over the world, asked of the truth and not of what the runner saw.

use std::collections::BTreeSet;

use osd_migrate::domain::act::Act;
use osd_migrate::domain::classify::{self, Class};
use osd_migrate::domain::inspection::{Content, NodeTask};
use osd_migrate::domain::ledger::Record;
use osd_migrate::domain::next::Next;
use osd_migrate::domain::observation::{JobState, SlotState};
use osd_migrate::domain::osd::{OsdFsid, OsdId};
use osd_migrate::domain::plan::Questions;
use osd_migrate::domain::policy::Policy;
use osd_migrate::sim::{Effect, World, fsid_on};

use super::state::{Done, State};

/// A broken promise, in words.
pub(crate) type Broken = String;

/// What must hold in every step, from `before` to `after`; `next` is what a runner did in it, if it was one's step.
pub(crate) fn always(before: &State, next: Option<&Next>, done: &Done, after: &State) -> Option<Broken> {
    if let Some(Next::Do(Act::Destroy { osd, fsid: meant, .. })) = next
        && let Some(Effect::Destroyed(_, fsid)) = done.effects.first()
        && fsid != meant
    {
        return Some(format!("P6: {osd} was destroyed with {fsid} in its slot, {meant} was meant"));
    }
    let by_effect = done.effects.iter().find_map(|effect| answer_for(before, effect, after));
    let by_save = next.filter(|_| done.saved).and_then(|_| record_kept(before, after));
    let by_agent = next.and_then(|next| agent_allowed(before, next, done));
    by_effect.or(by_save).or(by_agent).or_else(|| data_is_there(before, after))
}

/// Copies, or shards, without which data is lost.
fn needed(world: &World, pool: u64) -> usize {
    world.ceph.pools[&pool].data_chunks.unwrap_or(1) as usize
}

/// P1, P2: whoever loses a copy leaves all that is needed, and one more.
fn others_suffice(world: &World, osd: OsdId, what: &str) -> Option<Broken> {
    world.placements.iter().filter(|(_, placement)| placement.home.contains(&osd)).find_map(|(id, placement)| {
        let others = world.complete_set(id).iter().filter(|other| **other != osd).count();
        let wanted = needed(world, placement.pool) + 1;
        (others < wanted).then(|| {
            format!("P2: {what} of {osd} while PG {id} has {others} complete copies elsewhere, {wanted} are needed")
        })
    })
}

fn answer_for(before: &State, effect: &Effect, after: &State) -> Option<Broken> {
    let world = &before.world;
    match effect {
        Effect::Stopped(osd) => stopped(before, *osd, after),
        Effect::Destroyed(osd, fsid) => destroyed(before, *osd, *fsid),
        Effect::Wiped { disk, was, osd, .. } => wiped(before, disk, was, *osd),
        Effect::Purged(osd) => {
            let is_ours = before.ledger.records.contains_key(osd);
            is_ours.then(|| format!("P4: the id of {osd} was purged, and with it its place"))
        }
        Effect::Claimed(osd, fsid) => {
            let is_written = after.world.claims.values().any(|claims| claims.contains(fsid));
            let known = is_written
                || before.ledger.records.values().any(|r| r.claims.contains(fsid) || r.new == Some(*fsid));
            let is_ours = before.ledger.records.contains_key(osd);
            if !known {
                return Some(format!("P5: {osd} was claimed for {fsid}, and nobody would know whose it is"));
            }
            (!is_ours && !world.ceph.slots.contains_key(osd))
                .then(|| format!("P4: a new id, {osd}, was made"))
        }
        Effect::Deployed(osd, fsid) => {
            let record = before.ledger.records.get(osd);
            let saved = record.and_then(|record| record.new) == Some(*fsid);
            (!saved).then(|| format!("P5: {osd} was deployed with {fsid}, which is not in the ledger"))
        }
        Effect::Fence => {
            let fence = after.world.kube.fence.as_ref();
            let was = world.kube.fence.as_ref();
            if was.is_some() && was.map(String::as_str) == Some("theirs") {
                return Some("P6: somebody else's fence was taken off or written over".to_owned());
            }
            let recorded = fence.is_none() || fence == before.ledger.run.fence.as_ref();
            (!recorded).then(|| "P9: a fence was put up that the ledger does not know".to_owned())
        }
        Effect::AgentMade(_) | Effect::Small(_) | Effect::Restarted(_) => None,
    }
}

fn domain_of(world: &World, osd: OsdId) -> Option<String> {
    world.ceph.slots.get(&osd)?.crush.as_ref()?.location.get("host").cloned()
}

/// OSDs that are down for us, or will be: their Deployments stopped, or their slots given up and not served again.
fn down_by_us(state: &State) -> BTreeSet<OsdId> {
    let world = &state.world;
    let stopped =
        world.kube.daemons.iter().filter(|(_, daemon)| daemon.stopped_by.is_some()).map(|(osd, _)| *osd);
    let open = state.ledger.records.values().filter(|record| {
        let slot = world.ceph.slots.get(&record.osd);
        slot.is_none_or(|slot| !slot.up && slot.fsid != Some(record.old))
    });
    stopped.chain(open.map(|record| record.osd)).collect()
}

fn stopped(before: &State, osd: OsdId, after: &State) -> Option<Broken> {
    let world = &before.world;
    let domains: BTreeSet<_> =
        down_by_us(after).into_iter().filter_map(|osd| domain_of(&after.world, osd)).collect();
    if domains.len() > 1 {
        return Some(format!("P1: OSDs are down because of us in {domains:?}"));
    }
    if !world.ceph.slots.get(&osd).is_some_and(|slot| slot.up) {
        return Some(format!("P6: {osd} was stopped, which was down already: somebody else is at it"));
    }
    let Some(record) = before.ledger.records.get(&osd) else {
        return Some(format!("P5: {osd} was stopped without a record"));
    };
    if world.ceph.slots[&osd].fsid != Some(record.old) {
        return Some(format!("P6: {osd} was stopped, which is not the OSD of the record any more"));
    }
    if let Some(lacks) = incomplete(record, before) {
        return Some(format!("P5: {osd} was stopped before {lacks}"));
    }
    if !matches!(class(world, osd), Class::Legacy(_)) {
        return Some(format!("{osd} was stopped, which is as wanted"));
    }
    surroundings(before, "stop", osd)
        .or_else(|| others_suffice(world, osd, "stop"))
        .or_else(|| goes_on_serving(world, osd))
        .or_else(|| has_room(world, osd))
}

/// P2: what Ceph's `ok-to-stop` is about.
fn goes_on_serving(world: &World, osd: OsdId) -> Option<Broken> {
    world.placements.iter().filter(|(_, placement)| placement.home.contains(&osd)).find_map(
        |(id, placement)| {
            let others = world.complete_set(id).iter().filter(|other| **other != osd).count();
            let stops = (others as u64) < u64::from(world.ceph.pools[&placement.pool].min_size);
            stops.then(|| format!("P2: {osd} was stopped, and PG {id} stops serving"))
        },
    )
}

/// P7: the new OSD must hold what the old one held, below the nearfull line.
fn has_room(world: &World, osd: OsdId) -> Option<Broken> {
    let slot = world.ceph.slots.get(&osd)?;
    let (_, disk) = world.disk_of(slot.fsid?)?;
    let line = disk.identity.size_bytes / 10_000 * u64::from(world.ceph.nearfull_ratio);
    (slot.used_bytes? > line).then(|| format!("P7: {osd} was stopped, and the new one would be too full"))
}

fn class(world: &World, osd: OsdId) -> Class {
    let seen = world.look(|_| Questions::default());
    classify::class_of(osd, &seen.ceph.slots[&osd], &seen)
}

/// What a record must hold before the point of no return.
fn incomplete(record: &Record, state: &State) -> Option<&'static str> {
    let pgs: BTreeSet<_> = state
        .world
        .placements
        .iter()
        .filter(|(_, placement)| placement.home.contains(&record.osd))
        .map(|(id, _)| id.clone())
        .collect();
    let kept = state.world.kube.kept.get(&record.osd) == Some(&record.id);
    let slot = state.world.ceph.slots.get(&record.osd);
    let hushed = slot.is_some_and(|slot| slot.noout && slot.noin);
    let fenced = state.world.kube.fence.is_some() && state.world.kube.fence == state.ledger.run.fence;
    match &record.evidence {
        None => Some("its proof was saved"),
        Some(_) if record.pgs != pgs => Some("its PGs were saved"),
        Some(_) if record.stop_intended_at.is_none() => Some("the intent was saved"),
        Some(_) if !kept => Some("its Deployment was kept"),
        Some(_) if !hushed => Some("it was hushed"),
        Some(_) if !fenced && !state.thaws => Some("the CephCluster was fenced"),
        Some(_) => None,
    }
}

/// What nobody begins anything under (design section 5, gates).
///
/// A runner that was frozen right behind its looks asks again for the data alone: what is around it may have changed in that
/// hour, and endangers no copy.
fn surroundings(state: &State, what: &str, osd: OsdId) -> Option<Broken> {
    if state.thaws {
        return None;
    }
    let (kube, ceph) = (&state.world.kube, &state.world.ceph);
    let runs = kube.operator.as_ref().is_some_and(|operator| operator.replicas > 0 || operator.pods > 0);
    let fenced_by_others = kube.fence.is_some() && kube.fence != state.ledger.run.fence;
    let node = kube.daemons.get(&osd).and_then(|daemon| kube.nodes.get(daemon.node.as_ref()?));
    let stop = what == "stop";
    let why = [
        (runs, "Rook's operator runs"),
        (fenced_by_others, "somebody else fenced the CephCluster"),
        (!ceph.flags.is_empty(), "a flag of the cluster is set"),
        (!kube.rook_prepares.is_empty(), "Rook prepares OSDs"),
        (kube.draining_failure_domain.is_some(), "Rook lets a domain be drained"),
        (ceph.mixed_versions, "an upgrade goes on"),
        (ceph.health.contains("OSD_NEARFULL"), "Ceph is nearly full"),
        (kube.declaration.external, "the CephCluster is external"),
        (kube.declaration.removes_out_osds, "Rook may remove OSDs that are out"),
        (node.is_some_and(|node| !node.ready), "its node is not Ready"),
        (stop && ceph.health.contains("MON_DOWN"), "a mon is down"),
        (stop && !kube.oddities.is_empty(), "Deployments can't be told apart"),
        (stop && node.is_some_and(|node| node.cordoned), "its node is cordoned"),
        (stop && kube.order.is_some(), "a person paused or cancelled"),
        (stop && !kube.declaration.confirmed, "the owner has not confirmed"),
    ];
    why.iter().find(|(holds, _)| *holds).map(|(_, why)| format!("gate: {what} of {osd} while {why}"))
}

fn destroyed(before: &State, osd: OsdId, fsid: OsdFsid) -> Option<Broken> {
    let world = &before.world;
    if world.ceph.slots[&osd].up {
        return Some(format!("P6: {osd} was destroyed while it was up"));
    }
    let Some(record) = before.ledger.records.get(&osd) else {
        return Some(format!("P6: {osd} was destroyed without an open record"));
    };
    if record.new == Some(fsid) && world.ceph.slots[&osd].state == SlotState::Exists {
        return Some(format!("P6: {osd} was destroyed, which is the finished new OSD"));
    }
    if fsid != record.old {
        return None; // a claim that was not finished: nothing is on it
    }
    let daemon = world.kube.daemons.get(&osd);
    if daemon.is_some_and(|daemon| daemon.stopped_by.as_ref() != Some(&record.id)) {
        return Some(format!("P3: {osd} was destroyed, which was not stopped by us"));
    }
    if daemon.is_some_and(|daemon| daemon.replicas > 0) {
        return Some(format!("P3: {osd} was destroyed while somebody wants it up"));
    }
    if daemon.is_some_and(|daemon| !daemon.pods.is_empty()) {
        return Some(format!("P3: {osd} was destroyed while its pod was there"));
    }
    surroundings(before, "destroy", osd).or_else(|| others_suffice(world, osd, "destroy"))
}

/// What the runner must do nothing under when it begins with an OSD.
pub(crate) fn begun(before: &State, after: &State, policy: &Policy) -> Option<Broken> {
    if before.thaws {
        return None; // a record alone does nothing, and is withdrawn
    }
    let new = after.ledger.records.keys().find(|osd| !before.ledger.records.contains_key(osd))?;
    let quarantined = before.ledger.quarantined().count();
    let kube = &before.world.kube;
    let why = [
        (!policy.is_open_at(before.world.at), "outside of the window"),
        (!policy.is_confirmed(&kube.declaration), "without confirmation"),
        (kube.order.is_some(), "though a person paused or cancelled"),
        (quarantined > 1, "though more OSDs failed than the budget allows"),
    ];
    why.iter().find(|(holds, _)| *holds).map(|(_, why)| format!("P12: {new} was begun {why}"))
}

/// P3: what is wiped is what was recorded, its slot destroyed, nobody serving it.
fn wiped(before: &State, disk: &str, was: &Content, osd: OsdId) -> Option<Broken> {
    let world = &before.world;
    if world.is_run(&world.disks[disk]) {
        return Some(format!("P3: {disk} was wiped under a running daemon"));
    }
    let ours =
        |fsid: &OsdFsid| world.claims.iter().any(|((of, _), claims)| *of == osd && claims.contains(fsid));
    match was {
        Content::Tombstone { osd: of, .. } if *of == osd => None,
        Content::Bluestore { osd_fsid, .. } if ours(osd_fsid) => {
            let finished = matches!(was, Content::Bluestore { finished: true, .. });
            let served = world
                .ceph
                .slots
                .values()
                .any(|slot| slot.fsid == Some(*osd_fsid) && slot.state == SlotState::Exists);
            (finished && served).then(|| format!("P3: {disk} was wiped, which carries the finished new OSD"))
        }
        Content::Bluestore { .. } | Content::FilestorePartition { .. } => {
            let fsid = fsid_on(was);
            let recorded = before.ledger.records.get(&osd).map(|record| record.old);
            let original = fsid == Some(osd_migrate::sim::example::fsid(osd, 0));
            if !original || (recorded.is_some() && recorded != fsid) {
                return Some(format!(
                    "P3: {disk} was wiped, which carries something else than the OSD of the record: {was:?}"
                ));
            }
            let given_back = world.ceph.slots.values().any(|slot| slot.fsid == fsid);
            given_back.then(|| format!("P3: {disk} was wiped while a slot holds its OSD"))
        }
        Content::Blank if before.ledger.records.get(&osd).is_some_and(Record::is_new) => None,
        Content::Tombstone { .. } | Content::Blank | Content::Other { .. } | Content::NotFound { .. } => {
            Some(format!("P3: {disk} was wiped, which carries {was:?}"))
        }
    }
}

/// P2 for the wipe: asked when its agent is made, since a frozen agent can't know better. P5: its attempt is saved.
fn agent_allowed(before: &State, next: &Next, done: &Done) -> Option<Broken> {
    let Next::Do(Act::Agent { request, .. }) = next else { return None };
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
        return Some(format!("P5: an agent was made for {osd} whose attempt is not the saved one"));
    }
    let carries_old = before.world.disk_of(request.old).is_some();
    let at_work = before
        .world
        .kube
        .node_jobs
        .iter()
        .find(|job| job.record == request.record && job.state != JobState::Ended && !there);
    if let Some(job) = at_work.filter(|_| !before.thaws) {
        return Some(format!("two agents at once for {osd}: {} is still at work", job.name));
    }
    if request.task != NodeTask::Rebuild || !carries_old || there {
        return None;
    }
    surroundings(before, "wipe", osd).or_else(|| others_suffice(&before.world, osd, "wipe"))
}

/// No record is lost; what is closed is as it was before (P4), and nothing of ours is left (P9).
fn record_kept(before: &State, after: &State) -> Option<Broken> {
    for (osd, record) in &before.ledger.records {
        let Some(now) = after.ledger.records.get(osd) else {
            if !record.closing {
                return Some(format!("the record of {osd} was lost"));
            }
            return closed(record, before);
        };
        // What a frozen runner saw was true; what came since shows in the cluster, and no act follows from it.
        if now.closing && !record.closing && record.new.is_some() && !before.thaws {
            let broken = called_done(record, before);
            if broken.is_some() {
                return broken;
            }
        }
        if now.id != record.id {
            return Some(format!("the record of {osd} was written over by another"));
        }
        if record.evidence.is_some() && now.evidence.is_none()
            || record.stop_intended_at.is_some() && now.stop_intended_at.is_none()
        {
            return Some(format!("the record of {osd} forgot what can't be seen again"));
        }
    }
    None
}

fn closed(record: &Record, state: &State) -> Option<Broken> {
    let osd = record.osd;
    let Some(slot) = state.world.ceph.slots.get(&osd) else {
        return record.new.is_some().then(|| format!("P4: {osd} is gone"));
    };
    if slot.noout || slot.noin {
        return Some(format!("P9: {osd} keeps a flag of ours"));
    }
    if record.new.is_none() && record.is_new() {
        return None; // given up before anything was done
    }
    if record.new.is_none() {
        let whole = slot.fsid == Some(record.old);
        return (!whole).then(|| format!("the record of {osd} was closed, and it is not what it was"));
    }
    // Out when it was recorded, or out now: somebody else decides on its reweight.
    let meddled = !slot.is_in || record.reweight.0 == 0;
    if record.is_new() {
        let placed = slot.crush.as_ref().map(|item| &item.location) == Some(&record.crush.location);
        return (!placed).then(|| format!("the new {osd} is not where it belongs: {:?}", slot.crush));
    }
    if slot.crush.as_ref() != Some(&record.crush) {
        return Some(format!("P4: the place of {osd} is {:?}, it was {:?}", slot.crush, record.crush));
    }
    if slot.primary_affinity != record.primary_affinity || (slot.reweight != record.reweight && !meddled) {
        return Some(format!("P4: the reweight of {osd} is {}, it was {}", slot.reweight, record.reweight));
    }
    if state.world.marked_new.contains(&osd) {
        return Some(format!("P4: {osd} is still marked new: its next boot resets its reweight"));
    }
    None
}

/// P10: an OSD is called done when the cluster shows it.
fn called_done(record: &Record, state: &State) -> Option<Broken> {
    let osd = record.osd;
    let Some(slot) = state.world.ceph.slots.get(&osd) else {
        return Some(format!("P10: {osd} was called done, and is gone"));
    };
    let whole = state
        .world
        .placements
        .keys()
        .all(|pg| !state.world.up_set(pg).contains(&osd) || state.world.complete_set(pg).contains(&osd));
    if !slot.up || !whole {
        return Some(format!("P10: {osd} was called done before it had its data"));
    }
    (class(&state.world, osd) != Class::Conforming)
        .then(|| format!("P10: {osd} was called done, and is not as wanted"))
}

/// Whatever happens: no data is gone that was there, but by what others did to disks.
fn data_is_there(before: &State, after: &State) -> Option<Broken> {
    after.world.placements.iter().find_map(|(id, placement)| {
        let least = needed(&after.world, placement.pool);
        let lost = placement.complete.len() < least && before.world.placements[id].complete.len() >= least;
        lost.then(|| format!("data of PG {id} is lost"))
    })
}

/// At the end of a run nothing of ours is left that nobody remembers.
pub(crate) fn at_the_end(state: &State, faults: bool) -> Option<Broken> {
    let (kube, ledger) = (&state.world.kube, &state.ledger);
    let known = |id: &osd_migrate::domain::inspection::RecordId| {
        ledger.records.values().any(|record| record.id == *id)
    };
    if let Some(osd) = state.flags_set().into_iter().find(|osd| !ledger.records.contains_key(osd)) {
        return Some(format!("P9: {osd} stays hushed"));
    }
    if kube.fence.is_some() && kube.fence.as_deref() != Some("theirs") && ledger.run.fence.is_none() {
        return Some("P9: the CephCluster stays fenced".to_owned());
    }
    let left =
        kube.kept.values().chain(kube.node_jobs.iter().map(|job| &job.record)).chain(kube.leftovers.keys());
    if let Some(id) = left.into_iter().find(|id| !known(id)) {
        return Some(format!("something of the closed record {id} is left behind"));
    }
    let marked =
        kube.daemons.iter().find(|(_, daemon)| daemon.stopped_by.as_ref().is_some_and(|id| !known(id)));
    if let Some((osd, _)) = marked {
        return Some(format!("{osd} stays stopped by us, and nobody knows"));
    }
    let calm = |record: &&Record| {
        let slot = state.world.ceph.slots.get(&record.osd);
        slot.is_none_or(|slot| !slot.noout) || record.former_flags.0
    };
    if let Some(record) = ledger.quarantined().find(|record| !calm(record)) {
        return Some(format!("P9: {} was left alone with noout: Ceph can't heal", record.osd));
    }
    if faults {
        return None;
    }
    let seen = state.world.look(|_| Questions::default());
    let not_done = classify::classify(&seen).into_iter().find(|(_, class)| *class != Class::Conforming);
    not_done.map(|(osd, class)| format!("nothing went wrong, and {osd} is left: {class}"))
}
