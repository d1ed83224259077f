//! The choice of the API server: `--kubeconfig` and `--context`, KUBECONFIG, kubectl's own file, or the pod.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use kube::config::{Config, KubeConfigOptions, Kubeconfig, KubeconfigError, LoadDataError};

use crate::k8s::client::cause::{auth, cause, one_line};
use crate::k8s::client::error::K8sError;
use crate::k8s::client::no_proxy::is_exempt;
use crate::k8s::client::server::{Context, Server, address, kubectl, quoted};

/// Number of contexts that a message lists.
const SHOWN: usize = 10;

/// Options that select the API server, as kubectl has them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Access {
    /// File to read instead of those in KUBECONFIG and kubectl's own.
    pub kubeconfig: Option<PathBuf>,
    /// Context to use instead of the current one.
    pub context: Option<String>,
}

impl Access {
    /// Returns the options as a person types them for kubectl or osd-migrate; empty if none is needed.
    pub fn options(&self) -> String {
        let context = self.context.as_ref().map(|name| format!("--context {}", quoted(name)));
        let file = self
            .kubeconfig
            .as_ref()
            .map(|file| format!("--kubeconfig {}", quoted(&file.display().to_string())));
        context.into_iter().chain(file).collect::<Vec<_>>().join(" ")
    }
}

/// Parts of the environment that kubectl reads.
pub(super) struct Environment {
    /// Value of `KUBECONFIG`.
    pub(super) kubeconfig: Option<OsString>,
    /// Home folder.
    pub(super) home: Option<PathBuf>,
    /// Whether this process runs in a pod.
    pub(super) is_pod: bool,
    /// Value of `NO_PROXY`.
    pub(super) no_proxy: String,
}

impl Environment {
    /// Reads the environment of this process.
    #[expect(clippy::disallowed_methods, reason = "kubectl's own variables select the API server")]
    pub(super) fn read() -> Self {
        Self {
            kubeconfig: std::env::var_os("KUBECONFIG"),
            home: std::env::home_dir(),
            is_pod: std::env::var_os("KUBERNETES_SERVICE_HOST").is_some(),
            no_proxy: ["NO_PROXY", "no_proxy"]
                .iter()
                .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
                .unwrap_or_default(),
        }
    }
}

impl Access {
    /// Returns the configuration of the client, and the server for messages.
    ///
    /// A kubeconfig takes precedence over the ServiceAccount of a pod, as with kubectl. If an option names
    /// one, nothing else is tried.
    pub(super) async fn configuration(&self, around: &Environment) -> Result<(Config, Server), K8sError> {
        let why = match self.of_kubeconfig(around).await {
            Ok(found) => return Ok(found),
            Err(why) => one_line(&why),
        };
        if !around.is_pod || self.kubeconfig.is_some() || self.context().is_some() {
            return Err(K8sError::NoConfig(why));
        }
        let mut config = Config::incluster().map_err(|error| {
            K8sError::NoConfig(format!("the ServiceAccount of this pod cannot be used: {error}"))
        })?;
        config.apply_debug_overrides();
        let server = Server::in_cluster(&address(&config.cluster_url), &config.default_namespace);
        Ok((config, server))
    }

    /// Returns the context that was named; kubectl takes an empty name for none.
    fn context(&self) -> Option<&String> {
        self.context.as_ref().filter(|name| !name.is_empty())
    }

    async fn of_kubeconfig(&self, around: &Environment) -> Result<(Config, Server), String> {
        let (kubeconfig, files) = self.read(around)?;
        let see = format!("See: {} config", kubectl(self.kubeconfig.as_deref()));
        let known = known(&kubeconfig);
        let current = kubeconfig.current_context.as_ref().filter(|name| !name.is_empty());
        let Some(name) = self.context().or(current).cloned() else {
            return Err(format!(
                "{files} has no current context. Select a context with --context{known}. {see} get-contexts"
            ));
        };
        let entry = kubeconfig.contexts.iter().find(|one| one.name == name);
        let Some(context) = entry.and_then(|one| one.context.clone()) else {
            return Err(format!("{files} has no context {name}{known}. {see} get-contexts"));
        };
        let options = KubeConfigOptions { context: Some(name.clone()), ..KubeConfigOptions::default() };
        let has_proxy = has_proxy(&kubeconfig, &context.cluster);
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &options)
            .await
            .map_err(|error| format!("context {name} of {files}: {}. {see} view", words(&error)))?;
        if self.kubeconfig.is_none() && self.context().is_none() {
            config.apply_debug_overrides();
        }
        if !has_proxy && is_exempt(&config.cluster_url, &around.no_proxy) {
            config.proxy_url = None;
        }
        let server = Server {
            url: address(&config.cluster_url),
            context: Some(Context {
                name,
                user: context.user.filter(|user| !user.is_empty()),
                file: self.kubeconfig.clone(),
            }),
            namespace: config.default_namespace.clone(),
        };
        Ok((config, server))
    }

    /// Reads the files, and returns them merged, with their names.
    ///
    /// KUBECONFIG may list files that do not exist: kubectl skips them
    /// (k8s.io/client-go/tools/clientcmd/loader.go, `ClientConfigLoadingRules.Load`).
    fn read(&self, around: &Environment) -> Result<(Kubeconfig, String), String> {
        if let Some(file) = &self.kubeconfig {
            return Ok((read(file)?, format!("kubeconfig {}", file.display())));
        }
        let files = files(around);
        let names = files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ");
        let mut merged: Option<Kubeconfig> = None;
        for file in files.iter().filter(|file| !is_missing(file)) {
            let next = read(file)?;
            merged = Some(match merged {
                None => next,
                Some(merged) => merged.merge(next).map_err(|error| {
                    format!("the kubeconfigs {names} cannot be merged: {error}. Name one with --kubeconfig")
                })?,
            });
        }
        let merged = merged.ok_or_else(|| {
            let searched = if names.is_empty() { String::new() } else { format!(" at {names}") };
            format!("there is no kubeconfig{searched}. Name one with --kubeconfig, or set KUBECONFIG")
        })?;
        Ok((merged, format!("kubeconfig {names}")))
    }
}

