//! Format of the stored ledger: writing and reading of texts by key.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::bounds::nodes_to_json;
use super::{FORMAT, Ledger, Record, Run};

/// Reason why the stored ledger cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "ledger-")]
pub enum Unreadable {
    /// A newer program wrote the ledger.
    #[error(
        "the ledger has format {0}, but this osd-migrate supports formats up to {FORMAT} only. Use the \
         osd-migrate that wrote the ledger, or a newer one"
    )]
    Newer(u32),
    /// A key does not parse.
    #[error(
        "the key `{key}` of the ledger cannot be read ({why}); nothing was changed. See: kubectl -n \
         NAMESPACE get configmap osd-migrate-ledger -o yaml"
    )]
    Broken {
        /// key that does not parse
        key: String,
        /// message of the parser
        why: String,
    },
    /// `run` lists an open record whose key is missing, or a key exists that `run` does not list.
    #[error(
        "the ledger lists the records {listed:?}, but contains the records {held:?}: a record was lost or \
         added by hand; nothing was changed. See: kubectl -n NAMESPACE get configmap osd-migrate-ledger -o \
         yaml"
    )]
    #[strum(serialize = "records-lost")]
    Lost {
        /// ids in `run`
        listed: Vec<u32>,
        /// ids that have a key
        held: Vec<u32>,
    },
}

impl Unreadable {
    /// Returns the code: the anchor of the error in the reference of messages.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}

/// Content of the key `run`: the run and the list of open records, in the same write.
#[derive(Serialize, Deserialize)]
struct StoredRun {
    #[serde(flatten)]
    run: Run,
    open: Vec<u32>,
}

impl Ledger {
    /// Returns one text per key: `format`, `run`, `nodes`, and `osd-<id>` for each open record.
    pub fn to_keys(&self) -> Result<BTreeMap<String, String>, serde_json::Error> {
        let open = self.records.keys().map(|osd| osd.0).collect();
        let mut keys = BTreeMap::from([
            ("format".to_owned(), FORMAT.to_string()),
            ("run".to_owned(), serde_json::to_string(&StoredRun { run: self.run.clone(), open })?),
            ("nodes".to_owned(), nodes_to_json(&self.nodes)?),
        ]);
        for record in self.records.values() {
            keys.insert(format!("osd-{}", record.osd.0), serde_json::to_string(record)?);
        }
        Ok(keys)
    }

    /// Reads the keys that `to_keys` wrote; no keys at all give an empty ledger.
    pub fn from_keys(keys: &BTreeMap<String, String>) -> Result<Self, Unreadable> {
        if keys.is_empty() {
            return Ok(Self::default());
        }
        let broken = |key: &str, why: String| Unreadable::Broken { key: key.to_owned(), why };
        let text = |key: &str| keys.get(key).ok_or_else(|| broken(key, "the key is missing".to_owned()));
        let format: u32 = text("format")?.parse().map_err(|e| broken("format", format!("{e}")))?;
        if format > FORMAT {
            return Err(Unreadable::Newer(format));
        }
        let stored: StoredRun =
            serde_json::from_str(text("run")?).map_err(|e| broken("run", e.to_string()))?;
        let nodes = serde_json::from_str(text("nodes")?).map_err(|e| broken("nodes", e.to_string()))?;
        let mut records = BTreeMap::new();
        for (key, value) in keys.iter().filter(|(key, _)| key.starts_with("osd-")) {
            let record: Record = serde_json::from_str(value).map_err(|e| broken(key, e.to_string()))?;
            if *key != format!("osd-{}", record.osd.0) {
                return Err(broken(key, format!("it contains {}", record.osd)));
            }
            records.insert(record.osd, record);
        }
        let held: Vec<u32> = records.keys().map(|osd| osd.0).collect();
        if held != stored.open {
            return Err(Unreadable::Lost { listed: stored.open, held });
        }
        Ok(Self { run: stored.run, records, nodes })
    }
}
