//! `nodown` and `noup` on one OSD, a CRUSH node or a device class shut the gates of the OSDs concerned.

use osd_migrate::domain::gate::{self, Gate, Own, Reason};
use osd_migrate::domain::ledger::Run;
use osd_migrate::domain::osd::OsdId;
use osd_migrate::domain::policy::Accepted;

use super::ask::{after, changed};
use crate::support::build::{BY_HAND, FILESTORE, World, node_of};
use crate::support::check;

type Change = fn(&mut World);

/// Flags of osd.0, each set on its host, as the adapter joins them.
const SET: [(&str, Change); 2] = [
    ("nodown", |w| w.slot(BY_HAND).nodown = Some("h1".to_owned())),
    ("noup", |w| w.slot(BY_HAND).noup = Some("h1".to_owned())),
];

/// Returns the sentence of a gate that is shut by a flag of a group.
fn why(gate: &Gate) -> String {
    let Gate::Shut(reason @ Reason::Flag { on: Some(_), .. }) = gate else { panic!("{gate:?}") };
    reason.to_string()
}

#[test]
fn nodown_or_noup_of_a_group_shuts_the_gates_of_its_osds() {
    for (flag, set) in SET {
        let unset = format!("ceph osd unset-group {flag} h1");
        let world = World::new().with(set);
        let seen = &world.seen;
        let own = Own::of(&Accepted::default(), seen);
        let accepted = Accepted::default();
        for gate in [
            changed(set),
            own.gate(BY_HAND, &node_of(BY_HAND)),
            own.gate_of_removal(BY_HAND),
            gate::before_restart(BY_HAND, &node_of(BY_HAND), &Run::default(), seen),
            gate::before_mark_out(BY_HAND, &node_of(BY_HAND), &Run::default(), &accepted, seen),
            gate::before_last_stop(BY_HAND, &node_of(BY_HAND), &Run::default(), &accepted, seen),
        ] {
            assert!(why(&gate).contains(&unset), "{gate:?}");
        }
        assert_eq!(own.gate(FILESTORE, &node_of(FILESTORE)), Gate::Open, "another host");
        let stopped = after(&World::stopped(BY_HAND).with(set));
        if flag == "nodown" {
            assert_eq!(stopped, Gate::Open, "it is down already");
        } else {
            assert!(why(&stopped).contains(&unset), "{stopped:?}");
        }
    }
}

#[test]
fn flag_of_a_dead_osd_holds_up_no_removal() {
    for (flag, set) in SET {
        let world = World::new().down(BY_HAND).reported().with(set);
        let gate = gate::before_last_stop(
            BY_HAND,
            &node_of(BY_HAND),
            &Run::default(),
            &Accepted::default(),
            &world.seen,
        );
        assert!(!matches!(gate, Gate::Shut(Reason::Flag { .. })), "{flag}: {gate:?}");
    }
}

#[test]
fn noup_of_a_host_shuts_the_gate_before_its_new_osds() {
    let (h1, h2) = (node_of(BY_HAND), node_of(FILESTORE));
    let before_new = |on: &str, node| {
        let mut world = World::new();
        world.slot(BY_HAND).noup = Some(on.to_owned());
        let gates =
            [gate::before_new(node, &Run::default(), &world.seen), gate::of_node_for_new(node, &world.seen)];
        gates.map(|gate| matches!(gate, Gate::Shut(Reason::Flag { .. })))
    };
    assert_eq!(before_new("h1", &h1), [true; 2]);
    assert_eq!(before_new("default", &h1), [true; 2], "the root of CRUSH");
    assert_eq!(before_new("h1", &h2), [false; 2], "another host");
    // No new OSD has the flag of another one; the device class of a new OSD is not known.
    for on in [OsdId(0).to_string(), "hdd".to_owned()] {
        assert_eq!(before_new(&on, &h1), [false; 2], "{on}");
    }
    check!(gate::before_new(&h1, &Run::default(), &World::new().seen), Gate::Open);
}
