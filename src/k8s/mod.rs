//! Kubernetes: one file per kind. Builders and parsers are pure; the calls around them carry what they expect
//! to find.
//!
//! Nothing here decides, waits or sleeps, except for the report of a node agent. Nothing reads the clock:
//! times are arguments.

mod admission;
mod agent;
mod agent_pod;
mod ceph_cluster;
mod control_map;
mod daemon;
mod daemon_data;
mod declared_osd;
mod deploy_osd;
mod error;
mod events;
mod inventory_job;
mod inventory_report;
mod job_state;
mod kind;
mod lease;
mod ledger_map;
mod local_volumes;
mod mon_access;
mod names;
mod node_job;
mod observe;
mod operator;
mod osd_activation;
mod osd_containers;
mod osd_deployment;
mod osd_env;
mod osd_object;
mod own_pod;
mod pdbs;
mod pods;
mod render_osd;
mod report_map;
mod run_job;
mod tolerations;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::config::{Config, KubeConfigOptions};

pub use agent::Agent;
pub use ceph_cluster::FENCE;
pub use control_map::CONTROL;
pub use deploy_osd::Deployed;
pub use error::{Call, K8sError};
pub use events::{About, EventType};
pub use inventory_job::NewInventoryJob;
pub use inventory_report::{INVENTORY, INVENTORY_GZ, Stored, fit, unpack};
pub use lease::{Holder, LEASE, LeaseOutcome};
pub use ledger_map::{LEDGER, ResourceVersion, STATUS};
pub use mon_access::{Key, MonAccess};
pub use names::{OURS, STOPPED, backup_name, inventory_job_name, job_name, short};
pub use own_pod::{More, Own, PodEnv};
pub use run_job::{CRON_JOB, Started};

/// Name of our writes in `managedFields`.
const FIELD_MANAGER: &str = "osd-migrate";

/// Time limit of one call. Lists of many thousand OSDs are read in pages, so ten seconds are long for each.
const CALL_LIMIT: Duration = Duration::from_secs(10);

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
}

impl Place {
    /// Returns a namespace with one CephCluster and without other settings.
    pub fn new(namespace: &str) -> Self {
        Self { namespace: namespace.to_owned(), cluster: None, operator_namespace: None, ceph_secret: None }
    }
}

/// Version of the ledger that was loaded; none if there was no ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Loaded(Option<ResourceVersion>);

/// Access to the namespace of one CephCluster.
pub struct K8s {
    client: Client,
    place: Place,
    call_limit: Duration,
    requests: AtomicU64,
    /// Version of the ledger that was loaded last: the present decisions are based on it.
    decided_by: Mutex<Option<Loaded>>,
    notes: Mutex<BTreeSet<String>>,
    /// Namespace in which Rook's operator was found: OSDs' Deployments name it.
    operator_in: OnceLock<String>,
    /// Name of the CephCluster, once it was read.
    cluster_name: OnceLock<String>,
}

impl K8s {
    /// Opens the API: in a pod with its ServiceAccount, elsewhere as kubectl does. No request is sent yet.
    pub async fn connect(place: Place, context: Option<&str>) -> Result<Self, K8sError> {
        let mut config = match context {
            None => Config::infer().await.map_err(|e| K8sError::NoConfig(e.to_string()))?,
            Some(context) => {
                let options =
                    KubeConfigOptions { context: Some(context.to_owned()), ..KubeConfigOptions::default() };
                Config::from_kubeconfig(&options).await.map_err(|e| K8sError::NoConfig(e.to_string()))?
            }
        };
        // kube would repeat every verb, also POST, for up to half an hour. Instead, the next iteration
        // decides.
        config.default_retry = false;
        // An audit log names its writers by the user agent; kube sends none.
        let agent = concat!("osd-migrate/", env!("CARGO_PKG_VERSION"));
        if let (Ok(name), Ok(agent)) = ("user-agent".parse(), agent.parse()) {
            config.headers.push((name, agent));
        }
        let client = Client::try_from(config).map_err(|e| K8sError::NoConfig(e.to_string()))?;
        Ok(Self::with_client(client, place))
    }

    /// Creates the access with an existing client: for tests.
    pub fn with_client(client: Client, place: Place) -> Self {
        Self {
            client,
            place,
            call_limit: CALL_LIMIT,
            requests: AtomicU64::new(0),
            decided_by: Mutex::new(None),
            notes: Mutex::new(BTreeSet::new()),
            operator_in: OnceLock::new(),
            cluster_name: OnceLock::new(),
        }
    }

    /// Sets another limit for each call.
    #[must_use]
    pub fn with_call_limit(mut self, limit: Duration) -> Self {
        self.call_limit = limit;
        self
    }

    /// Returns the namespace of the CephCluster and of all our objects.
    pub fn namespace(&self) -> &str {
        &self.place.namespace
    }

    /// Returns the namespace of Rook's operator, as far as it is known.
    fn operator_namespace(&self) -> &str {
        let known = self.place.operator_namespace.as_ref().or_else(|| self.operator_in.get());
        known.unwrap_or(&self.place.namespace)
    }

    /// Returns the number of requests sent so far.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Writes a note to the log, once, about what an observation could not see.
    fn note_in_log(&self, note: &str) {
        if self.notes.lock().unwrap_or_else(PoisonError::into_inner).insert(note.to_owned()) {
            tracing::warn!("{note}");
        }
    }

    fn count_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }
}

/// Converts a time of the API. Times outside chrono's range can't occur.
fn from_jiff(time: Timestamp) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(time.as_second(), u32::try_from(time.subsec_nanosecond()).ok()?)
}

/// Converts a time for the API, to the microsecond that `MicroTime` has.
fn to_jiff(time: DateTime<Utc>) -> Timestamp {
    Timestamp::from_microsecond(time.timestamp_micros()).unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod render_new_tests;
#[cfg(test)]
mod rook_reads_back_tests;
#[cfg(test)]
mod wire_deploy_tests;
#[cfg(test)]
mod wire_fence_tests;
#[cfg(test)]
mod wire_frozen_tests;
#[cfg(test)]
mod wire_inventory_tests;
#[cfg(test)]
mod wire_lease_tests;
#[cfg(test)]
mod wire_tests;
