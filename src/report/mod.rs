//! Events of a run as data, and acts in words.

mod acts;
mod event;

pub use acts::words;
pub use event::{Event, Said};
