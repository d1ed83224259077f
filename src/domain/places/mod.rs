//! Places of the device sets (`storageClassDeviceSets`) that have no OSD, and what each becomes.
//!
//! A set has a place for each index of its PVCs, and for each OSD that its `count` declares beyond them. Rook
//! counts alike (`prepareStorageClassDeviceSets`, pkg/operator/ceph/cluster/osd/deviceSet.go, v1.20.6).
//!
//! | file | content |
//! | --- | --- |
//! | `place` | a place, and what it becomes |
//! | `obstacle` | why a place gets no OSD, with what to do |
//! | `rook` | how Rook is let do what osd-migrate does not |
//! | `find` | the places of all sets, set by set |
//! | `of_set` | the places of one set |
//! | `source` | the Deployment from which that of a new OSD is made |

mod find;
mod obstacle;
mod of_set;
mod place;
mod rook;
mod source;

pub use find::places;
pub use obstacle::Obstacle;
pub use place::{AvailablePvcs, Found, Place};
pub use rook::LetRook;
pub use source::{Wanted, source};
