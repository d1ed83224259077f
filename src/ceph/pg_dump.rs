//! `ceph pg dump` and `ceph pg ls`: statistics of the placement groups, queried from the mgr itself (a mon
//! would only forward the query).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::ceph::command::Command;
use crate::ceph::numbers::above_zero;
use crate::domain::observation::Pg;
use crate::domain::osd::{Epoch, OsdId, PgId};
use crate::domain::shared::Shared;

/// `CRUSH_ITEM_NONE`: no OSD for this shard of an erasure coded PG.
const ITEM_NONE: u32 = 0x7fff_ffff;

/// State and OSDs of a PG, without its counters (`pgs_brief`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Brief {
    /// States, split at `+`.
    pub(super) state: Shared<BTreeSet<String>>,
    /// OSDs that should hold the PG.
    pub(super) up: BTreeSet<OsdId>,
    /// OSDs that serve the PG.
    pub(super) acting: BTreeSet<OsdId>,
}

/// Part of a PG's entry that an observation keeps.
trait Kept<'de>: Sized {
    type Entry: Deserialize<'de>;

    /// Converts an entry.
    fn of(entry: Self::Entry) -> (PgId, Self);
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "T: Kept<'de>"))]
struct Answer<T> {
    pg_ready: bool,
    #[serde(default = "Stats::none")]
    pg_stats: Stats<T>,
}

/// PGs, inserted into their map one by one: 100,000 of them need no additional list.
struct Stats<T>(BTreeMap<PgId, T>);

impl<T> Stats<T> {
    fn none() -> Self {
        Self(BTreeMap::new())
    }
}

impl<'de, T: Kept<'de>> Deserialize<'de> for Stats<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Entries(PhantomData))
    }
}

struct Entries<T>(PhantomData<T>);

impl<'de, T: Kept<'de>> Visitor<'de> for Entries<T> {
    type Value = Stats<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of PGs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Stats<T>, A::Error> {
        let mut pgs = BTreeMap::new();
        while let Some(entry) = list.next_element::<T::Entry>()? {
            let (id, kept) = T::of(entry);
            pgs.insert(id, kept);
        }
        Ok(Stats(pgs))
    }
}

#[derive(Deserialize)]
struct Entry<'a> {
    pgid: PgId,
    #[serde(borrow)]
    state: Cow<'a, str>,
    up: Vec<u32>,
    acting: Vec<u32>,
    reported_epoch: Epoch,
    stat_sum: Sums,
}

/// Counters that are signed in Ceph: they are below zero for a moment while statistics are being corrected.
#[derive(Deserialize)]
struct Sums {
    #[serde(rename = "num_bytes")]
    bytes: i64,
    #[serde(rename = "num_objects")]
    objects: i64,
    #[serde(rename = "num_objects_degraded")]
    degraded: i64,
    #[serde(rename = "num_objects_misplaced")]
    misplaced: i64,
}

#[derive(Deserialize)]
struct BriefEntry<'a> {
    pgid: PgId,
    #[serde(borrow)]
    state: Cow<'a, str>,
    up: Vec<u32>,
    acting: Vec<u32>,
}

/// Returns the query for the complete statistics of all PGs.
pub(super) fn all() -> Command {
    Command::mgr("pg dump").with("dumpcontents", vec!["pgs"])
}

/// Returns the query for the states and OSDs of all PGs.
///
/// For 33,792 PGs it takes 0.04 s of the mgr's CPU time and 3 MB, the query for all statistics 1.15 s and
/// 73 MB (16.2.15).
pub(super) fn brief() -> Command {
    Command::mgr("pg dump").with("dumpcontents", vec!["pgs_brief"])
}

/// Returns the query for the complete statistics of the PGs that have at least one of these states.
pub(super) fn in_states(states: &BTreeSet<String>) -> Command {
    Command::mgr("pg ls").with("states", states.iter().cloned().collect::<Vec<_>>())
}

/// Parses complete statistics.
///
/// Returns none while the mgr is not ready: the missing PGs show that the statistics are not fresh.
pub(super) fn parse(answer: &[u8]) -> serde_json::Result<BTreeMap<PgId, Pg>> {
    pgs(answer)
}

/// Parses states and OSDs.
///
/// Returns none while the mgr is not ready.
pub(super) fn parse_brief(answer: &[u8]) -> serde_json::Result<BTreeMap<PgId, Brief>> {
    pgs(answer)
}

fn pgs<'de, T: Kept<'de>>(answer: &'de [u8]) -> serde_json::Result<BTreeMap<PgId, T>> {
    let Answer { pg_ready, pg_stats } = serde_json::from_slice(answer)?;
    Ok(if pg_ready { pg_stats.0 } else { BTreeMap::new() })
}

impl<'de> Kept<'de> for Pg {
    type Entry = Entry<'de>;

