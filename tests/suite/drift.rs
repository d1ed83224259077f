//! Each drift finding, in a small world with one thing changed; the subject of an open record is not
//! reported.

use osd_migrate::domain::drift::{Finding, Keys, find};
use osd_migrate::domain::gate::Reason;
use osd_migrate::domain::observation::SlotState;
use osd_migrate::domain::osd::OsdId;
use osd_migrate::show;

use crate::support::build::{BY_HAND, World, claim, foreign, old};

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
fn where_all_fits_nothing_is_told() {
    assert_eq!(found(|_| {}), []);
    assert_eq!(show::drift_text(&[]), None);
}

#[test]
fn slots_osds_and_deployments_that_lack_each_other_are_told() {
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
fn flags_that_no_record_speaks_of_are_told_with_the_command_that_lifts_them() {
    let told = found(|w| (w.slot(RAW).noout, w.slot(RAW).noin) = (true, true));
    let flags = vec!["noout", "noin"];
    assert_eq!(told, [Finding::FlagsWithoutRecord { osd: RAW, flags, reweight: None }]);
    let text = show::drift_text(&told).unwrap();
    assert!(text.ends_with("ceph osd unset-group noout,noin osd.5"), "{text}");
    let new = found(|w| (w.slot(RAW).state, w.slot(RAW).noin) = (SlotState::New, true));
    let text = show::drift_text(&new).unwrap();
    assert!(text.ends_with("ceph osd reweight 5 0.89999; ceph osd unset-group noin osd.5"), "{text}");
    let with_flags_set = World::stopped(BY_HAND);
    assert!(with_flags_set.seen.ceph.slots[&BY_HAND].noout);
    assert_eq!(find(&with_flags_set.ledger, &with_flags_set.seen, &keys()), []);
}

#[test]
fn a_fence_of_ours_is_told_where_no_ledger_knows_it_and_nobody_elses() {
    let fenced = |value: &str| World::new().with(|w| w.seen.kube.fence = Some(value.to_owned()));
    let told = |world: &World| find(&world.ledger, &world.seen, &keys());
    let lost = fenced("osd-migrate-3-a7");
    assert_eq!(told(&lost), [Finding::FenceWithoutRecord { value: "osd-migrate-3-a7".to_owned() }]);
    assert_eq!(told(&fenced("true")), []);
    for (value, says) in
        [("osd-migrate-3-a7", "a run that is not in the ledger"), ("true", "osd-migrate did not set")]
    {
        let why = Reason::FencedExternally { value: value.to_owned() }.to_string();
        assert!(why.contains(says) && why.contains("kubectl -n NAMESPACE label cephcluster"), "{why}");
    }
    let value = lost.seen.kube.fence.clone();
    assert_eq!(told(&lost.clone().with(|w| w.ledger.run.fence.clone_from(&value))), []);
    assert_eq!(told(&lost.with(|w| w.ledger.run.last_fence = value)), []);
}

#[test]
fn keys_of_osds_that_are_not_there_are_told_and_none_of_anybody_else() {
    let told = with_keys(|keys| {
        // osd.5 was created after Ceph was asked for keys.
        keys.unused.extend([OsdId(8), RAW]);
        keys.dmcrypt.insert(foreign());
    });
    assert_eq!(
        told,
        [Finding::KeyWithoutOsd { osd: OsdId(8) }, Finding::DmcryptKeyWithoutOsd { fsid: foreign() }]
    );
    let words: Vec<_> = told.iter().map(Finding::code).collect();
    assert_eq!(words, ["key-without-osd", "dmcrypt-key-without-osd"]);
    assert_eq!(show::drift_json(&told)[0]["what"], "key-without-osd");
    assert!(told[1].to_string().contains(&format!("ceph auth rm client.osd-lockbox.{}; ", foreign())));
}

#[test]
fn what_a_record_is_open_for_is_on_its_way() {
    let world = World::destroyed(BY_HAND).slot_gone(BY_HAND).report_issued(BY_HAND, [claim(BY_HAND, 1)]);
    let mut keys = keys();
    keys.dmcrypt.insert(old(BY_HAND));
    keys.unused.insert(BY_HAND);
    assert_eq!(find(&world.ledger, &world.seen, &keys), []);
}
