//! Kubernetes: one file per kind. Builders and parsers are pure; the calls around them carry what they expect
//! to find.
//!
//! Nothing here decides, waits or sleeps, except for the report of a node agent and for watches. Nothing
//! reads the clock: times are arguments.
//!
//! | folder or file | content |
//! | --- | --- |
//! | `observe`, `lately` | one observation of the API server, complete or partial |
//! | `maps` | ConfigMaps, each read only if its version is another one |
//! | `prepares` | Jobs in which Rook prepares OSDs, with their nodes |
//! | `changes`, `watches` | whether something has changed since it was read |
//! | `osd` | Deployments of OSDs |
//! | `nodes` | Jobs on nodes: agents and inventories |
//! | `rook` | Rook's objects |
//! | `own` | our own objects |
//! | `client` | calls, their limits and errors |
//! | `names`, `pods`, `tolerations`, `local_volumes`, `pvcs` | used by several of them |

mod changes;
mod client;
mod lately;
mod local_volumes;
mod maps;
mod names;
mod nodes;
mod observe;
mod osd;
mod own;
mod pods;
mod prepares;
mod pvcs;
mod rook;
mod short_pod;
mod tolerations;
mod watches;
#[cfg(test)]
pub(crate) mod wire;

pub(crate) use changes::{Changes, Last};
pub use changes::{Group, Watched};
pub use client::access::{K8s, Place, ResourceVersion};
pub use client::call::Call;
pub(crate) use client::cause::cause;
pub use client::error::{Elsewhere, K8sError};
pub use client::kubeconfig::Access;
pub use client::server::{Context, Server};
pub use lately::Lately;
pub use names::{OURS, STOPPED, backup_name, inventory_job_name, job_name, short};
pub use nodes::agent::Agent;
pub use nodes::agent_pod::NodePod;
pub use nodes::inventory_job::NewInventoryJob;
pub use nodes::inventory_report::{INVENTORY, INVENTORY_GZ, Stored, fit, unpack};
pub use osd::deploy_osd::Deployed;
pub use own::command_job::{CommandJob, JobPod, JobState, Look};
pub use own::control_map::CONTROL;
pub use own::events::{About, EventType};
pub use own::lease::{Holder, LEASE, LeaseOutcome};
pub use own::ledger_map::{LEDGER, STATUS};
pub use own::own_pod::{More, Own, PodEnv};
pub use own::plan_map::PLAN;
pub use own::requests_map::REQUESTS;
pub(crate) use own::requests_map::key as request_key;
pub use own::run_job::{CRON_JOB, Started};
pub use rook::ceph_cluster::FENCE;
pub use rook::mon_access::{Key, MonAccess};
