//! Texts of the hooks of an upgrade and of an uninstall: which OSDs prevent it, and how to proceed.

use std::collections::BTreeSet;

use crate::ceph::USER;
use crate::domain::commands::{RUN_AGAIN, scale_operator};
use crate::domain::gate::names;
use crate::domain::ledger::Ledger;
use crate::domain::osd::OsdId;
use crate::domain::preflight::Preflight;
use crate::domain::temporary;

/// Command that uninstalls without the hook.
pub const UNINSTALL_WITHOUT_HOOK: &str = "To uninstall without this hook: helm uninstall --no-hooks";

/// Returns what `preflight` found, and what to do.
///
/// The lines are plain: people read them in the log of a Job.
pub fn preflight(found: &Preflight, namespace: &str) -> String {
    let mut lines = Vec::new();
    if found.passes() {
        lines.push("no legacy OSDs: osd-migrate does not block an upgrade".to_owned());
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
        lines.push("the format of these OSDs is not known. Check the OSDs before you upgrade:".to_owned());
        lines.extend(found.unknown.iter().map(|(osd, why)| format!("  {osd}: {why}")));
    }
    if !found.legacy.is_empty() {
        lines.extend([
            "Migrate the legacy OSDs first, then upgrade:".to_owned(),
            "  job=osd-migrate-$(date +%s)".to_owned(),
            format!("  kubectl -n {namespace} create job --from=cronjob/osd-migrate $job"),
            // kubectl reads no log before the pod has started.
            format!("  until kubectl -n {namespace} logs --follow job/$job; do sleep 2; done"),
        ]);
    }
    if !found.passes() {
        lines.push(UPGRADE_WITHOUT_HOOK.to_owned());
    }
    lines.join("\n")
}

/// Returns what to do about OSDs with an open record.
fn unfinished(in_flight: &[OsdId], quarantined: &[OsdId], namespace: &str) -> Vec<String> {
    let mut lines = Vec::new();
    if !in_flight.is_empty() {
        lines.extend([
            format!(
                "in progress: {}. Let the run complete these OSDs, begin work on no other OSD, and end:",
                names(in_flight)
            ),
            format!("  osd-migrate -n {namespace} cancel"),
            format!("Or, if no run is in progress: {}", RUN_AGAIN.replace("NAMESPACE", namespace)),
            format!("Afterwards, to allow runs again: osd-migrate -n {namespace} resume"),
        ]);
    }
    if !quarantined.is_empty() {
        lines.extend([
            format!("quarantined after a failure: {}. To see why, and what to do:", names(quarantined)),
            format!("  osd-migrate -n {namespace} status"),
        ]);
    }
    lines
}

const UPGRADE_WITHOUT_HOOK: &str =
    "To upgrade without this check: helm upgrade ... --set preflight.enabled=false
(in an umbrella chart: --set osd-migrate.preflight.enabled=false)";

/// Returns the text for a namespace without a CephCluster: there are no OSDs, or they are in a namespace that
/// was not observed.
pub fn no_cluster(namespace: &str) -> String {
    format!(
        "namespace {namespace} has no CephCluster: osd-migrate does not block an upgrade. (If a CephCluster \
         is in another namespace, its OSDs were not inspected: install a release of osd-migrate for it.)"
    )
}

/// Returns the text for an upgrade whose OSDs could not be observed; the reason follows below it.
pub fn not_inspected() -> String {
    format!("osd-migrate could not check for legacy OSDs; the reason follows. {UPGRADE_WITHOUT_HOOK}")
}

/// Returns why an uninstall is refused: open records.
///
/// Returns none if there are none.
pub fn still_open(ledger: &Ledger, namespace: &str) -> Option<String> {
    let in_flight: Vec<_> = ledger.in_flight().map(|record| record.osd).collect();
    let quarantined: Vec<_> = ledger.quarantined().map(|record| record.osd).collect();
    if in_flight.is_empty() && quarantined.is_empty() {
        return None;
    }
    let mut lines =
        vec!["not uninstalled: OSDs are in progress or quarantined; their records would be lost".to_owned()];
    lines.extend(unfinished(&in_flight, &quarantined, namespace));
    lines.push(UNINSTALL_WITHOUT_HOOK.to_owned());
    Some(lines.join("\n"))
}

/// Returns the last text of an uninstall: what stays, for a person to delete.
///
/// `changes` are the names of the temporary changes that are not restored.
pub fn left_behind(changes: &BTreeSet<&'static str>, namespace: &str) -> String {
    let stays = temporary::ALL.iter().filter(|one| changes.contains(one.name));
    let stays: Vec<_> = stays.map(|one| one.what).collect();
    let delete = format!("{}\n  ceph auth rm {USER}", delete_history(namespace));
    if stays.is_empty() {
        return format!(
            "no OSD is in progress, and all temporary changes are restored. The ledger, its history and the \
             Ceph user {USER} remain. To delete them:\n  {delete}"
        );
    }
    format!(
        "no OSD is in progress, and all temporary changes are restored except: {}. The ledger, its history and the \
         Ceph user {USER} remain. To delete them:\n  {delete}",
        stays.join(", ")
    )
}

/// Returns the same text if the CephCluster is gone together with its fence and its flags: what osd-migrate
/// leaves behind, and nothing restores.
pub fn left_without_cluster(ledger: &Ledger, namespace: &str) -> String {
    let operator = ledger.run.operator.as_ref();
    let operator =
        operator.map(|was| format!("\n  {}", scale_operator(&was.name, was.replicas))).unwrap_or_default();
    format!(
        "no OSD is in progress, and the CephCluster no longer exists. The ledger and its history remain, and perhaps \
         other changes of osd-migrate. To clean up by hand:\n  \
         kubectl -n {namespace} delete poddisruptionbudget osd-migrate-drains --ignore-not-found{operator}\n  {}",
        delete_history(namespace)
    )
}

fn delete_history(namespace: &str) -> String {
    format!(
        "kubectl -n {namespace} delete configmap,lease,job -l app.kubernetes.io/name=osd-migrate\n  \
         kubectl -n {namespace} delete configmap osd-migrate-control --ignore-not-found"
    )
}

fn count<T>(things: &[T], name: &str) -> String {
    format!("{} {name}{}", things.len(), if things.len() == 1 { "" } else { "s" })
}
