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
        K8sError::Forbidden { .. } | K8sError::Refused { .. } => Severity::Denied,
        K8sError::NoRook
        | K8sError::NotInstalled { .. }
        | K8sError::NoCephCluster { .. }
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
    use super::*;
    use crate::exit::{Exit, not_seen};

    #[test]
    fn missing_cephcluster_is_wrong_usage() {
        let none = K8sError::NoCephCluster { namespace: "rook-cpeh".to_owned(), name: None };
        for error in [none, K8sError::NoRook, K8sError::NoConfig("no kubeconfig".to_owned())] {
            assert_eq!(not_seen(&kube_failure(error)), Exit::WrongUsage);
        }
        let broken = K8sError::Malformed { what: "WHAT".to_owned(), why: "WHY".to_owned() };
        assert_eq!(not_seen(&kube_failure(broken)), Exit::Halted);
    }
}
