//! Lines of a plan that a person approves, and whether they still hold.

use std::collections::BTreeSet;

use crate::domain::classify;
use crate::domain::gate::Reason;
use crate::domain::guard::{Guard, passes};
use crate::domain::osd::{DeviceIdentity, Layout, NodeName, OsdId};
use crate::domain::provision::AvailableDisk;
use crate::domain::view::View;

/// Returns the line of an OSD: which data is destroyed, where, and what the OSD becomes.
///
/// None if the OSD is as declared, or if its data can't be named. The disk to which an OSD in a directory
/// moves is not part of the line, because only an empty disk is chosen for it.
pub fn line_of_osd(osd: OsdId, view: View<'_>) -> Option<String> {
    let slot = view.slot(osd)?;
    let class = classify::class_of(osd, slot, view.seen);
    class.migrates()?;
    let (fsid, target) = (slot.fsid?, classify::target_of(osd, view.seen)?);
    let host = slot.crush.as_ref()?.host().cloned().unwrap_or_default();
    if view.daemon(osd)?.on_pvcs.is_some() {
        let devices = on_pvcs(osd, view);
        return Some(format!("{osd} on {host}, fsid {fsid}, {devices}, {class} -> {target}"));
    }
    let metadata = slot.metadata.as_ref()?;
    let devices = match view.daemon(osd).and_then(|daemon| daemon.data_dir.clone()) {
        Some(directory) => directory,
        None if metadata.stable_devices.is_empty() => metadata.devices.join(" "),
        None => metadata.stable_devices.join(" "),
    };
    Some(format!("{osd} on {host}, fsid {fsid}, {devices}, {class} -> {target}"))
}

/// Returns the PVCs of an OSD with their PersistentVolumes.
///
/// The names of their devices depend on the node that the volumes are attached to.
fn on_pvcs(osd: OsdId, view: View<'_>) -> String {
    let described = |name: &String| {
        let volume = view.seen.kube.pvcs.get(name).and_then(|pvc| pvc.volume.as_ref());
        format!("PVC {name} ({})", volume.map_or("not bound", |volume| volume.name.as_str()))
    };
    let all = classify::pvcs_of(osd, view.seen).into_iter();
    all.flat_map(|pvcs| pvcs.iter().map(|(_, name)| described(name)).collect::<Vec<_>>())
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns the line of a disk that becomes an OSD.
pub(super) fn line_of_disk(node: &NodeName, device: &DeviceIdentity, becomes: &Layout) -> String {
    format!("disk {} on {node}, {} bytes -> {becomes}", device.stable_name(), device.size_bytes)
}

/// Returns why an OSD may not be migrated: it is no longer as in the plan that was approved.
///
/// Asked until the stop. From then on, the record and the checks of the disk say what is destroyed.
pub fn changed(osd: OsdId, view: View<'_>) -> Option<Reason> {
    let approval = view.policy.approval.as_ref()?;
    let (approved, now) = (approval.lines.of_osd(osd), line_of_osd(osd, view));
    let holds = approved.is_some() && approved == now.as_deref();
    (!passes(Guard::ApprovedOnly, holds)).then(|| Reason::ChangedSincePlan {
        plan: approval.hash.clone(),
        approved: approved.unwrap_or_default().to_owned(),
        now: now.unwrap_or_else(|| "as declared".to_owned()),
    })
}

/// Returns whether a disk may become an OSD: no plan was approved, or the plan has the disk.
pub(super) fn allows_disk(node: &NodeName, available: &AvailableDisk, view: View<'_>) -> bool {
    view.policy.approval.as_ref().is_none_or(|approval| {
        let line = line_of_disk(node, &available.device, &available.layout);
        passes(Guard::ApprovedOnly, approval.lines.has_disk(&line))
    })
}

/// Returns what was selected and does not exist, as sentences.
pub fn unmatched(view: View<'_>) -> BTreeSet<String> {
    let policy = view.policy;
    let slots = &view.seen.ceph.slots;
    let absent = |osd: &OsdId| !slots.contains_key(osd);
    let of_plan = policy.approval.iter().flat_map(|approval| {
        // A run that found no such plan finishes what is in progress, and must not say that all is done.
        let lost = approval.lines.is_empty().then(|| {
            format!(
                "plan {} is not stored, and approves nothing. Make a plan, and approve its hash: osd-migrate -n NAMESPACE plan",
                approval.hash
            )
        });
        let gone = approval.lines.osds().filter(absent);
        let gone = gone.map(|osd| format!("{osd} of plan {} no longer exists. See: ceph osd tree", approval.hash));
        lost.into_iter().chain(gone)
    });
    let removed = view.ledger.run.removed_by(&policy.run);
    let selected = policy.select.iter().filter(|osd| absent(osd) && !removed.contains(osd));
    let selected = selected.map(|osd| format!("{osd} is selected and does not exist. See: ceph osd tree"));
    let hosts = policy.hosts.iter().filter(|host| !slots.keys().any(|osd| view.is_on_host(*osd, host)));
    let hosts = hosts.map(|host| format!("host {host} is selected and has no OSD. See: ceph osd tree"));
    let classes = policy
        .device_classes
        .iter()
        .filter(|class| !slots.keys().any(|osd| view.has_device_class(*osd, class)));
    let classes = classes.map(|class| {
        format!("device class {class} is selected and has no OSD. See: ceph osd crush class ls")
    });
    of_plan.chain(selected).chain(hosts).chain(classes).collect()
}
