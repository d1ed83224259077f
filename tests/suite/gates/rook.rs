//! Rook closes the gates: its operator, its fence, its Jobs and its declaration.

use chrono::TimeDelta;

use osd_migrate::domain::gate::{self, Gate, Own, Reason};
use osd_migrate::domain::ledger::{Run, ScaledOperator};
use osd_migrate::domain::observation::{Operator, Releases};
use osd_migrate::domain::osd::{Mode, NodeName, OsdId};
use osd_migrate::domain::policy::Accepted;
use osd_migrate::domain::storage::{DeviceConfig, StorageNode};

use super::ask::{OURS, after, before, changed, health};
use crate::support::build::{BY_HAND, FILESTORE, OPERATOR, World, node_of, prepare};
use crate::support::check;

#[test]
fn rook_image_as_declared_or_unknown_shuts_no_gate() {
    let taken_up =
        World::new().with(|w| w.seen.kube.rook_image = Some(w.seen.kube.declaration.image.clone()));
    for world in [World::new(), taken_up] {
        assert_eq!(before(&world), Gate::Open);
    }
}

/// Checks a node that is lost: Rook names its domain as long as PGs are unclean.
#[test]
fn domain_whose_osds_are_all_down_and_out_is_not_drained() {
    let drained = |states: [(bool, bool); 2]| {
        let mut world = World::new();
        world.seen.kube.draining_failure_domain = Some("h3".to_owned());
        for (osd, (up, is_in)) in [4, 5].map(OsdId).into_iter().zip(states) {
            (world.slot(osd).up, world.slot(osd).is_in) = (up, is_in);
        }
        matches!(before(&world), Gate::Shut(Reason::Draining { .. }))
    };
    assert!(drained([(true, true), (false, false)]) && drained([(false, true), (false, false)]));
    assert!(!drained([(false, false), (false, false)]));
}

#[test]
fn rook_drain_upgrade_nearfull_or_lost_node_blocks_both_gates() {
    type Case = (fn(&mut World), fn(&Gate) -> bool);
    let cases: [Case; 16] = [
        (|w| w.seen.kube.declaration.external = true, |g| *g == Gate::Shut(Reason::External)),
        (
            |w| w.seen.kube.declaration.removes_out_osds = true,
            |g| *g == Gate::Shut(Reason::RookRemovesOutOsds),
        ),
        (
            |w| operator(w, 1, 1),
            |g| matches!(g, Gate::Shut(Reason::OperatorRuns { name, .. }) if name.contains("operator")),
        ),
        (
            |w| {
                (w.seen.kube.operator, w.seen.kube.rook_checked) =
                    (None, Some(w.seen.at - TimeDelta::seconds(179)));
            },
            |g| matches!(g, Gate::Shut(Reason::OperatorNotFound { .. })),
        ),
        (|w| operator(w, 0, 1), |g| matches!(g, Gate::Shut(Reason::OperatorRuns { ends: true, .. }))),
        (|w| operator(w, 1, 0), |g| matches!(g, Gate::Shut(Reason::OperatorRuns { ends: false, .. }))),
        (
            |w| w.seen.kube.fence = Some("other".to_owned()),
            |g| matches!(g, Gate::Shut(Reason::FencedExternally { value }) if value == "other"),
        ),
        (
            |w| w.seen.kube.fence = Some(String::new()),
            |g| matches!(g, Gate::Shut(Reason::FencedExternally { value }) if value.is_empty()),
        ),
        (
            |w| w.seen.kube.rook_prepares.push(prepare(Some(&node_of(BY_HAND)))),
            |g| matches!(g, Gate::Shut(Reason::RookPrepares { node: Some(node), .. }) if *node == node_of(BY_HAND)),
        ),
        (
            |w| w.seen.kube.rook_prepares.push(prepare(None)),
            |g| matches!(g, Gate::Shut(Reason::RookPrepares { node: None, .. })),
        ),
        (
            |w| w.seen.kube.draining_failure_domain = Some("h3".to_owned()),
            |g| matches!(g, Gate::Shut(Reason::Draining { domain }) if domain == "h3"),
        ),
        (|w| w.seen.ceph.releases = Releases::Several, |g| *g == Gate::Shut(Reason::Upgrading)),
        (
            |w| w.seen.kube.rook_image = Some("ceph:before".to_owned()),
            |g| matches!(g, Gate::Shut(Reason::ImageChanged { known, .. }) if known == "ceph:before"),
        ),
        (
            |w| health(w, "OSD_NEARFULL"),
            |g| matches!(g, Gate::Shut(Reason::Full { code }) if code == "OSD_NEARFULL"),
        ),
        (
            |w| w.seen.kube.nodes.get_mut(&node_of(BY_HAND)).unwrap().ready = false,
            |g| matches!(g, Gate::Unknown(Reason::NodeNotReady { .. })),
        ),
        (
            |w| drop(w.seen.kube.nodes.remove(&node_of(BY_HAND))),
            |g| matches!(g, Gate::Unknown(Reason::NodeNotReady { .. })),
        ),
    ];
    for (number, (change, is_expected)) in cases.into_iter().enumerate() {
        for (name, gate) in [
            ("before", before(&World::new().with(change))),
            ("after", after(&World::stopped(BY_HAND).with(change))),
        ] {
            assert!(is_expected(&gate), "case {number} {name}: {gate:?}");
        }
    }
}

