//! Jobs on nodes: agents of a record, and inventories.
//!
//! | module | content |
//! | --- | --- |
//! | `agent_pod` | the Job of both |
//! | `agent_pvc` | the parts of an agent's pod for an OSD on PVCs |
//! | `agent`, `node_job` | agents and the objects that belong to them |
//! | `pvc_key` | the key of an encrypted OSD on a PVC |
//! | `inventory_job`, `inventory_report` | inventories |
//! | `job_state` | the state of a Job, from its status and its pods |
//! | `refused_pods` | the reason why a Job has no pod |
//! | `owned` | Jobs, pods and ConfigMaps of osd-migrate, by what they belong to |
//! | `report_map` | the agent's side of a report |

pub(crate) mod agent;
pub(crate) mod agent_pod;
mod agent_pvc;
pub(crate) mod inventory_job;
pub(crate) mod inventory_report;
pub(crate) mod job_state;
pub(crate) mod node_job;
pub(crate) mod owned;
mod pvc_key;
mod refused_pods;
mod report_map;
#[cfg(test)]
mod wire_agent_tests;
#[cfg(test)]
mod wire_inventory_tests;
#[cfg(test)]
mod wire_key_tests;
