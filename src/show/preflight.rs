//! Texts of the hooks of an upgrade and of an uninstall: which OSDs prevent it, and how to proceed.

use crate::ceph::USER;
use crate::domain::gate::{names, scale_operator};
use crate::domain::ledger::Ledger;
use crate::domain::osd::OsdId;
use crate::domain::preflight::Preflight;

/// Command that uninstalls without the hook.
pub const UNINSTALL_ALL_THE_SAME: &str = "To uninstall all the same: helm uninstall --no-hooks";

/// Returns what `preflight` found, and what to do. The lines are plain: people read them in the log of a Job.
pub fn preflight(found: &Preflight, namespace: &str) -> String {
    let mut lines = Vec::new();
    if found.passes() {
        lines.push("no legacy OSDs: nothing of osd-migrate stands in the way of an upgrade".to_owned());
    }
    if !found.legacy.is_empty() {
        lines.push(format!(
            "{}; newer releases of Rook and Ceph do not start them:",
            count(&found.legacy, "legacy OSD")
        ));
        lines.extend(found.legacy.iter().map(|(osd, host, kind)| format!("  {osd} on {host}: {kind}")));
    }
    lines.extend(unfinished(&found.in_flight, &found.quarantined, namespace));
    if !found.unknown.is_empty() {
        lines.push("how these were made is not known; look before you upgrade:".to_owned());
        lines.extend(found.unknown.iter().map(|(osd, why)| format!("  {osd}: {why}")));
    }
    if !found.legacy.is_empty() {
        lines.extend([
            "Bring them to the declared storage first, then upgrade:".to_owned(),
            format!("  kubectl -n {namespace} create job --from=cronjob/osd-migrate NAME"),
            format!("  kubectl -n {namespace} logs --follow job/NAME"),
        ]);
    }
    if !found.passes() {
        lines.push(UPGRADE_ALL_THE_SAME.to_owned());
    }
    lines.join("\n")
}

/// Returns what to do about OSDs with an open record.
fn unfinished(in_flight: &[OsdId], quarantined: &[OsdId], namespace: &str) -> Vec<String> {
    let mut lines = Vec::new();
    if !in_flight.is_empty() {
        lines.extend([
            format!("being migrated: {}. Let the run finish them, begin no others, and end:", names(in_flight)),
            format!("  kubectl -n {namespace} exec job/NAME -- osd-migrate cancel    (the Job of the run)"),
            format!("or, where no run is at work: kubectl -n {namespace} create job --from=cronjob/osd-migrate NAME"),
            "Afterwards: osd-migrate resume".to_owned(),
        ]);
    }
    if !quarantined.is_empty() {
        lines.extend([
            format!("left alone after a failure: {}. The reasons, and what to do:", names(quarantined)),
            format!("  osd-migrate -n {namespace} status"),
        ]);
    }
    lines
}

const UPGRADE_ALL_THE_SAME: &str = "To upgrade all the same: helm upgrade ... --set preflight.enabled=false
(in an umbrella chart: --set osd-migrate.preflight.enabled=false)";

/// Returns the text for a namespace without a CephCluster: there are no OSDs, or they are in a namespace that
/// was not observed.
pub fn no_cluster(namespace: &str) -> String {
    format!(
        "no CephCluster is in namespace {namespace}, so nothing stands in the way of an upgrade. (Where one is in another \
         namespace, its OSDs were not looked at: it wants a release of its own.)"
    )
}

/// Returns the text for an upgrade whose OSDs could not be observed; the reason follows below it.
pub fn not_inspected() -> String {
    format!("whether legacy OSDs are there could not be seen, for the reason below. {UPGRADE_ALL_THE_SAME}")
}

/// Returns why an uninstall is refused: open records. Returns none if there are none.
pub fn still_open(ledger: &Ledger, namespace: &str) -> Option<String> {
    let in_flight: Vec<_> = ledger.in_flight().map(|record| record.osd).collect();
    let quarantined: Vec<_> = ledger.quarantined().map(|record| record.osd).collect();
    if in_flight.is_empty() && quarantined.is_empty() {
        return None;
    }
    let mut lines =
        vec!["not uninstalled: OSDs are not finished, and what is known of them would be lost".to_owned()];
    lines.extend(unfinished(&in_flight, &quarantined, namespace));
    lines.push(UNINSTALL_ALL_THE_SAME.to_owned());
    Some(lines.join("\n"))
}

/// Returns the last text of an uninstall: what stays, for a person to delete.
pub fn left_behind(namespace: &str) -> String {
    format!(
        "nothing is open, and what was changed for the duration is restored. The history stays, and the user in Ceph; to delete \
         both too:\n  {}\n  ceph auth rm {USER}",
        delete_history(namespace)
    )
}

/// Returns the same text if the CephCluster is gone together with its fence and its flags: what osd-migrate
/// leaves behind, and nothing restores.
pub fn left_without_cluster(ledger: &Ledger, namespace: &str) -> String {
    let operator = ledger.run.operator.as_ref();
    let operator =
        operator.map(|was| format!("\n  {}", scale_operator(&was.name, was.replicas))).unwrap_or_default();
    format!(
        "nothing is open, and the CephCluster is gone. The history stays; what else may be ours, to be put away by hand:\n  \
         kubectl -n {namespace} delete poddisruptionbudget osd-migrate-drains --ignore-not-found{operator}\n  {}",
        delete_history(namespace)
    )
}

fn delete_history(namespace: &str) -> String {
    format!("kubectl -n {namespace} delete configmap,lease,job -l app.kubernetes.io/name=osd-migrate")
}

fn count<T>(things: &[T], name: &str) -> String {
    format!("{} {name}{}", things.len(), if things.len() == 1 { "" } else { "s" })
}
