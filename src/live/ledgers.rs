//! Ledger, stored in Kubernetes.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::domain::history::Entry;
use crate::domain::ledger::Ledger;
use crate::k8s::{K8s, K8sError, Last, ResourceVersion, Watched};
use crate::live::failure::kube_failure;
use crate::ports::{Failure, LedgerStore, LoadError, Saved, passing};

/// Ledger in its ConfigMap.
pub struct Ledgers {
    k8s: Arc<K8s>,
    /// What was loaded last. Another process may have saved since: each act and each save notices that.
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

    async fn load(&mut self) -> Result<(Ledger, Self::Version), LoadError> {
        let now = self.k8s.changes().mark(&[Watched::Maps]);
        let stored = self.last.get(now, self.k8s.load()).await.map_err(kube_failure)?;
        let (keys, version) = stored.map_or((BTreeMap::new(), None), |(keys, version)| (keys, Some(version)));
        Ok((Ledger::from_keys(&keys)?, version))
    }

    async fn save(&mut self, ledger: &Ledger, version: Self::Version) -> Result<Saved, Failure> {
        let keys = ledger
            .to_keys()
            .map_err(|error| passing(format!("the ledger cannot be written as JSON: {error}")))?;
        self.last = Last::default();
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
