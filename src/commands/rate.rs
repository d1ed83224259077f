//! Rate of earlier runs, by which `plan` estimates times.

use crate::domain::estimate::Rate;
use crate::domain::history;
use crate::k8s::K8s;
use crate::live::WallClock;
use crate::ports::Clock;
use crate::report::Said;

/// Returns the rate that the last run measured, or that of the OSDs in the history, or the assumed rate.
///
/// A run that found nothing to do measured no rate.
pub(super) async fn rate(k8s: &K8s) -> Rate {
    let measured = of_last_run(k8s).await;
    if measured.is_some() {
        return Rate::of(measured);
    }
    let texts = k8s.read_history().await.unwrap_or_default();
    let entries: Vec<_> = texts.iter().flat_map(|text| history::read(text).0).collect();
    Rate::of(history::rate(&entries))
}

/// Returns the rate of the last run, if the status of a run is known.
async fn of_last_run(k8s: &K8s) -> Option<u64> {
    let said: Said = serde_json::from_str(&k8s.read_status().await.ok()??).ok()?;
    said.pace?.progress(WallClock.now()).rate
}
