//! Data that outlives a run: the ledger, the history, the status. They are text in ConfigMaps; only the
//! ledger code interprets it.
//!
//! None of the ConfigMaps has an owner: the end of a Job must not delete them.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use crate::domain::expect;
use crate::domain::history::{self, Entry};
use crate::k8s::changes::Group;
use crate::k8s::client::access::{K8s, Loaded, ResourceVersion};
use crate::k8s::client::error::K8sError;
use crate::k8s::names::{OURS, PART, Part, labels};

/// ConfigMap of the ledger.
pub const LEDGER: &str = "osd-migrate-ledger";
/// ConfigMap of the progress that `status` shows.
pub const STATUS: &str = "osd-migrate-status";
/// Beginning of the names of the ConfigMaps of the history.
pub(in crate::k8s) const HISTORY: &str = "osd-migrate-history-";
const LINES: &str = "lines";

/// Size limit of the ledger: the API server refuses more than 1 MiB, metadata included.
///
/// A save that would come near that size is refused before the act it is saved for. Long before, no other
/// record is opened (`src/domain/ledger/bounds.rs`): the rest is for OSDs in progress.
const LEDGER_LIMIT: usize = 1000 * 1024;
/// Size of one shard of the history.
const SHARD: usize = 512 * 1024;

impl K8s {
    /// Reads the ledger; none if none was ever saved.
    pub async fn load(&self) -> Result<Option<(BTreeMap<String, String>, ResourceVersion)>, K8sError> {
        let map = self.kind::<ConfigMap>().get_opt(LEDGER).await?;
        let version = map.as_ref().map(version_of);
        self.decide_by(version.clone());
        Ok(map.and_then(|map| Some((map.data.unwrap_or_default(), version?))))
    }

    /// Notes the version of the ledger that the next acts are decided by.
    fn decide_by(&self, version: Option<ResourceVersion>) {
        *self.decided_by.lock().unwrap_or_else(PoisonError::into_inner) = Some(Loaded(version));
    }

    /// Fails if the ledger was saved since it was loaded.
    ///
    /// Every act requires this, in addition to its own conditions: the act was decided by the loaded ledger.
    /// Between two saves, an act does no harm if it is done twice. After a save by another runner, the record
    /// of the act may have been closed long ago, and then no runner would revert the act.
    pub async fn expect_ledger(&self) -> Result<(), K8sError> {
        let expected = self.decided_by.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(Loaded(expected)) = expected else { return Ok(()) }; // nothing was decided by it
        let found = self.kind::<ConfigMap>().version(LEDGER).await?.map(ResourceVersion);
        if expect::decided_by_ledger(&found, &expected) {
            return Ok(());
        }
        // A watch that is behind has not reported it yet.
        self.changes().note(Group::Ledger);
        Err(K8sError::Unexpected {
            what: format!("configmap/{LEDGER}"),
            found: "another client saved it since the act was decided".to_owned(),
        })
    }

    /// Saves the ledger, if it is still at `expected` (none: if there is still none); else a conflict.
    ///
    /// Returns what is stored now, as a load would. The next acts are decided by it.
    pub async fn save(
        &self,
        data: BTreeMap<String, String>,
        expected: Option<&ResourceVersion>,
    ) -> Result<(BTreeMap<String, String>, ResourceVersion), K8sError> {
        let bytes = data.iter().map(|(key, value)| key.len() + value.len()).sum();
        if bytes > LEDGER_LIMIT {
            return Err(K8sError::TooBig { what: format!("configmap/{LEDGER}"), bytes, limit: LEDGER_LIMIT });
        }
        let stored = self.put_map(map(LEDGER, Part::Ledger, data), expected).await?;
        let version = version_of(&stored);
        self.decide_by(Some(version.clone()));
        Ok((stored.data.unwrap_or_default(), version))
    }

    /// Appends entries to the history; an entry that exists already is not added again.
    ///
    /// An earlier write of that entry may have succeeded although no answer came, or another runner may have
    /// written the entry while this one was frozen.
    pub async fn append_history(&self, entries: &[Entry]) -> Result<(), K8sError> {
        let maps = self.kind::<ConfigMap>();
        let last = self.shards().await?.pop();
        let current = match last {
            Some(number) => Some(maps.get(&format!("{HISTORY}{number}")).await?),
            None => None,
        };
        let version = current.as_ref().map(version_of);
        let written =
            current.and_then(|map| map.data).and_then(|mut data| data.remove(LINES)).unwrap_or_default();
        match append(&written, &history::missing(&written, entries)) {
            Appended::Already => Ok(()),
            Appended::Here(lines) => {
                let name = format!("{HISTORY}{}", last.unwrap_or(0));
                self.put_map(shard(&name, lines), version.as_ref()).await.map(drop)
            }
            Appended::Next(lines) => {
                let name = format!("{HISTORY}{}", last.map_or(0, |number| number.saturating_add(1)));
                self.put_map(shard(&name, lines), None).await.map(drop)
            }
        }
    }

