//! Upmaps that a purge removed.

use osd_migrate::domain::ledger::LostUpmaps;
use osd_migrate::domain::osd::Upmap;
use osd_migrate::domain::removal::DiskAfter;
use osd_migrate::domain::step::MAX_UPMAP_TRIES;
use osd_migrate::report::Event;

use super::removal::{proven, set_weight};
use super::up::{noin_lifted, unfenced};
use super::*;

/// Returns an upmap onto the OSD and one away from it, as recorded before a purge removed all.
fn upmaps() -> Vec<Upmap> {
    [("1.0", 3, 0), ("1.1", 0, 3)]
        .map(|(pg, from, to)| Upmap { pg: pg.parse().unwrap(), mappings: vec![(OsdId(from), OsdId(to))] })
        .into()
}

#[test]
fn upmap_loss_is_saved_before_the_crush_item_is_restored() {
    let world = World::destroyed(OSD).with(|w| {
        w.record(OSD).upmaps = upmaps();
        w.slot(OSD).crush = None;
    });
    let mut world = world.saved("upmaps-lost");
    assert!(world.record(OSD).lost_upmaps.is_some());
    check!(world.plan(), Next::Do(Act::Ceph(CephAct::RestoreCrush { osd: OSD, .. })));
}

/// Returns a world in which the OSD is up again, with its upmaps noted as lost.
fn without_upmaps() -> World {
    World::booted(OSD).with(|w| {
        w.record(OSD).upmaps = upmaps();
        w.record(OSD).lost_upmaps = Some(LostUpmaps::default());
        (w.slot(OSD).noout, w.slot(OSD).noin) = (false, false);
        (w.ledger.run.fence, w.seen.kube.fence) = (None, None);
    })
}

#[test]
fn lost_upmaps_are_restored_when_the_osd_is_up() {
    let fsid = issued_fsid(OSD, 1);
    let world = without_upmaps().saved("upmaps");
    check!(
        world.plan(),
        Next::Do(Act::Ceph(CephAct::RestoreUpmaps { osd: OSD, fsid: named, upmaps: sent })) if *named == fsid && *sent == upmaps()
    );
    // The upmaps are in the osdmap, and the statistics do not know it yet.
    let put = world.with(|w| w.seen.ceph.upmaps = upmaps());
    check!(put.plan(), Next::Wait(Wait::FreshView));
    let reported = put.with(|w| {
        w.pg(0).up.insert(OSD);
        w.pg(1).up.insert(OsdId(3));
    });
    let mut done = reported.saved("upmaps-done");
    assert_eq!(done.record(OSD).lost_upmaps, None);
    check!(done.plan(), Next::Wait(Wait::ActiveClean { .. }));
}

#[test]
fn external_upmap_stays_and_none_is_restored_without_a_purge() {
    let theirs = Upmap { pg: "1.0".parse().unwrap(), mappings: vec![(OsdId(3), OsdId(6))] };
    let world = without_upmaps().with(|w| w.seen.ceph.upmaps = vec![theirs]).saved("upmaps");
    check!(world.plan(), Next::Do(Act::Ceph(CephAct::RestoreUpmaps { upmaps: sent, .. })) if *sent == upmaps()[1..]);
    let without_purge = without_upmaps().with(|w| w.record(OSD).lost_upmaps = None);
    check!(without_purge.plan(), Next::Wait(Wait::ActiveClean { .. }));
}

#[test]
fn upmap_dropped_repeatedly_is_reported_and_blocks_nothing() {
    let mut world = without_upmaps();
    for _ in 0..MAX_UPMAP_TRIES {
        world = world.saved("upmaps");
        check!(world.plan(), Next::Do(Act::Ceph(CephAct::RestoreUpmaps { .. })));
        world.seen.ceph.epoch.0 += 1;
    }
    let Next::Save { why, ledger, osd } = world.plan() else { panic!() };
    let event = Event::Saved { osd, why: &why, ledger: &ledger };
    assert!(event.to_string().contains("ceph osd pg-upmap-items 1.0 3 0"), "{event}");
    let mut done = world.saved("upmaps-done");
    assert_eq!(done.record(OSD).lost_upmaps, None);
}

/// Checks that a PG which is elsewhere by now does not block: the OSD's boot does not make such a PG report.
#[test]
fn pg_moved_away_by_the_balancer_does_not_block_closing() {
    let onto = Upmap { pg: pg_id(1), mappings: vec![(OsdId(1), OSD)] };
    let away = Upmap { pg: pg_id(0), mappings: vec![(OSD, OsdId(1))] };
    let without = |number: u32| {
        World::filled(OSD).with(|w| {
            w.record(OSD).pgs.insert(pg_id(number));
            let pg = w.pg(number);
            (pg.up, pg.acting) = ([1, 2, 4].map(OsdId).into(), [1, 2, 4].map(OsdId).into());
            pg.reported_epoch = Epoch(1);
        })
    };
    let taken_back = without(1).with(|w| w.record(OSD).upmaps = vec![onto.clone()]);
    let given_away = without(0).with(|w| w.seen.ceph.upmaps = vec![away.clone()]);
    // Without an upmap: `pgp_num` has changed, or another OSD was added.
    for moved in [taken_back, given_away, without(1)] {
        // Perhaps only the statistics are behind: they are from when the OSD was down.
        let moved = unfenced(noin_lifted(moved));
        check!(moved.plan(), Next::Wait(Wait::ActiveClean { .. }));
        assert_eq!(word(&moved.minutes_later(1).plan()), Some("closing"));
    }
}

/// Checks that only upmaps that the mons dropped are restored when an OSD is kept.
#[test]
fn upmaps_of_a_kept_osd_are_restored_only_if_they_were_dropped() {
    let intended = proven(DiskAfter::Wipe).with(|w| w.seen.ceph.upmaps = upmaps()).saved("emptying");
    // Before the weight is dropped, the balancer removes one of them, and so moves a PG.
    let rebalanced = intended.with(|w| {
        w.seen.ceph.upmaps.truncate(1);
        moved_to_osd(w);
    });
    let again = rebalanced.saved("emptying");
    assert_eq!(again.ledger.records[&OSD].upmaps, upmaps()[..1]);
    let keep = |w: &mut World| w.seen.kube.requests.removals.clear();
    let kept = again.clone().with(keep).with(|w| w.seen.ceph.upmaps.clear());
    assert_eq!(word(&kept.plan()), Some("withdrawn"), "nothing was dropped");
    // Dropped, and not seen before it is kept.
    let (weight, dropped) = (again.ledger.records[&OSD].crush.clone(), again.with(set_weight(0.0)));
    let lost = dropped.with(|w| w.seen.ceph.upmaps.clear()).with(keep).saved("upmaps-lost");
    check!(lost.plan(), Next::Do(Act::Ceph(CephAct::RestoreWeight { osd: OSD, .. })));
    let inside = lost.with(|w| w.slot(OSD).crush = Some(weight)).saved("upmaps");
    check!(inside.plan(), Next::Do(Act::Ceph(CephAct::RestoreUpmaps { osd: OSD, .. })));
}

/// Moves a PG of other OSDs to the OSD.
fn moved_to_osd(w: &mut World) {
    let pg = w.seen.ceph.pgs.values_mut().find(|pg| !pg.is_on(OSD)).expect("a PG of other OSDs");
    pg.up.pop_last();
    pg.up.insert(OSD);
    pg.acting = pg.up.clone();
}
