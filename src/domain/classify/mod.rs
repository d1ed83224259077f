//! Classes of the OSDs, compared with what their owner declares.

mod class;
mod database;
mod decide;
mod device;
mod differences;
mod kind;
mod obstacles;
mod on_pvc;
mod pvc_refusal;
mod pvcs;
mod release;
mod target;

pub use class::{Class, Difference, Mismatch, Refusal};
pub use database::{databases_by_node, databases_on, lost_database};
pub use decide::{class_of, classes, classify, database_of, kind_of, target_of};
pub use device::{contradicts, excludes};
pub use on_pvc::{pvcs_of, set_of};
pub use pvc_refusal::PvcRefusal;
pub use pvcs::{PvcIndex, unusable};
pub use release::{ignores_osd_id, lists_no_links};
pub use target::is_node_encrypted;