    /// Reads the lines of the history, the oldest shard first.
    pub async fn read_history(&self) -> Result<Vec<String>, K8sError> {
        let maps = self.kind::<ConfigMap>();
        let mut texts = Vec::new();
        for number in self.shards().await? {
            let map = maps.get(&format!("{HISTORY}{number}")).await?;
            texts.extend(map.data.and_then(|mut data| data.remove(LINES)));
        }
        Ok(texts)
    }

    /// Returns the numbers of the shards in ascending order.
    async fn shards(&self) -> Result<Vec<u32>, K8sError> {
        let selector = format!("app.kubernetes.io/name={OURS},{PART}={}", Part::History.as_str());
        let names = self.kind::<ConfigMap>().names(&selector).await?;
        let numbers = names.iter().filter_map(|name| name.strip_prefix(HISTORY)?.parse().ok());
        let mut numbers: Vec<u32> = numbers.collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Writes the progress; the last writer wins.
    pub async fn write_status(&self, json: &str) -> Result<(), K8sError> {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": STATUS, "labels": labels(Part::Status)},
            "data": {"status": json},
        });
        self.kind::<ConfigMap>().apply(STATUS, &object).await.map(drop)
    }

    /// Reads the progress.
    pub async fn read_status(&self) -> Result<Option<String>, K8sError> {
        let map = self.kind::<ConfigMap>().get_opt(STATUS).await?;
        Ok(map.and_then(|map| map.data).and_then(|mut data| data.remove("status")))
    }

    async fn put_map(
        &self,
        mut map: ConfigMap,
        expected: Option<&ResourceVersion>,
    ) -> Result<ConfigMap, K8sError> {
        let maps = self.kind::<ConfigMap>();
        let name = map.metadata.name.clone().unwrap_or_default();
        let saved = match expected {
            Some(version) => {
                map.metadata.resource_version = Some(version.0.clone());
                maps.replace(&name, &map).await
            }
            None => maps.create(&name, &map).await,
        };
        match saved {
            Ok(map) => Ok(map),
            // Both errors mean that the object changed since it was read.
            Err(K8sError::AlreadyExists(call)) => {
                Err(K8sError::Conflict { call, message: "another client created it meanwhile".to_owned() })
            }
            Err(K8sError::NotFound(call)) => {
                Err(K8sError::Conflict { call, message: "another client deleted it meanwhile".to_owned() })
            }
            Err(error) => Err(error),
        }
    }
}

fn version_of(map: &ConfigMap) -> ResourceVersion {
    ResourceVersion(map.metadata.resource_version.clone().unwrap_or_default())
}

fn map(name: &str, part: Part, data: BTreeMap<String, String>) -> ConfigMap {
    let mut map = ConfigMap { data: Some(data), ..ConfigMap::default() };
    map.metadata.name = Some(name.to_owned());
    map.metadata.labels = Some(labels(part));
    map
}

fn shard(name: &str, lines: String) -> ConfigMap {
    map(name, Part::History, [(LINES.to_owned(), lines)].into())
}

#[derive(Debug, PartialEq, Eq)]
enum Appended {
    Already,
    Here(String),
    Next(String),
}

/// Appends lines that the shard does not have.
fn append(written: &str, lines: &[String]) -> Appended {
    if lines.is_empty() {
        return Appended::Already;
    }
    let lines = format!("{}\n", lines.join("\n"));
    if !written.is_empty() && written.len() + lines.len() >= SHARD {
        return Appended::Next(lines);
    }
    Appended::Here(format!("{written}{lines}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ledger_history_appends_lines_and_continues_in_a_new_shard() {
        let lines = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>();
        assert_eq!(append("", &lines(&["a"])), Appended::Here("a\n".to_owned()));
        assert_eq!(append("a\n", &lines(&["b", "c"])), Appended::Here("a\nb\nc\n".to_owned()));
        assert_eq!(append("a\n", &[]), Appended::Already);
        assert_eq!(append(&"x".repeat(SHARD), &lines(&["b"])), Appended::Next("b\n".to_owned()));
    }
}
