//! The removal of an old directory that takes hours, or does not end.

use chrono::TimeDelta;

use osd_migrate::domain::inspection::NodeTask;
use osd_migrate::domain::observation::{JobState, NodeJob};

use super::*;

const OSD: OsdId = OsdId(0);

/// Returns a run whose agent is removing the old directory, while the new OSD is up and has its data.
fn clearing() -> Run {
    let mut run = Run::of(example::in_directory());
    run.acts(
        |act| matches!(act, Act::Node(NodeAct::Agent { request, .. }) if request.task == NodeTask::Clear),
    );
    job(&mut run).state = JobState::Running;
    run
}

fn job(run: &mut Run) -> &mut NodeJob {
    let jobs = &mut run.world.kube.node_jobs;
    jobs.iter_mut().find(|job| job.task == NodeTask::Clear).unwrap()
}

/// Returns the next step after these hours.
fn after(mut run: Run, hours: i64, beats: bool) -> Next {
    run.world.at += TimeDelta::hours(hours);
    let heartbeat = beats.then_some(run.world.at);
    job(&mut run).heartbeat_at = heartbeat;
    run.next()
}

#[test]
fn directory_of_millions_of_files_is_removed_for_hours() {
    for hours in [1, 3, 20] {
        let next = after(clearing(), hours, true);
        assert!(matches!(next, Next::Wait(Wait::Agent { osd: OSD, .. })), "{next:?}");
    }
}

#[test]
fn silent_removal_of_a_directory_leaves_it_and_completes_its_osd() {
    let Next::Save { ledger, why: Saving::Uncleared { path, why, .. }, .. } = after(clearing(), 1, false)
    else {
        panic!("{:?}", after(clearing(), 1, false))
    };
    assert_eq!(path, "/var/lib/rook/osd0");
    assert!(why.contains("no heartbeat"), "{why}");
    let record = &ledger.records[&OSD];
    assert!(record.closing && record.quarantine.is_none());
    assert_eq!(ledger.nodes[&record.node].directories.get(&path), Some(&why));
    // The Job is deleted once, and the record closed, although the pod of the silent agent never ends.
    let mut run = clearing();
    run.world.at += TimeDelta::hours(1);
    run.ledger = ledger;
    let pod = job(&mut run).clone();
    run.acts(|act| matches!(act, Act::Kube(KubeAct::CleanUp { .. })));
    run.world.kube.node_jobs.push(pod);
    let next = run.next();
    assert!(matches!(next, Next::Save { why: Saving::Closed, .. }), "{next:?}");
    // A new OSD that went down meanwhile is not complete.
    let mut down = clearing();
    down.world.happen(&Happening::Dies(OSD));
    down.world.happen(&Happening::GoesDown(OSD));
    let next = after(down, 1, false);
    assert!(!matches!(next, Next::Save { why: Saving::Uncleared { .. }, .. }), "{next:?}");
}
