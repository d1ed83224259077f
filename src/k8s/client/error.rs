//! Errors of calls to the API server. Every error names verb, resource and object: a log line suffices.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::k8s::client::call::{Call, refused_user};
use crate::k8s::client::server::Server;

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
    /// The ServiceAccount of osd-migrate may not do this.
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
    /// The person, or the program, that uses this command may not do this.
    #[error(
        "user {} may not {call} ({server}; the server says: {message}). Ask an administrator of the \
         cluster for the right, or use another context: kubectl config get-contexts. To check: {}",
        person(message, server), call.can_i_as_myself(&server.kubectl())
    )]
    UserForbidden {
        /// Call that failed.
        call: Call,
        /// Message of the server.
        message: Box<str>,
        /// Server that refused.
        server: Arc<Server>,
    },
    /// The API server does not know who asks.
    #[error(
        "{call}: the API server ({server}) rejects the credentials: they are wrong, or have expired (the \
         server says: {message}). Log in again. To check: {} auth whoami", server.kubectl()
    )]
    Unauthorized {
        /// Call that failed.
        call: Call,
        /// Message of the server.
        message: Box<str>,
        /// Server that refused.
        server: Arc<Server>,
    },
    /// A policy, a webhook or a quota of the cluster refused the object. Nothing was written.
    #[error("{call}: refused by a policy, a webhook or a quota of the cluster: {message}")]
    Refused {
        /// Call that failed.
        call: Call,
        /// Message of the server.
        message: String,
    },
    /// No answer came in time: whether a write was done is unknown. Observe again.
    #[error(
        "{call}: no answer from the API server ({server}) within {} s{}. To check: {} cluster-info{}",
        limit.as_secs_f32(), call.outcome(), server.kubectl(), call.or_a_webhook(&server.kubectl())
    )]
    Timeout {
        /// Call that failed.
        call: Call,
        /// Time limit of the call.
        limit: Duration,
        /// Server that was asked.
        server: Arc<Server>,
    },
    /// The connection failed, or broke before the answer: whether a write was done is unknown. Observe again.
    #[error(
        "{call}: no answer from the API server ({server}): {cause}{}. To check: {} cluster-info",
        call.outcome(), server.kubectl()
    )]
    Unreachable {
        /// Call that failed.
        call: Call,
        /// Cause of the failure.
        cause: Box<str>,
        /// Server that was asked.
        server: Arc<Server>,
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
         helm install osd-migrate CHART -n {namespace}"
    )]
    NotInstalled {
        /// Namespace that was searched.
        namespace: String,
    },
    /// The namespace has no CephCluster.
    #[error(
        "namespace {namespace} has no CephCluster{}.{elsewhere} See: {kubectl} get cephclusters -A",
        named(name.as_ref())
    )]
    NoCephCluster {
        /// Namespace that was searched.
        namespace: String,
        /// Name that was asked for.
        name: Option<String>,
        /// CephClusters in other namespaces.
        elsewhere: Elsewhere,
        /// Start of a kubectl command for the same server.
        kubectl: String,
    },
    /// No namespace was named, and those that are searched then have no CephCluster.
    #[error(
        "no namespace is named (-n), and {} no CephCluster{}.{elsewhere} See: {kubectl} get cephclusters -A",
        searched(namespaces), named(name.as_ref())
    )]
    NoNamespace {
        /// Namespaces that were searched.
        namespaces: Vec<String>,
        /// Name that was asked for.
        name: Option<String>,
        /// CephClusters in other namespaces.
        elsewhere: Elsewhere,
        /// Start of a kubectl command for the same server.
        kubectl: String,
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

/// CephClusters that the user may see in other namespaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Elsewhere {
    /// They were not listed: in a pod, the ServiceAccount may not, and an observation needs no more requests.
    Unknown,
    /// The user may not list the CephClusters of all namespaces.
    Forbidden,
    /// Namespace and name of each.
    Found(Vec<(String, String)>),
}

impl fmt::Display for Elsewhere {
    /// Writes sentences that follow another one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => Ok(()),
            Self::Forbidden => f.write_str(
                " You may not list the CephClusters of all namespaces: ask an administrator of the cluster \
                 for the namespace, and name it with -n.",
            ),
            Self::Found(all) if all.is_empty() => f.write_str(
                " No namespace has one: it is probably another Kubernetes cluster (kubectl config \
                 get-contexts).",
            ),
            Self::Found(all) => {
                let each: Vec<_> =
                    all.iter().map(|(ns, name)| format!("-n {ns} (CephCluster {name})")).collect();
                write!(f, " Those that you may see: {}.", each.join(", "))
            }
        }
    }
}

fn searched(namespaces: &[String]) -> String {
    match namespaces {
        [only] => format!("namespace {only} has"),
        all => format!("the namespaces {} have", all.join(" and ")),
    }
}

/// Returns the person whom the server refused, else the user of the kubeconfig: a proxy names nobody.
fn person<'a>(message: &'a str, server: &'a Server) -> &'a str {
    let of_context = || server.context.as_ref().and_then(|context| context.user.as_deref());
    refused_user(message).or_else(of_context).unwrap_or("(unknown)")
}

fn named(name: Option<&String>) -> String {
    name.map(|n| format!(" {n}")).unwrap_or_default()
}

impl K8sError {
    /// Returns the code: the anchor of the error in the reference of messages.
    pub fn code(&self) -> &'static str {
        self.into()
    }

    /// Returns whether a write that ended with this error may have been done nevertheless.
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(self, Self::Timeout { .. } | Self::Unreachable { .. })
            || matches!(self, Self::Other { code: 500.., .. })
    }

    /// Returns whether the server has too many requests, or is not ready for them: it asks to be asked later.
    pub(super) fn is_overload(&self) -> bool {
        matches!(self, Self::Other { code: 429 | 503, .. })
    }

    /// Returns whether another client created, changed or deleted the object between the read and the write.
    pub fn is_overtaken(&self) -> bool {
        matches!(self, Self::Conflict { .. } | Self::AlreadyExists(_) | Self::NotFound(_))
    }

    /// Returns whether the same call may succeed later: the condition for a retry of a read or of a
    /// convergent write.
    pub fn is_transient(&self) -> bool {
        self.is_outcome_unknown()
            || matches!(self, Self::Conflict { .. } | Self::Other { code: 0 | 429 | 410, .. })
    }
}

/// Takes an existing object for a created one.
pub(crate) fn there_already<T>(created: Result<T, K8sError>) -> Result<(), K8sError> {
    match created {
        Ok(_) | Err(K8sError::AlreadyExists(_)) => Ok(()),
        Err(error) => Err(error),
    }
}
