//! Compares the traits of a disk with those of the recorded one.

use crate::domain::guard::{Guard, passes};
use crate::domain::inspection::{Content, NodeRequest};
use crate::domain::osd::DeviceIdentity;

/// Checks that the disk's traits are the recorded ones.
pub fn same_device(recorded: &DeviceIdentity, seen: &DeviceIdentity) -> Result<(), String> {
    if recorded.is_same_as(seen) {
        return Ok(());
    }
    Err(format!("expected the disk {recorded}, found {seen}"))
}

/// Checks the traits of a disk whose content was read, and the place of a blank disk that nothing names.
///
/// A disk that nothing names (no serial number) is identified by its content alone. A blank disk has no
/// content, so it must be in the recorded place: otherwise it could be any blank disk of that size.
pub fn same_disk(recorded: &DeviceIdentity, seen: &DeviceIdentity, content: &Content) -> Result<(), String> {
    same_device(recorded, seen)?;
    let is_distinct = recorded.is_named() || *content != Content::Blank || recorded.is_in_place_of(seen);
    if passes(Guard::BlankByPlace, is_distinct) {
        return Ok(());
    }
    let place = |device: &DeviceIdentity| {
        device.by_path.first().cloned().unwrap_or_else(|| "an unknown place".to_owned())
    };
    Err(format!("a blank disk without a serial number at {}, expected at {}", place(seen), place(recorded)))
}

/// Checks the traits of the disk of a request, or of the device of its PVC, which may be attached anywhere.
pub fn same_for(
    request: &NodeRequest,
    recorded: &DeviceIdentity,
    seen: &DeviceIdentity,
) -> Result<(), String> {
    if request.pvcs.is_none() {
        return same_device(recorded, seen);
    }
    if recorded.is_same_volume_as(seen) {
        return Ok(());
    }
    Err(format!("expected the device {recorded}, found {seen}"))
}

/// Checks `same_for` of a disk whose content was read, and `same_disk` of a disk that is not on a PVC.
///
/// On a PVC a blank device needs no place: its PVC and its PersistentVolume identify it.
pub fn same_content_for(
    request: &NodeRequest,
    recorded: &DeviceIdentity,
    seen: &DeviceIdentity,
    content: &Content,
) -> Result<(), String> {
    if request.pvcs.is_some() {
        return same_for(request, recorded, seen);
    }
    same_disk(recorded, seen, content)
}

/// Selects the disks that a record can mean from those that fit it by their traits (`same_disk`).
///
/// If several fit, their content decides: a disk that carries something of osd-migrate's or the OSD's takes
/// precedence over a blank disk.
pub fn candidates<T>(
    mut fitting: Vec<T>,
    is_only: bool,
    content: impl Fn(&T) -> &Content,
    is_ours: impl Fn(&T) -> bool,
) -> Vec<T> {
    if is_only {
        return fitting;
    }
    fitting.retain(is_ours);
    if fitting.iter().any(|disk| *content(disk) != Content::Blank) {
        fitting.retain(|disk| *content(disk) != Content::Blank);
    }
    fitting
}

#[cfg(test)]
#[path = "same_disk_tests.rs"]
mod tests;
