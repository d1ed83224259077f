//! Volumes of an OSD for its database, log or journal: whether they may be removed, and where those that the
//! new OSD gets again are created.
//!
//! Everything is checked at the first inspection, before the OSD is stopped.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::domain::inspection::{Evidence, NodeRequest, PieceLocation};
use crate::domain::osd::{Mode, Role};
use crate::node::error::NodeError;
use crate::node::volumes::lvm::{self, Lv, Segment};

/// Layout of a volume without copies, stripes, cache or pool (`lv_layout`).
const LINEAR: &str = "linear";

/// Returns whether a volume has all tags of the old OSD.
pub(super) fn is_of_old(lv: &Lv, request: &NodeRequest) -> bool {
    missing_tag(lv, request).is_none()
}

fn missing_tag(lv: &Lv, request: &NodeRequest) -> Option<String> {
    let tags = [
        (lv.ceph.osd_fsid == Some(request.old), format!("ceph.osd_fsid={}", request.old)),
        (lv.ceph.whoami == Some(request.osd), format!("ceph.osd_id={}", request.osd.0)),
        (lv.cluster == Some(request.cluster), format!("ceph.cluster_fsid={}", request.cluster)),
    ];
    tags.into_iter().find_map(|(is_there, tag)| (!is_there).then_some(tag))
}

/// Checks that a volume has all tags of the old OSD: otherwise it is not removed.
pub(super) fn expect_tags(lv: &Lv, role: Role, request: &NodeRequest) -> Result<(), String> {
    let Some(tag) = missing_tag(lv, request) else { return Ok(()) };
    let name = lv.named();
    Err(format!(
        "its {role} {name} does not have the tag {tag}. If the volume belongs to {}, add the tag on its node: lvchange \
         --addtag {tag} {name}",
        request.osd
    ))
}

/// Returns the location of a volume that a tag of the OSD's main volume names; a sentence if it can't be
/// removed, or can't be created again although the new OSD needs it.
pub(super) fn location(
    lv: &Lv,
    role: Role,
    (all, segments): (&[Lv], &[Segment]),
    request: &NodeRequest,
) -> Result<PieceLocation, String> {
    expect_tags(lv, role, request)?;
    if let Some(why) = lv.snapshot(all) {
        return Err(why);
    }
    let physical = only_physical(lv, segments);
    // An earlier version has inspected and destroyed it without this refusal.
    if is_created_again(role, request)
        && request.evidence.is_none()
        && let Err(what) = &physical
    {
        return Err(format!(
            "its {role} {} ({what}) cannot be created again: this is supported only for a linear volume on one \
             physical volume. Recreate the OSD by hand, or leave it as it is: --skip {}",
            lv.named(),
            request.osd
        ));
    }
    Ok(PieceLocation::Volume {
        name: lv.named(),
        uuid: lv.uuid.clone(),
        group: lv.group_uuid.clone(),
        size_bytes: lv.size_bytes,
        physical: physical.ok().map(str::to_owned),
    })
}

/// Returns whether the new OSD gets such a volume again, in the place of the old one.
fn is_created_again(role: Role, request: &NodeRequest) -> bool {
    let is_elsewhere = role == Role::Db && request.db.is_some();
    let is_rebuilt_on_volumes = request.target.mode == Mode::Lvm && request.after.is_none();
    is_rebuilt_on_volumes && matches!(role, Role::Db | Role::Wal) && !is_elsewhere
}

/// Returns the one physical volume that has all of a linear volume, or how the volume is laid out instead.
fn only_physical<'a>(lv: &Lv, segments: &'a [Segment]) -> Result<&'a str, String> {
    let physical = physical_of(&lv.uuid, segments);
    if lv.layout != LINEAR {
        return Err(lv.layout.clone());
    }
    match (physical.first(), physical.len()) {
        (Some(only), 1) => Ok(*only),
        (_, count) => Err(format!("on {count} physical volumes")),
    }
}

/// Returns the physical volumes on which a volume has segments of its own.
fn physical_of<'a>(volume: &str, segments: &'a [Segment]) -> BTreeSet<&'a str> {
    let of_it = segments.iter().filter(|segment| segment.volume.as_deref() == Some(volume));
    of_it.map(|segment| segment.physical.as_str()).collect()
}

/// Volume of the old OSD that is created again for the new one: in the same group, as large, and on the same
/// physical volume.
#[derive(Debug, Clone)]
pub(super) struct Again<'a> {
    role: Role,
    uuid: &'a str,
    group: &'a str,
    pub(super) size_bytes: u64,
    /// Physical volume; none in a record of an earlier version.
    physical: Option<&'a str>,
}

impl<'a> Again<'a> {
    /// Returns the recorded volume with that role; none if the old OSD had none.
    pub(super) fn of(evidence: &'a Evidence, wanted: Role) -> Option<Self> {
        evidence.auxiliary.iter().find_map(|piece| match &piece.place {
            PieceLocation::Volume { uuid, group, size_bytes, physical, .. } if piece.role == wanted => {
                let (size_bytes, physical) = (*size_bytes, physical.as_deref());
                Some(Self { role: wanted, uuid, group, size_bytes, physical })
            }
            PieceLocation::Volume { .. } | PieceLocation::Device(_) | PieceLocation::Pvc { .. } => None,
        })
    }

    /// Returns the name of the group, and the device of the physical volume as it is called now.
    pub(super) fn place(&self, segments: &[Segment]) -> Result<(String, Option<PathBuf>), String> {
        let of_group = || segments.iter().filter(|segment| segment.group_uuid == self.group);
        let Some(group) = of_group().next().map(|segment| segment.group.name.clone()) else {
            return Err(format!("volume group {} for the {} no longer exists", self.group, self.role));
        };
        let Some(physical) = self.physical else { return Ok((group, None)) };
        // LVM calls the device of a missing physical volume `[unknown]`.
        let is_it = |segment: &&Segment| segment.physical == physical && segment.device.is_absolute();
        match of_group().find(is_it) {
            Some(segment) => Ok((group, Some(segment.device.clone()))),
            None => Err(format!(
                "physical volume {physical} for the {} is missing in volume group {group}",
                self.role
            )),
        }
    }

    /// Checks that the old volume is on the recorded physical volume: its removal leaves space for the new
    /// one there.
    fn expect_place(&self, segments: &[Segment]) -> Result<(), String> {
        let (group, _) = self.place(segments)?;
        let now = physical_of(self.uuid, segments);
        match self.physical {
            // An interrupted rebuild may have removed the old volume already.
            Some(recorded) if !now.is_empty() && now != BTreeSet::from([recorded]) => Err(format!(
                "its {} in volume group {group} was moved to another physical volume than recorded ({recorded}). Move \
                 it back with pvmove",
                self.role
            )),
            Some(_) | None => Ok(()),
        }
    }
}

/// Proves, before anything is destroyed, that the volumes which the new OSD gets again can be created.
pub(crate) async fn prove(request: &NodeRequest, evidence: &Evidence) -> Result<(), NodeError> {
    let roles = [Role::Db, Role::Wal].into_iter().filter(|role| is_created_again(*role, request));
    let again: Vec<_> = roles.filter_map(|role| Again::of(evidence, role)).collect();
    if again.is_empty() {
        return Ok(());
    }
    let segments = lvm::segments().await?;
    again.iter().try_for_each(|one| one.expect_place(&segments)).map_err(NodeError::Refused)
}

#[cfg(test)]
#[path = "auxiliary_tests.rs"]
mod tests;
