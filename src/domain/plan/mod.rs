//! Decides the next step of the whole run, by the ordered list of `rules`.
//!
//! | file | content |
//! | --- | --- |
//! | `rules` | order of the rules, and what is done after the decision |
//! | `rest` | what a rule leaves to those below |
//! | `lost_ledger`, `owner_fence`, `quarantined`, `orphans` | rules before any OSD |
//! | `in_progress`, `wanted` | OSDs in progress, and whether they are still wanted |
//! | `removals`, `unrequested` | OSDs to be removed: by a request, or by a switch of the run |
//! | `order`, `candidates`, `next_osd`, `batch` | the next OSD to migrate, and one more in parallel |
//! | `approved` | lines of a plan that a person approves |
//! | `existing_osd`, `directory`, `directory_disk`, `database`, `record` | its record |
//! | `delayed` | OSDs that their own state delays |
//! | `end` | ends of a run |
//! | `tolerate` | restarts for taints |
//! | `nodes`, `provisioner`, `inventories`, `available`, `adopt`, `new_osd` | new OSDs, node by node |
//! | `former` | disks with OSDs that are no longer in the cluster |
//! | `new_on_pvc` | new OSDs on PVCs of device sets |
//! | `crash_loop` | progress of a Job's pods, recorded after the decision |
//! | `questions`, `disks` | what is asked before the decision; disks as `plan` shows them |

mod adopt;
mod approved;
mod available;
mod batch;
mod candidates;
mod crash_loop;
mod database;
mod delayed;
mod directory;
mod directory_disk;
mod disks;
mod end;
mod existing_osd;
mod former;
mod in_progress;
mod inventories;
mod lacks_disk;
mod lost_ledger;
mod new_on_pvc;
mod new_osd;
mod next_osd;
mod nodes;
mod order;
mod orphans;
mod owner_fence;
mod provisioner;
mod quarantined;
mod questions;
mod record;
mod removals;
mod rest;
mod rules;
mod tolerate;
mod unrequested;
mod wanted;

pub use approved::{changed, line_of_osd, unmatched};
pub use candidates::{candidates, first_to_be_emptied, refused};
pub use crash_loop::{CRASH_LOOP, crash_loop, crash_loop_unseen};
pub use database::of_each as databases;
pub use directory::{inspected, of_each as directories};
pub use directory_disk::Onto;
pub use disks::{DiskLine, Disks, disks};
pub use in_progress::waits;
pub use inventories::inventory_job;
pub use new_on_pvc::{allowed as places, line_of_pvcs};
pub use order::host_of;
pub use provisioner::OF_PLAN;
pub use quarantined::UNHEALED_MINUTES;
pub use questions::{Questions, questions};
pub use removals::{previews as removals, removals_due, requested as requested_removals};
pub use rules::{AFTERWARDS, Afterwards, RULES, Rule, plan};
pub use unrequested::all as unrequested_removals;

pub use super::temporary::flags::before_halt;
