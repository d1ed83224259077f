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
    /// Last load or save. Another process may have saved since: each act and each save notices that.
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
        let changes = self.k8s.changes();
        let now = changes.mark(&[Group::Ledger]);
        let kept = self.last.value().and_then(Option::as_ref);
        if kept.is_some_and(|(_, version)| changes.last_led_to(&version.0)) {
            self.last.renew(now.as_ref());
        }
        let stored = self.last.get(now, self.k8s.load()).await.map_err(kube_failure)?;
        let (keys, version) = stored.map_or((BTreeMap::new(), None), |(keys, version)| (keys, Some(version)));
        Ok((Ledger::from_keys(&keys)?, version))
    }

    async fn save(&mut self, ledger: &Ledger, version: Self::Version) -> Result<Saved, Failure> {
        let keys = ledger
            .to_keys()
            .map_err(|error| passing(format!("the ledger cannot be written as JSON: {error}")))?;
        self.last.forget();
        let before = self.k8s.changes().mark(&[Group::Ledger]);
        match self.k8s.save(keys.clone(), version.as_ref()).await {
            Ok(stored) => {
                // An answer that something changed or shortened on its way is no ledger: it is read.
                if stored.0 == keys {
                    self.last.keep(before, Some(stored));
                }
                Ok(Saved::Stored)
            }
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

    fn saved(answer: Value) -> Exchange {
        on(&format!("PUT {MAPS}/osd-migrate-ledger?&fieldManager=osd-migrate"), 200, answer)
    }

    fn begin() -> Exchange {
        let collection = json!({"metadata": {"resourceVersion": "7"}, "items": []});
        on(&format!("GET {MAPS}?&limit=1"), 200, collection)
    }

    /// Returns a watch that goes on from a version, and reports that the ledger has another one.
    fn watch(from: &str, version: &str) -> Exchange {
        let params = format!("watch=true&timeoutSeconds=290&allowWatchBookmarks=true&resourceVersion={from}");
        on(&format!("GET {MAPS}?&{params}"), 200, json!({"type": "MODIFIED", "object": stored(version)}))
    }

    /// Loads the ledger, and returns its version.
    async fn loaded(ledgers: &mut Ledgers) -> String {
        ledgers.load().await.unwrap().1.unwrap().0
    }

    async fn load_and_save(ledgers: &mut Ledgers) {
        let (ledger, version) = ledgers.load().await.unwrap();
        assert_eq!(ledgers.save(&ledger, version).await, Ok(Saved::Stored));
    }

    /// Checks which loads are requests: the script has no others.
    #[tokio::test]
    async fn ledger_is_read_again_after_a_change_or_on_demand() {
        let script =
            vec![read("1"), read("1"), begin(), watch("7", "8"), read("8"), read("8"), read("8"), read("8")];
        let loads = async |k8s: Arc<K8s>| {
            let mut ledgers = Ledgers::new(Arc::clone(&k8s));
            // Nothing is watched yet: each load is a request.
            for _ in 0..2 {
                assert!(!ledgers.forget());
                loaded(&mut ledgers).await;
            }
            k8s.watch(Watched::Maps, None).await.unwrap();
            loaded(&mut ledgers).await;
            loaded(&mut ledgers).await;
            assert!(ledgers.forget());
            loaded(&mut ledgers).await;
            loaded(&mut ledgers).await;
            // An act has found another ledger, or changes were missed.
            for _ in 0..2 {
                k8s.changes().note(Group::Ledger);
                assert_eq!(loaded(&mut ledgers).await, "8");
                assert_eq!(loaded(&mut ledgers).await, "8");
            }
        };
        play_shared(script, loads).await;
    }

    #[tokio::test]
    async fn saved_ledger_is_read_again_only_after_another_save() {
        let script = vec![
            begin(),
            watch("7", "8"),
            read("8"),
            saved(stored("9")),
            watch("8", "9"),
            watch("9", "10"),
            read("10"),
        ];
        let saves = async |k8s: Arc<K8s>| {
            let mut ledgers = Ledgers::new(Arc::clone(&k8s));
            k8s.watch(Watched::Maps, None).await.unwrap();
            load_and_save(&mut ledgers).await;
            assert_eq!(loaded(&mut ledgers).await, "9");
            k8s.watch(Watched::Maps, Some("8".to_owned())).await.unwrap();
            assert_eq!(loaded(&mut ledgers).await, "9", "the watch reported this very save");
            k8s.watch(Watched::Maps, Some("9".to_owned())).await.unwrap();
            assert_eq!(loaded(&mut ledgers).await, "10", "another client saved");
            assert_eq!(loaded(&mut ledgers).await, "10");
        };
        play_shared(script, saves).await;
    }

    #[tokio::test]
    async fn ledger_is_read_after_a_save_whose_answer_lacks_it() {
        let cut = json!({"metadata": {"name": "osd-migrate-ledger", "resourceVersion": "9"}});
        let script = vec![begin(), watch("7", "8"), read("8"), saved(cut), read("9")];
        let saves = async |k8s: Arc<K8s>| {
            let mut ledgers = Ledgers::new(Arc::clone(&k8s));
            k8s.watch(Watched::Maps, None).await.unwrap();
            load_and_save(&mut ledgers).await;
            assert_eq!(loaded(&mut ledgers).await, "9");
        };
        play_shared(script, saves).await;
    }

    #[tokio::test]
    async fn saved_ledger_is_read_again_while_no_watch_is_there() {
        let script = vec![read("8"), saved(stored("9")), read("9")];
        let saves = async |k8s: Arc<K8s>| {
            let mut ledgers = Ledgers::new(k8s);
            load_and_save(&mut ledgers).await;
            assert_eq!(loaded(&mut ledgers).await, "9");
        };
        play_shared(script, saves).await;
    }
}
