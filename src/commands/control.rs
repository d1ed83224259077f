//! `pause`, `cancel` and `resume`.

use crate::domain::observation::ControlKind;
use crate::exit::{Exit, not_seen};
use crate::k8s::K8s;
use crate::live::{WallClock, kube_failure};
use crate::ports::Clock;
use crate::show;

/// Writes a pause or a cancel, or removes both.
pub(super) async fn control(k8s: &K8s, kind: Option<ControlKind>) -> Exit {
    let standing = match k8s.read_control().await {
        Ok(control) => control.map(|control| control.kind),
        Err(error) => return not_seen(&kube_failure(error)),
    };
    // An unchanged control keeps its time, and a pause must not resume a cancelled run.
    let is_less = (standing, kind) == (Some(ControlKind::Cancel), Some(ControlKind::Pause));
    if standing != kind
        && !is_less
        && let Err(error) = k8s.write_control(kind, WallClock.now()).await
    {
        return not_seen(&kube_failure(error));
    }
    let names = k8s.names();
    tracing::info!("{}: {}", names.cluster_line(), names.complete(show::control_changed(standing, kind)));
    Exit::Finished
}
