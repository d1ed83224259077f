//! Every reason of a gate: shut or unknown with one thing changed, open without the change.

mod after_stop;
mod ask;
mod before_stop;
mod cluster;
mod fresh;
mod group_flags;
mod own;
mod rook;
