//! Ledger, stored in Kubernetes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::domain::history::Entry;
use crate::domain::ledger::Ledger;
use crate::k8s::{Group, K8s, K8sError, Last, ResourceVersion};
use crate::live::failure::kube_failure;
use crate::ports::{Failure, LedgerStore, LoadError, Saved, passing};

/// Ledger in its ConfigMap.
pub struct Ledgers {
    k8s: Arc<K8s>,
    /// Last load. Another process may have saved since: each act and each save notices that.
    last: Last<Stored>,
}

/// Keys of the ledger with its version; `None` if there is no ledger.
type Stored = Option<(BTreeMap<String, String>, ResourceVersion)>;

impl Ledgers {
    /// Creates the access, which loads nothing yet.
    pub fn new(k8s: Arc<K8s>) -> Self {
        Self { k8s, last: Last::default() }
    }
}

impl LedgerStore for Ledgers {
    type Version = Option<ResourceVersion>;

    fn forget(&mut self) -> bool {
        self.last.forget()
    }

    async fn load(&mut self) -> Result<(Ledger, Self::Version), LoadError> {
        let now = self.k8s.changes().mark(&[Group::Ledger]);
        let stored = self.last.get(now, self.k8s.load()).await.map_err(kube_failure)?;
        let (keys, version) = stored.map_or((BTreeMap::new(), None), |(keys, version)| (keys, Some(version)));
        Ok((Ledger::from_keys(&keys)?, version))
    }

    async fn save(&mut self, ledger: &Ledger, version: Self::Version) -> Result<Saved, Failure> {
        let keys = ledger
            .to_keys()
            .map_err(|error| passing(format!("the ledger cannot be written as JSON: {error}")))?;
        self.last.forget();
        match self.k8s.save(keys, version.as_ref()).await {
            Ok(_) => Ok(Saved::Stored),
            Err(K8sError::Conflict { .. } | K8sError::AlreadyExists(_)) => Ok(Saved::Conflict),
            Err(error) => Err(kube_failure(error)),
        }
    }

    async fn append(&mut self, entries: &[Entry]) -> Result<Saved, Failure> {
        match self.k8s.expect_ledger().await {
            Ok(()) => self.k8s.append_history(entries).await.map(|()| Saved::Stored).map_err(kube_failure),
            Err(K8sError::Unexpected { .. }) => Ok(Saved::Conflict),
            Err(error) => Err(kube_failure(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::k8s::Watched;
    use crate::k8s::wire::{Exchange, on, play_shared};

    const MAPS: &str = "/api/v1/namespaces/rook-ceph/configmaps";

    fn stored(version: &str) -> Value {
        let data = Ledger::default().to_keys().unwrap();
        json!({"metadata": {"name": "osd-migrate-ledger", "resourceVersion": version}, "data": data})
    }

    fn read(version: &str) -> Exchange {
        on(&format!("GET {MAPS}/osd-migrate-ledger"), 200, stored(version))
    }

    /// Checks which loads are requests: the script has no others.
    #[tokio::test]
    async fn ledger_is_read_again_after_a_change_a_save_or_on_demand() {
        let collection = json!({"metadata": {"resourceVersion": "7"}, "items": []});
        let params = "watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion=7";
        let script = vec![
            read("1"),
            read("1"),
            on(&format!("GET {MAPS}?&limit=1"), 200, collection),
            on(&format!("GET {MAPS}?&{params}"), 200, json!({"type": "MODIFIED", "object": stored("8")})),
            read("8"),
            read("8"),
            read("8"),
            on(&format!("PUT {MAPS}/osd-migrate-ledger?&fieldManager=osd-migrate"), 200, stored("9")),
            read("9"),
        ];
        let loads = async |k8s: Arc<K8s>| {
            let mut ledgers = Ledgers::new(Arc::clone(&k8s));
            // Nothing is watched yet: each load is a request.
            for _ in 0..2 {
                assert!(!ledgers.forget());
                ledgers.load().await.unwrap();
            }
            k8s.watch(Watched::Maps, None).await.unwrap();
            ledgers.load().await.unwrap();
            ledgers.load().await.unwrap();
            assert!(ledgers.forget());
            ledgers.load().await.unwrap();
            ledgers.load().await.unwrap();
            k8s.changes().note(Group::Ledger);
            let (ledger, version) = ledgers.load().await.unwrap();
            assert_eq!(version, Some(ResourceVersion("8".to_owned())));
            assert_eq!(ledgers.save(&ledger, version).await, Ok(Saved::Stored));
            let (_, version) = ledgers.load().await.unwrap();
            assert_eq!(version, Some(ResourceVersion("9".to_owned())));
        };
        play_shared(script, loads).await;
    }
}
