//! Objects of closed records: what waits for their agents.

use osd_migrate::domain::inspection::RecordId;

use super::*;

/// Returns the world with an agent of a closed record.
fn misplaced(world: World, state: JobState) -> World {
    world.job(OSD, state).with(|w| {
        let job = w.seen.kube.node_jobs.last_mut().unwrap();
        (job.osd, job.record) = (OsdId(6), RecordId("closed".to_owned()));
    })
}

/// Checks the agent of a closed record, created by a runner that was frozen before it created the Job.
///
/// The record was closed meanwhile.
#[test]
fn agent_of_a_closed_record_never_holds_up_a_stopped_osd() {
    let early = misplaced(World::recorded(OSD), JobState::Running);
    check!(early.plan(), Next::Wait(Wait::Agent { osd: OsdId(6), .. }));
    // The agent's node may be gone: it blocks only its own OSD.
    let silent = early.minutes_later(10);
    assert_eq!(silent.plan(), World::recorded(OSD).minutes_later(10).plan());
    let of_a_candidate = |w: &mut World| {
        w.ledger.records.clear();
        w.policy.select.clear();
        w.seen.kube.node_jobs.last_mut().unwrap().osd = OSD;
    };
    check!(silent.with(of_a_candidate).plan(), Next::Save { osd: Some(FILESTORE), why: Saving::Record, .. });
    let waiting = misplaced(World::recorded(OSD), JobState::Waiting);
    check!(waiting.clone().minutes_later(9).plan(), Next::Wait(Wait::Agent { osd: OsdId(6), .. }));
    check!(waiting.minutes_later(10).plan(), Next::Do(Act::Node(NodeAct::DropAgent { .. })));
    let stopped = World::stopped(OSD);
    assert_eq!(misplaced(stopped.clone(), JobState::Running).plan(), stopped.plan());
    // An agent of the same OSD is waited for in any case.
    let own =
        misplaced(stopped, JobState::Running).with(|w| w.seen.kube.node_jobs.last_mut().unwrap().osd = OSD);
    check!(own.plan(), Next::Wait(Wait::Agent { osd: OSD, .. }));
}

#[test]
fn silent_agent_of_a_closed_record_keeps_only_its_own_objects() {
    let silent = misplaced(World::recorded(OSD), JobState::Running).minutes_later(10);
    let another = RecordId("another".to_owned());
    let left = silent.clone().with(|w| drop(w.seen.kube.backups.insert(FILESTORE, another)));
    check!(left.plan(), Next::Do(Act::Kube(KubeAct::CleanUp { osd: FILESTORE, .. })));
    // An agent that still talks is waited for, whichever is older.
    let two = silent.with(|w| {
        let mut job = w.seen.kube.node_jobs.last().unwrap().clone();
        (job.osd, job.name, job.heartbeat_at) = (FILESTORE, "second".to_owned(), Some(w.seen.at));
        w.seen.kube.node_jobs.push(job);
    });
    check!(two.plan(), Next::Wait(Wait::Agent { osd: FILESTORE, .. }));
}
