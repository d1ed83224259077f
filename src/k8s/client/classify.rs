//! From kube's errors to ours.

use std::sync::Arc;
use std::time::Duration;

use kube::core::Status;

use crate::k8s::client::call::{Call, is_own_account, refused_user};
use crate::k8s::client::cause::{cause, one_line};
use crate::k8s::client::error::K8sError;
use crate::k8s::client::server::Server;

impl K8sError {
    /// Classifies kube's error by code and reason together.
    ///
    /// kube's own `is_not_found()` and similar functions check the reason only, and a plain text 404 (an
    /// unknown API path) or a 409 of a proxy has none.
    pub(super) fn of(call: Call, error: kube::Error, limit: Duration, server: &Arc<Server>) -> Self {
        #[allow(clippy::wildcard_enum_match_arm)]
        // kube's enum is foreign and grows; all other errors are reported unchanged
        match error {
            kube::Error::Api(status) => Self::of_status(call, &status, limit, server),
            error @ (kube::Error::HyperError(_) | kube::Error::Service(_) | kube::Error::ReadEvents(_)) => {
                Self::Unreachable { call, cause: cause(&error).into(), server: Arc::clone(server) }
            }
            other => Self::Other { call, code: 0, message: other.to_string() },
        }
    }

    fn of_status(call: Call, status: &Status, limit: Duration, server: &Arc<Server>) -> Self {
        let message = one_line(&status.message);
        match (status.code, status.reason.as_str()) {
            (404, "NotFound") => Self::NotFound(call),
            (409, "AlreadyExists") => Self::AlreadyExists(call),
            (409, _) => Self::Conflict { call, message },
            // Webhooks and policies choose their code themselves: 403, 422 and 400 are common.
            (400..=499, _) if is_admission(&message) => Self::Refused { call, message },
            (401, _) => Self::Unauthorized { call, message: message.into(), server: Arc::clone(server) },
            (403, _) => Self::of_refusal(call, message, server),
            (504, _) | (500, "ServerTimeout" | "Timeout") => {
                Self::Timeout { call, limit, server: Arc::clone(server) }
            }
            (code, reason) => {
                let reason = if reason.is_empty() { String::new() } else { format!("{reason}: ") };
                Self::Other { call, code, message: format!("{reason}{message} (HTTP {code})") }
            }
        }
    }

    /// Sorts a refusal by whom the server refused: an account that the chart created, or a person.
    fn of_refusal(call: Call, message: String, server: &Arc<Server>) -> Self {
        let is_ours = server.is_in_cluster() || refused_user(&message).is_some_and(is_own_account);
        if is_ours {
            return Self::Forbidden { call, message };
        }
        Self::UserForbidden { call, message: message.into(), server: Arc::clone(server) }
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
    use crate::k8s::client::server::Context;

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
        K8sError::of(call(), kube::Error::Api(status), Duration::from_secs(10), &pod())
    }

    fn pod() -> Arc<Server> {
        Arc::new(Server::in_cluster("https://10.96.0.1", "rook-ceph"))
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
            K8sError::of(call(), kube::Error::Api(status), Duration::from_secs(10), &pod())
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
    }

    fn laptop() -> Arc<Server> {
        let context = Context { name: "lab".to_owned(), user: Some("jane-key".to_owned()), file: None };
        let namespace = "default".to_owned();
        Arc::new(Server { url: "https://10.0.0.1:6443".to_owned(), context: Some(context), namespace })
    }

    fn answered(code: u16, message: &str, server: &Arc<Server>) -> K8sError {
        let status = Status::failure(message, "Forbidden").with_code(code).boxed();
        let list = Call { verb: "list", name: None, ..call() };
        K8sError::of(list, kube::Error::Api(status), Duration::from_secs(10), server)
    }

    #[test]
    fn forbidden_person_is_named_with_its_can_i_check() {
        let said = "deployments.apps is forbidden: User \"jane\" cannot list resource \"deployments\"";
        let error = answered(403, said, &laptop());
        let text = error.to_string();
        assert!(
            text.starts_with("user jane may not list deployments.apps in namespace rook-ceph ("),
            "{text}"
        );
        assert!(text.contains("https://10.0.0.1:6443, context lab, user jane-key"), "{text}");
        assert!(text.contains("another context: kubectl config get-contexts. "), "{text}");
        let check = "To check: kubectl --context lab auth can-i list deployments.apps -n rook-ceph";
        assert!(text.ends_with(check) && !text.contains("ServiceAccount"), "{text}");
        // A program of another owner is no account of osd-migrate.
        let other = said.replace("jane", "system:serviceaccount:ci:deployer");
        let text = answered(403, &other, &laptop()).to_string();
        assert!(text.starts_with("user system:serviceaccount:ci:deployer may not list"), "{text}");
        // A proxy in front of the API server names nobody.
        let text = answered(403, "no", &laptop()).to_string();
        assert!(text.starts_with("user jane-key may not list"), "{text}");
    }

    #[test]
    fn forbidden_account_of_osd_migrate_is_its_role() {
        let said =
            "x is forbidden: User \"system:serviceaccount:rook-ceph:osd-migrate\" cannot list resource";
        let renamed = said.replace(":osd-migrate", ":migration");
        for (message, server) in [(said, laptop()), (said, pod()), (renamed.as_str(), pod())] {
            let error = answered(403, message, &server);
            assert!(matches!(error, K8sError::Forbidden { .. }), "{error}");
        }
    }

    #[test]
    fn rejected_credentials_name_the_context_and_what_to_type() {
        let text = answered(401, "Unauthorized", &laptop()).to_string();
        assert!(
            text.contains("(https://10.0.0.1:6443, context lab, user jane-key) rejects the credentials"),
            "{text}"
        );
        assert!(text.ends_with("To check: kubectl --context lab auth whoami"), "{text}");
    }

    #[test]
    fn only_the_outcome_of_a_write_is_unknown() {
        let lost = |verb: &'static str| {
            let call = Call { verb, ..call() };
            let timeout =
                K8sError::Timeout { call: call.clone(), limit: Duration::from_secs(10), server: laptop() };
            let error = kube::Error::Service(Box::new(std::io::Error::from_raw_os_error(104)));
            let broken = K8sError::of(call, error, Duration::from_secs(10), &laptop());
            [timeout.to_string(), broken.to_string()]
        };
        for text in ["get", "list"].into_iter().flat_map(lost) {
            assert!(!text.contains("outcome"), "{text}");
        }
        for text in ["create", "update", "patch", "delete"].into_iter().flat_map(lost) {
            assert!(text.contains("; the outcome is unknown. To check: kubectl --context lab "), "{text}");
        }
        let [_, broken] = lost("get");
        assert!(broken.contains("connection reset"), "{broken}");
    }
}
