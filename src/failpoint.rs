//! Failpoints, in test builds only (feature `failpoint`). A process stops itself at a named place, so that a
//! test can change the cluster meanwhile and resume the process later. The released binary has no such
//! switch.
//!
//! | place | process and moment |
//! | --- | --- |
//! | `save-<word>` | the runner decided to save (`save-record`, ...; words of `Saving`), wrote nothing yet |
//! | `<act>` | the runner decided on an act (`back-up`, `agent-inspect`, ...), did nothing of it yet |
//! | `late-<act>` | the same act, after the read of the ledger with which each act starts |
//! | `placed-<act>` | `mark-out` or `drop-weight`, after the forecast, before the record is read again |
//! | `open` | the agent found the disk and its content, before it opens the disk exclusively |
//! | `wipe` | the agent opened the disk exclusively and proved it again, before the first write |
//! | `pieces` | the agent wrote its tombstone, before it clears the OSD's parts on other devices |
//! | `header` | the agent cleared the disk and the parts, before LUKS headers and ceph-volume |
//! | `blank` | the agent cleared the disk of a removed OSD, before it replaces the tombstone |
//! | `mapping` | the agent opened the mappings of LUKS headers, before ceph-volume |

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

use crate::domain::act::{Act, NodeAct};

/// Environment variable with `<place>` or `<place>:<n>`: the runner stops when it reaches the place for the
/// n-th time.
const FAILPOINT: &str = "OSD_MIGRATE_FAILPOINT";
/// File in the agents' folder on the host; its first line is a place.
///
/// The agent waits at that place while the file exists.
const FAILPOINT_FILE: &str = "failpoint";

static SEEN: AtomicU32 = AtomicU32::new(0);

/// Stops this process if `place` is the requested one.
pub fn pause_at(place: &str) {
    let Some(asked) = env(FAILPOINT) else { return };
    let (name, times) = asked.split_once(':').unwrap_or((asked.as_str(), "1"));
    if name != place || SEEN.fetch_add(1, Ordering::Relaxed) + 1 != times.parse().unwrap_or(1) {
        return;
    }
    tracing::warn!("failpoint: suspended before {place}, process {}", getpid());
    if let Err(errno) = kill_process(getpid(), Signal::STOP) {
        tracing::error!("failpoint: cannot stop: {errno}");
    }
    tracing::warn!("failpoint: resumes with {place}");
}

/// Stops this process if the prefix and the name of the act form the requested place.
pub fn pause_before(prefix: &str, act: &Act) {
    let json = serde_json::to_value(act).unwrap_or_default();
    let name = json.as_object().and_then(|act| act.keys().next()).cloned().unwrap_or_default();
    let task = if let Act::Node(NodeAct::Agent { request, .. }) = act {
        format!("-{}", request.task)
    } else {
        String::new()
    };
    pause_at(&format!("{prefix}{name}{task}"));
}

/// Waits at a place while the failpoint file names it.
///
/// The agent is the first process of its container and cannot be stopped from within. The test that created
/// the file stops the agent from outside.
#[expect(clippy::disallowed_methods, reason = "a test build's agent waits for the test that holds it")]
pub fn pause_agent(state: &Path, place: &str) {
    let file = state.join(FAILPOINT_FILE);
    let asked = || std::fs::read_to_string(&file).is_ok_and(|text| text.trim() == place);
    if asked() {
        tracing::warn!("failpoint: suspended before {place}");
    }
    while asked() {
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[expect(clippy::disallowed_methods, reason = "a test build reads from its environment what to do otherwise")]
fn env(key: &str) -> Option<String> {
    std::env::var(key).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_without_a_matching_failpoint_is_not_paused() {
        let state = tempfile::tempdir().unwrap();
        pause_agent(state.path(), "wipe");
        std::fs::write(state.path().join(FAILPOINT_FILE), "open\n").unwrap();
        pause_agent(state.path(), "wipe");
    }
}
