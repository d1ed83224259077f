//! Basic types: ids, fsids, weights, CRUSH places, layouts.
//!
//! They are parsed on construction, so that every existing value is valid.

mod crush;
mod device;
mod ids;
mod layout;
mod pg_id;
pub mod pvc;

pub use crush::{CrushItem, Upmap, Weight};
pub use device::{DbDevice, DeviceIdentity, PART_UUID, device_type};
pub use ids::{ClusterFsid, Epoch, NodeName, NotARange, NotAnFsid, NotAnOsd, OsdFsid, OsdId, OsdRange};
pub use layout::{Kind, Layout, Mode, ObjectStore, Role};
pub use pg_id::{NotAPg, PgId};
