//! What the device says of a class: it decides, and labels are hints.

use super::class::Class;
use crate::domain::inspection::{Evidence, Proof};
use crate::domain::osd::{Kind, Layout, Mode};

/// Returns whether the contents of the device contradict the class that daemon and Deployment suggested.
///
/// Labels are hints, the device decides.
pub fn contradicts(class: &Class, proof: &Proof) -> Option<String> {
    let (Some(taken_for), Some(found)) = (class.migrates(), proof.kind()) else {
        return Some("there is nothing to migrate".to_owned());
    };
    match (taken_for, found) {
        (taken_for, found) if taken_for == found => None,
        // Only the partition table shows whether ceph-disk or a person created a partition.
        (Kind::BluestorePartition, Kind::BluestoreByHand)
        | (Kind::BluestoreByHand, Kind::BluestorePartition) => None,
        (Kind::BluestoreByHand, Kind::Raw) => Some(
            "its Deployment seems to be created by hand, but ceph-volume created its device: it needs a new \
             Deployment, not a new store"
                .to_owned(),
        ),
        (taken_for, found) => Some(format!("it was classified as {taken_for}, but its device is {found}")),
    }
}

/// Returns why the device can't get the wanted layout, although its class can.
pub fn excludes(evidence: &Evidence, wanted: &Layout) -> Option<String> {
    match (&evidence.proof, wanted.mode) {
        (Proof::Volume { alone: false, name, .. }, Mode::Raw) => Some(format!(
            "its volume {name} shares its disk or volume group with other volumes: the OSD can be recreated \
             on a volume (encrypted), but not raw. See on its node: lvs; pvs"
        )),
        (Proof::Volume { alone: false, .. }, Mode::Lvm) => None,
        (_, Mode::Lvm) if evidence.device.is_partition() => Some(format!(
            "{wanted} is not supported on a partition ({}), only on whole disks",
            evidence.device.stable_name()
        )),
        (_, Mode::Raw | Mode::Lvm) => None,
    }
}
