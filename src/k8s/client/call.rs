//! One call to the API server, as errors name it, and the command that checks whether it is allowed.

use std::fmt;

use crate::k8s::names::OURS;

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
        let user = refused_user(said).unwrap_or("system:serviceaccount:NAMESPACE:osd-migrate");
        format!("kubectl {} --as={user}", self.question())
    }

    /// Returns the command that checks whether the user of `kubectl` may do this.
    ///
    /// `kubectl` is the command with its context. A person who lacks a right usually also lacks the one to
    /// impersonate, so there is no `--as`.
    pub fn can_i_as_myself(&self, kubectl: &str) -> String {
        format!("{kubectl} {}", self.question())
    }

    fn question(&self) -> String {
        // `can-i` takes RESOURCE/NAME, which matters if a Role names single objects.
        let name =
            self.name.as_ref().filter(|_| self.verb != "create").map(|n| format!("/{n}")).unwrap_or_default();
        let namespace = self.namespace.as_ref().map(|ns| format!(" -n {ns}")).unwrap_or_default();
        let (resource, part) = self.resource.split_once('/').unwrap_or((&self.resource, ""));
        let part = if part.is_empty() { String::new() } else { format!(" --subresource={part}") };
        format!("auth can-i {} {resource}{name}{part}{namespace}", self.verb)
    }

    pub(super) fn role(&self) -> &'static str {
        if self.namespace.is_some() { "Role" } else { "ClusterRole" }
    }

    /// Returns the end of the sentence that reports a missing answer: only a write may have been done.
    pub(super) fn outcome(&self) -> &'static str {
        if self.is_write() { "; the outcome is unknown" } else { "" }
    }

    /// Returns whether the call may change something.
    pub(super) fn is_write(&self) -> bool {
        !["get", "list", "watch"].contains(&self.verb)
    }

    /// Returns the end of the advice after a missing answer: a write may also wait for a webhook.
    ///
    /// `kubectl` is the command with its context.
    pub(super) fn or_a_webhook(&self, kubectl: &str) -> String {
        if !self.is_write() {
            return String::new();
        }
        format!(
            "; if the server answers, a webhook may hang: {kubectl} get \
             validatingwebhookconfigurations,mutatingwebhookconfigurations"
        )
    }
}

/// Returns the refused user: `... is forbidden: User "system:serviceaccount:rook-ceph:osd-migrate" cannot
/// list ...`.
pub(super) fn refused_user(said: &str) -> Option<&str> {
    said.split_once("User \"")?.1.split_once('"').map(|(user, _)| user)
}

/// Returns whether the user is a ServiceAccount with the name of one that the chart creates.
pub(super) fn is_own_account(user: &str) -> bool {
    let account = user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
    account.is_some_and(|(_, name)| name.starts_with(OURS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn can_i_check_names_the_object_the_part_and_the_account() {
        let call = Call {
            verb: "update",
            resource: "deployments.apps/scale".to_owned(),
            name: Some("rook-ceph-osd-3".to_owned()),
            namespace: Some("rook-ceph".to_owned()),
        };
        let question = "auth can-i update deployments.apps/rook-ceph-osd-3 --subresource=scale -n rook-ceph";
        let unknown = format!("kubectl {question} --as=system:serviceaccount:NAMESPACE:osd-migrate");
        assert_eq!(call.can_i(""), unknown);
        // The message refuses the account of a hook, which is in another namespace than the object.
        let said = "deployments.apps is forbidden: User \"system:serviceaccount:storage:osd-migrate-preflight\" cannot list resource";
        let hook = format!("kubectl {question} --as=system:serviceaccount:storage:osd-migrate-preflight");
        assert_eq!(call.can_i(said), hook);
        let mine = call.can_i_as_myself("kubectl --context lab");
        assert_eq!(mine, format!("kubectl --context lab {question}"));
    }

    #[test]
    fn service_accounts_of_osd_migrate_are_known_by_name() {
        for own in
            ["system:serviceaccount:rook-ceph:osd-migrate", "system:serviceaccount:a:osd-migrate-start"]
        {
            assert!(is_own_account(own), "{own}");
        }
        for other in ["jane", "osd-migrate", "system:serviceaccount:osd-migrate:deployer", "system:anonymous"]
        {
            assert!(!is_own_account(other), "{other}");
        }
    }
}
