//! `ceph health`: codes of the raised checks.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::ceph::command::Command;

#[derive(Deserialize)]
struct HealthAnswer {
    checks: Map<String, Value>,
}

pub(super) fn command() -> Command {
    Command::mon("health")
}

/// Returns the codes (`OSD_DOWN`), including muted ones: a mute hides a fact, it does not undo it.
pub(super) fn parse(answer: &[u8]) -> serde_json::Result<BTreeSet<String>> {
    serde_json::from_slice(answer)
        .map(|HealthAnswer { checks }| checks.into_iter().map(|(code, _)| code).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ceph::samples::{RELEASES, answer};

    #[test]
    fn health_codes_that_are_raised_are_read_in_each_release() {
        for release in RELEASES {
            let fine = parse(&answer(release, "health")).unwrap();
            // Debian's 18.2.7 cannot load most modules of the mgr; there the code is muted.
            let muted = if release == "18.2.7" { vec!["MGR_MODULE_DEPENDENCY"] } else { vec![] };
            assert!(fine.iter().eq(muted), "{release}: {fine:?}");
            let down = parse(&answer(release, "health.down")).unwrap();
            assert!(down.contains("OSD_DOWN") && down.contains("OSD_FLAGS"), "{release}: {down:?}");
        }
    }
}
