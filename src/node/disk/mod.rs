//! A disk: its identity, its users, what is on it, and the writes to it.
//!
//! | module | content |
//! | --- | --- |
//! | `devices`, `parts`, `links` | disks and partitions as the kernel shows them |
//! | `usage`, `kubelet` | users of a disk: mounts, swap, pods |
//! | `file_disk` | the file that tests use in place of a disk |
//! | `label`, `table`, `tombstone`, `marks` | what is on a disk, one reader each |
//! | `mark` | the empty partition table on the disk of a removed OSD |
//! | `wipe` | the only writes to a disk, except those of LVM |

pub(crate) mod devices;
pub(crate) mod file_disk;
pub(crate) mod kubelet;
pub(crate) mod label;
pub(crate) mod links;
pub(crate) mod mark;
pub(crate) mod marks;
pub(crate) mod parts;
pub(crate) mod table;
pub(crate) mod tombstone;
pub(crate) mod usage;
pub(crate) mod wipe;
