//! osd-migrate: brings every OSD of a Ceph cluster on Kubernetes to the storage its owner declared, with the
//! same id.
//!
//! ```text
//!   ceph/ --\                        +--------------- run.rs: the only loop, the only sleep ---------------+
//!            > live/:   observe ---> | domain/: classify, plan, phase, step, gate --> ONE of:              |
//!   k8s/  --/                        |  Save(ledger)  |  Do(act)  |  Wait(why)  |  Finished  |  Halt(why)  |
//!                                    +------------------------- then observe again ------------------------+
//! ```
//!
//! # Reading guide
//!
//! The whole idea is in four places, about 230 lines. Read them in this order:
//!
//! 1. `src/run.rs`, `Ports::iteration`: load, observe, decide, do one thing, report it.
//! 2. `src/domain/plan/rules.rs`, from `RULES` to `plan`: what the run does next, an ordered list of rules.
//! 3. `src/domain/phase/rows.rs`, `ROWS`: for which facts each phase of an OSD holds.
//! 4. `src/domain/step/next.rs`, `Step::next`: the one thing that is done in each phase.
//!
//! The rest follows from a row of these tables: a rule or a phase leads to one function, in a file of its
//! subject. `docs/development/reading-guide.md` has the invariants and their tests.
//!
//! # Modules
//!
//! | module | content |
//! | --- | --- |
//! | `cli` | arguments, parsed once into domain types |
//! | `run` | the loop |
//! | `ports` | traits that the loop needs: cluster, ledger, Lease, clock, reporter |
//! | `exit` | exit codes |
//! | `commands` | one file per command |
//! | `live` | implements `ports` with Ceph and Kubernetes |
//! | `report`, `event_reporter` | events of a run as data; reported as log, Kubernetes event and status |
//! | `cluster_status_writer` | status of the CephCluster while a run is at work |
//! | `kube_events` | which of them become Kubernetes events |
//! | `show` | tables and JSON of `plan` and `status`; text, JSON and page of `report` |
//! | `layout` | width of the output, wrapped sentences, tables |
//! | `explain` | entries of the pages by their codes |
//! | `domain` | every decision; pure, in a crate of its own with `ports` and `sim` (`src/core.rs`) |
//! | `ceph` | one file per Ceph command; `librados` has the only unsafe code |
//! | `k8s` | one file per Kubernetes kind |
//! | `sim` | `ports` over a simulated cluster: `rehearse` and the tests |
//! | `rehearse` | the loop on the simulated cluster in virtual time, printed line by line |
//! | `memory` | memory limit of the pod, compared with the size of the cluster |
//! | `node` | node agent, the only code that accesses disks; on Linux only, and only `commands::node` uses it |
//! | `telemetry` | logs as JSON, metrics, traces; off by default |
//! | `failpoint` | test builds only: stops the process at a named place |

mod before;
pub mod ceph;
pub mod cli;
pub mod cluster_status_writer;
pub mod commands;
pub mod event_reporter;
pub mod exit;
pub mod explain;
#[cfg(feature = "failpoint")]
pub mod failpoint;
mod failures;
pub mod k8s;
pub mod kube_events;
pub mod layout;
pub mod live;
pub mod memory;
#[cfg(target_os = "linux")]
pub mod node;
mod pause;
pub mod rehearse;
pub mod report;
pub mod run;
pub mod show;
pub mod telemetry;

pub use osd_migrate_core::{domain, ports, sim};
