//! Errors of calls to the API server. Every error names verb, resource and object: a log line suffices.

use std::fmt;
use std::time::Duration;

use kube::core::Status;

/// One call, as an error names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// RBAC verb: `get`, `list`, `create`, `update`, `patch`, `delete`.
    pub verb: &'static str,
    /// Resource as RBAC and kubectl name it: `deployments.apps`, `deployments.apps/scale`.
    pub resource: String,
    /// Name of the object; none for a list.
    pub name: Option<String>,
    /// Namespace; none for a cluster-scoped resource.
    pub namespace: Option<String>,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if let Some(name) = &self.name {
            write!(f, " {name}")?;
        }
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => Ok(()),
        }
    }
}

impl Call {
    /// Returns the command that checks whether the account that the server named in its refusal may do this.
    pub fn can_i(&self, said: &str) -> String {
        // `can-i` takes RESOURCE/NAME, which matters if a Role names single objects.
        let name =
            self.name.as_ref().filter(|_| self.verb != "create").map(|n| format!("/{n}")).unwrap_or_default();
        let namespace = self.namespace.as_ref().map(|ns| format!(" -n {ns}")).unwrap_or_default();
        let user = refused_user(said).unwrap_or("system:serviceaccount:NAMESPACE:osd-migrate");
        let (resource, part) = self.resource.split_once('/').unwrap_or((&self.resource, ""));
        let part = if part.is_empty() { String::new() } else { format!(" --subresource={part}") };
        format!("kubectl auth can-i {} {resource}{name}{part}{namespace} --as={user}", self.verb)
    }

    fn role(&self) -> &'static str {
        if self.namespace.is_some() { "Role" } else { "ClusterRole" }
    }
}

/// Returns the refused user: `... is forbidden: User "system:serviceaccount:rook-ceph:osd-migrate" cannot
/// list ...`.
fn refused_user(said: &str) -> Option<&str> {
    said.split_once("User \"")?.1.split_once('"').map(|(user, _)| user)
}

/// A failed call, or an object that is not as expected.
#[derive(Debug, thiserror::Error, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", prefix = "kube-")]
pub enum K8sError {
    /// The object does not exist.
    #[error("{0}: not found")]
    NotFound(Call),
    /// An object of that name already exists.
    #[error("{0}: already exists")]
    AlreadyExists(Call),
    /// The object changed since it was read, or it is another one of the same name. Nothing was done.
    #[error("{call}: the object changed since it was read: {message}")]
    Conflict {
        /// Call that failed.
        call: Call,
        /// Message of the server.
        message: String,
    },
    /// Our ServiceAccount may not do this.
    #[error(
        "{call}: forbidden: the {} of osd-migrate's ServiceAccount does not allow the verb `{}` on `{}` (the \
         server says: {message}). To check: {}",
        call.role(), call.verb, call.resource, call.can_i(message)
    )]
    Forbidden {
        /// Call that failed.
        call: Call,
        /// Message of the server.
        message: String,
    },
    /// A policy, a webhook or a quota of the cluster refused the object. Nothing was written.
    #[error("{call}: refused by a policy, a webhook or a quota of the cluster: {message}")]
    Refused {
        /// Call that failed.
        call: Call,
        /// Message of the server.
        message: String,
    },
    /// No answer came in time: whether it was done is unknown. Observe again.
    #[error("{call}: no answer within {} s; the outcome is unknown", limit.as_secs_f32())]
    Timeout {
        /// Call that failed.
        call: Call,
        /// Time limit of the call.
        limit: Duration,
    },
    /// The connection failed, or broke before the answer: whether it was done is unknown. Observe again.
    #[error(
        "{call}: the API server is unreachable, or closed the connection before it answered; the outcome is \
         unknown"
    )]
    Unreachable {
        /// Call that failed.
        call: Call,
        /// Error of the connection.
        source: Box<kube::Error>,
    },
    /// The object is not what the act expects. Nothing was done.
    #[error("{what}: nothing was done, because {found}")]
    Unexpected {
        /// Object, as kubectl names it.
        what: String,
        /// State that was found instead.
        found: String,
    },
    /// A required part of the object is missing, or a part can't be read.
    #[error("{what} cannot be read: {why}")]
    Malformed {
        /// Object, as kubectl names it.
        what: String,
        /// Fault of the object.
        why: String,
    },
    /// The API server does not know CephClusters.
    #[error(
        "this cluster has no CephCluster resource. Check that Rook is installed: kubectl get crd \
         cephclusters.ceph.rook.io"
    )]
    NoRook,
    /// The namespace has no CronJob of osd-migrate.
    #[error(
        "osd-migrate is not installed in namespace {namespace}: it has no CronJob osd-migrate. To install it: \
         helm install osd-migrate charts/osd-migrate -n {namespace}"
    )]
    NotInstalled {
        /// Namespace that was searched.
        namespace: String,
    },
    /// The namespace has no CephCluster.
    #[error(
        "namespace {namespace} has no CephCluster{}. See: kubectl get cephclusters -A", named(name.as_ref())
    )]
    NoCephCluster {
        /// Namespace that was searched.
        namespace: String,
        /// Name that was asked for.
        name: Option<String>,
    },
    /// The namespace has more than one CephCluster.
    #[error(
        "namespace {namespace} has several CephClusters ({}). Select one with --cluster", names.join(", ")
    )]
    SeveralCephClusters {
        /// Namespace that was searched.
        namespace: String,
        /// Names of the CephClusters.
        names: Vec<String>,
    },
    /// The data would not fit. The write was refused before anything was sent.
    #[error("{what} would have {bytes} bytes, more than its limit of {limit} bytes; nothing was written")]
    TooBig {
        /// Object that would be too big.
        what: String,
        /// Size of the data.
        bytes: usize,
        /// Largest size allowed.
        limit: usize,
    },
    /// No access to an API server is configured.
    #[error("no access to an API server is configured: {0}")]
    NoConfig(String),
    /// The server or the client answered with any other error.
    #[error("{call}: {message}")]
    Other {
        /// Call that failed.
        call: Call,
        /// HTTP status; 0 if there was no answer.
        code: u16,
        /// Message of the server or the client.
        message: String,
    },
}

