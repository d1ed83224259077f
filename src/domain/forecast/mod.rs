//! Forecast of a removal of OSDs: which PGs move, how many bytes, and whether each of them finds a place.
//!
//! The placement is Ceph's own, computed by Ceph's program from the changed osdmap. A sum of free bytes
//! answers neither question: with bytes free, CRUSH may still find too few OSDs for a PG, and one OSD may
//! get much more than the mean. See docs/development/adr/0032-forecast-by-cephs-own-program.md.

mod judge;
mod obstacle;
mod placement;
mod remark;
mod space;

pub use judge::{Change, Forecast, forecast, is_known};
pub use obstacle::Obstacle;
pub use placement::{Move, Placement};
pub use remark::Remark;
pub use space::{Limits, OsdSpace, Space};