    fn of(entry: Entry<'de>) -> (PgId, Self) {
        let kept = Self {
            pool: entry.pgid.pool,
            state: words(&entry.state),
            up: osds(&entry.up),
            acting: osds(&entry.acting),
            reported_epoch: entry.reported_epoch,
            objects: above_zero(entry.stat_sum.objects),
            degraded: above_zero(entry.stat_sum.degraded),
            misplaced: above_zero(entry.stat_sum.misplaced),
            bytes: above_zero(entry.stat_sum.bytes),
        };
        (entry.pgid, kept)
    }
}

impl<'de> Kept<'de> for Brief {
    type Entry = BriefEntry<'de>;

    fn of(entry: BriefEntry<'de>) -> (PgId, Self) {
        let kept = Self { state: words(&entry.state), up: osds(&entry.up), acting: osds(&entry.acting) };
        (entry.pgid, kept)
    }
}

/// Returns the words of a state, which all PGs in it share: 300,000 PGs have some ten states.
pub(super) fn words(state: &str) -> Shared<BTreeSet<String>> {
    static KNOWN: Mutex<BTreeMap<String, Shared<BTreeSet<String>>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(words) = known.get(state) {
        return words.clone();
    }
    let words = Shared::from(state.split('+').map(str::to_owned).collect::<BTreeSet<_>>());
    known.insert(state.to_owned(), words.clone());
    words
}

fn osds(set: &[u32]) -> BTreeSet<OsdId> {
    set.iter().copied().filter(|osd| *osd != ITEM_NONE).map(OsdId).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ceph::samples::answer;

    fn pg(release: &str, state: &str, id: &str) -> Pg {
        let pgs = parse(&answer(release, &format!("pg-dump{state}"))).unwrap();
        pgs[&id.parse::<PgId>().unwrap()].clone()
    }

    fn states(states: &[&str]) -> Shared<BTreeSet<String>> {
        states.iter().map(|state| (*state).to_owned()).collect()
    }

    #[test]
    fn clean_pg_is_read_with_equal_up_and_acting_sets() {
        for (release, pool, id) in [("16.2.15", 2, "2.1f"), ("18.2.7", 1, "1.0"), ("20.2.4", 1, "1.0")] {
            let clean = pg(release, "", id);
            assert_eq!((clean.pool, clean.state), (pool, states(&["active", "clean"])), "{release}");
            assert_eq!(clean.up, [1, 2, 3].map(OsdId).into(), "{release}");
            assert_eq!(clean.acting, clean.up, "{release}");
        }
    }

    #[test]
    fn brief_answer_has_states_and_osds() {
        let pgs = parse_brief(&answer("16.2.15", "pg-dump-brief")).unwrap();
        let osds = [1, 3, 5].map(OsdId).into();
        let expected =
            Brief { state: states(&["active", "clean"]), up: osds, acting: [1, 3, 5].map(OsdId).into() };
        assert_eq!((pgs.len(), &pgs[&"1.1f".parse::<PgId>().unwrap()]), (3, &expected));
        // No PG is in these states: the answer has no list.
        assert!(parse(br#"{"pg_ready":true}"#).unwrap().is_empty());
    }

    #[test]
    fn undersized_pg_is_read_without_the_down_osd() {
        for (release, id, epoch) in [("16.2.15", "2.1f", 24), ("18.2.7", "1.0", 30), ("20.2.4", "1.0", 35)] {
            let short = pg(release, ".down", id);
            assert_eq!(short.state, states(&["active", "undersized"]), "{release}");
            let expected = ([2, 3].map(OsdId).into(), Epoch(epoch));
            assert_eq!((short.acting, short.reported_epoch), expected, "{release}");
        }
    }

    #[test]
    fn erasure_coded_pg_hole_is_never_an_osd() {
        for (release, pool, id) in [("16.2.15", 3, "3.0"), ("18.2.7", 2, "2.0"), ("20.2.4", 3, "3.0")] {
            let hole = pg(release, ".ec-hole", id);
            assert_eq!((hole.pool, hole.up, hole.acting.len()), (pool, [2, 3].map(OsdId).into(), 2));
        }
    }

    #[test]
    fn pg_id_without_a_pool_is_an_error() {
        let answer = br#"{"pg_ready":true,"pg_stats":[{"pgid":"x","state":"active","up":[],"acting":[],"reported_epoch":1,
            "stat_sum":{"num_bytes":0,"num_objects":0,"num_objects_degraded":0,"num_objects_misplaced":0}}]}"#;
        let error = parse(answer).unwrap_err().to_string();
        assert!(error.starts_with("`x` is not a PG"), "{error}");
    }

    #[test]
    fn pg_dump_of_a_mgr_that_is_not_ready_is_empty() {
        assert!(parse(br#"{"pg_ready":false}"#).unwrap().is_empty());
    }
}
