//! Drills, in test builds only (feature `failpoint`): a process stops itself at a named place, so that a test can let it sleep
//! there while the world goes on, and wake it up later. The released binary has no such switch.
//!
//! | place | where |
//! | --- | --- |
//! | `save-<word>` | the runner, decided to save (`save-record`, `save-proof`, ... as `Saving` calls them), nothing written yet |
//! | `<act>` | the runner, decided on an act (`back-up`, `agent-inspect`, `set-osd-flags`, ...), nothing of it begun |
//! | `late-<act>` | the same act, past the look at the ledger with which each begins |
//! | `open` | the agent, having found the disk and what it carries, before it has the disk for itself |
//! | `wipe` | the agent, the disk its own and proven once more, before the first write |
//! | `pieces` | the agent, its tombstone written, before the OSD's parts on other devices are cleared |

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

use crate::domain::act::{Act, NodeAct};
use crate::k8s::{Own, PodEnv};

/// `<place>` or `<place>:<n>`: the runner stops when it comes there for the n-th time.
const FAILPOINT: &str = "OSD_MIGRATE_FAILPOINT";
/// Image of the node agents for a runner outside Kubernetes; its pod and Job are then those that POD_NAME and POD_UID name,
/// whether they exist or not.
const OWN_IMAGE: &str = "OSD_MIGRATE_OWN_IMAGE";
/// In the agents' folder on the host; its first line is a place. The agent stays there while the file is.
const FAILPOINT_FILE: &str = "failpoint";

static SEEN: AtomicU32 = AtomicU32::new(0);

/// Stops this process if `place` is the one that was asked for.
pub fn pause_at(place: &str) {
    let Some(asked) = env(FAILPOINT) else { return };
    let (name, times) = asked.split_once(':').unwrap_or((asked.as_str(), "1"));
    if name != place || SEEN.fetch_add(1, Ordering::Relaxed) + 1 != times.parse().unwrap_or(1) {
        return;
    }
    tracing::warn!("failpoint: held before {place}, process {}", getpid());
    if let Err(errno) = kill_process(getpid(), Signal::STOP) {
        tracing::error!("failpoint: can't stop: {errno}");
    }
    tracing::warn!("failpoint: goes on with {place}");
}

/// The same by the name of an act.
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

/// The agent is the first process of its container, which can't be stopped from within: it waits here, and who made the
/// file stops it from outside.
#[expect(clippy::disallowed_methods, reason = "a test build's agent waits for the test that holds it")]
pub fn pause_agent(state: &Path, place: &str) {
    let file = state.join(FAILPOINT_FILE);
    let asked = || std::fs::read_to_string(&file).is_ok_and(|text| text.trim() == place);
    if asked() {
        tracing::warn!("failpoint: held before {place}");
    }
    while asked() {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A runner whose pod and Job need not exist.
pub fn own() -> Option<Own> {
    let image = env(OWN_IMAGE)?;
    let PodEnv { name, uid, .. } = PodEnv::read(env).ok()?;
    let (job, job_uid) = (name.clone(), uid.clone());
    Some(Own {
        pod: name,
        pod_uid: uid,
        node: None,
        job,
        job_uid,
        scheduled: false,
        failed_pods: 0,
        image,
        pull_policy: None,
        pull_secrets: Vec::new(),
        more: crate::k8s::More::default(),
    })
}

#[expect(clippy::disallowed_methods, reason = "a test build is told by its environment what to do otherwise")]
fn env(key: &str) -> Option<String> {
    std::env::var(key).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_nobody_holds_goes_on() {
        let state = tempfile::tempdir().unwrap();
        pause_agent(state.path(), "wipe");
        std::fs::write(state.path().join(FAILPOINT_FILE), "open\n").unwrap();
        pause_agent(state.path(), "wipe");
    }
}
