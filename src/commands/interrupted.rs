//! Signals that end the program.

/// Waits for SIGTERM or SIGINT.
///
/// As pid 1 of a container the program would ignore SIGTERM without this handler.
pub async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        },
        Err(_) => drop(tokio::signal::ctrl_c().await),
    }
}
