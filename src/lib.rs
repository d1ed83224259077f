//! osd-migrate: brings every OSD of a Ceph cluster on Kubernetes to the storage its owner declared, with the same id.
//!
//! ```text
//!   ceph/ --\                        +---------------- run.rs: the only loop, the only sleep ----------------+
//!            > live.rs: observe ---> | domain/: classify, plan, phase, step, gate  -->  ONE of:              |
//!   k8s/  --/                        |    Save(ledger)  |  Do(act)  |  Wait(why)  |  Finished  |  Halt(why)   |
//!                                    +------------------------- then look again -----------------------------+
//! ```
//!
//! | module | what |
//! | --- | --- |
//! | `cli` | arguments, parsed once into domain types |
//! | `run` | the loop |
//! | `ports` | what the loop needs of the world |
//! | `exit` | how the program ends |
//! | `hooks` | what Helm runs before and after: `preflight`, `start`, `uninstall` |
//! | `looks` | `plan --inventory`: the nodes' disks outside of a run |
//! | `live` | joins the two adapters to fulfil it |
//! | `report`, `tell` | what happened, as data; told as log, event and status |
//! | `announce` | what of it becomes an event of Kubernetes |
//! | `show` | tables and JSON of `plan` and `status` |
//! | `domain` | every decision; pure |
//! | `ceph` | one file per Ceph command; `librados` has the only unsafe code |
//! | `k8s` | one file per Kubernetes kind |
//! | `sim` | the same ports over a simulated cluster: `rehearse` and the tests |
//! | `rehearse` | the loop on the simulated cluster in virtual time, told line by line |
//! | `memory` | the memory that the pod may use, against the size of the cluster |
//! | `node`, `serve` | the agent that touches disks, in a node Job; its process |
//! | `failpoint` | test builds only: stops the process at a named place |

pub mod ceph;
pub mod cli;
pub mod domain;
pub mod event_reporter;
pub mod exit;
#[cfg(feature = "failpoint")]
pub mod failpoint;
pub mod hooks;
pub mod inventories;
pub mod k8s;
pub mod kube_events;
pub mod live;
pub mod memory;
pub mod node;
pub mod ports;
pub mod rehearse;
pub mod report;
pub mod run;
pub mod serve;
pub mod show;
pub mod sim;
