//! SimCluster: Ceph, Kubernetes and the disks below them, simulated with observed semantics instead of
//! convenient ones.
//!
//! It serves both `rehearse` and the tests. A `World` is plain data: everything that is true at one instant.
//! It changes in two ways only: by an act of the runner (`acts`), and by what happens by itself or externally
//! (`happening`). Both are functions of the world alone. So a search can follow every order in which they may
//! come (`tests/explore`), and a seeded schedule can play one order in virtual time (`ports`).
//!
//! | module | content | observed on |
//! | --- | --- | --- |
//! | `world` | everything that is true at one instant | |
//! | `mon` | slots, keys, flags, CRUSH, upmaps: commands | 16.2.15, by `tests/suite/fixtures/fidelity` |
//! | `pgs` | location of data, statistics of the mgr, ok-to-stop, safe-to-destroy | 16.2.15 |
//! | `kube` | Deployments, pods, node Jobs and the objects of a record | Kubernetes 1.34 |
//! | `rook` | effects of a reconcile by Rook on OSDs | 1.20.6, and its sources |
//! | `agent`, `stage` | node agent step by step, with the real proofs of `domain::proof` | 16.2.15 |
//! | `wipe`, `clear` | end of the wipe of a disk whose OSD is removed; deletion of a directory | |
//! | `stumble` | failures of ceph-volume inside the agent | 16.2.15 |
//! | `carried` | an agent's view of disks and directories | |
//! | `attach` | volumes that are attached to the node of their pod | Kubernetes 1.34 |
//! | `pvcs`, `on_pvc`, `pvc_part`, `new_on_pvc` | PersistentVolumeClaims, their keys, databases and new OSDs on them | Kubernetes 1.34 |
//! | `acts`, `acts_on_ceph` | each act with the preconditions of `domain::expect`, like the adapters | |
//! | `noise`, `disturbance` | persistent problems elsewhere: dead OSDs, cordoned or lost nodes, unusual PGs | |
//! | `happening` | happenings as data: time, statistics, daemons, agents; faults, Rook, people | |
//! | `change`, `faults` | effects of happenings | |
//! | `by_person` | values and marks of what people change | |
//! | `schedule`, `course` | virtual time | durations: lab, 16.2.15 on Kubernetes 1.34 |
//! | `ports` | ports of the loop in virtual time | |
//! | `new_osds` | inventories, tolerations, placement of data when an OSD is added | 16.2.15 |
//! | `example` | worlds that tests and `rehearse` start from | |

mod acts;
mod acts_on_ceph;
mod agent;
mod attach;
mod by_person;
mod carried;
mod change;
mod clear;
pub mod course;
mod disturbance;
mod drains;
pub mod example;
mod faults;
pub mod happening;
mod kube;
mod mon;
mod new_on_pvc;
mod new_osds;
mod noise;
mod on_pvc;
mod pgs;
pub mod ports;
mod pvc_part;
mod pvcs;
mod rook;
pub mod schedule;
mod stage;
mod stumble;
mod wipe;
mod world;

pub use acts::Read;
pub use carried::kernel_disk;
pub use disturbance::Disturbance;
pub use happening::{Around, Happening};
pub use mon::MonError;
pub use noise::{Noise, UnusualPg};
pub use pvcs::{PvcChange, Pvcs};
pub use rook::Rook;
pub use stage::{Agent, Stage};
pub use stumble::Stumble;
pub use world::{Disk, Effect, Placement, World, fsid_on};
