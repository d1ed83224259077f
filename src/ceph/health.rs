//! `ceph health`: codes of the checks that are raised.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::command::Command;

#[derive(Deserialize)]
struct Answer {
    checks: Map<String, Value>,
}

pub(super) fn command() -> Command {
    Command::mon("health")
}

/// Codes (`OSD_DOWN`), the muted ones too: a mute hides a fact, it does not undo it.
pub(super) fn parse(answer: &[u8]) -> serde_json::Result<BTreeSet<String>> {
    serde_json::from_slice(answer).map(|Answer { checks }| checks.into_iter().map(|(code, _)| code).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_are_raised_are_read() {
        let fine = parse(include_bytes!("../../tests/suite/fixtures/ceph/16.2.15/health.json")).unwrap();
        assert!(fine.is_empty(), "{fine:?}");
        let down = parse(include_bytes!("../../tests/suite/fixtures/ceph/16.2.15/health.down.json")).unwrap();
        assert!(down.contains("OSD_DOWN") && down.contains("OSD_FLAGS"), "{down:?}");
    }
}
