//! `ceph versions`: releases of the daemons that run.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::command::Command;

#[derive(Deserialize)]
struct Answer {
    overall: Map<String, Value>,
}

pub(super) fn command() -> Command {
    Command::mon("versions")
}

/// Whether daemons of more than one release run.
pub(super) fn parse(answer: &[u8]) -> serde_json::Result<bool> {
    serde_json::from_slice(answer).map(|Answer { overall }| overall.len() > 1)
}

#[cfg(test)]
mod tests {
    use super::super::samples::{RELEASES, answer};
    use super::*;

    #[test]
    fn one_release_is_not_mixed_and_two_are() {
        for release in RELEASES {
            assert!(!parse(&answer(release, "versions")).unwrap(), "{release}");
        }
        assert!(parse(&answer("half-upgraded", "versions")).unwrap());
        assert!(
            parse(br#"{"mon":{},"overall":{"ceph version 16.2.15 (x)":3,"ceph version 18.2.7 (y)":1}}"#)
                .unwrap()
        );
    }
}
