//! How a new OSD is created.
//!
//! | module | content |
//! | --- | --- |
//! | `capability` | what the image can do |
//! | `mons` | slots and keys |
//! | `ceph_volume`, `shim` | `ceph-volume prepare`, and the tools that it calls |

pub(crate) mod capability;
pub(crate) mod ceph_volume;
pub(crate) mod mons;
pub mod shim;
