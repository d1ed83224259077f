//! Access to the API server, for the namespace of one CephCluster.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use kube::Client;

use crate::k8s::changes::Changes;
use crate::k8s::client::call::Call;
use crate::k8s::client::error::K8sError;
use crate::k8s::client::kubeconfig::{Access, Environment, unusable};
use crate::k8s::client::server::Server;

/// Name of our writes in `managedFields`.
pub(crate) const FIELD_MANAGER: &str = "osd-migrate";

/// Time limit of a read.
///
/// Lists of many thousand OSDs are read in pages, so ten seconds are long for each.
const READ_LIMIT: Duration = Duration::from_secs(10);

/// Time limit of a write.
///
/// The API server waits up to 30 s for an admission webhook that does not answer, by default 10 s, and then
/// goes on without it or refuses. If the client gave up before, the write would never be done.
const WRITE_LIMIT: Duration = Duration::from_secs(35);

/// Location of the CephCluster and of the objects around it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Namespace of the CephCluster and of all our objects.
    pub namespace: String,
    /// Name of the CephCluster; needed only if the namespace has several.
    pub cluster: Option<String>,
    /// Namespace of Rook's operator. If none is given: the one in OSD Deployments, else that of the
    /// CephCluster.
    pub operator_namespace: Option<String>,
    /// Secret of the namespace with the user for Ceph and its key, if the owner created one; else Rook's own.
    pub ceph_secret: Option<String>,
    /// Options of kubectl that a person typed to reach the cluster, for the commands in messages.
    pub access: String,
}

impl Place {
    /// Returns a namespace with one CephCluster and without other settings.
    pub fn new(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            cluster: None,
            operator_namespace: None,
            ceph_secret: None,
            access: String::new(),
        }
    }
}

/// Version of an object that was read, which a save compares with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceVersion(pub String);

/// Version of the ledger that was loaded or saved; none if there was no ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::k8s) struct Loaded(pub(in crate::k8s) Option<ResourceVersion>);

/// Access to the namespace of one CephCluster.
pub struct K8s {
    pub(in crate::k8s) client: Client,
    pub(in crate::k8s) place: Place,
    pub(in crate::k8s) server: Arc<Server>,
    read_limit: Duration,
    write_limit: Duration,
    is_acting: AtomicBool,
    requests: AtomicU64,
    pub(in crate::k8s) changes: Arc<Changes>,
    /// Version of the ledger that was loaded or saved last: the present decisions are based on it.
    pub(in crate::k8s) decided_by: Mutex<Option<Loaded>>,
    notes: Mutex<BTreeSet<String>>,
    /// Namespace in which Rook's operator was found: OSDs' Deployments name it.
    pub(in crate::k8s) operator_in: OnceLock<String>,
    /// Name of the CephCluster, once it was read.
    pub(in crate::k8s) cluster_name: OnceLock<String>,
}

impl K8s {
    /// Opens the API as kubectl does: with a kubeconfig, else with the ServiceAccount of the pod.
    ///
    /// No request is sent yet.
    pub async fn connect(place: Place, access: &Access) -> Result<Self, K8sError> {
        Self::connect_in(place, access, &Environment::read()).await
    }

    pub(super) async fn connect_in(
        place: Place,
        access: &Access,
        around: &Environment,
    ) -> Result<Self, K8sError> {
        let (mut config, server) = access.configuration(around).await?;
        // kube would repeat every verb, also POST, for up to half an hour. Instead, the next iteration
        // decides.
        config.default_retry = false;
        // An audit log names its writers by the user agent; kube sends none.
        let agent = concat!("osd-migrate/", env!("CARGO_PKG_VERSION"));
        if let (Ok(name), Ok(agent)) = ("user-agent".parse(), agent.parse()) {
            config.headers.push((name, agent));
        }
        let plugin = config.auth_info.exec.as_ref().and_then(|exec| exec.command.clone());
        let client =
            Client::try_from(config).map_err(|error| unusable(&server, plugin.as_deref(), &error))?;
        Ok(Self::with_client(client, place).at(server))
    }

    /// Creates the access with an existing client, as in a pod: for tests.
    pub fn with_client(client: Client, place: Place) -> Self {
        Self {
            client,
            place,
            server: Arc::new(Server::in_cluster("https://kubernetes.default.svc", "default")),
            read_limit: READ_LIMIT,
            write_limit: WRITE_LIMIT,
            is_acting: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            changes: Arc::default(),
            decided_by: Mutex::new(None),
            notes: Mutex::new(BTreeSet::new()),
            operator_in: OnceLock::new(),
            cluster_name: OnceLock::new(),
        }
    }

    /// Sets the server that errors name.
    #[must_use]
    pub(in crate::k8s) fn at(mut self, server: Server) -> Self {
        self.server = Arc::new(server);
        self
    }

    /// Returns the API server, and the identity there.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Sets another limit for each call.
    #[must_use]
    pub fn with_call_limit(mut self, limit: Duration) -> Self {
        (self.read_limit, self.write_limit) = (limit, limit);
        self
    }

    /// Notes that an act begins, or has ended: within it, no read is repeated.
    pub fn set_acting(&self, is_acting: bool) {
        self.is_acting.store(is_acting, Ordering::Relaxed);
    }

    pub(super) fn is_acting(&self) -> bool {
        self.is_acting.load(Ordering::Relaxed)
    }

    /// Returns the time limit of a call.
    pub(super) fn limit_of(&self, call: &Call) -> Duration {
        if call.is_write() { self.write_limit } else { self.read_limit }
    }

    /// Returns the namespace of the CephCluster and of all our objects.
    pub fn namespace(&self) -> &str {
        &self.place.namespace
    }

    /// Returns the namespace of Rook's operator, as far as it is known.
    pub(in crate::k8s) fn operator_namespace(&self) -> &str {
        let known = self.place.operator_namespace.as_ref().or_else(|| self.operator_in.get());
        known.unwrap_or(&self.place.namespace)
    }

    /// Returns the number of requests sent so far.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Writes a note to the log, once, about what an observation could not see.
    pub(in crate::k8s) fn note_in_log(&self, note: &str) {
        if self.notes.lock().unwrap_or_else(PoisonError::into_inner).insert(note.to_owned()) {
            tracing::warn!("{note}");
        }
    }

    pub(in crate::k8s) fn count_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }
}
