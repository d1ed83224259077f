//! Commands that messages ask the user to type. A message is written with the placeholders `NAMESPACE` and
//! `CEPHCLUSTER`; `Names` replaces them wherever a message leaves the program.

use super::osd::OsdId;

/// Placeholder of the namespace of the CephCluster.
const NAMESPACE: &str = "NAMESPACE";
/// Placeholder of the name of the CephCluster.
const CEPHCLUSTER: &str = "CEPHCLUSTER";

/// Command that starts a run by hand.
///
/// The Job's name contains the time: no two Jobs share a name.
pub const RUN_AGAIN: &str =
    "kubectl -n NAMESPACE create job --from=cronjob/osd-migrate osd-migrate-$(date +%s)";

/// Command that removes a pause or a cancel.
pub const RESUME: &str = "osd-migrate -n NAMESPACE resume";

/// Instructions for the confirmation.
pub const HOW_TO_CONFIRM: &str = "kubectl -n NAMESPACE patch cephcluster CEPHCLUSTER --type merge -p \
    '{\"spec\":{\"storage\":{\"migration\":{\"confirmation\":\"yes-really-migrate-osds\"}}}}', \
    or run with --confirm yes-really-migrate-osds";

/// Names of the cluster in use, for the commands in messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// Namespace of the CephCluster.
    pub namespace: String,
    /// Name of the CephCluster, if it is known.
    pub cluster: Option<String>,
}

impl Names {
    /// Returns the line that names the cluster.
    pub fn cluster_line(&self) -> String {
        let name = self.cluster.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
        format!("CephCluster{name} in namespace {}", self.namespace)
    }

    /// Returns the message with the names of this cluster in its commands.
    ///
    /// The placeholder of the CephCluster stays if its name is not known.
    pub fn complete(&self, message: &str) -> String {
        let message = message.replace(NAMESPACE, &self.namespace);
        match &self.cluster {
            Some(name) => message.replace(CEPHCLUSTER, name),
            None => message,
        }
    }
}

/// Returns the command after which the next run tries a quarantined OSD again.
pub fn retry(osd: OsdId) -> String {
    format!("osd-migrate -n NAMESPACE retry {osd}")
}

/// Returns the command that scales the Deployment of an OSD.
pub fn scale_osd(osd: OsdId, replicas: u32) -> String {
    format!("kubectl -n NAMESPACE scale deployment rook-ceph-osd-{} --replicas={replicas}", osd.0)
}

/// Returns the command that scales this Deployment (namespace/name) to so many replicas.
pub fn scale_operator(operator: &str, replicas: u32) -> String {
    let (namespace, name) = operator.split_once('/').unwrap_or_default();
    format!("kubectl -n {namespace} scale deployment {name} --replicas={replicas}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_names_the_cluster_in_use() {
        let known = Names { namespace: "ceph-a".to_owned(), cluster: Some("store".to_owned()) };
        assert!(
            known
                .complete(HOW_TO_CONFIRM)
                .starts_with("kubectl -n ceph-a patch cephcluster store --type merge")
        );
        let unknown = Names { cluster: None, ..known };
        assert_eq!(
            unknown.complete("kubectl -n NAMESPACE get cephcluster CEPHCLUSTER"),
            "kubectl -n ceph-a get cephcluster CEPHCLUSTER"
        );
    }
}
