//! OSDs as they were created before ceph-volume: on partitions of ceph-disk or of Rook up to 1.2, with parts
//! on other devices, in directories. `docs/concepts/legacy-osds.md` says what proves each kind.
//!
//! | module | content |
//! | --- | --- |
//! | `examine` | the OSD on a disk's partitions |
//! | `files` | the small files at the root of an OSD's data |
//! | `partitions` | table and labels of a disk, and what of it proves an OSD |
//! | `ceph_disk` | a data partition, and the other partitions on its disk |
//! | `rook` | Rook's own partitions of a BlueStore |
//! | `journal` | the head of Filestore's journal |
//! | `pieces` | parts on other devices: found, proven, cleared |
//! | `directory` | an OSD in a directory: proven, removed |
//! | `remains` | Rook's files of an OSD on the host, apart from the OSD's disk: removed |

mod ceph_disk;
pub(crate) mod directory;
pub(crate) mod examine;
pub(crate) mod files;
mod journal;
pub(crate) mod partitions;
pub(crate) mod pieces;
pub(crate) mod remains;
mod rook;
