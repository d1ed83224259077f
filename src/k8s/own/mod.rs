//! Our own objects: the ledger and the status, plans, the Lease, the control map, events, who confirmed
//! a run, our pod and Job.

pub(crate) mod command_job;
pub(crate) mod confirmation;
pub(crate) mod control_map;
pub(crate) mod events;
pub(crate) mod lease;
pub(crate) mod ledger_map;
pub(crate) mod own_pod;
pub(crate) mod plan_map;
pub(crate) mod requests_map;
pub(crate) mod run_job;
#[cfg(test)]
mod wire_frozen_tests;
#[cfg(test)]
mod wire_lease_tests;
#[cfg(test)]
mod wire_ledger_tests;
