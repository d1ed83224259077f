//! An OSD that its own state delays holds up new OSDs once in a run.

use osd_migrate::domain::removal::DiskAfter;

use super::*;

/// Returns the number of OSDs that are up each time that a run begins to wait for a blocked OSD.
fn up_at_each_wait(mut run: Run) -> Vec<usize> {
    let mut up = Vec::new();
    loop {
        let next =
            run.until(|next| matches!(next, Next::Save { why: Saving::Skipping, .. } | Next::Finished(_)));
        let Next::Save { ledger, .. } = next else { return up };
        up.push(run.world.ceph.slots.values().filter(|slot| slot.up).count());
        run.ledger = ledger;
    }
}

/// Adds two available disks to a host.
fn add_disks(run: &mut Run, host: &str) {
    run.world.kube.declaration.storage.all_nodes = true;
    run.world.kube.declaration.storage.selection.all = Some(true);
    for name in ["disk-new", "disk-later"] {
        run.world.add_disk(name, host, 6 << 30);
    }
}

#[test]
fn delayed_removal_is_waited_for_once_before_new_osds() {
    let mut run = Run::of(example::out_for(120));
    add_disks(&mut run, "h2");
    run.policy.removals = true;
    run.world.kube.nodes.get_mut(&NodeName("h1".to_owned())).unwrap().ready = false;
    run.world.request_removal(OsdId(0), DiskAfter::Leave);
    assert_eq!(up_at_each_wait(run), [3]);
}

#[test]
fn delayed_migration_is_waited_for_once_before_new_osds() {
    let mut run = Run::of(example::a_cordoned_node());
    add_disks(&mut run, "h4");
    assert_eq!(up_at_each_wait(run), [4]);
}
