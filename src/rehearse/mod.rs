//! `rehearse`: the real loop on a simulated cluster in virtual time. It reads only its arguments and changes
//! nothing.

pub mod fault;
mod page;
mod rehearsal;
mod story;

pub use page::{json, text};
pub use rehearsal::{Rehearsal, rehearse};
pub use story::Line;
