//! Disks that are PersistentVolumes become no OSD, and an OSD on one is not started as one of the host's.

use osd_migrate::domain::act::{Act, KubeAct};
use osd_migrate::domain::next::Next;
use osd_migrate::domain::observation::LocalVolume;

use super::{Run, example};

fn adopts(change: impl Fn(&mut Vec<LocalVolume>)) -> (bool, Vec<String>) {
    let mut world = example::on_volumes();
    change(&mut world.kube.local_volumes);
    let mut run = Run::of(world);
    let next = run.until(|next| {
        matches!(next, Next::Finished(_) | Next::Do(Act::Kube(KubeAct::Adopt(_))))
            || matches!(next, Next::Wait(wait) if wait.to_string().contains("clean"))
    });
    let problems = run.ledger.nodes.values().flat_map(|work| work.problems.clone()).collect();
    (matches!(next, Next::Do(Act::Kube(KubeAct::Adopt(_)))), problems)
}

/// Checks a case that failed before: `provision` created a host OSD's Deployment for the OSD.
///
/// Kubernetes then treated the PersistentVolumeClaim as unused.
#[test]
fn osd_on_a_persistent_volume_is_not_adopted() {
    let (adopted, problems) = adopts(|_| {});
    assert!(!adopted);
    assert!(
        problems.iter().any(|why| why.contains("osd.0 has no Deployment") && why.contains("pv-disk-0")),
        "{problems:?}"
    );
    assert!(adopts(Vec::clear).0, "without the volumes it is adopted");
    let elsewhere = |all: &mut Vec<LocalVolume>| {
        for volume in all {
            volume.nodes = Some(["h2".to_owned()].into());
        }
    };
    assert!(adopts(elsewhere).0, "volumes of another node");
}

#[test]
fn hidden_path_of_a_persistent_volume_counts_by_size() {
    let hidden = |bytes: u64| {
        move |all: &mut Vec<LocalVolume>| {
            for volume in all {
                (volume.path, volume.bytes) = (Some("/mnt/disks/vol1".to_owned()), Some(bytes));
            }
        }
    };
    let (adopted, problems) = adopts(hidden(6 << 30));
    assert!(!adopted);
    assert!(problems.iter().any(|why| why.contains("perhaps PersistentVolume")), "{problems:?}");
    assert!(!adopts(hidden((6 << 30) - (1 << 20))).0, "rounded down");
    assert!(adopts(hidden(9 << 30)).0, "it is larger than the disk");
    let folder = |all: &mut Vec<LocalVolume>| {
        hidden(6 << 30)(all);
        for volume in all {
            volume.is_block = false;
        }
    };
    assert!(adopts(folder).0, "a folder of the host");
}

/// Checks that an OSD on a volume of a driver is not adopted: no path says which disk the volume is.
#[test]
fn attached_persistent_volume_counts_by_size() {
    let attached = |bytes: u64| {
        move |all: &mut Vec<LocalVolume>| {
            for volume in all {
                (volume.path, volume.nodes, volume.bytes) = (None, None, Some(bytes));
            }
        }
    };
    let (adopted, problems) = adopts(attached(6 << 30));
    assert!(!adopted);
    assert!(problems.iter().any(|why| why.contains("the disk has its size")), "{problems:?}");
    assert!(adopts(attached(9 << 30)).0, "it is larger than the disk");
}
