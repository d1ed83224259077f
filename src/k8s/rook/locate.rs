//! The namespace of the CephCluster, if none is named, and the CephClusters that the user may see instead.

use kube::api::DynamicObject;

use crate::k8s::client::access::K8s;
use crate::k8s::client::error::{Elsewhere, K8sError};

impl K8s {
    /// Finds the namespace that holds the CephCluster, if the user named none.
    ///
    /// That is the namespace of kubectl's context, else the one of the access (Rook's default). A namespace
    /// in which the user may not look counts as one without a CephCluster, as long as another one is left.
    pub async fn locate(&mut self) -> Result<(), K8sError> {
        let mut namespaces = vec![self.server.namespace.clone(), self.place.namespace.clone()];
        namespaces.dedup();
        let mut refused = None;
        for namespace in &namespaces {
            self.place.namespace.clone_from(namespace);
            match self.ceph_cluster().await {
                Ok(_) => return Ok(()),
                Err(K8sError::NoCephCluster { .. }) => {}
                Err(error @ (K8sError::UserForbidden { .. } | K8sError::Forbidden { .. })) => {
                    refused = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        let elsewhere = self.elsewhere().await;
        match (refused, elsewhere) {
            // Nothing was seen anywhere: the refusal of the last namespace says what is missing.
            (Some(refused), Elsewhere::Forbidden | Elsewhere::Unknown) => Err(refused),
            (_, elsewhere) => Err(K8sError::NoNamespace {
                namespaces,
                name: self.place.cluster.clone(),
                elsewhere,
                kubectl: self.server.kubectl(),
            }),
        }
    }

    /// Checks that the CephCluster exists: the one that was named, or else the only one in the namespace.
    ///
    /// Afterwards [`Self::names`] has its name. If there is none, the error lists those that the user may
    /// see, except in a pod, whose ServiceAccount may not list them.
    pub async fn find_cluster(&self) -> Result<(), K8sError> {
        match self.ceph_cluster().await {
            Ok(_) => Ok(()),
            Err(K8sError::NoCephCluster { namespace, name, kubectl, .. }) if !self.server.is_in_cluster() => {
                let elsewhere = self.elsewhere().await;
                Err(K8sError::NoCephCluster { namespace, name, elsewhere, kubectl })
            }
            Err(error) => Err(error),
        }
    }

    /// Lists the CephClusters of all namespaces.
    async fn elsewhere(&self) -> Elsewhere {
        let name = |found: DynamicObject| Some((found.metadata.namespace?, found.metadata.name?));
        match self.ceph_clusters_everywhere().list("", name).await {
            Ok(mut found) => {
                found.sort();
                Elsewhere::Found(found)
            }
            Err(K8sError::UserForbidden { .. } | K8sError::Forbidden { .. }) => Elsewhere::Forbidden,
            Err(_) => Elsewhere::Unknown,
        }
    }
}
