//! Errors of the adapters as failures with their severity.

use crate::ceph::CephError;
use crate::k8s::K8sError;
use crate::ports::{Failure, Severity};

/// Converts an error of Ceph to a failure with its severity.
#[allow(clippy::needless_pass_by_value)] // for `map_err`
pub fn ceph_failure(error: CephError) -> Failure {
    let severity = match (error.needs_person(), error.is_permission()) {
        (_, true) => Severity::Denied,
        (true, false) => Severity::NeedsPerson,
        (false, false) => Severity::Passing,
    };
    Failure { severity, message: format!("{error} [{}]", error.code()) }
}

/// Converts an error of Kubernetes to a failure with its severity.
#[allow(clippy::needless_pass_by_value)] // for `map_err`
pub fn kube_failure(error: K8sError) -> Failure {
    let severity = match &error {
        K8sError::Forbidden { .. } | K8sError::UserForbidden { .. } | K8sError::Refused { .. } => {
            Severity::Denied
        }
        // The token of a pod is replaced while it runs; those of a kubeconfig stay as they are.
        K8sError::Unauthorized { server, .. } if server.is_in_cluster() => Severity::Passing,
        K8sError::Unauthorized { .. }
        | K8sError::NotInstalled { .. }
        | K8sError::NoRook
        | K8sError::NoCephCluster { .. }
        | K8sError::NoNamespace { .. }
        | K8sError::SeveralCephClusters { .. }
        | K8sError::NoConfig(_) => Severity::WrongPlace,
        K8sError::Malformed { .. } | K8sError::TooBig { .. } => Severity::NeedsPerson,
        K8sError::NotFound(_)
        | K8sError::AlreadyExists(_)
        | K8sError::Conflict { .. }
        | K8sError::Timeout { .. }
        | K8sError::Unreachable { .. }
        | K8sError::Unexpected { .. }
        | K8sError::Other { .. } => Severity::Passing,
    };
    Failure { severity, message: format!("{error} [{}]", error.code()) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::exit::{Exit, not_seen};
    use crate::k8s::{Call, Context, Elsewhere, Server};

    fn server(context: Option<&str>) -> Arc<Server> {
        let context = context.map(|name| Context { name: name.to_owned(), user: None, file: None });
        Arc::new(Server { context, ..Server::in_cluster("https://10.96.0.1", "default") })
    }

    fn call() -> Call {
        Call { verb: "list", resource: "pods".to_owned(), name: None, namespace: None }
    }

    fn exit(error: K8sError) -> Exit {
        not_seen(&kube_failure(error))
    }

    #[test]
    fn missing_cephcluster_is_wrong_usage() {
        let (elsewhere, kubectl) = (Elsewhere::Unknown, "kubectl".to_owned());
        let none = K8sError::NoCephCluster {
            namespace: "rook-cpeh".to_owned(),
            name: None,
            elsewhere: elsewhere.clone(),
            kubectl: kubectl.clone(),
        };
        let nowhere =
            K8sError::NoNamespace { namespaces: vec!["default".to_owned()], name: None, elsewhere, kubectl };
        for error in [none, nowhere, K8sError::NoRook, K8sError::NoConfig("no kubeconfig".to_owned())] {
            assert_eq!(exit(error), Exit::WrongUsage);
        }
        let broken = K8sError::Malformed { what: "WHAT".to_owned(), why: "WHY".to_owned() };
        assert_eq!(exit(broken), Exit::Halted);
    }

    #[test]
    fn broken_access_is_tried_again_unless_a_person_fixes_it() {
        let rejected = |server| K8sError::Unauthorized { call: call(), message: "no".into(), server };
        assert_eq!(exit(rejected(server(Some("lab")))), Exit::WrongUsage);
        assert_eq!(exit(rejected(server(None))), Exit::TryAgain);
        let (cause, limit) = ("connection refused".into(), Duration::from_secs(10));
        assert_eq!(
            exit(K8sError::Unreachable { call: call(), cause, server: server(Some("lab")) }),
            Exit::TryAgain
        );
        assert_eq!(
            exit(K8sError::Timeout { call: call(), limit, server: server(Some("lab")) }),
            Exit::TryAgain
        );
    }
}
