//! Decisions about a disk that the node agent has read.
//!
//! | module | content |
//! | --- | --- |
//! | `finding` | what a disk carries and proves, as one value |
//! | `verdict` | the permission of a rebuild for a disk |
//! | `proven` | the recorded proof, compared with what is read now |
//! | `layers` | layers of device-mapper between a disk and its OSD |
//! | `same_disk` | the recorded disk, compared with those of the node |
//! | `pieces` | parts of an OSD on other devices |

pub mod finding;
pub mod layers;
pub mod pieces;
pub mod proven;
pub mod same_disk;
#[cfg(test)]
mod samples;
pub mod verdict;

pub use layers::Layers;
