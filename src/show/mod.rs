//! Tables and JSON of `plan` and `status`, the forms of `report`, and the texts of the hooks. This module
//! creates text from domain values; `main` prints it.

mod declared;
mod disks;
mod document;
mod drift;
mod fence;
mod parallel;
mod pgs;
mod places;
mod plan;
mod preflight;
mod progress;
mod removal;
mod report;
mod requests;
mod status;
mod table;
mod windows;

pub use declared::nothing_declared;
pub use document::yaml;
pub use drift::{drift_json, drift_text};
pub use fence::{before_an_edit, fence_text, fenced_since};
pub use parallel::{in_parallel_json, in_parallel_text};
pub use pgs::{pgs_json, pgs_text};
pub use plan::{Plan, PlanDetail, plan_json, plan_names, plan_text};
pub use preflight::{
    UNINSTALL_WITHOUT_HOOK, left_behind, left_without_cluster, no_cluster, not_inspected, preflight,
    still_open,
};
pub use removal::{Removal, removal_json, removal_text};
pub use report::{Report, report_html, report_json, report_text};
pub use requests::{
    Asked, By, StoredRequests, ToRemove, kept, other_daemons, requested_text, too_late, undecided, undeclared,
};
pub use status::{Status, control_changed, status_json, status_text};
pub use windows::{windows_json, windows_text};