impl K8sError {
    /// Returns the code: the anchor of the error in the reference of messages.
    pub fn code(&self) -> &'static str {
        self.into()
    }
}

fn named(name: Option<&String>) -> String {
    name.map(|n| format!(" {n}")).unwrap_or_default()
}

impl K8sError {
    /// Returns whether a write that ended with this error may have been done nevertheless.
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(self, Self::Timeout { .. } | Self::Unreachable { .. })
            || matches!(self, Self::Other { code: 500.., .. })
    }

    /// Returns whether the same call may succeed later: the condition for a retry of a read or of a
    /// convergent write.
    pub fn is_transient(&self) -> bool {
        self.is_outcome_unknown()
            || matches!(self, Self::Conflict { .. } | Self::Other { code: 0 | 429 | 410, .. })
    }

    /// Classifies kube's error by code and reason together.
    ///
    /// kube's own `is_not_found()` and similar functions check the reason only, and a plain text 404 (an
    /// unknown API path) or a 409 of a proxy has none.
    pub(crate) fn of(call: Call, error: kube::Error, limit: Duration) -> Self {
        #[allow(clippy::wildcard_enum_match_arm)]
        // kube's enum is foreign and grows; all other errors are reported unchanged
        match error {
            kube::Error::Api(status) => Self::of_status(call, &status, limit),
            error @ (kube::Error::HyperError(_) | kube::Error::Service(_) | kube::Error::ReadEvents(_)) => {
                Self::Unreachable { call, source: Box::new(error) }
            }
            other => Self::Other { call, code: 0, message: other.to_string() },
        }
    }

    fn of_status(call: Call, status: &Status, limit: Duration) -> Self {
        let message = status.message.clone();
        match (status.code, status.reason.as_str()) {
            (404, "NotFound") => Self::NotFound(call),
            (409, "AlreadyExists") => Self::AlreadyExists(call),
            (409, _) => Self::Conflict { call, message },
            // Webhooks and policies choose their code themselves: 403, 422 and 400 are common.
            (400..=499, _) if is_admission(&message) => Self::Refused { call, message },
            (403, _) => Self::Forbidden { call, message },
            (504, _) | (500, "ServerTimeout" | "Timeout") => Self::Timeout { call, limit },
            (code, reason) => {
                let reason = if reason.is_empty() { String::new() } else { format!("{reason}: ") };
                Self::Other { call, code, message: format!("{reason}{message} (HTTP {code})") }
            }
        }
    }
}