/// Returns the gates of all acts on osd.0 and its node that are shut because Rook prepares OSDs.
fn shut_by_rooks_job(node: Option<&NodeName>) -> Vec<&'static str> {
    let world = |world: World| world.with(|w| w.seen.kube.rook_prepares.push(prepare(node)));
    let (w, stopped) = (world(World::new()), world(World::stopped(BY_HAND)));
    let (osd, its_node, accepted) = (BY_HAND, node_of(BY_HAND), Accepted::default());
    let (run, own) = (Run::default(), Own::of(&accepted, &w.seen));
    let gates = [
        ("stop", before(&w)),
        ("destroy", after(&stopped)),
        ("mark out", gate::before_mark_out(osd, &its_node, &run, &accepted, &w.seen)),
        ("drop weight", gate::before_drop_weight(osd, &its_node, &run, &accepted, &w.seen)),
        ("last stop", gate::before_last_stop(osd, &its_node, &run, &accepted, &w.seen)),
        ("last wipe", gate::before_last_wipe(osd, &its_node, &run, &w.seen)),
        ("restart", gate::before_restart(osd, &its_node, &run, &w.seen)),
        ("new", gate::before_new(&its_node, &run, &w.seen)),
        ("adopt", gate::before_adopt(&its_node, &run, &w.seen)),
        ("next", gate::first_of([gate::around_any_stop(&run, &w.seen), own.gate(osd, &its_node)])),
        ("removal", gate::first_of([gate::around_any_stop(&run, &w.seen), own.gate_of_removal(osd)])),
    ];
    let is_shut = |gate: &Gate| matches!(gate, Gate::Shut(Reason::RookPrepares { .. }));
    gates.into_iter().filter(|(_, gate)| is_shut(gate)).map(|(name, _)| name).collect()
}

#[test]
fn prepare_job_of_rook_blocks_all_acts_on_its_node_only() {
    assert_eq!(shut_by_rooks_job(Some(&node_of(BY_HAND))).len(), 11);
    assert_eq!(shut_by_rooks_job(None).len(), 11, "a node that is not known");
    assert_ne!(node_of(FILESTORE), node_of(BY_HAND));
    assert_eq!(shut_by_rooks_job(Some(&node_of(FILESTORE))), Vec::<&str>::new());
}

#[test]
fn removal_of_an_osd_without_a_known_node_waits_for_any_prepare_job() {
    let world = World::new().with(|w| {
        w.seen.kube.rook_prepares.push(prepare(Some(&node_of(FILESTORE))));
        w.seen.kube.daemons.get_mut(&BY_HAND).unwrap().node = None;
    });
    let gate = Own::of(&Accepted::default(), &world.seen).gate_of_removal(BY_HAND);
    assert!(matches!(gate, Gate::Shut(Reason::RookPrepares { .. })), "{gate:?}");
}

fn operator(w: &mut World, replicas: u32, pods: u32) {
    let operator = w.seen.kube.operator.take().unwrap();
    w.seen.kube.operator = Some(Operator { replicas, pods, ..operator });
}

fn honouring_operator(w: &mut World) {
    operator(w, 1, 1);
    w.seen.kube.operator.as_mut().unwrap().honours_fence = true;
}

#[test]
fn fenceable_operator_shuts_only_the_gates_of_unfenced_acts() {
    let auxiliary = |mut w: World| {
        honouring_operator(&mut w);
        w
    };
    assert_eq!(before(&auxiliary(World::new())), Gate::Open);
    assert_eq!(after(&auxiliary(World::stopped(BY_HAND))), Gate::Open);
    let w = auxiliary(World::new());
    for gate in [
        gate::before_new(&node_of(BY_HAND), &Run::default(), &w.seen),
        gate::before_adopt(&node_of(BY_HAND), &Run::default(), &w.seen),
        gate::before_restart(BY_HAND, &node_of(BY_HAND), &Run::default(), &w.seen),
    ] {
        // A run scales the operator only for OSDs that are migrated or removed.
        let Gate::Shut(reason @ Reason::OperatorRuns { .. }) = gate else { panic!("{gate:?}") };
        assert!(!reason.to_string().contains("--scale-operator"), "{reason}");
    }
}

