//! Each drift finding, in a small world with one thing changed; the subject of an open record is not
//! reported.

use osd_migrate::domain::act::{Act, KubeAct};
use osd_migrate::domain::drift::{Finding, Keys, find};
use osd_migrate::domain::gate::Reason;
use osd_migrate::domain::inspection::RecordId;
use osd_migrate::domain::next::Next;
use osd_migrate::domain::observation::SlotState;
use osd_migrate::domain::osd::{OsdId, Weight};
use osd_migrate::show;

use crate::support::build::{BY_HAND, World, foreign, issued_fsid, old};

const RAW: OsdId = OsdId(5);

/// Returns keys without drift: no id without an OSD has a key, and one OSD is encrypted.
fn keys() -> Keys {
    Keys { unused: [].into(), dmcrypt: [old(RAW)].into() }
}

fn found(change: impl FnOnce(&mut World)) -> Vec<Finding> {
    let world = World::new().with(change);
    find(&world.ledger, &world.seen, &keys())
}

fn with_keys(change: impl FnOnce(&mut Keys)) -> Vec<Finding> {
    let (world, mut keys) = (World::new(), keys());
    change(&mut keys);
    find(&world.ledger, &world.seen, &keys)
}

#[test]
fn drift_of_a_consistent_cluster_is_empty() {
    assert_eq!(found(|_| {}), []);
    assert_eq!(show::drift_text(&[]), None);
}

#[test]
fn drift_reports_slots_osds_and_deployments_without_each_other() {
    let destroyed = |up: bool| found(|w| (w.slot(RAW).state, w.slot(RAW).up) = (SlotState::Destroyed, up));
    assert_eq!(destroyed(false), [Finding::SlotWithoutOsd { osd: RAW }]);
    assert_eq!(destroyed(true), [Finding::UpInDestroyedSlot { osd: RAW }]);
    // Rook is replacing the OSD: a purge would end that.
    let replaced = found(|w| {
        w.slot(RAW).state = SlotState::Destroyed;
        w.slot(RAW).up = false;
        w.daemon(RAW).managed_externally = Some("annotation osd.rook.io/replace=true".to_owned());
    });
    assert_eq!(replaced, []);
    assert_eq!(
        found(|w| drop(w.seen.kube.daemons.remove(&RAW))),
        [Finding::OsdWithoutDeployment { osd: RAW }]
    );
    let gone = found(|w| {
        let other = w.daemon(RAW).clone();
        w.seen.kube.daemons.insert(OsdId(9), other);
    });
    assert!(matches!(&gone[..], [Finding::DeploymentWithoutOsd { osd: OsdId(9), .. }]), "{gone:?}");
}

#[test]
fn drift_reports_noout_without_record_and_the_unset_command() {
    let reported = found(|w| (w.slot(RAW).noout, w.slot(RAW).noin) = (true, true));
    let flags = vec!["noout", "noin"];
    assert_eq!(reported, [Finding::FlagsWithoutRecord { osd: RAW, flags, reweight: None }]);
    let text = show::drift_text(&reported).unwrap();
    assert!(text.ends_with("ceph osd unset-group noout,noin osd.5"), "{text}");
    let new = found(|w| (w.slot(RAW).state, w.slot(RAW).noin) = (SlotState::New, true));
    let text = show::drift_text(&new).unwrap();
    assert!(text.ends_with("ceph osd reweight 5 0.89999; ceph osd unset-group noin osd.5"), "{text}");
    let with_flags_set = World::stopped(BY_HAND);
    assert!(with_flags_set.seen.ceph.slots[&BY_HAND].noout);
    assert_eq!(find(&with_flags_set.ledger, &with_flags_set.seen, &keys()), []);
}

/// Checks that the last trace of a run that was emptying an OSD is kept, until the OSD gets data again.
#[test]
fn drift_reports_an_osd_that_a_lost_run_was_emptying() {
    let with_backup = |change: fn(&mut World)| {
        World::new().with(|w| {
            w.seen.kube.backups.insert(RAW, RecordId("lost".to_owned()));
            change(w);
        })
    };
    let out = |w: &mut World| w.slot(RAW).is_in = false;
    let weightless = |w: &mut World| w.slot(RAW).crush.as_mut().unwrap().weight = Weight(0);
    for (change, is_out) in [(out as fn(&mut World), true), (weightless, false)] {
        let world = with_backup(change);
        let reported = find(&world.ledger, &world.seen, &keys());
        assert_eq!(reported, [Finding::EmptiedWithoutRecord { osd: RAW, is_out }]);
        assert!(!is_deleted(&world), "the backup is the last trace");
        assert_eq!(found(change), [], "a person did it");
    }
    let serves = with_backup(|_| {});
    assert_eq!(find(&serves.ledger, &serves.seen, &keys()), []);
    assert!(is_deleted(&serves));
}

/// Returns whether a run deletes the backup as an orphan.
fn is_deleted(world: &World) -> bool {
    matches!(world.plan(), Next::Do(Act::Kube(KubeAct::CleanUp { osd: RAW, .. })))
}

#[test]
fn drift_reports_own_fence_without_ledger_and_no_external_one() {
    let fenced = |value: &str| World::new().with(|w| w.seen.kube.fence = Some(value.to_owned()));
    let findings = |world: &World| find(&world.ledger, &world.seen, &keys());
    let lost = fenced("osd-migrate-3-a7");
    assert_eq!(findings(&lost), [Finding::FenceWithoutRecord { value: "osd-migrate-3-a7".to_owned() }]);
    assert_eq!(findings(&fenced("true")), []);
    for (value, says) in
        [("osd-migrate-3-a7", "a run that is not in the ledger"), ("true", "osd-migrate did not set")]
    {
        let why = Reason::FencedExternally { value: value.to_owned() }.to_string();
        assert!(why.contains(says) && why.contains("kubectl -n NAMESPACE label cephcluster"), "{why}");
    }
    let value = lost.seen.kube.fence.clone();
    assert_eq!(findings(&lost.clone().with(|w| w.ledger.run.fence.clone_from(&value))), []);
    assert_eq!(findings(&lost.with(|w| w.ledger.run.last_fence = value)), []);
}

#[test]
fn drift_reports_cephx_and_dmcrypt_keys_without_an_osd() {
    let reported = with_keys(|keys| {
        // osd.5 was created after Ceph was asked for keys.
        keys.unused.extend([OsdId(8), RAW]);
        keys.dmcrypt.insert(foreign());
    });
    assert_eq!(
        reported,
        [Finding::KeyWithoutOsd { osd: OsdId(8) }, Finding::DmcryptKeyWithoutOsd { fsid: foreign() }]
    );
    let words: Vec<_> = reported.iter().map(Finding::code).collect();
    assert_eq!(words, ["key-without-osd", "dmcrypt-key-without-osd"]);
    assert_eq!(show::drift_json(&reported)[0]["what"], "key-without-osd");
    assert!(reported[1].to_string().contains(&format!("ceph auth rm client.osd-lockbox.{}; ", foreign())));
}

#[test]
fn drift_is_not_reported_for_an_osd_in_progress() {
    let world =
        World::destroyed(BY_HAND).slot_gone(BY_HAND).report_issued(BY_HAND, [issued_fsid(BY_HAND, 1)]);
    let mut keys = keys();
    keys.dmcrypt.insert(old(BY_HAND));
    keys.unused.insert(BY_HAND);
    assert_eq!(find(&world.ledger, &world.seen, &keys), []);
}
