//! The API server: its address, and the identity that requests have there.

use std::fmt;
use std::path::{Path, PathBuf};

use http::Uri;

/// An API server and an identity, as errors name them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Address, without credentials.
    pub url: String,
    /// Context of the kubeconfig; none in a pod, which uses its ServiceAccount.
    pub context: Option<Context>,
    /// Namespace that kubectl uses without `-n`.
    pub namespace: String,
}

/// Context of a kubeconfig.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// Name of the context.
    pub name: String,
    /// User of the kubeconfig, if the context has one.
    pub user: Option<String>,
    /// File that was named with `--kubeconfig`.
    pub file: Option<PathBuf>,
}

impl Server {
    /// Returns the server of a pod.
    pub fn in_cluster(url: &str, namespace: &str) -> Self {
        Self { url: url.to_owned(), context: None, namespace: namespace.to_owned() }
    }

    /// Returns whether the requests come from a pod of the cluster.
    pub fn is_in_cluster(&self) -> bool {
        self.context.is_none()
    }

    /// Returns the start of a kubectl command that asks the same server with the same identity.
    pub fn kubectl(&self) -> String {
        match &self.context {
            None => "kubectl".to_owned(),
            Some(context) => {
                format!("{} --context {}", kubectl(context.file.as_deref()), quoted(&context.name))
            }
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(context) = &self.context else { return write!(f, "{}, in-cluster", self.url) };
        write!(f, "{}, context {}", self.url, context.name)?;
        context.user.as_ref().map_or(Ok(()), |user| write!(f, ", user {user}"))
    }
}

/// Returns the start of a kubectl command that reads this kubeconfig.
pub(super) fn kubectl(file: Option<&Path>) -> String {
    let file = file.map(|file| format!(" --kubeconfig {}", quoted(&file.display().to_string())));
    format!("kubectl{}", file.unwrap_or_default())
}

/// Returns a word as a shell takes it.
pub(super) fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), std::borrow::Cow::into_owned)
}

/// Returns the address for messages: it may contain a password.
pub(super) fn address(uri: &Uri) -> String {
    let scheme = uri.scheme_str().unwrap_or("http");
    let port = uri.port().map(|port| format!(":{port}")).unwrap_or_default();
    let path = uri.path().trim_end_matches('/');
    format!("{scheme}://{}{port}{path}", uri.host().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_in_messages_has_no_password() {
        let shown = |text: &str| address(&text.parse().unwrap());
        assert_eq!(
            shown("https://me:secret@proxy.example:8443/k8s/c1/"),
            "https://proxy.example:8443/k8s/c1"
        );
        assert_eq!(shown("https://[::1]:6443"), "https://[::1]:6443");
        assert_eq!(shown("https://10.96.0.1/"), "https://10.96.0.1");
    }

    #[test]
    fn kubectl_command_names_the_context_and_the_file_that_was_named() {
        let pod = Server::in_cluster("https://10.96.0.1", "rook-ceph");
        assert_eq!(
            (pod.kubectl().as_str(), pod.to_string().as_str()),
            ("kubectl", "https://10.96.0.1, in-cluster")
        );
        let context = |name: &str, user: Option<&str>, file: Option<&str>| Server {
            context: Some(Context {
                name: name.to_owned(),
                user: user.map(str::to_owned),
                file: file.map(PathBuf::from),
            }),
            ..pod.clone()
        };
        let lab = context("admin@lab", Some("admin"), None);
        assert_eq!(lab.kubectl(), "kubectl --context admin@lab");
        assert_eq!(lab.to_string(), "https://10.96.0.1, context admin@lab, user admin");
        let spaced = context("my lab", None, Some("/tmp/my files/config"));
        assert_eq!(spaced.kubectl(), "kubectl --kubeconfig '/tmp/my files/config' --context 'my lab'");
    }
}
