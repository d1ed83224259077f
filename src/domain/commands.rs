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

/// Command that starts a run that removes the OSDs whose removal was requested.
pub const RUN_REMOVALS: &str = "osd-migrate -n NAMESPACE run --removals";

/// Option that confirms the request of a removal.
pub const REMOVE_CONFIRMED: &str = "--confirm yes-really-remove-osds";

/// Command that fences the CephCluster before an edit of it.
pub const FENCE: &str = "osd-migrate -n NAMESPACE fence";

/// Command that removes the fence that the owner ordered.
pub const REMOVE_FENCE: &str = "osd-migrate -n NAMESPACE fence --remove";

/// Command that removes a pause or a cancel.
pub const RESUME: &str = "osd-migrate -n NAMESPACE resume";

/// Instructions for the confirmation.
///
/// A running Rook would act on the fields of the CephCluster, which confirm, too.
pub const HOW_TO_CONFIRM: &str = "osd-migrate -n NAMESPACE plan, then the command with --approve at its \
    end; or osd-migrate -n NAMESPACE run --confirm yes-really-migrate-osds";

/// Namespace of the examples in the pages.
const OF_EXAMPLES: &str = "-n rook-ceph";
/// Command of the examples whose namespace is that of Rook's operator.
const OPERATOR_OF_EXAMPLES: &str = " scale deployment rook-ceph-operator";

/// Beginnings of commands that reach a cluster.
///
/// A command about a node has no namespace, and would be typed for the node of another cluster.
const REACHING: [&str; 11] = [
    "kubectl -n ",
    "kubectl apply ",
    "kubectl auth ",
    "kubectl delete ",
    "kubectl describe ",
    "kubectl drain ",
    "kubectl get ",
    "kubectl logs ",
    "kubectl taint ",
    "kubectl uncordon ",
    "osd-migrate -n ",
];

/// Words of Helm's commands after which osd-migrate is the name of a release.
const OF_HELM: [&str; 4] = ["install ", "uninstall ", "upgrade ", "rollback "];

/// Beginnings of Helm's commands that reach a cluster.
const HELM_REACHING: [&str; 4] = ["helm -n ", "helm install ", "helm upgrade ", "helm uninstall "];

/// Names of the cluster in use, for the commands in messages.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Names {
    /// Namespace of the CephCluster.
    pub namespace: String,
    /// Name of the CephCluster, if it is known.
    pub cluster: Option<String>,
    /// Namespace of Rook's operator, if a person named it.
    pub operator_namespace: Option<String>,
    /// Options that a person typed to reach the cluster, such as `--context lab`.
    pub access: String,
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
        self.with_access(match &self.cluster {
            Some(name) => message.replace(CEPHCLUSTER, name),
            None => message,
        })
    }

    /// Returns the names for documents that programs read: how a person reached the cluster does not matter.
    #[must_use]
    pub fn without_access(&self) -> Self {
        Self { access: String::new(), ..self.clone() }
    }

    /// Returns the text of a page with the names of this cluster in place of those of the examples.
    pub fn in_page(&self, text: &str) -> String {
        let operator = self.operator_namespace.as_ref().unwrap_or(&self.namespace);
        let mut parts = text.split(OF_EXAMPLES);
        let mut found = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let of_operator = part.starts_with(OPERATOR_OF_EXAMPLES);
            let namespace = if of_operator { operator } else { &self.namespace };
            found = format!("{found}-n {namespace}{part}");
        }
        self.complete(&found)
    }

    /// Returns a text whose commands have the options that a person typed to reach the cluster.
    fn with_access(&self, text: String) -> String {
        if self.access.is_empty() {
            return text;
        }
        let is_of_helm = |before: &str| OF_HELM.iter().any(|word| before.ends_with(word));
        let text = REACHING
            .iter()
            .fold(text, |text, command| with_options(&text, command, &self.access, is_of_helm));
        // Helm calls the context of a kubeconfig otherwise.
        let of_helm = self.access.replace("--context", "--kube-context");
        HELM_REACHING.iter().fold(text, |text, command| with_options(&text, command, &of_helm, |_| false))
    }
}

/// Returns a text in which each command that begins like this one has these options after its program, unless
/// `is_other` holds for the text before it.
fn with_options(text: &str, command: &str, options: &str, is_other: impl Fn(&str) -> bool) -> String {
    let (program, rest) = command.split_once(' ').unwrap_or_default();
    let mut parts = text.split(command);
    let mut found = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let options = if is_other(&found) { String::new() } else { format!(" {options}") };
        found = format!("{found}{program}{options} {rest}{part}");
    }
    found
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

/// Returns the command that restarts the pods of this Deployment (namespace/name).
pub fn restart_operator(operator: &str) -> String {
    let (namespace, name) = operator.split_once('/').unwrap_or_default();
    format!("kubectl -n {namespace} rollout restart deployment {name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_names_the_cluster_in_use() {
        let known =
            Names { namespace: "ceph-a".to_owned(), cluster: Some("store".to_owned()), ..Names::default() };
        assert!(known.complete(HOW_TO_CONFIRM).starts_with("osd-migrate -n ceph-a plan, then "));
        let command = "kubectl -n NAMESPACE edit cephcluster CEPHCLUSTER";
        assert_eq!(known.complete(command), "kubectl -n ceph-a edit cephcluster store");
        let unknown = Names { cluster: None, ..known };
        assert_eq!(
            unknown.complete("kubectl -n NAMESPACE get cephcluster CEPHCLUSTER"),
            "kubectl -n ceph-a get cephcluster CEPHCLUSTER"
        );
    }

    #[test]
    fn commands_repeat_the_options_that_reach_the_cluster() {
        let names =
            Names { namespace: "ceph-a".to_owned(), access: "--context lab".to_owned(), ..Names::default() };
        let message = "See: osd-migrate -n NAMESPACE status; kubectl -n NAMESPACE get pods; kubectl get nodes; \
                       helm uninstall osd-migrate -n NAMESPACE; kubectl config get-contexts";
        assert_eq!(
            names.complete(message),
            "See: osd-migrate --context lab -n ceph-a status; kubectl --context lab -n ceph-a get pods; \
             kubectl --context lab get nodes; helm --kube-context lab uninstall osd-migrate -n ceph-a; \
             kubectl config get-contexts"
        );
    }

    #[test]
    fn examples_of_a_page_get_the_names_of_the_cluster() {
        let names = Names {
            namespace: "ceph-a".to_owned(),
            cluster: Some("store".to_owned()),
            operator_namespace: Some("rook-ceph".to_owned()),
            ..Names::default()
        };
        let page = "kubectl -n rook-ceph get cephcluster CEPHCLUSTER; \
                    kubectl -n rook-ceph scale deployment rook-ceph-operator --replicas=1";
        assert_eq!(
            names.in_page(page),
            "kubectl -n ceph-a get cephcluster store; \
             kubectl -n rook-ceph scale deployment rook-ceph-operator --replicas=1"
        );
    }
}
