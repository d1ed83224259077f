//! The node agent: the only part of osd-migrate that touches disks. The agent runs once, in a privileged pod
//! with the cluster's own Ceph image. It does one task for one OSD under that OSD's lock, and reports what
//! the disk then carries. For an inventory it only reads all disks. `domain::proof` decides what may be done
//! with a disk.
//!
//! The agent runs on Linux only, and so this module is compiled only there.
//!
//! | folder or file | content |
//! | --- | --- |
//! | `agent` | the tasks: inspect, rebuild, restore the slot, clear |
//! | `inventory` | all disks of a node and the OSDs on them |
//! | `find` | the disk of a request, and its content |
//! | `pvc` | devices of PVCs; database and log on PVCs of their own |
//! | `create` | how a new OSD is created |
//! | `volumes` | OSDs on logical volumes: created, found again, removed |
//! | `legacy` | OSDs on partitions, with parts on other devices, in directories |
//! | `disk` | a disk's identity, users, content, and the writes to it |
//! | `state` | what outlives an agent: locks, attempts, issued fsids |
//! | `tools` | programs: the list of those that read, and how any is run |
//! | `bridge` | the device node of a PVC, for the agent |
//! | `host`, `steps`, `error` | the rest |

mod agent;
mod bridge;
mod create;
mod disk;
mod error;
mod find;
mod host;
mod inventory;
mod legacy;
mod pvc;
#[cfg(test)]
mod samples;
mod state;
mod steps;
mod tools;
mod volumes;

pub use agent::agent;
pub use bridge::bridge;
pub use create::shim;
pub use error::NodeError;
pub use host::Host;
pub use inventory::inventory;
