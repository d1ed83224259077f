//! `ceph pg stat`: the number of PGs by state, queried from the mgr.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::ceph::command::Command;
use crate::ceph::pg_dump::words;
use crate::domain::gate;

/// Numbers of PGs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Counts {
    /// PGs in any state.
    pub(super) all: usize,
    /// PGs that are not active+clean.
    pub(super) unclean: usize,
    /// Words of their states that no clean PG has.
    pub(super) words: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Answer {
    pg_ready: bool,
    pg_summary: Option<Summary>,
}

#[derive(Deserialize)]
struct Summary {
    num_pgs: usize,
    num_pg_by_state: Vec<State>,
}

#[derive(Deserialize)]
struct State {
    name: String,
    num: usize,
}

pub(super) fn command() -> Command {
    Command::mgr("pg stat")
}

/// Parses the numbers; `None` while the mgr is not ready.
pub(super) fn parse(answer: &[u8]) -> serde_json::Result<Option<Counts>> {
    let Answer { pg_ready, pg_summary } = serde_json::from_slice(answer)?;
    Ok(pg_summary.filter(|_| pg_ready).map(|Summary { num_pgs, num_pg_by_state }| {
        let states = num_pg_by_state.into_iter().map(|state| (words(&state.name), state.num));
        let unclean: Vec<_> = states.filter(|(words, _)| !gate::is_clean_state(words)).collect();
        Counts {
            all: num_pgs,
            unclean: unclean.iter().map(|(_, number)| number).sum(),
            words: unclean
                .iter()
                .flat_map(|(words, _)| gate::unclean_words(words))
                .map(str::to_owned)
                .collect(),
        }
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ceph::samples::answer;

    #[test]
    fn pg_counts_by_state_are_read_in_each_release() {
        let words = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        for (release, all, down) in [
            ("16.2.15", 33, ["undersized"].as_slice()),
            ("18.2.7", 32, &["undersized"]),
            ("20.2.4", 33, &["undersized", "degraded"]),
        ] {
            let counts = |name: &str| parse(&answer(release, name)).unwrap().unwrap();
            let clean = Counts { all, unclean: 0, words: BTreeSet::new() };
            assert_eq!(counts("pg-stat"), clean, "{release}");
            let short = Counts { unclean: all, words: words(down), ..clean };
            assert_eq!(counts("pg-stat.down"), short, "{release}");
        }
    }

    #[test]
    fn pg_that_scrubs_is_clean_and_one_that_is_only_active_is_not() {
        let answer = |name: &str| {
            let text =
                r#"{"pg_ready":true,"pg_summary":{"num_pgs":3,"num_pg_by_state":[{"name":"NAME","num":3}]}}"#;
            parse(text.replace("NAME", name).as_bytes()).unwrap().unwrap()
        };
        assert_eq!(answer("active+clean+scrubbing+deep").unclean, 0);
        for name in ["active", "unknown"] {
            assert_eq!(answer(name).unclean, 3, "{name}");
        }
        assert!(answer("active").words.is_empty(), "pg ls has no state for it");
    }

    #[test]
    fn pg_stat_of_a_mgr_that_is_not_ready_has_no_counts() {
        assert_eq!(parse(br#"{"pg_ready":false}"#).unwrap(), None);
        let empty = br#"{"pg_ready":false,"pg_summary":{"num_pg_by_state":[],"num_pgs":0}}"#;
        assert_eq!(parse(empty).unwrap(), None);
    }
}
