//! Adapter of a real run: joins Ceph and Kubernetes into one observation, and passes each act to the adapter
//! it belongs to.
//!
//! It contains no rule about OSDs and no retry: the next iteration decides again about an act that failed.

mod acts;
mod adapter;
mod clock;
mod emptying;
mod failure;
mod kept;
mod lease;
mod ledgers;
mod observing;
mod questions;
mod session;
mod watches;

pub use adapter::Live;
pub use clock::{WallClock, WokenClock};
pub(crate) use clock::{now, pause};
pub use failure::{ceph_failure, kube_failure};
pub use lease::PodLease;
pub use ledgers::Ledgers;
