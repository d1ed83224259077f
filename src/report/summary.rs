//! Last line of a run that finished: what was done, what is left, and what to type for it.

use std::collections::BTreeMap;
use std::fmt;

use crate::domain::commands::{HOW_TO_CONFIRM, REMOVE_FENCE, RESUME, RUN_AGAIN, scale_operator};
use crate::domain::gate::{first_names, retries};
use crate::domain::next::Summary;
use crate::domain::osd::OsdId;

/// Number of OSDs listed in the last line of a run: a Kubernetes event takes 1,024 bytes.
const NAMED: usize = 20;

/// Instructions to remove the confirmation of Rook's own migration.
const REMOVE_CONFIRMATION: &str = "Remove the confirmation first: kubectl -n NAMESPACE patch cephcluster CEPHCLUSTER --type merge -p \
     '{\"spec\":{\"storage\":{\"migration\":null,\"store\":{\"updateStore\":null}}}}'";

/// Returns the code of the end of a run.
pub(super) fn code(summary: &Summary) -> &'static str {
    if let Some(outcome) = &summary.fence {
        outcome.code()
    } else if summary.cancelled {
        "run-cancelled"
    } else if summary.unconfirmed.is_empty() {
        "finished"
    } else {
        "run-not-confirmed"
    }
}

/// Writes the last line of a run.
pub(super) fn finished(summary: &Summary, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if let Some(outcome) = &summary.fence {
        return write!(f, "{outcome}");
    }
    if summary.cancelled {
        write!(
            f,
            "cancelled: no OSD is in progress, and runs begin work on no other OSD. To allow runs again: {RESUME}"
        )?;
    } else if summary.unconfirmed.is_empty() {
        f.write_str("finished: nothing is left to do")?;
    } else {
        write!(
            f,
            "not confirmed: {} would be migrated; none of them is in progress. To confirm: {HOW_TO_CONFIRM}",
            first_names(&summary.unconfirmed, NAMED)
        )?;
    }
    not_migrated(summary, f)?;
    quarantined_in_progress(summary, f)?;
    withheld_from_rook(summary, f)?;
    reshaped_by_rook(summary, f)?;
    fenced_by_its_owner(summary, f)?;
    rotations_left(summary, f)?;
    operator_at_0(summary, f)?;
    if summary.cancelled || !summary.unconfirmed.is_empty() {
        return Ok(());
    }
    for (node, problem) in &summary.problems {
        write!(f, "; node {node}: {problem}")?;
    }
    if !summary.left_to_rook.is_empty() {
        let nodes = first_names(&summary.left_to_rook, NAMED);
        write!(
            f,
            "; available disks of {nodes} are left to Rook's operator, which is running and creates OSDs itself"
        )?;
    }
    on_pvcs(summary, f)?;
    if !summary.unconfirmed_nodes.is_empty() {
        let nodes = first_names(&summary.unconfirmed_nodes, NAMED);
        write!(
            f,
            "; not confirmed: no OSDs are created on the disks of {nodes}. To confirm: {HOW_TO_CONFIRM}"
        )?;
    }
    Ok(())
}

/// Writes what becomes of the places of device sets that have no OSD.
fn on_pvcs(summary: &Summary, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for place in &summary.places {
        write!(f, "; {place}")?;
    }
    if !summary.pvcs_left_to_rook.is_empty() {
        let pvcs = first_names(&summary.pvcs_left_to_rook, NAMED);
        write!(f, "; PVCs {pvcs} are left to Rook's operator, which is running and creates OSDs itself")?;
    }
    if !summary.unconfirmed_pvcs.is_empty() {
        let pvcs = first_names(&summary.unconfirmed_pvcs, NAMED);
        write!(f, "; not confirmed: no OSDs are created on PVCs {pvcs}. To confirm: {HOW_TO_CONFIRM}")?;
    }
    Ok(())
}

