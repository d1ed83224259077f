//! What may be done with a disk, decided purely.
//!
//! | module | content |
//! | --- | --- |
//! | `verdict` | the permission of a rebuild for a disk |
//! | `proven` | the recorded proof, compared with what is read now |
//! | `same_disk` | the recorded disk, compared with those of the node |
//! | `pieces` | parts of an OSD on other devices |

pub(crate) mod pieces;
pub(crate) mod proven;
pub(crate) mod same_disk;
#[cfg(test)]
mod samples;
pub(crate) mod verdict;

pub(crate) use proven::is_mapped;