#[test]
fn own_fence_missing_operator_or_other_node_shuts_no_gate() {
    let none = |w: &mut World| (w.seen.kube.operator, w.seen.kube.rook_checked) = (None, None);
    assert_eq!(changed(none), Gate::Open, "no operator at all");
    assert_eq!(changed(|w| w.seen.kube.fence = Some(OURS.to_owned())), Gate::Open, "our own fence");
    let other_node = NodeName("h2".to_owned());
    assert_eq!(
        changed(|w| w.seen.kube.nodes.get_mut(&other_node).unwrap().ready = false),
        Gate::Open,
        "another node's trouble shows in its PGs"
    );
    check!(
        gate::before_stop(
            BY_HAND,
            &node_of(BY_HAND),
            &Run::default(),
            &Accepted::default(),
            &World::new().with(|w| w.seen.kube.fence = Some(OURS.to_owned())).seen
        ),
        Gate::Shut(Reason::FencedExternally { .. })
    );
}

#[test]
fn plain_lvm_osd_of_an_encrypted_node_is_kept_from_rook() {
    let reshaped = |change: &dyn Fn(&mut World)| {
        let world = World::new().with(|w| {
            honouring_operator(w);
            w.seen.kube.operator.as_mut().unwrap().opens_lvm = true;
            w.seen.kube.declaration.storage.config.encrypted = Some(true);
            w.daemon(BY_HAND).mode = Some(Mode::Lvm);
            change(w);
        });
        let is_reshaped = gate::reshaped_by_rook(&world.seen).contains(&BY_HAND);
        assert!(!is_reshaped || gate::needs_lasting_fence(&world.seen));
        is_reshaped
    };
    assert!(reshaped(&|_| {}));
    assert!(!reshaped(&|w| w.slot(BY_HAND).dmcrypt_key = true), "it is encrypted");
    assert!(!reshaped(&|w| w.daemon(BY_HAND).mode = Some(Mode::Raw)));
    assert!(!reshaped(&|w| w.seen.kube.declaration.storage.config.encrypted = None));
    assert!(!reshaped(&|w| w.seen.kube.operator.as_mut().unwrap().opens_lvm = false), "before 1.20");
    // With ROOK_CUSTOM_HOSTNAME_LABEL, an entry that names no node may mean any node that none names.
    let of_entry = |w: &mut World, encrypted: bool| {
        let config = DeviceConfig { encrypted: Some(encrypted), ..DeviceConfig::default() };
        let entry = StorageNode { name: "stor1".to_owned(), config, ..StorageNode::default() };
        let storage = &mut w.seen.kube.declaration.storage;
        (storage.all_nodes, storage.nodes, storage.config) = (false, vec![entry], DeviceConfig::default());
        let labels = &mut w.seen.kube.nodes.get_mut(&node_of(BY_HAND)).unwrap().labels;
        labels.insert("example.com/host".to_owned(), "stor1".to_owned());
    };
    assert!(reshaped(&|w| of_entry(w, true)));
    assert!(!reshaped(&|w| of_entry(w, false)));
}

#[test]
fn operator_not_found_is_away_after_three_silent_minutes() {
    let open = |silent: i64| {
        changed(|w| {
            w.seen.kube.operator = None;
            w.seen.kube.rook_checked = Some(w.seen.at - TimeDelta::seconds(silent));
        }) == Gate::Open
    };
    assert!(!open(0) && !open(179) && open(180));
}

#[test]
fn operator_at_0_is_away_only_if_no_other_one_is_at_work() {
    // The ledger names the operator that the run scaled.
    let scaled = |uid: &str| {
        let (name, uid) = (OPERATOR.to_owned(), Some(uid.to_owned()));
        Some(ScaledOperator {
            name,
            replicas: 1,
            uid,
            generation: 5,
            since: None,
            job: None,
            restoring: false,
        })
    };
    let open = |change: &dyn Fn(&mut World)| {
        changed(|w| {
            w.seen.kube.rook_checked = Some(w.seen.at - TimeDelta::seconds(179));
            change(w);
        }) == Gate::Open
    };
    assert!(!open(&|_| {}));
    assert!(open(&|w| w.seen.kube.rook_checked = Some(w.seen.at - TimeDelta::seconds(180))));
    let uid = World::new().seen.kube.operator.unwrap().uid;
    assert!(open(&|w| w.ledger.run.operator = scaled(&uid)));
    assert!(!open(&|w| w.ledger.run.operator = scaled("another")));
    // A person scales down the operator that was fenced.
    assert!(open(&|w| w.seen.kube.fence = Some(OURS.to_owned())));
}

#[test]
fn reason_that_needs_a_person_contains_the_command() {
    let text = |gate: Gate| match gate {
        Gate::Shut(reason) | Gate::Unknown(reason) => reason.to_string(),
        Gate::Open => panic!(),
    };
    let scale = text(changed(|w| operator(w, 1, 1)));
    assert!(
        scale.contains("kubectl -n rook-ceph scale deployment rook-ceph-operator --replicas=0"),
        "{scale}"
    );
    assert!(
        text(changed(|w| w.seen.kube.fence = Some("x".to_owned()))).contains("label cephcluster CEPHCLUSTER")
    );
    assert!(text(changed(|w| health(w, "OSD_FULL"))).contains("ceph health detail"));
    assert!(text(changed(|w| w.seen.ceph.releases = Releases::Several)).contains("ceph versions"));
}