fn not_migrated(summary: &Summary, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (osd, why) in &summary.quarantined {
        write!(f, "; {osd} is quarantined: {why}")?;
    }
    for (why, osds) in by_reason(&summary.refused) {
        write!(f, "; {} {} refused: {why}", some_of(&osds), were(&osds))?;
    }
    for what in &summary.unmatched {
        write!(f, "; {what}")?;
    }
    for (why, osds) in by_reason(&summary.skipped) {
        write!(f, "; {} {} skipped for now: {why}", some_of(&osds), were(&osds))?;
    }
    Ok(())
}

fn were(osds: &[OsdId]) -> &'static str {
    if osds.len() == 1 { "was" } else { "were" }
}

fn quarantined_in_progress(summary: &Summary, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if summary.half_way.is_empty() {
        return Ok(());
    }
    write!(
        f,
        "; Rook is still kept from reconciling, because these OSDs are quarantined after their stop: {}. Fix them, then: {}",
        first_names(&summary.half_way, NAMED),
        retries(summary.half_way.iter().take(NAMED))
    )
}

fn withheld_from_rook(summary: &Summary, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if summary.withheld_from_rook.is_empty() {
        return Ok(());
    }
    write!(
        f,
        "; Rook is still kept from reconciling, because it would migrate {} itself. {REMOVE_CONFIRMATION}; {RUN_AGAIN}",
        first_names(&summary.withheld_from_rook, NAMED)
    )
}

fn reshaped_by_rook(summary: &Summary, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if summary.reshaped_by_rook.is_empty() {
        return Ok(());
    }
    write!(
        f,
        "; Rook is to be kept from reconciling, because it would start {} as their device sets (`encrypted`, templates) \
         or their nodes (`encryptedDevice`) declare, and their devices are not so yet. Migrate them first, or declare \
         what they are: kubectl -n NAMESPACE edit cephcluster CEPHCLUSTER",
        first_names(&summary.reshaped_by_rook, NAMED)
    )
}

/// Writes which CronJobs Rook leaves, and how to delete them.
///
/// Rook recreates the CronJobs of encrypted OSDs when it reconciles, so all may be deleted by their label.
fn rotations_left(summary: &Summary, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if summary.rotations_left.is_empty() {
        return Ok(());
    }
    let osds: Vec<OsdId> = summary.rotations_left.iter().copied().collect();
    write!(
        f,
        "; no longer encrypted: {}. Rook leaves the CronJobs that rotate their keys, and each Job of them fails. Delete \
         them: kubectl -n NAMESPACE delete cronjob",
        some_of(&osds)
    )?;
    if osds.len() > NAMED {
        return f.write_str(" -l app=rook-ceph-osd-key-rotation");
    }
    f.write_str(" --ignore-not-found")?;
    osds.iter().try_for_each(|osd| write!(f, " rook-ceph-osd-key-rotation-{}", osd.0))
}

fn fenced_by_its_owner(summary: &Summary, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Some(since) = summary.fenced_since else { return Ok(()) };
    write!(
        f,
        "; the CephCluster has been fenced by its owner since {}: Rook does not reconcile it until it was edited and its \
         OSDs are as declared. To remove the fence: {REMOVE_FENCE}",
        since.format("%Y-%m-%d %H:%M:%SZ")
    )
}

fn operator_at_0(summary: &Summary, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let Some(name) = &summary.operator_at_0 else { return Ok(()) };
    write!(f, "; Rook's operator {name} is scaled to 0, which osd-migrate no longer needs. ")?;
    if summary.left_to_rook_at_0.is_empty() {
        return write!(f, "Scale it up: {}", scale_operator(name, 1));
    }
    write!(
        f,
        "It would migrate {} itself. {REMOVE_CONFIRMATION}; then scale it up: {}",
        first_names(&summary.left_to_rook_at_0, NAMED),
        scale_operator(name, 1)
    )
}

/// Groups OSDs by the reason: hundreds of them may share one.
fn by_reason(osds: &[(OsdId, String)]) -> BTreeMap<&str, Vec<OsdId>> {
    let mut by = BTreeMap::<&str, Vec<OsdId>>::new();
    for (osd, why) in osds {
        by.entry(why).or_default().push(*osd);
    }
    by
}

/// Lists the first of many OSDs; `plan` lists all.
fn some_of(osds: &[OsdId]) -> String {
    first_names(osds, NAMED)
}
