//! Times at which work on an OSD may start: weekdays and times of day in a time zone.
//!
//! The clock of the time zone decides. If the clock is set back, an hour exists twice, and a window within
//! this hour opens twice. If the clock is set forward, an hour does not exist, and a window within this hour
//! does not open on that day.

mod bad_window;
mod days;
mod schedule;
mod window;
mod zone;

pub use bad_window::BadWindow;
pub use days::Days;
pub use schedule::Windows;
pub use window::Window;
pub use zone::{UnknownZone, Zone};
