//! The inventory of a node: its disks and the OSDs on them. Reads only, takes no lock, has no key.
//!
//! | module | content |
//! | --- | --- |
//! | `read` | disks and partitions, one after the other, and the report |
//! | `rejections` | ceph-volume's view of disks and OSDs |
//! | `state` | what is on a disk, decided purely |
//! | `osds` | the OSDs that were found |

mod osds;
mod read;
mod rejections;
mod state;

pub use read::inventory;
pub(crate) use state::MIN_BYTES;