/// Returns whether the message is a refusal by admission and not a missing right of the account.
///
/// The texts are those of ResourceQuota, PodSecurity, webhooks and ValidatingAdmissionPolicies
/// (`plugin/pkg/admission/resourcequota`, `staging/src/k8s.io/pod-security-admission`,
/// `apiserver/pkg/admission/plugin`, 1.34).
fn is_admission(message: &str) -> bool {
    let says = [
        "admission webhook",
        "ValidatingAdmissionPolicy",
        "exceeded quota",
        "failed quota",
        "violates PodSecurity",
    ];
    says.iter().any(|words| message.contains(words)) && !message.contains(NO_DRY_RUN)
}

/// End of the answer to a dry run that meets a webhook with side effects (`NewDryRunUnsupportedErr`, 400).
pub(crate) const NO_DRY_RUN: &str = "does not support dry run";

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> Call {
        Call {
            verb: "update",
            resource: "deployments.apps".to_owned(),
            name: Some("rook-ceph-osd-3".to_owned()),
            namespace: Some("rook-ceph".to_owned()),
        }
    }

    fn sorted(code: u16, reason: &str) -> K8sError {
        let status = Status::failure("text", reason).with_code(code).boxed();
        K8sError::of(call(), kube::Error::Api(status), Duration::from_secs(10))
    }

    #[test]
    fn kubernetes_errors_are_classified_by_code_and_reason() {
        assert!(matches!(sorted(404, "NotFound"), K8sError::NotFound(_)));
        assert!(
            matches!(sorted(404, "Failed to parse error data"), K8sError::Other { code: 404, .. }),
            "an unknown path is not a missing object"
        );
        assert!(matches!(sorted(409, "AlreadyExists"), K8sError::AlreadyExists(_)));
        assert!(matches!(sorted(409, ""), K8sError::Conflict { .. }));
        assert!(matches!(sorted(409, "Conflict"), K8sError::Conflict { .. }));
        assert!(sorted(504, "Timeout").is_outcome_unknown());
        assert!(sorted(500, "").is_outcome_unknown());
        assert!(!sorted(422, "Invalid").is_outcome_unknown());
        assert!(sorted(429, "TooManyRequests").is_transient());
    }

    #[test]
    fn admission_refusal_is_distinguished_from_a_missing_right() {
        let of = |code: u16, message: &str| {
            let status = Status::failure(message, "Forbidden").with_code(code).boxed();
            K8sError::of(call(), kube::Error::Api(status), Duration::from_secs(10))
        };
        for (code, message) in [
            (
                403,
                "pods \"x\" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=10, limited: pods=10",
            ),
            (
                422,
                "deployments.apps \"x\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no",
            ),
            (
                403,
                "admission webhook \"validate.kyverno.svc-fail\" denied the request: no privileged containers",
            ),
            (400, "admission webhook \"v\" denied the request: no"),
        ] {
            let error = of(code, message);
            assert!(matches!(error, K8sError::Refused { .. }), "{error:?}");
            assert!(error.to_string().ends_with(message) && !error.is_transient(), "{error}");
        }
        let right =
            "deployments.apps \"x\" is forbidden: User \"system:serviceaccount:a:b\" cannot update resource";
        assert!(matches!(of(403, right), K8sError::Forbidden { .. }));
        let dry = of(400, "admission webhook \"v\" does not support dry run");
        assert!(matches!(dry, K8sError::Other { code: 400, .. }), "{dry:?}");
    }

    #[test]
    fn forbidden_error_names_the_missing_verb_and_its_can_i_check() {
        let text = sorted(403, "Forbidden").to_string();
        assert!(
            text.contains("the Role of osd-migrate's ServiceAccount does not allow the verb `update` on"),
            "{text}"
        );
        assert!(
            text.ends_with(
                "kubectl auth can-i update deployments.apps/rook-ceph-osd-3 -n rook-ceph \
                 --as=system:serviceaccount:NAMESPACE:osd-migrate"
            ),
            "{text}"
        );
        let scale = Call { resource: "deployments.apps/scale".to_owned(), ..call() };
        assert!(
            scale
                .can_i("")
                .contains("can-i update deployments.apps/rook-ceph-osd-3 --subresource=scale -n rook-ceph")
        );
        // The message refuses the account of a hook, which is in another namespace than the object.
        let said = "deployments.apps is forbidden: User \"system:serviceaccount:storage:osd-migrate-preflight\" cannot list resource";
        let asked = call().can_i(said);
        assert!(
            asked.ends_with("-n rook-ceph --as=system:serviceaccount:storage:osd-migrate-preflight"),
            "{asked}"
        );
    }
}
