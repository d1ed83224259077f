//! The key of an encrypted OSD on a PVC: a Secret as Rook creates it.
//!
//! osd-migrate creates the Secret, and does nothing else with it: it may contain the only key of an OSD that
//! is up. Only the agent reads the key, from its mount.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use serde_json::{Value, json};

use crate::domain::osd::pvc::{KEY_IN_SECRET, key_secret};
use crate::domain::policy::Declaration;
use crate::k8s::client::access::K8s;
use crate::k8s::client::error::{K8sError, there_already};
use crate::k8s::client::kind::typed;
use crate::k8s::rook::ceph_cluster::owned_by;
use crate::k8s::rook::mon_access::Key;

/// Longest name of an object in Kubernetes (a DNS subdomain).
const LONGEST_NAME: usize = 253;

/// Length of a key, as Rook's (pkg/operator/ceph/cluster/osd/config.go, `dmCryptKeySize`, v1.20.6).
const KEY_BYTES: usize = 128;

impl K8s {
    /// Creates the Secret with the key of an OSD on a PVC; an existing Secret stays unchanged.
    ///
    /// An existing Secret is the key of an earlier attempt, or Rook's. Rook itself never replaces a key
    /// (pkg/daemon/ceph/osd/kms/k8s.go, `storeSecretInKubernetes`, v1.20.6). The Secret stays if the record
    /// is withdrawn: Rook would use it if it encrypts an OSD on this PVC.
    pub(super) async fn create_pvc_key(&self, pvc: &str, declaration: &Declaration) -> Result<(), K8sError> {
        let name = name_of(pvc)?;
        let key = new_key().map_err(|error| K8sError::Unexpected {
            what: format!("secret/{name}"),
            found: format!("the kernel returned no random bytes for its key: {error}"),
        })?;
        let secret = typed(&name, secret(&name, pvc, &key, declaration))?;
        there_already(self.kind::<Secret>().create(&name, &secret).await)
    }
}

/// Returns the name of the Secret; the error is that it would be too long.
fn name_of(pvc: &str) -> Result<String, K8sError> {
    let name = key_secret(pvc);
    if name.len() <= LONGEST_NAME {
        return Ok(name);
    }
    let found = format!(
        "the Secret with its key would have a name of {} characters, and Kubernetes allows {LONGEST_NAME}. \
         Its OSD cannot be encrypted: use a PVC with a shorter name",
        name.len()
    );
    Err(K8sError::Unexpected { what: format!("persistentvolumeclaim/{pvc}"), found })
}

fn new_key() -> Result<Key, getrandom::Error> {
    let mut bytes = [0; KEY_BYTES];
    getrandom::fill(&mut bytes)?;
    Ok(Key::new(&STANDARD.encode(bytes)))
}

/// Builds the Secret, with type, label and owner as Rook sets them.
///
/// The owner is the CephCluster, and no object of osd-migrate: nothing that osd-migrate deletes may take the
/// key of an OSD with it.
fn secret(name: &str, pvc: &str, key: &Key, declaration: &Declaration) -> Value {
    json!({
        "metadata": {
            "name": name,
            "labels": {"pvc_name": pvc},
            "ownerReferences": owned_by(declaration),
        },
        "type": "kubernetes.io/rook",
        "stringData": {KEY_IN_SECRET: key.reveal()},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pvc_key_is_128_random_bytes_in_base64() {
        let [first, second] = [new_key().unwrap(), new_key().unwrap()];
        assert_ne!(first.reveal(), second.reveal());
        let bytes = STANDARD.decode(first.reveal()).unwrap();
        assert_eq!((bytes.len(), first.reveal().len()), (128, 172));
        assert!(bytes.iter().any(|byte| *byte != 0));
        assert!(!format!("{first:?}").contains(first.reveal()), "it is never shown");
    }

    #[test]
    fn pvc_name_too_long_for_the_name_of_a_secret_is_an_error() {
        let longest = "p".repeat(LONGEST_NAME - key_secret("").len());
        assert_eq!(name_of(&longest).unwrap().len(), 253);
        let error = name_of(&format!("{longest}p")).unwrap_err().to_string();
        assert!(error.contains("a name of 254 characters, and Kubernetes allows 253"), "{error}");
    }
}
