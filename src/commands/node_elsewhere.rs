//! Takes the place of `node.rs` on systems other than Linux, where no node Job runs.

use std::ffi::OsString;
use std::future::{Ready, ready};
use std::process::ExitCode;

use crate::cli::NodeCommand;
use crate::exit::{Exit, failed};

/// Says that there is nothing to do here.
pub(super) fn node(_: &NodeCommand) -> Ready<Exit> {
    let why = "osd-migrate node runs only in a node Job, which is on Linux. A run creates its node Jobs itself: \
               osd-migrate run";
    ready(failed(why, Exit::WrongUsage))
}

/// Returns none: ceph-volume, which calls the shim, runs only in a node Job.
pub fn as_shim(_: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    None
}
