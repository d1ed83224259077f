//! Commands, one file each: they connect, call the other rooms, print, and return the exit code.
//!
//! | module | content |
//! | --- | --- |
//! | `dispatch` | from the arguments to the command |
//! | `plan`, `plan_removal`, `inventories`, `rate` | `plan`, its forecast of a removal; inventories of nodes; the rate for estimates |
//! | `run` | `run`, `provision` |
//! | `status`, `control`, `retry` | `status`; `pause`, `cancel`, `resume`; `retry` |
//! | `remove`, `undeclared`, `keep` | requests for the removal of OSDs |
//! | `fence` | `fence` |
//! | `preflight`, `start`, `uninstall` | Helm's hooks |
//! | `rehearse` | `rehearse` |
//! | `remote`, `follow` | commands that run in the cluster, typed outside of it: as a Job, and its log |
//! | `interrupted` | signals |
//! | `node` | the process of a node agent; on other systems than Linux `node_elsewhere`, which refuses |
//! | `explain`, `pages` | `explain`; `version`, `completion`, `man` |
//! | `pod`, `print`, `terminal` | the pod of this process; its output, and who reads it |

mod approve;
mod control;
mod dispatch;
mod explain;
mod fence;
mod follow;
mod interrupted;
mod inventories;
mod keep;
#[cfg(target_os = "linux")]
mod node;
#[cfg(not(target_os = "linux"))]
#[path = "node_elsewhere.rs"]
mod node;
mod pages;
mod plan;
mod plan_removal;
mod pod;
mod preflight;
mod print;
mod rate;
mod rehearse;
mod remote;
mod remove;
mod report;
mod retry;
mod run;
mod start;
mod status;
mod terminal;
mod undeclared;
mod uninstall;

pub use dispatch::{dispatch, ends_itself};
pub use interrupted::interrupted;
pub use node::as_shim;
pub use print::written;
pub use terminal::{columns, is_coloured};
