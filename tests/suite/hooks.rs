//! Decisions and messages of Helm's hooks.
//!
//! An upgrade is refused while legacy OSDs exist, an uninstall while records are open.

use osd_migrate::domain::act::{Act, KubeAct};
use osd_migrate::domain::classify::Refusal;
use osd_migrate::domain::ledger::{FastRecovery, NoScrub, Quarantine, ScaledOperator};
use osd_migrate::domain::next::{Next, Summary};
use osd_migrate::domain::osd::{Kind, NodeName, OsdId};
use osd_migrate::domain::preflight::{Preflight, preflight};
use osd_migrate::domain::recovery::{OpQueue, RecoveryOptions};
use osd_migrate::domain::scrub::ScrubFlags;
use osd_migrate::show;

use crate::support::build::{BY_HAND, FILESTORE, OPERATOR, World, encrypted, noon};
use crate::support::check;

/// A third OSD, which conforms.
const RAW: OsdId = OsdId(5);

fn of(world: &World) -> Preflight {
    preflight(&world.ledger, &world.seen)
}

fn legacy(world: &World) -> Vec<(OsdId, Kind)> {
    of(world).legacy.into_iter().map(|(osd, _, kind)| (osd, kind)).collect()
}

#[test]
fn preflight_refuses_an_upgrade_and_names_each_legacy_osd() {
    let world = World::new();
    let found = of(&world);
    assert!(!found.passes());
    assert_eq!(legacy(&world), [(BY_HAND, Kind::BluestoreByHand), (FILESTORE, Kind::FilestorePartition)]);
    let said = show::preflight(&found, "rook-ceph");
    for part in [
        "2 legacy OSDs",
        "  osd.0 on h1: ",
        "  osd.2 on h2: ",
        "kubectl -n rook-ceph create job --from=cronjob/osd-migrate",
        "--set preflight.enabled=false",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(said.lines().all(|line| line.chars().count() <= 120), "{said}");
}

#[test]
fn preflight_counts_externally_managed_legacy_osds() {
    let held = World::new().with(|w| w.daemon(BY_HAND).managed_externally = Some("replacement".to_owned()));
    assert!(legacy(&held).iter().any(|(osd, _)| *osd == BY_HAND));
}

#[test]
fn preflight_passes_if_osds_are_mismatched_but_not_legacy() {
    let world = World::new().with(|w| {
        w.seen.ceph.slots.retain(|osd, _| ![BY_HAND, FILESTORE].contains(osd));
        w.seen.kube.declaration.storage = encrypted();
    });
    assert!(of(&world).passes());
    assert!(show::preflight(&of(&world), "rook-ceph").contains("no legacy OSDs"));
}

#[test]
fn preflight_refuses_in_progress_and_quarantined_not_unknown() {
    let world = World::recorded(BY_HAND).with(|w| drop(w.seen.ceph.slots.remove(&FILESTORE)));
    assert_eq!((of(&world).in_flight, of(&world).legacy), (vec![BY_HAND], Vec::new()));
    assert!(!of(&world).passes());
    let said = show::preflight(&of(&world), "rook-ceph");
    assert!(said.contains("in progress: osd.0") && !said.contains("logs --follow"), "{said}");
    let failed = world.with(|w| {
        w.record(BY_HAND).quarantine = Some(Quarantine { why: "WHY".to_owned(), since: noon() });
    });
    assert_eq!((of(&failed).in_flight, of(&failed).quarantined), (Vec::new(), vec![BY_HAND]));
    assert!(!of(&failed).passes());
    assert!(show::preflight(&of(&failed), "rook-ceph").contains("quarantined after a failure: osd.0"));
    let down = World::new().with(|w| {
        w.seen.ceph.slots.retain(|osd, _| ![BY_HAND, FILESTORE].contains(osd));
        w.seen.kube.nodes.remove(&NodeName("h3".to_owned()));
    });
    assert!(of(&down).unknown.contains(&(RAW, Refusal::NoNode("h3".to_owned()))));
    assert!(of(&down).passes());
    assert!(show::preflight(&of(&down), "rook-ceph").contains("osd.5: its node h3 is not in the cluster"));
}

#[test]
fn uninstall_is_refused_while_a_record_is_in_progress() {
    assert_eq!(show::still_open(&World::new().ledger, "rook-ceph"), None);
    let open = show::still_open(&World::stopped(BY_HAND).ledger, "rook-ceph").unwrap();
    for part in ["in progress: osd.0", "osd-migrate -n rook-ceph cancel", "--no-hooks"] {
        assert!(open.contains(part), "{part}: {open}");
    }
}

#[test]
fn uninstall_without_a_cluster_names_what_is_not_restored() {
    let lines = |operator: Option<ScaledOperator>| {
        let world = World::new().with(|w| w.ledger.run.operator = operator);
        show::left_without_cluster(&world.ledger, "rook-ceph")
    };
    let was = ScaledOperator {
        name: OPERATOR.to_owned(),
        replicas: 2,
        uid: None,
        generation: 5,
        since: None,
        job: None,
        restoring: false,
    };
    assert!(
        lines(Some(was)).contains("kubectl -n rook-ceph scale deployment rook-ceph-operator --replicas=2")
    );
    assert!(lines(None).contains("poddisruptionbudget osd-migrate-drains") && !lines(None).contains("scale"));
}

#[test]
fn ledger_shows_if_an_uninstall_has_to_restore_anything() {
    assert!(!World::new().ledger.run.restores());
    let changes: [fn(&mut World); 5] = [
        |w| w.ledger.run.fence = Some("osd-migrate-x".to_owned()),
        |w| w.ledger.run.bootstrap = true,
        |w| w.ledger.run.scrub = Some(NoScrub { flags: ScrubFlags::BOTH, seen: true }),
        |w| {
            let options = RecoveryOptions::fast(OpQueue::Wpq);
            w.ledger.run.recovery = Some(FastRecovery { options, seen: true });
        },
        |w| {
            let (name, uid) = (OPERATOR.to_owned(), None);
            w.ledger.run.operator = Some(ScaledOperator {
                name,
                replicas: 2,
                uid,
                generation: 5,
                since: None,
                job: None,
                restoring: false,
            });
        },
    ];
    for change in changes {
        assert!(World::new().with(change).ledger.run.restores());
    }
}

#[test]
fn uninstall_starts_no_osd_withdraws_unstopped_and_unfences() {
    let leaves = |w: &mut World| w.policy.leaves = true;
    let fence = |w: &mut World| {
        w.ledger.run.fence = Some("osd-migrate-x".to_owned());
        w.seen.kube.fence = Some("osd-migrate-x".to_owned());
    };
    check!(World::new().plan(), Next::Save { .. });
    let cancelled = |summary: &Summary| summary.cancelled && summary.unconfirmed.is_empty();
    check!(World::new().with(leaves).plan(), Next::Finished(summary) if cancelled(summary));
    let fenced = World::new().with(leaves).with(fence);
    check!(fenced.plan(), Next::Do(Act::Kube(KubeAct::Unfence { value })) if value == "osd-migrate-x");
    let down = fenced.with(|w| w.seen.kube.fence = None).saved("unfenced");
    check!(down.plan(), Next::Finished(summary) if cancelled(summary));
    // An OSD that was recorded and not stopped is given up; an OSD that is stopped is finished.
    assert_eq!(World::proven(BY_HAND).with(leaves).plan(), World::proven(BY_HAND).with(withdrawn).plan());
    assert_eq!(World::stopped(BY_HAND).with(leaves).plan(), World::stopped(BY_HAND).plan());
}

fn withdrawn(world: &mut World) {
    world.seen.kube.control = Some(osd_migrate::domain::observation::Control {
        kind: osd_migrate::domain::observation::ControlKind::Cancel,
        since: None,
    });
}