/// Returns the files that kubectl reads without `--kubeconfig`.
fn files(around: &Environment) -> Vec<PathBuf> {
    let listed = around.kubeconfig.iter().flat_map(std::env::split_paths);
    let listed: Vec<_> = listed.filter(|path| !path.as_os_str().is_empty()).collect();
    if !listed.is_empty() {
        return listed;
    }
    around.home.iter().map(|home| home.join(".kube").join("config")).collect()
}

/// Returns whether the kubeconfig itself names a proxy for the cluster: NO_PROXY does not apply to that one.
fn has_proxy(kubeconfig: &Kubeconfig, cluster: &str) -> bool {
    let named = kubeconfig.clusters.iter().find(|one| one.name == cluster);
    let proxy = named.and_then(|one| one.cluster.as_ref()?.proxy_url.as_ref());
    proxy.is_some_and(|proxy| !proxy.is_empty())
}

fn is_missing(file: &Path) -> bool {
    std::fs::metadata(file).is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

fn read(file: &Path) -> Result<Kubeconfig, String> {
    Kubeconfig::read_from(file).map_err(|error| {
        format!("{}. Name another file with --kubeconfig, or set KUBECONFIG", unread(&error, file))
    })
}

fn unread(error: &KubeconfigError, file: &Path) -> String {
    let file = file.display();
    // kube's enum is foreign and grows; all other errors are reported unchanged
    #[allow(clippy::wildcard_enum_match_arm)]
    match error {
        KubeconfigError::ReadConfig(why, _) => format!("kubeconfig {file} cannot be read: {why}"),
        // The error itself quotes the file, which has keys.
        KubeconfigError::Parse(why) => {
            let at = why.location().map(|at| format!(" at line {}, column {}", at.line(), at.column()));
            format!("kubeconfig {file} is not a kubeconfig: it is malformed{}", at.unwrap_or_default())
        }
        _ => format!("kubeconfig {file} cannot be read: {error}"),
    }
}

/// Returns the contexts of a kubeconfig, for a message.
fn known(kubeconfig: &Kubeconfig) -> String {
    let names: Vec<&str> = kubeconfig.contexts.iter().map(|one| one.name.as_str()).take(SHOWN).collect();
    let more = if kubeconfig.contexts.len() > SHOWN { ", ..." } else { "" };
    if names.is_empty() {
        " (it has none)".to_owned()
    } else {
        format!(" (it has {}{more})", names.join(", "))
    }
}

/// Returns the fault of an entry of the kubeconfig.
fn words(error: &KubeconfigError) -> String {
    // kube's enum is foreign and grows; all other errors are reported unchanged
    #[allow(clippy::wildcard_enum_match_arm)]
    match error {
        KubeconfigError::LoadClusterOfContext(cluster) => format!("there is no cluster {cluster}"),
        KubeconfigError::MissingClusterUrl => "its cluster has no server".to_owned(),
        KubeconfigError::ParseClusterUrl(why) => format!("the address of its server is invalid: {why}"),
        // The address of a proxy may contain a password.
        KubeconfigError::ParseProxyUrl(why) => format!("the address of its proxy is invalid: {why}"),
        KubeconfigError::LoadCertificateAuthority(why) => loaded("certificate-authority", why),
        KubeconfigError::LoadClientCertificate(why) => loaded("client-certificate", why),
        KubeconfigError::LoadClientKey(why) => loaded("client-key", why),
        KubeconfigError::ParseCertificates(why) => format!("its certificate-authority is no PEM: {why}"),
        _ => error.to_string(),
    }
}

fn loaded(field: &str, why: &LoadDataError) -> String {
    match why {
        LoadDataError::ReadFile(why, file) => format!("its {field} {} cannot be read: {why}", file.display()),
        LoadDataError::DecodeBase64(why) => format!("its {field}-data is not base64: {why}"),
        LoadDataError::NoBase64DataOrFile => format!("it has no {field}"),
    }
}

/// Returns the error of a client that cannot be created with a configuration that was read.
pub(super) fn unusable(server: &Server, plugin: Option<&str>, error: &kube::Error) -> K8sError {
    // kube's enum is foreign and grows; all other errors are reported unchanged
    #[allow(clippy::wildcard_enum_match_arm)]
    let why = match error {
        kube::Error::InferKubeconfig(why) => words(why),
        kube::Error::Auth(why) => auth(why, plugin),
        kube::Error::ProxyProtocolDisabled { proxy_url, .. }
        | kube::Error::ProxyProtocolUnsupported { proxy_url } => {
            format!(
                "its proxy {} cannot be used: this program does not support proxies. If HTTPS_PROXY names it, \
                 and the API server is reached without it, name the API server in NO_PROXY",
                address(proxy_url)
            )
        }
        _ => cause(error),
    };
    let see = format!("See: {} config view --minify", server.kubectl());
    K8sError::NoConfig(one_line(&match &server.context {
        Some(context) => format!("context {}: {why}. {see}", context.name),
        None => why,
    }))
}
